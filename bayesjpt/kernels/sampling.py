"""Rows drawn from a circuit: a path from the root, then a value from every leaf on it."""

from __future__ import annotations

import math

import numpy as np

from bayesjpt.kernels.leaf import leaf_sample
from bayesjpt.kernels.upward import LEAF_KIND, PRODUCT_KIND
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.lent import lent


@kernel
def sample_rows(plan, log_weight, theta, rng, out):
    """Fill out, float64 (n_row, n_column), with independent rows in the user's units.

    Values are drawn as the circuit has them: reals are not rounded to the resolution.
    """
    plan = lent(plan)
    n_node = plan.kind.size
    stack = np.empty(n_node + 1, np.int64)
    for i in range(out.shape[0]):
        stack[0] = n_node - 1
        depth = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            first, last = plan.child_ptr[node], plan.child_ptr[node + 1]
            if plan.kind[node] == LEAF_KIND:
                leaf = plan.leaf_of[node]
                column = plan.feature_column[plan.leaf_value[leaf]]
                out[i, column] = leaf_sample(plan, theta, leaf, -np.inf, np.inf, rng)
            elif plan.kind[node] == PRODUCT_KIND:
                for e in range(first, last):
                    stack[depth] = plan.child[e]
                    depth += 1
            else:
                total = 0.0
                for e in range(first, last):
                    total += math.exp(log_weight[e])
                target = rng.random() * total
                e = first
                reached = math.exp(log_weight[e])
                while target >= reached and e < last - 1:
                    e += 1
                    reached += math.exp(log_weight[e])
                stack[depth] = plan.child[e]
                depth += 1
