"""A likelihood family of one's own: |z| of a centred normal, its variance with a conjugate inverse gamma prior."""

import math

import bayesjpt as bj
from bayesjpt.families.record import INVALID, OK, Family, Parameter, Scaling
from bayesjpt.numerics.draw import draw_gamma
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.special import log_normal_interval, normal_moments_between, normal_quantile_between


@kernel
def coefficients(theta, constants, out):
    out[0] = 0.5 * math.log(2.0 / (math.pi * theta[0]))
    out[1] = -0.5 / theta[0]


@kernel
def fill_log_density(z, aux, coefficients, out):
    for i in range(out.size):
        out[i] = coefficients[0] + coefficients[1] * z[i] * z[i] if z[i] >= 0.0 else -math.inf


@kernel
def accumulate(z, aux, rows, constants, stats):
    for j in range(rows.size):
        stats[0] += 1.0
        stats[1] += z[rows[j]] * z[rows[j]]


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    for i in range(z.size):
        out[0] += flow[i] * 0.5 * (z[i] * z[i] / theta[0] - 1.0) / theta[0]


@kernel
def initial(stats, hyper, constants, theta):
    theta[0] = (hyper[1] + 0.5 * stats[1]) / (hyper[0] + 0.5 * stats[0] + 1.0)


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    precision = draw_gamma(hyper[0] + 0.5 * stats[0], hyper[1] + 0.5 * stats[1], rng)
    theta[0] = 1.0 / precision
    return OK if 0.0 < theta[0] < math.inf else INVALID


@kernel
def log_mass(lo, hi, theta, constants):
    return math.log(2.0) + log_normal_interval(max(lo, 0.0) / theta[0] ** 0.5, hi / theta[0] ** 0.5)


@kernel
def cdf(x, theta, constants):
    return math.erf(x / math.sqrt(2.0 * theta[0])) if x > 0.0 else 0.0


@kernel
def moment(k, lo, hi, theta, constants):
    scale = math.sqrt(theta[0])
    end, offset, variance = normal_moments_between(max(lo, 0.0) / scale, hi / scale)
    first = (max(lo, 0.0) if end < 0 else hi if end > 0 else 0.0) + scale * offset
    return first if k == 1 else theta[0] * variance


@kernel
def mode(lo, hi, theta, constants):
    return min(max(lo, 0.0), hi)


@kernel
def sample(lo, hi, theta, constants, rng):
    u = normal_quantile_between(max(lo, 0.0) / math.sqrt(theta[0]), hi / math.sqrt(theta[0]), rng.random())
    return math.sqrt(theta[0]) * u


HALF_NORMAL = bj.register_family(Family.of(
    globals(),
    name="half_normal", bases=("real",), support=(0.0, math.inf), statistical_type="positive", scaling=Scaling.SCALE,
    parameters=(Parameter("variance", "positive", "inverse_gamma", lambda h, t: (h["a0"], h["b0"], 0.0), "scale^2"),),
    hyper_names=("a0", "b0"), priors={"default": lambda column, start: [2.0, 1.0]}, n_stats=2))  # fmt: skip
