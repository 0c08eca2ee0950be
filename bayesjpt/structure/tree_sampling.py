"""Sampling a mixture of Chow-Liu trees from complete rows: allocations, edges, weights and one strength of the prior.

A sweep draws the tree of each row, then weights and tables given the rows of each tree. A table's prior is a Dirichlet
around the column given its parent in the whole table, with `strength` imaginary rows for each bin of the parent; the
strength is drawn, too. In the first half of a run edges follow the rows that trees have then; later they stay.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bayesjpt.structure.chow_liu import Bins
from bayesjpt.structure.distinct_rows import DistinctRows, distinct_rows, usual_bins
from bayesjpt.structure.tree_edges import best_tree, fill_information, pairs_of
from bayesjpt.structure.tree_gibbs import (
    Scorer,
    Trees,
    count_rows,
    draw_tables,
    draw_trees,
    fill_centre,
    log_density,
    log_marginal,
    mean_tables,
    scorer_of,
    trees_of,
)

STRENGTHS = (0.25, 128.0)
"""The fewest and the most imaginary rows of a table's prior; before, each power of two is as probable."""

_TREE_ROWS = 0.25
"""Imaginary rows of each tree: few enough that trees in excess lose theirs (as `bayesjpt.defaults.GAMMA`)."""

_OWN_SHARE = 0.3
"""Where a tree begins: so much of the row it begins around, the rest of the table."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to learn from.

    Parameters
    ----------
    distinct : DistinctRows
        Without missing cells.
    pairs : float64 (sum n_bin, sum n_bin)
        Rows by any two bins.
    is_labels : bool (n_column,)
        Which columns may have edges.
    """

    distinct: DistinctRows
    pairs: np.ndarray
    is_labels: np.ndarray

    @property
    def n_row(self) -> int:
        """Rows, those that are alike each counted."""
        return self.distinct.order.size


@dataclass(frozen=True, eq=False)
class Mixture:
    """Trees, their weights and their tables.

    Parameters
    ----------
    trees : Trees
    log_weight : float64 (n_tree,), nats
    log_table : float64 (n_entry,), nats
    """

    trees: Trees
    log_weight: np.ndarray
    log_table: np.ndarray

    def scorer(self, usual: np.ndarray) -> Scorer:
        """Return what rows add up, `usual` being that of the rows."""
        return scorer_of(self.trees, self.log_weight, self.log_table, usual)

    def log_density(self, rows: DistinctRows) -> np.ndarray:
        """Return the log density of rows, float64 (n_row,), nats."""
        return log_density(rows, self.trees, self.scorer(rows.usual))

    def tables(self, tree: int) -> list[np.ndarray]:
        """Return the probabilities of each column given its parent, one row at roots."""
        found = []
        for column, n in enumerate(self.trees.n_bin.tolist()):
            parent, lo = int(self.trees.parents[column, tree]), int(self.trees.at[column, tree])
            n_above = int(self.trees.n_bin[parent]) if parent >= 0 else 1
            found.append(np.exp(self.log_table[lo : lo + n_above * n]).reshape(n_above, n))
        return found


@dataclass(frozen=True, eq=False)
class State:
    """Where a run stands.

    Parameters
    ----------
    mixture : Mixture
        As drawn.
    estimate : Mixture
        The posterior means of weights and tables given the allocations before; it scores new rows best.
    strength : float
        Imaginary rows of the prior of a table.
    tree : int64 (n_row,)
        The tree of each of the distinct rows' rows.
    """

    mixture: Mixture
    estimate: Mixture
    strength: float
    tree: np.ndarray


def rows_of(bins: Bins, is_labels: np.ndarray) -> Rows:
    """Return rows to learn from; no cell may be missing."""
    return Rows(distinct_rows(bins, usual_bins(bins)), pairs_of(bins), is_labels)


def started(rows: Rows, n_tree: int, rng: np.random.Generator) -> State:
    """Return trees with the edges of the whole table, each moved towards a row drawn at random."""
    code, n_bin = rows.distinct.bins.code, rows.distinct.bins.n_bin
    every = np.arange(rows.n_row)
    parents = best_tree(_information(rows, every, 0.0), rows.is_labels)
    trees = trees_of(np.repeat(parents[:, None], n_tree, axis=1), n_bin)
    table = np.empty(trees.n_entry)
    fill_centre(trees, rows.pairs, table)
    around = rng.choice(rows.n_row, n_tree, replace=rows.n_row < n_tree)
    table *= 1.0 - _OWN_SHARE
    for column, n in enumerate(n_bin.tolist()):
        parent = int(parents[column])
        for above in range(int(n_bin[parent]) if parent >= 0 else 1):
            table[trees.at[column] + above * n + code[column, around]] += _OWN_SHARE
    mixture = Mixture(trees, np.full(n_tree, -np.log(n_tree)), np.log(np.maximum(table, 1e-4)))
    return State(mixture, mixture, 2.0, np.zeros(rows.n_row, np.int64))


def sweep(rows: Rows, state: State, rng: np.random.Generator, *, edges: str = "", ess: float = 1.0) -> State:
    """Return the state one sweep on.

    Parameters
    ----------
    rows : Rows
    state : State
    rng : numpy.random.Generator
    edges : str
        ``own`` or ``shared``: trees first take the edges that suit their rows; none given: edges stay.
    ess : float
        Imaginary rows of each tree, spread as those of the table, by which edges are judged.
    """
    distinct, mixture = rows.distinct, state.mixture
    trees, n_tree = mixture.trees, mixture.log_weight.size
    tree = np.empty(rows.n_row, np.int64)
    draw_trees(distinct, trees, mixture.scorer(distinct.usual), rng.random(rows.n_row), tree)
    n_rows = np.bincount(tree, minlength=n_tree)
    if edges:
        trees = trees_of(_parents(rows, tree, n_tree, shared=edges == "shared", ess=ess), distinct.bins.n_bin)
    counts, centre, table = (np.empty(trees.n_entry) for _ in range(3))
    count_rows(distinct.bins.code, trees, tree, counts)
    fill_centre(trees, rows.pairs, centre)
    strength = _strength(trees, counts, centre, state.strength, rng)
    mean_tables(trees, counts, centre, strength, table)
    weight = n_rows + _TREE_ROWS
    estimate = Mixture(trees, np.log(weight / weight.sum()), np.log(table))
    # the means were copied by the logarithm: the array is free for the draw
    draw_tables(trees, counts, centre, strength, table, rng)
    drawn = np.log(np.maximum(rng.standard_gamma(weight), 1e-300))
    return State(Mixture(trees, drawn - np.logaddexp.reduce(drawn), table), estimate, strength, tree)


def _strength(trees: Trees, counts: np.ndarray, centre: np.ndarray, strength: float, rng: np.random.Generator) -> float:
    """Return a strength of the prior given counts: half or twice the one before, or that (Metropolis)."""
    # half or twice with equal probability: symmetric, so that the marginals alone decide
    other = strength * (2.0 if rng.random() < 0.5 else 0.5)
    change = log_marginal(trees, counts, centre, other) - log_marginal(trees, counts, centre, strength)
    inside = STRENGTHS[0] <= other <= STRENGTHS[-1]
    return other if np.log(rng.random()) < change and inside else strength


def run(rows: Rows, n_tree: int, rng: np.random.Generator, *, edges: str, ess: float, n_sweep: int) -> Iterator[State]:
    """Yield the states of a run; edges are found again at every fifth sweep of its first half."""
    state = started(rows, n_tree, rng)
    for number in range(n_sweep):
        moves = number % 5 == 4 and 2 * number < n_sweep
        state = sweep(rows, state, rng, edges=edges if moves else "", ess=ess)
        yield state


def _information(rows: Rows, chosen: np.ndarray, ess: float) -> np.ndarray:
    bins = rows.distinct.bins
    out = np.zeros((bins.n_bin.size, bins.n_bin.size))
    fill_information(bins.code, bins.n_bin, np.asarray(chosen, np.int64), rows.pairs, ess / rows.n_row, out)
    return out


def _parents(rows: Rows, tree: np.ndarray, n_tree: int, *, shared: bool, ess: float) -> np.ndarray:
    """Return the parents in the tree of most information of the rows of each tree, or of all trees together."""
    order = np.argsort(tree, kind="stable")
    at = np.searchsorted(tree[order], np.arange(n_tree + 1))
    parts = (_information(rows, order[at[k] : at[k + 1]], ess) for k in range(n_tree))
    if shared:
        total = functools.reduce(np.add, parts)  # one at a time: they are large where columns are many
        return np.repeat(best_tree(total, rows.is_labels)[:, None], n_tree, axis=1)
    return np.stack([best_tree(part, rows.is_labels) for part in parts], axis=1)
