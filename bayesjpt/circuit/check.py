"""Whether arrays are a valid circuit: smooth, decomposable, in topological order, with consistent tables."""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, read_only_arrays
from bayesjpt.circuit.plan import ATOM
from bayesjpt.circuit.possible import possible
from bayesjpt.circuit.scope import scope_sizes
from bayesjpt.errors import CircuitError, ModelError
from bayesjpt.families import registry
from bayesjpt.families.features import offset_and_scale
from bayesjpt.numerics.jit import kernel
from bayesjpt.table.schema import Schema


def check_circuit(circuit: Circuit, n_column: int) -> None:
    """Raise `CircuitError`, naming node and property, unless the arrays are a valid circuit over all columns.

    Checked: shapes and ranges; children before parents and the root last; every other node has a parent; sums are
    smooth (children of equal scope) and products decomposable (disjoint scopes); children of hard sums are disjoint in
    some column; dictionaries hold leaves of one column; weights of each sum add up to one; families exist; parameters
    and constants lie inside their arrays; cells are intervals.
    """
    check_tables(circuit, n_column)
    circuit = read_only_arrays(circuit)
    _check_scopes(circuit, n_column)
    _check_splits(circuit)
    _check_start(circuit)


def check_tables(circuit: Circuit, n_column: int) -> None:
    """Raise `CircuitError` where `check_circuit` would for shapes, ranges or the order of nodes."""
    check_shapes(circuit)
    circuit = read_only_arrays(circuit)
    _check_order(circuit)
    _check_leaves(circuit, n_column)


def _fail(text: str, expected: str) -> None:
    raise CircuitError(f"invalid circuit: {text}", expected)


def check_shapes(c: Circuit) -> None:
    """Raise `CircuitError` unless arrays have the lengths that their numbers say."""
    if c.n_node == 0:
        _fail("no nodes", "at least one")
    for name, size in (("leaf_of", c.n_node), ("child_ptr", c.n_node + 1), ("start_log_weight", c.n_edge)):
        if getattr(c, name).size != size:
            _fail(f"{name} has {getattr(c, name).size} entries", str(size))
    for name in ("leaf_var", "leaf_cell", "theta_at", "theta_len", "const_at", "const_len"):
        if getattr(c, name).size != c.n_leaf:
            _fail(f"{name} has {getattr(c, name).size} entries", f"one a leaf ({c.n_leaf})")
    if c.child_ptr[0] != 0 or c.child_ptr[-1] != c.n_edge or (np.diff(c.child_ptr) < 0).any():
        _fail("child_ptr does not partition the edges", "ascending offsets from 0 to the number of edges")
    unknown = ~arrays.one_of(c.kind, arrays.KIND_NAMES)
    if unknown.any():
        known = ", ".join(f"{code} ({name})" for code, name in arrays.KIND_NAMES.items())
        _fail(f"node {np.flatnonzero(unknown)[0]} is of the unknown kind {c.kind[unknown][0]}", known)


def _check_order(c: Circuit) -> None:
    parent = c.edge_parent()
    if c.n_edge and ((c.child < 0) | (c.child >= parent)).any():
        edge = int(np.flatnonzero((c.child < 0) | (c.child >= parent))[0])
        _fail(
            f"edge {edge} leads from node {parent[edge]} to node {c.child[edge]}", "a child's number below its parent's"
        )
    has_parent = np.zeros(c.n_node, bool)
    has_parent[c.child] = True
    orphan = np.flatnonzero(~has_parent[:-1])
    if orphan.size:
        _fail(f"node {orphan[0]} has no parent", "a parent for every node but the last")
    inner = c.kind != arrays.LEAF
    if (np.diff(c.child_ptr)[inner] == 0).any() or (np.diff(c.child_ptr)[~inner] != 0).any():
        _fail("an inner node without children, or a leaf with some", "children at inner nodes only")


def _check_leaves(c: Circuit, n_column: int) -> None:
    leaves = c.kind == arrays.LEAF
    if not np.array_equal(np.sort(c.leaf_of[leaves]), np.arange(c.n_leaf)) or (c.leaf_of[~leaves] != -1).any():
        _fail("leaf_of does not number the leaves", "each row of the leaf table once")
    outside = (c.leaf_var < 0) | (c.leaf_var >= n_column)
    if outside.any():
        _fail(f"a leaf over column {c.leaf_var[outside][0]}", f"columns 0 to {n_column - 1}")
    unknown = (c.leaf_family < 0) | (c.leaf_family >= len(registry.FAMILIES))
    if unknown.any():
        _fail(f"a leaf of the unknown family {c.leaf_family[unknown][0]}", f"codes 0 to {len(registry.FAMILIES) - 1}")
    for at, length, size in ((c.theta_at, c.theta_len, c.n_theta), (c.const_at, c.const_len, c.const.size)):
        if ((at < 0) | (length < 0) | (at.astype(np.int64) + length > size)).any():
            _fail("a leaf's parameters or constants lie outside their array", "offsets inside")
    _check_cells(c)
    parent = c.edge_parent()
    _check_dictionaries(c, parent)
    if _repeats_a_child(c.child_ptr, c.child):
        _fail("a node has one child twice", "distinct children")
    in_dictionary = c.kind[parent] == arrays.LIKELIHOOD
    inside, outside = np.zeros(c.n_node, bool), np.zeros(c.n_node, bool)
    inside[c.child[in_dictionary]] = True
    outside[c.child[~in_dictionary]] = True
    shared = np.flatnonzero(inside & outside)
    if shared.size:
        _fail(f"node {shared[0]} is in a dictionary and elsewhere", "leaves of dictionaries below dictionaries only")


def _check_dictionaries(c: Circuit, parent: np.ndarray) -> None:
    edges = np.flatnonzero(c.kind[parent] == arrays.LIKELIHOOD)
    member = c.leaf_of[c.child[edges]]
    column = np.where(member >= 0, c.leaf_var[member], -1)
    first_edge = c.child[c.child_ptr[parent[edges]]]
    wrong = (column < 0) | (column != c.leaf_var[c.leaf_of[first_edge]])
    if wrong.any():
        node = parent[edges[wrong]].min()
        _fail(f"the dictionary at node {node} holds other than leaves of one column", "leaves of one column")


@kernel
def _repeats_a_child(child_ptr, child):
    """Return whether some node has one child twice."""
    last_parent = np.full(child_ptr.size, -1, np.int64)
    for node in range(child_ptr.size - 1):
        for e in range(child_ptr[node], child_ptr[node + 1]):
            if last_parent[child[e]] == node:
                return True
            last_parent[child[e]] = node
    return False


def _check_cells(c: Circuit) -> None:
    if c.cell.size % 2:
        _fail(f"cell has {c.cell.size} entries", "two a cell")
    if not (c.cell[::2] <= c.cell[1::2]).all():
        _fail("a cell whose ends are not numbers in ascending order", "a closed interval")
    if (np.isinf(c.cell[::2]) & (c.cell[::2] == c.cell[1::2])).any():
        _fail("a cell that begins and ends at infinity", "an interval that holds a number")
    outside = (c.leaf_cell < -1) | (c.leaf_cell >= c.cell.size // 2)
    if outside.any():
        _fail(f"a leaf in cell {c.leaf_cell[outside][0]}", f"-1 to {c.cell.size // 2 - 1}")


_ROUNDING = 1e-12
"""Nats of a cell's mass: ends of whole numbers beyond 2^52 have no halves, so a leaf's own cell may lack that much."""


def check_samplable(circuit: Circuit, schema: Schema) -> None:
    """Raise `ModelError` where parameters cannot be drawn given rows: shared ones, and those of some truncated leaves.

    A leaf truncated to a cell needs a family that can be drawn there (`Family.samplable_on_cell`), starting parameters
    under which the cell has a probability, and more than one value.
    """
    if circuit.shares_parameters:
        _refuse_sampling("leaves that share parameters")
    intervals = circuit.leaf_interval()
    for leaf in np.flatnonzero(circuit.leaf_cell >= 0):
        family = registry.FAMILIES[circuit.leaf_family[leaf]]
        column = schema.columns[circuit.leaf_var[leaf]]
        lo, hi = intervals[leaf]
        if lo == hi and column.base == "real" and family.name != ATOM:
            _refuse_sampling(f"a leaf of column {column.name!r} that is known to be {lo:g}")
        if not family.samplable_on_cell:
            _refuse_sampling(f"a {family.name} leaf of column {column.name!r} that is truncated to a cell")
        offset, scale = offset_and_scale(family.scaling, column)
        theta = circuit.start_theta[circuit.theta_at[leaf] :][: circuit.theta_len[leaf]]
        const = circuit.constants_of(int(leaf))
        # copies: arrays of a circuit are read-only, another type for compiled code
        log_mass = family.log_mass((lo - offset) / scale, (hi - offset) / scale, theta.copy(), const.copy())
        if log_mass == -np.inf:
            _refuse_sampling(f"a {family.name} leaf of column {column.name!r} that starts without mass in its cell")
        if family.leaf_constants is not None and log_mass < -_ROUNDING:
            _refuse_sampling(f"a {family.name} leaf of column {column.name!r} in less than the cell that it learned")


def _refuse_sampling(what: str) -> None:
    raise ModelError(
        f"a circuit with {what}", "a circuit as a learner made it", "Sample first; then condition the posterior."
    )


def check_leaves_fit(circuit: Circuit, schema: Schema) -> None:
    """Raise `CircuitError`, naming the column, unless every leaf fits the column of a schema that it is about.

    A circuit learned on one table fits another read under the same schema; parameters and constants of its leaves
    (labels, levels, cells at zero) belong to that schema's columns. Wherever a column has atoms, a dictionary without
    them would give recorded values no density; leaves truncated to cells have none outside anyway.
    """
    for column in _slots_without_atoms(circuit, schema):
        raise CircuitError(
            f"a dictionary of column {schema.columns[column].name!r} does not hold its atoms",
            f"a leaf of the family {ATOM!r} in every dictionary of the column",
        )
    column_of = circuit.leaf_var
    alike = np.stack([circuit.leaf_family, column_of, circuit.const_at, circuit.const_len, circuit.theta_len])
    _, different = np.unique(alike, axis=1, return_index=True)
    for leaf in np.sort(different).tolist():
        family = registry.FAMILIES[circuit.leaf_family[leaf]]
        column = schema.columns[column_of[leaf]]
        constants = circuit.constants_of(leaf)
        if (
            column.base not in family.bases
            or not family.accepts(column, constants)
            or circuit.theta_len[leaf] != family.n_theta(constants)
        ):
            raise CircuitError(
                f"a {family.name} leaf of the circuit does not fit column {column.name!r}",
                "the columns that the circuit was learned on",
                "Read rows with bj.as_table(frame, schema=table.schema)",
            )


def _slots_without_atoms(circuit: Circuit, schema: Schema) -> list[int]:
    """Return the columns of slots that lack the atoms of their column."""
    atoms = np.array([registry.FAMILIES[number].name == ATOM for number in circuit.leaf_family])
    with_atoms = np.array([len(column.atoms) > 0 for column in schema.columns])
    node_of = circuit.leaf_node()
    parent = circuit.edge_parent()
    slot = node_of.copy()
    for edge in np.flatnonzero(circuit.kind[parent] == arrays.LIKELIHOOD):
        slot[circuit.leaf_of[circuit.child[edge]]] = parent[edge]
    column = circuit.leaf_var
    lacking = ~np.isin(slot, slot[atoms]) & with_atoms[column] & (circuit.leaf_cell < 0)
    return column[lacking].tolist()


def _check_scopes(c: Circuit, n_column: int) -> None:
    size, of_root = scope_sizes(c, n_column)
    parent = c.edge_parent()
    # sizes of scopes add up to that of their union only where they are disjoint
    together = np.bincount(parent, size[c.child], minlength=c.n_node)
    shared = np.flatnonzero((c.kind == arrays.PRODUCT) & (together != size))
    if shared.size:
        _fail(f"product {shared[0]} has children with a column in common", "disjoint scopes (decomposability)")
    # a node's scope is the union of its children's: one as large is the same
    rough = arrays.one_of(c.kind, arrays.SUM_KINDS)[parent] & (size[c.child] != size[parent])
    if rough.any():
        _fail(f"sum {parent[rough][0]} has children over different columns", "equal scopes (smoothness)")
    if not of_root.all():
        missing = np.flatnonzero(~of_root)
        _fail(f"the root does not cover column {missing[0]}", "every column of the table")


def _check_splits(c: Circuit) -> None:
    hard = (c.kind == arrays.HARD) & (np.diff(c.child_ptr) > 1)
    if not hard.any():
        return
    undecided = np.flatnonzero(hard & (possible(c).split_columns(c) < 0))
    if undecided.size:
        found = f"no column tells the children of hard sum {undecided[0]} apart"
        _fail(found, "leaves truncated to disjoint cells, or to different labels")


def _check_start(c: Circuit) -> None:
    parent = c.edge_parent()
    total = np.bincount(parent, np.exp(c.start_log_weight), minlength=c.n_node)
    sums = arrays.one_of(c.kind, arrays.SUM_KINDS)
    # negated, so that NaN is wrong as well
    wrong = sums & ~(np.abs(total - 1.0) <= 1e-9)
    if wrong.any():
        node = int(np.flatnonzero(wrong)[0])
        _fail(f"the starting weights of sum {node} add up to {total[node]:.12g}", "1")
    if (c.start_log_weight[~sums[parent]] != 0.0).any():
        _fail("an edge of a product has a weight", "log weight 0")
    if not np.isfinite(c.start_theta).all():
        _fail("a starting parameter is not finite", "finite parameters")
