"""Time of a spline leaf: log density and a Gibbs sweep, ns a value; the choice of order and bins, seconds.

Aims: 10 ns a value, 25 ns a value, .1 s for 60 candidates on 1,000 values; at every order, in 5 and 10 bins.
"""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.families import registry
from bayesjpt.families.spline_basis import MAX_ORDER
from bayesjpt.families.spline_choice import Rule, choose, make_constants
from tests.benchmarks.test_speed import best

N_VALUE = 1000
N_RUN = 60
LINE = (-np.inf, np.inf)


def test_density_and_sweep_of_every_order(benchmark, figure, rng):
    family = registry.family("spline")
    z = np.sort(np.where(rng.random(N_VALUE) < 0.4, rng.normal(-2.0, 0.5, N_VALUE), rng.normal(1.0, 1.0, N_VALUE)))
    count, out = np.ones(N_VALUE), np.empty(N_VALUE)
    for n_bin in (5, 10):
        density, sweep = [], []
        for order in range(1, MAX_ORDER + 1):
            breaks = np.linspace(z[0] - 0.1, z[-1] + 0.1, n_bin + 1)
            constants = make_constants(order, breaks, step=0.0, sigma=1.0, ends=LINE)
            hyper = np.full(family.n_theta(constants), 0.5)
            theta = rng.dirichlet(np.ones(hyper.size))
            prepared = np.zeros(theta.size + constants.size + 4)
            family.coefficients(theta, constants, prepared)
            density.append(best(lambda p=prepared: family.fill_log_density(z, z, p, out), N_RUN))
            sweep.append(
                best(lambda h=hyper, c=constants, t=theta: family.draw_from_values(z, count, h, c, t, rng), N_RUN)
            )
        for name, times in (("log density", density), ("sweep", sweep)):
            shown = ", ".join(f"{time / N_VALUE * 1e9:.1f}" for time in times)
            figure(f"{name}, {n_bin} bins", f"ns a value at orders 1 to {MAX_ORDER}: {shown}")
    benchmark.pedantic(lambda: family.fill_log_density(z, z, prepared, out), rounds=1)


@pytest.mark.parametrize("rule", ["width", "frequency", "mean"])
def test_choice_among_sixty_candidates(benchmark, figure, rule, rng):
    z = np.concatenate([rng.normal(-2.0, 0.5, 400), rng.normal(1.0, 1.0, N_VALUE - 400)])
    ends = (float(z.min()) - 0.1, float(z.max()) + 0.1)
    figure(f"choice, {rule}", f"{best(lambda: choose(z, ends, 1e-6, Rule(rule)), 5):.4f} s for 60 candidates")
    benchmark.pedantic(lambda: choose(z, ends, 1e-6, Rule(rule)), rounds=1)
