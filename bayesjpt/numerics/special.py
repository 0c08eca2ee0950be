"""The door to our special functions: compiled scalars, most of them logarithms that hold far out in both tails."""

from __future__ import annotations

from bayesjpt.numerics.cancellation import log1mexp, log1p_minus, logaddexp
from bayesjpt.numerics.gaussian import (
    log_normal_cdf,
    log_normal_interval,
    mills_ratio,
    normal_cdf,
    normal_moments_between,
    normal_quantile,
    normal_quantile_between,
)
from bayesjpt.numerics.incomplete_gamma import (
    gamma_p,
    gamma_quantile_between,
    log_gamma_interval,
    log_gamma_p,
    log_gamma_q,
    log_poisson_mass,
    stirling_error,
)
from bayesjpt.numerics.tilted import tilted_mean, tilted_variance

__all__ = [
    "gamma_p",
    "gamma_quantile_between",
    "log1mexp",
    "log1p_minus",
    "log_gamma_interval",
    "log_gamma_p",
    "log_gamma_q",
    "log_normal_cdf",
    "log_normal_interval",
    "log_poisson_mass",
    "logaddexp",
    "mills_ratio",
    "normal_cdf",
    "normal_moments_between",
    "normal_quantile",
    "normal_quantile_between",
    "stirling_error",
    "tilted_mean",
    "tilted_variance",
]
