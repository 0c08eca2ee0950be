"""What each column is, from rows that are read batch by batch: the first pass over files.

The schema is decided as that of any table, from *evidence rows*: `SCHEMA_ROWS` rows chosen by a hash of their numbers,
and each row that holds the least or largest value, or the first of a label, of some column. A table of no more rows is
its own evidence, so its schema is that of `bayesjpt.as_table`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesjpt.defaults import MAX_LABELS
from bayesjpt.errors import BayesjptError, BayesjptWarning, TableError, warn
from bayesjpt.executors import Run, in_turn
from bayesjpt.table.batches import Files
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import as_table

SCHEMA_ROWS = 200_000
"""Rows by which kinds, resolutions and atoms are decided: a rate of a thousandth is then known to a tenth of itself."""

_LARGEST = np.uint64(2**64 - 1)
_PIECE_ROWS = 2**20
"""Row numbers that are hashed at once."""


def row_hash(rows: np.ndarray, key: int) -> np.ndarray:
    """Return uint64 (n,): hashes of row numbers under a key, by the finaliser of SplitMix64."""
    with np.errstate(over="ignore"):
        z = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(key + 1) * np.uint64(0xD1B54A32D192ED03)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def chosen_rows(n_row: int, n: int, key: int) -> np.ndarray:
    """Return int64 (min(n, n_row),), ascending: the rows with the smallest hashes."""
    if n >= n_row:
        return np.arange(n_row)
    share = min((n + 6.0 * np.sqrt(n) + 10.0) / n_row, 1.0)  # more than n of them, but for one case in a billion
    rows, hashes = [], []
    while True:
        below = np.uint64(min(int(share * 2.0**64), 2**64 - 1))
        for first in range(0, n_row, _PIECE_ROWS):
            piece = np.arange(first, min(first + _PIECE_ROWS, n_row))
            piece_hash = row_hash(piece, key)
            rows.append(piece[piece_hash <= below])
            hashes.append(piece_hash[piece_hash <= below])
        found, order = np.concatenate(rows), np.concatenate(hashes)
        if found.size >= n:
            return np.sort(found[np.argsort(order, kind="stable")[:n]])
        rows, hashes, share = [], [], min(2.0 * share, 1.0)


class _Evidence:
    """Rows by which a schema is decided, gathered batch by batch; a function of all rows and their numbers alone.

    Parameters
    ----------
    first_row : int
        The number of the row that comes first.
    bound : uint64
        No row with a larger hash is wanted.
    """

    def __init__(self, first_row: int = 0, bound: np.uint64 = _LARGEST) -> None:
        self._next = first_row
        self._kept: list[tuple[np.ndarray, np.ndarray, Any]] = []  # numbers, hashes, rows
        self._bound = bound
        self.n_kept = 0
        self._least: dict[tuple[str, str], tuple[Any, int, Any]] = {}
        self._labels: dict[str, dict[Any, tuple[int, Any]]] = {}

    def add(self, batch: Any) -> None:
        import pyarrow as pa

        numbers = np.arange(self._next, self._next + batch.num_rows)
        self._next += batch.num_rows
        hashes = row_hash(numbers, 0)
        chosen = np.flatnonzero(hashes <= self._bound)
        if chosen.size:
            self._kept.append((numbers[chosen], hashes[chosen], batch.take(pa.array(chosen))))
            self.n_kept += chosen.size
            if self.n_kept > 2 * SCHEMA_ROWS:
                self._trim()
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            self._witness(name, column, numbers, batch)

    def merge(self, other: _Evidence) -> None:
        """Add what was gathered from rows behind all of these."""
        self._kept += other._kept
        self.n_kept += other.n_kept
        if self.n_kept > 2 * SCHEMA_ROWS:
            self._trim()
        for (name, which), theirs in other._least.items():
            ours = self._least.get((name, which))
            if ours is None or (theirs[0] < ours[0] if which == "min" else theirs[0] > ours[0]):
                self._least[name, which] = theirs
        for name, labels in other._labels.items():
            known = self._labels.setdefault(name, {})
            for value, found in labels.items():
                known.setdefault(value, found)

    def _trim(self) -> None:
        """Keep the rows with the smallest hashes."""
        import pyarrow as pa

        numbers = np.concatenate([number for number, _, _ in self._kept])
        hashes = np.concatenate([hashed for _, hashed, _ in self._kept])
        rows = pa.Table.from_batches([batch for _, _, batch in self._kept])
        order = np.sort(np.argsort(hashes, kind="stable")[:SCHEMA_ROWS])
        kept = rows.take(order).combine_chunks().to_batches()
        self._kept = [(numbers[order], hashes[order], kept[0])] if kept else []
        self.n_kept = order.size
        if order.size == SCHEMA_ROWS:
            self._bound = hashes[order].max()

    def _witness(self, name: str, column: Any, numbers: np.ndarray, batch: Any) -> None:
        """Note the rows of extremes and of labels that are new."""
        import pyarrow as pa
        import pyarrow.compute

        pc: Any = pyarrow.compute  # its functions are made when it is imported
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        kind = column.type
        if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):  # Python knows fewer dates
            column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        elif pa.types.is_float16(kind):
            column = column.cast(pa.float32())
        kind = column.type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if is_number:
            ends = pc.min_max(column)
            for which, better in (("min", lambda a, b: a < b), ("max", lambda a, b: a > b)):
                value = ends[which]
                if not value.is_valid or value.as_py() != value.as_py():
                    continue
                best = self._least.get((name, which))
                if best is None or better(value.as_py(), best[0]):
                    at = pc.index(column, value).as_py()
                    if at >= 0:
                        self._least[name, which] = value.as_py(), int(numbers[at]), batch.take(pa.array([at]))
        if is_number or pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind):
            known = self._labels.setdefault(name, {})
            if len(known) > MAX_LABELS:  # no list of labels
                return
            for value in pc.unique(column):
                if len(known) > MAX_LABELS:
                    return
                if value.is_valid and value.as_py() == value.as_py() and value.as_py() not in known:
                    at = pc.index(column, value).as_py()
                    known[value.as_py()] = int(numbers[at]), batch.take(pa.array([at]))  # a slice would keep the batch

    def table(self) -> tuple[Any, np.ndarray]:
        """Return the evidence rows as ``pyarrow.Table``, in the order of their numbers, and these."""
        import pyarrow as pa

        self._trim()
        found = {number: row for _, number, row in self._least.values()}
        for labels in self._labels.values():
            if len(labels) <= MAX_LABELS:
                found |= dict(labels.values())
        numbers = np.concatenate([number for number, _, _ in self._kept])
        present = set(numbers.tolist())
        found = {number: row for number, row in found.items() if number not in present}
        rows = pa.Table.from_batches([batch for _, _, batch in self._kept] + list(found.values()))
        numbers = np.append(numbers, np.array(list(found), np.int64))
        order = np.argsort(numbers, kind="stable")
        return rows.take(order), numbers[order]


def in_whole(text: str, numbers: np.ndarray) -> str:
    """Return what is said of a row of some rows as what is said of the table's, whose numbers from 0 are given."""
    return re.sub(
        r"(?<=in row )\d+(?=$|\))",
        lambda row: str(numbers[int(row[0]) - 1] + 1) if 0 < int(row[0]) <= len(numbers) else row[0],
        text,
    )


def error_in_whole(error: BayesjptError, numbers: np.ndarray) -> BayesjptError:
    """Return an error that tells a row by its number in the whole table, see `in_whole`."""
    return type(error)(in_whole(error.found, numbers), error.expected, error.remedy, command=error.command)


def is_evidence(n_row: int) -> bool:
    """Return whether the schema of a table is decided from all of its rows."""
    return n_row <= SCHEMA_ROWS


def _evidence_of(files: Files, number: int, bound: np.uint64) -> _Evidence:
    """Return what one file says: a function of its arguments."""
    found = _Evidence(files.first_rows[number], bound)
    for batch in files.batches_of(number):
        found.add(batch)
    return found


def _gather(files: Files, run: Run) -> _Evidence:
    """Return what all files say."""
    n_row = sum(files.n_rows)
    share = (SCHEMA_ROWS + 6.0 * np.sqrt(SCHEMA_ROWS) + 10.0) / n_row  # enough, but for one case in a billion
    while True:
        bound = _LARGEST if share >= 1.0 else np.uint64(int(share * 2.0**64))
        whole = _Evidence()
        for found in run(_evidence_of, [(files, number, bound) for number in range(len(files.paths))]):
            whole.merge(found)
        if bound == _LARGEST or whole.n_kept >= SCHEMA_ROWS:
            return whole
        share *= 2.0


def decide_schema(
    files: Files, kinds: Mapping[str, str] | None = None, reading: Mapping[str, Any] | None = None, run: Run = in_turn
) -> tuple[Schema, int]:
    """Return the schema of the rows in files, and how many they are; `run` looks at each file.

    Raises
    ------
    TableError, SchemaError
        As `bayesjpt.as_table`.
    """
    n_row = sum(files.n_rows)
    if not n_row:
        raise TableError(f"{len(files.paths)} file{'s' * (len(files.paths) > 1)} without rows", "at least one row")
    rows, numbers = _gather(files, run).table()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BayesjptWarning)
        try:
            schema = as_table(rows, kinds=kinds, **dict(reading or {})).schema
        except BayesjptError as error:
            raise error_in_whole(error, numbers) from None
    for each in caught:
        if issubclass(each.category, BayesjptWarning):
            warn(in_whole(str(each.message), numbers))
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return schema, n_row
