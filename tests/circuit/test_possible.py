"""The column that decides at each split: all columns of a word at once, against columns one by one."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.possible import Possible, _layout

N_CODE = np.array([2, 1, 3, 40, 30, 64, 2, 70, 5])
"""Columns that share words, that fill one, and that need two."""


def test_columns_of_a_word_are_judged_as_one_by_one(rng):
    n_leaf, n_split = 60, 400
    word, shift = _layout(N_CODE)
    flagged = np.array([0, 2, 3, 4, 5, 6, 7, 9, 10])
    bits = np.zeros((n_leaf, int(word[-1])), np.uint64)
    for place, n in enumerate(N_CODE.tolist()):
        for node in range(n_leaf):
            # few codes, so that nodes are apart in some columns, and now and then none
            for code in np.flatnonzero(rng.random(n) < 0.6 * min(1.0, 2.0 / n)).tolist():
                at = int(shift[place]) + code
                bits[node, word[place] + at // 64] |= np.uint64(1) << np.uint64(at % 64)
    lower = rng.normal(size=(n_leaf, 2))
    values = Possible(
        bits, word, shift, N_CODE, flagged, np.array([1, 8]), lower, lower + rng.exponential(size=(60, 2))
    )
    children = [rng.choice(n_leaf, rng.integers(2, 4), replace=False) for _ in range(n_split)]
    sizes = np.concatenate([np.zeros(n_leaf, int), [each.size for each in children]])
    circuit = SimpleNamespace(
        kind=np.repeat([arrays.LEAF, arrays.HARD], [n_leaf, n_split]).astype(np.int8),
        child_ptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        child=np.concatenate(children).astype(np.int32),
    )
    values = values._replace(
        bits=np.vstack([bits, np.zeros((n_split, bits.shape[1]), np.uint64)]),
        lower=np.vstack([values.lower, np.zeros((n_split, 2))]),
        upper=np.vstack([values.upper, np.zeros((n_split, 2))]),
    )
    found = values.split_columns(circuit)[n_leaf:]  # pyright: ignore[reportArgumentType]
    assert found.tolist() == [values.separating_column(nodes) for nodes in children]
    assert np.unique(found).size > 4
