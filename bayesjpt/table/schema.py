"""What each column is: base, support, labels, resolution, location and scale, each with its reason.

A schema is decided from training rows only and frozen with the fit; new rows are read *under* it.
"""

from __future__ import annotations

import difflib
import html
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from bayesjpt.defaults import MAX_INTEGER_LEVELS
from bayesjpt.errors import SchemaError
from bayesjpt.table import cells as cells_of
from bayesjpt.table.notation import Notation
from bayesjpt.table.written_dates import FIRST_YEAR, DateNotation
from bayesjpt.table.written_durations import DurationNotation
from bayesjpt.table.written_numbers import NumberNotation

BASES = ("real", "integer", "category")
FORMAT = 10
"""Version of the plain form that `Schema.to_dict` writes."""

_N_SHOWN = 40


@dataclass(frozen=True)
class Column:
    """What was decided about one column.

    Parameters
    ----------
    name : str
    base : str
        ``real`` (density per unit), ``integer`` (mass on the integers) or ``category`` (mass on labels).
    support : tuple of float
        Smallest and largest possible value, in the user's units; ``(0, n_label - 1)`` for labels.
    labels : tuple of str
        Labels in the order of their codes; empty unless the base is ``category``.
    levels : tuple of float
        Distinct training values, ascending, of an integer column that has few of them; empty otherwise.
    frequencies : tuple of float
        Smoothed training shares: of the labels and, last, of "other" (category); of the levels (integer).
    resolution : float
        Width of the cell that a recorded value stands for, in the user's units; 1 unless the base is ``real``.
    has_grid : bool
        Whether values lie on a grid of that width. Without it the resolution is a thousandth of the spread.
    step : float
        Of an integer column, the number of which all training values are multiples, beyond chance; otherwise 1. Drawn
        values are rounded to it.
    offset : float
        Where all training values lie in steps beyond chance, but not at their multiples, or in steps of many recorded
        numbers (prices at .99, Mondays): the least point above 0 of the grid with that `step`, in any column of
        numbers or dates. Otherwise 0.
    months : float
        Where all training values are dates of one day of the month beyond chance, how many months they lie apart (12
        where all are firsts of years); `offset` is then the days behind the first of a month, -1 for its last day.
        Otherwise 0.
    location, scale : float
        Units used inside: real families see (x - location) / scale, positive ones x / scale.
    mean, minimum, maximum : float
        Of the observed training values, in the user's units.
    mean_without_atoms, deviation_without_atoms : float
        Mean and standard deviation of the observed training values that are no atoms; a deviation of 0 is not known.
    atoms, atom_frequencies : tuple of float
        Values of a real column that repeat far beyond chance, ascending, and their smoothed shares among each other.
    cell_ends, cell_shifts : tuple of float
        Ends of cells one resolution wide, ascending, and how far each lies from there where some values are favoured
        (`bayesjpt.table.heaps`); empty where none is.
    families : tuple of str
        Names of the only families of its likelihood dictionary; empty for all that fit.
    other : bool
        Whether the last code of labels stands for those that training never showed. Without it the list of labels is
        closed: there are no others.
    n_missing, n_distinct : int
        Missing training cells, distinct observed values.
    dtype : str
        How the column was stored, in words (``text``, ``number``, ``boolean``, ``datetime``).
    reason : str
        One sentence: why this base.
    notation : Notation, optional
        How the table spells the column's numbers or dates, where that is no plain number or ISO date.
    is_yes_no : bool
        Whether the labels are yes and no, so that other spellings of them are the same labels.
    """

    name: str
    base: str
    support: tuple[float, float]
    labels: tuple[str, ...] = ()
    levels: tuple[float, ...] = ()
    frequencies: tuple[float, ...] = ()
    resolution: float = 1.0
    has_grid: bool = True
    step: float = 1.0
    offset: float = 0.0
    months: float = 0.0
    location: float = 0.0
    scale: float = 1.0
    mean: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0
    mean_without_atoms: float = 0.0
    deviation_without_atoms: float = 0.0
    atoms: tuple[float, ...] = ()
    atom_frequencies: tuple[float, ...] = ()
    cell_ends: tuple[float, ...] = ()
    cell_shifts: tuple[float, ...] = ()
    families: tuple[str, ...] = ()
    other: bool = True
    n_missing: int = 0
    n_distinct: int = 0
    dtype: str = "number"
    reason: str = ""
    notation: Notation | None = None
    is_yes_no: bool = False

    def text(self, value: float) -> str:
        """Return a value, in the user's units, as the table spells it; a label for a code.

        Examples
        --------
        >>> Column("size", "real", (0.0, 9.0), notation=NumberNotation(",", suffix=" cm")).text(1.5)
        '1,5 cm'
        """
        if self.base == "category":
            return self.code_names[int(value)]
        if self.notation is not None:
            return self.notation.text(float(value))
        return cells_of.value_label(float(value), self.dtype)

    @property
    def has_only_atoms(self) -> bool:
        """Whether every value that training shows is an atom: of few fractions, and of a constant."""
        return bool(self.atoms) and self.n_distinct == len(self.atoms)

    @property
    def n_label(self) -> int:
        """Number of codes: the labels and one for "other", unless the list is closed; 0 for numbers."""
        return len(self.labels) + self.other if self.base == "category" else 0

    @property
    def code_names(self) -> tuple[str, ...]:
        """Labels in the order of their codes and, last, the name of "other"; empty for numbers."""
        if self.base != "category" or not self.other:
            return self.labels
        other = "other"
        while other in self.labels:
            other = f"<{other}>"
        return (*self.labels, other)

    def type_of_cells(self, statistical_type: str) -> str:
        """Return the type that the column's cells have under a family of that statistical type.

        Two labels are binary, whatever describes them. Many levels are numbers, typed as all whole numbers are; order
        is news of few. ``support``, of a family without a shape of its own, says what the column may hold.
        """
        if self.base == "category" and len(self.labels) == 2:
            return "binary"
        if statistical_type in ("ordinal", "nominal") and len(self.levels) > MAX_INTEGER_LEVELS:
            return "count" if self.support[0] >= 0.0 else "real"
        if statistical_type == "support":
            if self.support[0] < 0.0:
                return "real"
            return "positive" if self.base == "real" else "count"
        return statistical_type


NO_VALUE = "empty: no value"
"""How the reason of a column begins that has no value in any row."""

SUMMED_OUT = "summed out"
"""Reason of a column that the model has, and of which a posterior was made that does not."""


@dataclass(frozen=True)
class SetAside:
    """A column that is not modelled, why, and its missing cells; 0 in schemas that were stored before these were."""

    name: str
    reason: str
    n_missing: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether it has no value in any row."""
        return self.reason.startswith(NO_VALUE)

    def remedies(self) -> dict[str, str]:
        """Return how to have it modelled, in Python and at the command line; nothing helps a column without values."""
        if self.is_empty:
            return {}
        return {
            "remedy": f"Override it with kinds={{{self.name!r}: ...}}.",
            "command": f"Override it with --kind {shlex.quote(self.name)}=...",
        }


@dataclass(frozen=True)
class Schema:
    """The columns that are modelled, in order, and those set aside."""

    columns: tuple[Column, ...]
    set_aside: tuple[SetAside, ...] = ()

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def index(self, name: str) -> int:
        """Return the position of a column, or raise `SchemaError` naming the closest one."""
        try:
            return self.names.index(name)
        except ValueError:
            raise SchemaError(
                f"no column {name!r}", closest(name, self.names, [one.name for one in self.set_aside])
            ) from None

    def log_jacobian(self) -> np.ndarray:
        """Return float64 (n_column,): what turns a density per scale unit into one per user's unit, in nats."""
        return np.array([-np.log(column.scale) if column.base == "real" else 0.0 for column in self.columns])

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as numbers, texts, lists and dicts that any JSON writer keeps exactly.

        Infinite numbers are the texts ``inf`` and ``-inf``.
        """
        return {
            "format": FORMAT,
            "columns": [{name: _plain(value) for name, value in asdict(column).items()} for column in self.columns],
            "set_aside": [asdict(column) for column in self.set_aside],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Schema:
        """Return the schema that `to_dict` wrote.

        Raises
        ------
        SchemaError
            Where the dict is not one of ours, or of another format.
        """
        if not isinstance(plain, Mapping) or plain.get("format") not in range(1, FORMAT + 1):
            found = plain.get("format") if isinstance(plain, Mapping) else type(plain).__name__
            raise SchemaError(f"a stored schema of format {found!r}", f"format 1 to {FORMAT}")
        added = {name: value for since, new in _ADDED.items() if since > plain["format"] for name, value in new.items()}
        try:
            columns = tuple(_column_of({**_implied(entry), **added, **entry}) for entry in plain["columns"])
            set_aside = tuple(
                SetAside(str(entry["name"]), str(entry["reason"]), int(entry.get("n_missing", 0)))
                for entry in plain["set_aside"]
            )
        except (KeyError, TypeError, ValueError) as error:
            raise SchemaError(
                f"a stored schema that cannot be read ({error!r})", "what Schema.to_dict writes"
            ) from None
        return cls(columns, set_aside)

    def write(self, path: str | Path) -> None:
        """Write the decisions as a document (TOML) that a text editor changes and `read_table` takes back.

        Parameters
        ----------
        path : str or Path
            Written over where it exists.

        Raises
        ------
        SchemaError
            Where the file cannot be written.

        Notes
        -----
        The document holds decisions alone; what training rows say (shares, levels, mean, range) is written as comments
        and found anew when rows are read under the document.
        """
        from bayesjpt.table.document import write_document

        write_document(self, path)

    def _cells(self) -> list[tuple[str, ...]]:
        """Return the rows of the table that `repr` shows, header first."""
        rows = [("column", "base", "resolution", "labels", "missing", "reason")]
        for column in self.columns[:_N_SHOWN]:
            labels = ", ".join(column.labels[:4]) + (", ..." if len(column.labels) > 4 else "")
            width = f"{column.resolution:g}" if column.base == "real" else ""
            missing = str(column.n_missing) if column.n_missing else ""
            rows.append((column.name, column.base, width, _shortened(labels, 40), missing, column.reason))
        if len(self.columns) > _N_SHOWN:
            rows.append((f"... {len(self.columns) - _N_SHOWN} more", "", "", "", "", ""))
        rows += [(column.name, "left out", "", "", "", column.reason) for column in self.set_aside[:_N_SHOWN]]
        if len(self.set_aside) > _N_SHOWN:
            rows.append((f"... {len(self.set_aside) - _N_SHOWN} more", "left out", "", "", "", ""))
        return rows

    def __repr__(self) -> str:
        rows = self._cells()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _repr_html_(self) -> str:
        header, *rows = self._cells()
        lines = ["".join(f"<td>{html.escape(text)}</td>" for text in row) for row in rows]
        head = "".join(f"<th>{text}</th>" for text in header)
        return f"<table><thead><tr>{head}</tr></thead><tbody><tr>{'</tr><tr>'.join(lines)}</tr></tbody></table>"


def closest(name: str, names: Sequence[str], left_out: Sequence[str] = ()) -> str:
    """Return what was expected in place of an unknown name: the closest one, or all of them where none is close."""
    near = difflib.get_close_matches(name, [*names, *left_out], n=1, cutoff=0.6)
    if not near:
        lowered = {known.lower(): known for known in (*names, *left_out)}
        near = [lowered[low] for low in difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)]
    if near:
        return f"one like {near[0]!r}{'' if near[0] in names else ', which is left out'}"
    return f"one of {', '.join(map(repr, names[:20]))}{', ...' if len(names) > 20 else ''}"


def _shortened(text: str, n: int) -> str:
    return text if len(text) <= n else text[: n - 3] + "..."


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return str(value) if np.isinf(value) else float(value)
    return value


_ADDED: dict[int, dict[str, Any]] = {
    2: {"minimum": 0.0, "atoms": (), "atom_frequencies": (), "families": ()},
    3: {"cell_ends": (), "cell_shifts": ()},
    4: {"mean_without_atoms": 0.0, "deviation_without_atoms": 0.0},
    5: {"notation": None, "is_yes_no": False},
    6: {"other": True},
    8: {"step": 1.0},
    9: {"offset": 0.0},
    10: {"months": 0.0},
}
"""What columns hold since each format, with the defaults that those of older ones get."""


def _implied(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return what columns hold since format 7, and what their reasons said before."""
    return {"has_grid": "no recording grid" not in str(entry["reason"])}


_TEXTS = ("name", "base", "dtype", "reason")
_FLAGS = ("has_grid", "other", "is_yes_no")
_COUNTS = ("n_missing", "n_distinct")
_NAMES = ("labels", "families")
_TUPLES = ("support", "levels", "frequencies", "atoms", "atom_frequencies", "cell_ends", "cell_shifts")


def _notation_of(plain: Mapping[str, Any] | None) -> Notation | None:
    if plain is None:
        return None
    if set(plain) == {"pattern"}:
        return DurationNotation(str(plain["pattern"]))
    if "order" in plain:
        order, pattern, language = (str(plain[name]) for name in ("order", "pattern", "language"))
        return DateNotation(order, pattern, language, int(plain.get("first_year", FIRST_YEAR)))
    texts = {name: str(plain[name]) for name in ("decimal", "group", "prefix", "suffix", "negative")}
    return NumberNotation(**texts, digits=int(plain["digits"]), single=str(plain.get("single", "")))


def _column_of(entry: Mapping[str, Any]) -> Column:
    made: dict[str, Any] = {}
    for field in fields(Column):
        value = entry[field.name]
        if field.name in _TEXTS:
            made[field.name] = str(value)
        elif field.name in _COUNTS:
            made[field.name] = int(value)
        elif field.name in _NAMES:
            made[field.name] = tuple(str(name) for name in value)
        elif field.name == "notation":
            made[field.name] = _notation_of(value)
        elif field.name in _FLAGS:
            made[field.name] = bool(value)
        elif field.name in _TUPLES:
            made[field.name] = tuple(float(number) for number in value)
        else:
            made[field.name] = float(value)
    column = Column(**made)
    if column.base not in BASES:
        raise ValueError(f"base {column.base!r}")
    return column
