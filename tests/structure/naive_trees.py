"""Trees of labels written from their definition: counts pair by pair, every spanning tree, probabilities by tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np


def pair_counts(x: np.ndarray, y: np.ndarray, n_x: int, n_y: int) -> np.ndarray:
    """Return how often each pair of codes occurs in rows that have both (-1 is missing)."""
    out = np.zeros((n_x, n_y))
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        if a >= 0 and b >= 0:
            out[a, b] += 1.0
    return out


def information(counts: np.ndarray, ess: float) -> float:
    """Return n times the mutual information of a table of counts to which `ess` is added evenly."""
    counts = counts + ess / counts.size
    total = counts.sum()
    value = 0.0
    for a, b in itertools.product(range(counts.shape[0]), range(counts.shape[1])):
        if counts[a, b] > 0.0:
            value += counts[a, b] * math.log(counts[a, b] * total / (counts[a].sum() * counts[:, b].sum()))
    return value


def total_information(edges: Sequence[tuple[int, int]], weight: np.ndarray) -> float:
    return math.fsum(weight[a, b] for a, b in edges)


def best_tree(weight: np.ndarray) -> float:
    """Return the largest total weight of all spanning trees, each of them tried (Pruefer sequences)."""
    n = weight.shape[0]
    if n == 2:
        return float(weight[0, 1])
    return max(
        total_information(edges_of(sequence, n), weight) for sequence in itertools.product(range(n), repeat=n - 2)
    )


def edges_of(sequence: Sequence[int], n: int) -> list[tuple[int, int]]:
    """Return the edges of the tree that a Pruefer sequence stands for."""
    degree = [1 + list(sequence).count(node) for node in range(n)]
    edges = []
    for node in sequence:
        leaf = degree.index(1)
        edges.append((leaf, node))
        degree[leaf] -= 1
        degree[node] -= 1
    last = [node for node in range(n) if degree[node] == 1]
    return [*edges, (last[0], last[1])]


def tree_probability(row: Sequence[int], parents: Sequence[int], tables: Sequence[np.ndarray]) -> float:
    """Return the probability of a complete row: of each column given its parent, by ``tables[column][parent, own]``."""
    value = 1.0
    for column, parent in enumerate(parents):
        above = 0 if parent < 0 else row[parent]
        value *= tables[column][above, row[column]]
    return value


def smoothed_tables(codes: np.ndarray, parents: Sequence[int], n_code: Sequence[int], ess: float) -> list[np.ndarray]:
    """Return the posterior mean of each column's table, `ess` imaginary rows a label of the parent.

    Codes are (column, row), -1 where missing.
    """
    found = []
    for column, parent in enumerate(parents):
        above = np.zeros(codes.shape[1], int) if parent < 0 else codes[parent]
        n_above = 1 if parent < 0 else n_code[parent]
        counts = pair_counts(above, codes[column], n_above, n_code[column]) + ess / n_code[column]
        found.append(counts / counts.sum(axis=1, keepdims=True))
    return found
