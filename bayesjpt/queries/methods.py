"""Imports every query method, and so makes it a method of Posterior."""

from bayesjpt.queries import (
    components,
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
    patterns,
    predict,
    probability,
    sample,
    types,
)

__all__ = [
    "components",
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
    "patterns",
    "predict",
    "probability",
    "sample",
    "types",
]
