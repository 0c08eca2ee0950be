"""Draws of the Polya-Gamma distribution PG(1, c), which make logistic regression conditionally Gaussian.

With w ~ PG(1, psi) a Bernoulli likelihood of log odds psi is exp((y - 1/2) psi - w psi^2 / 2) up to a constant.

References: Polson, Scott and Windle (2013), Bayesian Inference for Logistic Models Using Polya-Gamma Latent Variables,
JASA 108, section 4; Devroye (2009), On exact simulation algorithms for some distributions related to Jacobi theta
functions.
"""

from __future__ import annotations

import math

from bayesjpt.numerics.gaussian import log_normal_cdf
from bayesjpt.numerics.jit import kernel

_CUT = 0.64
"""Where the two series of the density take turns; any point where both decrease serves, this one wastes least."""


@kernel
def _term(n, x):
    """Return the n-th term of the alternating series of the density of J*(1, 0)."""
    k = n + 0.5
    if x > _CUT:
        return math.pi * k * math.exp(-0.5 * (math.pi * k) ** 2 * x)
    return math.pi * k * (2.0 / (math.pi * x)) ** 1.5 * math.exp(-2.0 * k * k / x)


@kernel
def _draw_inverse_gaussian_below(z, rng):
    """Return a draw of the inverse Gaussian with mean 1 / z and shape 1, given that it is below the cut."""
    if z * _CUT < 1.0:
        while True:
            first, second = rng.standard_exponential(), rng.standard_exponential()
            while first * first > 2.0 * second / _CUT:
                first, second = rng.standard_exponential(), rng.standard_exponential()
            x = _CUT / ((1.0 + first * _CUT) * (1.0 + first * _CUT))
            if rng.random() <= math.exp(-0.5 * z * z * x):
                return x
    mean = 1.0 / z
    while True:
        squared = rng.standard_normal() ** 2
        # the smaller root, without the cancellation of mean + ... - sqrt(...)
        x = mean / (1.0 + 0.5 * mean * squared + math.sqrt(mean * squared + 0.25 * (mean * squared) ** 2))
        # Michael, Schucany and Haas (1976): the other root, mean^2 / x, with probability x / (mean + x)
        if rng.random() > mean / (mean + x):
            x = mean * mean / x
        if x < _CUT:
            return x


@kernel
def draw_polya_gamma(c, rng):
    """Return a draw of PG(1, c): positive, mean tanh(c / 2) / (2 c), 1 / 4 at c = 0.

    Notes
    -----
    PG(1, c) = J*(1, c / 2) / 4. A proposal is exponential beyond the cut and inverse Gaussian below it; the partial
    sums of the alternating series bound the density from both sides until they decide. About 1.1 proposals a draw.
    """
    if math.isnan(c):
        return math.nan  # the loop below would never end
    z = 0.5 * abs(c)
    rate = 0.125 * math.pi * math.pi + 0.5 * z * z
    root = math.sqrt(1.0 / _CUT)
    below = math.exp(log_normal_cdf(root * (_CUT * z - 1.0)) - z) + math.exp(
        log_normal_cdf(-root * (_CUT * z + 1.0)) + z
    )
    above = 0.25 * math.pi / rate * math.exp(-rate * _CUT)  # both over 2
    share = above / (above + below)
    while True:
        beyond = rng.random() < share
        x = _CUT + rng.standard_exponential() / rate if beyond else _draw_inverse_gaussian_below(z, rng)
        total = _term(0, x)
        level = rng.random() * total
        n = 0
        while True:
            n += 1
            # an odd number of further terms leaves the sum below the density, an even one above
            if n % 2 == 1:
                total -= _term(n, x)
                if level <= total:
                    return 0.25 * x
            else:
                total += _term(n, x)
                if level > total:
                    break
