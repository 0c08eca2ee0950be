"""Numbers, dates, probabilities and linear predictors of trees of experts, as readers of a table know them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesjpt.table import cells as cells_of
from bayesjpt.table.covariates import Covariate, Covariates
from bayesjpt.table.schema import Column
from bayesjpt.table.written_numbers import NumberNotation

_N_TERM = 3
_MOST_DIGITS = 15
_LARGE = 1e9
_RARE = 0.001
_FAR = 10.0
"""Standard deviations from 0, beyond which a covariate is told from its mean."""


class Unit(NamedTuple):
    """Of time: in days, and its name."""

    days: float
    name: str


_UNITS = (Unit(1.0, "days"), Unit(1.0 / 24.0, "hours"), Unit(1.0 / 1440.0, "minutes"), Unit(1.0 / 86_400.0, "seconds"))
_MICROSECOND = 1e-6 / 86_400.0


def unit_of_time(days: float) -> Unit:
    """Return the largest unit that is at most so many days; seconds where none is."""
    return next((unit for unit in _UNITS if unit.days <= days * (1.0 + 1e-9)), _UNITS[-1])


def number(value: float, spread: float = math.inf, least: int = 3) -> str:
    """Return a number with at least so many digits, and enough that a fraction of some spread is seen.

    Examples
    --------
    >>> number(0.98765), number(1234567.8), number(1234567.8, spread=5.0), number(1e12), number(2.0 / 3.0, least=4)
    ('0.988', '1230000', '1234567.8', '1e+12', '0.6667')
    """
    text = f"{value + 0.0:.{_n_digit(value, spread, least)}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < _LARGE else text


def _n_digit(value: float, spread: float, least: int) -> int:
    more = math.ceil(math.log10(abs(value) / spread)) + 2 if value and 0.0 < spread < math.inf else 0
    return min(max(least, more), _MOST_DIGITS)


def chance(p: float) -> str:
    """Return a probability with two digits, or how near it is to 0 or 1.

    Examples
    --------
    >>> [chance(p) for p in (1e-9, 0.00234, 0.123, 0.5, 0.9957, 1.0)]
    ['<0.001', '0.0023', '0.12', '0.5', '0.996', '>0.999']
    """
    if p < _RARE:
        return f"<{_RARE:g}"
    if p > 1.0 - _RARE:
        return f">{1.0 - _RARE:g}"
    return f"{p:.3f}" if p >= 0.99 else f"{p:.2g}"


def chances(lo: float, hi: float) -> str:
    """Return the ends of an interval of probabilities, once where both read alike."""
    return chance(lo) if chance(lo) == chance(hi) else f"{chance(lo)} to {chance(hi)}"


def point(column: Column, value: float, spread: float) -> str:
    """Return a value of a column of numbers or dates as its table spells it, as exactly as some spread asks for.

    Examples
    --------
    >>> point(Column("day", "real", (-1e9, 1e9), dtype="datetime", resolution=1.0), 18291.3, 17.0)
    '2020-01-30'
    >>> point(Column("size", "real", (0.0, 9.0)), 2.34567, 1.0)
    '2.346'
    >>> point(Column("income", "integer", (0.0, 9e4), notation=NumberNotation(digits=1)), 38768.2, 900.0)
    '38770'
    """
    value = rounded(column, value, spread)
    # a point and as many digits as in each cell would be more than the spread asks for
    if column.notation is not None and not (isinstance(column.notation, NumberNotation) and column.notation.is_plain):
        return column.text(value)
    if column.dtype == "datetime":
        return cells_of.value_label(value, "datetime")
    return number(value, spread, 4)


def rounded(column: Column, value: float, spread: float) -> float:
    """Return a value as exactly as `point` tells it."""
    if column.dtype != "datetime":
        return float(f"{value:.{_n_digit(value, spread, 4)}g}")
    exact = max(0.01 * spread, column.resolution)
    step = next((unit.days for unit in _UNITS if unit.days <= exact * (1.0 + 1e-6)), _MICROSECOND)
    return float(np.rint(value / step) * step)


def linear(
    coefficients: np.ndarray,
    covariates: Covariates,
    *,
    spread: float = 1.0,
    target: Column | None = None,
    unit: float = 1.0,
) -> str:
    """Return the largest terms of a linear predictor, in the units of the table.

    Parameters
    ----------
    coefficients : float64 (n_covariate,)
    covariates : Covariates
    spread : float
        Of what is predicted, of which the first number tells a fraction.
    target : Column, optional
        Of dates: the first number is one of them.
    unit : float
        By which the slopes are divided.

    Notes
    -----
    Labels are 0 and 1. Dates, and numbers far from 0 for their spread, are told from a point near their mean: an
    intercept at 0 would be a number of many digits that says nothing.
    """
    terms = [_term(member, covariates) for member in covariates.members]
    slopes = np.array([k / term.scale for k, term in zip(coefficients[1:], terms, strict=True)])
    at_zero = coefficients[0] - slopes @ np.array([term.centre - term.origin for term in terms])
    first = number(at_zero, spread) if target is None else point(target, at_zero, spread)
    order = np.argsort(-np.abs(coefficients[1:]), kind="stable")[:_N_TERM]
    parts = [first]
    for k in order:
        shown = slopes[k] * terms[k].unit / unit
        parts.append(f"{'-' if shown < 0 else '+'} {number(abs(shown))} {terms[k].text}")
    rest = slopes.size - order.size
    return " ".join(parts) + (f" and {rest} smaller {'term' if rest == 1 else 'terms'}" if rest > 0 else "")


class _Term(NamedTuple):
    """What is entered is (x - centre) / scale; what is told is slope (x - origin), of dates in a unit of days."""

    centre: float
    scale: float
    origin: float
    unit: float
    text: str


def _term(member: Covariate, covariates: Covariates) -> _Term:
    column = covariates.column_of(member)
    if member.code >= 0:
        # of two labels -1 and 1 are entered
        half = 0.5 if len(column.labels) == 2 else 0.0
        return _Term(half, 1.0 - half, 0.0, 1.0, member.name)
    if column.dtype == "datetime":
        unit, origin = unit_of_time(member.scale), rounded(column, member.centre, member.scale)
        since = point(column, origin, member.scale)
        return _Term(member.centre, member.scale, origin, unit.days, f"({member.name} - {since}, in {unit.name})")
    if abs(member.centre) <= _FAR * member.scale:
        return _Term(member.centre, member.scale, 0.0, 1.0, member.name)
    origin = rounded(column, member.centre, member.scale)
    sign = "-" if origin > 0.0 else "+"
    text = f"({member.name} {sign} {number(abs(origin), member.scale, 4)})"
    return _Term(member.centre, member.scale, origin, 1.0, text)
