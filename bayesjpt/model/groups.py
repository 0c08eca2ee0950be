"""Groups of rows that share leaves and differ in the weights of sums: the rows' random variable, and its variables.

    pi      weights of the structure's sums, shared     x_sum_weights        Dirichlet(gamma), as in every block
    w_g     those of one group                          x_group_sum_weights  Dirichlet(kappa pi) at each sum
    theta   parameters, and weights of dictionaries: shared

Splits (`ess`) have weights a group, too. Which rows belong to a group is a constant of the block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.distribution import Distribution
from pytensor.graph.basic import Variable

from bayesjpt.circuit.grouped import Grouped, repeat_structure
from bayesjpt.circuit.layout import SPLIT_WEIGHTS, SUM_WEIGHTS, Layout, WeightVariable
from bayesjpt.errors import ModelError
from bayesjpt.internals import log_probability, numba_core_rv_funcify, numba_njit, support_point
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.model.circuit_rows import CircuitRowsRV, FrozenCircuit, rows_density
from bayesjpt.model.distributions import apply_rv
from bayesjpt.model.gaps import check_gaps_of
from bayesjpt.model.priors import weight_variable
from bayesjpt.model.segments import SMALLEST_WEIGHT
from bayesjpt.numerics.jit import source_version
from bayesjpt.table.row_labels import written_label

GROUP = "group"
"""What stands, after the block's name, before names of variables that each group has, and for the dim of groups."""

KAPPA = 10.0
"""Imaginary rows of a sum by which a group's weights are drawn towards the shared ones."""


class Groups:
    """Which rows belong together.

    Parameters
    ----------
    labels : sequence (n_row,)
        The user's, one a row.
    n_row : int

    Raises
    ------
    ModelError
        For other numbers of labels than rows, and missing ones.
    """

    def __init__(self, labels: Sequence[Any], n_row: int):
        no_order = ModelError("groups whose labels have no order", "texts, or numbers")
        try:
            values = np.asarray(labels)
        except ValueError:  # lists of several lengths
            raise no_order from None
        if values.ndim != 1 or values.size != n_row:
            raise ModelError(f"groups of shape {values.shape} for {n_row} rows", "a label for each row")
        if any(map(_is_missing, labels)):  # NumPy may have made texts of them
            raise ModelError("a row without a group", "a label for each row", "Make one for rows of no known group")
        if values.dtype.kind == "U" and not all(isinstance(label, str) for label in labels):
            raise ModelError("groups whose labels are texts and others", "labels of one type")
        try:
            self.labels, self.codes = np.unique(values, return_inverse=True)
        except TypeError:
            raise no_order from None


def _is_missing(label: Any) -> bool:
    try:
        return label is None or label is np.ma.masked or bool(label != label)
    except TypeError:  # the NA of pandas is neither
        return True


class FrozenGroups(FrozenCircuit):
    """A circuit with the groups of rows, as one hashable property of an op."""

    def __init__(self, circuit, schema, priors, *, groups: Groups, swept: bool = False):
        super().__init__(circuit, schema, priors, swept=swept)
        self.codes = groups.codes
        self.n_group = groups.labels.size
        self.digest = hashlib.sha256(self.digest.encode() + self.codes.astype(np.int64).tobytes()).hexdigest()

    @cached_property
    def grouped(self) -> Grouped:
        """The structure once for each group, over shared leaves: what sweeps are over."""
        return repeat_structure(self.circuit, self.schema, self.n_group)

    @cached_property
    def repeated(self) -> FrozenCircuit:
        """The same as sweeps take it."""
        return FrozenCircuit(self.grouped.circuit, self.grouped.schema, self.grouped.priors(self.priors), swept=True)


def group_weights(name: str, layout: Layout, shared: dict, groups: Groups, kappa: Any, starts: dict) -> dict:
    """Return {name of a kind of weights: random variable (n_group, n)} of the structure's sums.

    Parameters
    ----------
    name : str
        Of the block.
    layout : Layout
    shared : mapping from str to TensorVariable
        The weights that the groups share.
    groups : Groups
    kappa : float or scalar tensor
        Checked.
    starts : mapping from str to array
        Where samplers begin; empty for Gibbs sweeps.
    """
    kinds = weights_of_groups(layout)
    model = pm.modelcontext(None)
    full = model.name_for(name)
    labels = groups.labels
    named = list(labels) if labels.dtype.kind in "mM" else [written_label(label) for label in labels.tolist()]
    model.add_coord(f"{full}_{GROUP}", named)
    out = {}
    for variable in kinds:
        concentration = kappa * pt.broadcast_to(shared[variable.name], (groups.labels.size, variable.edges.size))
        out[variable.name] = weight_variable(
            f"{name}_{GROUP}_{variable.name}",
            (f"{full}_{GROUP}", f"{full}_{variable.dim}"),
            variable,
            concentration,
            start=np.tile(starts[variable.name], (groups.labels.size, 1)) if starts else None,
        )
    return out


def weights_of_groups(layout: Layout) -> list[WeightVariable]:
    """Return the kinds of weights that each group has."""
    return [variable for variable in layout.weights if variable.name in (SUM_WEIGHTS, SPLIT_WEIGHTS)]


def checked_kappa(kappa: Any) -> Any:
    """Return a concentration as a float or as the expression that it is.

    Raises
    ------
    ModelError
        For one that is neither a positive number nor a scalar expression.
    """
    is_number = isinstance(kappa, int | float | np.number | np.ndarray) and not isinstance(kappa, bool)
    if isinstance(kappa, Variable):
        if getattr(kappa.type, "ndim", None) == 0:
            return kappa
    elif is_number and np.ndim(kappa) == 0 and 0.0 < kappa < np.inf:
        return float(kappa)
    raise ModelError(f"kappa={kappa!r}", "a positive number, or a scalar expression of the model's random variables")


def flat_weights(layout: Layout, weight, by_group: dict, n_group: int) -> Any:
    """Return the symbolic weights (n_group, n_edge) of all edges: those of the groups, and the shared ones."""
    out: Any = pt.broadcast_to(weight, (n_group, weight.type.shape[0] or weight.shape[0]))
    for variable in layout.weights:
        if variable.name in by_group:
            out = pt.set_subtensor(out[:, variable.edges], by_group[variable.name])
    return out


class GroupedRowsRV(CircuitRowsRV):
    """Rows of a circuit, given masks, the number of each row's group, log weights of each group, and parameters."""

    signature = "(d),(),(g,e),(t)->(d)"

    def rng_fn(self, rng, missing, code, log_weight, theta, size=None):
        shape = np.broadcast_shapes(np.shape(missing)[:-1], np.shape(code)) if size is None else tuple(size)
        codes = np.broadcast_to(code, shape)
        log_weights = np.broadcast_to(log_weight, (*shape, *log_weight.shape[-2:]))
        thetas = np.broadcast_to(theta, (*shape, theta.shape[-1]))
        out = np.empty((*shape, np.shape(missing)[-1]))
        for index in np.ndindex(shape):
            row = np.empty((1, out.shape[-1]))
            group_weight = np.ascontiguousarray(log_weights[index][int(codes[index])])
            sample_rows(self.frozen.plan, group_weight, np.ascontiguousarray(thetas[index]), rng, row)
            out[index] = row[0]
        return out


@numba_core_rv_funcify.register(GroupedRowsRV)
def _grouped_rows_numba(op, node):
    plan = op.frozen.plan

    @numba_njit
    def grouped_rows(rng, missing, code, log_weight, theta):
        out = np.empty((1, missing.shape[0]))
        sample_rows(plan, log_weight[np.int64(code.item())].copy(), theta, rng, out)
        return out[0]

    return grouped_rows, source_version() ^ int(op.frozen.digest[:14], 16)


class GroupedRows(Distribution):
    """Multivariate distribution of rows of several groups under a circuit."""

    rv_type = GroupedRowsRV

    @classmethod
    def dist(cls, frozen, missing, weight, theta, **kwargs):
        parameters = (
            pt.as_tensor(missing),
            pt.constant(frozen.codes),
            pt.log(pt.maximum(weight, SMALLEST_WEIGHT)),
            pt.as_tensor(theta),
        )
        return super().dist(list(parameters), frozen=frozen, **kwargs)

    @classmethod
    def rv_op(cls, missing, code, log_weight, theta, *, frozen, size=None, rng=None):
        return apply_rv(GroupedRowsRV(frozen), missing, code, log_weight, theta, size=size, rng=rng)


@log_probability.register(GroupedRowsRV)
def _grouped_rows_logp(op, values, rng, size, missing, code, log_weight, theta, **kwargs):
    (rows,) = values
    check_gaps_of(rows)
    rows = pt.specify_shape(rows, (op.frozen.codes.size, None))  # groups are those of these very rows
    log_weight = log_weight[(0,) * (log_weight.type.ndim - 2)]
    theta = theta[(0,) * (theta.type.ndim - 1)]
    members = [np.flatnonzero(op.frozen.codes == group) for group in range(op.frozen.n_group)]
    by_group = [
        rows_density(op.frozen, rows[chosen], missing[chosen], log_weight[group], theta, None)
        for group, chosen in enumerate(members)
    ]
    return pt.concatenate(by_group)[np.argsort(np.concatenate(members))]


@support_point.register(GroupedRowsRV)
def _grouped_rows_support_point(op, rv, rng, size, missing, code, log_weight, theta):
    return support_point.dispatch(CircuitRowsRV)(op, rv, rng, size, missing, log_weight, theta)
