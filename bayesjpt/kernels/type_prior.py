"""Weights of a column's types, shared by the dictionaries of all its leaves, drawn given how many rows each member has.

With a dictionary's weights integrated out the numbers of rows n_e of its members have probability proportional to

    product over e of  Gamma(a_e + n_e) / Gamma(a_e),        a_e proportional to w_t,    t the type of e

which is no Dirichlet density of w. But each factor is a sum over k of |s(n_e, k)| a_e^k, where s are Stirling numbers:
k says how many of n_e rows in turn would have chosen anew, which row i does with probability a_e / (a_e + i). Given all
k the weights of types are Dirichlet(1 + sum of k over the members of each type, over all leaves of the column). The
weights of dictionaries, which were integrated out, are drawn next.

Reference: Antoniak (1974), Mixtures of Dirichlet processes with applications to Bayesian nonparametric problems, Annals
of Statistics 2; Teh, Jordan, Beal, Blei (2006), Hierarchical Dirichlet Processes, section 5.3.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.draw import draw_dirichlet
from bayesjpt.numerics.jit import kernel


@apart
@kernel
def draw_type_prior(types, edge_count, weight, concentration, rng):
    """Draw the weights of types from their conditional, weights of dictionaries integrated out, in place.

    Takes one uniform number for each row of each edge that follows weights, as Antoniak's draw is defined.

    Parameters
    ----------
    types : ColumnTypes
    edge_count : int64 (n_edge,)
        Rows that took each edge.
    weight : float64 (n_weight,)
        Replaced.
    concentration : float64 (n_edge,)
        That of each edge before it is divided; afterwards, at the edges that follow weights, divided by the new ones.
    rng : numpy.random.Generator
    """
    types = borrowed(types)
    # the prior of the weights is Dirichlet(1, ..., 1)
    anew = np.ones(weight.size)
    for i in range(types.edge.size):
        a = concentration[types.edge[i]] * types.factor[i] * weight[types.entry[i]]
        for row in range(edge_count[types.edge[i]]):
            # with probability a / (a + row), without the division
            anew[types.entry[i]] += rng.random() * (a + row) < a
    for group in range(types.ptr.size - 1):
        first, last = types.ptr[group], types.ptr[group + 1]
        draw_dirichlet(anew[first:last], weight[first:last], rng)
    for i in range(types.edge.size):
        concentration[types.edge[i]] *= types.factor[i] * weight[types.entry[i]]
