"""The collapsed sampler against every allocation of a tiny table, with errors planted that must be caught."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.special

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.plan import make_plan
from bayesjpt.circuit.priors import Priors, make_priors
from bayesjpt.circuit.scales import no_scales
from bayesjpt.kernels import collapsed, paths
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.collapsed_sweeper import CollapsedSweeper
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.kernels.work import make_work
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive, statistics
from tests.kernels import runs
from tests.model import reference
from tests.statistical.test_enumeration import ALPHA, GAMMA, TABLES, tiny
from tests.statistical.test_swaps import ALPHA as SMALL_ALPHA
from tests.statistical.test_swaps import DICTIONARIES, NEARLY_ALL, dictionary, expected_shares

N_SCAN = 20_000
N_SWEEP = 20_000
LARGEST_Z = 4.5
RARE = 1e-3
"""Allocations below this probability are compared together."""


def priors_of(circuit: Circuit, table: Table, prior: str, *, gamma: float = GAMMA, alpha: float = ALPHA) -> Priors:
    """Return priors whose factors are held at 1."""
    layout = make_layout(circuit, table.schema)
    priors = make_priors(circuit, table.schema, layout, gamma=gamma, alpha=alpha, prior=prior)
    return priors._replace(scales=no_scales(priors.hyper.size))


def enumerated(circuit: Circuit, table: Table) -> dict[tuple, float]:
    """Return the posterior probability of each allocation under the paper's priors; one is a leaf for each cell."""
    possible = [naive.induced_paths(circuit, table.observed[:, row]) for row in range(table.n_row)]
    sums = [n for n in range(circuit.n_node) if circuit.kind[n] in (arrays.LATENT, arrays.LIKELIHOOD)]
    log_p = {}
    for allocation in itertools.product(*possible):
        total = 0.0
        for node in sums:
            edges = naive.edges_of(circuit, node)
            counts = np.array([sum(e in taken for taken, _ in allocation) for e in edges])
            prior = np.full(len(edges), GAMMA if circuit.kind[node] == arrays.LATENT else ALPHA)
            total += reference.log_multivariate_beta(prior + counts) - reference.log_multivariate_beta(prior)
        for leaf in range(circuit.n_leaf):
            column = naive.leaf_column(circuit, leaf)
            x = [float(table.values[column, row]) for row, (_, leaves) in enumerate(allocation) if leaf in leaves]
            if x and naive.leaf_family(circuit, leaf) == "quantile":
                total += reference.pieces_log_evidence(circuit, table.schema, leaf, x)
            elif x:
                total += reference.leaf_log_evidence(naive.leaf_family(circuit, leaf), table.schema.columns[column], x)
        log_p[tuple(tuple(sorted(leaves)) for _, leaves in allocation)] = total
    # a leaf of these trees has one path: allocations are told apart by their leaves
    values = np.array(list(log_p.values()))
    return dict(zip(log_p, np.exp(values - scipy.special.logsumexp(values)), strict=True))


def scanned(circuit: Circuit, table: Table, priors: Priors, rng: np.random.Generator) -> list[tuple]:
    """Return the allocation after each of a chain of scans, parameters never being drawn."""
    plan, params = make_plan(circuit, table.schema), ex.start(circuit)
    cells = make_cells(plan, table.values, table.observed, **runs.MODES["mixed"])
    work, kept = make_work(plan, cells, 4), paths.make_paths(plan, cells, priors.hyper, priors.hyper_at, params.theta)
    paths.record(plan, cells, *params, work, kept, np.uint64(rng.integers(2**63)))
    given = (priors.concentration, priors.hyper, priors.hyper_at, params.theta)
    collapsed.begin(plan, cells, work, kept, *given)
    assert (kept.mode != paths.HELD).all()
    out = []
    for key in rng.integers(2**63, size=N_SCAN):
        collapsed.scan(plan, cells, kept, *given, np.uint64(key))
        out.append(tuple(tuple(sorted(row[row >= 0].tolist())) for row in kept.leaf))
    return out


def z_scores(name: str, rng: np.random.Generator, change=lambda priors: priors) -> np.ndarray:
    """Return z-scores of the shares of scans that end in each allocation; the priors may be changed behind its back."""
    circuit, table, _ = tiny(name, rng)
    expected = enumerated(circuit, table)
    found = scanned(circuit, table, change(priors_of(circuit, table, "abda")), rng)
    at = {allocation: k for k, allocation in enumerate(expected)}
    number = np.array([at[allocation] for allocation in found])
    p = np.array(list(expected.values()))
    scores = [statistics.batch_z(number == k, p[k]) for k in np.flatnonzero(p >= RARE)]
    if p[p < RARE].sum() >= RARE:
        scores.append(statistics.batch_z(p[number] < RARE, p[p < RARE].sum()))
    return np.array(scores)


@pytest.mark.parametrize("name", TABLES)
def test_scans_visit_every_allocation_as_often_as_it_is_probable(name, rng):
    scores = z_scores(name, rng)
    assert scores.size > 3
    assert np.abs(scores).max() < LARGEST_Z


def with_larger_concentrations(priors: Priors) -> Priors:
    return priors._replace(concentration=1.5 * priors.concentration)


def with_other_leaves(priors: Priors) -> Priors:
    return priors._replace(hyper=4.0 * priors.hyper)


@pytest.mark.parametrize("change", [with_larger_concentrations, with_other_leaves])
@pytest.mark.parametrize("name", ["normals", "poisson and geometric beside labels"])
def test_scans_under_other_priors_are_caught(name, change, rng):
    assert np.abs(z_scores(name, rng, change)).max() > 1.5 * LARGEST_Z


@pytest.mark.parametrize("sampler", [Sweeper, CollapsedSweeper])
@pytest.mark.parametrize("name", DICTIONARIES)
def test_both_samplers_agree_with_the_posterior_of_weights_under_default_priors(name, sampler, rng):
    circuit, table = dictionary(name)
    priors = priors_of(circuit, table, "default")
    members = np.flatnonzero(priors.concentration > 0.0)
    concentration = np.where(priors.concentration > 0.0, SMALL_ALPHA * (1.0 + np.arange(circuit.n_edge)), 0.0)
    plan = make_plan(circuit, table.schema)
    cells = make_cells(plan, table.values, table.observed, **runs.MODES["by row"])
    sweeper = sampler(circuit, plan, priors._replace(concentration=concentration), cells, n_block=4)
    params, key = sweeper.learned(), int(rng.integers(2**62))
    weights = np.empty((N_SWEEP, members.size))
    for sweep in range(N_SWEEP):
        sweeper.sweep(params, rng, key, sweep)
        weights[sweep] = np.exp(params.log_weight[members])
    expected = expected_shares(circuit, table, concentration[members])
    for k in range(members.size):
        for j, bound in enumerate(NEARLY_ALL):
            assert abs(statistics.batch_z(weights[:, k] < bound, expected[k, j])) < LARGEST_Z
