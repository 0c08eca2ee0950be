"""What splits of cutset networks are worth, written from the definitions: rows one by one, every spanning tree.

Codes are those of bins, (column, row), -1 where missing; `leaf` columns are numbers of rows of it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tests.structure import naive_trees as naive


class Columns(NamedTuple):
    """Codes, bins of each column, which columns hold labels, and imaginary rows of pairs."""

    code: np.ndarray
    n_bin: Sequence[int]
    is_label: Sequence[bool]
    ess: float


def log_likelihood_alone(codes: Sequence[int]) -> float:
    """Return the log likelihood of the known codes of a column at their own shares."""
    known = [code for code in codes if code >= 0]
    return math.fsum(n * math.log(n / len(known)) for n in Counter(known).values())


def n_used(columns: Columns, column: int, rows: Sequence[int]) -> int:
    """Return how many bins the rows have, two of two labels in any case."""
    used = {int(code) for code in columns.code[column, rows] if code >= 0}
    return max(len(used), min(2, columns.n_bin[column]))


def edges_of_tree(columns: Columns, labels: Sequence[int], rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return the edges, of columns, of the spanning tree of most smoothed information: each tree is tried."""
    if len(labels) < 2:
        return []

    pairs = itertools.permutations(labels, 2)
    weight = {(a, b): naive.information(counts(columns, a, b, rows), columns.ess) for a, b in pairs}
    trees = (
        [(labels[a], labels[b]) for a, b in naive.edges_of(sequence, len(labels))]
        for sequence in itertools.product(range(len(labels)), repeat=len(labels) - 2)
    )
    return max(trees, key=lambda edges: math.fsum(weight[edge] for edge in edges))


def counts(columns: Columns, a: int, b: int, rows: Sequence[int]) -> np.ndarray:
    return naive.pair_counts(columns.code[a, rows], columns.code[b, rows], columns.n_bin[a], columns.n_bin[b])


def leaf_value(columns: Columns, leaf: Sequence[int], rows: Sequence[int], has_trees: bool) -> tuple[float, int]:
    """Return the log likelihood of rows under a leaf, and its probabilities: a tree of labels, numbers apart."""
    value = math.fsum(log_likelihood_alone(columns.code[k, rows].tolist()) for k in leaf)
    n_parameter = sum(n_used(columns, k, rows) - 1 for k in leaf)
    labels = [k for k in leaf if columns.is_label[k]]
    for a, b in edges_of_tree(columns, labels, rows) if has_trees else []:
        value += naive.information(counts(columns, a, b, rows), 0.0)
        # (r_a - 1) r_b of one given the other is r_a - 1 and what an edge adds, whichever way it points
        n_parameter += (n_used(columns, a, rows) - 1) * (n_used(columns, b, rows) - 1)
    return value, n_parameter


def likelihood_gain(
    columns: Columns, leaf: Sequence[int], split: int, ways: Sequence[Sequence[int]], has_trees: bool
) -> float:
    """Return the gain of a split of some rows into ways less BIC's price of all its probabilities but one."""
    rows = sorted(row for way in ways for row in way)
    left = [k for k in leaf if k != split or not columns.is_label[k]]
    before, n_before = leaf_value(columns, leaf, rows, has_trees)
    value, n_parameter = -before, -n_before - 1
    for way in (way for way in ways if len(way)):
        behind, n_behind = leaf_value(columns, left, way, has_trees)
        value += behind + len(way) * math.log(len(way) / len(rows))
        n_parameter += n_behind + 1
    if all(columns.is_label) and max(columns.n_bin) <= 2:
        return value
    return value - 0.5 * math.log(columns.code.shape[1]) * max(n_parameter - 1, 0)


def entropy_gain(columns: Columns, leaf: Sequence[int], split: int, ways: Sequence[Sequence[int]]) -> float:
    """Return the rows times the fall of the mean entropy, as published of two labels, else of other columns."""
    rows = sorted(row for way in ways for row in way)
    others = [k for k in leaf if k != split]
    is_binary = all(columns.is_label) and max(columns.n_bin) <= 2
    gained = -np.mean([log_likelihood_alone(columns.code[k, rows].tolist()) for k in (leaf if is_binary else others)])
    price = 0.0
    for k in others:
        gained += sum(log_likelihood_alone(columns.code[k, way].tolist()) for way in ways) / len(others)
        n_more = sum(n_used(columns, k, way) - 1 for way in ways if len(way)) - n_used(columns, k, rows) + 1
        price += 0.5 * math.log(columns.code.shape[1]) * n_more / len(others)
    return float(gained) - (0.0 if is_binary else price)


def held_out_score(
    columns: Columns, leaf: Sequence[int], rows: Sequence[int], held_out: Sequence[int], inside: np.ndarray
) -> float:
    """Return the log density of held-out rows under a leaf of some rows; `inside` are the table's in each region.

    Missing cells are summed out.

    `inside`: bool (column, row), of columns of numbers.
    """
    total = 0.0
    labels = [k for k in leaf if columns.is_label[k]]
    edges = edges_of_tree(columns, labels, rows)
    joined, parent = labels[:1], dict.fromkeys(labels, -1)
    while len(joined) < len(labels):
        a, b = next((a, b) for a, b in edges + [(b, a) for a, b in edges] if a in joined and b not in joined)
        parent[b] = a
        joined.append(b)
    parents = [labels.index(parent[k]) if parent[k] >= 0 else -1 for k in labels]
    of_labels = columns.code[labels]
    tables = naive.smoothed_tables(of_labels[:, rows], parents, [columns.n_bin[k] for k in labels], columns.ess)
    for row in held_out:
        # every completion of the row's missing labels
        codes = [
            [int(code)] if code >= 0 else range(columns.n_bin[k])
            for k, code in zip(labels, of_labels[:, row], strict=True)
        ]
        every = itertools.product(*codes)
        total += math.log(math.fsum(naive.tree_probability(complete, parents, tables) for complete in every))
        for k in (k for k in leaf if not columns.is_label[k] and columns.code[k, row] >= 0):
            same = columns.code[k] == columns.code[k, row]
            n_left = (same & inside[k]).sum()
            share = same[rows].sum() + columns.ess * n_left / inside[k].sum()
            total += math.log(share / ((columns.code[k, rows] >= 0).sum() + columns.ess) / n_left)
    return total
