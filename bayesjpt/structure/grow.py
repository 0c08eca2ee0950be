"""The growth of a joint probability tree: the best split first, until a limit is met.

Knows rows and the conditions on the paths, and nothing of circuits' nodes.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayesjpt.circuit.paths import Condition
from bayesjpt.kernels.impurity import MISSING, Targets, make_records
from bayesjpt.kernels.splits import best_split, divide, make_scratch
from bayesjpt.structure.base import Progress
from bayesjpt.structure.ranks import MAX_CODES, rank_codes
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table

_LARGEST = 1e15
"""Standardised numbers are held to it, so that their squares fit a single-precision float."""


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

    @property
    def condition(self) -> Condition:
        """What the rows on the left meet."""
        return Condition(self.column, self.threshold, self.labels)


@dataclass(frozen=True)
class Tree:
    """Nodes in the order in which they were made, the root first; `Split.left` and `Split.right` are positions."""

    nodes: tuple[Leaf | Split, ...]

    def rows(self, position: int) -> np.ndarray:
        """Return the rows of a node, int32 (n,), ascending."""
        return np.sort(np.concatenate([leaf.rows for leaf in self.leaves(position)]))

    def n_rows(self, position: int) -> int:
        """Return how many rows a node has."""
        node = self.nodes[position]
        return node.rows.size if isinstance(node, Leaf) else node.n_rows

    def leaves(self, position: int = 0) -> list[Leaf]:
        """Return the leaves below a node from left to right."""
        found: list[Leaf] = []
        stack = [position]
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
        # largest total improvement first: where leaves are limited, they go where they gain most
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
        self.shared: dict[int, np.ndarray] = {}  # by column: codes that several numbers share
        numeric = [k for k in settings.targets if not self.is_label[k]]
        symbolic = [k for k in settings.targets if self.is_label[k]]
        self.records = make_records(table.n_row, table.n_column, len(numeric))
        self.records.row[:] = np.arange(table.n_row)
        self.n_code = np.empty(table.n_column, np.int64)
        for k, column in enumerate(columns):
            self.records.code[:, k], self.n_code[k] = self._codes(k, column)
        for t, k in enumerate(numeric):
            self.records.number[:, t] = np.where(table.observed[k], standardised(table, k), np.nan)
        n = np.arange(table.n_row + 2, dtype=np.float64)
        self.targets = Targets(
            np.array(numeric, np.int32),
            np.array(symbolic, np.int32),
            self.n_code[symbolic].astype(np.int32),
            # 0 log 0 is 0
            n**2 if settings.gini else n * np.log(np.maximum(n, 1.0)),
            settings.gini,
        )
        self.scratch = make_scratch(self.records, self.targets)
        self.features = np.array(settings.features, np.int32)

    def _codes(self, k: int, column: Column) -> tuple[np.ndarray, int]:
        observed = self.table.observed[k]
        if column.base == "category":
            return np.where(observed, self.table.values[k], MISSING).astype(np.uint16), column.n_label
        ranks = rank_codes(self.table.values[k], observed, self.settings.max_codes)
        if not ranks.exact:
            self.shared[k] = ranks.code
        return ranks.code, max(ranks.least.size, 1)

    def rows(self, first: int, last: int) -> np.ndarray:
        return self.records.row[first:last].copy()

    def propose(self, queue: list, node: int, depth: int, first: int, last: int) -> bool:
        """Put the best split of a node into the queue, if there is one that is good enough."""
        if depth >= self.settings.max_depth or last - first < 2 * self.settings.min_rows:
            return False
        score, column, go_left = self._search(self.features, self.n_code, first, last)
        if not score > self.settings.min_improvement:
            return False
        # the node's number breaks ties, so that proposals are never compared
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
        # several numbers share a code at the boundary: look between them before rows are moved
        if k in self.shared:
            score, go_left = self._looked_through(proposal)
        middle = divide(self.records, self.scratch, k, go_left, first, last)
        if k in self.shared:
            self.records.code[first:last, k] = self.shared[k][self.records.row[first:last]]
        below, above = self._extreme(np.max, k, first, middle), self._extreme(np.min, k, middle, last)
        return middle, score, between(below, above), ()

    def _extreme(self, which: Callable, k: int, first: int, last: int) -> float:
        """Return the least or the largest number of some records."""
        code = self.records.code[first:last, k]
        row = self.records.row[first:last][code == which(code[code != MISSING])]
        return float(which(self.table.values[k, row]))

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


def standardised(table: Table, column: int) -> np.ndarray:
    """Return a column of numbers in the units in which impurities are summed, float64 (n_row,)."""
    facts = table.schema.columns[column]
    return np.clip((table.values[column] - facts.location) / facts.scale, -_LARGEST, _LARGEST)


def between(below: float, above: float) -> float:
    """Return a threshold with below < threshold <= above: a number of few digits near the middle.

    It lies in the middle half; where no number does, it is the upper one.

    Examples
    --------
    >>> between(1.0, 2.0), between(0.99480, 0.99481), between(0.3141592, 0.3152718)
    (1.5, 0.994805, 0.3147)
    >>> between(1.0, np.nextafter(1.0, 2.0)) > 1.0
    True
    """
    middle, quarter = 0.5 * below + 0.5 * above, 0.25 * above - 0.25 * below
    if not below < middle <= above or quarter == 0.0:
        # no float lies in between, or the quarter has underflowed
        return float(above)
    n_digit = -math.floor(math.log10(quarter))
    # with few digits first
    rounded = (round(float(middle), n) for n in (n_digit - 1, n_digit))
    return next((short for short in rounded if abs(short - middle) <= quarter), float(middle))
