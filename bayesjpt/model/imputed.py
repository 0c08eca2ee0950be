"""Missing cells of a block as one random variable: the conditional of a row's missing cells given its observed ones.

The rows' density has missing cells summed out. With the density of the missing cells given the observed ones beside it
the model's density is that of whole rows, so other factors may depend on these:

    p(observed | weights, parameters)  *  p(missing | observed, weights, parameters)  *  factors of whole rows
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.distributions.distribution import Distribution
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.random.op import RandomVariable

from bayesjpt.defaults import MAX_REDRAWS, QUERY_WORK_BYTES
from bayesjpt.errors import ModelError
from bayesjpt.internals import (
    log_probability,
    numba_core_rv_funcify,
    numba_njit,
    register_funcify_default_op_cache_key,
    support_point,
)
from bayesjpt.kernels.gaps import completed, draw_gaps
from bayesjpt.kernels.work import block_rows
from bayesjpt.model.circuit_rows import FrozenCircuit, rows_density
from bayesjpt.model.distributions import apply_rv
from bayesjpt.model.segments import SMALLEST_WEIGHT
from bayesjpt.model.taint import through
from bayesjpt.numerics.jit import source_version
from bayesjpt.table.encode import filler, with_fillers
from bayesjpt.table.possible import possible_values
from bayesjpt.table.schema import Schema

IMPUTED = "_imputed"
"""What a block's name is followed by in the name of its missing cells."""
GAP = "_gap"
"""What a block's name is followed by in the name of the dim of its missing cells."""


def gap_labels(names: Sequence[str], missing: np.ndarray) -> list[str]:
    """Return a label of each missing cell of a mask, (n_row, n_column): its column, and its row's number from 0."""
    return [f"{names[column]}[{row}]" for row, column in np.argwhere(missing)]


def cell_limits(schema: Schema) -> np.ndarray:
    """Return float64 (5, n_column): least and largest value of missing cells, and no grid."""
    return np.vstack([possible_values(schema), np.zeros((3, len(schema)))])


def checked_cells(name: str, cells: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return values of missing cells at a point, float64 (n_missing,).

    Raises
    ------
    ModelError
        For other than one finite number for each missing cell of the mask, (n_row, n_column).
    """
    n_missing = np.count_nonzero(missing)
    if np.shape(cells) != (n_missing,):
        raise ModelError(f"{name} of shape {np.shape(cells)}", f"({n_missing},): one value for each missing cell")
    if not np.isfinite(cells).all():
        raise ModelError(f"{name} with values that are not finite", "a number or a code for each missing cell")
    return cells


class CompletedRows(Op):
    """Rows with their missing cells, row by row, taken from a vector.

    Parameters
    ----------
    name : str
        Of the vector, for the error where it is not as long as there are missing cells: `bayesjpt.set_rows` changes
        these, and draws from before still hold those of the rows before.
    """

    __props__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def make_node(self, values, missing, cells):
        inputs = [pt.as_tensor(x) for x in (values, missing, cells)]
        return Apply(self, inputs, [pt.matrix(dtype="float64", shape=inputs[0].type.shape)])

    def perform(self, node, inputs, outputs):
        values, missing, cells = inputs
        # the kernel takes as many as the mask says, whether they are there or not
        if cells.size != np.count_nonzero(missing):
            raise _cells_of_other_rows(self.name)
        outputs[0][0] = completed(values, missing, cells)

    def connection_pattern(self, node):
        return [[False], [False], [True]]

    def pullback(self, inputs, outputs, cotangents):
        """Return the cotangents of missing cells."""
        (cotangent,) = cotangents
        return [disconnected_type(), disconnected_type(), cotangent[inputs[1].nonzero()]]


def _cells_of_other_rows(name: str) -> ModelError:
    """Return the error for more or fewer values than there are missing cells."""
    return ModelError(
        f"values of {name} for another number of missing cells than the rows have, as in draws from before bj.set_rows",
        "one for each",
        f'Draw it anew: pm.sample_posterior_predictive(..., sample_vars=["{name}", ...])',
    )


@through.register(CompletedRows)
def _completed_rows_taint(op, node, marks):
    return [None]  # missing cells have values


@register_funcify_default_op_cache_key(CompletedRows)
def _completed_rows_numba(op, node, **kwargs):
    error = _cells_of_other_rows(op.name)
    found, expected, remedy = error.found, error.expected, error.remedy  # compiled code raises of constants alone

    @numba_njit
    def completed_rows(values, missing, cells):
        if cells.size != np.count_nonzero(missing):
            raise ModelError(found, expected, remedy)
        return completed(values, missing, cells)

    return completed_rows, source_version()


class StartingCells(Op):
    """Missing cells drawn from the learner's estimate, always the same: where chains begin."""

    __props__ = ("block",)

    def __init__(self, block: FrozenCircuit):
        self.block = block

    def make_node(self, values, missing):
        return Apply(self, [pt.as_tensor(values), pt.as_tensor(missing)], [pt.vector(dtype="float64", shape=(None,))])

    def perform(self, node, inputs, outputs):
        values, missing = inputs
        circuit = self.block.circuit
        # a seed of its own: the start is the same in every process
        rng = np.random.default_rng(0)
        outputs[0][0] = _draw(self.block, values, missing, circuit.start_log_weight, circuit.start_theta, rng)


def _draw(frozen: FrozenCircuit, values, missing, log_weight, theta, rng: np.random.Generator) -> np.ndarray:
    """Return the missing cells of rows, drawn given the observed ones."""
    n_block = block_rows(frozen.plan, QUERY_WORK_BYTES)
    rows = np.ascontiguousarray(with_fillers(frozen.schema, values, missing))
    log_weight, theta = (np.ascontiguousarray(x, np.float64).ravel() for x in (log_weight, theta))
    missing = np.ascontiguousarray(missing, bool)
    if not rows.shape[0]:
        return np.empty(0)
    limits = cell_limits(frozen.schema)
    return draw_gaps(frozen.plan, rows, missing, log_weight, theta, limits, n_block, MAX_REDRAWS, rng)


class ImputedCellsRV(RandomVariable):
    """Missing cells of rows, row by row, given the rows, the mask, the log weights of all edges and all parameters."""

    name = "ImputedCells"
    signature = "(n,d),(n,d),(e),(t)->(m)"
    dtype = "float64"
    _print_name = ("ImputedCells", "\\operatorname{ImputedCells}")
    __props__ = ("name", "signature", "dtype", "inplace", "block")
    completes_rows = True
    """Depends on the observed cells of rows, by the mask."""

    def __init__(self, block: FrozenCircuit | None = None, **kwargs):
        self.block = block
        super().__init__(**kwargs)

    def _supp_shape_from_params(self, dist_params, param_shapes=None):
        return (pt.sum(dist_params[1], dtype="int64"),)

    def rng_fn(self, rng, values, missing, log_weight, theta, size=None):
        return _draw(self.block, values, missing, log_weight, theta, rng)


@numba_core_rv_funcify.register(ImputedCellsRV)
def _imputed_cells_numba(op, node):
    plan, limits = op.block.plan, cell_limits(op.block.schema)
    fillers = np.array([filler(column) for column in op.block.schema])
    n_block, max_tries = block_rows(plan, QUERY_WORK_BYTES), MAX_REDRAWS

    @numba_njit
    def imputed_cells(rng, values, missing, log_weight, theta):
        rows = values.copy()
        for i in range(rows.shape[0]):
            for j in range(rows.shape[1]):
                if missing[i, j]:
                    rows[i, j] = fillers[j]
        return draw_gaps(plan, rows, missing, log_weight, theta, limits, n_block, max_tries, rng)

    return imputed_cells, source_version() ^ int(op.block.digest[:14], 16)


class ImputedCells(Distribution):
    """Distribution of missing cells given the observed cells of their rows."""

    rv_type = ImputedCellsRV

    @classmethod
    def dist(cls, frozen, values, missing, weight, theta, **kwargs):
        log_weight = pt.log(pt.maximum(weight, SMALLEST_WEIGHT))
        parameters = pt.as_tensor(values), pt.as_tensor(missing), log_weight, pt.as_tensor(theta)
        return super().dist(list(parameters), block=frozen, **kwargs)

    @classmethod
    def rv_op(cls, values, missing, log_weight, theta, *, block, size=None, rng=None):
        return apply_rv(ImputedCellsRV(block), values, missing, log_weight, theta, size=size, rng=rng)


@log_probability.register(ImputedCellsRV)
def _imputed_cells_logp(op, values, rng, size, rows, missing, log_weight, theta, **kwargs):
    """Return the log density of whole rows less that of their observed cells, and 0 density outside the limits.

    Not normalised over the limits: the model is conditioned on missing cells that keep to them.
    """
    (cells,) = values
    whole = CompletedRows(cells.name or "missing cells")(rows, missing, cells)
    memories = [_memory(op.block, rows) for _ in range(2)]
    of_whole = rows_density(op.block, whole, pt.zeros_like(missing), log_weight, theta, memories[0])
    of_observed = rows_density(op.block, rows, missing, log_weight, theta, memories[1])
    lower, upper = possible_values(op.block.schema)
    inside = pt.all((whole >= lower) & (whole <= upper) | ~pt.cast(missing, "bool"))
    possible = pt.all(of_observed > -np.inf)
    return pt.switch(inside & possible, pt.sum(of_whole) - pt.sum(of_observed), -np.inf)


def _memory(frozen: FrozenCircuit, rows):
    """Return a vector in which the density of these rows may be kept, or None."""
    if not (frozen.swept and isinstance(rows, SharedVariable)):
        return None
    return pytensor.shared(np.zeros(rows.get_value(borrow=True).shape[0] + 1), "memory", shape=(None,))


@support_point.register(ImputedCellsRV)
def _imputed_cells_support_point(op, rv, rng, size, rows, missing, log_weight, theta):
    return StartingCells(op.block)(rows, missing)
