"""One leaf after the other of one column, under many draws: what a column is like as a shallow mixture.

column  =  sum over its leaves of  path probability x weight in the dictionary x distribution of the leaf
"""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels.leaf import leaf_buffer, leaf_mode
from bayesjpt.kernels.mixture import forget
from bayesjpt.kernels.quantiles import mixture_quantile
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.jit import kernel


@kernel
def fill_leaf_modes(plan, leaves, thetas, out):
    """Fill out, float64 (n_draw, n_leaf), with the mode of each leaf, in the user's units; codes of labels."""
    plan = borrowed(plan)
    buffer = leaf_buffer(plan)
    for draw in range(out.shape[0]):
        for k in range(leaves.size):
            out[draw, k], _ = leaf_mode(plan, thetas[draw], leaves[k], -np.inf, np.inf, buffer)


@kernel
def fill_leaf_quantiles(plan, components, chosen, thetas, levels, out):
    """Fill out, float64 (n_draw, n_level, n_chosen), with quantiles of some components of one column, each alone."""
    plan, components = borrowed(plan), borrowed(components)
    share, held = np.zeros(components.place.size), np.empty((components.place.size, 3))
    for draw in range(out.shape[0]):
        # masses held so far were those of another draw's parameters
        forget(held)
        for j in range(chosen.size):
            share[chosen[j]] = 1.0
            for k in range(levels.size):
                out[draw, k, j] = mixture_quantile(components, plan.const, thetas[draw], held, share, 0, levels[k])
            share[chosen[j]] = 0.0
