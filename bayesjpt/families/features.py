"""From a column's values in the user's units to what the families' loops read: z and its auxiliary table."""

from __future__ import annotations

import numpy as np

from bayesjpt.families.record import ColumnFacts, Family, Scaling

SCALINGS: tuple[Scaling, ...] = tuple(Scaling)
"""A scaling's number is its position here."""


def offset_and_scale(scaling: Scaling, column: ColumnFacts) -> tuple[float, float]:
    """Return (offset, scale) such that z = (x - offset) / scale."""
    if scaling is Scaling.LOCATION_SCALE or (scaling is Scaling.REAL_LOCATION_SCALE and column.base == "real"):
        return column.location, column.scale
    if scaling is Scaling.SCALE:
        return 0.0, column.scale
    return 0.0, 1.0


def to_units(family: Family, column: ColumnFacts, x: np.ndarray) -> np.ndarray:
    """Return z, float64 of the shape of x: values of a column in the family's units."""
    offset, scale = offset_and_scale(family.scaling, column)
    return np.ascontiguousarray((np.asarray(x, np.float64) - offset) / scale)


def auxiliary(family: Family, z: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """Return the table that `Family.prepare` makes of z, or z itself."""
    if family.prepare is None:
        return z
    out = np.empty_like(z)
    family.prepare(z, constants, out)
    return out


def statistics(family: Family, column: ColumnFacts, x: np.ndarray, constants: np.ndarray | None = None) -> np.ndarray:
    """Return the sufficient statistics, float64 (n_stats,), of observed values in the user's units.

    Those of a leaf with the column's constants, unless others are given.
    """
    constants = family.constants(column) if constants is None else constants
    z = to_units(family, column, x)
    stats = np.zeros(family.n_stats(constants))
    family.accumulate(z, auxiliary(family, z, constants), np.arange(z.size, dtype=np.int32), constants, stats)
    return stats


def initial_theta(
    family: Family,
    column: ColumnFacts,
    x: np.ndarray,
    constants: np.ndarray | None = None,
    hyper: np.ndarray | None = None,
) -> np.ndarray:
    """Return an estimate of the parameters, float64 (n_theta,), from observed values in the user's units.

    `hyper` are those of `hyper_before_rows`, where many leaves share them.
    """
    constants = family.constants(column) if constants is None else constants
    if family.estimate is not None:
        return family.estimate(column, np.asarray(x, np.float64), constants)
    theta = _even(family, constants)
    hyper = hyper_before_rows(family, column, constants) if hyper is None else hyper
    family.initial(statistics(family, column, x, constants), hyper, constants, theta)
    return theta


def hyper_before_rows(family: Family, column: ColumnFacts, constants: np.ndarray) -> np.ndarray:
    """Return the default prior's hyperparameters before there is an estimate, float64 (n_hyper,)."""
    return np.asarray(family.priors["default"](column, _even(family, constants)), np.float64)


def _even(family: Family, constants: np.ndarray) -> np.ndarray:
    n = family.n_theta(constants)
    return np.full(n, 1.0 / max(n, 1))
