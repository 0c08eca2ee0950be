"""Rounded normal: whole numbers, negative ones among them, each with the mass of its cell [x - 1/2, x + 1/2].

theta = (variance, mu) of the normal before rounding, on z = (x - m) / s. Its prior is the normal's, with the variance
of rounding to halves as floor. Slots: `bayesjpt.families.rounded` and the two files beside it.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.families import rounded, rounded_interval, rounded_posterior
from bayesjpt.families.normal_inverse_gamma import HYPER_NAMES, SHARED_SCALE, variance_and_mu
from bayesjpt.families.record import ColumnFacts, Family, Scaling
from bayesjpt.families.rounded import (
    abda_prior,
    constants_everywhere,
    default_prior,
)


def _offers(column: ColumnFacts) -> bool:
    """Columns that go below 0: on the others stands its truncated sibling."""
    return column.support[0] < 0.0


FAMILY = Family.of(
    rounded,
    rounded_interval,
    rounded_posterior,
    name="rounded_normal",
    bases=("integer",),
    support=(-np.inf, np.inf),
    statistical_type="real",
    scaling=Scaling.LOCATION_SCALE,
    parameters=variance_and_mu("squared scale units of the column", "scale units of the column, from its location"),
    hyper_names=HYPER_NAMES,
    shared_scale=SHARED_SCALE,
    priors={"default": default_prior, "abda": abda_prior},
    constants=constants_everywhere,
    n_stats=3,
    offers=_offers,
    reversible_draw=True,
)
