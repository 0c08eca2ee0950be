"""Rows that two tables have in common, or had before some columns were changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np


def copied_rows(codes: np.ndarray, n_first: int, *, once: bool = False) -> np.ndarray:
    """Return pairs of alike rows, one of each table: int (n_pair, 2). All rows, or those that each table holds once.

    Rows that tables of few labels hold many times are no copies; tied, both halves would show the same chance.
    """
    rows = np.ascontiguousarray(codes.T)
    places: dict[bytes, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for number, row in enumerate(rows):
        places[row.tobytes()][number >= n_first].append(number)
    is_same = not once and all(len(first) == len(second) for first, second in places.values())
    pairs = [
        pair
        for first, second in places.values()
        if is_same or len(first) == len(second) == 1
        for pair in zip(first, second, strict=True)
    ]
    return np.array(pairs, np.int64).reshape(-1, 2)


def changed_rows(codes: np.ndarray, n_row: Sequence[int]) -> np.ndarray:
    """Return pairs of rows, one of each table, that are alike in the columns which hold the same cells in both tables.

    int (n_pair, 2). So the rows of a table are known again where some of its columns were filled in, or changed.
    """
    none = np.empty((0, 2), np.int64)
    if n_row[0] != n_row[1]:
        return none
    first, second = np.sort(codes[:, : n_row[0]]), np.sort(codes[:, n_row[0] :])
    same = codes[np.array([np.array_equal(*both, equal_nan=True) for both in zip(first, second, strict=True)], bool)]
    return copied_rows(same, n_row[0], once=True) if len(same) else none
