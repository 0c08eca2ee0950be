"""Truncated rounded normal: whole numbers from 0, each with the mass of its cell, of a normal truncated at -1/2.

theta = (variance, mu) of the normal before truncation and rounding, on z = (x - m) / s; mu may lie below the
truncation point, where the family comes close to a geometric. The prior is the normal's, with the variance of
rounding to halves as floor. Its statistical type is "count": whole numbers from 0, more or less spread than a Poisson.
Slots: `bayesjpt.families.rounded` and the two files beside it.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.families import rounded, rounded_interval, rounded_posterior
from bayesjpt.families.normal_inverse_gamma import HYPER_NAMES, SHARED_SCALE, variance_and_mu
from bayesjpt.families.record import Family, Scaling
from bayesjpt.families.rounded import (
    abda_prior,
    constants_from_zero,
    default_prior,
)

FAMILY = Family.of(
    rounded,
    rounded_interval,
    rounded_posterior,
    name="truncated_rounded_normal",
    bases=("integer",),
    support=(0.0, np.inf),
    statistical_type="count",
    scaling=Scaling.LOCATION_SCALE,
    parameters=variance_and_mu("squared scale units of the column", "scale units of the column, from its location"),
    hyper_names=HYPER_NAMES,
    shared_scale=SHARED_SCALE,
    priors={"default": default_prior, "abda": abda_prior},
    constants=constants_from_zero,
    n_stats=3,
    reversible_draw=True,
)
