"""JSON lines, a JSON list of objects, alone or within an object, and one object of columns, to cells."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from bayesjpt.errors import TableError, warn
from bayesjpt.table.cells import Cells

SUFFIXES = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")

_DEPTH = 8
"""Objects within objects whose keys become columns."""

_MOST_KEYS = 500
"""Different keys of the objects at one place; where there are more, they are values rather than names of columns."""


def read_json(content: bytes, name: str, *, as_written: bool = False) -> list[Cells]:
    """Return the cells of each key of the objects in a text, in the order in which keys first appear.

    Keys of objects within objects are joined by points: ``user.age``.

    Parameters
    ----------
    content : bytes
        In UTF-8: an object a line; one list of objects, alone or within an object, of which nothing else is read; or
        one object of columns, each a list or, as pandas writes them, an object with a key a row.
    name : str
        Of the file.
    as_written : bool
        Whether lists, and objects that are not opened, are texts, so that they can be written again.

    Raises
    ------
    TableError
        Where a line is no JSON, or no object.
    """
    from bayesjpt.table.frames import object_cells

    records = _records(content, name)
    for line, record in records:
        if not isinstance(record, dict):
            raise TableError(
                f"line {line} of {name!r} holds {type(record).__name__}", 'an object, such as {"size": 1.5}'
            )
    whole = _not_opened([record for _, record in records])
    columns: dict[str, list[Any]] = {}
    for position, (_, record) in enumerate(records):
        # a key that is written in both ways, "user.age" and within "user", has one value a row
        for key, value in dict(_flat(record, whole)).items():
            column = columns.setdefault(key, [])
            column += [None] * (position - len(column))
            column.append(value)
    for column in columns.values():
        column += [None] * (len(records) - len(column))
    if not columns:
        raise TableError(f"file {name!r} is empty", "an object a line")
    # null in place of an object says nothing that its keys do not
    outer = {key[:end] for key in columns for end, c in enumerate(key) if c == "."}
    if as_written:
        columns = {key: [_as_text(value) for value in column] for key, column in columns.items()}
    return [
        object_cells(key, column)
        for key, column in columns.items()
        if key not in outer or any(value is not None for value in column)
    ]


def _as_text(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _not_opened(records: Sequence[dict[str, Any]]) -> frozenset[str]:
    """Return the keys whose objects have too many keys to be columns."""
    inner: defaultdict[str, set[str]] = defaultdict(set)
    for record in records:
        for key, value in record.items():
            if isinstance(value, dict) and len(inner[key]) <= _MOST_KEYS:
                inner[key].update(name for name, _ in _flat(value))
    return frozenset(key for key, names in inner.items() if len(names) > _MOST_KEYS)


def _flat(
    record: dict[str, Any], whole: Collection[str] = (), prefix: str = "", depth: int = 0
) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of an object, those of objects in it under joined keys; empty ones are missing."""
    for key, value in record.items():
        if isinstance(value, dict) and depth < _DEPTH and key not in whole:
            if value:
                yield from _flat(value, (), f"{prefix}{key}.", depth + 1)
            else:
                yield f"{prefix}{key}", None
        else:
            yield f"{prefix}{key}", value


def _records(content: bytes, name: str) -> list[tuple[int, Any]]:
    text = content.decode("utf-8", "surrogatepass")
    if text.lstrip()[:1] == "[":
        return [(1, record) for record in _loaded(text, 1, name)]
    records = _records_within(text, name)
    if records is not None:
        return [(1, record) for record in records]
    lines = enumerate(text.split("\n"), start=1)
    return [(number, _loaded(line, number, name)) for number, line in lines if line.strip()]


def _records_within(text: str, name: str) -> list[dict[str, Any]] | None:
    """Return the rows in a text that is one JSON object; None for a text of an object a line."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(whole, dict):
        return None
    lists = list(_lists_of_objects(whole))
    if len(lists) == 1:
        path, records = lists[0]
        if list(whole) != [path]:
            warn(f"the rows of {name!r} are those of the list {path!r}; what stands beside it is left out")
        return records
    return [whole] if lists else _records_of_columns(whole) or [whole]


def _lists_of_objects(record: dict[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of two objects or more in an object, and in those in it, with their keys joined by points."""
    for key, value in record.items():
        if isinstance(value, dict) and depth < _DEPTH:
            yield from _lists_of_objects(value, f"{prefix}{key}.", depth + 1)
        elif isinstance(value, list) and len(value) > 1 and all(isinstance(one, dict) for one in value):
            yield f"{prefix}{key}", value


def _records_of_columns(whole: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return the rows of an object whose values are columns with the same rows; None for another object."""
    columns = list(whole.values())
    if columns and all(isinstance(column, dict) for column in columns):
        rows = list(columns[0])
        is_table = rows == [str(k) for k in range(len(rows))] and all(list(column) == rows for column in columns)
    else:
        rows = list(range(len(columns[0]))) if columns and isinstance(columns[0], list) else []
        is_table = all(isinstance(column, list) and len(column) == len(rows) for column in columns)
    if not is_table or len(rows) < 2:
        return None
    return [{name: column[row] for name, column in whole.items()} for row in rows]


def _loaded(text: str, line: int, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        at = line + getattr(error, "lineno", 1) - 1
        is_nested = isinstance(error, RecursionError)
        # of all other errors of values: Python reads no whole number of more than 4,300 digits
        words = "it is nested too deeply" if is_nested else getattr(error, "msg", "a number has too many digits")
        raise TableError(
            f"line {at} of {name!r} is no JSON: {words}", "an object a line, or one list of objects"
        ) from None
