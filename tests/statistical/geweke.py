"""Geweke's joint test of the sampler: two ways to draw (parameters, data) that must agree in every expectation.

    marginal-conditional      parameters ~ prior, data ~ model given parameters: independent pairs
    successive-conditional    parameters ~ one Gibbs sweep given data, data ~ model given parameters: a Markov chain

Any error in the sweep moves the chain's stationary distribution away from the joint one. Priors here are informative
(the chain must travel over them) and drawn with NumPy and SciPy; sweeps and data are the package's kernels.

A positive family scores all values below half a resolution alike, by the average density of the cell [-h, h). So the
simulator records such values as 0 (where 0 is an atom, as a little more): then the score times the cell's width is the
probability of what is recorded, beside a normal too as long as the cell is narrow.

Reference: Geweke (2004), Getting it right: joint distribution tests of posterior simulators.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.stats

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.kernels.cells import make_cells, row_cells
from bayesjpt.kernels.gibbs import allocate, draw_params
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.kernels.swaps import make_swaps, propose_swaps, swap_rows
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.counter_rng import sweep_key
from bayesjpt.numerics.jit import kernel
from bayesjpt.table.schema import Schema
from tests import naive
from tests.families.examples import SIMPLEX

FAMILY_ERROR = 1e-6
"""Probability that any function of a test raises a false alarm."""
ROUNDING = 1e-12
"""Of functions that are the same in every draw."""
MIN_ESS = 150.0
"""Below, the chain's standard errors mean nothing."""
ROW_BLOCK = 4
"""Rows evaluated together: less than there are, so that blocks are met."""

CONCENTRATION = {arrays.LATENT: 2.0, arrays.LIKELIHOOD: 1.0}
HYPER = {
    "normal": (0.3, 1.5, 3.0, 2.0, 0.4),
    "student_t": (0.3, 1.5, 3.0, 2.0, 0.4, 2.0, 4.0, 1.2),
    "lognormal": (0.3, 1.5, 3.0, 2.0, 0.4, 60.0, 200.0),
    "rounded_normal": (0.3, 1.5, 3.0, 0.5, 0.1),
    "truncated_rounded_normal": (-0.5, 1.5, 3.0, 0.5, 0.1),
    "uniform": (),
    "gamma": (0.7, 0.6, 6.0, 3.0, 2.0, 1.0, 0.15),
    "exponential": (3.0, 2.0, 0.5),
    "poisson": (3.0, 1.0, 5.0),
    "geometric": (3.0, 4.0, 0.15),
    "negative_binomial": (0.7, 0.6, 6.0, 3.0, 2.0, 1.0, 0.3, 0.4, 0.03),
    "bernoulli": (1.5, 2.5),
    "ordinal": (-0.3, 0.6, 2.0, 0.3, 1.2),
}
"""Informative priors; floors of variances and caps of shapes and sizes cut off a tenth of the mass or less."""

NORMALS = ("normal", "student_t", "lognormal", "rounded_normal", "truncated_rounded_normal")
"""Families whose first parameters are a variance and a mean."""

AS_IT_IS, SHORT_STEP_OF_THE_MEAN, DENSITY_WITHOUT_LOG_SCALE, EXCHANGE_UNDER_ANOTHER_PRIOR = range(4)
"""What is done to a sweep: nothing, or one of three errors that no change of hyperparameters can plant."""


class Case(NamedTuple):
    """A circuit, its priors and the pattern of missing cells.

    Attributes
    ----------
    circuit : Circuit
    schema : Schema
    plan : Plan
    missing : bool (n_column, n_row)
    snap, near_zero : float64 (n_column,)
        Values nearer to 0 than `snap`, but not 0 themselves, are recorded as `near_zero`.
    concentration : float64 (n_edge,)
    hyper : float64 (n_hyper,), hyper_at : int32 (n_leaf + 1,)
    """

    circuit: Circuit
    schema: Schema
    plan: Plan
    missing: np.ndarray
    snap: np.ndarray
    near_zero: np.ndarray
    concentration: np.ndarray
    hyper: np.ndarray
    hyper_at: np.ndarray


def make_case(circuit: Circuit, schema: Schema, missing: np.ndarray, **priors: tuple[float, ...]) -> Case:
    """Return a case under the informative priors, or others by the name of the family."""
    hyper = []
    for leaf in range(circuit.n_leaf):
        family = naive.leaf_family(circuit, leaf)
        length = circuit.theta_len[leaf]
        chosen = np.linspace(0.5, 1.5, length) if family in SIMPLEX else np.array((HYPER | priors)[family])
        hyper.append(chosen)
    kind = circuit.kind[circuit.edge_parent()]
    snap = np.array([0.5 * c.resolution if c.base == "real" and c.support[0] == 0.0 else 0.0 for c in schema])
    return Case(
        circuit=circuit,
        schema=schema,
        plan=make_plan(circuit, schema),
        missing=np.ascontiguousarray(missing),
        snap=snap,
        near_zero=np.where([0.0 in column.atoms for column in schema], 1e-3 * snap, 0.0),
        concentration=np.array([CONCENTRATION.get(int(k), 0.0) for k in kind]),
        hyper=np.concatenate(hyper),
        hyper_at=np.concatenate([[0], np.cumsum([h.size for h in hyper])]).astype(np.int32),
    )


# --- draws


def _above(shape: float, scale: float, floor: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return draws of an inverse gamma truncated below."""
    prior = scipy.stats.invgamma(shape, scale=scale)
    return prior.isf(rng.random(n) * prior.sf(floor))


def _highest_mu(variance: np.ndarray, widest: float, largest: float) -> np.ndarray:
    """Return where a lognormal's standard deviation is below `widest`, and sqrt(E[z^3] / E[z]) below `largest`.

    Its variance is exp(2 mu + variance) (exp(variance) - 1), that root exp(mu + 2 variance).
    """
    by_width = np.log(widest) - 0.5 * (variance + np.log(np.expm1(variance)))
    return np.minimum(by_width, np.log(largest) - 2.0 * variance)


def _below(mean: float, sd: np.ndarray, upper: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return draws of normals truncated above."""
    prior = scipy.stats.norm(mean, sd)
    return prior.ppf(rng.random(sd.size) * prior.cdf(upper))


def prior_leaf(family: str, hyper: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return float64 (n, n_theta): a leaf's parameters from their prior.

    Hyperparameters are one number each, or float64 (n,).
    """
    if family in NORMALS:
        m0, v0 = hyper[:2]
        variance = _above(*hyper[2:5], n, rng)
        sd = np.sqrt(v0 * variance)
        mu = _below(m0, sd, _highest_mu(variance, *hyper[5:]), rng) if family == "lognormal" else rng.normal(m0, sd)
        more = [_above(*hyper[5:], n, rng)] if family == "student_t" else []
        return np.column_stack([variance, mu, *more])
    if family in ("gamma", "negative_binomial"):
        mean, sd, cap, a0, b0, k = hyper[:6]
        prior = scipy.stats.lognorm(sd, scale=np.exp(mean))
        shape = prior.ppf(rng.random(n) * prior.cdf(cap))
        if family == "gamma":
            prior = scipy.stats.gamma(a0, scale=shape**k / b0)
            lowest = hyper[6] * np.sqrt((shape + 1.0) * (shape + 2.0))
            return np.column_stack([shape, prior.isf(rng.random(n) * prior.sf(lowest))])
        a1, b1, near = hyper[6:]
        half, square = 1.5 * (shape + 1.0), (shape + 1.0) * (shape + 2.0)
        odds = (np.sqrt(half**2 + square / np.maximum(near, 1e-300)) - half) / square
        prior = scipy.stats.beta(a0 + a1 * shape, b1 + b0 / (k + shape))
        return np.column_stack([shape, prior.isf(rng.random(n) * prior.sf(1.0 / (1.0 + odds)))])
    if family == "ordinal":
        mean, sd, cap, mu_mean, mu_sd = hyper
        prior = scipy.stats.lognorm(sd, scale=np.exp(mean))
        return np.column_stack([prior.ppf(rng.random(n) * prior.cdf(cap)), rng.normal(mu_mean, mu_sd, n)])
    if family == "exponential":
        prior = scipy.stats.gamma(hyper[0], scale=1.0 / hyper[1])
        return prior.isf(rng.random(n) * prior.sf(hyper[2]))[:, None]
    if family == "poisson":
        prior = scipy.stats.gamma(hyper[0], scale=1.0 / hyper[1])
        return prior.ppf(rng.random(n) * prior.cdf(hyper[2]))[:, None]
    if family == "geometric":
        prior = scipy.stats.beta(hyper[0], hyper[1])
        return np.clip(prior.isf(rng.random(n) * prior.sf(hyper[2])), 1e-300, 1.0 - 2.0**-53)[:, None]
    if family == "bernoulli":
        return np.clip(rng.beta(hyper[0], hyper[1], n), 1e-300, 1.0 - 2.0**-53)[:, None]
    if family == "uniform":
        return np.empty((n, 0))
    # logarithms of gamma draws, since shares of small concentrations underflow
    log_draw = np.array([np.log(rng.gamma(a + 1.0, size=n)) - rng.exponential(size=n) / a for a in hyper])
    share = np.exp(log_draw - log_draw.max(axis=0))
    return np.maximum(share / share.sum(axis=0), 1e-300).T


def prior_draws(case: Case, n: int, rng: np.random.Generator) -> Params:
    """Return n independent draws of all weights and parameters."""
    circuit = case.circuit
    log_weight = np.zeros((n, circuit.n_edge))
    for node in range(circuit.n_node):
        edges = naive.edges_of(circuit, node)
        if circuit.kind[node] in CONCENTRATION:
            at = slice(edges.start, edges.stop)
            log_weight[:, at] = np.log(rng.dirichlet(case.concentration[at], n))
    theta = np.empty((n, circuit.n_theta))
    for leaf in range(circuit.n_leaf):
        at = slice(circuit.theta_at[leaf], circuit.theta_at[leaf] + circuit.theta_len[leaf])
        hyper = case.hyper[case.hyper_at[leaf] : case.hyper_at[leaf + 1]]
        theta[:, at] = prior_leaf(naive.leaf_family(circuit, leaf), hyper, n, rng)
    return Params(log_weight, theta)


@kernel
def record(plan, snap, near_zero, log_weight, theta, rng, rows, values):
    """Draw rows and record them, values near 0 alike; rows is (n_row, n_column), values (n_column, n_row)."""
    sample_rows(plan, log_weight, theta, rng, rows)
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            near = 0.0 < abs(rows[i, j]) < snap[j]
            values[j, i] = near_zero[j] if near else rows[i, j]


@kernel
def record_each(plan, snap, near_zero, log_weights, thetas, rng, values):
    """Fill values, (n_draw, n_column, n_row), with one table for each draw of the parameters."""
    rows = np.empty((values.shape[2], values.shape[1]))
    for draw in range(values.shape[0]):
        record(plan, snap, near_zero, log_weights[draw], thetas[draw], rng, rows, values[draw])


@kernel
def _weights_for_allocation(plan, meddle, log_weight, theta, out):
    """Copy the weights; or add half the log variance of normal leaves, which takes their log scale away again."""
    out[:] = log_weight
    if meddle == DENSITY_WITHOUT_LOG_SCALE:
        for e in range(out.size):
            leaf = plan.leaf_of[plan.child[e]]
            if leaf >= 0:
                out[e] += 0.5 * np.log(theta[plan.theta_at[leaf]])


@kernel
def _meddle_with_statistics(plan, hyper, hyper_at, stats):
    """Add to every (normal) leaf a row at its posterior mean: the mean stays, its variance shrinks."""
    for leaf in range(plan.leaf_family.size):
        at = plan.stat_at[leaf]
        m0, v0 = hyper[hyper_at[leaf]], hyper[hyper_at[leaf] + 1]
        mean = (m0 / v0 + stats[at + 1]) / (1.0 / v0 + stats[at])
        stats[at] += 1.0
        stats[at + 1] += mean
        stats[at + 2] += mean * mean


@kernel
def _allocate(plan, cells, weights, theta, work, swaps, sweep, stats, edge_count):
    """Return the row that is impossible, or -1: what is compiled apart takes borrowed tuples."""
    plan, cells, work, swaps = borrowed(plan), borrowed(cells), borrowed(work), borrowed(swaps)
    return allocate(plan, cells, weights, theta, work, swaps, sweep, False, stats, edge_count)[1]


@kernel
def sweeps(case, swaps, meddle, key, rng, log_weight, theta, values, log_weights, thetas, tables):
    """Run one chain from a point and a table, data redrawn after every sweep; return -1, or where it went wrong.

    `case` is (plan, missing, snap, near_zero, concentration, hyper, hyper_at). Where `tables` is empty the data stay.
    """
    plan, missing, snap, near_zero, concentration, hyper, hyper_at = case
    cells = row_cells(plan, values, missing)
    work = make_work(plan, cells, ROW_BLOCK)
    stats = np.zeros(plan.stat_at[-1])
    edge_count = np.zeros(plan.child.size, np.int64)
    weights = np.empty(plan.child.size)
    rows = np.empty((values.shape[1], values.shape[0]))
    for t in range(thetas.shape[0]):
        _weights_for_allocation(plan, meddle, log_weight, theta, weights)
        sweep = sweep_key(np.uint64(key), np.uint64(t))
        propose_swaps(swaps, rng)
        if _allocate(plan, cells, weights, theta, work, swaps, sweep, stats, edge_count) >= 0:
            return t
        believed = 4.0 * hyper if meddle == EXCHANGE_UNDER_ANOTHER_PRIOR else hyper
        swap_rows(plan, swaps, stats, edge_count, concentration, believed, hyper_at, theta, rng)
        if meddle == SHORT_STEP_OF_THE_MEAN:
            _meddle_with_statistics(plan, hyper, hyper_at, stats)
        if (
            draw_params(plan, cells, work, stats, edge_count, concentration, hyper, hyper_at, log_weight, theta, rng)
            >= 0
        ):
            return t
        log_weights[t] = log_weight
        thetas[t] = theta
        if tables.shape[0] > 0:
            record(plan, snap, near_zero, log_weight, theta, rng, rows, values)
            tables[t] = values
            cells = row_cells(plan, values, missing)
    return -1


def run_chain(
    case: Case, start: Params, values: np.ndarray, n: int, rng: np.random.Generator, *, redraw: bool, meddle: int
) -> tuple[Params, np.ndarray]:
    """Return n sweeps of a chain as (parameters, tables); the tables are none where the data stay."""
    circuit = case.circuit
    log_weights, thetas = np.empty((n, circuit.n_edge)), np.empty((n, circuit.n_theta))
    tables = np.empty((n if redraw else 0, *case.missing.shape))
    failed = sweeps(
        tuple(case[2:]),
        make_swaps(case.plan),
        meddle,
        np.uint64(rng.integers(2**63)),
        rng,
        start.log_weight.copy(),
        start.theta.copy(),
        values.copy(),
        log_weights,
        thetas,
        tables,
    )
    assert failed < 0, f"sweep {failed} went wrong"
    return Params(log_weights, thetas), tables


def run_coded_chain(
    case: Case, start: Params, values: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[Params, np.ndarray]:
    """Return what `run_chain` does with data redrawn, every column evaluated once per distinct value."""
    circuit = case.circuit
    log_weights, thetas = np.empty((n, circuit.n_edge)), np.empty((n, circuit.n_theta))
    tables = np.empty((n, *case.missing.shape))
    params, values = Params(start.log_weight.copy(), start.theta.copy()), values.copy()
    stats, edge_count = np.zeros(case.plan.stat_at[-1]), np.zeros(circuit.n_edge, np.int64)
    rows = np.empty(values.T.shape)
    key, swaps = np.uint64(rng.integers(2**63)), make_swaps(case.plan)
    for t in range(n):
        cells = make_cells(case.plan, values, ~case.missing, max_distinct_share=1.0, max_table_bytes=10**6)
        assert (cells.code_row >= 0).all()
        work = make_work(case.plan, cells, ROW_BLOCK)
        propose_swaps(swaps, rng)
        _, impossible = allocate(
            case.plan, cells, *params, work, swaps, np.uint64(sweep_key(key, np.uint64(t))), False, stats, edge_count
        )
        assert impossible < 0
        swap_rows(case.plan, swaps, stats, edge_count, case.concentration, case.hyper, case.hyper_at, params.theta, rng)
        assert (
            draw_params(
                case.plan, cells, work, stats, edge_count, case.concentration, case.hyper, case.hyper_at, *params, rng
            )
            < 0
        )
        record(case.plan, case.snap, case.near_zero, *params, rng, rows, values)
        log_weights[t], thetas[t], tables[t] = *params, values
    return Params(log_weights, thetas), tables


def joint_draws(case: Case, n: int, rng: np.random.Generator) -> tuple[Params, np.ndarray]:
    """Return n independent pairs of parameters and tables, (n, n_column, n_row)."""
    params = prior_draws(case, n, rng)
    tables = np.empty((n, *case.missing.shape))
    record_each(case.plan, case.snap, case.near_zero, params.log_weight, params.theta, rng, tables)
    return params, tables


# --- what is compared


def squash(x: np.ndarray) -> np.ndarray:
    """Return x / (1 + |x|): some of the priors have no moments."""
    return x / (1.0 + np.abs(x))


def functions(case: Case, params: Params, tables: np.ndarray) -> dict[str, np.ndarray]:
    """Return bounded functions of parameters and data by name, each float64 (n_draw,)."""
    circuit = case.circuit
    out: dict[str, np.ndarray] = {}
    for edge in np.flatnonzero(case.concentration > 0.0):
        weight = np.exp(params.log_weight[:, edge])
        out |= {f"weight {edge}": weight, f"weight {edge} squared": weight**2}
    cells = [squash(tables[:, column][:, ~hidden]) for column, hidden in enumerate(case.missing)]
    for column, seen in enumerate(cells):
        out |= {f"column {column}": seen.mean(axis=1), f"column {column} squared": (seen**2).mean(axis=1)}
        out[f"product of two rows of column {column}"] = seen[:, 0] * seen[:, -1]
    for leaf in range(circuit.n_leaf):
        label = f"{naive.leaf_family(circuit, leaf)} {leaf}"
        theta = squash(params.theta[:, circuit.theta_at[leaf] : circuit.theta_at[leaf] + circuit.theta_len[leaf]])
        data = cells[naive.leaf_column(circuit, leaf)].mean(axis=1)
        for k, value in enumerate(theta.T):
            out |= {f"{label}.{k}": value, f"{label}.{k} squared": value**2, f"{label}.{k} by data": value * data}
        if theta.shape[1] == 2:
            out[f"{label} product"] = theta[:, 0] * theta[:, 1]
        if theta.shape[1] == 0:
            continue
        for edge in np.flatnonzero((circuit.child == circuit.leaf_node()[leaf]) & (case.concentration > 0.0)):
            out[f"{label} by weight"] = theta[:, 0] * np.exp(params.log_weight[:, edge])
    return out


def effective_sizes(x: np.ndarray) -> np.ndarray:
    """Return the effective sample size of each column of a chain (n, k), by Geyer's initial monotone sequence.

    Reference: Geyer (1992), Practical Markov chain Monte Carlo, section 3.3.
    """
    n = x.shape[0]
    out = np.empty(x.shape[1])
    for column, values in enumerate(x.T):
        spectrum = np.fft.rfft(values - values.mean(), 2 * n)
        covariance = np.fft.irfft(np.abs(spectrum) ** 2)[:n]
        pairs = np.minimum.accumulate(covariance[: n // 2 * 2].reshape(-1, 2).sum(axis=1) / covariance[0])
        out[column] = n / max(2.0 * pairs[pairs > 0.0].sum() - 1.0, 1.0 / n)
    return out


class Comparison(NamedTuple):
    """The two simulators' means, one function after the other.

    Attributes
    ----------
    names : tuple of str
    z : float64 (n_function,)
        Difference over its standard error.
    ess : float64 (n_function,)
        Effective sample size of the chain.
    threshold : float
        Largest |z| at which the simulators count as equal.
    """

    names: tuple[str, ...]
    z: np.ndarray
    ess: np.ndarray
    threshold: float

    @property
    def worst(self) -> str:
        """The function with the largest |z|, in words."""
        at = int(np.abs(self.z).argmax())
        return f"{self.names[at]}: z = {self.z[at]:.2f} over {self.threshold:.2f}, ESS {self.ess[at]:.0f}"

    @property
    def agrees(self) -> bool:
        """Whether no function tells the simulators apart."""
        return bool((np.abs(self.z) < self.threshold).all())


def compare(
    case: Case,
    n: int,
    rng: np.random.Generator,
    *,
    sampled: Case | None = None,
    meddle: int = AS_IT_IS,
    coded: bool = False,
) -> Comparison:
    """Return the Comparison of n draws of each simulator.

    Parameters
    ----------
    case : Case
        What priors and data are drawn from.
    sampled : Case, optional
        What the sweeps believe: the same, unless an error is planted.
    meddle : int
        Another error to plant.
    coded : bool
        Evaluate columns by distinct value instead of by row.
    """
    exact = functions(case, *joint_draws(case, n, rng))
    starts, tables = joint_draws(case, 1, rng)
    start = Params(starts.log_weight[0], starts.theta[0])
    believed = case if sampled is None else sampled
    if coded:
        chain = run_coded_chain(believed, start, tables[0], n, rng)
    else:
        chain = run_chain(believed, start, tables[0], n, rng, redraw=True, meddle=meddle)
    return compare_functions(exact, functions(case, *chain))


def compare_functions(exact: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> Comparison:
    """Return the Comparison of functions of as many independent draws and of states of a chain."""
    n = next(iter(exact.values())).size
    moving = [name for name, values in exact.items() if max(np.ptp(values), np.ptp(found[name])) > ROUNDING]
    for name in exact.keys() - moving:
        np.testing.assert_allclose(found[name], exact[name], rtol=0.0, atol=ROUNDING)
    first, second = (np.column_stack([values[name] for name in moving]) for values in (exact, found))
    ess = effective_sizes(second)
    error = np.sqrt(first.var(axis=0) / n + second.var(axis=0) / ess)
    return Comparison(
        names=tuple(moving),
        z=(second.mean(axis=0) - first.mean(axis=0)) / error,
        ess=ess,
        threshold=float(scipy.stats.norm.isf(FAMILY_ERROR / 2.0 / len(moving))),
    )
