"""From a learner's tree of objects to the frozen arrays of a Circuit, starting values included.

A learner grows `Sum`, `Product` and `ColumnLeaf` objects; here a `ColumnLeaf` becomes a likelihood sum over the
column's dictionary (ABDA equation 2), or a bare leaf where the dictionary has one member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.errors import CircuitError
from bayesjpt.families import features, registry
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
    """A split of a sub-population; `n_rows` counts each child's rows."""

    children: tuple[Node, ...]
    n_rows: tuple[int, ...]


Node = ColumnLeaf | Product | Sum
Dictionary = Callable[[Column], Sequence[Family]]


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
        self.const_at: list[int] = []
        self.const_len: list[int] = []
        self._shared: dict[tuple[int, str], tuple[int, int]] = {}
        self._n_const = 0

    def node(self, kind: int, children: Sequence[int] = (), log_weights: Sequence[float] | None = None) -> int:
        self.kind.append(kind)
        self.children.append(list(children))
        self.weights.append([0.0] * len(children) if log_weights is None else list(log_weights))
        self.leaf_of.append(-1)
        return len(self.kind) - 1

    def leaf(self, column: int, family: Family, rows: np.ndarray) -> int:
        node = self.node(arrays.LEAF)
        self.leaf_of[node] = len(self.family)
        self.family.append(registry.number(family.name))
        self.var.append(column)
        facts = self.table.schema.columns[column]
        key = (column, family.name)
        if key not in self._shared:
            constants = family.constants(facts)
            self._shared[key] = (self._n_const, constants.size)
            self.const.append(constants)
            self._n_const += constants.size
        at, length = self._shared[key]
        self.const_at.append(at)
        self.const_len.append(length)
        cells = self.table.values[column, rows[self.table.observed[column, rows]]]
        self.theta.append(features.initial_theta(family, facts, cells))
        return node

    def column_leaf(self, leaf: ColumnLeaf) -> int:
        members = list(self.dictionary(self.table.schema.columns[leaf.column]))
        if not members:
            name = self.table.schema.columns[leaf.column].name
            raise CircuitError(f"column {name!r} has an empty likelihood dictionary", "at least one family")
        leaves = [self.leaf(leaf.column, family, leaf.rows) for family in members]
        if len(leaves) == 1:
            return leaves[0]
        return self.node(arrays.LIKELIHOOD, leaves, np.full(len(leaves), -np.log(len(leaves))).tolist())

    def add(self, root: Node) -> int:
        """Add a tree and return its root's number (a stack, so depth has no limit)."""
        done: dict[int, int] = {}
        stack: list[tuple[Node, bool]] = [(root, False)]
        while stack:
            node, expanded = stack.pop()
            if isinstance(node, ColumnLeaf):
                done[id(node)] = self.column_leaf(node)
            elif not expanded:
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(node.children))
            else:
                children = [done[id(child)] for child in node.children]
                if isinstance(node, Product):
                    done[id(node)] = self.node(arrays.PRODUCT, children)
                else:
                    share = np.asarray(node.n_rows, float) + 1.0
                    done[id(node)] = self.node(arrays.LATENT, children, np.log(share / share.sum()).tolist())
        return done[id(root)]


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
    n_children = [len(children) for children in parts.children]
    circuit = Circuit(
        kind=np.array(parts.kind, np.int8),
        child_ptr=np.concatenate([[0], np.cumsum(n_children)]).astype(np.int32),
        child=np.array([c for children in parts.children for c in children], np.int32),
        leaf_of=np.array(parts.leaf_of, np.int32),
        leaf_family=np.array(parts.family, np.int16),
        leaf_var_ptr=np.arange(len(parts.var) + 1, dtype=np.int32),
        leaf_var=np.array(parts.var, np.int32),
        leaf_cell=np.full(len(parts.var), -1, np.int32),
        cell=np.empty(0),
        theta_at=np.concatenate([[0], np.cumsum(theta_len)[:-1]]).astype(np.int32),
        theta_len=theta_len,
        const_at=np.array(parts.const_at, np.int32),
        const_len=np.array(parts.const_len, np.int32),
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
