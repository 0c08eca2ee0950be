"""Which pairs of columns rows themselves show to hang together, beside what the model makes of them.

A draw's mutual information is never negative, and noise in its sub-populations pushes it up: where others set many of
them apart, each with few rows of a column, by about the number of that column's parameters over the number of rows.
What rows say is not: the mean over them of

    log p(x, y) - log p(x) - log p(y)

is about the information where two columns hang together, and about 0 where they do not, since what their parameters
gain on the rows they were drawn from is what their noise loses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.density import log_mass
from bayesjpt.queries.dependence import dependence
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.table.table import Table

_LEAST = 0.5
"""Of the information under the draws, that rows show where it is more than noise: .6 to 1.2 of pairs that were made up
to hang together, 0 to .3 of others with coefficients above .15 (`docs/explanation/dependence.md`)."""
_FEWEST = 30
"""Rows that have both columns, below which they show nothing either way."""


class RankedPairs(NamedTuple):
    """How much columns tell about each other, the pairs that do most first.

    Attributes
    ----------
    quantity : str
        ``mutual_information`` in nats, or ``correlation`` from 0 to 1.
    names : list of str
    mean, lower, upper : float64 (n_column, n_column)
        Over draws, and ends of the credible interval.
    pairs : list of pairs of int
        All, by their mean.
    shown : list of bool or None
        Of each of these, whether rows show it; None where that is not looked at.
    n_draw : int
    """

    quantity: str
    names: list[str]
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    pairs: list[tuple[int, int]]
    shown: list[bool | None]
    n_draw: int


def ranked_pairs(
    post: Posterior,
    columns: Sequence[str] | None,
    normalised: bool,
    given: str | None,
    interval: float,
    max_draws: int | None,
    top: int,
) -> RankedPairs:
    """Return the dependence of columns; whether rows show it is looked at for the first `top` pairs, without evidence.

    Parameters and errors are otherwise those of `bayesjpt.queries.dependence.dependence`.
    """
    found = dependence(post, columns, normalised=normalised, given=given, max_draws=max_draws)
    values, names = found.values, list(found.coords["feature"])
    mean = values.mean(axis=(0, 1))
    lower, upper = np.quantile(values, [0.5 * (1.0 - interval), 0.5 * (1.0 + interval)], axis=(0, 1))
    first, second = np.triu_indices(len(names), 1)
    order = np.argsort(-mean[first, second], kind="stable")
    pairs = [(int(first[k]), int(second[k])) for k in order]
    shown: list[bool | None] = [None] * len(pairs)
    if given is None:
        positions = [(post.schema.index(names[i]), post.schema.index(names[j])) for i, j in pairs[:top]]
        nats = (nats_of(mean) if normalised else mean)[first, second][order[:top]]
        shown[: nats.size] = shown_by_rows(some_draws(post, max_draws)[1], positions, nats.tolist())
    return RankedPairs(str(found.name), names, mean, lower, upper, pairs, shown, values.shape[0] * values.shape[1])


def nats_of(correlation: np.ndarray) -> np.ndarray:
    """Return the mutual information of informational coefficients of correlation; a large number of 1."""
    return -0.5 * np.log1p(-(np.minimum(correlation, 1.0 - 1e-9) ** 2))


def shown_by_rows(post: Posterior, pairs: Sequence[tuple[int, int]], information: Sequence[float]) -> list[bool]:
    """Return for pairs of columns whether the reference rows show that they hang together.

    Parameters
    ----------
    post : Posterior
        Of few draws, which decide what this costs.
    pairs : sequence of pairs of int
        Positions of columns.
    information : sequence of float
        Of each pair, in nats: mean over draws.

    Returns
    -------
    list of bool
        Also true where there are too few rows to show anything.
    """
    rows = post.reference
    if rows is None or not pairs:
        return [True] * len(pairs)
    singles = sorted({k for pair in pairs for k in pair})
    parts = _log_masses(post, rows, [*((k,) for k in singles), *pairs])
    alone = dict(zip(singles, parts, strict=False))
    found = []
    for (first, second), together, nats in zip(pairs, parts[len(singles) :], information, strict=True):
        both = rows.observed[first] & rows.observed[second]
        gain = (together - alone[first] - alone[second])[:, both]
        found.append(int(both.sum()) < _FEWEST or bool(gain.mean() >= _LEAST * nats))
    return found


def _log_masses(post: Posterior, rows: Table, groups: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the log mass of the cells of groups of columns alone, float64 (n_group, n_draw, n_row), in one pass."""
    observed = np.zeros((len(groups), *rows.observed.shape), bool)
    for group, columns in zip(observed, groups, strict=True):
        group[list(columns)] = rows.observed[list(columns)]
    stacked = Table(post.schema, np.tile(rows.values, len(groups)), np.concatenate(list(observed), axis=1))
    return log_mass(post, stacked).values.reshape(-1, len(groups), rows.n_row).swapaxes(0, 1)
