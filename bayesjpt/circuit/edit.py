"""Circuits made of circuits: fewer columns, an event, or values that are known. Pure functions; draws are not needed.

What changes is the circuit and where its weights and parameters come from, an `Edit`. The weights themselves follow per
draw, from the probability of the evidence under each node (`bayesjpt.kernels.reweight`).

      conditioned on two boxes that constrain b            +
                                                         /   \\
            x                      x      x              x     x         a is not constrained: both boxes share it
           / \\         becomes     |\\    /|      below    |\\   /|
          a   b                    | \\  / |               | \\ / |
                                   b1  a  b2              b1 a  b2       b1, b2: truncated copies, parameters shared
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import freeze
from bayesjpt.circuit.paths import allowed_labels
from bayesjpt.circuit.plan import ATOM
from bayesjpt.circuit.possible import possible
from bayesjpt.circuit.scope import scopes
from bayesjpt.errors import EvidenceError, QueryError
from bayesjpt.families import registry
from bayesjpt.table.schema import Schema


class Edit(NamedTuple):
    """A new circuit, and where its weights and parameters come from.

    Attributes
    ----------
    circuit : Circuit
        Its starting weights are those of the old circuit, made to add up to one.
    theta_from : int32 (n_theta,)
        Place of each parameter in the old flat vector.
    edge_from_ptr : int32 (n_edge + 1,), edge_from : int32 (n,)
        The old edges of sums whose weights add up to each new edge's prior weight; none where that is one.
    leaf_from : int32 (n_leaf,)
        The old leaf of each leaf.
    touched : bool (n_node,)
        Whether a leaf below the node is constrained; the others' weights stay what they are.
    """

    circuit: Circuit
    theta_from: np.ndarray
    edge_from_ptr: np.ndarray
    edge_from: np.ndarray
    leaf_from: np.ndarray
    touched: np.ndarray


class _Leaves:
    """What the leaves of a circuit can take."""

    def __init__(self, circuit: Circuit, schema: Schema):
        self.lower, self.upper = circuit.leaf_interval().T.tolist()
        self.atoms = [np.array(schema.columns[var].atoms) for var in circuit.leaf_var]
        self.is_real = [schema.columns[var].base == "real" for var in circuit.leaf_var]
        self.is_atom = [registry.FAMILIES[number].name == ATOM for number in circuit.leaf_family]
        self.labels = [allowed_labels(circuit, leaf) for leaf in range(circuit.n_leaf)]

    def to_interval(self, leaf: int, lo: float, hi: float) -> tuple[float, float] | None:
        """Return what an interval leaves of a leaf's cell; None where that has no probability under any parameters."""
        known = self.lower[leaf] == self.upper[leaf]
        lo, hi = max(lo, self.lower[leaf]), min(hi, self.upper[leaf])
        if lo > hi or not self._has_label(leaf, lo, hi):
            return None
        if self.is_atom[leaf]:
            inside = (self.atoms[leaf] >= lo) & (self.atoms[leaf] <= hi)
            return (lo, hi) if inside.any() else None
        return None if self.is_real[leaf] and lo == hi and not known else (lo, hi)

    def to_value(self, leaf: int, lo: float, hi: float) -> tuple[float, float] | None:
        """Return the cell of a value that is known; None where it has no density, whatever the parameters."""
        if not self.lower[leaf] <= lo <= self.upper[leaf] or not self._has_label(leaf, lo, hi):
            return None
        if not self.is_real[leaf] or self.lower[leaf] == self.upper[leaf]:
            return lo, hi
        return (lo, hi) if (lo in self.atoms[leaf]) == self.is_atom[leaf] else None

    def _has_label(self, leaf: int, lo: float, hi: float) -> bool:
        labels = self.labels[leaf]
        return labels is None or bool(((labels >= lo) & (labels <= hi)).any())


class _Builder:
    """Nodes of a new circuit, children first, until `finish` makes arrays of those that the root needs."""

    def __init__(self, circuit: Circuit, max_edges: int):
        self.old = circuit
        self.kind: list[int] = []
        self.children: list[list[int]] = []
        self.sources: list[list[Sequence[int]]] = []
        self.leaf: list[int] = []
        self.cell: list[tuple[float, float] | None] = []
        self.touched: list[bool] = []
        self._n_edge = 0
        self._max_edges = max_edges
        self._leaves: dict[tuple[int, float, float], int] = {}

    def add(self, kind: int, children: Sequence[int], sources: Sequence[Sequence[int]], touched: bool) -> int:
        """Add an inner node; each of its edges has the old edges whose weights it stands for."""
        self._n_edge += len(children)
        if self._n_edge > self._max_edges:
            raise QueryError(
                f"the answer is a circuit of more than {self._max_edges:,} edges",
                "an event with fewer boxes, or a smaller circuit",
                "Condition on its parts one by one, or ask for a probability instead of a posterior.",
            )
        self._append(kind, list(children), list(sources), touched)
        return len(self.kind) - 1

    def add_leaf(self, leaf: int, cell: tuple[float, float] | None) -> int:
        """Add a leaf with a new cell (None: as it was); the same one twice is one node."""
        key = (leaf, -np.inf, np.inf) if cell is None else (leaf, *cell)
        if key not in self._leaves:
            self._leaves[key] = len(self.kind)
            self._append(arrays.LEAF, [], [], cell is not None, leaf, cell)
        return self._leaves[key]

    def _append(self, kind, children, sources, touched, leaf=-1, cell=None) -> None:
        self.kind.append(kind)
        self.children.append(children)
        self.sources.append(sources)
        self.touched.append(touched)
        self.leaf.append(leaf)
        self.cell.append(cell)

    def finish(self, root: int, new_column: np.ndarray) -> Edit:
        """Return the Edit whose circuit has what the root needs; `new_column` numbers the columns that are left."""
        needed = np.zeros(len(self.kind), bool)
        needed[root] = True
        # children have smaller numbers: one pass marks all that is below
        for node in range(root, -1, -1):
            if needed[node]:
                needed[self.children[node]] = True
        nodes = np.flatnonzero(needed)
        new_node = np.cumsum(needed) - 1
        old, leaves = self.old, [node for node in nodes if self.kind[node] == arrays.LEAF]
        leaf_from = np.array([self.leaf[node] for node in leaves], np.int32)
        sources = [source for node in nodes for source in self.sources[node]]
        cells, leaf_cell = self._cells([int(leaf) for leaf in leaves])
        theta_from, theta_at = gathered(old.theta_at[leaf_from], old.theta_len[leaf_from], old.n_theta)
        const_from, const_at = gathered(old.const_at[leaf_from], old.const_len[leaf_from], old.const.size)
        circuit = Circuit(
            kind=np.array([self.kind[node] for node in nodes], np.int8),
            child_ptr=offsets([len(self.children[node]) for node in nodes]),
            child=np.array([new_node[child] for node in nodes for child in self.children[node]], np.int32),
            leaf_of=np.where(
                [self.kind[node] == arrays.LEAF for node in nodes],
                np.cumsum([self.leaf[n] >= 0 for n in nodes]) - 1,
                -1,
            ).astype(np.int32),
            leaf_family=old.leaf_family[leaf_from],
            leaf_var=new_column[old.leaf_var[leaf_from]].astype(np.int32),
            leaf_cell=leaf_cell,
            cell=cells,
            theta_at=theta_at,
            theta_len=old.theta_len[leaf_from],
            const_at=const_at,
            const_len=old.const_len[leaf_from],
            const=old.const[const_from],
            start_log_weight=np.zeros(sum(len(self.children[node]) for node in nodes)),
            start_theta=old.start_theta[theta_from],
        )
        edit = Edit(
            circuit=circuit,
            theta_from=theta_from,
            edge_from_ptr=offsets([len(source) for source in sources]),
            edge_from=np.array([edge for source in sources for edge in source], np.int32),
            leaf_from=leaf_from,
            touched=np.array([self.touched[node] for node in nodes]),
        )
        return edit._replace(circuit=freeze(circuit._replace(start_log_weight=_start(edit, old.start_log_weight))))

    def _cells(self, leaves: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells, and the number of each leaf's."""
        known: dict[tuple[float, float], int] = {}
        numbers = []
        for node in leaves:
            cell = self.cell[node]
            if cell is None:
                row = self.old.leaf_cell[self.leaf[node]]
                cell = (
                    (-np.inf, np.inf) if row < 0 else (float(self.old.cell[2 * row]), float(self.old.cell[2 * row + 1]))
                )
            whole = np.isinf(cell[0]) and np.isinf(cell[1])
            numbers.append(-1 if whole else known.setdefault(cell, len(known)))
        return np.array(list(known), np.float64).ravel(), np.array(numbers, np.int32)


def offsets(lengths: Iterable[int]) -> np.ndarray:
    """Return where segments of these lengths begin, and where the last one ends, int32 (n + 1,)."""
    return np.concatenate([[0], np.cumsum(list(lengths))]).astype(np.int32)


def gathered(at: np.ndarray, length: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the places that some segments of a flat vector use, ascending, and where the segments lie among them."""
    # one place more: leaves without parameters may begin at the end
    used = np.zeros(size + 1, bool)
    for first, n in set(zip(at.tolist(), length.tolist(), strict=True)):
        used[first : first + n] = True
    place = np.cumsum(used) - used
    return np.flatnonzero(used).astype(np.int32), place[at].astype(np.int32)


def _start(edit: Edit, start_log_weight: np.ndarray) -> np.ndarray:
    """Return the starting weights: those of the old edges, made to add up to one."""
    circuit = edit.circuit
    out = np.zeros(circuit.n_edge)
    for node in np.flatnonzero(arrays.one_of(circuit.kind, arrays.SUM_KINDS)):
        edges = range(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        prior = [
            np.logaddexp.reduce(start_log_weight[edit.edge_from[edit.edge_from_ptr[e] : edit.edge_from_ptr[e + 1]]])
            if edit.edge_from_ptr[e] < edit.edge_from_ptr[e + 1]
            else 0.0
            for e in edges
        ]
        out[edges.start : edges.stop] = prior - np.logaddexp.reduce(prior)
    return out


# --- fewer columns ---------------------------------------------------------------------------------------------------


def marginalised(circuit: Circuit, columns: Sequence[int], *, max_edges: int) -> Edit:
    """Return the Edit that sums all but some columns out.

    Leaves of other columns go, and so do products and sums that then have one child; where children of a sum become one
    node, their weights add up. A hard sum that loses the column that decides is a latent one.

    Parameters
    ----------
    circuit : Circuit
    columns : sequence of int
        Those that stay, in their new order.
    max_edges : int

    Examples
    --------
    >>> from bayesjpt.circuit.build import ColumnLeaf, Product, build_circuit
    >>> from bayesjpt.table.table import Table
    >>> from bayesjpt.table.schema import Column
    >>> rows = np.array([[0.0, 1.0, 1.0], [2.0, 0.0, 1.0]])
    >>> schema = Schema(tuple(Column(name, "integer", (0.0, np.inf), mean=1.0) for name in "nm"))
    >>> leaves = ColumnLeaf(0, np.arange(3)), ColumnLeaf(1, np.arange(3))
    >>> both = build_circuit(Product(leaves), Table(schema, rows, np.ones((2, 3), bool)))
    >>> marginalised(both, [1], max_edges=100).circuit.n_leaf == both.n_leaf // 2
    True
    """
    kept = np.zeros(int(circuit.leaf_var.max()) + 1, bool)
    kept[list(columns)] = True
    split_column = possible(circuit).split_columns(circuit)
    parts = _Builder(circuit, max_edges)
    made = np.full(circuit.n_node, -1)
    for node in range(circuit.n_node):
        kind, edges = int(circuit.kind[node]), range(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        if kind == arrays.LEAF:
            leaf = int(circuit.leaf_of[node])
            if kept[circuit.leaf_var[leaf]]:
                made[node] = parts.add_leaf(leaf, None)
            continue
        sources: dict[int, list[int]] = {}
        for edge in edges:
            if made[circuit.child[edge]] >= 0:
                sources.setdefault(int(made[circuit.child[edge]]), []).append(edge)
        if not sources:
            continue
        if len(sources) == 1 and kind != arrays.LIKELIHOOD:  # dictionaries stay what they are
            made[node] = next(iter(sources))
        elif kind == arrays.PRODUCT:
            made[node] = parts.add(kind, list(sources), [()] * len(sources), False)
        else:
            decided = kind != arrays.HARD or kept[split_column[node]]
            made[node] = parts.add(kind if decided else arrays.LATENT, list(sources), list(sources.values()), False)
    new_column = np.full(kept.size, -1)
    new_column[list(columns)] = np.arange(len(columns))
    return parts.finish(int(made[-1]), new_column)


# --- evidence --------------------------------------------------------------------------------------------------------


def conditioned(circuit: Circuit, schema: Schema, boxes: Sequence[Mapping[int, np.ndarray]], *, max_edges: int) -> Edit:
    """Return the Edit that conditions on a union of disjoint boxes.

    Each box gets a copy of what it constrains; whatever two boxes leave alike they share, and leaves share parameters.
    Where a box leaves several intervals of a leaf, they become members of its dictionary.

    Parameters
    ----------
    circuit : Circuit
    schema : Schema
    boxes : sequence of mappings from int to float64 (n_interval, 2)
        Position of a column, and closed intervals, ascending and apart, in the user's units (codes of labels).
    max_edges : int

    Raises
    ------
    EvidenceError
        Where no leaf can take what the boxes ask for, whatever the parameters.
    QueryError
        Where the new circuit would have more than `max_edges`.

    Notes
    -----
    Costs up to boxes times nodes whose scope meets the constrained columns.
    """
    leaves = _Leaves(circuit, schema)
    return _with_evidence(circuit, len(schema), boxes, leaves.to_interval, max_edges)


def constrained(circuit: Circuit, schema: Schema, values: Mapping[int, float], *, max_edges: int) -> Edit:
    """Return the Edit in which the values of some columns are known.

    Leaves of these columns become points; where the value is an atom of its column, or the column counts, that is
    `conditioned` on it. Weights follow from densities.

    Parameters
    ----------
    circuit : Circuit
    schema : Schema
    values : mapping from int to float
        Position of a column, and its value in the user's units (codes of labels).
    max_edges : int

    Raises
    ------
    EvidenceError
        Where no leaf has a density at the values, whatever the parameters.
    """
    leaves = _Leaves(circuit, schema)
    box = {column: np.array([[value, value]]) for column, value in values.items()}
    return _with_evidence(circuit, len(schema), [box], leaves.to_value, max_edges)


def _with_evidence(
    circuit: Circuit,
    n_column: int,
    boxes: Sequence[Mapping[int, np.ndarray]],
    cut: Callable[[int, float, float], tuple[float, float] | None],
    max_edges: int,
) -> Edit:
    queried = sorted({column for box in boxes for column in box})
    scope = [np.flatnonzero(row) for row in scopes(circuit, n_column)[:, queried]]
    inside = np.zeros(circuit.n_node, bool)
    inside[circuit.child[circuit.kind[circuit.edge_parent()] == arrays.LIKELIHOOD]] = True
    copies = _Copies(circuit, _Builder(circuit, max_edges), cut, inside, scope)
    sets: list[dict[bytes, int]] = [{} for _ in queried]
    roots: list[int] = []
    for box in boxes:
        # each set of values of a column has a number; 0 stands for "any"
        numbers = np.array(
            [
                sets[k].setdefault(np.ascontiguousarray(box[column]).tobytes(), len(sets[k]) + 1)
                if column in box
                else 0
                for k, column in enumerate(queried)
            ],
            np.int32,
        )
        root = copies.add_box(box, numbers)
        if root is not None:
            roots.append(root)
    if not roots:
        raise EvidenceError("evidence of probability zero", "values that some leaf of the circuit can take")
    parts = copies.parts
    root = roots[0] if len(roots) == 1 else parts.add(arrays.LATENT, roots, [()] * len(roots), True)
    return parts.finish(root, np.arange(n_column))


class _Copies:
    """The copies of a circuit's nodes for boxes; boxes that ask a node for the same share its copy."""

    def __init__(
        self,
        circuit: Circuit,
        parts: _Builder,
        cut: Callable[[int, float, float], tuple[float, float] | None],
        inside: np.ndarray,
        scope: Sequence[np.ndarray],
    ):
        self.circuit, self.parts, self.cut, self.inside, self.scope = circuit, parts, cut, inside, scope
        self._made: dict[tuple[int, bytes], list[int]] = {}

    def add_box(self, box: Mapping[int, np.ndarray], numbers: np.ndarray) -> int | None:
        """Add what a box needs, and return its root; None where it has probability zero.

        `numbers`, int32 (n_asked,), tells apart what boxes ask of each column.
        """
        copy: list[list[int]] = []
        for node in range(self.circuit.n_node):
            in_scope = numbers[self.scope[node]]
            key = (node, in_scope.tobytes())
            if key not in self._made:
                self._made[key] = self._copy(node, box, bool(in_scope.any()), copy)
            copy.append(self._made[key])
        return copy[-1][0] if copy[-1] else None

    def _copy(self, node: int, box: Mapping[int, np.ndarray], touched: bool, copy: list[list[int]]) -> list[int]:
        """Return the nodes that stand for a node: none where it is impossible; several for a dictionary's leaf."""
        circuit, parts = self.circuit, self.parts
        kind, edges = int(circuit.kind[node]), range(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        if kind == arrays.LEAF:
            leaf = int(circuit.leaf_of[node])
            if not touched:
                return [parts.add_leaf(leaf, None)]
            cells = [self.cut(leaf, lo, hi) for lo, hi in box[int(circuit.leaf_var[leaf])].tolist()]
            pieces = [parts.add_leaf(leaf, cell) for cell in cells if cell is not None]
            if len(pieces) < 2 or self.inside[node]:
                return pieces
            return [parts.add(arrays.LIKELIHOOD, pieces, [()] * len(pieces), True)]
        children = [(piece, edge) for edge in edges for piece in copy[circuit.child[edge]]]
        if kind == arrays.PRODUCT:
            # outside dictionaries a child has one piece or none: fewer pieces than edges is an impossible child
            if len(children) < len(edges):
                return []
            return [parts.add(kind, [child for child, _ in children], [()] * len(edges), touched)]
        if not children:
            return []
        return [parts.add(kind, [child for child, _ in children], [(edge,) for _, edge in children], touched)]
