"""A posterior of fewer draws, for answers that are wanted at once."""

from __future__ import annotations

import numpy as np

from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.complete import check_count


def some_draws(post: Posterior, max_draws: int | None) -> tuple[np.ndarray, Posterior]:
    """Return which draws of each chain are kept, int64 (n,), and the posterior of these.

    Parameters
    ----------
    post : Posterior
    max_draws : int or None
        Draws of all chains at most, but one of each chain at least; None for all.

    Raises
    ------
    QueryError
        For a number that is not a whole one from 1.
    """
    n = post.n_draw if max_draws is None else max(check_count(max_draws, "max_draws") // post.n_chain, 1)
    if n >= post.n_draw:
        return np.arange(post.n_draw), post
    kept = np.floor((np.arange(n) + 0.5) * (post.n_draw / n)).astype(np.int64)
    return kept, post.take_draws(kept)
