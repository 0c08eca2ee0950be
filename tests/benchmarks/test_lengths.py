"""Time of interval queries against their length, as in table 4 of Bueff et al. (2018): nanoseconds a query and draw.

A network over intervals of a mixed table, cubic splines in two bins; a query of length q constrains q columns.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from tests.benchmarks.test_speed import best

N_ROW = 2000
N_DRAW = 1000
COLUMNS = ("a", "b", "c", "d", "e")
PUBLISHED = "published for one distribution: 1,168 to 1,401 ns at length 1, 2,982 to 4,025 at length 5, other hardware"


def network(rng: np.random.Generator) -> bj.Posterior:
    """Return 1,000 draws of a network over labels and five columns of numbers that depend on each other."""
    side = rng.random(N_ROW) < 0.4
    frame = pd.DataFrame({name: rng.normal(np.where(side, -2.0, 2.0)).round(3) for name in COLUMNS})
    frame["side"] = np.where(side, "left", "right")
    table = bj.as_table(frame, kinds=dict.fromkeys(COLUMNS, "real"))
    return bj.fit(
        table, "wmispn", n_structures=1, n_bins=2, order=4, draws=N_DRAW, tune=20, chains=1, cores=1, seed=1,
        progress=False,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::bayesjpt.errors.BayesjptWarning")
def test_queries_of_growing_length(benchmark, figure, rng):
    post = network(rng)
    figure("network", f"{post.circuit.n_leaf} leaves, {N_DRAW} draws, one core; {PUBLISHED}")
    for last in ("conjunction", "with a label", "disjunction", "negation"):
        times = []
        for length in range(1, 6):
            parts = [f"-1.5 <= {name} < 1.25" for name in COLUMNS[:length]]
            if last == "with a label":
                parts[-1] = "side = 'left'"
            event = (" or " if last == "disjunction" else " and ").join(parts)
            event = f"not ({event})" if last == "negation" else event
            times.append(best(lambda event=event: post.probability(event), 5) / N_DRAW * 1e9)
        figure(last, "ns a query and draw at lengths 1 to 5: " + ", ".join(f"{time:,.0f}" for time in times))
    single = bj.Posterior.from_circuit(post.circuit, post.schema)
    times = []
    for length in range(1, 6):
        event = " and ".join(f"-1.5 <= {name} < 1.25" for name in COLUMNS[:length])
        times.append(best(lambda event=event: single.probability(event), 20) * 1e6)
    figure("one draw", "microseconds a conjunction at lengths 1 to 5: " + ", ".join(f"{time:,.0f}" for time in times))
    benchmark.pedantic(lambda: post.probability("a < 1 and b < 1"), rounds=1)
