"""Splits of joint probability trees from the definition: every candidate scored by itself, one row after the other."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from bayesjpt.structure.grow import Settings, Split, Tree
from bayesjpt.structure.ranks import rank_codes
from bayesjpt.table.table import Table


def number(table: Table, column: int, row: int) -> float:
    """Return a number as it is kept: standardised, in single precision."""
    facts = table.schema.columns[column]
    return float(np.float32((table.values[column, row] - facts.location) / facts.scale))


def impurity(table: Table, column: int, rows: list[int], gini: bool) -> float:
    """Return the impurity of a column summed over the rows in which it is observed."""
    rows = [row for row in rows if table.observed[column, row]]
    if not rows:
        return 0.0
    if table.schema.columns[column].base == "category":
        shares = [n / len(rows) for n in Counter(table.values[column, rows].tolist()).values()]
        return len(rows) * (1.0 - sum(p * p for p in shares) if gini else -sum(p * math.log(p) for p in shares))
    values = [number(table, column, row) for row in rows]
    mean = math.fsum(values) / len(values)
    return math.fsum((x - mean) ** 2 for x in values)


def sides(table: Table, split, rows: list[int]) -> tuple[list[int], list[int]]:
    """Return the rows of the left and the right child; those with a missing cell are dealt in turn.

    `split` is (column, function from a value to whether it goes left).
    """
    column, goes_left = split
    known = [row for row in rows if table.observed[column, row]]
    n_left = sum(goes_left(table.values[column, row]) for row in known)
    left, right, n_dealt = [], [], 0
    for row in rows:
        if table.observed[column, row]:
            here = goes_left(table.values[column, row])
        else:
            here = (n_dealt + 1) * n_left // len(known) > n_dealt * n_left // len(known)
            n_dealt += 1
        (left if here else right).append(row)
    return left, right


def score(table: Table, split, rows: list[int], settings: Settings) -> float:
    """Return the mean relative reduction of impurity, times the share of rows whose split cell is observed."""
    column, goes_left = split
    known = [row for row in rows if table.observed[column, row]]
    left = [row for row in known if goes_left(table.values[column, row])]
    right = [row for row in known if not goes_left(table.values[column, row])]
    targets = [target for target in settings.targets if target != column]
    total = 0.0
    for target in targets:
        before = impurity(table, target, known, settings.gini)
        if before > 1e-10 * len(rows):
            after = sum(impurity(table, target, part, settings.gini) for part in (left, right))
            total += 1.0 - after / before
    return total / max(len(targets), 1) * len(known) / len(rows)


def candidates(table: Table, rows: list[int], settings: Settings) -> Iterator[tuple]:
    """Yield every split that is to be tried, whether or not its children are large enough."""
    for column in settings.features:
        known = [row for row in rows if table.observed[column, row]]
        if table.schema.columns[column].base == "category":
            for labels in label_subsets(table, column, known, settings):
                yield column, frozenset(labels).__contains__
            continue
        codes = rank_codes(table.values[column], table.observed[column], settings.max_codes).code
        here = sorted({int(codes[row]) for row in known})
        for below in here[:-1]:
            largest = max(table.values[column, row] for row in known if codes[row] <= below)
            yield column, lambda x, largest=largest: bool(x <= largest)


def label_subsets(table: Table, column: int, known: list[int], settings: Settings) -> Iterator[list[float]]:
    """Yield every label by itself, and the beginnings of one order for each other target."""
    values = table.values[column]
    labels = sorted({float(values[row]) for row in known})
    yield from ([label] for label in labels)
    for target in (target for target in settings.targets if target != column):
        rows = [row for row in known if table.observed[target, row]]
        key = dict.fromkeys(labels, 0.0)
        common = Counter(sorted(table.values[target, rows].tolist())).most_common(1)
        for label in labels:
            own = [row for row in rows if values[row] == label]
            if own and table.schema.columns[target].base == "category":
                key[label] = sum(table.values[target, row] == common[0][0] for row in own) / len(own)
            elif own:
                key[label] = math.fsum(number(table, target, row) for row in own) / len(own)
        order = sorted(labels, key=key.__getitem__)
        yield from (order[:n] for n in range(1, len(order)))


def allowed(table: Table, split, rows: list[int], settings: Settings) -> bool:
    """Return whether the split leaves both children enough rows."""
    return min(map(len, sides(table, split, rows))) >= settings.min_rows


def best_score(table: Table, rows: list[int], settings: Settings) -> float:
    """Return the score of the best split, 0 where none is allowed."""
    scores = [
        score(table, split, rows, settings)
        for split in candidates(table, rows, settings)
        if allowed(table, split, rows, settings)
    ]
    return max(scores, default=0.0)


def condition(split: Split):
    """Return what a Split stands for: (column, function from a value to whether it goes left)."""
    if split.labels:
        return split.column, frozenset(map(float, split.labels)).__contains__
    return split.column, lambda x: bool(x < split.threshold)


def rows_of_nodes(table: Table, tree: Tree) -> Iterator[tuple[int, list[int]]]:
    """Yield every node's position in the tree and its rows, by following the conditions from the root."""
    stack = [(0, list(range(table.n_row)))]
    while stack:
        position, rows = stack.pop()
        yield position, rows
        node = tree.nodes[position]
        if isinstance(node, Split):
            left, right = sides(table, condition(node), rows)
            stack += [(node.left, left), (node.right, right)]


def depths(tree: Tree) -> list[int]:
    """Return the number of splits above every leaf."""
    found, stack = [], [(0, 0)]
    while stack:
        position, depth = stack.pop()
        node = tree.nodes[position]
        if isinstance(node, Split):
            stack += [(node.left, depth + 1), (node.right, depth + 1)]
        else:
            found.append(depth)
    return found


def neighbours(values: np.ndarray) -> list[tuple[float, float]]:
    """Return the pairs of distinct values that follow each other."""
    return list(pairwise(np.unique(values).tolist()))


def loss(table: Table, target: int, rows: list[int], row: int, gini: bool) -> float:
    """Return what a row loses by the forecast that other rows, all observed, make of a column."""
    facts = table.schema.columns[target]
    if facts.base != "category":
        return (number(table, target, row) - math.fsum(number(table, target, k) for k in rows) / len(rows)) ** 2
    counts = Counter(table.values[target, rows].tolist())
    share = [(counts[code] + 2.0 * facts.frequencies[code]) / (len(rows) + 2.0) for code in range(facts.n_label)]
    own = share[int(table.values[target, row])]
    return sum(p * p for p in share) - 2.0 * own + 1.0 if gini else -math.log(own)


def worth(table: Table, split, trained: list[int], held: list[int], settings: Settings) -> float:
    """Return the mean over targets of what a split saves held-out rows, over the node's impurity per training row."""
    column, goes_left = split
    total = 0.0
    targets = [target for target in settings.targets if target != column]
    for target in targets:
        known = [row for row in trained if table.observed[column, row] and table.observed[target, row]]
        before = impurity(table, target, known, settings.gini)
        if before <= 1e-10 * len(trained):
            continue
        for row in held:
            if table.observed[column, row] and table.observed[target, row]:
                side = goes_left(table.values[column, row])
                own = [k for k in known if goes_left(table.values[column, k]) == side]
                if own:
                    saved = loss(table, target, known, row, settings.gini) - loss(
                        table, target, own, row, settings.gini
                    )
                    total += saved * len(known) / before
    return total / max(len(targets), 1)


def pruned(table: Table, tree: Tree, held: list[int], settings: Settings, position: int = 0) -> tuple[float, list]:
    """Return what the subtree of a node is worth, and its leaves from left to right as ascending lists of rows."""
    node, trained = tree.nodes[position], tree.rows(position).tolist()
    if isinstance(node, Split):
        _, goes_left = split = condition(node)
        n_left, n_dealt = tree.n_rows(node.left), 0
        sides: tuple[list[int], list[int]] = ([], [])
        for row in held:
            if table.observed[node.column, row]:
                left = goes_left(table.values[node.column, row])
            else:
                left = (n_dealt + 1) * n_left // node.n_rows > n_dealt * n_left // node.n_rows
                n_dealt += 1
            sides[0 if left else 1].append(row)
        children = zip((node.left, node.right), sides, strict=True)
        below = [pruned(table, tree, rows, settings, child) for child, rows in children]
        total = worth(table, split, trained, held, settings) + below[0][0] + below[1][0]
        if total > 0.0:
            return total, below[0][1] + below[1][1]
    return 0.0, [sorted(trained + held)]
