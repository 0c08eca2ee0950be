"""From a learner's tree of objects to the frozen arrays of a Circuit, starting values included.

A learner grows `Sum`, `Product` and `ColumnLeaf` objects; here a `ColumnLeaf` becomes a likelihood sum over the
column's dictionary (ABDA equation 2), or a bare leaf where the dictionary has one member. A `Sum` with a condition is
hard: leaves below it are truncated to the part of its region that their path leaves (`bayesjpt.circuit.paths`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.paths import Condition, Interval, Labels, Region, halves
from bayesjpt.circuit.plan import ATOM
from bayesjpt.errors import CircuitError
from bayesjpt.families import categorical, features, registry
from bayesjpt.families.record import Family
from bayesjpt.table.schema import Column

if TYPE_CHECKING:
    from bayesjpt.table.table import Table


@dataclass(frozen=True)
class ColumnLeaf:
    """The distribution of one column in the sub-population `rows` (int positions of the training table)."""

    column: int
    rows: np.ndarray


@dataclass(frozen=True)
class Product:
    """Independence of the children's columns within a sub-population."""

    children: tuple[Node, ...]


@dataclass(frozen=True)
class Sum:
    """A split of a sub-population; `n_rows` counts each child's rows.

    With a condition there are two children: of the rows that meet it, and of the others.
    """

    children: tuple[Node, ...]
    n_rows: tuple[int, ...]
    condition: Condition | None = None


Node = ColumnLeaf | Product | Sum
Dictionary = Callable[[Column], Sequence[Family]]

_WHOLE = Interval(-np.inf, np.inf)


@dataclass
class _Arrays:
    """Lists that grow while the tree is walked, children first."""

    table: Table
    dictionary: Dictionary

    def __post_init__(self):
        self.kind: list[int] = []
        self.children: list[list[int]] = []
        self.weights: list[list[float]] = []
        self.leaf_of: list[int] = []
        self.family: list[int] = []
        self.var: list[int] = []
        self.theta: list[np.ndarray] = []
        self.const: list[np.ndarray] = []
        self.const_of: list[int] = []
        self.cell_of: list[int] = []
        self.cells: dict[Interval, int] = {}
        self._shared: dict[tuple[int, str, Labels], int] = {}

    def node(self, kind: int, children: Sequence[int] = (), log_weights: Sequence[float] | None = None) -> int:
        self.kind.append(kind)
        self.children.append(list(children))
        self.weights.append([0.0] * len(children) if log_weights is None else list(log_weights))
        self.leaf_of.append(-1)
        return len(self.kind) - 1

    def leaf(self, column: int, family: Family, rows: np.ndarray, part: Interval | Labels) -> int:
        node = self.node(arrays.LEAF)
        self.leaf_of[node] = len(self.family)
        self.family.append(registry.number(family.name))
        self.var.append(column)
        facts = self.table.schema.columns[column]
        interval, labels = (part, ()) if isinstance(part, Interval) else (_WHOLE, part)
        self.cell_of.append(-1 if interval == _WHOLE else self.cells.setdefault(interval, len(self.cells)))
        cells = self.table.values[column, rows[self.table.observed[column, rows]]]
        if family.leaf_constants is not None:
            cells = cells[~np.isin(cells, facts.atoms)]
            number = self._add_constants(family.leaf_constants(facts, cells, *interval))
        else:
            key = (column, family.name, labels)
            if key not in self._shared:
                constants = categorical.only(labels, facts) if labels else family.constants(facts)
                self._shared[key] = self._add_constants(constants)
            number = self._shared[key]
        self.const_of.append(number)
        self.theta.append(features.initial_theta(family, facts, cells, self.const[number]))
        return node

    def _add_constants(self, constants: np.ndarray) -> int:
        self.const.append(constants)
        return len(self.const) - 1

    def column_leaf(self, leaf: ColumnLeaf, region: Region) -> int:
        column, part = self.table.schema.columns[leaf.column], region.get(leaf.column, _WHOLE)
        offered = self.dictionary(column)
        if not offered:
            raise CircuitError(f"column {column.name!r} has an empty likelihood dictionary", "at least one family")
        members = [family for family in offered if _reaches(family, column, part)]
        if not isinstance(part, Interval):
            members = [registry.family("categorical")]
        elif all(family.name == ATOM for family in members) and part != _WHOLE:
            members.append(registry.family("quantile"))  # the others cannot be drawn on a cell
        leaves = [self.leaf(leaf.column, family, leaf.rows, part) for family in members]
        if len(leaves) == 1:
            return leaves[0]
        return self.node(arrays.LIKELIHOOD, leaves, np.full(len(leaves), -np.log(len(leaves))).tolist())

    def add(self, root: Node) -> int:
        """Add a tree and return its root's number (a stack, so depth has no limit)."""
        done: dict[int, int] = {}
        stack: list[tuple[Node, Region, bool]] = [(root, {}, False)]
        while stack:
            node, region, expanded = stack.pop()
            if isinstance(node, ColumnLeaf):
                done[id(node)] = self.column_leaf(node, region)
            elif not expanded:
                stack.append((node, region, True))
                parts = zip(node.children, self._parts(node, region), strict=True)
                stack.extend((child, part, False) for child, part in reversed(list(parts)))
            else:
                children = [done[id(child)] for child in node.children]
                if isinstance(node, Product):
                    done[id(node)] = self.node(arrays.PRODUCT, children)
                else:
                    share = np.asarray(node.n_rows, float) + 1.0
                    kind = arrays.LATENT if node.condition is None else arrays.HARD
                    done[id(node)] = self.node(kind, children, np.log(share / share.sum()).tolist())
        return done[id(root)]

    def _parts(self, node: Product | Sum, region: Region) -> Sequence[Region]:
        """Return the region of each child."""
        if isinstance(node, Product) or node.condition is None:
            return [region] * len(node.children)
        column = self.table.schema.columns[node.condition.column]
        parts = halves(region, node.condition, column)
        if parts is None or len(node.children) != 2:
            raise CircuitError(f"a split of column {column.name!r} leaves one side empty", "values on both sides")
        return parts


def _reaches(family: Family, column: Column, part: Interval | Labels) -> bool:
    """Return whether a family can describe a leaf's cell: atoms that lie there, and what can be drawn on a cell."""
    if not isinstance(part, Interval) or part == _WHOLE:
        return True
    if family.name != ATOM:
        return family.samplable_on_cell
    return any(part.lo <= atom <= part.hi for atom in column.atoms)


def build_circuit(root: Node, table: Table, dictionary: Dictionary | None = None) -> Circuit:
    """Return the frozen Circuit of a learner's tree.

    Parameters
    ----------
    root : ColumnLeaf, Product or Sum
    table : Table
        The training rows that the leaves point into.
    dictionary : callable, optional
        ``(column) -> families`` for each column; `bayesjpt.families.registry.dictionary` unless given.

    Raises
    ------
    CircuitError
        Where a column's dictionary is empty, or the tree is not a valid circuit.
    """
    from bayesjpt.circuit.check import check_circuit

    parts = _Arrays(table, registry.dictionary if dictionary is None else dictionary)
    parts.add(root)
    theta_len = np.array([theta.size for theta in parts.theta], np.int32)
    const_len = np.array([constants.size for constants in parts.const], np.int32)
    n_children = [len(children) for children in parts.children]
    circuit = Circuit(
        kind=np.array(parts.kind, np.int8),
        child_ptr=np.concatenate([[0], np.cumsum(n_children)]).astype(np.int32),
        child=np.array([c for children in parts.children for c in children], np.int32),
        leaf_of=np.array(parts.leaf_of, np.int32),
        leaf_family=np.array(parts.family, np.int16),
        leaf_var_ptr=np.arange(len(parts.var) + 1, dtype=np.int32),
        leaf_var=np.array(parts.var, np.int32),
        leaf_cell=np.array(parts.cell_of, np.int32),
        cell=np.array(list(parts.cells), np.float64).ravel(),
        theta_at=np.concatenate([[0], np.cumsum(theta_len)[:-1]]).astype(np.int32),
        theta_len=theta_len,
        const_at=(np.cumsum(const_len) - const_len)[parts.const_of].astype(np.int32),
        const_len=const_len[parts.const_of],
        const=np.concatenate([*parts.const, np.empty(0)]),
        start_log_weight=np.array([w for weights in parts.weights for w in weights], np.float64),
        start_theta=np.concatenate(parts.theta),
    )
    check_circuit(circuit, table.n_column)
    return freeze(circuit)


def freeze(circuit: Circuit) -> Circuit:
    """Return the circuit with C-contiguous read-only arrays."""
    fields = []
    for array in circuit:
        array = np.ascontiguousarray(array)
        array.flags.writeable = False
        fields.append(array)
    return Circuit(*fields)
