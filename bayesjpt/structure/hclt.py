"""Hidden Chow-Liu trees: the tree of the columns, each of them behind a hidden variable with a few states.

      columns    a -- b -- c        Z_a -- Z_b -- Z_c      the tree of largest mutual information, of hidden states
                                     |      |      |
                                     a      b      c       each column given its own state

As a circuit: for each state q of its parent, the hidden variable of a column has a latent sum over its own states. The
sums of a column have the same children: a product a state, of the column's leaf and of the sums that depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bayesjpt import defaults
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import ColumnLeaf, Dictionary, Node, Product, Sum, build_circuit
from bayesjpt.structure import base
from bayesjpt.structure.base import Progress
from bayesjpt.structure.bins import bins_of, blocks, shares_of_bins, some_rows
from bayesjpt.structure.chow_liu import Bins, chow_liu
from bayesjpt.structure.tree_messages import Messages, drawn, expected, parents_first, upward
from bayesjpt.table.dataset import Dataset, in_memory
from bayesjpt.table.table import Table


def learn_hclt(
    table: Table | Dataset,
    rng: int | np.random.Generator | None = None,
    *,
    n_states: int = defaults.HCLT_STATES,
    em_steps: int = defaults.EM_STEPS,
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
        Chooses where the states begin, the rows of EM where a table is large, and the states of rows at its end.
    n_states : int, optional
        States of each hidden variable. Time and weights grow with its square.
    em_steps : int, optional
        Steps of EM from a start at random. Sampling goes on from where they end: a few are enough.
    dictionary : callable, optional
        ``(column) -> families`` of each column given its state; by default every family that suits the column.
    progress : callable, optional
        ``progress(n_done, n_total)``: cells times steps of EM.

    Raises
    ------
    LearnerError
        Where a setting makes no sense, `rng` is not a Generator, or the table is empty.
    CircuitError
        Where `dictionary` offers a column no family.

    Notes
    -----
    The tree is that of the columns themselves, by mutual information, numbers in eight bins. EM estimates

        p(x) = sum over z of prod_i p(z_i | z_parent(i)) p(x_i | z_i),

    numbers in their bins, from at most `defaults.EM_ROWS` rows, at the mode under a weak prior. The weights of the
    circuit begin there. Rows then draw their states, and leaves begin at what the rows of their state hold; numbers get
    the likelihoods of their column. A Gibbs sweep draws the states of a row together, given weights and leaves.

    Cost: O(n_column n_row n_states^2) a step, and a sweep likewise.

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
    em_steps = base.check_count("em_steps", em_steps)
    bins, _ = bins_of(table)
    parents = chow_liu(bins, np.arange(table.n_row), np.arange(table.n_column), defaults.ESS).parents.tolist()
    with base.one_thread():
        part = some_rows(bins, defaults.EM_ROWS, rng)
        tree = started(parents, part, n_states, rng)
        for step in range(em_steps):
            tree, _ = em_step(tree, part)
            if progress is not None:
                progress((step + 1) * bins.code.size, em_steps * bins.code.size)
        states = states_of(tree, bins, rng)
    return build_circuit(_node(tree, states), table, dictionary)


@dataclass(frozen=True, eq=False)
class HiddenTree:
    """A hidden tree over the bins of a table.

    Parameters
    ----------
    parents : list of int (n_column,)
        -1 for roots.
    transition : list of float64 (n_state of the parent, n_state)
        Of one row at roots.
    emission : list of float64 (n_state, n_bin)
    prior : list of float64 (n_bin,)
        Imaginary rows of each state in each bin of a column.
    """

    parents: list[int]
    transition: list[np.ndarray]
    emission: list[np.ndarray]
    prior: list[np.ndarray]

    def messages(self, code: np.ndarray) -> Messages:
        """Return what goes up the tree for some rows, int (n_column, n_row), -1 where missing."""
        evidence = []
        for own, cells in zip(self.emission, code, strict=True):
            padded = np.vstack([own.T, np.ones(own.shape[0])])  # the last row is that of code -1
            evidence.append(padded[cells])
        return upward(self.parents, self.transition, evidence)


def started(parents: list[int], bins: Bins, n_state: int, rng: np.random.Generator) -> HiddenTree:
    """Return a hidden tree whose states are spread at random around the shares of each column."""
    shares = shares_of_bins(bins)
    transition = [rng.dirichlet(np.ones(n_state), size=1 if parent < 0 else n_state) for parent in parents]
    emission = []
    for share in shares:
        spread = rng.dirichlet(0.3 + 2.0 * share, size=n_state)
        emission.append(0.96 * spread + 0.04 * share)
    prior = [defaults.EM_LEAF_ROWS * share for share in shares]
    return HiddenTree(parents, _shares([np.maximum(each, 1e-6) for each in transition]), emission, prior)


def em_step(tree: HiddenTree, bins: Bins) -> tuple[HiddenTree, float]:
    """Return the tree after a step of EM, and the logarithm of what it makes larger, at the tree before.

    That is the density of the rows' bins times the prior: each imaginary row multiplies by the probability of its bin
    or state.
    """
    pairs = [np.full_like(each, defaults.EM_STATE_ROWS) for each in tree.transition]
    cells = [np.tile(prior, (own.shape[0], 1)) for own, prior in zip(tree.emission, tree.prior, strict=True)]
    objective = log_prior(tree)
    for rows in blocks(bins.code.shape[1]):
        code = bins.code[:, rows]
        messages = tree.messages(code)
        posterior, found = expected(tree.parents, tree.transition, messages)
        objective += float(messages.log_value.sum())
        for column in range(len(tree.parents)):
            pairs[column] += found[column]
            in_bin = (code[column][:, None] == np.arange(cells[column].shape[1])).astype(np.float64)
            cells[column] += posterior[column].T @ in_bin
    return replace(tree, transition=_shares(pairs), emission=_shares(cells)), objective


def log_prior(tree: HiddenTree) -> float:
    """Return the logarithm of the probability of all imaginary rows."""
    of_states = sum(defaults.EM_STATE_ROWS * float(np.log(each).sum()) for each in tree.transition)
    return of_states + sum(float((np.log(e) @ p).sum()) for e, p in zip(tree.emission, tree.prior, strict=True))


def states_of(tree: HiddenTree, bins: Bins, rng: np.random.Generator) -> np.ndarray:
    """Return a draw of each row's hidden states given its cells, intp (n_column, n_row)."""
    found = np.empty(bins.code.shape, np.intp)
    for rows in blocks(bins.code.shape[1]):
        found[:, rows] = drawn(tree.parents, tree.transition, tree.messages(bins.code[:, rows]), rng.random)
    return found


def _shares(counts: list[np.ndarray]) -> list[np.ndarray]:
    return [count / count.sum(axis=1, keepdims=True) for count in counts]


def _node(tree: HiddenTree, states: np.ndarray) -> Node:
    """Return the tree as what circuits are built from; leaves begin at the rows that drew their state."""
    n_state = tree.emission[0].shape[0]
    sums: list[list[Node]] = [[] for _ in tree.parents]
    kids: list[list[int]] = [[] for _ in tree.parents]
    for column, parent in enumerate(tree.parents):
        if parent >= 0:
            kids[parent].append(column)
    roots = []
    for column in reversed(parents_first(tree.parents)):
        ways: list[Node] = []
        for k in range(n_state):
            leaf = ColumnLeaf(column, np.flatnonzero(states[column] == k))
            below = [sums[kid][k] for kid in kids[column]]
            ways.append(Product((leaf, *below)) if below else leaf)
        parent = tree.parents[column]
        for q, weights in enumerate(tree.transition[column]):
            here = states[column] if parent < 0 else states[column][states[parent] == q]
            n_rows = tuple(np.bincount(here, minlength=n_state).tolist())
            sums[column].append(ways[0] if n_state == 1 else Sum(tuple(ways), n_rows, weights=tuple(weights.tolist())))
        if parent < 0:
            roots.append(sums[column][0])
    return roots[0] if len(roots) == 1 else Product(tuple(roots))
