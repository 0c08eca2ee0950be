"""Categorical: a probability for each label, or for each level of an integer column that has few of them.

theta = probabilities, the last label being "other". Prior: Dirichlet(concentration). The constants are the codes of the
labels or the levels, and then whether each may occur, 1 or 0: a leaf may be restricted to some of them (`only`), and
its distribution is theta normalised on these. Shares of a Dirichlet vector among some of its entries are a Dirichlet
vector themselves, independent of the rest: given counts they are drawn as ever, and the rest from the prior.

The auxiliary table holds the position of a value among the codes or levels, -1 where it is none; its mass is then 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bayesjpt import defaults
from bayesjpt.families import finite_support, simplex
from bayesjpt.families.record import INVALID, OK, ColumnFacts, Family, SharedScale
from bayesjpt.numerics.draw import draw_dirichlet, draw_dirichlet_inside
from bayesjpt.numerics.jit import kernel

_N_CODE_OF_TWO_LABELS = 3


def _n_value(column: ColumnFacts) -> int:
    return column.n_label if column.base == "category" else len(column.levels)


def default_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The smoothed training frequencies, with the weight of 2 rows, times the factor that leaves share."""
    return 2.0 * np.asarray(column.frequencies, np.float64)


def abda_prior(column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """The paper's prior: concentration 1 each."""
    return np.ones(_n_value(column))


def _constants(column: ColumnFacts) -> np.ndarray:
    values = np.arange(float(column.n_label)) if column.base == "category" else np.array(column.levels, np.float64)
    return np.concatenate([values, np.ones(values.size)])


def only(codes: Sequence[int], column: ColumnFacts) -> np.ndarray:
    """Return the constants of a leaf that is restricted to some labels of a column."""
    constants = _constants(column)
    n = column.n_label
    constants[n:] = np.isin(np.arange(n), codes)
    return constants


def allowed(constants: np.ndarray) -> np.ndarray:
    """Return which labels or levels a leaf with these constants may take, bool (n,)."""
    return constants[constants.size // 2 :] > 0.0


def _valid_constants(column: ColumnFacts, constants: np.ndarray) -> bool:
    """Whether constants are those of the column, but for which of its labels may occur."""
    expected = _constants(column)
    n = expected.size // 2
    return (
        constants.size == expected.size
        and np.array_equal(constants[:n], expected[:n])
        and bool(np.isin(constants[n:], (0.0, 1.0)).all() and constants[n:].any())
    )


def _offers(column: ColumnFacts) -> bool:
    """Levels of integers and labels, but for columns of two labels and "other", which the Bernoulli describes."""
    return _n_value(column) > 0 and not (column.n_label == _N_CODE_OF_TWO_LABELS and column.other)


def _by_name(column: ColumnFacts) -> bool:
    """Where levels are many, a probability of its own for each is too much for most leaves."""
    return len(column.levels) > defaults.MAX_INTEGER_LEVELS


def _n_theta(constants: np.ndarray) -> int:
    return constants.size // 2


def _entry_labels(column: ColumnFacts, _constants: np.ndarray) -> Sequence[str]:
    return column.code_names if column.base == "category" else [f"{value:.15g}" for value in column.levels]


@kernel
def prepare(z, constants, out):
    finite_support.fill_positions(constants[: constants.size // 2], z, out)


@kernel
def coefficients(theta, constants, out):
    out[0] = -np.inf  # position -1
    inside = 0
    total = 0.0
    for k in range(theta.size):
        if constants[theta.size + k] > 0.0:
            inside += 1
            total += max(theta[k], simplex.SMALLEST)
    # without restriction theta adds up to 1 already
    log_total = math.log(total) if inside < theta.size else 0.0
    for k in range(theta.size):
        may_occur = constants[theta.size + k] > 0.0
        out[k + 1] = math.log(max(theta[k], simplex.SMALLEST)) - log_total if may_occur else -np.inf


@kernel
def draw_posterior(stats, hyper, constants, theta, rng):
    inside = constants[theta.size :] > 0.0
    if inside.all():
        return OK if draw_dirichlet(hyper + stats, theta, rng) else INVALID
    return OK if draw_dirichlet_inside(hyper, stats, inside, theta, rng) else INVALID


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    total = 0.0
    for i in range(flow.size):
        at = int(aux[i])
        if flow[i] != 0.0 and at >= 0:
            out[at] += flow[i] / max(theta[at], simplex.SMALLEST)
            total += flow[i]
    n_inside = 0.0
    for k in range(theta.size):
        n_inside += constants[theta.size + k]
    if n_inside < theta.size:
        # log theta_k less the log of the sum of all that may occur: each of these loses flow / sum
        inside, _ = finite_support.weight_within(constants, theta, constants[theta.size :], -np.inf, np.inf)
        total /= max(inside, simplex.SMALLEST)
        for k in range(theta.size):
            out[k] -= total * constants[theta.size + k]


@kernel
def log_marginal(stats, hyper, constants):
    total_prior = 0.0
    total = 0.0
    value = 0.0
    for k in range(hyper.size):
        if constants[hyper.size + k] > 0.0:
            total_prior += hyper[k]
            total += hyper[k] + stats[k]
            value += math.lgamma(hyper[k] + stats[k]) - math.lgamma(hyper[k])
    return value + math.lgamma(total_prior) - math.lgamma(total)


@kernel
def _log_evidence(tau, stats, hyper, constants, lo, hi):
    prior, n, value = 0.0, 0.0, 0.0
    for k in range(hyper.size):
        if lo <= constants[k] <= hi and constants[hyper.size + k] > 0.0:
            prior += tau * hyper[k]
            n += stats[k]
            value += simplex.log_rising(tau * hyper[k], stats[k])
    return value - simplex.log_rising(prior, n)


@kernel
def log_mass(lo, hi, theta, constants):
    inside, outside = finite_support.weight_within(constants, theta, constants[theta.size :], lo, hi)
    return finite_support.log_share(inside, outside)


@kernel
def cdf(x, theta, constants):
    return math.exp(log_mass(-np.inf, x, theta, constants))


@kernel
def moment(k, lo, hi, theta, constants):
    # not the shared kernel, whose compiled form rounds the last digit of the variance differently
    total = 0.0
    value = 0.0
    for i in range(theta.size):
        at = constants[i]
        if lo <= at <= hi:
            weight = theta[i] * constants[theta.size + i]
            total += weight
            value += weight * at
    if total == 0.0:
        end = mode(lo, hi, theta, constants)
        return end if k == 1 else 0.0
    mean = min(max(value / total, lo), hi)
    if k == 1:
        return mean
    squares = 0.0
    for i in range(theta.size):
        at = constants[i]
        if lo <= at <= hi:
            squares += theta[i] * constants[theta.size + i] * (at - mean) * (at - mean)
    return squares / total


@kernel
def mode(lo, hi, theta, constants):
    return finite_support.most_probable(constants, theta, constants[theta.size :], lo, hi)


@kernel
def sample(lo, hi, theta, constants, rng):
    return finite_support.draw_value(constants, theta, constants[theta.size :], lo, hi, rng)


FAMILY = Family.of(
    finite_support,
    globals(),
    name="categorical",
    bases=("category", "integer"),
    support=(-np.inf, np.inf),
    statistical_type="nominal",
    parameters=(simplex.PROBABILITY,),
    hyper_names=("concentration",),
    priors={"default": default_prior, "abda": abda_prior},
    shared_scale=SharedScale({"concentration": 1.0}, simplex.SCALE_SHAPE, log_evidence=_log_evidence),
    constants=_constants,
    valid_constants=_valid_constants,
    entry_labels=_entry_labels,
    conjugate_on_cell=True,
    n_theta=_n_theta,
    n_stats=_n_theta,
    offers=_offers,
    by_name=_by_name,
    initial=simplex.initial,
    predicts_by_mean=True,
)
