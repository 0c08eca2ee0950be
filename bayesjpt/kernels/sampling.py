"""Rows drawn from a circuit: a path from the root, then a value from every leaf on it."""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels.leaf import leaf_sample
from bayesjpt.kernels.passes import begin_walk, walk, walk_slot
from bayesjpt.numerics.borrowed import borrowed, keep
from bayesjpt.numerics.jit import kernel


@kernel
def sample_rows(plan, log_weight, theta, rng, out):
    """Fill out, float64 (n_row, n_column), with independent rows in the user's units.

    Values are drawn as the circuit has them: reals are not rounded to the resolution.
    """
    plan, log_weight, theta = borrowed(plan), borrowed(log_weight), borrowed(theta)
    stack = np.empty(plan.kind.size + 1, np.int64)
    made = np.zeros((1, 1)), np.ones((1, 1)), np.zeros(plan.kind.size, np.int32)  # nothing is given: every value is 1
    values = borrowed(made)
    for i in range(out.shape[0]):
        depth = begin_walk(plan, stack)
        while depth > 0:
            slot, depth = walk(plan, log_weight, values, 0, rng, stack, depth)
            leaf = walk_slot(plan, log_weight, slot, rng)
            out[i, plan.slot_column[slot]] = leaf_sample(plan, theta, leaf, -np.inf, np.inf, rng)
    keep(made)
