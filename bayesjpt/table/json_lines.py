"""JSON lines, and a JSON list of objects, to cells."""

from __future__ import annotations

import json
from typing import Any

from bayesjpt.errors import TableError
from bayesjpt.table.cells import Cells

SUFFIXES = (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz")


def read_json(content: bytes, name: str) -> list[Cells]:
    """Return the cells of each key of the objects in a text, in the order in which keys first appear.

    Parameters
    ----------
    content : bytes
        In UTF-8: an object a line, or one list of objects.
    name : str
        Of the file.

    Raises
    ------
    TableError
        Where a line is no JSON, or no object.
    """
    from bayesjpt.table.frames import object_cells

    records = _records(content, name)
    columns: dict[str, list[Any]] = {}
    for position, (line, record) in enumerate(records):
        if not isinstance(record, dict):
            raise TableError(
                f"line {line} of {name!r} holds {type(record).__name__}", 'an object, such as {"size": 1.5}'
            )
        for key, value in record.items():
            column = columns.setdefault(key, [])
            column += [None] * (position - len(column))
            column.append(value)
    for column in columns.values():
        column += [None] * (len(records) - len(column))
    if not columns:
        raise TableError(f"file {name!r} is empty", "an object a line")
    return [object_cells(key, column) for key, column in columns.items()]


def _records(content: bytes, name: str) -> list[tuple[int, Any]]:
    text = content.decode("utf-8", "surrogatepass")
    if text.lstrip()[:1] == "[":
        return [(1, record) for record in _loaded(text, 1, name)]
    lines = enumerate(text.split("\n"), start=1)
    return [(number, _loaded(line, number, name)) for number, line in lines if line.strip()]


def _loaded(text: str, line: int, name: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        at = line + getattr(error, "lineno", 1) - 1
        words = error.msg if isinstance(error, json.JSONDecodeError) else "it is nested too deeply"
        raise TableError(
            f"line {at} of {name!r} is no JSON: {words}", "an object a line, or one list of objects"
        ) from None
