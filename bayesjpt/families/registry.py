"""The list of families; a family's number is its position here and is never stored (saved files hold names)."""

from __future__ import annotations

from bayesjpt.errors import SchemaError
from bayesjpt.families import categorical, exponential, gamma, geometric, normal, poisson
from bayesjpt.families.record import ColumnFacts, Family

FAMILIES: tuple[Family, ...] = (
    normal.FAMILY,
    gamma.FAMILY,
    exponential.FAMILY,
    poisson.FAMILY,
    geometric.FAMILY,
    categorical.FAMILY,
)

_NUMBER = {family.name: number for number, family in enumerate(FAMILIES)}


def number(name: str) -> int:
    """Return the number of a family, or raise `SchemaError` listing the names."""
    try:
        return _NUMBER[name]
    except KeyError:
        raise SchemaError(f"no likelihood family {name!r}", f"one of {', '.join(_NUMBER)}") from None


def family(name: str) -> Family:
    """Return a family by its name."""
    return FAMILIES[number(name)]


def dictionary(column: ColumnFacts) -> tuple[Family, ...]:
    """Return the families that may describe a column: same base, support at least as wide as the column's."""
    lo, hi = column.support
    return tuple(
        member
        for member in FAMILIES
        if column.base in member.bases and member.support[0] <= lo and member.support[1] >= hi and member.offers(column)
    )
