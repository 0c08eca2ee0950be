"""For each family: example columns, parameters, and the same distribution from SciPy.

A new family is covered by the contract tests once it has entries here; `test_contract` fails for one that has none.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import scipy.stats

from bayesjpt.families import dispatch, features, registry, spline_choice
from bayesjpt.families.record import N_EXTRA_COEFFICIENTS, OK, Family
from bayesjpt.numerics.jit import kernel
from bayesjpt.table.schema import Column
from tests.families.ordered import ordered
from tests.families.rounded import RoundedNormal
from tests.families.splines import RoundedSpline, Spline, SplineDistribution

REAL = Column("height", "real", (-np.inf, np.inf), resolution=0.1, location=3.0, scale=2.0, mean=3.2, maximum=11.0)
TIED = Column("rounded", "real", (-np.inf, np.inf), resolution=2.0, location=0.0, scale=2.0, mean=1.0, maximum=4.0)
POSITIVE = Column("rain", "real", (0.0, np.inf), resolution=0.5, scale=2.0, mean=2.4, maximum=12.0)
COARSE = Column("dose", "real", (0.0, np.inf), resolution=1.0, scale=2.0, mean=1.5, maximum=2.0)
CONSTANT = Column("level", "real", (-np.inf, np.inf), location=4.0, scale=2.0, mean=4.0, minimum=4.0, maximum=4.0)
ATOMS = Column(
    "gain",
    "real",
    (-np.inf, np.inf),
    location=5.0,
    mean=3.0,
    maximum=20.0,
    atoms=(0.0, 2.0, 5.0, 9.0),
    atom_frequencies=(0.5, 0.1, 0.2, 0.2),
)
COUNT = Column("visits", "integer", (0.0, np.inf), mean=2.5, maximum=40.0)
LEVELS = Column(
    "stars",
    "integer",
    (0.0, np.inf),
    levels=(1.0, 2.0, 5.0, 9.0),
    frequencies=(0.1, 0.2, 0.3, 0.4),
    mean=5.5,
    maximum=9.0,
)
GRADES = Column(
    "grade",
    "integer",
    (0.0, np.inf),
    levels=(*map(float, range(1, 26)), 40.0),
    frequencies=(*(0.02, 0.05) * 12, 0.06, 0.1),
    mean=14.0,
    maximum=40.0,
)
CHANGE = Column("change", "integer", (-np.inf, np.inf), location=2.5, scale=4.0, mean=1.0, minimum=-9.0, maximum=12.0)
UNSCALED = Column("balance", "integer", (-np.inf, np.inf), mean=1.0, minimum=-9.0, maximum=12.0)
SIZE = Column("rooms", "integer", (0.0, np.inf), location=3.0, scale=2.0, mean=3.4, maximum=30.0)
ANSWER = Column("answer", "category", (0.0, 2.0), labels=("no", "yes"), frequencies=(0.6, 0.35, 0.05))
LABELS = Column("colour", "category", (0.0, 3.0), labels=("red", "green", "blue"), frequencies=(0.4, 0.3, 0.2, 0.1))


_LARGEST_LOG = 300.0

LISTED = ("categorical", "bernoulli", "atom", "ordinal", "label")
"""Families whose values are few, listed, and without tails."""

SIMPLEX = ("categorical", "atom", "quantile", "spline")
"""Families whose parameters are the probabilities of something."""

PIECES = {REAL: (0.0, -2.0, -1.1, -0.3, 0.4, 3.0), COUNT: (1.0, -0.5, 1.5, 2.5, 6.5, 14.5)}
"""Constants of a quantile leaf: step and knots."""


SPLINES = {
    REAL.name: Spline((), 4, (-2.0, -1.1, 0.4, 3.0), 0.7, (-np.inf, np.inf)),
    POSITIVE.name: Spline((), 3, (0.25, 1.0, 6.0), 1.5, (0.0, 9.0)),
    CONSTANT.name: Spline((), 6, (-1.0, 0.5), 0.2, (-1.0, 0.5)),
    COUNT.name: Spline((), 3, (2.5, 3.5, 6.5, 14.5), 3.0, (-0.5, np.inf)),
    SIZE.name: Spline((), 6, (-0.5, 4.5, 99.5), 0.2, (-0.5, 110.5)),
    CHANGE.name: Spline((), 1, (-9.5, 2.5, 12.5), 4.0, (-np.inf, np.inf)),
}
"""Order, breaks, scale of the tails and ends of a spline leaf; weights are an example's."""


def constants_of(family: Family, column: Column) -> np.ndarray:
    """Return the constants of a leaf of a column: those of the column, but for knots and breaks, its own."""
    if family.name == "spline":
        leaf = SPLINES[column.name]
        step = float(column.base == "integer")
        return spline_choice.make_constants(
            leaf.order, np.array(leaf.breaks), step=step, sigma=leaf.sigma, ends=leaf.ends
        )
    pieces = {known.name: constants for known, constants in PIECES.items()}
    return np.array(pieces[column.name]) if family.name == "quantile" else family.constants(column)


@dataclass(frozen=True)
class Example:
    """A family with a column and parameters, and the interval [lo, hi] that truncated answers are tested on."""

    name: str
    column: Column
    theta: tuple[float, ...]
    lo: float
    hi: float

    @property
    def family(self) -> Family:
        return registry.family(self.name)

    @property
    def number(self) -> int:
        return registry.number(self.name)

    @property
    def constants(self) -> np.ndarray:
        return constants_of(self.family, self.column)

    @property
    def parameters(self) -> np.ndarray:
        return np.array(self.theta)

    @property
    def discrete(self) -> bool:
        return self.column.base != "real" or self.name == "atom"

    @functools.cache  # noqa: B019  # examples are module constants; SciPy takes a millisecond to freeze a distribution
    def reference(self):
        """Return the frozen SciPy distribution of z."""
        return reference(self.name, self.parameters, self.column)

    def values(self) -> np.ndarray:
        """Return the values of z that carry all mass, to 1e-13, of a discrete example."""
        if self.name in LISTED:
            return listed_values(self.column)
        if self.name == "quantile":
            return np.arange(self.constants[1] + 0.5, self.constants[-1])
        if self.name == "spline":
            lo, hi = SPLINES[self.column.name].ends
            return np.arange(max(lo + 0.5, self.reference().ppf(1e-14)), min(hi, self.reference().isf(1e-14) + 1.0))
        least = self.reference().ppf(1e-14) - 10.0 if self.name == "rounded_normal" else 0.0
        return np.arange(least, self.reference().ppf(1.0 - 1e-14) + 10.0)

    def log_density(self, z) -> np.ndarray:
        """Return what `fill_log_density` says, with table and coefficients prepared."""
        z = np.ascontiguousarray(np.atleast_1d(z), np.float64)
        prepared = self.room()
        self.family.coefficients(self.parameters, self.constants, prepared)
        out = np.empty(z.size)
        self.family.fill_log_density(z, features.auxiliary(self.family, z, self.constants), prepared, out)
        return out

    def room(self) -> np.ndarray:
        """Return room for the coefficients, float64 (n_coefficient,)."""
        return np.zeros(len(self.theta) + self.constants.size + N_EXTRA_COEFFICIENTS)

    def log_mass(self, lo: float, hi: float) -> float:
        return self.family.log_mass(float(lo), float(hi), self.parameters, self.constants)

    def cdf(self, x: float) -> float:
        return self.family.cdf(float(x), self.parameters, self.constants)

    def moment(self, k: int, lo: float, hi: float) -> float:
        """Return the mean (k = 1) or the mean square (k = 2)."""
        mean = self.family.moment(1, float(lo), float(hi), self.parameters, self.constants)
        return mean if k == 1 else mean * mean + self.variance(lo, hi)

    def variance(self, lo: float, hi: float) -> float:
        return self.family.moment(2, float(lo), float(hi), self.parameters, self.constants)

    def mode(self, lo: float, hi: float) -> float:
        return self.family.mode(float(lo), float(hi), self.parameters, self.constants)


def listed_values(column: Column) -> np.ndarray:
    """Return atoms, levels or codes of a column, float64."""
    return np.asarray(column.atoms or column.levels or range(column.n_label), np.float64)


def reference(name: str, theta: np.ndarray, column: Column):
    """Return the frozen SciPy distribution of a family's z; theta may hold arrays that broadcast."""
    if name == "normal":
        return scipy.stats.norm(theta[1], np.sqrt(theta[0]))
    if name == "gamma":
        return scipy.stats.gamma(theta[0], scale=1.0 / theta[1])
    if name == "exponential":
        return scipy.stats.expon(scale=1.0 / theta[0])
    if name == "lognormal":
        return scipy.stats.lognorm(np.sqrt(theta[0]), scale=np.exp(np.clip(theta[1], -_LARGEST_LOG, _LARGEST_LOG)))
    if name == "student_t":
        return scipy.stats.t(theta[2], theta[1], np.sqrt(theta[0]))
    if name == "uniform":
        lo, hi = registry.family(name).constants(column)
        return scipy.stats.uniform(lo, hi - lo)
    if name == "poisson":
        return scipy.stats.poisson(theta[0])
    if name == "geometric":
        return scipy.stats.geom(theta[0], loc=-1)
    if name == "negative_binomial":
        return scipy.stats.nbinom(theta[0], theta[1])
    if name in ("rounded_normal", "truncated_rounded_normal"):
        return RoundedNormal(theta[0], theta[1], column)
    if name == "quantile":
        step, *knots = PIECES[column]
        if step == 0.0:
            return scipy.stats.rv_histogram((theta, np.array(knots)), density=False)
        n = np.diff(knots)
        values = np.arange(knots[0] + 0.5, knots[-1])
        return scipy.stats.rv_discrete(values=(values, np.repeat(theta / n, n.astype(int))))
    if name == "spline":
        leaf = SPLINES[column.name]._replace(weights=tuple(theta))
        return RoundedSpline(leaf) if column.base == "integer" else SplineDistribution(leaf)
    if name == "ordinal":
        return ordered(theta[0], theta[1], column)
    if name == "label":
        return scipy.stats.rv_discrete(values=(listed_values(column), column.frequencies))
    if name == "bernoulli":
        other = column.frequencies[-1]
        shares = ((1.0 - other) * (1.0 - theta[0]), (1.0 - other) * theta[0], other)
        return scipy.stats.rv_discrete(values=((0.0, 1.0, 2.0), shares))
    return scipy.stats.rv_discrete(values=(listed_values(column), theta))


EXAMPLES = (
    Example("normal", REAL, (0.5, -1.2), -1.0, 0.4),
    Example("normal", REAL, (1e-4, 3.0), 3.02, np.inf),
    Example("normal", REAL, (4.0, 0.0), 7.0, 9.0),
    Example("gamma", POSITIVE, (2.0, 1.5), 0.3, 2.0),
    Example("gamma", POSITIVE, (0.3, 0.7), 4.0, np.inf),
    Example("gamma", POSITIVE, (250.0, 200.0), 1.0, 1.2),
    Example("exponential", POSITIVE, (1.3,), 0.4, 2.5),
    Example("exponential", POSITIVE, (0.02,), 60.0, np.inf),
    Example("poisson", COUNT, (3.2,), 2.0, 6.5),
    Example("poisson", COUNT, (0.05,), 1.0, np.inf),
    Example("poisson", COUNT, (4800.0,), 4900.0, 5300.0),
    Example("geometric", COUNT, (0.3,), 1.5, 8.0),
    Example("geometric", COUNT, (0.004,), 100.0, np.inf),
    Example("geometric", COUNT, (0.97,), 1.0, 3.0),
    Example("categorical", LABELS, (0.4, 0.35, 0.15, 0.1), 1.0, 3.0),
    Example("categorical", LEVELS, (0.05, 0.05, 0.6, 0.3), 1.5, 9.0),
    Example("negative_binomial", COUNT, (0.4, 0.1), 1.0, 12.0),
    Example("negative_binomial", COUNT, (6.5, 0.7), 4.0, np.inf),
    Example("negative_binomial", COUNT, (40.0, 0.02), 1900.0, 2400.0),
    Example("bernoulli", ANSWER, (0.3,), 1.0, 2.0),
    Example("rounded_normal", UNSCALED, (6.0, -1.3), -4.5, 2.0),
    Example("rounded_normal", UNSCALED, (0.04, 0.4), 1.0, np.inf),
    Example("rounded_normal", UNSCALED, (2e6, 150.0), 3000.0, np.inf),
    Example("truncated_rounded_normal", COUNT, (3.0, 1.2), 2.0, 5.0),
    Example("truncated_rounded_normal", COUNT, (9.0, -20.0), 1.0, np.inf),
    Example("truncated_rounded_normal", COUNT, (1e6, 400.0), 300.0, 2500.0),
    Example("lognormal", POSITIVE, (0.4, 0.3), 0.3, 2.0),
    Example("lognormal", POSITIVE, (2.5, -1.0), 4.0, 90.0),
    Example("lognormal", POSITIVE, (1e-4, 0.2), 1.0, np.inf),
    Example("student_t", REAL, (0.5, -1.2, 5.0), -1.0, 0.4),
    Example("student_t", REAL, (4.0, 0.0, 2.5), 7.0, 9.0),
    Example("student_t", REAL, (1e-4, 3.0, 30.0), 3.02, np.inf),
    Example("student_t", REAL, (0.3, 2.0, 1e7), -2.0, -1.0),
    Example("uniform", REAL, (), -1.0, 3.0),
    Example("uniform", CONSTANT, (), 0.5, np.inf),
    Example("atom", ATOMS, (0.5, 0.05, 0.15, 0.3), 1.0, 9.0),
    Example("quantile", REAL, (0.2, 0.44, 0.28, 0.08), -0.7, 1.9),
    Example("quantile", COUNT, (0.3, 0.1, 0.2, 0.4), 1.0, 9.0),
    Example("ordinal", LEVELS, (0.4, 0.9), 1.5, 9.0),
    Example("ordinal", GRADES, (1.7, -0.6), 2.0, np.inf),
    Example("ordinal", LABELS, (0.6, 1.2), 1.0, 3.0),
    Example("spline", REAL, (0.1, 0.2, 0.05, 0.25, 0.29, 0.03, 0.02, 0.06), -0.7, 1.9),
    Example("spline", POSITIVE, (0.2, 0.4, 0.1, 0.2, 0.06, 0.04), 0.1, 2.0),
    Example("spline", CONSTANT, (0.3, 0.05, 0.25, 0.02, 0.08, 0.3), -0.2, np.inf),
    Example("spline", COUNT, (0.1, 0.25, 0.15, 0.2, 0.1, 0.12, 0.08), 1.0, 9.0),
    Example("spline", SIZE, (0.2, 0.1, 0.05, 0.25, 0.1, 0.15, 0.1, 0.05), 2.0, 90.0),
    Example("spline", CHANGE, (0.55, 0.4, 0.02, 0.03), -12.0, 4.0),
    Example("label", LABELS, (), 1.0, 3.0),
    Example("label", ANSWER, (), 1.0, 2.0),
)


def identify(example: Example) -> str:
    return f"{example.name}-{example.column.name}-{'-'.join(f'{value:g}' for value in example.theta)}"


@kernel
def fill_samples(family, interval, theta, constants, rng, out):
    """Fill `out` with draws of z given an interval (a generator costs 60 microseconds a call from Python)."""
    for i in range(out.size):
        out[i] = dispatch.sample(family, interval[0], interval[1], theta, constants, rng)


@kernel
def fill_chain(family, stats, hyper, constants, theta, rng, out):
    """Fill the rows of `out` with successive draws of the parameters; return the largest status."""
    worst = np.int64(0)
    for i in range(out.shape[0]):
        worst = max(worst, dispatch.draw_posterior(family, stats, hyper, constants, theta, rng))
        out[i] = theta
    return worst


@kernel
def fill_chain_from_values(family, z, count, hyper, constants, theta, rng, out):
    """Fill the rows of `out` with successive draws given values and counts; return the largest status."""
    worst = np.int64(0)
    for i in range(out.shape[0]):
        worst = max(worst, dispatch.draw_from_values(family, z, count, hyper, constants, theta, rng))
        out[i] = theta
    return worst


def draw_chain(family: Family, column: Column, x, hyper, theta, rng, out) -> int:
    """Fill the rows of `out` with successive draws given rows in the user's units; return the largest status."""
    constants, number = constants_of(family, column), registry.number(family.name)
    if family.draw_from_values is None:
        stats = features.statistics(family, column, np.asarray(x, np.float64), constants)
        return fill_chain(number, stats, hyper, constants, theta, rng, out)
    z, count = np.unique(features.to_units(family, column, np.asarray(x, np.float64)), return_counts=True)
    return fill_chain_from_values(number, z, count.astype(np.float64), hyper, constants, theta, rng, out)


def draw_once(family: Family, column: Column, x, hyper, theta, rng) -> int:
    """Replace theta by one draw of the family's own slot, no dispatch; return the status."""
    constants = constants_of(family, column)
    if family.draw_from_values is None:
        stats = features.statistics(family, column, np.asarray(x, np.float64), constants)
        return family.draw_posterior(stats, hyper, constants, theta, rng) if family.draw_posterior else OK
    z = features.to_units(family, column, np.asarray(x, np.float64))
    return family.draw_from_values(z, np.ones(z.size), hyper, constants, theta, rng)
