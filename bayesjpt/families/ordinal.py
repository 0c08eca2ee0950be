"""Ordinal: ordered levels or labels, each a cell of one latent logistic variable; a leaf moves and spreads it.

theta = (scale, mu); P(level k) = expit((c_k - mu) / scale) - expit((c_k-1 - mu) / scale). The cuts c are those of the
column, the logits of its smoothed cumulative shares: at scale 1 and mu 0 the leaf has the column's own shares,
however they jump from level to level; two parameters say how a sub-population differs, neighbours together.

          .-----.                     constants = (mass of "other", level 1 ... level n, cut 1 ... cut n - 1)
       .-'|  |   '-.  latent
    __'___|__|______'__               where labels are ordered, "other" is the next code, with a small fixed mass:
        1  2    3                     its smoothed training share; whole numbers between levels have none

Prior: log scale ~ Normal(log_scale_mean, log_scale_sd^2), truncated above at log cap; mu ~ Normal(mu_mean, mu_sd^2).
The auxiliary table holds the position of a value among the levels, n for "other", -1 where it is none.

Reference: McCullagh (1980), Regression models for ordinal data, JRSS B.
"""

from __future__ import annotations

import math

import numpy as np

from bayesjpt import defaults
from bayesjpt.families import finite_support, ordinal_posterior
from bayesjpt.families.ordinal_posterior import fill_log_cells
from bayesjpt.families.record import ColumnFacts, Family, Parameter
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.logistic import expit, log_logistic_interval
from bayesjpt.numerics.ordering import n_below, n_up_to
from bayesjpt.numerics.special import logaddexp

_SCALE, _MU = 0, 1
_OTHER, _FIRST = 0, 1
_LEAST_LEVELS = 3
_LARGEST_SCALE = 100.0
_MOST_AT_ENDS = 1.5
"""Times the column's own share of its rarer end that a part which is not moved holds there at most."""
_LONGEST = 700.0


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Weakly informative: sub-populations lie within the column's range and are narrower than it, as a rule.

    A scale above 1 raises the share q of an end to about q^(1 / scale): a leaf whose common levels are spread would say
    that the rarest ones, which no row of it has, are many times as frequent as they are. So scales end at
    log q / (log q + log `_MOST_AT_ENDS`), q the share of the rarer end.
    """
    share = column.frequencies[: _n_level(column)]
    rarity = -math.log(min(share[0], share[-1]) / sum(share))
    cap = rarity / max(rarity - math.log(_MOST_AT_ENDS), rarity / _LARGEST_SCALE)
    return np.array([-0.5, 0.8, cap, 0.0, 2.0])


def abda_prior(_column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """In the spirit of the paper, which has no such likelihood: wide."""
    return np.array([0.0, 1.5, _LARGEST_SCALE, 0.0, 10.0])


def _constants(column: ColumnFacts) -> np.ndarray:
    share = np.asarray(column.frequencies, np.float64)
    other, levels = 0.0, np.asarray(column.levels, np.float64)
    if column.base == "category":
        other, share = share[-1], share[:-1]
        levels = np.arange(float(share.size))
    # both sums for themselves: 1 less a sum near 1 would lose the digits of a rare end
    below, above = np.cumsum(share)[:-1], np.cumsum(share[::-1])[::-1][1:]
    return np.concatenate([[other], levels, np.log(below) - np.log(above)])


def _n_level(column: ColumnFacts) -> int:
    return column.n_label - 1 if column.base == "category" else len(column.levels)


def _offers(column: ColumnFacts) -> bool:
    return _n_level(column) >= _LEAST_LEVELS and column.other


def _by_name(column: ColumnFacts) -> bool:
    """Where there are few levels the categorical describes them; the order of labels is for the user to say."""
    return len(column.levels) <= defaults.MAX_INTEGER_LEVELS


def _n_stats(constants: np.ndarray) -> int:
    return constants.size // 2


@kernel
def prepare(z, constants, out):
    n = constants.size // 2
    levels = constants[_FIRST : _FIRST + n]
    for i in range(out.size):
        at = n_below(levels, z[i])
        if at < n:
            out[i] = at if levels[at] == z[i] else -1.0
        else:
            out[i] = n if constants[_OTHER] > 0.0 and z[i] == n else -1.0


@kernel
def _fill_log_masses_of_levels(theta, constants, out):
    """Fill the log mass of each level and, last, of "other"; -inf where there is no such label."""
    n = constants.size // 2
    fill_log_cells(theta[_SCALE], theta[_MU], constants, out[:n])
    other = constants[_OTHER]
    log_rest = math.log1p(-other)
    for k in range(n):
        out[k] += log_rest
    out[n] = math.log(other) if other > 0.0 else -np.inf


@kernel
def coefficients(theta, constants, out):
    out[0] = -np.inf  # position -1
    _fill_log_masses_of_levels(theta, constants, out[1 : constants.size // 2 + 2])


@kernel
def accumulate(z, aux, rows, constants, stats):
    """Count the rows of each level; one of "other" says nothing of the parameters."""
    for j in range(rows.size):
        at = int(aux[rows[j]])
        if 0 <= at < stats.size:
            stats[at] += 1.0


@kernel
def _ends(k, theta, constants):
    """Return the ends of a level's cell in units of the leaf's scale, and how far they lie apart."""
    n = constants.size // 2
    cuts = constants[_FIRST + n :]
    lower = (cuts[k - 1] - theta[_MU]) / theta[_SCALE] if k > 0 else -np.inf
    upper = (cuts[k] - theta[_MU]) / theta[_SCALE] if k < n - 1 else np.inf
    return lower, upper, (cuts[k] - cuts[k - 1]) / theta[_SCALE] if 0 < k < n - 1 else np.inf


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    """With P = expit(b) expit(-a) (1 - exp(a - b)), the derivatives of the last factor cancel in mu."""
    n = constants.size // 2
    weight = np.zeros(n)
    for i in range(flow.size):
        at = int(aux[i])
        if flow[i] != 0.0 and 0 <= at < n:
            weight[at] += flow[i]
    for k in range(n):
        if weight[k] != 0.0:
            a, b, width = _ends(k, theta, constants)
            below = expit(a) if k > 0 else 0.0
            above = expit(-b) if k < n - 1 else 0.0
            by_scale = (a * below if k > 0 else 0.0) - (b * above if k < n - 1 else 0.0)
            if width < _LONGEST:
                by_scale -= width / math.expm1(width) if width > 0.0 else 1.0
            out[_SCALE] += weight[k] * by_scale / theta[_SCALE]
            out[_MU] += weight[k] * (below - above) / theta[_SCALE]


@kernel
def log_mass(lo, hi, theta, constants):
    """Return the log mass of neighbouring levels, which is that of one interval of the latent variable."""
    n = constants.size // 2
    levels, cuts = constants[_FIRST : _FIRST + n], constants[_FIRST + n :]
    first, last = n_below(levels, lo), n_up_to(levels, hi) - 1
    has_other = constants[_OTHER] > 0.0 and lo <= n <= hi
    if first == 0 and last == n - 1 and (has_other or constants[_OTHER] == 0.0):
        return 0.0
    inside = -np.inf
    if first <= last:
        lower = (cuts[first - 1] - theta[_MU]) / theta[_SCALE] if first > 0 else -np.inf
        upper = (cuts[last] - theta[_MU]) / theta[_SCALE] if last < n - 1 else np.inf
        width = (cuts[last] - cuts[first - 1]) / theta[_SCALE] if first > 0 and last < n - 1 else np.inf
        inside = log_logistic_interval(lower, upper, width) + math.log1p(-constants[_OTHER])
    return min(logaddexp(inside, math.log(constants[_OTHER])) if has_other else inside, 0.0)


@kernel
def cdf(x, theta, constants):
    return math.exp(log_mass(-np.inf, x, theta, constants))


@kernel
def _weights(lo, hi, theta, constants):
    """Return the masses of levels and "other" inside [lo, hi], relative to the largest; 0 outside."""
    n = constants.size // 2
    weight = np.empty(n + 1)
    _fill_log_masses_of_levels(theta, constants, weight)
    top = -np.inf
    for k in range(n + 1):
        value = constants[_FIRST + k] if k < n else float(n)
        if not lo <= value <= hi:
            weight[k] = -np.inf
        top = max(top, weight[k])
    for k in range(n + 1):
        # less the largest, so that one weight is 1 however small all masses are
        weight[k] = math.exp(weight[k] - top) if weight[k] > -np.inf else 0.0
    return weight


@kernel
def moment(k, lo, hi, theta, constants):
    weight = _weights(lo, hi, theta, constants)
    total = weight.sum()
    if total == 0.0:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    n = constants.size // 2
    mean, squares = 0.0, 0.0
    for j in range(n + 1):
        mean += weight[j] / total * (constants[_FIRST + j] if j < n else float(n))
    mean = min(max(mean, lo), hi)
    for j in range(n + 1):
        apart = (constants[_FIRST + j] if j < n else float(n)) - mean
        squares += weight[j] / total * apart * apart
    return mean if k == 1 else squares


@kernel
def _level(k, constants):
    return constants[_FIRST + k] if k < constants.size // 2 else float(k)


@kernel
def mode(lo, hi, theta, constants):
    weight = _weights(lo, hi, theta, constants)
    best = np.argmax(weight)
    if weight[best] > 0.0:
        return _level(best, constants)
    return min(max(_level(np.argmax(_weights(-np.inf, np.inf, theta, constants)), constants), lo), hi)


@kernel
def sample(lo, hi, theta, constants, rng):
    weight = _weights(lo, hi, theta, constants)
    total = weight.sum()
    if total == 0.0:
        return mode(lo, hi, theta, constants)
    left = total * rng.random()
    last = 0
    for k in range(weight.size):
        if weight[k] > 0.0:
            last = k
            left -= weight[k]
            if left < 0.0:
                break
    return _level(last, constants)


FAMILY = Family.of(
    finite_support,
    globals(),
    ordinal_posterior,
    name="ordinal",
    bases=("integer", "category"),
    statistical_type="ordinal",
    parameters=(
        Parameter(
            "scale",
            "positive",
            "log_normal",
            lambda hyper, theta: (hyper["log_scale_mean"], hyper["log_scale_sd"], hyper["cap"]),
            "spread of the column's latent variable",
        ),
        Parameter(
            "mu",
            "real",
            "normal",
            lambda hyper, theta: (hyper["mu_mean"], hyper["mu_sd"]),
            "of the latent variable, logits of the column's shares",
        ),
    ),
    hyper_names=("log_scale_mean", "log_scale_sd", "cap", "mu_mean", "mu_sd"),
    priors={"default": default_prior, "abda": abda_prior},
    constants=_constants,
    n_stats=_n_stats,
    offers=_offers,
    by_name=_by_name,
)
