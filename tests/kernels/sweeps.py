"""A few Gibbs sweeps and a hash of all that they drew; run as a program by the tests of caches.

Prints the hash, and how many of the two kernels came from numba's disk cache.
"""

from __future__ import annotations

import hashlib

import numpy as np

from bayesjpt.kernels import gibbs
from bayesjpt.numerics.counter_rng import sweep_key
from tests import examples as ex
from tests.kernels import runs

N_SWEEP = 20


def draws_digest(seed: int) -> str:
    """Return a hash of counts, statistics, weights and parameters over some sweeps."""
    rng = np.random.default_rng(seed)
    table = ex.make_table(ex.COLUMNS, 1000, rng, missing=0.1)
    circuit = ex.two_level(table)
    run = runs.prepare(circuit, table, "mixed")
    params = ex.start(circuit)
    hyper = runs.hyper_of(circuit, table.schema)
    total = hashlib.sha256()
    for sweep in range(N_SWEEP):
        found = runs.allocate(run, params, sweep_key(np.uint64(seed), np.uint64(sweep)))
        concentration = np.ones(circuit.n_edge)
        status = gibbs.draw_params(
            run.plan, run.cells, found.work, found.stats, found.edge_count, concentration, *hyper, *params, rng
        )
        assert status == -1
        for array in (found.edge_count, found.stats, *params):
            total.update(array.tobytes())
    return total.hexdigest()


if __name__ == "__main__":
    digest = draws_digest(1)
    hits = sum(sum(kernel.stats.cache_hits.values()) for kernel in (gibbs.allocate, gibbs.draw_params))
    print(digest, hits)
