"""A fitted posterior as the prior of latent rows: a distribution over real cells, with a density and its gradient."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import Distribution
from pymc.logprob.transforms import Transform
from pytensor.tensor.random.op import RandomVariable

from bayesjpt.circuit.average import average
from bayesjpt.circuit.plan import POINT, make_plan
from bayesjpt.errors import ModelError
from bayesjpt.internals import (
    default_transform,
    log_probability,
    log_probability_above,
    log_probability_up_to,
    numba_core_rv_funcify,
    numba_njit,
    rv_size_is_none,
    support_point,
)
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.model.blocks import check_name
from bayesjpt.model.cell_density import CellDensity
from bayesjpt.model.distributions import apply_rv
from bayesjpt.numerics.jit import source_version
from bayesjpt.table.table import as_table

if TYPE_CHECKING:
    from bayesjpt.posterior.draws import Posterior

MAX_DRAWS = 20
"""Draws of which the prior is the mean: each multiplies the cost of its density."""


N_START = 100
"""Drawn rows from which the one is taken that samplers begin at."""


class Population:
    """A mixture of draws as one hashable property of an op.

    Parameters
    ----------
    post : Posterior
    columns : sequence of str
    max_draws : int
    """

    def __init__(self, post: Posterior, columns: Sequence[str], max_draws: int):
        parts = post.marginal(list(columns)).by_structure()
        schema = parts[0].schema
        owner = np.repeat(np.arange(len(parts)), [part.n_chain * part.n_draw for part in parts])
        within = np.concatenate([np.arange(part.n_chain * part.n_draw) for part in parts])
        n = min(max_draws, owner.size)
        # the middle of each of n equal parts of all draws
        kept = ((np.arange(n) + 0.5) * (owner.size / n)).astype(int)
        flat = [part.flat() for part in parts]
        points = [
            (parts[s].circuit, type(flat[s])(flat[s].log_weight[draw], flat[s].theta[draw]))
            for s, draw in zip(owner[kept], within[kept], strict=True)
        ]
        circuit, params = average(points)
        self.schema = schema
        self.plan = make_plan(circuit, schema)
        if (self.plan.leaf_cut == POINT).any():
            raise ModelError("a posterior conditioned on values of real columns, which leaves no density", "marginal")
        self.log_weight, self.theta = params.log_weight.copy(), params.theta.copy()
        self.density = CellDensity(circuit, self.plan, params)
        self.location = np.array([column.location for column in schema])
        self.scale = np.array([column.scale for column in schema])
        self.start = self._central_row()
        self.is_positive = self.density.positive(len(schema))
        content = repr(schema.to_dict()).encode() + repr(columns).encode()
        self.digest = hashlib.sha256(circuit.digest().encode() + content).hexdigest()

    def _central_row(self) -> np.ndarray:
        """Return a row, (n_column,), for samplers to begin at: of some drawn rows, which have a density, the nearest
        to their mean."""
        rows = np.empty((N_START, len(self.schema)))
        # a seed of its own: the start is the same in every process
        sample_rows(self.plan, self.log_weight, self.theta, np.random.default_rng(0), rows)
        away = (rows - rows.mean(axis=0)) / self.scale
        return rows[np.argmin((away * away).sum(axis=1))]

    def __eq__(self, other):
        return isinstance(other, Population) and other.digest == self.digest

    def __hash__(self):
        return hash(self.digest)

    def __repr__(self):
        return ", ".join(self.schema.names)


class PriorCellsRV(RandomVariable):
    """Cells of one column; the input is a dummy, of no dimension."""

    name = "CircuitPrior"
    signature = "()->()"
    dtype = "float64"
    _print_name = ("CircuitPrior", "\\operatorname{CircuitPrior}")
    __props__ = ("name", "signature", "dtype", "inplace", "population")

    def __init__(self, population: Population | None = None, **kwargs):
        self.population = population
        super().__init__(**kwargs)

    def rng_fn(self, rng, dummy, size=None):
        shape = np.shape(dummy) if size is None else tuple(size)
        return _sample(self.population, rng, shape)[..., 0]


class PriorRowsRV(PriorCellsRV):
    """Rows of several columns; the input is a dummy as long as a row."""

    signature = "(d)->(d)"

    def rng_fn(self, rng, dummy, size=None):
        return _sample(self.population, rng, np.shape(dummy)[:-1] if size is None else tuple(size))


def _sample(population: Population, rng, shape: tuple) -> np.ndarray:
    out = np.empty((int(np.prod(shape, dtype=int)), len(population.schema)))
    sample_rows(population.plan, population.log_weight, population.theta, rng, out)
    return out.reshape(*shape, -1)


@numba_core_rv_funcify.register(PriorCellsRV)
def _prior_cells_numba(op, node):
    plan, log_weight, theta = op.population.plan, op.population.log_weight, op.population.theta

    @numba_njit
    def prior_cells(rng, dummy):
        out = np.empty((1, 1))
        sample_rows(plan, log_weight, theta, rng, out)
        return out[0, 0]

    return prior_cells, _version(op)


@numba_core_rv_funcify.register(PriorRowsRV)
def _prior_rows_numba(op, node):
    plan, log_weight, theta = op.population.plan, op.population.log_weight, op.population.theta

    @numba_njit
    def prior_rows(rng, dummy):
        out = np.empty((1, dummy.shape[0]))
        sample_rows(plan, log_weight, theta, rng, out)
        return out[0]

    return prior_rows, _version(op)


def _version(op) -> int:
    """Return a key that differs where the arrays that are constants of the compiled function do."""
    return source_version() ^ int(op.population.digest[:14], 16)


class PriorCells(Distribution):
    """Distribution of cells of one column."""

    rv_type = PriorCellsRV

    @classmethod
    def dist(cls, population, **kwargs):
        return super().dist([pt.constant(0.0, dtype="float64")], population=population, **kwargs)

    @classmethod
    def rv_op(cls, dummy, *, population, size=None, rng=None):
        return apply_rv(PriorCellsRV(population), dummy, size=size, rng=rng)


class PriorRows(Distribution):
    """Distribution of rows of several columns."""

    rv_type = PriorRowsRV

    @classmethod
    def dist(cls, population, **kwargs):
        return super().dist([pt.constant(np.zeros(len(population.schema)))], population=population, **kwargs)

    @classmethod
    def rv_op(cls, dummy, *, population, size=None, rng=None):
        return apply_rv(PriorRowsRV(population), dummy, size=size, rng=rng)


@log_probability.register(PriorCellsRV)
def _prior_cells_logp(op, values, rng, size, dummy, **kwargs):
    (value,) = values
    return op.population.density.log_density(value.ravel()[None, :]).reshape(value.shape)


@log_probability.register(PriorRowsRV)
def _prior_rows_logp(op, values, rng, size, dummy, **kwargs):
    (value,) = values
    rows = value.reshape((-1, len(op.population.schema)))
    return op.population.density.log_density(rows.T).reshape(value.shape[:-1])


@log_probability_up_to.register(PriorCellsRV)
def _prior_cells_logcdf(op, value, rng, size, dummy, **kwargs):
    return op.population.density.log_cdf(value.ravel()[None, :]).reshape(value.shape)


@log_probability_above.register(PriorCellsRV)
def _prior_cells_logccdf(op, value, rng, size, dummy, **kwargs):
    return op.population.density.log_ccdf(value.ravel()[None, :]).reshape(value.shape)


@support_point.register(PriorCellsRV)
def _prior_cells_support_point(op, rv, rng, size, dummy):
    return dummy + op.population.start[0] if rv_size_is_none(size) else pt.full(size, op.population.start[0])


@support_point.register(PriorRowsRV)
def _prior_rows_support_point(op, rv, rng, size, dummy):
    return pt.broadcast_to(pt.constant(op.population.start), rv.shape)


class Standardised(Transform):
    """Cells in units of their columns' spread, logarithms where all of a column's likelihoods are positive.

    Parameters
    ----------
    population : Population
    ndim_supp : int
        0 for cells of one column, 1 for rows.
    """

    name = "standardised"

    def __init__(self, population: Population, ndim_supp: int):
        self.ndim_supp = ndim_supp
        columns = [population.is_positive, population.location, population.scale]
        self._positive, self._location, self._scale = columns if ndim_supp else [column[0] for column in columns]

    def forward(self, value, *inputs):
        """Return (x - location) / scale, or log(x / scale)."""
        # the branch that is not taken has a finite value and slope
        positive = pt.log(pt.switch(self._positive, value, 1.0) / self._scale)
        return pt.switch(self._positive, positive, (value - self._location) / self._scale)

    def backward(self, value, *inputs):
        """Return the cells."""
        positive = pt.exp(pt.switch(self._positive, value, 0.0))
        return self._scale * pt.switch(self._positive, positive, value) + pt.switch(self._positive, 0.0, self._location)

    def log_jac_det(self, value, *inputs):
        """Return the logarithm of the Jacobian determinant of `backward`."""
        of_cells = pt.switch(self._positive, value, 0.0) + np.log(self._scale)
        return of_cells.sum(axis=-1) if self.ndim_supp else of_cells


@default_transform.register(PriorCellsRV)
def _prior_cells_transform(op, rv):
    return Standardised(op.population, 0)


@default_transform.register(PriorRowsRV)
def _prior_rows_transform(op, rv):
    return Standardised(op.population, 1)


class CircuitPrior:
    """Latent rows that come from the population of a fitted table: ``bj.CircuitPrior("z", post, n=50)``.

    Independent rows of real cells, each from the mean of some draws of the posterior, so that z is distributed as a new
    row of the table is predicted to be, uncertainty about the circuit included. Other factors may depend on z in any
    way; NUTS samples it.

    Parameters
    ----------
    name : str
    post : Posterior
        What `bayesjpt.fit` or `Posterior.from_idata` returned, of one structure or several.
    n : int
        Rows.
    columns : sequence of str, or str, optional
        Columns of z, the others summed out; all columns unless given. One name alone makes z a vector, a univariate
        distribution that has a distribution function too.
    max_draws : int, default 20
        Draws of the posterior that are averaged, evenly spread over chains and structures.
    **options
        As every PyMC distribution takes them, such as ``observed=`` or ``default_transform=None``; but for dims and
        shape, which follow from `n`. Of an observed frame columns are found by their names, in any order; of an array
        they are in the order of z.

    Returns
    -------
    TensorVariable
        (n, n_column), or (n,) of one named column, in the user's units, with dims ``<name>_row`` and ``<name>_column``.

    Raises
    ------
    ModelError
        For a column of whole numbers or labels, or with atoms, which have no gradient: leave it out of `columns` and it
        is summed out; for a likelihood whose density has no derivative here; for `n` or `max_draws` below 1; for
        observed rows of another number, or a frame of them that lacks a column.
    QueryError
        For a column that the posterior does not have.

    Notes
    -----
    The density is p(z) = 1/D sum over D draws of p(z | w_d, theta_d), the posterior predictive density with the mean
    over draws taken over fewer of them. A circuit at the mean of the draws would be another distribution: components of
    different draws need not be the same sub-populations, and parameters are certain at none. For a distribution to be
    handed to another, such as `pm.Censored` (one named column) or `pm.Mixture`: `dist(post, columns)`.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pymc as pm, bayesjpt as bj
    >>> rng = np.random.default_rng(1)
    >>> table = bj.as_table(pd.DataFrame({"height": rng.normal(1.7, 0.1, 80), "weight": rng.gamma(9.0, 8.0, 80)}))
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, rng), table.schema)
    >>> with pm.Model() as model:
    ...     z = bj.CircuitPrior("z", post, n=5)
    ...     y = pm.Normal("y", z[:, 0], 0.05, observed=np.full(5, 1.9))
    >>> model["z"].type.shape, model.coords["z_column"]
    ((5, 2), ('height', 'weight'))
    """

    def __new__(
        cls,
        name: str,
        post: Posterior,
        n: int,
        *,
        columns: Sequence[str] | str | None = None,
        max_draws: int = MAX_DRAWS,
        **options: Any,
    ):
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
            raise ModelError(f"n={n!r} rows of {name!r}", "a whole number from 1")
        given = [option for option in ("dims", "shape", "size") if option in options]
        if given:
            raise ModelError(f"{given[0]}= of {name!r}", "n=, the number of rows, which says as much")
        population, is_cells = _population_of(post, columns, max_draws)
        model = pm.modelcontext(None)
        check_name(model, name)
        options = options | _observed(name, options.get("observed"), population, n, is_cells)
        row, column = f"{model.name_for(name)}_row", f"{model.name_for(name)}_column"
        model.add_coord(row, np.arange(n))
        if is_cells:
            return PriorCells(name, population, dims=(row,), shape=(n,), **options)
        model.add_coord(column, list(population.schema.names))
        return PriorRows(name, population, dims=(row, column), shape=(n, len(population.schema)), **options)

    @classmethod
    def dist(
        cls,
        post: Posterior,
        columns: Sequence[str] | str | None = None,
        *,
        max_draws: int = MAX_DRAWS,
        **options: Any,
    ) -> Any:
        """Return the distribution of a row, or of the cells of one named column, without a name of its own."""
        population, is_cells = _population_of(post, columns, max_draws)
        return PriorCells.dist(population, **options) if is_cells else PriorRows.dist(population, **options)


def _observed(name: str, observed: Any, population: Population, n: int, is_cells: bool) -> dict[str, Any]:
    """Return the option ``observed`` where it has to change: columns of frames are found by their names."""
    changed = {}
    if hasattr(observed, "columns"):
        names = population.schema.names
        lacking = [column for column in names if column not in observed.columns]
        if lacking:
            raise ModelError(f"observed rows of {name!r} without the column {lacking[0]!r}", f"{', '.join(names)}")
        table = as_table(observed[list(names)], schema=population.schema)
        observed = np.where(table.observed, table.values, np.nan).T
        observed = observed[:, 0] if is_cells else observed
        changed = {"observed": observed}
    # of data of the model, which may be set anew, PyMC compares shapes
    if isinstance(observed, np.ndarray | Sequence) and np.ndim(observed) and np.shape(observed)[0] != n:
        raise ModelError(f"{np.shape(observed)[0]} observed rows of {name!r}", f"n={n} of them")
    return changed


def _population_of(post: Posterior, columns: Sequence[str] | str | None, max_draws: int) -> tuple[Population, bool]:
    """Return the mixture, and whether it is one of cells, not of rows."""
    if not hasattr(post, "marginal") or not hasattr(post, "by_structure"):
        raise ModelError(
            f"a posterior of type {type(post).__name__}", "what bj.fit or bj.Posterior.from_idata returned"
        )
    if not isinstance(max_draws, int | np.integer) or max_draws < 1:
        raise ModelError(f"max_draws={max_draws!r}", "a whole number from 1")
    is_cells = isinstance(columns, str)
    if not (columns is None or is_cells or isinstance(columns, Iterable)):
        raise ModelError(f"columns={columns!r}", "names of columns")
    names = (columns,) if is_cells else tuple(post.schema.names if columns is None else columns)
    known = {column.name: column for column in post.schema}
    unusable = [name for name in names if name in known and (known[name].base != "real" or known[name].atoms)]
    if unusable:
        raise ModelError(
            f"a prior over the columns {', '.join(map(repr, unusable))}, of whole numbers, labels or atoms",
            "real columns without atoms: cells that NUTS can move",
            "Name the others in columns=[...]; what is not named is summed out",
        )
    return Population(post, names, int(max_draws)), is_cells
