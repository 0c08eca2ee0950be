"""Pruning of a joint probability tree by rows that it was not grown on.

A split is worth what it improves on held-out rows, in the learner's own measure: the mean over targets of how much less
a row loses by the forecast of its side than by that of the node, over the node's impurity per row. Forecasts are made
from training rows: of a number their mean (squared deviation), of a label their smoothed shares (log loss; the Brier
score where impurity is the Gini index). A subtree is worth the sum of its splits, and cut where that is not positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayesjpt.families.registry import family
from bayesjpt.structure.base import Progress
from bayesjpt.structure.grow import Leaf, Settings, Split, Tree, grow_tree, standardised
from bayesjpt.table.table import Table

_SMALLEST_SHARE = 1e-12
"""Variance over mean square, below which numbers are all alike but for rounding."""


def grow_and_prune(
    table: Table, settings: Settings, share: float, rng: np.random.Generator, progress: Progress | None = None
) -> Tree:
    """Return a tree that was grown on some rows and pruned by the others, and holds all of them.

    Parameters
    ----------
    table : Table
    settings : Settings
        `min_rows` holds for the rows that the tree is grown on, and so for all.
    share : float
        Of rows that are held out; with 0, nothing is pruned.
    rng : numpy.random.Generator
        Draws the rows that are held out.
    progress : callable, optional
        Of the growing.
    """
    n_held = int(share * table.n_row)
    if n_held == 0:
        return grow_tree(table, settings, progress)
    order = rng.permutation(table.n_row).astype(np.int32)
    held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
    tree = grow_tree(table.take(kept), settings, progress)
    nodes = [Leaf(kept[node.rows]) if isinstance(node, Leaf) else node for node in tree.nodes]
    return prune(Tree(tuple(nodes)), table, held, settings)


def prune(tree: Tree, table: Table, held: np.ndarray, settings: Settings) -> Tree:
    """Return the tree without subtrees that held-out rows do not support, its leaves filled with these rows too.

    Parameters
    ----------
    tree : Tree
        Its leaves hold the rows that it was grown on.
    held : int32 (n,)
        Other rows of the table, ascending.
    """
    arriving = {0: held}
    for position, split in enumerate(tree.nodes):  # parents before children
        if isinstance(split, Split):
            arriving[split.left], arriving[split.right] = _sides(tree, table, position, arriving[position])
    judge = _Judge(tree, table, settings)
    worth = np.zeros(len(tree.nodes))
    nodes: dict[int, Leaf | Split] = {}
    for position in reversed(range(len(tree.nodes))):
        node, arrived = tree.nodes[position], arriving[position]
        if isinstance(node, Split):
            gain = judge.gain(node, arriving[node.left], arriving[node.right])
            worth[position] = gain + worth[node.left] + worth[node.right]
            if worth[position] > 0.0:
                nodes[position] = replace(node, n_rows=node.n_rows + arrived.size)
                continue
            worth[position] = 0.0
        nodes[position] = Leaf(np.sort(np.concatenate((tree.rows(position), arrived))))
    return _reachable(nodes)


def _reachable(nodes: dict[int, Leaf | Split]) -> Tree:
    """Return the nodes that can be reached from the root, parents before children."""
    found: list[Leaf | Split] = [nodes[0]]
    for position, node in enumerate(found):
        if isinstance(node, Split):
            found += [nodes[node.left], nodes[node.right]]
            found[position] = replace(node, left=len(found) - 2, right=len(found) - 1)
    return Tree(tuple(found))


def _sides(tree: Tree, table: Table, position: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that go to either side; a missing split cell in turn, by the share of training rows."""
    split = tree.nodes[position]
    assert isinstance(split, Split)
    values, missing = table.values[split.column, rows], ~table.observed[split.column, rows]
    goes_left = np.isin(values, split.labels) if split.labels else values < split.threshold
    # dealt in turn: one goes left whenever the share of so many passes a whole number
    n_dealt = np.arange(int(missing.sum()) + 1) * tree.n_rows(split.left) // split.n_rows
    goes_left[missing] = np.diff(n_dealt) > 0
    return rows[goes_left], rows[~goes_left]


class _Judge:
    """What held-out rows lose by the forecasts of training rows."""

    def __init__(self, tree: Tree, table: Table, settings: Settings):
        self.tree, self.table, self.targets = tree, table, settings.targets
        self.forecasts = {
            k: _Labels(table, k, settings.gini) if table.schema.columns[k].base == "category" else _Numbers(table, k)
            for k in settings.targets
        }

    def gain(self, split: Split, left: np.ndarray, right: np.ndarray) -> float:
        """Return the mean over targets of the relative improvement by a split, summed over the held-out rows there."""
        known = self.table.observed[split.column]
        trained = [rows[known[rows]] for rows in (self.tree.rows(split.left), self.tree.rows(split.right))]
        judged = [rows[known[rows]] for rows in (left, right)]
        targets = [k for k in self.targets if k != split.column]
        return sum(self._gain(k, trained, judged) for k in targets) / max(len(targets), 1)

    def _gain(self, target: int, trained: Sequence[np.ndarray], judged: Sequence[np.ndarray]) -> float:
        observed, forecast = self.table.observed[target], self.forecasts[target]
        trained = [rows[observed[rows]] for rows in trained]
        whole = np.concatenate(trained)
        impurity = forecast.impurity(whole) if whole.size else 0.0
        if impurity == 0.0:
            return 0.0
        gain = 0.0
        for side, rows in zip(trained, judged, strict=True):
            rows = rows[observed[rows]]
            if side.size:
                gain += float((forecast.loss(whole, rows) - forecast.loss(side, rows)).sum())
        return gain / impurity


class _Numbers:
    """Forecasts of a number by the mean."""

    def __init__(self, table: Table, column: int):
        self.z = standardised(table, column)

    def impurity(self, rows: np.ndarray) -> float:
        """Return the mean squared deviation; 0 where all are alike but for rounding."""
        variance = float(self.z[rows].var())
        return variance if variance > _SMALLEST_SHARE * float((self.z[rows] ** 2).mean()) else 0.0

    def loss(self, trained: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the squared deviations of rows from the mean of others."""
        return (self.z[rows] - self.z[trained].mean()) ** 2


class _Labels:
    """Forecasts of a label by the posterior mean of the shares, under the prior of a leaf."""

    def __init__(self, table: Table, column: int, gini: bool):
        self.code, self.gini = table.values[column].astype(np.intp), gini
        self.prior = family("categorical").priors["default"](table.schema.columns[column], np.empty(0))

    def impurity(self, rows: np.ndarray) -> float:
        """Return the entropy of the labels, or the Gini index."""
        share = np.bincount(self.code[rows]) / rows.size
        share = share[share > 0.0]
        return float(1.0 - (share**2).sum() if self.gini else -(share * np.log(share)).sum())

    def loss(self, trained: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the log loss of rows, or their Brier score, under the shares among others."""
        count = np.bincount(self.code[trained], minlength=self.prior.size) + self.prior
        share = count / count.sum()
        loss = (share**2).sum() - 2.0 * share + 1.0 if self.gini else -np.log(share)
        return loss[self.code[rows]]
