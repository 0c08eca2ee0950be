"""The schema as a document: decisions in TOML, written with their reasons, edited by hand, read back with line numbers.

A document holds decisions. A `Schema` holds decisions and what the training rows say; it is made anew whenever rows
are read under a document.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bayesjpt import defaults
from bayesjpt.errors import SchemaError, warn
from bayesjpt.replace_file import reason, replace_file
from bayesjpt.table import cells as cells_of
from bayesjpt.table import toml
from bayesjpt.table.overrides import FORMER_KINDS, KINDS, Override
from bayesjpt.table.schema import Column, Schema, closest
from bayesjpt.user_paths import as_path

FORMAT = 1
"""Version of the document."""

KEYS = {
    "real": ("support", "resolution", "location", "scale", "atoms", "families"),
    "integer": ("support", "location", "scale", "families"),
    "date": ("support", "resolution", "location", "scale", "atoms", "families"),
    "category": ("labels", "other", "families"),
}
"""What may be decided about a column of each base."""

_ALL_KEYS = ("base", "labels", "other", "support", "resolution", "location", "scale", "atoms", "families")

_HEADER = """\
What each column of the table is, as bayesjpt decided it from the rows. Change what you know better and hand the file
back: bayesjpt types TABLE --schema FILE, or bj.read_table(path, schema="FILE"). Lines after a # are comments.

A section per column. All its keys but `base` may be left out, and so may whole sections: what is not written is
decided from the rows, as is everything that stands in comments.

base        "real" (density per unit), "date" (the same, of dates and times), "integer" (probability of each whole
            number), "category" (probability of each label), or "excluded": left out. Write another base to bring a
            column back or to change it, and delete the keys that the new base does not have.
labels      of a category: all of them, in their order; what the rows hold must be listed.
other       of a category: true for a little probability of labels that the rows do not show, false for none.
support     least and largest possible value, such as [0.0, inf].
resolution  of a real column: the step in which it was recorded; a value stands for its cell of this width.
location    and scale: inside, real likelihoods see (x - location) / scale.
atoms       of a real column: values that repeat far beyond chance, such as [0.0]; each has its own probability.
families    the only likelihoods of the column; all that fit where the line is missing. ["ordinal"] says that labels
            have an order, in which they are listed.
Dates       are in days since 1970-01-01."""


@dataclass(frozen=True)
class SchemaDocument:
    """Decisions about columns, from a file that `Schema.write` wrote or a person did.

    Parameters
    ----------
    overrides : mapping from str to Override
        What the document says of each column.
    source : str
        Name of the file.
    """

    overrides: Mapping[str, Override]
    source: str = field(default="", compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.overrides)

    def __len__(self) -> int:
        return len(self.overrides)

    def __repr__(self) -> str:
        return f"SchemaDocument({self.source!r}, {len(self)} columns)"

    def check_names(self, names: Sequence[str]) -> None:
        """Raise `SchemaError` where the document speaks of a column that a table does not have.

        One that it leaves out need not be there, as in rows that a fit has drawn: a warning says so.
        """
        absent = {name: override for name, override in self.overrides.items() if name not in names}
        for name, override in absent.items():
            if override.base != "excluded":
                raise SchemaError(
                    f"{override.at('column')} describes a column {name!r} that the table does not have",
                    closest(name, names),
                    "Rename the section, or delete it.",
                )
        if absent:
            listed = ", ".join(map(repr, absent))
            warn(f"{self.source!r} leaves out columns that the table does not have: {listed}")


def read_schema(path: str | Path) -> SchemaDocument:
    """Return the decisions in a schema document, checked as far as that needs no rows.

    Parameters
    ----------
    path : str or Path
        A file in TOML that `Schema.write` or ``bayesjpt schema`` wrote, changed by hand or not.

    Raises
    ------
    SchemaError
        Where the file cannot be read, is no TOML, or holds unknown keys or values that contradict each other; the
        message names the line.

    Examples
    --------
    >>> import tempfile, pandas as pd
    >>> frame = pd.DataFrame({"size": [0.5, 1.5, 2.0], "grade": [1, 3, 2]})
    >>> path = Path(tempfile.mkdtemp()) / "schema.toml"
    >>> _ = path.write_text('[column.grade]\\nbase = "category"\\nlabels = ["3", "2", "1"]')
    >>> from bayesjpt.table.table import as_table
    >>> as_table(frame, schema=read_schema(path)).schema.columns[1].labels
    ('3', '2', '1')
    """
    path = as_path(path, SchemaError)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SchemaError(f"no file {str(path)!r}") from None
    except UnicodeDecodeError as error:
        content = path.read_bytes()
        if content.startswith(b"\x89HDF"):
            raise SchemaError(
                f"{path.name!r} is an HDF5 file, such as a saved fit",
                "a schema document",
                "Write that of the fit: bj.load(path).schema.write('schema.toml').",
                command="Write one: bayesjpt schema TABLE -o schema.toml.",
            ) from None
        line = content[: error.start].count(b"\n") + 1
        raise SchemaError(f"line {line} of {path.name!r} is not UTF-8 text", None, "Save it with UTF-8.") from None
    except OSError as error:
        raise SchemaError(f"file {path.name!r} cannot be read: {error.strerror}") from None
    return parse(text, path.name)


def parse(text: str, source: str) -> SchemaDocument:
    """Return the decisions in the text of a schema document.

    Raises
    ------
    SchemaError
        As `read_schema` does.
    """
    text = text.replace("\r\n", "\n")
    try:
        plain = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise _syntax_error(error, text, source) from None
    lines = toml.key_lines(text)
    for key, value in plain.items():
        if key not in ("format", "column"):
            where = f"line {lines.get((key,), _first_line(lines, key))} of {source!r}"
            raise SchemaError(
                f"{where}: unknown {'table' if isinstance(value, dict) else 'key'} {key!r}",
                closest(key, ("format", "column")),
                'A section is headed [column."NAME"].',
            )
    if plain.get("format", FORMAT) != FORMAT:
        raise SchemaError(
            f"line {lines[('format',)]} of {source!r}: format {toml.rendered(plain['format'])}", f"{FORMAT}"
        )
    sections = plain.get("column", {})
    if not isinstance(sections, dict):
        raise SchemaError(
            f"line {_first_line(lines, 'column')} of {source!r}: column is {toml.rendered(sections)}",
            'sections headed [column."NAME"]',
        )
    return SchemaDocument({name: _override(name, section, lines, source) for name, section in sections.items()}, source)


def _syntax_error(error: Exception, text: str, source: str) -> SchemaError:
    message = str(error)
    found = re.search(r" \(at line (\d+), column \d+\)$", message)
    if found:
        return SchemaError(f"line {found[1]} of {source!r}: {message[: found.start()]}", "TOML")
    if message.endswith(" (at end of document)"):
        return SchemaError(f"line {text.count(chr(10)) + 1} of {source!r}: {message[:-21]}, where it ends", "TOML")
    return SchemaError(f"file {source!r} cannot be read: {message}", "TOML")


def _first_line(lines: Mapping[tuple[str, ...], int], *path: str) -> int:
    """Return the first line that speaks of a key or of what is under it."""
    return min((line for key, line in lines.items() if key[: len(path)] == path), default=1)


def _override(name: str, section: Any, lines: Mapping[tuple[str, ...], int], source: str) -> Override:
    """Return what one section says, checked by itself."""
    section_lines = {
        **{key[2]: line for key, line in lines.items() if len(key) == 3 and key[:2] == ("column", name)},
        "column": lines.get(("column", name), _first_line(lines, "column", name)),
    }
    place = Override(source=source, lines=section_lines)
    if not isinstance(section, dict):
        raise SchemaError(
            f"{place.at('column')}: column {name!r} is {toml.rendered(section)}",
            f"a section headed [column.{toml.text(name)}]",
        )
    for key, value in section.items():
        if key not in _ALL_KEYS:
            below = isinstance(value, dict)
            line = section_lines.get(key, _first_line(lines, "column", name, key))
            raise SchemaError(
                f"line {line} of {source!r}: unknown key {key!r} of column {name!r}",
                closest(key, _ALL_KEYS),
                f"Quote a name that holds a dot: [column.{toml.text(f'{name}.{key}')}]." if below else None,
            )
    if "base" not in section:
        raise SchemaError(f"{place.at('column')}: column {name!r} has no base", f"base = one of {_quoted(KINDS)}")
    if isinstance(section["base"], str):
        section = section | {"base": FORMER_KINDS.get(section["base"], section["base"])}
    if section["base"] not in KINDS:
        base = section["base"]
        expected = closest(base, KINDS) if isinstance(base, str) else f"one of {_quoted(KINDS)}"
        raise SchemaError(f"{place.at('base')}: base of column {name!r} is {toml.rendered(base)}", expected)
    if section["base"] == "excluded":
        return Override(base="excluded", source=source, lines=section_lines)
    made: dict[str, Any] = {"base": section["base"], "source": source, "lines": section_lines}
    for key, value in section.items():
        if key == "base":
            continue
        if key not in KEYS[section["base"]]:
            bases = [base for base, keys in KEYS.items() if key in keys]
            raise SchemaError(
                f"{place.at(key)}: {key} of column {name!r}, whose base is {section['base']!r}",
                f"base {' or '.join(map(repr, bases))} for {key}",
                "Delete the line, or change the base.",
            )
        try:
            made[key] = _READERS[key](value, section["base"])
        except _UnfitError as unfit:
            raise SchemaError(f"{place.at(key)}: {key} of column {name!r} {unfit.found}", unfit.expected) from None
    override = Override(**made)
    _check_atoms(name, override)
    return override


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


class _UnfitError(Exception):
    """A value that its key cannot have."""

    def __init__(self, found: str, expected: str):
        super().__init__(found)
        self.found = found
        self.expected = expected


def _number(value: Any, expected: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise _UnfitError(f"is {toml.rendered(value)}", expected)
    try:
        return float(value)
    except OverflowError:
        raise _UnfitError(f"is {toml.rendered(value)}", f"{expected} below 1e308") from None


def _finite(value: Any, _base: str) -> float:
    number = _number(value, "a number")
    if not np.isfinite(number):
        raise _UnfitError(f"is {toml.rendered(value)}", "a finite number")
    return number


def _positive(value: Any, _base: str) -> float:
    number = _number(value, "a number above 0")
    if not (np.isfinite(number) and number > 0.0):
        raise _UnfitError(f"is {toml.rendered(value)}", "a finite number above 0")
    return number


def _list(value: Any, expected: str) -> list:
    if not isinstance(value, list):
        raise _UnfitError(f"is {toml.rendered(value)}", expected)
    return value


def _support(value: Any, base: str) -> tuple[float, float]:
    expected = "two numbers, the least and the largest possible value, such as [0.0, inf]"
    if len(_list(value, expected)) != 2:
        raise _UnfitError(f"holds {len(value)} numbers", expected)
    lo, hi = (_number(bound, expected) for bound in value)
    if not lo < hi:
        raise _UnfitError(f"is {toml.rendered(value)}", "the smaller bound first")
    if base == "integer" and any(np.isfinite(bound) and bound != np.rint(bound) for bound in (lo, hi)):
        raise _UnfitError(f"is {toml.rendered(value)}", "whole bounds for an integer column")
    return lo, hi


def _atoms(value: Any, _base: str) -> tuple[float, ...]:
    numbers = [_finite(atom, "") for atom in _list(value, "a list of numbers, such as [0.0]")]
    for position, atom in enumerate(numbers):
        if atom in numbers[:position]:
            raise _UnfitError(f"holds {toml.rendered(value[position])} twice", "distinct numbers")
    return tuple(sorted(atom + 0.0 for atom in numbers))


def _labels(value: Any, _base: str) -> tuple[str, ...]:
    expected = 'a list of labels, such as ["red", "white"]'
    labels: list[str] = []
    for label in _list(value, expected):
        if isinstance(label, bool):
            label = str(label)
        elif isinstance(label, (int, float)) and np.isfinite(label):
            label = cells_of.number_label(label)
        if not isinstance(label, str) or cells_of.unstorable(label):
            raise _UnfitError(f"holds {toml.rendered(label)}", "texts that can be stored")
        if label in labels:
            raise _UnfitError(f"holds {toml.rendered(label)} twice", "distinct labels")
        labels.append(label)
    if not labels:
        raise _UnfitError("is an empty list", "at least one label")
    return tuple(labels)


def _families(value: Any, _base: str) -> tuple[str, ...]:
    expected = 'a list of names, such as ["normal", "gamma"]'
    names = _list(value, expected)
    for position, name in enumerate(names):
        if not isinstance(name, str):
            raise _UnfitError(f"holds {toml.rendered(name)}", expected)
        if name in names[:position]:
            raise _UnfitError(f"holds {name!r} twice", "distinct names")
    if not names:
        raise _UnfitError("is an empty list", "at least one name, or no such line for all that fit")
    return tuple(names)


def _other(value: Any, _base: str) -> bool:
    if not isinstance(value, bool):
        raise _UnfitError(f"is {toml.rendered(value)}", "true or false")
    return value


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "labels": _labels,
    "other": _other,
    "support": _support,
    "resolution": _positive,
    "location": _finite,
    "scale": _positive,
    "atoms": _atoms,
    "families": _families,
}


def _check_atoms(name: str, override: Override) -> None:
    if override.atoms is None or override.support is None:
        return
    lo, hi = override.support
    for atom in override.atoms:
        if not lo <= atom <= hi:
            raise SchemaError(
                f"{override.at('atoms')}: the atom {atom:g} of column {name!r} lies outside its support",
                f"{lo:g} to {hi:g}, as {override.at('support')} says",
            )


# --- writing


def write_document(schema: Schema, path: str | Path) -> None:
    """Write the decisions of a schema as a document.

    Raises
    ------
    SchemaError
        Where the file cannot be written.
    """
    path = as_path(path, SchemaError)
    try:
        replace_file(path, text_of(schema))
    except OSError as error:
        raise SchemaError(f"file {str(path)!r} cannot be written: {reason(error)}") from None


def text_of(schema: Schema) -> str:
    """Return the text of a schema's document: decisions as keys, reasons and what the rows say as comments."""
    blocks = ["\n".join(toml.comment(line) for line in _HEADER.splitlines()), f"format = {FORMAT}"]
    blocks += [_section(column) for column in schema]
    for column in schema.set_aside:
        blocks.append(f'[column.{toml.text(column.name)}]\n{toml.comments(column.reason)}\nbase = "excluded"')
    return "\n\n".join(blocks) + "\n"


def _section(column: Column) -> str:
    from bayesjpt.families import registry

    lines = [f"[column.{toml.text(column.name)}]", toml.comments(column.reason), toml.comments(_facts(column))]
    is_date = column.dtype == "datetime" and column.base == "real"
    lines.append(f"base = {toml.text('date' if is_date else column.base)}")
    for key in KEYS[column.base]:
        value = getattr(column, key)
        if key == "labels":
            lines.append(f"labels = {toml.array([toml.text(label) for label in value])}")
        elif key == "other":
            lines += [] if value else ["other = false"]
        elif key == "families":
            names = value or [member.name for member in registry.dictionary(column)]
            line = f"families = {toml.array([toml.text(name) for name in names])}"
            lines.append(line if value else "\n".join(toml.comment(part) for part in line.splitlines()))
        elif isinstance(value, tuple):
            lines.append(f"{key} = {toml.array([toml.number(part) for part in value])}")
        else:
            line = f"{key} = {toml.number(value)}"
            lines.append(toml.comment(line) if key == "resolution" and not column.has_grid else line)
    return "\n".join(lines)


def _facts(column: Column) -> str:
    """Return what the rows say of a column."""
    missing = f"{column.n_missing} cells missing, " if column.n_missing else ""
    if column.base == "category":
        return f"{missing}{column.n_distinct} labels in use"
    least, largest = (cells_of.value_label(value, column.dtype) for value in (column.minimum, column.maximum))
    is_date = column.dtype == "datetime"
    mean = cells_of.value_label(np.rint(column.mean), "datetime") if is_date else f"{column.mean:.5g}"
    few = column.levels if len(column.levels) <= defaults.MAX_INTEGER_LEVELS else ()
    levels = ", ".join(cells_of.number_label(level) for level in few)
    return f"{missing}{column.n_distinct} different values from {least} to {largest}, mean {mean}" + (
        f": {levels}" if levels else ""
    )
