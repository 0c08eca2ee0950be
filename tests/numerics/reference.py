"""Slow twins in decimal arithmetic: incomplete gamma and beta functions and the normal tail, to any number of digits.

SciPy is no oracle everywhere: its incomplete gamma loses all digits for large a a few deviations from the centre, since
its series stops after a fixed number of terms.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from math import comb


@cache
def _bernoulli(n: int) -> Fraction:
    """Return the Bernoulli number B_n (B_1 = -1/2)."""
    if n == 0:
        return Fraction(1)
    return -sum(comb(n + 1, k) * _bernoulli(k) for k in range(n)) / (n + 1)


def _pi() -> Decimal:
    """Return pi by Machin's formula at the context's precision."""

    def arctan_inverse(n: int) -> Decimal:
        power = total = Decimal(1) / n
        k = 1
        while abs(power) > Decimal(10) ** -400:
            power /= -n * n
            k += 2
            total += power / k
        return total

    return 4 * (4 * arctan_inverse(5) - arctan_inverse(239))


def log_gamma(a: Decimal) -> Decimal:
    """Return log Gamma(a) for a > 0, by Stirling's series at an argument shifted beyond 100."""
    shift = Decimal(0)
    while a < 100:
        shift += a.ln()
        a += 1
    total = (a - Decimal("0.5")) * a.ln() - a + (2 * _pi()).ln() / 2
    for k in range(1, 40):
        b = _bernoulli(2 * k)
        total += Decimal(b.numerator) / Decimal(b.denominator) / (2 * k * (2 * k - 1)) / a ** (2 * k - 1)
    return total - shift


def log_gamma_tails(a: float, x: float, digits: int = 60) -> tuple[float, float]:
    """Return (log P(a, x), log Q(a, x)) by the series of P, whose terms are all positive."""
    with localcontext() as context:
        context.prec = digits + (int(x - a - a * math.log(x / a)) if x > a else 0)  # what 1 - P loses
        a_, x_ = Decimal(a), Decimal(x)
        term = total = Decimal(1)
        n = 0
        while term > total * Decimal(10) ** -context.prec:
            n += 1
            term *= x_ / (a_ + n)
            total += term
        lower = (a_ * x_.ln() - x_ - log_gamma(a_ + 1)).exp() * total
        return float(lower.ln()), float((1 - lower).ln())


def log_beta(a: float, b: float, digits: int = 60) -> float:
    """Return log B(a, b)."""
    with localcontext() as context:
        context.prec = digits
        a_, b_ = Decimal(a), Decimal(b)
        return float(log_gamma(a_) + log_gamma(b_) - log_gamma(a_ + b_))


def log_beta_tails(a: float, b: float, x: float, digits: int = 80) -> tuple[float, float]:
    """Return (log I_x(a, b), log(1 - I_x(a, b))) by a series of positive terms, its argument at most 1 / 2."""
    with localcontext() as context:
        context.prec = digits
        a_, b_, x_ = Decimal(a), Decimal(b), Decimal(x)
        y_ = 1 - x_
        swapped = x > 0.5
        if swapped:
            a_, b_, x_, y_ = b_, a_, y_, x_
        term = total = Decimal(1)
        n = 0
        while term > total * Decimal(10) ** -digits:
            term *= (a_ + b_ + n) * x_ / (a_ + 1 + n)
            total += term
            n += 1
        log_front = a_ * x_.ln() + b_ * y_.ln() + log_gamma(a_ + b_) - log_gamma(a_) - log_gamma(b_)
        near = log_front.exp() * total / a_
        tails = float(near.ln()), float((1 - near).ln())
        return tails[::-1] if swapped else tails


def log_normal_cdf(x: float, digits: int = 60) -> float:
    """Return log Phi(x) by the series of the error function."""
    with localcontext() as context:
        context.prec = digits + int(x * x)
        x_ = Decimal(x)
        term = total = x_
        n = 0
        while abs(term) > Decimal(10) ** -context.prec:
            n += 1
            term *= -x_ * x_ / (2 * n)
            total += term / (2 * n + 1)
        return float((Decimal("0.5") + total / (2 * _pi()).sqrt()).ln())
