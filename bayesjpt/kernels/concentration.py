"""How probable allocations are under Dirichlet weights that are integrated out: what concentrations are judged by.

With the weights of a sum integrated out, the children that N rows took at it have probability

    product over children c of  Gamma(a_c + n_c) / Gamma(a_c)    times    Gamma(A) / Gamma(A + N)

where n_c rows took child c, a_c is its concentration and A the sum of all of them. It is a probability of allocations:
no multinomial coefficient stands before it.

Reference: Teh, Jordan, Beal, Blei (2006), Hierarchical Dirichlet Processes, section 5, for concentrations given counts.
"""

from __future__ import annotations

from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.rising import log_rising


@kernel
def log_allocations(ptr, edge, concentration, edge_count):
    """Return the log probability of the rows' allocations at some sums, their weights integrated out.

    Parameters
    ----------
    ptr : int64 (n_sum + 1,)
        Segments of `edge`, one a sum.
    edge : int64 (n,)
        Edges below these sums.
    concentration : float64 (n_edge,)
        Positive at these edges.
    edge_count : int64 (n_edge,)
        Rows that took each edge.

    Returns
    -------
    float
        Nats; NaN or infinite where a sum of concentrations is.
    """
    total = 0.0
    for k in range(ptr.size - 1):
        whole, n_row = 0.0, 0.0
        for i in range(ptr[k], ptr[k + 1]):
            a, n = concentration[edge[i]], float(edge_count[edge[i]])
            whole += a
            n_row += n
            if n > 0.0:
                total += log_rising(a, n)
        if n_row > 0.0:
            total -= log_rising(whole, n_row)
    return total
