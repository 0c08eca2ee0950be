"""Our special functions: compiled scalars, most of them logarithms that hold far out in both tails."""

from __future__ import annotations

from bayesjpt.numerics.cancellation import log1mexp, log1p_minus, logaddexp
from bayesjpt.numerics.digamma import digamma
from bayesjpt.numerics.gaussian import (
    is_lost,
    log_lost_normal,
    log_normal_cdf,
    log_normal_interval,
    log_normal_mass,
    mills_ratio,
    normal_cdf,
    normal_moments_between,
    normal_quantile,
    normal_quantile_between,
)
from bayesjpt.numerics.incomplete_beta import (
    beta_p,
    log_beta,
    log_beta_kernel,
    log_beta_p,
    log_beta_q,
    log_beta_tails,
)
from bayesjpt.numerics.incomplete_gamma import (
    gamma_mean_between,
    gamma_p,
    gamma_quantile_between,
    log_gamma_interval,
    log_gamma_p,
    log_gamma_q,
    log_poisson_mass,
    stirling_error,
)
from bayesjpt.numerics.student import (
    log_lost_student,
    log_student_cdf,
    log_student_interval,
    log_student_level,
    student_cdf,
    student_moments_between,
    student_quantile_between,
)
from bayesjpt.numerics.tilted import tilted_mean, tilted_variance

__all__ = [
    "beta_p",
    "digamma",
    "gamma_mean_between",
    "gamma_p",
    "gamma_quantile_between",
    "is_lost",
    "log1mexp",
    "log1p_minus",
    "log_beta",
    "log_beta_kernel",
    "log_beta_p",
    "log_beta_q",
    "log_beta_tails",
    "log_gamma_interval",
    "log_gamma_p",
    "log_gamma_q",
    "log_lost_normal",
    "log_lost_student",
    "log_normal_cdf",
    "log_normal_interval",
    "log_normal_mass",
    "log_poisson_mass",
    "log_student_cdf",
    "log_student_interval",
    "log_student_level",
    "logaddexp",
    "mills_ratio",
    "normal_cdf",
    "normal_moments_between",
    "normal_quantile",
    "normal_quantile_between",
    "stirling_error",
    "student_cdf",
    "student_moments_between",
    "student_quantile_between",
    "tilted_mean",
    "tilted_variance",
]
