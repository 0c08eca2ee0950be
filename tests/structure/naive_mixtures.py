"""Hidden trees and mixtures of trees from their definition: every hidden state, every row, one at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

Tables = Sequence[np.ndarray]
"""One array (state or bin of the parent, own) a column, of one row at roots."""


def hidden_states(n_column: int, n_state: int) -> Iterator[tuple[int, ...]]:
    return itertools.product(range(n_state), repeat=n_column)


def joint(row: Sequence[int], states: Sequence[int], parents: Sequence[int], transition: Tables, emission: Tables):
    """Return the probability of a row of bins (-1 is missing) and of its hidden states together."""
    value = 1.0
    for column, (state, parent) in enumerate(zip(states, parents, strict=True)):
        value *= transition[column][states[parent] if parent >= 0 else 0, state]
        if row[column] >= 0:
            value *= emission[column][state, row[column]]
    return value


def hidden_tree_probability(row, parents, transition: Tables, emission: Tables) -> float:
    n_state = emission[0].shape[0]
    return math.fsum(joint(row, z, parents, transition, emission) for z in hidden_states(len(parents), n_state))


def weighted_counts(rows, weights, a: int, b: int, n_bin: Sequence[int], ess: float) -> np.ndarray:
    """Return the weights of rows in each pair of bins of two columns, `ess` added evenly."""
    out = np.full((n_bin[a], n_bin[b]), ess / (n_bin[a] * n_bin[b]))
    for row, weight in zip(rows, weights, strict=True):
        if row[a] >= 0 and row[b] >= 0:
            out[row[a], row[b]] += weight
    return out


def missing_summed(row: Sequence[int], n_bin: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all complete rows that a row with missing cells may be."""
    yield from itertools.product(*([x] if x >= 0 else range(n) for x, n in zip(row, n_bin, strict=True)))
