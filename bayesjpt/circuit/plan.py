"""What kernels take: a Circuit and its schema, rearranged for speed. Derived when needed, never saved.

A *slot* is a maximal node over one column: a likelihood sum, or a leaf that hangs below anything else. Kernels
evaluate slot by slot (a few leaves over one column, then their weighted sum) and treat the rest of the circuit as
sums and products over slots.

A *feature* is a column in the units of some family, or what such a family prepared of it. Families that share units
share the feature:

      feature 0     column 0, location-scale        <- normal reads it as z
      feature 1     column 0, scale                 <- gamma and exponential read it as z
      feature 2     column 0, gamma's log z         <- gamma reads it as aux; made from feature 1
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, read_only_arrays
from bayesjpt.circuit.routes import routes
from bayesjpt.families import registry
from bayesjpt.families.features import offset_and_scale
from bayesjpt.families.record import N_EXTRA_COEFFICIENTS, Family
from bayesjpt.numerics.borrowed import by_address
from bayesjpt.numerics.ends import fill_ends
from bayesjpt.numerics.jit import kernel
from bayesjpt.table.schema import Schema

ATOM = "atom"
"""Name of the family that holds a column's atoms."""

WHOLE = 0
INTERVAL = 1
POINT = 2
"""What a leaf's cell leaves of its domain: all, an interval, or one value of a real column, which is then known."""

REAL, POSITIVE, UNIT, SIMPLEX = range(4)
"""What a parameter may be: its `Parameter.constraint`, as a number."""
SPACES = ("real", "positive", "unit", "simplex")

AS_WHOLE, CONJUGATE, SLICE, METROPOLIS = range(4)
"""How a leaf's parameters are drawn: by its family's own update, or on a cell: see `bayesjpt.kernels.truncated`."""

RENORMALISE_ABOVE_LOG = 230.0
"""Logarithm of 1e100: a product whose linear factor could exceed it is renormalised."""


@by_address
class Plan(NamedTuple):
    """Arrays that every kernel takes. All C-contiguous and writable copies, so that every Plan has one compiled type.

    Attributes
    ----------
    kind, child_ptr, child, leaf_of : as in Circuit
    slot_of_node : int32 (n_node,)
        Slot of a node, -1 elsewhere (leaves inside a dictionary included).
    slot_node, slot_column : int32 (n_slot,)
    slot_alone : bool (n_slot,)
        Whether the slot has a parent that is not a product, or none: its value must stand by itself.
    edge_row : int32 (n_edge,)
        Row of the workspace for the edge's weighted term, -1 for products' edges.
    node_row : int32 (n_node,)
        Row of the workspace for the node's value, -1 for leaves inside a dictionary.
    renormalise : bool (n_edge,)
        At a product's edge: the factor must be folded into the exponent before this child's is multiplied.
    shares_children, follows : bool (n_node,)
        Whether a latent sum has the same children as a sum beside it, and whether that is the one before it: kernels
        take exponentials of such children once.
    leaf_family, theta_at, theta_len, const_at, const_len : int32 (n_leaf,)
    coef_at : int32 (n_leaf + 1,)
        Where its coefficients lie.
    stat_at : int32 (n_leaf + 1,)
        Where its statistics lie.
    leaf_value, leaf_aux : int32 (n_leaf,)
        Features that it reads.
    leaf_cut : int32 (n_leaf,)
        `WHOLE`, `INTERVAL` or `POINT`: what the leaf's cell leaves of its domain.
    leaf_lo, leaf_hi : float64 (n_leaf,)
        Its cell in units of z, infinite for the whole domain.
    leaf_lower, leaf_upper : float64 (n_leaf,)
        Its cell in the user's units.
    leaf_resolution : float64 (n_leaf,)
        Resolution of its column, 0 for atoms and where the column is not real (`bayesjpt.numerics.ends`).
    leaf_step : float64 (n_leaf,)
        1 where values are whole numbers or codes of labels, 0 where they are not.
    leaf_raw : int32 (n_leaf,)
        Feature in the user's units, with which its cell is compared: two numbers may be one in units of z. Without a
        cell it is `leaf_value`.
    leaf_update : int32 (n_leaf,)
        `AS_WHOLE`, `CONJUGATE`, `SLICE` or `METROPOLIS`: how its parameters are drawn.
    theta_space : int32 (n_theta,)
        `REAL`, `POSITIVE`, `UNIT` or `SIMPLEX`: what each parameter may be.
    leaf_is_atom, leaf_by_value : bool (n_leaf,)
        Whether the leaf holds its column's atoms; whether its parameters are drawn from its values, not statistics.
    split_column, edge_lower, edge_upper, edge_label_at, label_reaches : as `bayesjpt.circuit.routes` returns them
    const : float64 (n_const,)
    feature_column : int32 (n_feature,)
    feature_source : int32 (n_feature,)
        Feature of z from which an auxiliary one is made; -1 for z itself.
    feature_offset, feature_scale : float64 (n_feature,)
        z = (x - offset) / scale.
    feature_leaf : int32 (n_feature,)
        A leaf whose family and constants prepare the feature.
    column_resolution : float64 (n_column,)
        Resolution of real columns, 0 elsewhere.
    column_log_jacobian : float64 (n_column,), nats
    column_kept : int32 (n_column,)
        Row of the buffers that keep values for leaves drawn by value; -1 for columns without such leaves.
    atom_ptr : int32 (n_column + 1,), atom_value : float64 (n_atom,)
        Atoms of each column, in the user's units.
    """

    kind: np.ndarray
    child_ptr: np.ndarray
    child: np.ndarray
    leaf_of: np.ndarray
    slot_of_node: np.ndarray
    slot_node: np.ndarray
    slot_column: np.ndarray
    slot_alone: np.ndarray
    edge_row: np.ndarray
    node_row: np.ndarray
    renormalise: np.ndarray
    shares_children: np.ndarray
    follows: np.ndarray
    leaf_family: np.ndarray
    theta_at: np.ndarray
    theta_len: np.ndarray
    const_at: np.ndarray
    const_len: np.ndarray
    coef_at: np.ndarray
    stat_at: np.ndarray
    leaf_value: np.ndarray
    leaf_aux: np.ndarray
    leaf_cut: np.ndarray
    leaf_lo: np.ndarray
    leaf_hi: np.ndarray
    leaf_lower: np.ndarray
    leaf_upper: np.ndarray
    leaf_resolution: np.ndarray
    leaf_step: np.ndarray
    leaf_raw: np.ndarray
    leaf_update: np.ndarray
    theta_space: np.ndarray
    leaf_is_atom: np.ndarray
    leaf_by_value: np.ndarray
    split_column: np.ndarray
    edge_lower: np.ndarray
    edge_upper: np.ndarray
    edge_label_at: np.ndarray
    label_reaches: np.ndarray
    const: np.ndarray
    feature_column: np.ndarray
    feature_source: np.ndarray
    feature_offset: np.ndarray
    feature_scale: np.ndarray
    feature_leaf: np.ndarray
    column_resolution: np.ndarray
    column_log_jacobian: np.ndarray
    column_kept: np.ndarray
    atom_ptr: np.ndarray
    atom_value: np.ndarray


def make_plan(circuit: Circuit, schema: Schema) -> Plan:
    """Return the Plan of a circuit over the columns of a schema."""
    circuit = read_only_arrays(circuit)
    parent = circuit.edge_parent()
    families = [registry.FAMILIES[number] for number in circuit.leaf_family]
    theta_len = circuit.theta_len
    n_stats = [family.n_stats(circuit.constants_of(leaf)) for leaf, family in enumerate(families)]
    features = _features(circuit, schema)
    by_value = np.array([family.draw_from_values is not None for family in families])
    kept = np.zeros(len(schema), bool)
    kept[circuit.leaf_var[by_value]] = True
    plan = Plan(
        kind=circuit.kind,
        child_ptr=circuit.child_ptr,
        child=circuit.child,
        leaf_of=circuit.leaf_of,
        **_slots(circuit, parent),
        edge_row=_numbered(arrays.one_of(circuit.kind[parent], arrays.SUM_KINDS)),
        node_row=_numbered(~_inside_dictionary(circuit, parent)),
        renormalise=_renormalise(circuit),
        **_shared_children(circuit),
        leaf_family=circuit.leaf_family.astype(np.int32),
        theta_at=circuit.theta_at,
        theta_len=theta_len,
        const_at=circuit.const_at,
        const_len=circuit.const_len,
        coef_at=_offsets(theta_len + circuit.const_len + N_EXTRA_COEFFICIENTS),
        stat_at=_offsets(n_stats),
        **_cells(circuit, schema, features),
        theta_space=_spaces(circuit, families),
        leaf_is_atom=np.array([family.name == ATOM for family in families]),
        leaf_by_value=by_value,
        **routes(circuit, schema),
        const=circuit.const,
        **features,
        column_resolution=np.array([c.resolution if c.base == "real" else 0.0 for c in schema.columns]),
        column_log_jacobian=schema.log_jacobian(),
        column_kept=_numbered(kept),
        atom_ptr=_offsets([len(column.atoms) for column in schema]),
        atom_value=np.array([atom for column in schema for atom in column.atoms], np.float64),
    )
    return Plan(*(np.array(array) for array in plan))


def _offsets(sizes: ArrayLike) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)


def _numbered(chosen: np.ndarray) -> np.ndarray:
    return np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int32)


def _inside_dictionary(circuit: Circuit, parent: np.ndarray) -> np.ndarray:
    inside = np.zeros(circuit.n_node, bool)
    inside[circuit.child[circuit.kind[parent] == arrays.LIKELIHOOD]] = True
    return inside


def _slots(circuit: Circuit, parent: np.ndarray) -> dict[str, np.ndarray]:
    inside = _inside_dictionary(circuit, parent)
    is_slot = (circuit.kind == arrays.LIKELIHOOD) | ((circuit.kind == arrays.LEAF) & ~inside)
    slot_node = np.flatnonzero(is_slot).astype(np.int32)
    first_leaf = np.where(
        circuit.kind[slot_node] == arrays.LEAF,
        slot_node,
        # a leaf behind the last edge has no child: clipped, and not taken
        circuit.child[np.minimum(circuit.child_ptr[slot_node], max(circuit.n_edge - 1, 0))] if circuit.n_edge else 0,
    )
    alone = np.zeros(circuit.n_node, bool)
    alone[circuit.child[circuit.kind[parent] != arrays.PRODUCT]] = True
    alone[-1] = True
    return {
        "slot_of_node": _numbered(is_slot),
        "slot_node": slot_node,
        "slot_column": circuit.leaf_var[circuit.leaf_of[first_leaf]].astype(np.int32),
        "slot_alone": alone[slot_node],
    }


def _renormalise(circuit: Circuit) -> np.ndarray:
    """Return where a product's linear factor could pass the bound, from the largest factor each node can have."""
    return _too_large(circuit.kind, circuit.child_ptr, circuit.child)


def _shared_children(circuit: Circuit) -> dict[str, np.ndarray]:
    follows = _repeats_children(circuit.kind, circuit.child_ptr, circuit.child)
    return {"shares_children": follows | np.append(follows[1:], False), "follows": follows}


@kernel
def _repeats_children(kind, child_ptr, child):
    """Return whether each node is a latent sum with the children of the latent sum before it, bool (n_node,)."""
    found = np.zeros(kind.size, np.bool_)
    for node in range(1, kind.size):
        first, last = child_ptr[node], child_ptr[node + 1]
        n = last - first
        if kind[node] != arrays.LATENT or kind[node - 1] != arrays.LATENT or first - child_ptr[node - 1] != n:
            continue
        found[node] = True
        for e in range(first, last):
            # both lists lie side by side: the same position in the list before
            found[node] &= child[e] == child[e - n]
    return found


@kernel
def _too_large(kind, child_ptr, child):
    flag = np.zeros(child.size, np.bool_)
    log_bound = np.zeros(kind.size)
    for node in range(kind.size):
        total = 0.0
        for e in range(child_ptr[node], child_ptr[node + 1]):
            bound = log_bound[child[e]]
            if kind[node] != arrays.PRODUCT:
                total = bound if e == child_ptr[node] else np.logaddexp(total, bound)
                continue
            if total > 0.0 and total + bound > RENORMALISE_ABOVE_LOG:
                flag[e] = True
                total = 0.0
            total += bound
        log_bound[node] = total
    return flag


def _cells(circuit: Circuit, schema: Schema, features: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    lower, upper = circuit.leaf_interval().T
    offset = features["feature_offset"][features["leaf_value"]]
    scale = features["feature_scale"][features["leaf_value"]]
    real = np.array([schema.columns[var].base == "real" for var in circuit.leaf_var])
    atom = np.array([registry.FAMILIES[number].name == ATOM for number in circuit.leaf_family])
    cut = np.where(np.isinf(lower) & np.isinf(upper), WHOLE, INTERVAL)
    leaf_cut = np.where((lower == upper) & real & ~atom, POINT, cut).astype(np.int32)
    families = [registry.FAMILIES[number] for number in circuit.leaf_family]
    update = [_update(family) if cut == INTERVAL else AS_WHOLE for family, cut in zip(families, leaf_cut, strict=True)]
    resolution = np.array([schema.columns[var].resolution for var in circuit.leaf_var])
    resolution = np.where(real & ~atom, resolution, 0.0)
    leaf_lo, leaf_hi = np.empty(lower.size), np.empty(lower.size)
    fill_ends(np.ascontiguousarray(lower), np.ascontiguousarray(upper), (offset, scale, resolution), leaf_lo, leaf_hi)
    return {
        "leaf_cut": leaf_cut,
        "leaf_update": np.array(update, np.int32),
        "leaf_lo": leaf_lo,
        "leaf_hi": leaf_hi,
        "leaf_lower": lower,
        "leaf_upper": upper,
        "leaf_resolution": resolution,
        "leaf_step": np.where(real, 0.0, 1.0),
    }


def _update(family: Family) -> int:
    """Return how the parameters of a family's leaf are drawn where it is truncated to an interval."""
    if family.conjugate_on_cell:
        return CONJUGATE
    if family.log_posterior is not None:
        return SLICE
    return METROPOLIS if family.is_conjugate or family.reversible_draw else AS_WHOLE


def _spaces(circuit: Circuit, families: list[Family]) -> np.ndarray:
    """Return int32 (n_theta,): what each parameter may be."""
    space = np.full(circuit.n_theta, REAL, np.int32)
    for number in np.unique(circuit.leaf_family):
        leaves = np.flatnonzero(circuit.leaf_family == number)
        kinds = [SPACES.index(parameter.constraint) for parameter in families[leaves[0]].parameters]
        if len(kinds) == 1:  # a simplex is one parameter with many entries
            for leaf in leaves:
                space[circuit.theta_at[leaf] : circuit.theta_at[leaf] + circuit.theta_len[leaf]] = kinds[0]
        else:
            space[circuit.theta_at[leaves][:, None] + np.arange(len(kinds))] = kinds
    return space


def _features(circuit: Circuit, schema: Schema) -> dict[str, np.ndarray]:
    column_of: list[int] = []
    source: list[int] = []
    offset: list[float] = []
    scale: list[float] = []
    leaf_of: list[int] = []
    value_at: dict[tuple[int, tuple[float, float]], int] = {}
    aux_at: dict[tuple[int, int], int] = {}

    def add(column: int, made_from: int, units: tuple[float, float], leaf: int) -> int:
        column_of.append(column)
        source.append(made_from)
        offset.append(units[0])
        scale.append(units[1])
        leaf_of.append(leaf)
        return len(column_of) - 1

    def in_units(column: int, units: tuple[float, float], leaf: int) -> int:
        if (column, units) not in value_at:
            value_at[column, units] = add(column, -1, units, leaf)
        return value_at[column, units]

    leaf_value = np.empty(circuit.n_leaf, np.int32)
    leaf_raw = np.empty(circuit.n_leaf, np.int32)
    leaf_aux = np.empty(circuit.n_leaf, np.int32)
    pairs = zip(circuit.leaf_var.tolist(), circuit.leaf_family.tolist(), (circuit.leaf_cell >= 0).tolist(), strict=True)
    units_of: dict[tuple[int, int], tuple[float, float]] = {}
    for leaf, (column, number, has_cell) in enumerate(pairs):
        family = registry.FAMILIES[number]
        if (column, number) not in units_of:
            units_of[column, number] = offset_and_scale(family.scaling, schema.columns[column])
        units = units_of[column, number]
        value = in_units(column, units, leaf)
        # behind the feature it is made of: features are filled in their order
        if family.prepare is not None and (column, number) not in aux_at:
            aux_at[column, number] = add(column, value, units, leaf)
        leaf_value[leaf] = value
        leaf_raw[leaf] = in_units(column, (0.0, 1.0), leaf) if has_cell else value
        leaf_aux[leaf] = aux_at.get((column, number), value)
    return {
        "leaf_value": leaf_value,
        "leaf_raw": leaf_raw,
        "leaf_aux": leaf_aux,
        "feature_column": np.array(column_of, np.int32),
        "feature_source": np.array(source, np.int32),
        "feature_offset": np.array(offset),
        "feature_scale": np.array(scale),
        "feature_leaf": np.array(leaf_of, np.int32),
    }
