"""Rounded normal: whole numbers, negative ones among them, each with the mass of its cell [x - 1/2, x + 1/2].

theta = (variance, mu) of the normal before rounding, on z = (x - m) / s. Its prior is the normal's, with the variance
of the rounding as floor. Slots: `bayesjpt.families.rounded` and the two files beside it.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.families.record import ColumnFacts, Family, Parameter, Scaling
from bayesjpt.families.rounded import (
    abda_prior,
    accumulate,
    accumulate_gradient,
    coefficients,
    constants_everywhere,
    default_prior,
    fill_log_density,
    initial,
    prepare,
)
from bayesjpt.families.rounded_interval import cdf, log_mass, mode, moment, sample
from bayesjpt.families.rounded_posterior import draw_from_values


def _offers(column: ColumnFacts) -> bool:
    """Columns that go below 0: on the others stands its truncated sibling."""
    return column.support[0] < 0.0


FAMILY = Family(
    name="rounded_normal",
    bases=("integer",),
    support=(-np.inf, np.inf),
    statistical_type="real",
    scaling=Scaling.LOCATION_SCALE,
    parameters=(
        Parameter(
            "variance",
            "positive",
            "inverse_gamma",
            lambda hyper, theta: (hyper["a0"], hyper["b0"], hyper["floor"]),
            "squared scale units of the column",
        ),
        Parameter(
            "mu",
            "real",
            "normal",
            lambda hyper, theta: (hyper["m0"], (hyper["v0"] * theta["variance"]) ** 0.5),
            "scale units of the column, from its location",
        ),
    ),
    hyper_names=("m0", "v0", "a0", "b0", "floor"),
    priors={"default": default_prior, "abda": abda_prior},
    constants=constants_everywhere,
    n_theta=lambda column: 2,
    n_stats=lambda column: 3,
    offers=_offers,
    prepare=prepare,
    coefficients=coefficients,
    fill_log_density=fill_log_density,
    accumulate=accumulate,
    initial=initial,
    draw_from_values=draw_from_values,
    accumulate_gradient=accumulate_gradient,
    log_mass=log_mass,
    cdf=cdf,
    moment=moment,
    mode=mode,
    sample=sample,
)
