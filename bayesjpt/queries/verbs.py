"""Imports every verb, and so makes it a method of Posterior."""

from bayesjpt.queries import (
    condition,
    density,
    dependence,
    distribution,
    explain,
    impute,
    membership,
    mode,
    moments,
    outliers,
    probability,
    sample,
    types,
)

__all__ = [
    "condition",
    "density",
    "dependence",
    "distribution",
    "explain",
    "impute",
    "membership",
    "mode",
    "moments",
    "outliers",
    "probability",
    "sample",
    "types",
]
