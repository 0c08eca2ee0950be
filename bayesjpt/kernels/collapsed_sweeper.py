"""Sweeps whose allocations are drawn row by row, weights and parameters integrated out: a Sweeper's other half.

Between sweeps a chain is its weights and parameters, as always. So a sweep first draws all paths given them, then draws
each anew given all others, and then weights and parameters given the paths: each leaves the posterior as it is.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.kernels.collapsed import begin, scan
from bayesjpt.kernels.paths import make_paths, record, replay
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.numerics.counter_rng import sweep_key

_SCAN = np.uint64(1)
"""What a sweep's second key is for."""


class CollapsedSweeper(Sweeper):
    """A Sweeper that draws each row's path given those of all other rows; see `bayesjpt.kernels.collapsed`.

    Parameters are those of `Sweeper`; all weights and parameters have to be drawn. Memory: 4 bytes for each row and
    column, and for each row and sum that a row may visit.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        assert self.swaps, "what is integrated out has to be drawn"
        self._paths = make_paths(
            self.plan, self.cells, self.priors.hyper, self.priors.hyper_at, self.circuit.start_theta
        )

    def allocate(
        self, params: Params, rng: np.random.Generator, chain_key: int, number: int, *, even: bool = False
    ) -> float:
        """Draw the allocations of a sweep and return what `Sweeper.allocate` does.

        Where weights are to be held `even` they are not integrated out: such a sweep is that of a plain Sweeper.
        """
        if even:
            return super().allocate(params, rng, chain_key, number, even=even)
        key = np.uint64(sweep_key(np.uint64(chain_key), np.uint64(number)))
        self._pair(rng)
        log_likelihood = self._tell(record(self.plan, self.cells, *params, self._work, self._paths, key))
        concentration = self._divided(params)
        self._scale(params)
        given = (concentration, self._hyper, self.priors.hyper_at, params.theta)
        begin(self.plan, self.cells, self._work, self._paths, *given)
        scan(self.plan, self.cells, self._paths, *given, np.uint64(sweep_key(key, _SCAN)))
        replay(self.plan, self.cells, self._work, self._swaps, self._paths, self._stats, self._edge_count)
        return log_likelihood
