"""The chain of one structure that answers most as all draws do: what a picture of sub-populations is drawn from.

Sub-populations of two structures have nothing in common, and of two chains of a mixture their numbers differ. So what
names them shows one chain, and says which. A tree's leaves are the same in all chains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayesjpt.circuit.arrays import HARD, Params
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.boxes import Box
from bayesjpt.queries.distribution import mean_quantiles
from bayesjpt.queries.given import box_log_probability
from bayesjpt.queries.some_draws import enough_draws, some_draws

_DECILES = np.arange(0.1, 0.95, 0.1)

_N_DRAW = 16
"""Draws that deciles are found from: distributions are compared there, wherever exactly it is."""


@dataclass(frozen=True, eq=False)
class Representative:
    """A posterior of one structure, and of one chain unless all chains have the same sub-populations.

    Parameters
    ----------
    post : Posterior
    structure, chain : int or None
        Which it is; None where there is one structure alone, and for all chains.
    """

    post: Posterior
    structure: int | None
    chain: int | None


def whose(structure: int | None, chain: int | None) -> str:
    """Return whose draws these are, in words that follow what they are; empty where they are all there are."""
    where = [f"structure {structure}"] * (structure is not None) + [f"chain {chain}"] * (chain is not None)
    return f" of {', '.join(where)}" if where else ""


def representative(post: Posterior, columns: Sequence[int]) -> Representative:
    """Return the chain whose probabilities of some columns are nearest to those of all draws.

    Compared are probabilities of labels, and of being below each decile of numbers, by their largest difference.
    """
    structures = post.by_structure()
    found: list[Representative] = []
    for number, structure in enumerate(structures):
        which = number if len(structures) > 1 else None
        if structure.circuit.kind[-1] == HARD or structure.n_chain == 1:
            found.append(Representative(structure, which, None))
        else:
            found += [Representative(_chain(structure, c), which, c) for c in range(structure.n_chain)]
    if len(found) == 1:
        return found[0]
    boxes = compared(post, columns)
    answers = [mean_probabilities(each.post, boxes) for each in found]
    weights = np.array([each.post.n_chain * each.post.n_draw for each in found], np.float64)
    middle = np.average(answers, axis=0, weights=weights)
    return found[int(np.argmin(np.abs(np.array(answers) - middle).max(axis=1)))]


def enough_draws_of(post: Posterior, source: Representative) -> Posterior:
    """Return what represents a posterior, with as many draws as its intervals need."""
    return source.post if source.chain is not None else enough_draws(post, source.structure)


def _chain(post: Posterior, chain: int) -> Posterior:
    params = Params(*(np.ascontiguousarray(array[chain : chain + 1]) for array in post.params))
    return replace(post, params=params, sample_stats={})


def mean_probabilities(post: Posterior, boxes: Sequence[Box]) -> np.ndarray:
    """Return the probabilities of boxes under a posterior of one structure, the means over draws, float64 (n_box,)."""
    return np.exp(box_log_probability(post, post.plan(), boxes)).mean(axis=0)


def compared(post: Posterior, columns: Sequence[int]) -> list[Box]:
    """Return what distributions of columns are compared by: each label, and all below each decile of numbers."""
    numbers = [c for c in columns if post.schema.columns[c].base != "category"]
    deciles: dict[int, np.ndarray] = {}
    if numbers:
        few = some_draws(post, _N_DRAW)[1]
        found = mean_quantiles(few, list(_DECILES), [post.schema.names[c] for c in numbers])
        deciles = dict(zip(numbers, found.T, strict=True))
    boxes: list[Box] = []
    for c in columns:
        if c in deciles:
            boxes += [Box({c: np.array([[-np.inf, x]])}) for x in deciles[c]]
        else:
            codes = range(post.schema.columns[c].n_label)
            boxes += [Box({c: np.array([[float(code), float(code)]])}) for code in codes]
    return boxes
