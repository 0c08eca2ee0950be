"""A tree of gated experts in words: where each gate cuts, and what each leaf's expert says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.experts.model import ExpertModel, first_leaf_of_a_single_expert
from bayesjpt.families import features
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, LOGISTIC, MULTINOMIAL, POISSON
from bayesjpt.table.covariates import Covariates

if TYPE_CHECKING:
    from bayesjpt.experts.posterior import ExpertPosterior

_N_TERM = 3
_TOLD = 0.9
"""Of the probability of labels."""


def explain(post: ExpertPosterior, own: int) -> str:
    """Return the tree of one chain in words, gates and experts at their posterior means.

    Chains have trees of their own, and a gate with its mirror image says the same: means over chains would be of no
    tree.
    """
    lines = [repr(post), f"the tree of chain {own} at its posterior mean"]
    gates = post.coefficients.gate[own].mean(axis=0)
    node = post.coefficients.node[own].mean(axis=0)
    dispersion = post.coefficients.dispersion[own].mean(axis=0)
    _describe(post, (gates, node, dispersion), 0, "", lines)
    return "\n".join(lines)


def _describe(post: ExpertPosterior, means: tuple[np.ndarray, ...], number: int, indent: str, lines: list[str]) -> None:
    gates, node, dispersion = means
    model = post.model
    if number >= model.n_gate:
        leaf = number - model.n_gate
        lines += [f"{indent}{text}" for text in experts_in_words(post, node[number], dispersion[leaf])]
        return
    below = first_leaf_of_a_single_expert(node, dispersion, number)
    if below is not None:
        _describe(post, means, below, indent, lines)
        return
    children, ways = model.children(number), ways_in_words(model, gates, number)
    if model.branches == 2:
        children, ways = children[::-1], [f"if {ways[1]}", "else"]
    for child, words in zip(children, ways, strict=True):
        lines.append(f"{indent}{words}:")
        _describe(post, means, child, indent + "    ", lines)


def gate_in_words(gate: np.ndarray, covariates: Covariates) -> str:
    """Return the question whose answer is yes where a gate's log odds are positive, and how sharp the answer is.

    Examples
    --------
    >>> import numpy as np, bayesjpt as bj
    >>> from bayesjpt.table.covariates import make_covariates
    >>> table = bj.as_table({"size": [1.5, 2.5, 3.5], "kind": ["a", "b", "c"]})
    >>> gate_in_words(np.array([0.0, 9.0, 0.1, 0.0, 0.0]), make_covariates(table, ["size", "kind"]))
    'size > 2.5 (sharp)'
    """
    slopes = gate[1:]
    if not slopes.size or not np.abs(slopes).max() > 0.0:
        share = np.exp(-np.logaddexp(0.0, -gate[0]))
        return f"always with probability {share:.2g}"
    order = np.argsort(-np.abs(slopes), kind="stable")
    largest = order[0]
    member = covariates.members[largest]
    size, sharpness = float(np.sqrt((slopes**2).sum())), _sharpness(gate)
    if np.abs(slopes[largest]) > 0.9 * size:
        if member.code >= 0:
            return f"{member.name} {'likely' if slopes[largest] > 0 else 'unlikely'} ({sharpness})"
        cut = member.centre - member.scale * gate[0] / slopes[largest]
        return f"{member.name} {'>' if slopes[largest] > 0 else '<'} {cut:.4g} ({sharpness})"
    return f"{_terms(gate, covariates)} > 0 ({sharpness})"


def ways_in_words(model: ExpertModel, gates: np.ndarray, gate: int) -> list[str]:
    """Return which rows go to each child of a gate, in words.

    Parameters
    ----------
    model : ExpertModel
    gates : float64 (n_leaf - 1, n_covariate)
        Coefficients of all gates.
    gate : int

    Notes
    -----
    Of several ways each is described by its log odds less the mean of all: the largest wins.
    """
    own = gates[model.gate_rows(gate)]
    if model.branches == 2:
        return [gate_in_words(sign * own[0], model.gate_covariates) for sign in (-1.0, 1.0)]
    scores = np.concatenate([np.zeros((1, own.shape[1])), own])
    if not own[:, 1:].any():
        shares = np.exp(scores[:, 0] - np.logaddexp.reduce(scores[:, 0]))
        return [f"always with probability {share:.2g}" for share in shares]
    scores -= scores.mean(axis=0)
    return [
        f"way {way + 1} where {_terms(score, model.gate_covariates)} is largest ({_sharpness(score)})"
        for way, score in enumerate(scores)
    ]


def _sharpness(gate: np.ndarray) -> str:
    size = float(np.sqrt((gate[1:] ** 2).sum()))
    return "sharp" if size > 5.0 else "soft" if size > 1.0 else "faint"


def _terms(coefficients: np.ndarray, covariates: Covariates) -> str:
    """Return the largest terms of a linear predictor, in the units of the table."""
    centre = np.array([member.centre for member in covariates.members])
    scale = np.array([member.scale for member in covariates.members])
    slopes = coefficients[1:] / scale
    order = np.argsort(-np.abs(coefficients[1:]), kind="stable")[:_N_TERM]
    parts = [f"{coefficients[0] - slopes @ centre:.3g}"]
    parts += [f"{'-' if slopes[k] < 0 else '+'} {abs(slopes[k]):.3g} {covariates.members[k].name}" for k in order]
    rest = slopes.size - order.size
    return " ".join(parts) + (f" and {rest} smaller {'term' if rest == 1 else 'terms'}" if rest > 0 else "")


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
            lines.append(f"{name}: {_likely(column.labels, own[:, 0])} at average covariates")
            continue
        own[0, 0] += model.offset[c]
        if kind == GAUSSIAN:
            offset, scale = features.offset_and_scale(model.families[c].scaling, column)
            own *= scale
            own[0, 0] += offset
            says = f"{_terms(own[0], model.covariates)}, give or take {np.sqrt(dispersion[c]) * scale:.3g}"
        elif kind == LOGISTIC:
            says = f"log odds of {column.labels[1]!r} {_terms(own[0], model.covariates)}"
        else:
            own[0, 0] += np.log(column.scale) if kind == GAMMA else 0.0
            says = f"log mean {_terms(own[0], model.covariates)}"
            says += f", shape {dispersion[c]:.3g}" if kind != POISSON else ""
        lines.append(f"{name}: {says}")
    return lines
