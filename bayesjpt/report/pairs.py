"""What hangs together: how much pairs of columns tell about each other, and whether rows show it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.dependence import dependence
from bayesjpt.queries.marginals import summarised
from bayesjpt.queries.pair_support import nats_of, shown_by_rows
from bayesjpt.queries.some_draws import some_draws

PAIR_DRAWS = 16
"""Draws that pairs of columns are computed from, one of each structure: 1,225 pairs take a second."""

PAIR_TOLERANCE = 3e-3
"""Nats, see `dependence`: coefficients that are written to two digits are off by 0.002 on the wines, in a third of the
time."""

PAIRED = 60
"""Columns at most of which a report looks at all pairs: as many rows of a picture as a screen has room for."""

TOP_PAIRS = 15
"""Pairs of columns that are described in text."""

_WEAK = 0.1
"""Least coefficient that is told as more than hardly any."""


@dataclass(frozen=True)
class Pair:
    """How much two columns hang together: positions, and the informational correlation with its interval.

    `is_shown`: whether rows themselves show it (`bayesjpt.queries.pair_support`).
    """

    first: int
    second: int
    mean: float
    lo: float
    hi: float
    is_shown: bool = True

    @property
    def strength(self) -> str:
        """How much that is, in a word."""
        if not self.is_shown:
            return "no more than chance"
        return next(
            word
            for least, word in ((0.6, "strong"), (0.3, "clear"), (_WEAK, "weak"), (0.0, "hardly any"))
            if self.mean >= least
        )


def pairs_of(post: Posterior) -> tuple[tuple[Pair, ...], tuple[int, ...]]:
    """Return all pairs of the first columns, the most dependent first, and which columns these are."""
    paired = tuple(k for k, column in enumerate(post.schema) if column.n_distinct != 1)[:PAIRED]
    if len(paired) < 2:
        return (), paired
    names = [post.schema.names[k] for k in paired]
    found = dependence(post, names, normalised=True, max_draws=PAIR_DRAWS, tolerance=PAIR_TOLERANCE).values
    values = found.reshape(-1, len(paired), len(paired))
    masses = summarised(values)
    first, second = np.triu_indices(len(paired), 1)
    pairs = [
        Pair(paired[i], paired[j], float(masses.mean[i, j]), float(masses.lo[i, j]), float(masses.hi[i, j]))
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    ]
    pairs = sorted(pairs, key=lambda pair: -pair.mean)
    told = [pair for pair in pairs[:TOP_PAIRS] if pair.mean >= _WEAK]
    information = nats_of(np.array([pair.mean for pair in told])).tolist()
    _, some = some_draws(post, PAIR_DRAWS)
    shown = shown_by_rows(some, [(pair.first, pair.second) for pair in told], information)
    pairs[: len(told)] = [replace(pair, is_shown=is_shown) for pair, is_shown in zip(told, shown, strict=True)]
    return tuple(pairs), paired
