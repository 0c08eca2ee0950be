"""What families share whose parameters are probabilities of listed things: labels, atoms, segments.

theta = probabilities. Prior: Dirichlet(concentration). Statistics: how often each occurs.
"""

from __future__ import annotations

import math

from bayesjpt.families.record import INVALID, OK, Parameter
from bayesjpt.numerics.draw import draw_dirichlet
from bayesjpt.numerics.jit import kernel

SMALLEST = 1e-300
SCALE_SHAPE = 1.0
"""Shape of the prior of the factor that concentrations share: anything from parts that are alike to pure ones."""
_FEW = 8.0
"""Up to so many rows a product is quicker than gamma functions."""

PROBABILITY = Parameter(
    "probability", "simplex", "dirichlet", lambda hyper, theta: (hyper["concentration"],), "probability"
)


@kernel
def initial(stats, hyper, constants, theta):
    total = 0.0
    for k in range(theta.size):
        theta[k] = max(stats[k] + hyper[k], SMALLEST)
        total += theta[k]
    for k in range(theta.size):
        theta[k] /= total


@kernel
def log_rising(h, n):
    """Return log Gamma(h + n) - log Gamma(h)."""
    if n == 0.0:
        return 0.0
    if n > _FEW or n != math.floor(n):
        return math.lgamma(h + n) - math.lgamma(h)
    product = h
    for k in range(1, int(n)):
        product *= h + k
    return math.log(product)


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    return OK if draw_dirichlet(hyper + stats, theta, rng) else INVALID


@kernel
def log_marginal(stats, hyper, constants):
    total_prior = 0.0
    total = 0.0
    value = 0.0
    for k in range(hyper.size):
        total_prior += hyper[k]
        total += hyper[k] + stats[k]
        value += math.lgamma(hyper[k] + stats[k]) - math.lgamma(hyper[k])
    return value + math.lgamma(total_prior) - math.lgamma(total)
