"""Mixtures of Chow-Liu trees: a latent root over trees of labels, each with edges of its own unless they share them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bayesjpt import defaults
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import ColumnLeaf, Dictionary, Node, Product, Sum, build_circuit
from bayesjpt.circuit.trees import Tree
from bayesjpt.structure import base
from bayesjpt.structure.base import Progress
from bayesjpt.structure.bins import bins_of, shares_of_bins, some_rows
from bayesjpt.structure.chow_liu import Bins
from bayesjpt.structure.tree_edges import best_tree
from bayesjpt.structure.tree_messages import log_probabilities
from bayesjpt.structure.tree_sampling import Mixture, rows_of, run
from bayesjpt.table.dataset import Dataset, in_memory
from bayesjpt.table.table import Table

EDGES = ("own", "shared")

_SWEEPS = 40
"""Gibbs sweeps: where the sampling of a fit begins hardly matters beyond."""

_EM_STEPS, _EM_ROWS = 20, 20_000
"""Steps before sampling goes on, and rows that they see at most: where sweeps begin hardly matters beyond."""

EM_STATE_ROWS = 0.1
"""Imaginary rows of each component while EM runs (as `bayesjpt.defaults.GAMMA`)."""


def learn_tree_mixture(
    table: Table | Dataset,
    rng: int | np.random.Generator | None = None,
    *,
    n_components: int = defaults.TREE_COMPONENTS,
    edges: str = "own",
    ess: float = defaults.ESS,
    sweeps: int = _SWEEPS,
    em_steps: int = _EM_STEPS,
    dictionary: Dictionary | None = None,
    progress: Progress | None = None,
) -> Circuit:
    """Return the circuit of a mixture of Chow-Liu trees learned from a table.

    Parameters
    ----------
    table : Table or Dataset
        Of a Dataset as many rows are taken as `bayesjpt.defaults.LEARN_ROWS`, chosen by a hash of their numbers.
        Columns of numbers are independent of the others within a component. Missing cells are summed out.
    rng : int, numpy.random.Generator or None
        Chooses the rows around which components begin, draws in sweeps, and the component of each row at the end.
    n_components : int, optional
        Trees.
    edges : str, optional
        ``own``: each component has the tree that suits its rows best; ``shared``: all have the same.
    ess : float, optional
        Imaginary rows of each component while trees are learned, spread as the table's own, by EM evenly; and of each
        split of the circuit.
    sweeps : int, optional
        Gibbs sweeps over a table without missing cells. The sampling of a fit goes on from where they end, with these
        trees.
    em_steps : int, optional
        Steps of EM, in place of sweeps, over a table with missing cells.
    dictionary : callable, optional
        ``(column) -> families`` of columns of numbers; by default every family that suits the column.
    progress : callable, optional
        ``progress(n_done, n_total)``: cells times sweeps, or steps of EM.

    Raises
    ------
    LearnerError
        Where a setting makes no sense, `rng` is not a Generator, or the table is empty.
    CircuitError
        Where `dictionary` offers a column no family.

    Notes
    -----
    A sweep draws the component of each row, then weights. The prior of a column given its parent is the Dirichlet
    around what they are in the whole table; how strong it is, is drawn, too. In the first half of the sweeps components
    take, now and then, the tree of the largest mutual information among their rows. The circuit begins at the posterior
    mean of its weights given the last components.

    A step of EM weighs each row by the probability that it belongs to a component, and gives each component the tree of
    the largest mutual information among rows so weighed, from 20,000 rows at most. It never makes complete
    rows less probable; of a pair of columns the rows count that have both.

    Cost: O(n_components) a sweep for each cell that is not its column's most frequent one, rows that are alike counted
    once, and O(n_components n_column^2 n_label^2) where trees are learned. O(n_components n_row (n_column n_label)^2) a
    step of EM.

    References
    ----------
    Meila and Jordan (2000). Learning with Mixtures of Trees. JMLR 1: MixTree, and with shared edges MixTreeS.

    Examples
    --------
    >>> import pandas as pd, bayesjpt as bj
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(2, size=400)
    >>> frame = pd.DataFrame({"a": a, "b": a ^ (rng.random(400) < 0.1), "c": a ^ (rng.random(400) < 0.2)}).astype(str)
    >>> table = bj.as_table(frame, other=False)
    >>> bj.learn_tree_mixture(table, rng, n_components=2)
    Circuit(1 latent, 0 likelihood, 10 hard, 4 product, 6 leaf; 0 parameters)
    """
    table = in_memory(table)
    rng = base.check_input(table, rng)
    n_components = base.check_count("n_components", n_components)
    edges = base.check_choice("edges", edges, EDGES)
    ess = base.check_positive("ess", ess)
    em_steps = base.check_count("em_steps", em_steps)
    sweeps = base.check_count("sweeps", sweeps)
    bins, _ = bins_of(table)
    is_labels = np.array([column.base == "category" for column in table.schema.columns])
    with base.one_thread():
        if (bins.code >= 0).all():
            rows = rows_of(bins, is_labels)
            states = run(rows, n_components, rng, edges=edges, ess=ess, n_sweep=sweeps)
            state = base.last_of(states, progress, bins.code.size, sweeps * bins.code.size)
            mixture, component = of_sampled(state.estimate), rows.distinct.in_table(state.tree)
        else:
            part = some_rows(bins, _EM_ROWS, rng)
            counter = PairCounter(part, is_labels, ess)
            steps = em_run(part, counter, started(part, n_components, rng), edges, em_steps)
            mixture = base.last_of(steps, progress, bins.code.size, em_steps * bins.code.size)
            component = _drawn(mixture, bins, rng)
    return build_circuit(_node(mixture, component, is_labels), table, dictionary, ess=ess)


@dataclass(frozen=True, eq=False)
class TreeMixture:
    """Trees over the bins of a table.

    Parameters
    ----------
    weights : float64 (n_component,)
    parents : list of intp (n_column,)
        Of each component; -1 at roots.
    tables : list of lists of float64 (n_bin of the parent, n_bin)
        Probabilities of each column given its parent, of one row at roots, for each component.
    """

    weights: np.ndarray
    parents: list[np.ndarray]
    tables: list[list[np.ndarray]]


def of_sampled(mixture: Mixture) -> TreeMixture:
    """Return a mixture as sweeps have it in the form of EM."""
    every = range(mixture.log_weight.size)
    parents = [mixture.trees.parents[:, k].astype(np.intp) for k in every]
    return TreeMixture(np.exp(mixture.log_weight), parents, [mixture.tables(k) for k in every])


def started(bins: Bins, n_component: int, rng: np.random.Generator) -> TreeMixture:
    """Return components without edges, each with the shares of the table moved towards a row drawn at random."""
    n_row = bins.code.shape[1]
    rows = rng.choice(n_row, n_component, replace=n_row < n_component)
    shares = shares_of_bins(bins)
    tables = []
    for row in rows.tolist():
        moved = [share.copy() for share in shares]
        for column, code in enumerate(bins.code[:, row].tolist()):
            if code >= 0:
                moved[column] *= 0.7
                moved[column][code] += 0.3
        tables.append([share[None, :] for share in moved])
    parents = [np.full(len(shares), -1, np.intp) for _ in range(n_component)]
    return TreeMixture(np.full(n_component, 1.0 / n_component), parents, tables)


def log_scores(mixture: TreeMixture, bins: Bins) -> np.ndarray:
    """Return the log of weight times probability of each row in each component, float64 (n_component, n_row), nats."""
    trees = [(parents.tolist(), tables) for parents, tables in zip(mixture.parents, mixture.tables, strict=True)]
    return log_probabilities(trees, bins.code) + np.log(mixture.weights)[:, None]


class PairCounter:
    """Counts weighed rows by the bins of any two columns, and finds trees.

    Parameters
    ----------
    bins : Bins
    is_labels : bool (n_column,)
        Which columns may have edges.
    ess : float
        Imaginary rows, spread evenly over the pairs of bins of any two columns.
    """

    def __init__(self, bins: Bins, is_labels: np.ndarray, ess: float):
        self.is_labels, self.ess = is_labels, ess
        n_column, n_row = bins.code.shape
        self.at = np.concatenate([[0], np.cumsum(bins.n_bin)]).astype(np.intp)
        width = np.repeat(bins.n_bin, bins.n_bin).astype(np.float64)
        self.imaginary = ess / (width[:, None] * width)
        # columns of `known`, one if every cell is, stand for the first bins: they hold what the other bins do not
        observed = bins.code >= 0
        known = np.ones((1, n_row), bool) if observed.all() else observed
        later = [bins.code[k] == b for k in range(n_column) for b in range(1, int(bins.n_bin[k]))]
        self.present = np.array([*known, *later], np.float64).T
        self.spread = np.zeros((self.present.shape[1], self.at[-1]))
        row = known.shape[0]
        for k in range(n_column):
            self.spread[k if known.shape[0] > 1 else 0, self.at[k]] = 1.0
            for b in range(1, int(bins.n_bin[k])):
                self.spread[row, self.at[k]] = -1.0
                self.spread[row, self.at[k] + b] = 1.0
                row += 1

    def counts(self, weights: np.ndarray) -> np.ndarray:
        """Return weighed rows by every two bins, imaginary rows added, float64 (sum n_bin, sum n_bin)."""
        found = self.present.T @ (self.present * weights[:, None])
        # first bins are differences of counts, which may round below 0
        return np.maximum(self.spread.T @ found @ self.spread, 0.0) + self.imaginary

    def information(self, counts: np.ndarray) -> np.ndarray:
        """Return the mutual information of every two columns times their rows, float64 (n_column, n_column), nats."""
        at = self.at[:-1]

        def summed(values: np.ndarray) -> np.ndarray:
            return np.add.reduceat(np.add.reduceat(values, at, axis=0), at, axis=1)

        def entropic(values: np.ndarray) -> np.ndarray:
            return values * np.log(values)

        of_rows = entropic(np.add.reduceat(counts, at, axis=1))
        of_columns = entropic(np.add.reduceat(counts, at, axis=0))
        joint, total = summed(entropic(counts)), summed(counts)
        of_rows, of_columns = np.add.reduceat(of_rows, at, axis=0), np.add.reduceat(of_columns, at, axis=1)
        return joint - of_rows - of_columns + entropic(total)

    def tree(self, information: np.ndarray) -> np.ndarray:
        """Return the parents in the tree of columns of labels with the most information, -1 at roots, intp."""
        return best_tree(information, self.is_labels)

    def tables(self, counts: np.ndarray, parents: np.ndarray) -> list[np.ndarray]:
        """Return the probabilities of each column given its parent, as `TreeMixture` has them."""
        found = []
        for column, parent in enumerate(parents.tolist()):
            column_bins = slice(self.at[column], self.at[column + 1])
            if parent >= 0:
                count = counts[self.at[parent] : self.at[parent + 1], column_bins]
            else:
                count = np.diagonal(counts)[column_bins][None, :] - np.diagonal(self.imaginary)[column_bins]
                count = count + self.ess / count.size
            found.append(count / count.sum(axis=1, keepdims=True))
        return found


def em_step(mixture: TreeMixture, bins: Bins, counter: PairCounter, edges: str) -> tuple[TreeMixture, float]:
    """Return the mixture after a step of EM, and the logarithm of what it makes larger, at the mixture before.

    That is the density of the rows' bins times the prior: each imaginary row multiplies by the probability of its bins
    in its component, or of its component.
    """
    score = log_scores(mixture, bins)
    value = np.logaddexp.reduce(score, axis=0)
    share = np.exp(score - value[None, :])
    common = None
    if edges == "shared":
        common = counter.tree(
            np.sum([counter.information(counter.counts(responsibility)) for responsibility in share], axis=0)
        )
    parents, tables = [], []
    for responsibility in share:
        counts = counter.counts(responsibility)  # one component's at a time: they are the largest arrays
        parents.append(counter.tree(counter.information(counts)) if common is None else common)
        tables.append(counter.tables(counts, parents[-1]))
    weights = share.sum(axis=1) + EM_STATE_ROWS
    return TreeMixture(weights / weights.sum(), parents, tables), float(value.sum()) + log_prior(mixture, counter.ess)


def em_run(bins: Bins, counter: PairCounter, mixture: TreeMixture, edges: str, n_step: int) -> Iterator[TreeMixture]:
    """Yield the mixture after each of some steps of EM."""
    for _ in range(n_step):
        mixture, _ = em_step(mixture, bins, counter, edges)
        yield mixture


def log_prior(mixture: TreeMixture, ess: float) -> float:
    """Return the logarithm of the probability of all imaginary rows."""
    of_components = EM_STATE_ROWS * float(np.log(mixture.weights).sum())
    return of_components + sum(
        ess * float(np.log(table).mean()) for component_tables in mixture.tables for table in component_tables
    )


def _drawn(mixture: TreeMixture, bins: Bins, rng: np.random.Generator) -> np.ndarray:
    """Return a draw of each row's component given its cells, intp (n_row,)."""
    score = log_scores(mixture, bins)
    # less the largest: at least one term is 1, and none overflows
    reached = np.cumsum(np.exp(score - score.max(axis=0)), axis=0)
    target = rng.random(score.shape[1]) * reached[-1]
    return np.minimum((reached <= target).sum(axis=0), score.shape[0] - 1)


def _node(mixture: TreeMixture, component: np.ndarray, is_labels: np.ndarray) -> Node:
    """Return the mixture as what circuits are built from; leaves of numbers begin at the rows of their component."""
    columns = np.flatnonzero(is_labels)
    place = np.full(is_labels.size + 1, -1, np.intp)  # the last: of no parent
    place[columns] = np.arange(columns.size)
    found: list[Node] = []
    n_rows = []
    for k, parents in enumerate(mixture.parents):
        rows = np.flatnonzero(component == k)
        parts: list[Node] = [ColumnLeaf(int(column), rows) for column in np.flatnonzero(~is_labels)]
        if columns.size:
            tables = [mixture.tables[k][column] for column in columns.tolist()]
            parts.insert(0, Tree(columns, place[parents[columns]], rows, tables))
        found.append(parts[0] if len(parts) == 1 else Product(tuple(parts)))
        n_rows.append(rows.size)
    if len(mixture.tables[0]) == 1 and mixture.tables[0][0].shape[1] == 1:
        return found[0]  # a single column of a single label: all components are the one leaf of it
    return found[0] if len(found) == 1 else Sum(tuple(found), tuple(n_rows), weights=tuple(mixture.weights.tolist()))
