"""A tree of gated experts in words: where each gate cuts, and what each leaf's expert says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bayesjpt.experts.gate_words import at_average, ways_in_words
from bayesjpt.experts.model import first_leaf_of_a_single_expert
from bayesjpt.experts.words import linear, number, unit_of_time
from bayesjpt.families import features
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, LOGISTIC, MULTINOMIAL, POISSON

if TYPE_CHECKING:
    from bayesjpt.experts.posterior import ExpertPosterior

_TOLD = 0.9
"""Of the probability of labels."""


class Means(NamedTuple):
    """Posterior means of a chain.

    Attributes
    ----------
    gate : float64 (n_leaf - 1, n_covariate)
    node : float64 (n_node, n_predictor, n_covariate)
    dispersion : float64 (n_leaf, n_target)
    memory : float64 (n_gate, n_leaf) or None
        What each leaf of the row before adds to the log odds of gates, of trees over time.
    """

    gate: np.ndarray
    node: np.ndarray
    dispersion: np.ndarray
    memory: np.ndarray | None


def means_of(post: ExpertPosterior, chain: int) -> Means:
    """Return the posterior means of a chain.

    Chains have trees of their own, and a gate with its mirror image says the same: means over chains would be of no
    tree.
    """
    drawn = post.coefficients
    gate, node, dispersion = (array[chain].mean(axis=0) for array in (drawn.gate, drawn.node, drawn.dispersion))
    return Means(gate, node, dispersion, post.memory_log_odds(chain))


def explain(post: ExpertPosterior, own: int) -> str:
    """Return the tree of one chain in words, gates and experts at their posterior means."""
    lines = [repr(post), f"the tree of chain {own} at its posterior mean"]
    _describe(post, means_of(post, own), 0, "", lines)
    return "\n".join(lines)


def _describe(post: ExpertPosterior, means: Means, node: int, indent: str, lines: list[str]) -> None:
    model = post.model
    if node >= model.n_gate:
        lines += [f"{indent}{text}" for text in leaf_in_words(post, means, node - model.n_gate)]
        return
    below = first_leaf_of_a_single_expert(means.node, means.dispersion, node)
    if below is not None:
        _describe(post, means, below, indent, lines)
        return
    children = model.children(node)
    sentences = [way.sentence for way in ways_in_words(model, means.gate, node, means.memory)]
    if model.branches == 2:
        children, sentences = children[::-1], [sentences[1], "else"]
    for child, words in zip(children, sentences, strict=True):
        lines.append(f"{indent}{words}:")
        _describe(post, means, child, indent + "    ", lines)


def leaf_in_words(post: ExpertPosterior, means: Means, leaf: int) -> list[str]:
    """Return a line for each target: what a leaf's expert says; over time with its number, which gates speak of."""
    said = experts_in_words(post, means.node[post.model.n_gate + leaf], means.dispersion[leaf])
    lead = "" if means.memory is None or post.model.n_leaf == 1 else f"leaf {leaf}: "
    return [f"{lead}{text}" for text in said]


def _likely(labels: Sequence[str], log_odds: np.ndarray) -> str:
    """Return the most probable labels, so many that nine tenths are named, and their probabilities."""
    shares = np.exp(log_odds - np.logaddexp.reduce(log_odds))
    order = np.argsort(-shares, kind="stable")
    n = int(np.searchsorted(np.cumsum(shares[order]), _TOLD)) + 1
    return ", ".join(f"{labels[k]!r} {shares[k]:.2f}" for k in order[:n])


def experts_in_words(post: ExpertPosterior, coefficients: np.ndarray, dispersion: np.ndarray) -> list[str]:
    """Return a line for each target: what a leaf's expert says of it.

    Parameters
    ----------
    post : ExpertPosterior
    coefficients : float64 (n_predictor, n_covariate)
    dispersion : float64 (n_target,)
    """
    model, lines = post.model, []
    for c, (name, kind) in enumerate(zip(model.targets, model.kind, strict=True)):
        column, own = model.response.columns[c], coefficients[model.at[c] : model.at[c + 1]].copy()
        if kind == MULTINOMIAL:
            likely = _likely(column.labels, own @ model.covariates.average())
            lines.append(f"{name}: {likely}{at_average(model.covariates)}")
            continue
        own[0, 0] += model.offset[c]
        if kind == GAUSSIAN:
            offset, scale = features.offset_and_scale(model.families[c].scaling, column)
            own *= scale
            own[0, 0] += offset
            deviation = float(np.sqrt(dispersion[c]) * scale)
            if column.dtype == "datetime":
                unit = unit_of_time(deviation)
                says = linear(own[0], model.covariates, spread=deviation, target=column, unit=unit.days)
                says += f", give or take {number(deviation / unit.days)} {unit.name}"
            else:
                says = f"{linear(own[0], model.covariates, spread=deviation)}, give or take {number(deviation)}"
        elif kind == LOGISTIC:
            says = f"log odds of {column.labels[1]!r} {linear(own[0], model.covariates)}"
        else:
            own[0, 0] += np.log(column.scale) if kind == GAMMA else 0.0
            says = f"log mean {linear(own[0], model.covariates)}"
            says += f", shape {dispersion[c]:.3g}" if kind != POISSON else ""
        lines.append(f"{name}: {says}")
    return lines
