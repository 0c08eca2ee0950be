"""The grid on which a column was recorded: multiples of a step beyond an offset, or one day of every so many months.

A step below 0 counts months, and the offset days behind the first day of each; -1 is the last day of the month before.
Months are numbered from January 1970, days from its first.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.jit import kernel

_DAYS_A_MONTH = 30.436875
"""Of the Gregorian calendar, whose 400 years have 146,097 days."""


@kernel
def first_of_month(number):
    """Return the first day of a month, by its number."""
    month = number - 12.0 * np.floor(number / 12.0)
    # years that begin in March have the day of a leap year at their end
    year = 1970.0 + np.floor(number / 12.0) - (1.0 if month < 2.0 else 0.0)
    since_march = month + (10.0 if month < 2.0 else -2.0)
    leap_days = np.floor(year / 4.0) - np.floor(year / 100.0) + np.floor(year / 400.0)
    return 365.0 * year + leap_days + np.floor((153.0 * since_march + 2.0) / 5.0) - 719_468.0


@kernel
def month_of(day):
    """Return the number of the month in which a finite time lies."""
    number = np.floor(day / _DAYS_A_MONTH)
    # the mean length of months is a few days off at most
    while first_of_month(number + 1.0) <= day:
        number += 1.0
    while first_of_month(number) > day:
        number -= 1.0
    return number


@kernel
def _month_point(x, n_month, offset, moved):
    if not np.isfinite(x):
        return x
    number = n_month * np.floor(month_of(x - offset) / n_month)
    if first_of_month(number + n_month) + offset - x < x - first_of_month(number) - offset:
        number += n_month
    return first_of_month(number + moved * n_month) + offset


@kernel
def grid_point(x, step, per_unit, offset, moved):
    """Return the grid point nearest to x, moved by some steps; without a grid (step 0), the whole number.

    `per_unit` is how many recorded numbers a unit has where that is a whole number, and 0 elsewhere. A quotient of
    whole numbers is the decimal as it is written: 3 / 10 is 0.3, 3 * 0.1 is not.
    """
    if step == 0.0:
        return np.rint(x) + moved
    if step < 0.0:
        return _month_point(x, -step, offset, moved)
    point = (np.round((x - offset) / step) + moved) * step + offset
    return np.round(point * per_unit) / per_unit if per_unit > 0.0 else point


@kernel
def grid_points(x, step, per_unit, offset):
    """Return the grid points nearest to some values, float64 as `x`."""
    out = np.empty(x.size)
    for i, value in enumerate(x.flat):
        out[i] = grid_point(value, step, per_unit, offset, 0)
    return out.reshape(x.shape)
