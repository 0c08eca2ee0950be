"""Tables with known column types, and two simple rules that guess them. Knows nothing of bayesjpt's answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bayesjpt.errors import TableError

NUMERIC_TYPES = ("real", "positive", "interval", "count")
CATEGORICAL_TYPES = ("nominal", "ordinal", "binary")
MORE_THAN = 20
"""Distinct values: the rule "numeric and more than 20 distinct values" of public tables."""


SAME_DATA = {
    "iris raw": "iris",
    "kropt": "chess_krk",
    "auto-mpg": "cars raw",
    "airlines_2015": "airlines_1987_2008",
}
"""Tables that hold the columns of another one: left out together."""


def source_of(name: str) -> str:
    """Return the name that a table has in common with others of the same data."""
    return SAME_DATA.get(name, name)


@dataclass(frozen=True)
class Label:
    """What is known of a column.

    Parameters
    ----------
    column : str
    kind : str
        ``numeric``, ``categorical`` or ``other``.
    type : str, optional
        Documented statistical type, where there is one.
    also : tuple of str
        Other types that are defensible.
    """

    column: str
    kind: str
    type: str | None = None
    also: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The label in words."""
        return self.kind if self.type is None else " or ".join((self.type, *self.also))


@dataclass(frozen=True)
class LabelledTable:
    """A file and its labels; `missing` is the token that its documentation names, which the simple rules are told."""

    name: str
    path: Path
    labels: tuple[Label, ...]
    missing: str | None = None


def kind_of_type(statistical_type: str) -> str:
    """Return ``numeric`` or ``categorical``, or an empty text for a word that is no type.

    Examples
    --------
    >>> kind_of_type("count"), kind_of_type("ordinal"), kind_of_type("not determined")
    ('numeric', 'categorical', '')
    """
    if statistical_type in NUMERIC_TYPES:
        return "numeric"
    return "categorical" if statistical_type in CATEGORICAL_TYPES else ""


def uci_tables(directory: str | Path) -> list[LabelledTable]:
    """Return the raw tables of ``directory/uci`` with the documented types in ``directory/columns.json``.

    Entries that refer to another table's columns (``columns_as``: the test halves of adult and shuttle) are left out:
    the same columns would count twice.
    """
    directory = Path(directory)
    return [
        _documented(directory, key, entry)
        for key, entry in _json(directory / "columns.json")["datasets"].items()
        if key.startswith("uci/") and "columns" in entry
    ]


def _documented(directory: Path, key: str, entry: dict[str, Any]) -> LabelledTable:
    labels = tuple(
        Label(column["name"], kind_of_type(column["type"]), column["type"], tuple(column.get("also", ())))
        for column in entry["columns"]
    )
    return LabelledTable(_name(key), directory / key, labels, entry.get("missing"))


def documented_tables(directory: str | Path) -> list[LabelledTable]:
    """Return all raw tables with documented types in ``directory/columns.json``, those of `uci_tables` first."""
    directory = Path(directory)
    return uci_tables(directory) + [
        _documented(directory, key, entry)
        for key, entry in _json(directory / "columns.json")["datasets"].items()
        if "columns" in entry and (key.startswith("flights/") or key.endswith("/raw.csv.gz"))
    ]


def type_benchmark_tables(directory: str | Path) -> list[LabelledTable]:
    """Return the tables of ``directory/type_benchmark`` with the labels in its ``labels.json``."""
    folder = Path(directory) / "type_benchmark"
    return [
        LabelledTable(_name(file), folder / file, tuple(Label(name, kind) for name, kind in kinds.items()))
        for file, kinds in _json(folder / "labels.json").items()
    ]


def _name(file: str) -> str:
    name = Path(file).name.removesuffix(".csv.gz")
    return f"{Path(file).parent.name} raw" if name == "raw" else name


def _json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise TableError(f"no file {str(path)!r}", None, "Name the folder of the data sets with --data.")
    return json.loads(path.read_text(encoding="utf-8"))


def simple_rules(table: LabelledTable) -> dict[str, dict[str, str]]:
    """Return, for two simple rules, the kind of each column of a file; nothing where pandas cannot read it.

    Returns
    -------
    dict
        ``dtype``: numbers are numeric, everything else (text, booleans) is categorical. ``distinct``: numbers with
        more than 20 distinct values are numeric, everything else is categorical.
    """
    frame = _frame(table)
    return {
        "dtype": {name: "numeric" if _is_number(frame[name]) else "categorical" for name in frame.columns},
        "distinct": {name: kind_of_type(guess) for name, guess in simple_types(table).items()},
    }


def simple_types(table: LabelledTable) -> dict[str, str]:
    """Return the statistical type of each column of a file by the rule of 20 distinct values, carried on.

    Numbers with more of them are real, positive (none below zero) or count (none below zero, all whole); everything
    else is binary or nominal by its number of values, or ordinal where it is numbers.
    """
    frame = _frame(table)
    return {name: _simple_type(frame[name]) for name in frame.columns}


def _simple_type(values: pd.Series) -> str:
    n_distinct = values.nunique()
    if n_distinct <= 2:
        return "binary"
    if not _is_number(values):
        return "nominal"
    if n_distinct <= MORE_THAN:
        return "ordinal"
    if values.min() < 0:
        return "real"
    return "count" if (values.dropna() % 1 == 0).all() else "positive"


def _frame(table: LabelledTable) -> pd.DataFrame:
    """Return the file as pandas reads it once it is told the missing token; no columns where it cannot."""
    try:
        return pd.read_csv(table.path, na_values=[] if table.missing is None else [table.missing])
    except (OSError, ValueError):
        return pd.DataFrame()


def _is_number(values: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
