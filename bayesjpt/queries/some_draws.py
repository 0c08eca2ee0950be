"""A posterior of fewer draws, for answers that are wanted at once, or of more, for intervals of one structure."""

from __future__ import annotations

import numpy as np

from bayesjpt.defaults import SHOWN_DRAWS
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.networks import MAX_KEPT_BYTES, NetworkDraws
from bayesjpt.posterior.stacked import StackedPosterior
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


def enough_draws(post: Posterior, structure: int | None) -> Posterior:
    """Return one structure with as many draws as its intervals need, where its posterior is in closed form.

    A structure of several keeps a few draws, which together are the posterior of the whole; alone they say little about
    the structure. Others have the draws that they keep.

    Parameters
    ----------
    post : Posterior
    structure : int or None
        Which; None of a single one.
    """
    number = structure or 0
    kept = post.members()[number] if isinstance(post, StackedPosterior) else None
    if not isinstance(kept, NetworkDraws):
        return post.by_structure()[number]
    n_fitting = MAX_KEPT_BYTES // (8 * kept.network.n_entry * kept.n_chain)
    n = min(-(-SHOWN_DRAWS // kept.n_chain), n_fitting)
    if n <= kept.n_draw:
        return post.by_structure()[number]
    return kept.with_draws(n).posterior()
