"""The distributions of a block's parameters that PyMC does not have.

A Dirichlet for each segment of one vector, a gamma and an inverse gamma above a floor, a gamma, a normal and a
log-normal below a cap (a beta above a floor: `bayesjpt.model.truncated_beta`); with the transforms by which a sampler
of unbounded variables reaches them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.continuous import PositiveContinuous
from pymc.distributions.dist_math import check_parameters
from pymc.distributions.distribution import Continuous
from pytensor.tensor.random.op import RandomVariable

from bayesjpt.internals import (
    default_transform,
    log_probability,
    numba_core_rv_funcify,
    numba_njit,
    rv_size_is_none,
    support_point,
)
from bayesjpt.model.segments import SMALLEST_WEIGHT, Segments
from bayesjpt.model.transforms import AboveFloor, BelowCap, BelowLimit, SegmentSimplex
from bayesjpt.model.versions import ops_version
from bayesjpt.numerics import draw as drawing
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.special import normal_quantile_between

_SQRT_2 = 1.4142135623730951

_FAR_TAIL = 500.0
"""Where tails of gamma distributions are expanded: e^-745 is the smallest float."""

_N_TAIL_TERM = 12


def apply_rv(op: RandomVariable, *parameters, size, rng):
    """Return the variable of a random op, with a shared generator of its own where none is given."""
    rng = pt.random.shared_rng(seed=None) if rng is None else rng
    _, variable = op(*parameters, size=size, rng=rng, return_next_rng=True)
    return variable


def as_double(x):
    """Return x as a float64 tensor; PyTensor reads a plain 1.5 as float32 and would compute its logarithm as such."""
    return pt.as_tensor(x).astype("float64")


def log_normal_cdf(z):
    """Return the log of the standard normal cdf; PyMC's divides by a float32 square root and is off by 1e-8."""
    is_low = z < -1.0
    # each branch gets arguments at which its value and slope are finite, whichever is taken
    low, rest = pt.switch(is_low, -z, 1.0) / _SQRT_2, pt.switch(is_low, -1.0, z) / _SQRT_2
    return pt.switch(is_low, pt.log(0.5 * pt.erfcx(low)) - low**2, pt.log1p(-0.5 * pt.erfc(rest)))


def log_gamma_tail(alpha, x):
    """Return log P(G > x) of G ~ Gamma(alpha, 1), also where that probability underflows.

    Far out by the expansion x^(alpha - 1) e^-x / Gamma(alpha) (1 + (alpha - 1) / x (1 + (alpha - 2) / x (...)))
    (Digital Library of Mathematical Functions, 8.11.2).
    """
    far = x > pt.maximum(_FAR_TAIL, 4.0 * alpha)
    # each branch gets arguments at which its value and slope are finite, whichever is taken
    near, beyond = pt.switch(far, 1.0, x), pt.switch(far, x, _FAR_TAIL)
    series = pt.ones_like(beyond)
    for k in range(_N_TAIL_TERM, 0, -1):
        series = 1.0 + (alpha - k) / beyond * series
    expansion = (alpha - 1.0) * pt.log(beyond) - beyond - pt.gammaln(alpha) + pt.log(pt.switch(far, series, 1.0))
    return pt.switch(far, expansion, pt.log(pt.gammaincc(alpha, near)))


@apart
@kernel
def fill_segments(concentration, ptr, out, rng):
    """Fill out, float64 (n,), with one Dirichlet vector a segment."""
    for k in range(ptr.size - 1):
        lo, hi = ptr[k], ptr[k + 1]
        if drawing.draw_log_dirichlet(concentration[lo:hi], out[lo:hi], rng):
            for i in range(lo, hi):
                out[i] = max(np.exp(out[i]), SMALLEST_WEIGHT)
        else:
            out[lo:hi] = np.nan


@kernel
def draw_inverse_gamma_above(rng, alpha, beta, floor):
    """Return 1 / x of a gamma variable x, given that it is at least a floor."""
    upper = 1.0 / floor if floor > 0.0 else np.inf
    return max(1.0 / drawing.draw_gamma_below(alpha, beta, upper, rng), floor)


@kernel
def draw_gamma_above(rng, alpha, beta, floor):
    """Return a gamma variable, given that it is at least a floor."""
    return drawing.draw_gamma_above(alpha, beta, floor, rng)


@kernel
def draw_gamma_below(rng, alpha, beta, upper):
    """Return a gamma variable, given that it is at most a cap."""
    return drawing.draw_gamma_below(alpha, beta, upper, rng)


@kernel
def draw_log_normal_below(rng, mu, sigma, upper):
    """Return a log-normal variable, given that it is at most a cap."""
    u = normal_quantile_between(-np.inf, (np.log(upper) - mu) / sigma, rng.random() + 1e-17)
    return min(np.exp(mu + sigma * u), upper)


@kernel
def draw_normal_below(rng, mu, sigma, upper):
    """Return a normal variable, given that it is at most a cap."""
    return min(mu + sigma * normal_quantile_between(-np.inf, (upper - mu) / sigma, rng.random() + 1e-17), upper)


def _batched(draw, rng, parameters, size):
    """Return draws of a scalar kernel over broadcast parameters."""
    shape = np.broadcast_shapes(*(np.shape(p) for p in parameters)) if size is None else tuple(size)
    flat = [np.broadcast_to(np.asarray(p, np.float64), shape).ravel() for p in parameters]
    return np.array([draw(rng, *values) for values in zip(*flat, strict=True)]).reshape(shape)


class SegmentDirichletRV(RandomVariable):
    """A Dirichlet vector for each segment, concatenated."""

    name = "SegmentDirichlet"
    signature = "(e)->(e)"
    dtype = "float64"
    _print_name = ("SegmentDirichlet", "\\operatorname{SegmentDirichlet}")
    __props__ = ("name", "signature", "dtype", "inplace", "segments")

    def __init__(self, segments=None, **kwargs):
        self.segments = segments
        super().__init__(**kwargs)

    def rng_fn(self, rng, concentration, size=None):
        shape = np.shape(concentration) if size is None else (*size, np.shape(concentration)[-1])
        concentration = np.ascontiguousarray(np.broadcast_to(concentration, shape), np.float64)
        out = np.empty(shape)
        for index in np.ndindex(shape[:-1]):
            fill_segments(concentration[index], self.segments.ptr, out[index], rng)
        return out


class SegmentDirichlet(Continuous):
    """Dirichlet vectors of unequal length in one random variable.

    Parameters
    ----------
    concentration : tensor_like of float
        One entry an entry of the vector, its last axis, or a scalar for all.
    ptr : int (n_segment + 1,)
        Offsets of the segments.
    """

    rv_type = SegmentDirichletRV

    @classmethod
    def dist(cls, concentration, *, ptr, **kwargs):
        segments = Segments(ptr)
        n = int(segments.ptr[-1])
        concentration = as_double(concentration)
        if concentration.type.ndim == 0:
            concentration = pt.broadcast_to(concentration, (n,))
        batch = (None,) * (concentration.type.ndim - 1)
        return super().dist([pt.specify_shape(concentration, (*batch, n))], segments=segments, **kwargs)

    @classmethod
    def rv_op(cls, concentration, *, segments, size=None, rng=None, **kwargs):
        return apply_rv(cast(Any, cls).rv_type(segments=segments), concentration, size=size, rng=rng)


@log_probability.register(SegmentDirichletRV)
def segment_dirichlet_logp(op, values, rng, size, concentration, **kwargs):
    """Return the log density of simplexes, -inf off them."""
    (value,) = values
    segments = op.segments
    logp = (
        pt.sum((concentration - 1.0) * pt.log(value), axis=-1)
        - pt.sum(pt.gammaln(concentration), axis=-1)
        + pt.sum(pt.gammaln(segments.sum(concentration)), axis=-1)
    )
    inside = pt.all(value > 0.0, axis=-1) & pt.all(pt.abs(segments.sum(value) - 1.0) < 1e-8, axis=-1)
    return check_parameters(pt.switch(inside, logp, -np.inf), concentration > 0.0, msg="concentration > 0")


@support_point.register(SegmentDirichletRV)
def _segment_dirichlet_support_point(op, rv, rng, size, concentration):
    mean = concentration / op.segments.sum(concentration)[..., op.segments.member]
    mean = pt.maximum(mean, SMALLEST_WEIGHT)
    if not rv_size_is_none(size):
        mean = pt.full(pt.concatenate([size, [mean.shape[-1]]]), mean)
    return mean


@numba_core_rv_funcify.register(SegmentDirichletRV)
def _segment_dirichlet_numba(op, node):
    ptr = op.segments.ptr

    @numba_njit
    def segment_dirichlet(rng, concentration):
        out = np.empty(concentration.shape[0])
        fill_segments(concentration, ptr, out, rng)
        return out

    return segment_dirichlet, ops_version()


class TruncatedRV(RandomVariable):
    """A scalar distribution of two parameters that is cut off at a third; `draw` is its compiled sampler."""

    signature = "(),(),()->()"
    dtype = "float64"
    draw: Callable[..., float]
    transform: Callable[[], Any]

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls._print_name = (cls.name, f"\\operatorname{{{cls.name}}}")

    @classmethod
    def rng_fn(cls, rng, first, second, limit, size=None):
        return _batched(cls.draw, rng, (first, second, limit), size)


@numba_core_rv_funcify.register(TruncatedRV)
def _truncated_numba(op, node):
    draw = op.draw

    @numba_njit
    def truncated(rng, first, second, limit):
        return draw(rng, first, second, limit)

    return truncated, ops_version()  # PyTensor's own key of the compiled code names the class of the op


@default_transform.register(TruncatedRV)
def _truncated_transform(op, rv):
    return op.transform()


class Truncated:
    """What the distributions of two parameters and a limit have in common; all three are given by their positions."""

    @classmethod
    def dist(cls, first, second, limit, **kwargs):
        return cast(Any, super()).dist([as_double(first), as_double(second), as_double(limit)], **kwargs)


def sized(point, size):
    """Return the support point of a variable of a size."""
    return point if rv_size_is_none(size) else pt.full(size, point)


class FlooredInverseGammaRV(TruncatedRV):
    """InverseGamma(alpha, beta) given that it exceeds a floor."""

    name = "FlooredInverseGamma"
    draw = staticmethod(draw_inverse_gamma_above)
    transform = AboveFloor


class FlooredInverseGamma(Truncated, PositiveContinuous):
    """Inverse gamma distribution truncated below, its normaliser included.

    Parameters
    ----------
    alpha, beta : tensor_like of float
        Shape and scale.
    floor : tensor_like of float
        Lower bound; 0 for none.
    """

    rv_op = FlooredInverseGammaRV()

    def support_point(rv, size, alpha, beta, floor):
        point = pt.maximum(beta / (alpha + 1.0), 1.5 * floor)
        return sized(point, size)

    def logp(value, alpha, beta, floor):
        # without a floor the branch that is not taken would divide by 0
        safe_floor = pt.switch(floor > 0.0, floor, 1.0)
        log_mass = pt.switch(floor > 0.0, pt.log(pt.gammainc(alpha, beta / safe_floor)), 0.0)
        logp = alpha * pt.log(beta) - pt.gammaln(alpha) - (alpha + 1.0) * pt.log(value) - beta / value - log_mass
        return check_parameters(
            pt.switch((value >= floor) & (value > 0.0), logp, -np.inf),
            alpha > 0.0,
            beta > 0.0,
            floor >= 0.0,
            msg="alpha > 0, beta > 0, floor >= 0",
        )


class FlooredGammaRV(TruncatedRV):
    """Gamma(alpha, beta) given that it exceeds a floor."""

    name = "FlooredGamma"
    draw = staticmethod(draw_gamma_above)
    transform = AboveFloor


class FlooredGamma(Truncated, PositiveContinuous):
    """Gamma distribution truncated below, its normaliser included.

    Parameters
    ----------
    alpha, beta : tensor_like of float
        Shape and rate.
    floor : tensor_like of float
        Lower bound; 0 for none.
    """

    rv_op = FlooredGammaRV()

    def support_point(rv, size, alpha, beta, floor):
        point = pt.maximum(alpha / beta, 1.5 * floor)
        return sized(point, size)

    def logp(value, alpha, beta, floor):
        log_mass = pt.switch(floor > 0.0, log_gamma_tail(alpha, beta * floor), 0.0)
        logp = alpha * pt.log(beta) - pt.gammaln(alpha) + (alpha - 1.0) * pt.log(value) - beta * value - log_mass
        return check_parameters(
            pt.switch((value >= floor) & (value > 0.0), logp, -np.inf),
            alpha > 0.0,
            beta > 0.0,
            floor >= 0.0,
            msg="alpha > 0, beta > 0, floor >= 0",
        )


class CappedGammaRV(TruncatedRV):
    """Gamma(alpha, beta) given that it is at most a cap."""

    name = "CappedGamma"
    draw = staticmethod(draw_gamma_below)
    transform = BelowCap


class CappedGamma(Truncated, PositiveContinuous):
    """Gamma distribution truncated above, its normaliser included.

    Parameters
    ----------
    alpha, beta : tensor_like of float
        Shape and rate.
    upper : tensor_like of float
        Upper bound; infinity for none.
    """

    rv_op = CappedGammaRV()

    def support_point(rv, size, alpha, beta, upper):
        point = pt.minimum(alpha / beta, 0.5 * upper)
        return sized(point, size)

    def logp(value, alpha, beta, upper):
        unbounded = pt.isinf(upper)
        log_mass = pt.switch(unbounded, 0.0, pt.log(pt.gammainc(alpha, beta * pt.switch(unbounded, 1.0, upper))))
        logp = alpha * pt.log(beta) - pt.gammaln(alpha) + (alpha - 1.0) * pt.log(value) - beta * value - log_mass
        return check_parameters(
            pt.switch((value > 0.0) & (value <= upper), logp, -np.inf),
            alpha > 0.0,
            beta > 0.0,
            upper > 0.0,
            msg="alpha > 0, beta > 0, upper > 0",
        )


class CappedLogNormalRV(TruncatedRV):
    """LogNormal(mu, sigma) given that it is at most a cap."""

    name = "CappedLogNormal"
    draw = staticmethod(draw_log_normal_below)
    transform = BelowCap


class CappedLogNormal(Truncated, PositiveContinuous):
    """Log-normal distribution truncated above, its normaliser included.

    Parameters
    ----------
    mu, sigma : tensor_like of float
        Mean and standard deviation of the logarithm.
    upper : tensor_like of float
        Upper bound; infinity for none.
    """

    rv_op = CappedLogNormalRV()

    def support_point(rv, size, mu, sigma, upper):
        point = pt.minimum(pt.exp(mu), 0.5 * upper)
        return sized(point, size)

    def logp(value, mu, sigma, upper):
        z = (pt.log(value) - mu) / sigma
        unbounded = pt.isinf(upper)
        edge = (pt.log(pt.switch(unbounded, 1.0, upper)) - mu) / sigma
        log_mass = pt.switch(unbounded, 0.0, log_normal_cdf(edge))
        logp = -0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - pt.log(sigma) - pt.log(value) - log_mass
        return check_parameters(
            pt.switch((value > 0.0) & (value <= upper), logp, -np.inf),
            sigma > 0.0,
            upper > 0.0,
            msg="sigma > 0, upper > 0",
        )


class CappedNormalRV(TruncatedRV):
    """Normal(mu, sigma) given that it is at most a cap."""

    name = "CappedNormal"
    draw = staticmethod(draw_normal_below)
    transform = BelowLimit


class CappedNormal(Truncated, Continuous):
    """Normal distribution truncated above, its normaliser included.

    Parameters
    ----------
    mu, sigma : tensor_like of float
        Mean and standard deviation before truncation.
    upper : tensor_like of float
        Upper bound; infinity for none.
    """

    rv_op = CappedNormalRV()

    def support_point(rv, size, mu, sigma, upper):
        point = pt.minimum(mu, upper - 0.5 * sigma)
        return sized(point, size)

    def logp(value, mu, sigma, upper):
        z = (value - mu) / sigma
        unbounded = pt.isinf(upper)
        edge = (pt.switch(unbounded, 0.0, upper) - mu) / sigma
        log_mass = pt.switch(unbounded, 0.0, log_normal_cdf(edge))
        logp = -0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - pt.log(sigma) - log_mass
        return check_parameters(pt.switch(value <= upper, logp, -np.inf), sigma > 0.0, msg="sigma > 0")


@default_transform.register(SegmentDirichletRV)
def _segment_dirichlet_transform(op, rv):
    return SegmentSimplex(op.segments)
