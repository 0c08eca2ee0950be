"""ABDA's transductive protocol: cells hidden by the authors' masks, scored and filled in; two imputers beside it.

    python -m tests.papers.abda --data DIR --table abalone --transductive

One fit sees all rows without the hidden cells. Reference: Vergari et al. (2019), section 6 and Table 1, whose
transductive column is the marginal log density of a hidden cell.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.errors import TableError
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests.papers import lace_peer, resolutions
from tests.papers.abda_data import CONTINUOUS, as_frame, paper_schema, under_schema
from tests.papers.cell_scores import CellScores, by_lace, by_verb, score_cells

MASK_SEED = 1111
SHARES = ("0.1", "0.5")
NOMINAL = ("nominal", "binary")
"""Documented types whose codes have no order: scored by accuracy, the others by error."""

TARGETS = {("abalone", "0.1"): {"marginal": -0.02, "conditional": 0.22}}
"""What the mean of log density per hidden cell is to reach under the paper's priors, nats."""


@dataclass(frozen=True)
class Masked:
    """One of ABDA's tables with hidden cells; arrays are (n_row, n_column).

    Parameters
    ----------
    name, share : str
        `share` is that of the mask without the cells for validation.
    values : float64
        NaN where the source itself has no value.
    hidden, scored : bool
        What the fit does not see; what is scored: the hidden cells, without those that the authors keep for validation
        and those that the source does not know.
    discrete, nominal : bool (n_column,)
    named : bool
        Whether the documented types are known; otherwise no column counts as nominal.
    """

    name: str
    share: str
    values: np.ndarray
    hidden: np.ndarray
    scored: np.ndarray
    discrete: np.ndarray
    nominal: np.ndarray
    named: bool

    @property
    def train(self) -> np.ndarray:
        """The values without the hidden cells: what fits and imputers see."""
        return np.where(self.hidden, np.nan, self.values)


def read_masked(directory: str | Path, name: str, share: str, seed: int = MASK_SEED) -> Masked:
    """Return a table of ``directory/abda`` under one of its masks.

    Raises
    ------
    TableError
        Where there is no such file or mask.
    """
    path = Path(directory) / "abda" / f"{name}.npz"
    if not path.is_file():
        raise TableError(f"no table {name!r} in {str(directory)!r}", f"abda/{name}.npz")
    with np.load(path) as arrays:
        if f"mask_{share}_{seed}" not in arrays:
            raise TableError(f"no mask of {share} with seed {seed} in {path.name!r}", f"mask_{share}_{seed}")
        values = np.asarray(arrays["X"], np.float64)
        hidden, kept = (_unpacked(arrays[f"{part}_{share}_{seed}"], values.shape) for part in ("mask", "maskval"))
        discrete = arrays["meta_type"] != CONTINUOUS
    types = _documented_types(Path(directory), name)
    nominal = np.array([kind in NOMINAL for kind in types] or [False] * values.shape[1])
    scored = hidden & ~kept & ~np.isnan(values)
    return Masked(name, share, values, hidden, scored, discrete, nominal, bool(types))


def _unpacked(packed: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return np.unpackbits(packed)[: shape[0] * shape[1]].reshape(shape).astype(bool)


def _documented_types(directory: Path, name: str) -> list[str]:
    """Return the documented type of each column, as of the raw table that it comes from; empty where not known."""
    path = directory / "columns.json"
    if not path.is_file():
        return []
    known = json.loads(path.read_text())["datasets"]
    entry = known.get(f"abda/{name}.npz", {})
    raw = {column["name"]: column["type"] for column in known.get(entry.get("columns_named_as"), {}).get("columns", ())}
    names = entry.get("column_names", [])
    return [raw[column] for column in names] if set(names) <= set(raw) else []


def readings(data: Masked) -> dict[str, tuple[Table, Table]]:
    """Return by prior (the table that is fitted, the table with every value), under one schema decided from the first.

    The paper's reading is told which columns are continuous. Ours is told nothing but that columns which it would set
    aside as identifiers stay.
    """
    schema = paper_schema(data.train, data.discrete)
    frame = as_frame(data.train)
    table = bj.as_table(frame)
    if table.schema.set_aside:
        kinds = {f"x{k}": "integer" if discrete else "real" for k, discrete in enumerate(data.discrete)}
        table = bj.as_table(frame, kinds={column.name: kinds[column.name] for column in table.schema.set_aside})
    return {
        "abda": (under_schema(schema, data.train), under_schema(schema, data.values)),
        "default": (table, bj.as_table(as_frame(data.values), schema=table.schema)),
    }


def fixed_widths(data: Masked, schema: Schema) -> tuple[np.ndarray, float]:
    """Return the widths of the table's cells, float64 (n_column,), and the mean log width of those that are scored.

    Mass less log width is a density per unit, of the cell's average: what densities of other programs compare with
    where cells are narrow.
    """
    widths = resolutions.known_resolutions(data.name)
    if widths is None:
        widths = np.array([column.resolution for column in schema])
    return widths, float((data.scored.sum(axis=0) @ np.log(widths)) / data.scored.sum())


@dataclass(frozen=True)
class Errors:
    """How far imputed cells are from the hidden values.

    Parameters
    ----------
    error : float
        Mean over columns that are not nominal of the root mean squared error, in the column's standard deviations.
    accuracy : float
        Mean over nominal columns of the share of cells that are right; NaN without such columns.
    by_column : float64 (n_column,)
        Either, column by column; NaN where nothing is scored.
    """

    error: float
    accuracy: float
    by_column: np.ndarray


def judge(data: Masked, filled: np.ndarray) -> Errors:
    """Return the errors of a completed table, float64 (n_row, n_column); codes of nominal columns are rounded."""
    by_column = np.full(data.values.shape[1], np.nan)
    for column in np.flatnonzero(data.scored.any(axis=0)):
        cells = data.scored[:, column]
        true, found = data.values[cells, column], filled[cells, column]
        if data.nominal[column]:
            by_column[column] = np.mean(np.round(found) == true)
        else:
            spread = np.nanstd(data.values[:, column])
            by_column[column] = np.sqrt(np.mean((found - true) ** 2)) / (spread if spread > 0.0 else 1.0)
    judged = ~np.isnan(by_column)
    numbers, codes = by_column[judged & ~data.nominal], by_column[judged & data.nominal]
    return Errors(
        float(numbers.mean()) if numbers.size else np.nan, float(codes.mean()) if codes.size else np.nan, by_column
    )


def impute_by_posterior(post: Posterior, data: Masked, seen: Table) -> np.ndarray:
    """Return values completed by `post.impute_mean`: expectations before rounding, the most probable label of labels.

    A nominal column that the schema holds as numbers gets its most probable training code instead.
    """
    done = post.impute_mean(seen)
    labels = done.table.to_frame()
    expectation = done.cells["expectation"].to_numpy()
    filled = data.train
    for number, column in enumerate(post.schema):
        holes = ~seen.observed[number]
        if not holes.any():
            continue
        if column.base == "category":
            filled[holes, number] = pd.to_numeric(labels[column.name])[holes]
        elif data.nominal[number]:
            filled[holes, number] = _most_probable_code(post, seen.take(holes), number)
        else:
            filled[holes, number] = expectation[holes, number]
    return filled


def _most_probable_code(post: Posterior, rows: Table, column: int) -> np.ndarray:
    codes = np.array(post.schema.columns[column].levels)
    assert codes.size, "a nominal column without levels"
    alone = np.zeros_like(rows.observed)
    alone[column] = True
    share = []
    for code in codes:
        values = rows.values.copy()
        values[column] = code
        cell = Table(rows.schema, values, alone)
        share.append(np.exp(post.log_density(cell, given=rows).to_numpy()).mean(axis=(0, 1)))
    return codes[np.argmax(share, axis=0)]


def other_imputers(data: Masked) -> dict[str, np.ndarray]:
    """Return by name the tables completed by scikit-learn's imputers, on standardised columns."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401  (makes the next import possible)
    from sklearn.impute import IterativeImputer, KNNImputer

    location, spread = np.nanmean(data.train, axis=0), np.nanstd(data.train, axis=0)
    spread[spread == 0.0] = 1.0
    imputers = {
        "IterativeImputer": IterativeImputer(random_state=0, max_iter=50),
        "KNNImputer": KNNImputer(),
        "column mean": None,
    }
    completed = {}
    for name, imputer in imputers.items():
        z = (data.train - location) / spread
        filled = np.where(np.isnan(z), 0.0, z) if imputer is None else imputer.fit_transform(z)
        completed[name] = filled * spread + location
    return completed


def run(
    data: Masked, settings, seeds: int, show: Callable[[object], None], lace: lace_peer.Settings | None = None
) -> dict[str, list[CellScores]]:
    """Show and return the scores of each structure seed by prior; show those of fits by lace beside them."""
    from rich.table import Table as RichTable

    scores = RichTable(title=f"{data.name}, {data.share} hidden: nats per hidden cell", title_justify="left")
    for header in (
        "reading", "seed", "leaves", "marginal", "conditional", "marginal, log of mean", "conditional, log of mean",
        "marginal mass", "conditional mass", "less log r", "impossible", "s",
    ):  # fmt: skip
        scores.add_column(header, justify="left" if header == "reading" else "right")
    errors = RichTable(title="imputed cells", title_justify="left")
    for header in ("imputer", "seed", "error / sd", "accuracy", *(f"x{k}" for k in range(data.values.shape[1]))):
        errors.add_column(header, justify="left" if header == "imputer" else "right")
    found: dict[str, list[CellScores]] = {}
    for prior, (seen, whole) in readings(data).items():
        found[prior] = []
        widths, log_width = fixed_widths(data, whole.schema)
        for seed in range(seeds):
            began = time.perf_counter()
            post = bj.fit(
                seen, learner="mspn", n_structures=1, draws=settings.draws, tune=settings.tune, chains=settings.chains,
                cores=1, seed=seed, prior=prior, progress=False, **settings.options(prior),
            )  # fmt: skip
            cells = whole.values, seen.observed, data.scored
            one = score_cells(by_verb(post.log_density, whole.schema), *cells)
            found[prior].append(one)
            recorded = resolutions.with_widths(post.schema, widths)
            mass = score_cells(by_verb(replace(post, schema=recorded).log_mass, recorded), *cells)
            errors.add_row(TITLES[prior], str(seed), *_error_cells(judge(data, impute_by_posterior(post, data, seen))))
            densities = (one.marginal, one.conditional, one.marginal_of_mean, one.conditional_of_mean)
            scores.add_row(
                TITLES[prior], str(seed), str(post.circuit.n_leaf), *(f"{value:.3f}" for value in densities),
                *_mass_cells(mass, log_width), str(one.n_impossible), f"{time.perf_counter() - began:.0f}",
            )  # fmt: skip
    for seed in range(seeds if lace else 0):
        began = time.perf_counter()
        fit = lace_peer.fit_lace(data, lace, seed)
        mass = score_cells(by_lace(fit, widths), data.values.T, ~np.isnan(data.train.T), data.scored)
        errors.add_row("lace", str(seed), *_error_cells(judge(data, fit.complete(data.train.T).T)))
        seconds = f"{time.perf_counter() - began:.0f}"
        scores.add_row("lace", str(seed), *"-----", *_mass_cells(mass, log_width), str(mass.n_impossible), seconds)
    for name, filled in other_imputers(data).items():
        errors.add_row(name, "-", *_error_cells(judge(data, filled)))
    show(scores)
    show(errors)
    return found


def _mass_cells(mass: CellScores, log_width: float) -> list[str]:
    known = mass.marginal_of_mean, mass.conditional_of_mean, mass.conditional_of_mean - log_width
    return [f"{value:.3f}" for value in known]


TITLES = {"abda": "the paper's", "default": "ours"}


def _error_cells(errors: Errors) -> list[str]:
    numbers = (errors.error, errors.accuracy, *errors.by_column)
    return ["-" if np.isnan(number) else f"{number:.3f}" for number in numbers]


def verdict(data: Masked, scores: Sequence[CellScores]) -> str:
    """Return a sentence on each target of a table and mask."""
    lines = []
    for name, target in TARGETS.get((data.name, data.share), {}).items():
        value = float(np.median([getattr(one, name) for one in scores]))
        reached = "reached" if value >= target else "MISSED"
        lines.append(f"Target: median {name} score >= {target:.2f} under the paper's priors: {value:.3f}, {reached}")
    return "\n".join(lines)


def left_out(data: Masked) -> str:
    """Return a sentence that says which cells are hidden, scored and left out."""
    n_kept = int((data.hidden & ~data.scored & ~np.isnan(data.values)).sum())
    n_unknown = int((data.hidden & np.isnan(data.values)).sum())
    nominal = ", ".join(f"x{k}" for k in np.flatnonzero(data.nominal)) or "none"
    source = "documented types" if data.named else "no documented types, so every column counts as numbers"
    return (
        f"{data.name}, mask {data.share}, seed {MASK_SEED}: {len(data.values)} rows x {data.values.shape[1]} columns, "
        f"{int(data.hidden.sum())} cells hidden from the fit, {int(data.scored.sum())} scored; rows left out: none; "
        f"hidden and not scored: {n_kept} (the authors' cells for validation) and {n_unknown} (missing in the source); "
        f"{int(data.hidden.all(axis=1).sum())} rows are hidden whole. Nominal: {nominal} ({source})."
    )
