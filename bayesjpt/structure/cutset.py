"""Cutset networks: a tree of splits (OR tree) whose leaves are Chow-Liu trees, learned by three ways to choose a split.

      select       a split is                                        from
      random       any column that divides the rows                  XCNet: Di Mauro, Vergari, Basile, Esposito (2017)
      entropy      where columns become least uncertain              LearnCNet: Rahman, Kothalkar and Gogate (2014)
      likelihood   where rows become most probable, if by enough     dCSN: Di Mauro, Vergari and Esposito (2015)

Columns of labels are split into all of their labels, columns of numbers at a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bayesjpt import defaults
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import ColumnLeaf, Dictionary, Node, Product, Sum, build_circuit
from bayesjpt.circuit.networks import expand
from bayesjpt.circuit.paths import Condition, Division, Region, divided, halves
from bayesjpt.circuit.trees import Tree
from bayesjpt.errors import LearnerError
from bayesjpt.families.label import label_groups
from bayesjpt.structure import base
from bayesjpt.structure.base import Progress
from bayesjpt.structure.chow_liu import chow_liu
from bayesjpt.structure.cutset_leaves import Leaves, Value
from bayesjpt.structure.cutset_limits import Settings, held_out_rows, least_columns, least_rows
from bayesjpt.structure.label_networks import Growth, grow_network, is_grown_here
from bayesjpt.table.dataset import Dataset, in_memory
from bayesjpt.table.table import Table

SELECTS = ("random", "entropy", "likelihood")
LEAVES = ("chow_liu", "bernoulli", "dictionary")


def learn_cutset(
    table: Table | Dataset,
    rng: int | np.random.Generator | None = None,
    *,
    select: str = "random",
    leaf: str = "chow_liu",
    min_rows: float | None = None,
    min_columns: int | None = None,
    ess: float = defaults.ESS,
    prune: float = 0.0,
    subspace: float = 1.0,
    dictionary: Dictionary | None = None,
    progress: Progress | None = None,
) -> Circuit:
    """Return the circuit of a cutset network learned from a table.

    Parameters
    ----------
    table : Table or Dataset
        Of a Dataset as many rows are taken as `bayesjpt.defaults.LEARN_ROWS`, chosen by a hash of their numbers.
        Missing cells are allowed: see Notes.
    rng : int, numpy.random.Generator or None
        Chooses columns and thresholds (``random``), the way of rows without the cell that is split, and the rows held
        out by `prune`.
    select : str, optional
        How the column of a split is chosen. ``random``: any that divides the rows; the fastest, and the best where
        many networks are averaged. ``entropy``: that which lowers the mean entropy of all columns most.
        ``likelihood``: that which makes the rows most probable, each side with a leaf of its own, and none where that
        does not make up for half the logarithm of the rows (BIC); takes n_column times as long. With other columns
        than of two labels both judgements charge so much for each probability that a split adds.
    leaf : str, optional
        What leaves are: ``chow_liu`` trees; ``bernoulli``, all columns of labels apart; or ``dictionary``, the
        likelihoods of each column, as other learners have. Columns of numbers have those in any case.
    min_rows : int or float, optional
        Sub-populations of at most so many rows are not divided: a number of rows, or a share of the table's. Unless
        given 300 of a table of labels; with columns of numbers 25 rows or 1 %, whichever is more, since splits alone
        say what numbers have to do with other columns.
    min_columns : int, optional
        Neither are those with at most so many columns that are not split yet, numbers counted always: 4 of a table of
        labels, 1 with columns of numbers.
    ess : float, optional
        Imaginary rows (smoothing): of any two columns whose dependence is judged, and of each split of the circuit,
        whose weights begin at their posterior mean.
    prune : float, optional
        Share of rows, in [0, 1), held out while the network grows. Splits that do not make them more probable are
        taken back, from the leaves upwards; those to which none of them comes are kept. Leaves are then filled with all
        rows.
    subspace : float, optional
        Share of the columns, in (0, 1], among which ``entropy`` and ``likelihood`` choose, drawn anew for each
        sub-population: networks of an ensemble then differ more, and cost less. Below 1 refused with ``random``.
    dictionary : callable, optional
        ``(column) -> families`` of columns of numbers, and of all columns where `leaf` is ``dictionary``; by default
        every family that suits the column.
    progress : callable, optional
        ``progress(n_done, n_total)``: cells that belong to a leaf already, and all cells.

    Raises
    ------
    LearnerError
        Where a setting makes no sense, `rng` is not a Generator, the table is empty, or `prune` holds out no row.
    CircuitError
        Where `dictionary` offers a column no family.

    Notes
    -----
    Rows are judged by bins: labels, and for numbers eight intervals that hold equally many of them. Thresholds of
    ``entropy`` and ``likelihood`` lie between bins, those of ``random`` between any two values. A column of labels is
    split once on a path, one of numbers as often as it is chosen. A constant column is never split.

    A row without the cell that is split goes to one of the sides at random, in proportion to the others. That serves
    to find the structure; when the circuit is sampled, such rows have no fixed way.

    Cost: of ``random``, O(n_column^2 n_row / 64) for the trees at the leaves; of ``likelihood``, n_column times that a
    level. Labels without missing cells, two for the judgements, are grown in compiled code; other tables, and those
    that are pruned, take tens of times as long.

    References
    ----------
    Di Mauro, Vergari, Basile, Esposito (2017). Fast and Accurate Density Estimation with Extremely Randomized Cutset
    Networks. ECML PKDD. Rahman, Kothalkar, Gogate (2014). Cutset Networks. ECML PKDD. Di Mauro, Vergari, Esposito
    (2015). Learning Accurate Cutset Networks by Exploiting Decomposability. AI*IA. Random subspaces: Di Mauro, Vergari,
    Basile (2015). Learning Bayesian Random Cutset Forests. ISMIS.

    Examples
    --------
    >>> import pandas as pd, bayesjpt as bj
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(2, size=400)
    >>> frame = pd.DataFrame({"a": a, "b": a ^ (rng.random(400) < 0.1), "c": rng.integers(2, size=400)}).astype(str)
    >>> table = bj.as_table(frame, other=False)
    >>> bj.learn_cutset(table, rng, min_rows=200, min_columns=1)
    Circuit(0 latent, 0 likelihood, 7 hard, 5 product, 6 leaf; 0 parameters)
    """
    table = in_memory(table)
    rng = base.check_input(table, rng)
    settings = Settings(
        select=base.check_choice("select", select, SELECTS),
        leaf=base.check_choice("leaf", leaf, LEAVES),
        min_rows=least_rows(table, min_rows),
        min_columns=least_columns(table, min_columns),
        ess=base.check_positive("ess", ess),
        subspace=base.check_positive_share("subspace", subspace),
    )
    if settings.subspace < 1.0 and select == "random":
        raise LearnerError(f"subspace = {subspace!r} with select = 'random'", "'entropy' or 'likelihood', which choose")
    n_out = held_out_rows(table, base.check_share("prune", prune))
    learner = _Learner(table, settings, rng, progress)
    growth = learner.growth()
    if growth is not None and n_out == 0 and is_grown_here(learner.bins, growth.select):
        network, count = grow_network(learner.bins, growth, rng)
        if progress is not None:
            progress(table.n_row, table.n_row)
        return expand(network, table.schema, count, settings.ess).circuit
    rows = np.arange(table.n_row)
    if n_out > 0:
        order = rng.permutation(table.n_row)
        root = learner.grown(np.sort(order[n_out:]))
        learner.pruned(root, np.sort(order[:n_out]))
        learner.filled(root, rows)
    else:
        root = learner.grown(rows)
    return build_circuit(learner.node(root), table, dictionary, ess=settings.ess)


@dataclass(eq=False)
class _Part:
    """A sub-population while the network grows: a leaf until it has children.

    Parameters
    ----------
    rows : intp (n,)
    columns : tuple of int
        That may be split.
    region : Region
        What the splits above leave of each column.
    split, children : optional
        What divides it, and into what.
    value : Value, optional
        Of a leaf of all rows, once it has been asked for.
    """

    rows: np.ndarray
    columns: tuple[int, ...]
    region: Region
    split: _Split | None = None
    children: tuple[_Part, ...] = ()
    value: Value | None = None


@dataclass(frozen=True)
class _Split:
    """A division of rows by a column: into groups of labels, or at a threshold."""

    column: int
    condition: Condition | Division
    regions: tuple[Region, ...]


class _Learner:
    """Grows, prunes and fills a network over one table."""

    def __init__(self, table: Table, settings: Settings, rng: np.random.Generator, progress: Progress | None):
        self.table, self.settings, self.rng, self.progress = table, settings, rng, progress
        self.columns = table.schema.columns
        self.leaves = Leaves(table, settings.leaf == "chow_liu", settings.ess)
        self.is_labels, self.bins, self.cuts = self.leaves.is_labels, self.leaves.bins, self.leaves.cuts
        # of two labels alone splits are judged as published: what leaves have is not charged
        self.is_binary = bool(self.is_labels.all() and (self.bins.n_bin <= 2).all())

    # --- growth

    def growth(self) -> Growth | None:
        """Return settings for compiled growth, of labels without missing cells; None for other tables and leaves."""
        settings = self.settings
        if not self.is_labels.all() or not self.table.observed.all() or settings.leaf == "dictionary":
            return None
        of_leaves = SELECTS.index(settings.select), settings.leaf == "chow_liu"
        return Growth(*of_leaves, settings.min_rows, settings.min_columns, settings.ess, settings.subspace)

    def grown(self, rows: np.ndarray) -> _Part:
        """Return the network of some rows."""
        root = _Part(rows, tuple(range(len(self.columns))), {})
        pending, n_done = [root], 0
        while pending:
            part = pending.pop()
            part.split = self._chosen(part) if self._is_large(part) else None
            if part.split is not None:
                part.children = self._children(part, part.split)
                pending += reversed(part.children)
            elif self.progress is not None:
                n_done += part.rows.size
                self.progress(n_done, rows.size)
        return root

    def _is_large(self, part: _Part) -> bool:
        return part.rows.size > self.settings.min_rows and len(part.columns) > self.settings.min_columns

    def _children(self, part: _Part, split: _Split) -> tuple[_Part, ...]:
        left = self._left(part, split)
        sides = self._sides(part.rows, split)
        return tuple(
            _Part(rows, left, region)
            for rows, region in zip(self._divided(part.rows, sides, split), split.regions, strict=True)
        )

    def _sides(self, rows: np.ndarray, split: _Split) -> np.ndarray:
        """Return int (n,): the side that each row's cell says, -1 where it is missing."""
        if isinstance(split.condition, Division):
            codes = self.bins.code[split.column, rows].astype(np.intp)
            place = np.full(len(label_groups(self.columns[split.column])) + 1, -1)
            for side, region in enumerate(split.regions):
                (code, *_) = region[split.column]
                place[_group_of(self.columns[split.column], int(code))] = side
            return place[codes]
        above = (self.table.values[split.column, rows] >= split.condition.threshold).astype(np.intp)
        return np.where(self.table.observed[split.column, rows], above, -1)

    def _divided(self, rows: np.ndarray, sides: np.ndarray, split: _Split) -> Iterator[np.ndarray]:
        """Yield the rows of each side; rows without a side go where others go, at random."""
        missing = np.flatnonzero(sides < 0)
        if missing.size:
            sides = sides.copy()
            known = sides[sides >= 0]
            sides[missing] = self.rng.choice(known, missing.size) if known.size else 0
        for side in range(len(split.regions)):
            yield rows[sides == side]

    def _split_at(self, part: _Part, column: int, threshold: float = math.nan) -> _Split | None:
        """Return the split of a column, None where its conditions would leave one side nothing."""
        facts = self.columns[column]
        if self.is_labels[column]:
            division = Division(column, label_groups(facts))
            regions = divided(part.region, division, facts)
            return None if regions is None else _Split(column, division, tuple(regions))
        condition = Condition(column, float(threshold))
        regions = halves(part.region, condition, facts)
        return None if regions is None else _Split(column, condition, tuple(regions))

    # --- which split

    def _chosen(self, part: _Part) -> _Split | None:
        if self.settings.select == "random":
            return self._random(part)
        return self._best(part)

    def _random(self, part: _Part) -> _Split | None:
        for column in self.rng.permutation(part.columns).tolist():
            if self.is_labels[column]:
                known = self.bins.code[column, part.rows]
                known = known[known >= 0]
                if known.size and (known != known[0]).any():
                    return self._split_at(part, column)
                continue
            values = self.table.values[column, part.rows[self.table.observed[column, part.rows]]]
            if values.size and values.min() < values.max():
                split = self._split_at(part, column, self.rng.choice(values[values > values.min()]))
                if split is not None:
                    return split
        return None

    def _candidates(self, part: _Part) -> Iterator[tuple[_Split, np.ndarray]]:
        """Yield splits that divide the rows, and the side of each row."""
        columns = part.columns
        if self.settings.subspace < 1.0:
            n = math.ceil(self.settings.subspace * len(columns))
            columns = sorted(self.rng.permutation(columns)[:n].tolist())
        for column in columns:
            thresholds = [math.nan] if self.is_labels[column] else self.cuts[column].tolist()
            for threshold in thresholds:
                split = self._split_at(part, column, threshold)
                if split is None:
                    continue
                sides = self._sides(part.rows, split)
                known = sides[sides >= 0]
                if known.size and (known != known[0]).any():
                    yield split, sides

    def _best(self, part: _Part) -> _Split | None:
        gain, least = self._entropy_gain, 0.0
        if self.settings.select == "likelihood":
            gain, least = self._likelihood_gain, 0.5 * math.log(part.rows.size)
        best, found = least, None
        for split, sides in self._candidates(part):
            value = gain(part, split, sides)
            if value > best:
                best, found = value, split
        return found

    def _entropy_gain(self, part: _Part, split: _Split, sides: np.ndarray) -> float:
        """Return the rows times the fall of the mean entropy of columns, each by itself.

        Of two labels alone as published: the mean of all columns before, and of those that are left behind a split.
        Else, since columns of many labels are uncertain by themselves, of the other columns alone before and behind,
        less BIC's price of their probabilities.
        """
        left = self._left(part, split)
        ways = self._ways(part.rows, sides, split)
        if self.is_binary:
            before = self.leaves.alone(self._known(part.rows, sides), part.columns).log_likelihood / len(part.columns)
            return sum(self.leaves.alone(way, left).log_likelihood / max(len(left), 1) for way in ways) - before
        others = tuple(column for column in left if column != split.column)
        before = self.leaves.alone(self._known(part.rows, sides), others)
        behind = [self.leaves.alone(way, others) for way in ways]
        gained = sum(value.log_likelihood for value in behind) - before.log_likelihood
        n_more = sum(value.n_parameter for value in behind) - before.n_parameter
        return (gained - 0.5 * math.log(part.rows.size) * n_more) / max(len(others), 1)

    def _likelihood_gain(self, part: _Part, split: _Split, sides: np.ndarray) -> float:
        """Return what a split, with a leaf on each side, adds to the log likelihood of the rows under one leaf.

        Of two labels alone as published: BIC's price of a split is that of one probability, and `_best` asks for it.
        Else every further probability has its price too: a split into many ways adds many, and so does one beside
        columns of many labels.
        """
        left = self._left(part, split)
        ways = self._ways(part.rows, sides, split)
        counts = np.array([way.size for way in ways])
        before = self._value_before(part, sides)
        behind = [self.leaves.value(way, left) for way in ways]
        value = float((counts * np.log(counts / counts.sum())).sum())
        value += sum(one.log_likelihood for one in behind)
        value -= before.log_likelihood
        if self.is_binary:
            return value
        n_more = len(ways) - 1 + sum(one.n_parameter for one in behind) - before.n_parameter
        return value - 0.5 * math.log(part.rows.size) * max(n_more - 1, 0)

    def _value_before(self, part: _Part, sides: np.ndarray) -> Value:
        """Return the value of one leaf of the rows that a split is judged by; that of all rows is found once."""
        known = self._known(part.rows, sides)
        if known.size < part.rows.size:
            return self.leaves.value(known, part.columns)
        if part.value is None:
            part.value = self.leaves.value(part.rows, part.columns)
        return part.value

    def _left(self, part: _Part, split: _Split) -> tuple[int, ...]:
        """Return the columns that may be split below: of labels nothing is left, numbers may be cut again."""
        return tuple(c for c in part.columns if c != split.column or not self.is_labels[c])

    def _known(self, rows: np.ndarray, sides: np.ndarray) -> np.ndarray:
        # a split is judged by rows that have its cell, before and behind it: fewer rows would be a gain by themselves
        return rows if (sides >= 0).all() else rows[sides >= 0]

    def _ways(self, rows: np.ndarray, sides: np.ndarray, split: _Split) -> list[np.ndarray]:
        """Return the rows of each side that has any."""
        found = [rows[sides == side] for side in range(len(split.regions))]
        return [way for way in found if way.size]

    # --- pruning

    def pruned(self, root: _Part, held_out: np.ndarray) -> None:
        """Take back splits that do not make held-out rows more probable, from the leaves upwards.

        A row without the cell that is split is as probable as all sides together; below, it counts on each side by the
        probability that it belongs there. Splits that no held-out row comes to are kept: nothing speaks against them.
        """
        arriving = {id(root): (held_out, np.ones(held_out.size))}
        scores = {id(root): self._scores(root, held_out)}
        order, log_ways = [root], {}
        # parents first: the list grows while it is walked
        for part in order:
            if part.split is not None:
                rows, share = arriving[id(part)]
                log_ways[id(part)] = log_way = _log_way(part, self._sides(rows, part.split))
                comes = np.isfinite(log_way)
                scores |= {id(one): self._scores(one, rows[to]) for one, to in zip(part.children, comes, strict=True)}
                joint = _joint(log_way, part, scores)
                # as in EM: a split that gains by these shares, and so by Jensen's inequality, gains of the whole rows
                share = share * np.exp(joint - np.logaddexp.reduce(joint, axis=0))
                for child, to, of_child in zip(part.children, comes, share, strict=True):
                    arriving[id(child)] = rows[to], of_child[to]
                order += part.children
        # children first: what rows are worth below is known when their split is judged
        for part in reversed(order):
            rows, share = arriving[id(part)]
            if part.split is not None and rows.size:
                below = np.logaddexp.reduce(_joint(log_ways[id(part)], part, scores), axis=0)
                if share @ (below - scores[id(part)]) <= 0.0:
                    part.split, part.children = None, ()
                else:
                    scores[id(part)] = below

    def _scores(self, part: _Part, held_out: np.ndarray) -> np.ndarray:
        return self.leaves.held_out_scores(part.columns, part.region, part.rows, held_out)

    def filled(self, root: _Part, rows: np.ndarray) -> None:
        """Give the parts of a network other rows."""
        root.rows = rows
        pending = [root]
        while pending:
            part = pending.pop()
            if part.split is not None:
                sides = self._sides(part.rows, part.split)
                for child, child_rows in zip(part.children, self._divided(part.rows, sides, part.split), strict=True):
                    child.rows = child_rows
                pending += part.children

    # --- nodes

    def node(self, root: _Part) -> Node:
        """Return the network as what circuits are built from."""
        made: dict[int, Node] = {}
        order = [root]
        for part in order:
            order += part.children
        for part in reversed(order):
            if part.split is None:
                made[id(part)] = self._leaf(part)
            else:
                children = tuple(made[id(child)] for child in part.children)
                n_rows = tuple(child.rows.size for child in part.children)
                made[id(part)] = Sum(children, n_rows, part.split.condition)
        return made[id(root)]

    def _leaf(self, part: _Part) -> Node:
        of_labels = np.flatnonzero(self.is_labels)
        free = np.array([c for c in of_labels.tolist() if c in set(part.columns)], np.intp)
        fixed = np.setdiff1d(of_labels, free)
        alone = [ColumnLeaf(int(k), part.rows) for k in np.flatnonzero(~self.is_labels)]
        if self.settings.leaf == "dictionary":
            alone += [ColumnLeaf(int(k), part.rows) for k in free]
            free = free[:0]
        parents = np.full(free.size, -1, np.int64)
        if self.settings.leaf == "chow_liu" and free.size > 1:
            parents = chow_liu(self.bins, part.rows, free, self.settings.ess).parents
        columns = np.concatenate([free, fixed]).astype(np.int64)
        nodes: list[Node] = list(alone)
        if columns.size:
            nodes.insert(0, Tree(columns, np.concatenate([parents, np.full(fixed.size, -1)]), part.rows))
        return nodes[0] if len(nodes) == 1 else Product(tuple(nodes))


def _log_way(part: _Part, sides: np.ndarray) -> np.ndarray:
    """Return the log share of each child, float64 (n_child, n_row), -inf where a row's cell says another; nats."""
    # one row more for each way, as circuits start: no logarithm of 0
    n = np.array([[child.rows.size] for child in part.children]) + 1.0
    comes = (sides < 0) | (sides == np.arange(n.size)[:, None])
    return np.where(comes, np.log(n / n.sum()), -np.inf)


def _joint(log_way: np.ndarray, part: _Part, scores: dict[int, np.ndarray]) -> np.ndarray:
    """Return `_log_way` with the scores of the rows that come to each child added."""
    joint = log_way.copy()
    joint[np.isfinite(joint)] += np.concatenate([scores[id(child)] for child in part.children])
    return joint


def _group_of(column, code: int) -> int:
    """Return the number of the group that holds a code."""
    return next(number for number, codes in enumerate(label_groups(column)) if code in codes)
