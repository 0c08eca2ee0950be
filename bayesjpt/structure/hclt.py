"""Hidden Chow-Liu trees: the tree of the columns, each of them behind a hidden variable with a few states.

      columns    a -- b -- c        Z_a -- Z_b -- Z_c      the tree of largest mutual information, of hidden states
                                     |      |      |
                                     a      b      c       each column given its own state

As a circuit: for each state q of its parent, the hidden variable of a column has a latent sum over its own states. The
sums of a column have the same children: a product a state, of the column's leaf and of the sums that depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bayesjpt import defaults
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import ColumnLeaf, Dictionary, Node, Product, Sum, build_circuit
from bayesjpt.structure import base
from bayesjpt.structure.base import Progress
from bayesjpt.structure.bins import bins_of, blocks, shares_of_bins
from bayesjpt.structure.chow_liu import Bins, chow_liu
from bayesjpt.structure.distinct_rows import DistinctRows, distinct_rows, usual_bins
from bayesjpt.structure.hidden_gibbs import Tree, draw_counts, tree_of
from bayesjpt.structure.tree_messages import drawn, upward
from bayesjpt.table.dataset import Dataset, in_memory
from bayesjpt.table.table import Table

_SWEEPS = 60
"""Gibbs sweeps: where the sampling of a fit begins hardly matters beyond."""

_STATE_ROWS, _LEAF_ROWS = 0.02, 0.5
"""Imaginary rows: of each state given its parent's, and of a column given a state, by its shares. On validation rows of
two binary tables better than .1 and 2 by .06 and .33 nats a row (docs/results.md)."""

SMALLEST = 1e-12
"""Of gamma variates whose shares are drawn weights: no state is ever out of the question."""


def learn_hclt(
    table: Table | Dataset,
    rng: int | np.random.Generator | None = None,
    *,
    n_states: int = defaults.HCLT_STATES,
    sweeps: int = _SWEEPS,
    dictionary: Dictionary | None = None,
    progress: Progress | None = None,
) -> Circuit:
    """Return the circuit of a hidden Chow-Liu tree learned from a table.

    Parameters
    ----------
    table : Table or Dataset
        Of a Dataset as many rows are taken as `bayesjpt.defaults.LEARN_ROWS`, chosen by a hash of their numbers.
        Columns of labels (any number of them), of numbers, or both. Missing cells are summed out.
    rng : int, numpy.random.Generator or None
        Chooses where the states begin, and draws those of the rows.
    n_states : int, optional
        States of each hidden variable. Time and weights grow with its square.
    sweeps : int, optional
        Gibbs sweeps from a start at random, numbers in their bins. The sampling of a fit goes on from where they end.
    dictionary : callable, optional
        ``(column) -> families`` of each column given its state; by default every family that suits the column.
    progress : callable, optional
        ``progress(n_done, n_total)``: cells times sweeps.

    Raises
    ------
    LearnerError
        Where a setting makes no sense, `rng` is not a Generator, or the table is empty.
    CircuitError
        Where `dictionary` offers a column no family.

    Notes
    -----
    The tree is that of the columns themselves, by mutual information, numbers in eight bins. Sweeps draw the states of
    all rows, then the weights of

        p(x) = sum over z of prod_i p(z_i | z_parent(i)) p(x_i | z_i).

    The weights of the circuit begin at their posterior mean given the last states. Rows then draw their states once
    more, and leaves begin at what the rows of their state hold; numbers get the likelihoods of their column. In a fit a
    sweep draws the states of a row together, given weights and leaves.

    Cost: O(n_states^2) a sweep for each variable of each row that has a cell at or below it that is not its column's
    most frequent one; rows that are alike count once.

    References
    ----------
    Liu and Van den Broeck (2021). Tractable Regularization of Probabilistic Circuits. NeurIPS. Choi, Tan, Anandkumar,
    Willsky (2011). Learning Latent Tree Graphical Models. JMLR 12.

    Examples
    --------
    >>> import pandas as pd, bayesjpt as bj
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(2, size=400)
    >>> frame = pd.DataFrame({"a": a, "b": a ^ (rng.random(400) < 0.1), "c": a ^ (rng.random(400) < 0.2)}).astype(str)
    >>> table = bj.as_table(frame, other=False)
    >>> bj.learn_hclt(table, rng, n_states=2)
    Circuit(5 latent, 0 likelihood, 0 hard, 2 product, 6 leaf; 12 parameters)
    """
    table = in_memory(table)
    rng = base.check_input(table, rng)
    n_states = base.check_count("n_states", n_states)
    sweeps = base.check_count("sweeps", sweeps)
    bins, _ = bins_of(table)
    with base.one_thread():
        rows = distinct_rows(bins, usual_bins(bins))
        estimates = run(rows, n_states, rng, n_sweep=sweeps)
        tree = base.last_of(estimates, progress, bins.code.size, sweeps * bins.code.size)
        states = states_of(tree, bins, rng)
    return build_circuit(_node(tree, states), table, dictionary)


def started(parents: np.ndarray, bins: Bins, n_state: int, rng: np.random.Generator) -> Tree:
    """Return a hidden tree whose states are spread at random around the shares of each column."""
    transition = rng.dirichlet(np.ones(n_state), size=(parents.size, n_state)).transpose(0, 2, 1)
    emission = []
    for share in shares_of_bins(bins):
        spread = rng.dirichlet(0.3 + 2.0 * share, size=n_state)
        emission.append((0.96 * spread + 0.04 * share).T)
    # no state is out of the question at the start
    transition = np.ascontiguousarray(np.maximum(transition, 1e-6))
    return tree_of(parents, bins.n_bin, transition, np.ascontiguousarray(np.concatenate(emission)))


def sweep(rows: DistinctRows, shares: np.ndarray, tree: Tree, rng: np.random.Generator) -> tuple[Tree, Tree, float]:
    """Return (tree, estimate, log density) after a sweep: rows draw their states, then weights are drawn given these.

    `shares`, float64 (n_bin of all columns,), are those of each column's bins in the table.

    The estimate has the posterior means of weights given the states, and scores new rows best. The log density is that
    of all rows before the sweep, in nats.
    """
    counts, value = draw_counts(rows, tree, rng)
    pairs = (counts.pairs + _STATE_ROWS).transpose(0, 2, 1)
    cells = counts.cells + _LEAF_ROWS * shares[:, None]
    drawn = _with_shares(tree, *(np.maximum(rng.standard_gamma(each), SMALLEST) for each in (pairs, cells)))
    return drawn, _with_shares(tree, pairs, cells), value


def run(rows: DistinctRows, n_states: int, rng: np.random.Generator, *, n_sweep: int) -> Iterator[Tree]:
    """Yield the estimate of each sweep of a run over rows, given the tree of most information of their columns."""
    bins = rows.bins
    n_column, n_row = bins.code.shape
    parents = chow_liu(bins, np.arange(n_row), np.arange(n_column), defaults.ESS).parents
    tree, shares = started(parents, bins, n_states, rng), np.concatenate(shares_of_bins(bins))
    for _ in range(n_sweep):
        tree, estimate, _ = sweep(rows, shares, tree, rng)
        yield estimate


def _with_shares(tree: Tree, pairs: np.ndarray, cells: np.ndarray) -> Tree:
    """Return the tree with weights in proportion to pairs (n_column, n_state, n_state of the parent) and cells."""
    total = np.add.reduceat(cells, tree.bin_at[:-1], axis=0)
    emission = cells / np.repeat(total, np.diff(tree.bin_at), axis=0)
    return tree._replace(transition=np.ascontiguousarray(pairs / pairs.sum(axis=1, keepdims=True)), emission=emission)


def states_of(tree: Tree, bins: Bins, rng: np.random.Generator) -> np.ndarray:
    """Return a draw of each row's hidden states given its cells, intp (n_column, n_row)."""
    parents = tree.parents.tolist()
    transition = transitions(tree)
    emission = np.split(tree.emission, tree.bin_at[1:-1])
    found = np.empty(bins.code.shape, np.intp)
    for rows in blocks(bins.code.shape[1]):
        # the last row is that of code -1: a missing cell has any state
        evidence = [
            np.vstack([column_emission, np.ones(column_emission.shape[1])])[x]
            for column_emission, x in zip(emission, bins.code[:, rows], strict=True)
        ]
        found[:, rows] = drawn(parents, transition, upward(parents, transition, evidence), rng.random)
    return found


def transitions(tree: Tree) -> list[np.ndarray]:
    """Return the probabilities of each variable's states given its parent's, one row at roots."""
    ways = tree.transition.transpose(0, 2, 1)
    return [
        column_ways if parent >= 0 else column_ways[:1]
        for column_ways, parent in zip(ways, tree.parents.tolist(), strict=True)
    ]


def _node(tree: Tree, states: np.ndarray) -> Node:
    """Return the tree as what circuits are built from; leaves begin at the rows that drew their state."""
    n_state = tree.emission.shape[1]
    parents, transition = tree.parents.tolist(), transitions(tree)
    sums: list[list[Node]] = [[] for _ in parents]
    kids: list[list[int]] = [[] for _ in parents]
    for column, parent in enumerate(parents):
        if parent >= 0:
            kids[parent].append(column)
    roots = []
    # children first: the sums that a way leads to are made
    for column in tree.order[::-1].tolist():
        ways: list[Node] = []
        for k in range(n_state):
            leaf = ColumnLeaf(column, np.flatnonzero(states[column] == k))
            below = [sums[kid][k] for kid in kids[column]]
            ways.append(Product((leaf, *below)) if below else leaf)
        parent = parents[column]
        for q, weights in enumerate(transition[column]):
            drawn = states[column] if parent < 0 else states[column][states[parent] == q]
            n_rows = tuple(np.bincount(drawn, minlength=n_state).tolist())
            sums[column].append(ways[0] if n_state == 1 else Sum(tuple(ways), n_rows, weights=tuple(weights.tolist())))
        if parent < 0:
            roots.append(sums[column][0])
    return roots[0] if len(roots) == 1 else Product(tuple(roots))
