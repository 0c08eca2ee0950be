"""Joint probability trees: greedy binary splits that make all columns less impure at once.

Reference: Nyga, Picklum, Schierenbeck and Beetz, Joint probability trees, sections 2.2 and 2.3.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bayesjpt import defaults
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import Dictionary, Node, build_circuit
from bayesjpt.errors import LearnerError
from bayesjpt.kernels.splits import MISSING, Records, Scratch, Targets, best_split, divide
from bayesjpt.structure import base
from bayesjpt.structure.base import Progress
from bayesjpt.structure.ranks import MAX_CODES, Ranks, rank_codes
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table

IMPURITIES = ("entropy", "gini")
_LARGEST = 1e15
"""Standardised numbers are held to it, so that their squares fit a single-precision float."""


def learn_jpt(
    table: Table,
    rng: np.random.Generator,
    *,
    targets: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    min_rows: float = defaults.JPT_MIN_ROWS,
    max_leaves: int | None = None,
    max_depth: int | None = None,
    min_improvement: float = defaults.JPT_MIN_IMPROVEMENT,
    symbolic_impurity: str = "entropy",
    dictionary: Dictionary | None = None,
    progress: Progress | None = None,
) -> Circuit:
    """Return the circuit of a joint probability tree, as the start of a model in which rows may change their leaf.

    Parameters
    ----------
    table : Table
        Missing cells are allowed: see Notes.
    rng : numpy.random.Generator
        Not drawn from: the tree is a function of the table. Taken as by every learner.
    targets, features : sequence of str, optional
        Columns that splits are judged by, and columns that are split; all of them unless given. With both, this is
        discriminative learning, and with a single target CART.
    min_rows : int or float, optional
        Least rows in a leaf: a number, or a share of the table's.
    max_leaves, max_depth : int, optional
        The tree grows where the improvement, weighted by rows, is largest, until it has so many leaves.
    min_improvement : float, optional
        Mean relative reduction of impurity over the targets, in [0, 1], below which a node is not split.
    symbolic_impurity : str, optional
        ``entropy`` or ``gini``, of columns of labels; that of numbers is the squared deviation from their mean.
    dictionary : callable, optional
        ``(column) -> families`` at the leaves; by default every family that suits the column.
    progress : callable, optional
        ``progress(n_done, n_total)``: cells that belong to a leaf already, and all cells.

    Raises
    ------
    LearnerError
        Where a setting makes no sense, a column is unknown, `rng` is not a Generator, or the table is empty.
    CircuitError
        Where `dictionary` offers a column no family.

    Notes
    -----
    The score of a split is the mean, over all targets but the column that is split, of the share by which it reduces
    the target's impurity. That is what the paper's section 2.2 describes; its equations (4) and (5) as printed give an
    impurity instead of its reduction. Numbers are split at a threshold; labels by one against the rest, or by the
    beginning of an order by a target's mean.

    A missing cell counts for no impurity. A row whose split cell is missing descends by the share of the others, such
    rows in turn. Distinct numbers have a code of 16 bits each; beyond 65,535 of them codes stand for equally many rows,
    and the two at the best boundary are looked through exactly.

    Cost: O(n_row n_column (n_column + log n_row)) a level of the tree; two copies of the table in 16 and 32 bits.

    References
    ----------
    Nyga et al., Joint probability trees; Breiman et al. (1984), Classification and regression trees.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayesjpt.table.table import as_table
    >>> x = np.linspace(-3.0, 3.0, 200)
    >>> table = as_table(pd.DataFrame({"x": x, "side": np.where(x < 1.0, "left", "right")}))
    >>> circuit = learn_jpt(table, np.random.default_rng(0), max_leaves=2)
    >>> int((circuit.kind == 4).sum())
    2
    """
    base.check_input(table, rng)
    tree = grow_tree(
        table,
        Settings(
            targets=_columns(table, "targets", targets),
            features=_columns(table, "features", features),
            min_rows=base.rows_of("min_rows", min_rows, table.n_row),
            max_leaves=table.n_row if max_leaves is None else base.check_count("max_leaves", max_leaves),
            max_depth=table.n_row if max_depth is None else base.check_count("max_depth", max_depth),
            min_improvement=base.check_between("min_improvement", min_improvement, 0.0, 1.0),
            gini=_is_gini(symbolic_impurity),
        ),
        progress,
    )
    return build_circuit(_circuit_node(tree, table.n_column), table, dictionary)


@dataclass(frozen=True)
class Settings:
    """Checked settings of `learn_jpt`; `min_rows` is a number of rows, columns are positions.

    `max_codes` is the number of distinct numbers above which they share codes.
    """

    targets: tuple[int, ...]
    features: tuple[int, ...]
    min_rows: int
    max_leaves: int
    max_depth: int
    min_improvement: float
    gini: bool = False
    max_codes: int = MAX_CODES


@dataclass(frozen=True)
class Leaf:
    """The end of a path; `rows` are positions in the table, int32 (n,), ascending."""

    rows: np.ndarray


@dataclass(frozen=True)
class Split:
    """A node that divides rows: numbers below the threshold, or the labels in `labels`, go left.

    `score` is the mean relative reduction of impurity, `n_rows` the rows of the node.
    """

    column: int
    threshold: float
    labels: tuple[int, ...]
    score: float
    n_rows: int
    left: int
    right: int


@dataclass(frozen=True)
class Tree:
    """Nodes in the order in which they were made, the root first; `Split.left` and `Split.right` are positions."""

    nodes: tuple[Leaf | Split, ...]

    def leaves(self) -> list[Leaf]:
        """Return the leaves from left to right."""
        found: list[Leaf] = []
        stack = [0]
        while stack:
            node = self.nodes[stack.pop()]
            if isinstance(node, Leaf):
                found.append(node)
            else:
                stack.extend((node.right, node.left))
        return found


def grow_tree(table: Table, settings: Settings, progress: Progress | None = None) -> Tree:
    """Return the tree that `learn_jpt` makes a circuit of: the best split first, until a limit is met."""
    grower = _Grower(table, settings)
    nodes: list[Leaf | Split] = [Leaf(grower.rows(0, table.n_row))]
    queue: list[tuple[float, int, _Proposal]] = []
    grower.propose(queue, 0, 0, 0, table.n_row)
    n_leaf, n_done = 1, 0
    while queue and n_leaf < settings.max_leaves:
        _, node, proposal = heapq.heappop(queue)
        middle, score, threshold, labels = grower.divide(proposal)
        left, right = len(nodes), len(nodes) + 1
        n_rows = proposal.last - proposal.first
        nodes[node] = Split(proposal.column, threshold, labels, score, n_rows, left, right)
        for child, first, last in ((left, proposal.first, middle), (right, middle, proposal.last)):
            nodes.append(Leaf(grower.rows(first, last)))
            if not grower.propose(queue, child, proposal.depth + 1, first, last):
                n_done += last - first
        n_leaf += 1
        if progress is not None:
            progress(n_done * table.n_column, table.n_row * table.n_column)
    if progress is not None:
        progress(table.n_row * table.n_column, table.n_row * table.n_column)
    return Tree(tuple(nodes))


@dataclass(frozen=True)
class _Proposal:
    """The best split of the records first ... last - 1; `go_left` is bool (n_code,)."""

    column: int
    score: float
    go_left: np.ndarray
    depth: int
    first: int
    last: int


class _Grower:
    """The records of a table, and what is done to them."""

    def __init__(self, table: Table, settings: Settings):
        columns = table.schema.columns
        self.table, self.settings = table, settings
        self.is_label = np.array([column.base == "category" for column in columns])
        self.ranks: dict[int, Ranks] = {}
        code = np.empty((table.n_row, table.n_column), np.uint16)
        self.n_code = np.empty(table.n_column, np.int64)
        for k, column in enumerate(columns):
            code[:, k], self.n_code[k] = self._codes(k, column)
        numeric = [k for k in settings.targets if not self.is_label[k]]
        symbolic = [k for k in settings.targets if self.is_label[k]]
        number = np.empty((table.n_row, len(numeric)), np.float32)
        for t, k in enumerate(numeric):
            number[:, t] = np.clip((table.values[k] - columns[k].location) / columns[k].scale, -_LARGEST, _LARGEST)
        row = np.arange(table.n_row, dtype=np.int32)
        self.records = Records(code, number, row)
        n = np.arange(table.n_row + 2, dtype=np.float64)
        n_label = self.n_code[symbolic].astype(np.int32)
        self.targets = Targets(
            np.array(numeric, np.int32),
            np.array(symbolic, np.int32),
            n_label,
            np.isin(np.arange(table.n_column), settings.targets),
            n**2 if settings.gini else n * np.log(np.maximum(n, 1.0)),
            settings.gini,
        )
        shape = (len(symbolic), int(n_label.max(initial=0)))
        self.scratch = Scratch(
            np.empty(table.n_row, np.int32),
            np.empty(MISSING + 2, np.int32),
            np.empty(shape),
            np.empty(shape),
            Records(np.empty_like(code), np.empty_like(number), np.empty_like(row)),
        )
        self.features = np.array(settings.features, np.int32)

    def _codes(self, k: int, column: Column) -> tuple[np.ndarray, int]:
        observed = self.table.observed[k]
        if column.base == "category":
            return np.where(observed, self.table.values[k], MISSING).astype(np.uint16), column.n_label
        self.ranks[k] = rank_codes(self.table.values[k], observed, self.settings.max_codes)
        return self.ranks[k].code, max(self.ranks[k].least.size, 1)

    def rows(self, first: int, last: int) -> np.ndarray:
        return self.records.row[first:last].copy()

    def propose(self, queue: list, node: int, depth: int, first: int, last: int) -> bool:
        """Put the best split of a node into the queue, if there is one that is good enough."""
        if depth >= self.settings.max_depth or last - first < 2 * self.settings.min_rows:
            return False
        score, column, go_left = self._search(self.features, self.n_code, first, last)
        if not score > self.settings.min_improvement:
            return False
        heapq.heappush(queue, (-score * (last - first), node, _Proposal(column, score, go_left, depth, first, last)))
        return True

    def _search(self, features: np.ndarray, n_code: np.ndarray, first: int, last: int) -> tuple[float, int, np.ndarray]:
        return best_split(
            self.records,
            self.targets,
            self.scratch,
            features,
            n_code,
            self.is_label,
            first,
            last,
            self.settings.min_rows,
        )

    def divide(self, proposal: _Proposal) -> tuple[int, float, float, tuple[int, ...]]:
        """Move the records of a node; return where the right child begins, and score and condition of the split."""
        k, first, last = proposal.column, proposal.first, proposal.last
        if self.is_label[k]:
            middle = divide(self.records, self.scratch, k, proposal.go_left, first, last)
            return middle, proposal.score, np.nan, tuple(np.flatnonzero(proposal.go_left).tolist())
        score, go_left = proposal.score, proposal.go_left
        exact = self.ranks[k].exact
        if not exact:
            score, go_left = self._looked_through(proposal)
        middle = divide(self.records, self.scratch, k, go_left, first, last)
        if not exact:
            self.records.code[first:last, k] = self.ranks[k].code[self.records.row[first:last]]
        values, observed = self.table.values[k], self.table.observed[k]
        below, above = self.records.row[first:middle], self.records.row[middle:last]
        threshold = between(values[below][observed[below]].max(), values[above][observed[above]].min())
        return middle, score, threshold, ()

    def _looked_through(self, proposal: _Proposal) -> tuple[float, np.ndarray]:
        """Give the rows of the two codes at the boundary codes of their own; return the score, and which go left.

        All codes below become 0, those above the largest.
        """
        k, first, last = proposal.column, proposal.first, proposal.last
        code, row = self.records.code[first:last, k], self.records.row[first:last]
        seen = np.unique(code[code != MISSING])
        at = int(np.searchsorted(seen, np.count_nonzero(proposal.go_left) - 1))
        lo, hi = seen[at], seen[at + 1]
        inside = (code == lo) | (code == hi)
        local = rank_codes(self.table.values[k, row], inside, MAX_CODES - 2)
        fresh = np.where(code < lo, 0, local.least.size + 1).astype(np.uint16)
        fresh[inside] = local.code[inside] + 1
        code[:] = np.where(code == MISSING, MISSING, fresh)
        n_code = self.n_code.copy()
        n_code[k] = local.least.size + 2
        score, _, go_left = self._search(np.array([k], np.int32), n_code, first, last)
        return score, go_left


def between(below: float, above: float) -> float:
    """Return a threshold with below < threshold <= above: half way, or the upper one where nothing lies between.

    Examples
    --------
    >>> between(1.0, 2.0), between(1.0, np.nextafter(1.0, 2.0)) > 1.0
    (1.5, True)
    """
    middle = 0.5 * below + 0.5 * above
    return float(middle if below < middle <= above else above)


def _circuit_node(tree: Tree, n_column: int) -> Node:
    leaves = tree.leaves()
    scope = np.arange(n_column)
    nodes = [base.independent(leaf.rows.astype(np.intp), scope) for leaf in leaves]
    return nodes[0] if len(nodes) == 1 else base.sum_of(nodes, [leaf.rows.size for leaf in leaves])


def _columns(table: Table, name: str, chosen: Sequence[str] | None) -> tuple[int, ...]:
    names = table.schema.names
    if chosen is None:
        return tuple(range(len(names)))
    chosen = [chosen] if isinstance(chosen, str) else list(chosen)
    unknown = [column for column in chosen if column not in names]
    if unknown or not chosen or len(set(chosen)) < len(chosen):
        raise LearnerError(
            f"{name} {', '.join(map(repr, unknown or chosen)) or 'without a column'}",
            f"columns among {', '.join(names)}, each once",
        )
    return tuple(sorted(names.index(column) for column in chosen))


def _is_gini(impurity: str) -> bool:
    if impurity not in IMPURITIES:
        raise LearnerError(f"symbolic_impurity is {impurity!r}", f"one of {', '.join(IMPURITIES)}")
    return impurity == "gini"
