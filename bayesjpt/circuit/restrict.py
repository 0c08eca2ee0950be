"""Fewer families than a column would be offered, by the user's choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from bayesjpt.circuit.plan import ATOM
from bayesjpt.errors import SchemaError
from bayesjpt.families import registry
from bayesjpt.table.schema import Column, Schema, closest


def restrict_families(schema: Schema, families: Mapping[str, Iterable[str]] | Iterable[str]) -> Schema:
    """Return the schema whose columns are offered only some families.

    Parameters
    ----------
    schema : Schema
    families : mapping from str to names, or names
        Of single columns, or of all: of these each column keeps those that fit it, or its own dictionary where none
        does. Atoms always stay.

    Raises
    ------
    SchemaError
        For an unknown column or family, a family that fits no column (or not the one for which it is named), and where
        no family is named.

    Examples
    --------
    >>> column = Column(name="size", base="real", support=(0.0, float("inf")))
    >>> restrict_families(Schema((column,)), ["gamma"]).columns[0].families
    ('gamma',)
    """
    if isinstance(families, str):
        families = [families]
    if isinstance(families, Mapping):
        columns = list(schema.columns)
        for name, names in families.items():
            position = schema.index(name)
            columns[position] = _named(columns[position], _known([names] if isinstance(names, str) else names))
    else:
        names = _known(families)
        if not set(names) - {ATOM}:
            raise SchemaError("no likelihood family is named", "at least one")
        columns = [_kept(column, names) for column in schema.columns]
        for name in names:
            if not any(name in column.families for column in columns):
                bases = ", ".join(registry.family(name).bases)
                raise SchemaError(
                    f"family {name!r} fits no column of the table", f"a column of base {bases} in the family's support"
                )
    return replace(schema, columns=tuple(columns))


def _known(names: Iterable[str]) -> tuple[str, ...]:
    known = [member.name for member in registry.FAMILIES]
    if not isinstance(names, Iterable):
        raise SchemaError(f"likelihood families of type {type(names).__name__}", "a list of names")
    names = tuple(dict.fromkeys(names))
    for name in names:
        if name not in known:
            raise SchemaError(f"no likelihood family {name!r}", closest(str(name), known))
    return names


def _named(column: Column, names: tuple[str, ...]) -> Column:
    """Return the column with the families that were named for it, each of which must fit."""
    fitting = [member.name for member in registry.fitting(column)]
    for name in names:
        if name not in fitting:
            raise SchemaError(f"family {name!r} does not fit column {column.name!r}", f"some of {', '.join(fitting)}")
    if not set(names) - {ATOM}:
        raise SchemaError(
            f"column {column.name!r} is left without a likelihood family", f"at least one of {', '.join(fitting)}"
        )
    return replace(column, families=names)


def _kept(column: Column, names: tuple[str, ...]) -> Column:
    """Return the column with those of its families that were named, or as it is where none was."""
    offered = registry.dictionary(column) if column.families else registry.fitting(column)
    kept = tuple(member.name for member in offered if member.name in names)
    return replace(column, families=kept) if set(kept) - {ATOM} else column
