"""One verb a file, each a function ``f(post, ...)`` that is also a method of Posterior."""

from bayesjpt.queries import (
    condition,
    density,
    dependence,
    distribution,
    explain,
    impute,
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
    "mode",
    "moments",
    "outliers",
    "probability",
    "sample",
    "types",
]
