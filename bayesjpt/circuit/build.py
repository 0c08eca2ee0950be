"""From a learner's tree of objects to the frozen arrays of a Circuit, starting values included.

A learner grows `Sum`, `Product`, `ColumnLeaf` and `Tree` objects; here a `ColumnLeaf` becomes a likelihood sum over the
column's dictionary (ABDA equation 2), or a bare leaf where the dictionary has one member. A `Sum` with a condition is
hard: leaves below it are truncated to the part of its region that their path leaves (`bayesjpt.circuit.paths`).

An object that stands at several places, all with one region, is one node of the circuit: so sums share children.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt import defaults
from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.paths import Condition, Division, Region, divided, halves
from bayesjpt.circuit.plan import ATOM
from bayesjpt.circuit.possible import Interval, Labels
from bayesjpt.circuit.trees import Tree, codes_of, grow_tree, split_shares, ways
from bayesjpt.errors import CircuitError, warn
from bayesjpt.families import categorical, features, label, registry
from bayesjpt.families.record import Family
from bayesjpt.families.starts import Members, fill_starts, make_members, start_by_kernel
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

    With a condition there are two children: of the rows that meet it, and of the others. With a division there is one
    for each group of its labels. Without either it starts at `weights`, which add up to 1, or, where none are given, at
    the shares of `n_rows` with one row more for each child.
    """

    children: tuple[Node, ...]
    n_rows: tuple[int, ...]
    condition: Condition | Division | None = None
    weights: tuple[float, ...] = ()


Node = ColumnLeaf | Tree | Product | Sum
Dictionary = Callable[[Column], Sequence[Family]]

_WHOLE = Interval(-np.inf, np.inf)


@dataclass
class _Arrays:
    """Lists that grow while the tree is walked, children first."""

    table: Table
    dictionary: Dictionary

    def __post_init__(self):
        self.kind: list[int] = []
        self.n_children: list[int] = []
        self.child: list[int] = []
        self.log_weight: list[float] = []
        self.count: list[float] = []
        """Of each edge; of use at hard sums alone."""
        self.given: list[tuple[int, int]] = []
        """First and last edge, and one more, of trees that come with probabilities in place of counts."""
        self.leaf_of: list[int] = []
        self.family: list[int] = []
        self.var: list[int] = []
        self.theta: list[np.ndarray] = []
        """Of leaves one behind the other; lengths of each are in `theta_len`."""
        self.theta_len: list[int] = []
        self.const: list[np.ndarray] = []
        self.const_of: list[int] = []
        self.cell_of: list[int] = []
        self.cells: dict[Interval, int] = {}
        self._shared: dict[tuple[int, str, Labels], int] = {}
        self._labels: dict[tuple[int, Labels], int] = {}
        self._offered: dict[int, tuple[Family, ...]] = {}
        self._replaced: set[int] = set()
        self._hyper: dict[tuple[int, int], np.ndarray] = {}
        self._members: dict[int, tuple[Members, list[int], list[int], list[int]]] = {}

    def node(
        self,
        kind: int,
        children: Sequence[int] = (),
        log_weights: Sequence[float] | None = None,
        counts: Sequence[float] | None = None,
    ) -> int:
        self.kind.append(kind)
        self.n_children.append(len(children))
        self.child.extend(children)
        self.log_weight.extend([0.0] * len(children) if log_weights is None else log_weights)
        self.count.extend([0.0] * len(children) if counts is None else counts)
        self.leaf_of.append(-1)
        return len(self.kind) - 1

    def leaf(self, column: int, family: Family, cells: np.ndarray, part: Interval | Labels) -> int:
        """Add a leaf of one family, given the observed cells of its rows, float64 (n,), and return its node."""
        node = self.node(arrays.LEAF)
        self.leaf_of[node] = len(self.family)
        self.family.append(registry.number(family.name))
        self.var.append(column)
        facts = self.table.schema.columns[column]
        interval, labels = (part, ()) if isinstance(part, Interval) else (_WHOLE, part)
        self.cell_of.append(-1 if interval == _WHOLE else self.cells.setdefault(interval, len(self.cells)))
        if family.leaf_constants is not None:
            # atoms are the atom's own: what a family learns from its rows it learns from the others
            cells = cells[~np.isin(cells, facts.atoms)]
            number = self._add_constants(family.leaf_constants(facts, cells, *interval))
        else:
            number = self._constants_of(column, family, labels)
        self.const_of.append(number)
        constants = self.const[number]
        hyper = self._hyper_of(column, family, number)
        self.theta.append(features.initial_theta(family, facts, cells, constants, hyper))
        self.theta_len.append(self.theta[-1].size)
        return node

    def _constants_of(self, column: int, family: Family, labels: Labels = ()) -> int:
        """Return the number of the constants that the leaves of a family share on a column."""
        key = (column, family.name, labels)
        if key not in self._shared:
            facts = self.table.schema.columns[column]
            constants = categorical.only(labels, facts) if labels else family.constants(facts)
            self._shared[key] = self._add_constants(constants)
        return self._shared[key]

    def _hyper_of(self, column: int, family: Family, number: int) -> np.ndarray:
        """Return the hyperparameters of leaves with some constants before there is an estimate."""
        if (column, number) not in self._hyper:
            facts = self.table.schema.columns[column]
            self._hyper[column, number] = features.hyper_before_rows(family, facts, self.const[number])
        return self._hyper[column, number]

    def whole_leaves(self, column: int, cells: np.ndarray) -> list[int]:
        """Add untruncated leaves of a column's families, all of which `start_by_kernel`, and return their nodes."""
        if column not in self._members:
            families = self._offered[column]
            numbers = [self._constants_of(column, family) for family in families]
            hyper = [self._hyper_of(column, family, number) for family, number in zip(families, numbers, strict=True)]
            constants = [self.const[number] for number in numbers]
            facts = self.table.schema.columns[column]
            made = make_members(families, facts, constants, hyper)
            self._members[column] = made, made.family.tolist(), np.diff(made.theta_at).tolist(), numbers
        members, family_numbers, lengths, numbers = self._members[column]
        n, first = len(numbers), len(self.kind)
        self.kind.extend([arrays.LEAF] * n)
        self.n_children.extend([0] * n)
        self.leaf_of.extend(range(len(self.family), len(self.family) + n))
        self.family.extend(family_numbers)
        self.var.extend([column] * n)
        self.cell_of.extend([-1] * n)
        self.const_of.extend(numbers)
        theta = np.empty(sum(lengths))
        fill_starts(members, cells, theta)
        self.theta.append(theta)
        self.theta_len.extend(lengths)
        return list(range(first, first + n))

    def label_leaf(self, column: int, codes: Labels) -> int:
        """Return the leaf of some labels, one for the whole circuit."""
        if (column, codes) not in self._labels:
            node = self.node(arrays.LEAF)
            self.leaf_of[node] = len(self.family)
            self.family.append(registry.number("label"))
            self.var.append(column)
            self.cell_of.append(-1)
            self.const_of.append(self._add_constants(label.constants_of(codes, self.table.schema.columns[column])))
            self.theta_len.append(0)
            self._labels[column, codes] = node
        return self._labels[column, codes]

    @cached_property
    def label_groups(self) -> list[tuple[Labels, ...]]:
        """The labels of each column that go together; none of a column of numbers."""
        return [label.label_groups(column) if column.n_label else () for column in self.table.schema.columns]

    @cached_property
    def groups(self) -> np.ndarray:
        """int16 (n_column, n_row): cells as `bayesjpt.circuit.trees.group_codes` has them."""
        return codes_of(self.table)

    def tree(self, tree: Tree, region: Region) -> int:
        """Add a tree of labels and return its root, a product where there are several."""
        found = ways(tree, self.table.schema, region, self.label_groups)
        allowed = [[number for number, _ in each] for each in found]
        pairs = zip(np.asarray(tree.columns).tolist(), found, strict=True)
        leaves = [self.label_leaf(column, codes) for column, each in pairs for _, codes in each]
        grown = grow_tree(tree, self.groups, allowed, leaves, len(self.kind))
        self.kind.extend(grown.kind.tolist())
        self.n_children.extend(grown.n_children.tolist())
        self.child.extend(grown.child.tolist())
        self.log_weight.extend([0.0] * grown.child.size)
        if tree.tables is not None:
            self.given.append((len(self.count), len(self.count) + grown.count.size))
        self.count.extend(grown.count.tolist())
        self.leaf_of.extend([-1] * grown.kind.size)
        roots = grown.roots.tolist()
        return roots[0] if len(roots) == 1 else self.node(arrays.PRODUCT, roots)

    def _add_constants(self, constants: np.ndarray) -> int:
        self.const.append(constants)
        return len(self.const) - 1

    def column_leaf(self, leaf: ColumnLeaf, region: Region) -> int:
        column, part = self.table.schema.columns[leaf.column], region.get(leaf.column, _WHOLE)
        if leaf.column not in self._offered:
            self._offered[leaf.column] = offered_by(self.dictionary, column)
        offered = self._offered[leaf.column]
        is_whole = part == _WHOLE
        members = list(offered) if is_whole else [family for family in offered if _reaches(family, column, part)]
        if not isinstance(part, Interval):
            members = [registry.family("categorical")]
        elif not is_whole and _is_poor(members, offered, part.hi - part.lo > column.resolution):
            lost = [family.name for family in offered if family.name != ATOM and not family.samplable_on_cell]
            if lost and all(family.name == ATOM for family in members) and leaf.column not in self._replaced:
                self._replaced.add(leaf.column)
                names = ", ".join(lost)
                warn(f"{names} cannot be drawn on a part of column {column.name!r}: quantile stands there")
            members.append(registry.family("quantile"))
        cells = self.table.values[leaf.column, leaf.rows[self.table.observed[leaf.column, leaf.rows]]]
        if isinstance(part, Interval) and not is_whole:  # rows of a tree from elsewhere may lie in another part
            cells = cells[(cells >= part.lo) & (cells <= part.hi)]
        if is_whole and all(map(start_by_kernel, members)):
            leaves = self.whole_leaves(leaf.column, cells)
        else:
            leaves = [self.leaf(leaf.column, family, cells, part) for family in members]
        if len(leaves) == 1:
            return leaves[0]
        return self.node(arrays.LIKELIHOOD, leaves, np.full(len(leaves), -np.log(len(leaves))).tolist())

    def add(self, root: Node) -> int:
        """Add a tree and return its root's number (a stack, so depth has no limit)."""
        done: dict[int, int] = {}
        region_of: dict[int, Region] = {}
        stack: list[tuple[Node, Region, bool]] = [(root, {}, False)]
        while stack:
            node, region, expanded = stack.pop()
            # one region: the object is one node, however many parents it has
            if not expanded and id(node) in done and region_of[id(node)] == region:
                continue
            region_of[id(node)] = region
            if isinstance(node, ColumnLeaf):
                done[id(node)] = self.column_leaf(node, region)
            elif isinstance(node, Tree):
                done[id(node)] = self.tree(node, region)
            elif not expanded:
                stack.append((node, region, True))
                parts = zip(node.children, self._parts(node, region), strict=True)
                stack.extend((child, part, False) for child, part in reversed(list(parts)))
            else:
                children = [done[id(child)] for child in node.children]
                if isinstance(node, Product):
                    done[id(node)] = self.node(arrays.PRODUCT, children)
                else:
                    # one row more for each child: no logarithm of 0
                    share = np.asarray(node.weights or np.asarray(node.n_rows, float) + 1.0)
                    kind = arrays.LATENT if node.condition is None else arrays.HARD
                    done[id(node)] = self.node(kind, children, np.log(share / share.sum()).tolist(), node.n_rows)
        return done[id(root)]

    def _parts(self, node: Product | Sum, region: Region) -> Sequence[Region]:
        """Return the region of each child."""
        if isinstance(node, Product) or node.condition is None:
            return [region] * len(node.children)
        column = self.table.schema.columns[node.condition.column]
        if isinstance(node.condition, Division):
            parts = divided(region, node.condition, column)
            expected = "each label in one of the groups, and a child for each group"
        else:
            parts, expected = halves(region, node.condition, column), "values on both sides"
        if parts is None or len(node.children) != len(parts):
            raise CircuitError(f"a split of column {column.name!r} leaves one side empty", expected)
        return parts


def _reaches(family: Family, column: Column, part: Interval | Labels) -> bool:
    """Return whether a family can describe a leaf's cell: atoms that lie there, and what can be drawn on a cell."""
    if not isinstance(part, Interval) or part == _WHOLE:
        return True
    if family.name != ATOM:
        return family.samplable_on_cell
    return any(part.lo <= atom <= part.hi for atom in column.atoms)


def _is_poor(members: Sequence[Family], offered: Sequence[Family], is_wide: bool) -> bool:
    """Return whether a cell has no likelihood left that can be drawn on one, or one of several, and room.

    A normal distribution alone has mass where a cell that holds two clusters is empty.
    """
    left, asked = (sum(family.name != ATOM for family in families) for families in (members, offered))
    return left == 0 or (left == 1 < asked and is_wide and all(family.name != "quantile" for family in members))


def offered_by(dictionary: Dictionary, column: Column) -> tuple[Family, ...]:
    """Return the families that a dictionary offers a column.

    Raises
    ------
    CircuitError
        Where it is no function, or returns something else, or none.
    """
    expected = "a function of a column that returns likelihood families"
    if not callable(dictionary):
        raise CircuitError(f"dictionary={dictionary!r}", expected)
    offered = dictionary(column)
    if isinstance(offered, str) or not isinstance(offered, Iterable):
        raise CircuitError(f"a dictionary that returns {offered!r} for column {column.name!r}", expected)
    offered = tuple(offered)
    for member in offered:
        if not isinstance(member, Family):
            raise CircuitError(f"{member!r} in the dictionary of column {column.name!r}", expected)
    if not offered:
        raise CircuitError(f"column {column.name!r} has an empty likelihood dictionary", "at least one family")
    return offered


def build_circuit(
    root: Node, table: Table, dictionary: Dictionary | None = None, *, ess: float = defaults.ESS
) -> Circuit:
    """Return the frozen Circuit of a learner's tree.

    Parameters
    ----------
    root : ColumnLeaf, Tree, Product or Sum
    table : Table
        The training rows that the leaves point into.
    dictionary : callable, optional
        ``(column) -> families`` for each column; `bayesjpt.families.registry.dictionary` unless given.
    ess : float
        Imaginary rows of each hard sum, divided evenly over its edges: these sums start at the posterior mean of their
        weights under that prior, given the rows that the learner counts there.

    Raises
    ------
    CircuitError
        Where a column's dictionary is empty, or the tree is not a valid circuit.
    """
    from bayesjpt.circuit.check import check_circuit

    parts = _Arrays(table, registry.dictionary if dictionary is None else dictionary)
    parts.add(root)
    theta_len = np.array(parts.theta_len, np.int32)
    const_len = np.array([constants.size for constants in parts.const], np.int32)
    circuit = Circuit(
        kind=np.array(parts.kind, np.int8),
        child_ptr=np.concatenate([[0], np.cumsum(parts.n_children)]).astype(np.int32),
        child=np.array(parts.child, np.int32),
        leaf_of=np.array(parts.leaf_of, np.int32),
        leaf_family=np.array(parts.family, np.int16),
        leaf_var=np.array(parts.var, np.int32),
        leaf_cell=np.array(parts.cell_of, np.int32),
        cell=np.array(list(parts.cells), np.float64).ravel(),
        theta_at=np.concatenate([[0], np.cumsum(theta_len)[:-1]]).astype(np.int32),
        theta_len=theta_len,
        const_at=(np.cumsum(const_len) - const_len)[parts.const_of].astype(np.int32),
        const_len=const_len[parts.const_of],
        const=np.concatenate([*parts.const, np.empty(0)]),
        start_log_weight=np.array(parts.log_weight, np.float64),
        start_theta=np.concatenate([*parts.theta, np.empty(0)]),
    )
    imaginary = ess * split_shares(circuit)
    # where probabilities are given they are the weights: no imaginary rows on top
    for first, last in parts.given:
        imaginary[first:last] = 0.0
    start = start_of_splits(circuit, np.array(parts.count) + imaginary)
    circuit = _beside(circuit._replace(start_log_weight=start))
    check_circuit(circuit, table.n_column)
    return freeze(circuit)


def start_of_splits(circuit: Circuit, share: np.ndarray) -> np.ndarray:
    """Return the starting weights, float64 (n_edge,): in proportion to share at hard sums, elsewhere what they are."""
    parent = circuit.edge_parent()
    hard = circuit.kind[parent] == arrays.HARD
    total = np.bincount(parent[hard], share[hard], minlength=circuit.n_node)
    start = circuit.start_log_weight.copy()
    start[hard] = np.log(share[hard] / total[parent[hard]])
    return start


def _beside(circuit: Circuit) -> Circuit:
    """Return the circuit with latent sums of the same children one behind the other, where the first of them was."""
    first: dict[bytes, int] = {}
    place = np.arange(circuit.n_node)
    for node in np.flatnonzero(circuit.kind == arrays.LATENT).tolist():
        children = circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]]
        place[node] = first.setdefault(children.tobytes(), node)
    # a sum that moves has the children of the first of its group, which come before that: still children first
    order = np.argsort(place, kind="stable")
    if (order == np.arange(order.size)).all():
        return circuit
    number = np.empty_like(order)
    number[order] = np.arange(order.size)
    edges = np.concatenate([np.arange(circuit.child_ptr[node], circuit.child_ptr[node + 1]) for node in order])
    return circuit._replace(
        kind=circuit.kind[order],
        child_ptr=np.concatenate([[0], np.cumsum(np.diff(circuit.child_ptr)[order])]).astype(np.int32),
        child=number[circuit.child[edges]].astype(np.int32),
        leaf_of=circuit.leaf_of[order],
        start_log_weight=circuit.start_log_weight[edges],
    )


def freeze(circuit: Circuit) -> Circuit:
    """Return the circuit with C-contiguous read-only arrays."""
    fields = []
    for array in circuit:
        array = np.ascontiguousarray(array)
        array.flags.writeable = False
        fields.append(array)
    return Circuit(*fields)
