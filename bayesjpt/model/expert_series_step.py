"""The step method of `ExpertTree` over time: sweeps that draw the paths of whole series by exact passes."""

from __future__ import annotations

import numpy as np
import pymc as pm

from bayesjpt.kernels.expert_series import Memory, Steps
from bayesjpt.kernels.expert_series_start import best_start, hard_paths, seen_rows, slots, stretches
from bayesjpt.kernels.expert_series_sweep import draw_given_series_paths, fill_series_paths
from bayesjpt.kernels.expert_start import begin_paths
from bayesjpt.kernels.expert_tree import Coefficients, Task
from bayesjpt.model.expert_step import ExpertGibbs, block_of, task_of


class ExpertSeriesGibbs(ExpertGibbs):
    """Gibbs sweeps over the variables of one `ExpertTree` over time whose covariates are data.

    Parameters, errors as of `ExpertGibbs`.

    Notes
    -----
    A chain begins with the best of six starts, as in `bj.fit_experts` over time, whatever its initial point is.
    """

    name = "expert_series_gibbs"

    def _read(self, model: pm.Model) -> Task:
        """Return the rows in the order of their series."""
        name = self._block.name
        order, begins = (model[f"{name}_{part}"].get_value() for part in ("order", "begins"))
        task, seen = task_of(model, self._block)
        slot, sign, _ = slots(self._block.depth, self._block.transitions)
        first = np.append(np.flatnonzero(begins), order.size).astype(np.int64)
        self._steps = Steps(first, seen[order], slot, sign)
        x = np.ascontiguousarray(task.x[order])
        return task._replace(x=x, gate_x=x, y=np.ascontiguousarray(task.y[:, order]))

    def _moved(self, point: dict, rng: np.random.Generator, *, begin: bool) -> dict[str, np.ndarray]:
        state, memory = self._state(point), self._memory(point)
        if begin:
            state, memory, self._leaf = self._begin(point, rng)
        else:
            key = np.uint64(rng.integers(2**62))
            fill_series_paths(self._task, self._steps, state, memory, key, self._leaf)
        draw_given_series_paths(self._task, self._steps, state, memory, self._prior, self._leaf, rng)
        return self._values(state) | self._offsets(memory)

    def _begin(self, point: dict, rng: np.random.Generator) -> tuple[Coefficients, Memory, np.ndarray]:
        task, seen, n_leaf = self._task, self._steps.seen, 2**self._block.depth
        known = seen_rows(task, seen)

        def first(trial: int) -> tuple[Coefficients, np.ndarray]:
            state = self._state(point)
            state.gate[:] = 0.0
            if trial % 2 or task.gate_x.shape[1] == 1:
                return state, stretches(seen.size, n_leaf, rng)
            own = begin_paths(known, state.gate, rng)
            leaf = hard_paths(state.gate, task.gate_x)
            leaf[seen] = own
            return state, leaf

        return best_start(task, self._steps, self._prior, first, rng)[1:]

    def _memory(self, point: dict) -> Memory:
        """Return what gates make of the leaf before at a point."""
        (offset, _), (precision, logged) = (self._value_names[name] for name in ("offset", "offset_precision"))
        value = np.exp(point[precision]) if logged else point[precision]
        return Memory(np.array(point[offset], np.float64), np.array([value], np.float64).reshape(1))

    def _offsets(self, memory: Memory) -> dict[str, np.ndarray]:
        (offset, _), (precision, logged) = (self._value_names[name] for name in ("offset", "offset_precision"))
        value = memory.precision[0]
        return {offset: memory.offset, precision: np.array(np.log(value) if logged else value)}

    @classmethod
    def claims(cls, rv) -> bool:
        """Return whether a variable is of a tree over time whose covariates are data."""
        block = block_of(rv)
        return block is not None and bool(block.transitions)
