"""Functionals of a draw that do not care how components are labelled."""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels.flow import fill_marginal_cdf
from bayesjpt.posterior.draws import Posterior


def marginal_cdf(post: Posterior) -> np.ndarray:
    """Return float64 (n_chain, n_draw, n_point): marginal CDFs of numeric columns at the reference rows' quartiles."""
    columns: list[int] = []
    points: list[float] = []
    if post.reference is not None:
        for position, column in enumerate(post.schema.columns):
            cells = post.reference.values[position, post.reference.observed[position]]
            if column.base != "category" and cells.size:
                for point in np.unique(np.quantile(cells, [0.25, 0.5, 0.75])):
                    columns.append(position)
                    points.append(float(point))
    flat = post.flat()
    out = np.empty((flat.theta.shape[0], len(points)))
    fill_marginal_cdf(
        post.plan(), flat.log_weight, flat.theta, np.array(columns, np.int64), np.array(points, np.float64), out
    )
    return out.reshape(post.n_chain, post.n_draw, -1)
