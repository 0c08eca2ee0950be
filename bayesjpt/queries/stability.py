"""How far another seed would move the answers of an ensemble, in parts of their own intervals.

      structure 0   . . .:.. .          mean m_0       the intervals of answers hold all draws of all structures;
      structure 1        . .:. . .      mean m_1       the means of independent structures tell how well
      ...                                              their average is known

A fixed set of answers is followed: what a user would ask of any table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bayesjpt.defaults import INTERVAL
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.boxes import Box
from bayesjpt.queries.given import box_log_probability
from bayesjpt.queries.moments import expectation
from bayesjpt.table.schema import Column

MAX_FOLLOWED_LABELS = 10
"""Labels of a column whose shares are followed when stability is judged, the most frequent ones."""

MAX_FOLLOWED_PAIRS = 45
"""Pairs of columns whose joint probabilities are followed when stability is judged: all of ten columns."""


CDF, LABEL, PAIR, MEAN, TYPE = "marginal_cdf", "label_share", "pair_probability", "mean", "type_share"
"""Kinds of answers, in the order in which they are listed."""

_ENDS = (0.5 - 0.5 * INTERVAL, 0.5 + 0.5 * INTERVAL)

_LEAST_STRUCTURES = 2
"""Of a learner, which say how far its structures differ."""

_PAIR_SEED = 1
"""Of the choice of pairs where there are many: the same for every fit of a table."""


class Answers(NamedTuple):
    """Answers under every draw.

    Attributes
    ----------
    kind, name : tuple of str
        What each is, and of which column, value or pair of columns.
    values : float64 (n_chain, n_draw, n_answer)
        Finite.
    """

    kind: tuple[str, ...]
    name: tuple[str, ...]
    values: np.ndarray


class Moves(NamedTuple):
    """How well the answers of an ensemble are known; arrays are float64 (n_answer,).

    Attributes
    ----------
    mean : array
        Over all draws.
    error : array
        Monte Carlo standard error of the mean: standard deviation of the structures' means over the root of their
        number.
    width : array
        Of the interval that all draws make.
    n_effective : float
        Structures from which errors are known: degrees of freedom and one.
    """

    mean: np.ndarray
    error: np.ndarray
    width: np.ndarray
    n_effective: float

    @property
    def scale(self) -> np.ndarray:
        """Standard deviation of the difference of two independent fits, in widths."""
        return np.sqrt(2.0) * self.error / self.width

    def take(self, which: np.ndarray) -> Moves:
        """Return those of some answers."""
        return Moves(self.mean[which], self.error[which], self.width[which], self.n_effective)


def answers_of(post: Posterior, type_share: np.ndarray) -> Answers:
    """Return the answers that are followed.

    Parameters
    ----------
    post : Posterior
    type_share : float64 (n_chain, n_draw, n_column, n_type)
        As `types` gives them.

    Notes
    -----
    Distribution functions of numeric columns at the quartiles of the reference rows; shares of the most frequent
    labels; means of numeric columns, where they exist under every draw; for pairs of columns the probability that both
    lie above their medians, or have their most frequent label; shares of types. Answers whose interval is a single
    point are left out.
    """
    found: list[tuple[str, str, np.ndarray]] = []
    boxes = _boxes(post)
    if boxes:
        shape = (post.n_chain, post.n_draw, len(boxes))
        probabilities = np.exp(_box_probabilities(post, tuple(box for _, _, box in boxes))).reshape(shape)
        found += [(kind, name, probabilities[..., k]) for k, (kind, name, _) in enumerate(boxes)]
    numbers = [column.name for column in post.schema if column.base != "category"]
    if numbers:
        means = expectation(post, numbers).values
        found += [(MEAN, name, means[..., k]) for k, name in enumerate(numbers)]
    for position, column in enumerate(post.schema):
        found += [(TYPE, column.name, type_share[:, :, position, k]) for k in range(type_share.shape[3])]
    kept = [(kind, name, values) for kind, name, values in found if _varies(values)]
    values = np.stack([values for _, _, values in kept], axis=-1) if kept else np.empty((post.n_chain, post.n_draw, 0))
    return Answers(tuple(kind for kind, _, _ in kept), tuple(name for _, name, _ in kept), values)


def _varies(values: np.ndarray) -> bool:
    """Return whether draws are finite, and make an interval that is wider than rounding errors."""
    if not np.isfinite(values).all():
        return False
    lo, hi = np.quantile(values, _ENDS)
    return bool(hi - lo > 1e-9 * (1.0 + np.abs(values).max()))


@pooled
def _box_probabilities(post: Posterior, boxes: tuple[Box, ...]) -> np.ndarray:
    """Return log probabilities, float64 (n_draw, n_box), draws of all chains one after the other."""
    return box_log_probability(post, post.plan(), boxes)


def _boxes(post: Posterior) -> list[tuple[str, str, Box]]:
    """Return (kind, name, event) of the probabilities that are followed."""
    found: list[tuple[str, str, Box]] = []
    upper: dict[int, np.ndarray] = {}
    for position, column in enumerate(post.schema):
        if column.base == "category":
            labels = _frequent_labels(column)
            found += [(LABEL, column.name, Box({position: np.array([[code, code]], float)})) for code in labels]
            upper[position] = np.array([[labels[0], labels[0]]], float)
        elif post.reference is not None and post.reference.observed[position].any():
            cells = post.reference.values[position, post.reference.observed[position]]
            quartiles = np.quantile(cells, [0.25, 0.5, 0.75], method="inverted_cdf")
            found += [(CDF, column.name, Box({position: np.array([[-np.inf, x]])})) for x in np.unique(quartiles)]
            above = quartiles[1] + 1.0 if column.base == "integer" else np.nextafter(quartiles[1], np.inf)
            upper[position] = np.array([[above, np.inf]])
    pairs = list(combinations(upper, 2))
    if len(pairs) > MAX_FOLLOWED_PAIRS:
        chosen = np.random.default_rng(_PAIR_SEED).choice(len(pairs), MAX_FOLLOWED_PAIRS, replace=False)
        pairs = [pairs[k] for k in np.sort(chosen)]
    names = post.schema.names
    return found + [(PAIR, f"{names[a]}, {names[b]}", Box({a: upper[a], b: upper[b]})) for a, b in pairs]


def _frequent_labels(column: Column) -> list[int]:
    """Return the codes of the most frequent labels, the most frequent first; "other" is none."""
    shares = np.array(column.frequencies)[: len(column.labels)]
    return np.argsort(-shares, kind="stable")[:MAX_FOLLOWED_LABELS].tolist()


def learners_of(post: Posterior) -> list[str]:
    """Return the name of the learner of each structure, empty where it is not known."""
    return [str(structure.settings.get("learner", "")) for structure in post.by_structure()]


def moves_of(parts: list[np.ndarray], weights: np.ndarray, learners: Sequence[str] | None = None) -> Moves:
    """Return how well the averages of several structures' draws are known.

    Parameters
    ----------
    parts : list of float64 (n_chain, n_draw, n_answer)
        Draws of each structure, of which there are two at least.
    weights : float64 (n_structure,)
        With sum 1.
    learners : sequence of str, optional
        Of each structure; by default one made all.

    Notes
    -----
    Means m_k with one variance and weights w_k have a weighted mean m whose squared error is sum w_k^2 times that
    variance, and sum w_k (m_k - m)^2 / (1 - sum w_k^2) estimates the variance without bias. Where weights are even,
    the error is the standard deviation of the m_k over the root of their number.

    Each fit has as many structures of each learner, so what differs between learners moves no answer: a sum of the
    squared errors of the parts of each (Cochran 1977, Sampling Techniques, section 5.4). A learner with a single
    structure says nothing of that; then all count as of one.
    """
    means = np.array([part.mean(axis=(0, 1)) for part in parts])
    names = np.array(learners if learners is not None else [""] * len(parts))
    made, which = np.unique(names, return_inverse=True)
    if np.bincount(which, weights > 0.0).min() < _LEAST_STRUCTURES:
        made, which = made[:1], np.zeros(len(parts), int)
    squared, n_effective = np.zeros(means.shape[1]), 1.0
    for number in range(made.size):
        share = weights[which == number].sum()
        within, of_learner = weights[which == number] / share, means[which == number]
        concentration = float((within**2).sum())
        deviations = of_learner - within @ of_learner
        squared += share**2 * concentration / (1.0 - concentration) * (within @ deviations**2)
        n_effective += 1.0 / concentration - 1.0
    draws = np.concatenate([part.reshape(math.prod(part.shape[:2]), part.shape[2]) for part in parts])
    lo, hi = np.quantile(draws, _ENDS, axis=0)
    return Moves(weights @ means, np.sqrt(squared), hi - lo, n_effective)


def usual_move(scale: np.ndarray, n_effective: float, share: float) -> float:
    """Return by how much the given share of answers moves at most, in the unit of their scales.

    Parameters
    ----------
    scale : float64 (n_answer,)
        Estimated standard deviation of the difference of two independent fits.
    n_effective : float
        Structures from which each was estimated.
    share : float
        Of the answers, on average over seeds.

    Notes
    -----
    Where means of structures are normal, the difference of two fits over its estimated standard deviation is Student's
    t with n - 1 degrees of freedom. So x is where mean_q P(|t| <= x / s_q) is the share that is asked for, however the
    answers depend on each other. For a single answer that is exact. Of many answers somewhat more than the share move
    by less: errors in the scales, for which t allows, then partly cancel.

    Examples
    --------
    >>> round(usual_move(np.array([1.0]), 16.0, 0.95), 2), round(usual_move(np.array([0.0, 0.0]), 16.0, 0.95), 2)
    (2.13, 0.0)
    """
    from scipy.special import stdtr

    def share_within(x: float) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(scale > 0.0, x / scale, np.inf)
        return float((2.0 * stdtr(n_effective - 1.0, ratio) - 1.0).mean())

    lo, hi = 0.0, float(scale.max())
    if hi == 0.0:
        return 0.0
    while share_within(hi) < share:
        hi *= 2.0
    for _ in range(60):
        middle = 0.5 * (lo + hi)
        lo, hi = (lo, middle) if share_within(middle) >= share else (middle, hi)
    return hi


def distances(parts: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return how far the means of each structure are from those of all, float64 (n_structure,).

    Mean squares in widths of intervals; parameters are those of `moves_of`. Without answers, and of one structure, all
    are 0.
    """
    if len(parts) == 1 or not parts[0].shape[2]:
        return np.zeros(len(parts))
    moves = moves_of(parts, weights)
    means = np.array([part.mean(axis=(0, 1)) for part in parts])
    return (((means - moves.mean) / moves.width) ** 2).mean(axis=1)
