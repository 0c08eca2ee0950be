"""ABDA's tables and the two ways in which they are read: as the paper's program is told, and as ours decides.

Knows nothing of learning or sampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.errors import TableError
from bayesjpt.table.labels import smoothed
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table

GAMMA, ALPHA = 10.0, 0.1
"""The paper's concentrations per edge at structure sums and at dictionaries (section 6)."""

CONTINUOUS = 1
"""In `meta_type`; 2 (binary) and 3 (discrete) are labels or counts, the program is not told which."""

CONTINUOUS_TYPES = ("real", "pos")
"""In `types` of the synthetic tables; the others are `count` and `cat`."""


@dataclass(frozen=True)
class Data:
    """One of ABDA's tables with its split.

    Parameters
    ----------
    name : str
    train, valid, test : float64 (n_row, n_column)
        NaN where missing.
    discrete : bool (n_column,)
    true_density : float or None
        Mean log density of the test rows under the circuit that generated them, nats per row.
    """

    name: str
    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    discrete: np.ndarray
    true_density: float | None = None

    @property
    def n_row(self) -> int:
        """Rows of the whole table."""
        return len(self.train) + len(self.valid) + len(self.test)


def read_data(directory: str | Path, name: str) -> Data:
    """Return a table of ``directory/abda`` or ``directory/abda_synthetic`` by its name.

    Raises
    ------
    TableError
        Where there is no such file.
    """
    for folder in ("abda", "abda_synthetic"):
        path = Path(directory) / folder / f"{name}.npz"
        if path.is_file():
            break
    else:
        raise TableError(f"no table {name!r} in {str(directory)!r}", f"abda/{name}.npz or abda_synthetic/{name}.npz")
    with np.load(path) as arrays:
        if "meta_type" in arrays:
            discrete = arrays["meta_type"] != CONTINUOUS
            true_density = None
        else:
            discrete = ~np.isin(arrays["types"], CONTINUOUS_TYPES)
            true_density = float(arrays["true_log_density_test"].mean())
        parts = [np.asarray(arrays[part], np.float64) for part in ("train", "valid", "test")]
    return Data(name, *parts, discrete, true_density)


def table_names(directory: str | Path) -> list[str]:
    """Return the names of the tables of ``directory/abda``, sorted.

    Raises
    ------
    TableError
        Where there are none.
    """
    names = sorted(path.stem for path in (Path(directory) / "abda").glob("*.npz"))
    if not names:
        raise TableError(f"no tables in {str(directory)!r}", "a folder abda with .npz files")
    return names


def paper_schema(train: np.ndarray, discrete: np.ndarray) -> Schema:
    """Return the schema that amounts to ABDA's dictionary: the user's word for continuous or discrete, nothing else.

    A continuous column is offered normal, and gamma and exponential where no training value is negative; a discrete
    one Poisson, geometric, and a categorical over all its training codes, however many. The resolution of a continuous
    column is its smallest positive value: no recorded value but an exact zero is scored as a cell. Location and scale
    are units used inside, in which the raw-unit priors are rewritten.
    """
    return Schema(tuple(_column(f"x{k}", train[:, k], bool(discrete[k])) for k in range(train.shape[1])))


def _column(name: str, values: np.ndarray, discrete: bool) -> Column:
    values = values[~np.isnan(values)]
    spread = float(values.std())
    facts = {"mean": float(values.mean()), "maximum": float(values.max()), "location": float(np.median(values))}
    if discrete:
        levels, counts = np.unique(values, return_counts=True)
        return Column(
            name,
            "integer",
            (0.0, np.inf),
            levels=tuple(levels.tolist()),
            frequencies=smoothed(counts.tolist()),
            scale=max(spread, 1.0),
            families=("poisson", "geometric", "categorical"),
            **facts,
        )
    positive = values[values > 0.0]
    scale = spread if spread > 0.0 else 1.0
    signed = bool(values.min() < 0.0)
    return Column(
        name,
        "real",
        (-np.inf if signed else 0.0, np.inf),
        families=("normal",) if signed else ("normal", "gamma", "exponential"),
        resolution=float(positive.min()) if positive.size else scale,
        scale=scale,
        **facts,
    )


def under_schema(schema: Schema, rows: np.ndarray) -> Table:
    """Return the table of rows, float64 (n_row, n_column) with NaN where missing, values taken as they are."""
    observed = ~np.isnan(rows)
    filled = np.where(observed, rows, [column.maximum for column in schema])
    return Table(schema, np.ascontiguousarray(filled.T), np.ascontiguousarray(observed.T))


def our_tables(data: Data) -> tuple[Table, Table]:
    """Return (training rows, test rows) under the schema that bayesjpt decides from the training rows alone.

    Columns that it would set aside as identifiers are kept, as real or integer by the user's word, so that densities
    of both readings are of the same columns.
    """
    train, test = as_frame(data.train), as_frame(data.test)
    kinds = {f"x{k}": "integer" if discrete else "real" for k, discrete in enumerate(data.discrete)}
    table = bj.as_table(train)
    if table.schema.set_aside:
        table = bj.as_table(train, kinds={column.name: kinds[column.name] for column in table.schema.set_aside})
    return table, bj.as_table(test, schema=table.schema)


def as_frame(rows: np.ndarray) -> pd.DataFrame:
    """Return rows, float64 (n_row, n_column), as a frame whose columns are x0, x1, ..."""
    return pd.DataFrame({f"x{k}": rows[:, k] for k in range(rows.shape[1])})
