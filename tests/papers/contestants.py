"""The models whose held-out scores are compared, each fitted to the same training rows and asked for the same cells.

Ours by its defaults, and with cells of one width a column; independent columns with the same leaves; ABDA's dictionary
and priors in our program; lace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import bayesjpt as bj
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests.papers import abda, lace_peer, measures
from tests.papers.abda_data import ALPHA, GAMMA, Data, as_frame, our_tables, paper_schema, under_schema
from tests.papers.jpt import n_tree_leaves
from tests.papers.resolutions import find_resolutions, known_resolutions, with_widths

PRIOR_OPTIONS = ("gamma", "alpha", "prior", "type_prior", "families")
"""Options of a fit that are no business of the learner."""

PART_DRAWS = 100
"""Draws of all chains, evenly spaced, from which contributions of columns and other widths of cells are told."""


@dataclass(frozen=True)
class Task:
    """A table, the rows to be scored, and the widths of the cells.

    Parameters
    ----------
    data : Data
    rows : float64 (n_row, n_column)
    resolution : float64 (n_column,)
    varied : bool (n_column,)
        Columns whose widths have a say: numbers that are not whole, in our reading and by the table's own word.
    """

    data: Data
    rows: np.ndarray
    resolution: np.ndarray
    varied: np.ndarray

    def widths(self, factor: float) -> np.ndarray:
        """Return the widths of cells, float64 (n_column,)."""
        return self.resolution * np.where(self.varied, factor, 1.0)


def make_task(data: Data, part: str) -> Task:
    """Return the task of a table: its rows for testing, or for validation."""
    schema = our_tables(data)[0].schema
    varied = np.array([column.base == "real" for column in schema]) & ~data.discrete
    widths = known_resolutions(data.name)
    widths = find_resolutions(data) if widths is None else widths
    return Task(data, data.test if part == "test" else data.valid, widths, varied)


@dataclass(frozen=True)
class Settings:
    """How our models are fitted: chains, sweeps, and options of `bj.fit` other than its defaults.

    Only ours is an ensemble; the models beside it are of one structure, with long chains where nothing is said.
    """

    chains: int | None = None
    draws: int | None = None
    tune: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Model:
    """A fitted model, asked for one set of rows.

    Parameters
    ----------
    mass : callable
        From a factor of the cells' widths and whether few draws are enough to a Score.
    density : Score
    processor_seconds : float
        Of learning and sampling, compilation left out.
    size : float
        Parts: products of our structures, components of the other program's views; means over structures and chains.
    n_unknown : int
        Cells that the model cannot score, and that count as certain.
    posterior : Posterior, optional
        Of our models.
    """

    mass: Callable[[float, bool], measures.Score]
    density: measures.Score
    processor_seconds: float
    size: float
    n_unknown: int = 0
    posterior: Posterior | None = None


def _few_draws(post: Posterior) -> Posterior:
    step = max(post.n_chain * post.n_draw // PART_DRAWS, 1)
    return post.take_draws(np.arange(0, post.n_draw, step))


def _under(post: Posterior, schema: Schema) -> Posterior:
    """Return the posterior with another schema, whose cells are of other widths."""
    if isinstance(post, StackedPosterior):
        return StackedPosterior([replace(own, schema=schema) for own in post.by_structure()], post.weights)
    return replace(post, schema=schema)


def _asked(post: Posterior, table: Table, task: Task) -> tuple[Callable[[float, bool], measures.Score], measures.Score]:
    """Return what `Model` holds as mass and density."""

    def mass(factor: float, few: bool) -> measures.Score:
        schema = with_widths(post.schema, task.widths(factor))
        asked = _under(_few_draws(post) if few else post, schema)
        return lambda which: asked.log_mass(Table(schema, table.values, table.observed & which)).to_numpy()

    def density(which: np.ndarray) -> np.ndarray:
        return post.log_density(Table(table.schema, table.values, table.observed & which)).to_numpy()

    return mass, density


def fit_ours(task: Task, settings: Settings, seed: int, **options: Any) -> Model:
    """Return our model: the schema decided from training rows, everything by default but for sweeps and `options`."""
    train, _ = our_tables(task.data)
    rows = bj.as_table(as_frame(task.rows), schema=train.schema)
    return _fit(task, (train, rows), settings, seed, **{**settings.options, **options})


def with_even_cells(model: Model, task: Task) -> Model:
    """Return our model asked for cells of one width a column, as peers have them: no value is anybody's favourite.

    Leaves are fitted to recorded values, not to their cells, so that the draws are those of another fit.
    """
    assert model.posterior is not None
    columns = tuple(replace(column, cell_ends=(), cell_shifts=()) for column in model.posterior.schema)
    post = _under(model.posterior, replace(model.posterior.schema, columns=columns))
    mass, density = _asked(post, bj.as_table(as_frame(task.rows), schema=post.schema), task)
    return replace(model, mass=mass, density=density, posterior=post)


def fit_independent(task: Task, settings: Settings, seed: int) -> Model:
    """Return the model whose columns are independent: one product, with the same leaves and priors."""
    priors = {name: value for name, value in settings.options.items() if name in PRIOR_OPTIONS}
    return fit_ours(task, replace(settings, options=priors), seed, n_structures=1, min_rows=len(task.data.train))


def fit_abda(task: Task, settings: Settings, seed: int) -> Model:
    """Return ABDA's model: its dictionary and priors, the table's word for continuous or discrete."""
    schema = paper_schema(task.data.train, task.data.discrete)
    tables = under_schema(schema, task.data.train), under_schema(schema, task.rows)
    min_rows = abda.MIN_ROWS.get(task.data.name, task.data.n_row // 10)
    options = {"min_rows": min_rows, "threshold": abda.THRESHOLD, "gamma": GAMMA, "alpha": ALPHA}
    return _fit(task, tables, settings, seed, n_structures=1, prior="abda", **options)


def _fit(task: Task, tables: tuple[Table, Table], settings: Settings, seed: int, **options: Any) -> Model:
    """Return the model of the first table, asked for the second."""
    train, rows = tables
    clock = {}
    post = bj.fit(
        train,
        chains=settings.chains,
        draws=settings.draws,
        tune=settings.tune,
        seed=seed,
        progress=False,
        on_phase=lambda phase, _: clock.update({phase: time.process_time()}),
        **options,
    )
    seconds = max(clock.values()) - clock["compile"]
    sizes = [n_tree_leaves(own.circuit) for own in post.by_structure()]
    return Model(*_asked(post, rows, task), processor_seconds=seconds, size=float(np.mean(sizes)), posterior=post)


def fit_lace(task: Task, settings: lace_peer.Settings, seed: int) -> Model:
    """Return lace's fit of the same training rows."""
    fitted = lace_peer.fit_lace(task.data, settings, seed)
    values = task.rows.T
    sizes = [sum(view.weights.size for view in views) / len(views) for views in fitted.states]
    return Model(
        mass=lambda factor, _: fitted.score(values, task.widths(factor)),
        density=fitted.score(values, None),
        processor_seconds=fitted.processor_seconds,
        size=float(np.mean(sizes)),
        n_unknown=int(fitted.unknown_cells(values).sum()),
    )
