"""A tree of gated experts as data for pictures: how rows spread over its splits, and what each split is worth.

Every number is that of some rows, which a fit does not keep. Two things are said of a node, after Jordan and Jacobs:

      histogram    of rows by P(this way | at the parent, x, y): all near 0 or 1 where gates are sharp
      deviance     -2 log likelihood a row of one expert fitted to the node's rows; a gate's less that of its children
                   is what the split takes away
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt import defaults_experts
from bayesjpt.errors import QueryError
from bayesjpt.experts.em import make_penalty
from bayesjpt.experts.explain import Means, leaf_in_words, means_of
from bayesjpt.experts.gate_words import ways_in_words
from bayesjpt.experts.model import ExpertModel, first_leaf_of_a_single_expert
from bayesjpt.experts.row_parts import one_version, row_parts
from bayesjpt.experts.start import first_state
from bayesjpt.kernels.expert_em import improve_leaves
from bayesjpt.kernels.expert_sweep import Prior
from bayesjpt.kernels.expert_tree import Coefficients, Task, fill_log_density
from bayesjpt.queries.marginals import Masses, summarised
from bayesjpt.queries.tree import ends_of
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    from bayesjpt.experts.posterior import ExpertPosterior

N_BIN = 10
_MOST_PASSES = 20
_SOLVED = 1e-7
"""Nats a row: a pass that gains less is the last of a regression."""
_NO_ROWS = 1e-6
"""Expected rows below which a node has none."""


@dataclass(frozen=True, eq=False)
class ShownNode:
    """A gate, or a leaf.

    Parameters
    ----------
    condition : str
        Which rows of its parent come here, in words; empty at the root.
    children : tuple of int
        Positions among the tree's nodes; none at leaves.
    share : Masses (1,)
        Of all rows, in expectation.
    histogram : Masses (N_BIN,)
        Of the parent's rows by the probability of this way: bins of equal width from 0 to 1, which add up to 1. Empty
        at the root.
    deviance : Masses (1,)
        Of one expert fitted to the rows here, a row, in the user's units; of a node without rows its parent's.
    gain : Masses (1,) or None
        By how much less the children's experts have, a row of this node; None at leaves.
    says : tuple of str
        The leaf's expert in words, a line a target; none at gates.
    """

    condition: str
    children: tuple[int, ...]
    share: Masses
    histogram: Masses
    deviance: Masses
    gain: Masses | None
    says: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ShownTree:
    """The tree of one chain.

    Parameters
    ----------
    nodes : tuple of ShownNode
        The root first, parents before children.
    chain, n_row, n_draw : int
    targets : tuple of str
    """

    nodes: tuple[ShownNode, ...]
    chain: int
    n_row: int
    n_draw: int
    targets: tuple[str, ...]

    def leaves(self) -> list[int]:
        """Return where the leaves are, from the first child to the last."""
        return ends_of(self.nodes)


def shown_tree(post: ExpertPosterior, rows: Any, chain: int, max_draws: int | None) -> ShownTree:
    """Return the tree of a chain as some rows, with targets, see it; see `ExpertPosterior.tree`.

    Raises
    ------
    QueryError
        Where no row has all targets.
    """
    table = post.read(rows)
    known = post.model.target_cells(table)[1].all(axis=0)
    if not known.any():
        raise QueryError(
            f"no row with a value of {', '.join(post.targets)}", "rows with targets: of the training table"
        )
    means = means_of(post, chain)
    own = post.of_chain(chain).some_draws(defaults_experts.SHOWN_DRAWS if max_draws is None else max_draws)
    numbers = list(_numbers(own.model, means.node, means.dispersion))
    share = _node_shares(own, own.leaf_shares(table))
    deviance = _deviances(own, table.take(known), share[:, :, known], numbers)
    place = {number: position for position, (number, _) in enumerate(numbers)}
    nodes = []
    for number, children in numbers:
        weight = share[:, number].sum(axis=1)
        gain = None
        if children:
            below = sum(deviance[:, child] * share[:, child][:, known].sum(axis=1) for child in children)
            here = np.maximum(share[:, number][:, known].sum(axis=1), _NO_ROWS)
            gain = deviance[:, number] - below / here
        says = ()
        if not children:
            leaf = number
            while leaf < own.model.n_gate:
                leaf = own.model.children(leaf)[0]
            says = tuple(leaf_in_words(own, means, leaf - own.model.n_gate))
        nodes.append(
            ShownNode(
                _condition(own.model, means, number),
                tuple(place[child] for child in children),
                summarised(weight[:, None] / table.n_row),
                _histogram(own.model, share, number),
                summarised(deviance[:, number, None]),
                None if gain is None else summarised(gain[:, None]),
                says,
            )
        )
    return ShownTree(tuple(nodes), chain, table.n_row, own.n_draw, own.targets)


def _numbers(model: ExpertModel, node: np.ndarray, dispersion: np.ndarray) -> Iterator[tuple[int, list[int]]]:
    """Yield the heap numbers of nodes and of their children, the root first; gates above one expert are leaves."""
    pending = [0]
    while pending:
        number = pending.pop(0)
        divides = number < model.n_gate and first_leaf_of_a_single_expert(node, dispersion, number) is None
        children = model.children(number) if divides else []
        pending += children
        yield number, children


def _condition(model: ExpertModel, means: Means, number: int) -> str:
    if number == 0:
        return ""
    parent = model.parent(number)
    ways = ways_in_words(model, means.gate, parent, means.memory)
    return ways[model.children(parent).index(number)].text


def _node_shares(post: ExpertPosterior, leaves: np.ndarray) -> np.ndarray:
    """Return P(node | row), float64 (n_draw, n_node, n_row), from those of the leaves, (n_draw, n_row, n_leaf)."""
    model = post.model
    out = np.empty((leaves.shape[0], model.n_node, leaves.shape[1]))
    out[:, model.n_gate :] = np.moveaxis(leaves, 2, 1)
    for gate in range(model.n_gate - 1, -1, -1):
        out[:, gate] = out[:, model.children(gate)].sum(axis=1)
    return out


def _histogram(model: ExpertModel, share: np.ndarray, number: int) -> Masses:
    """Return how the parent's rows spread over the probability of a way; of a parent without rows all are at 0."""
    if number == 0:
        return summarised(np.zeros((share.shape[0], 0)))
    parent, own = share[:, model.parent(number)], share[:, number]
    counts = np.empty((share.shape[0], N_BIN))
    for draw in range(share.shape[0]):
        there = parent[draw] > 0.0
        way = np.clip(own[draw, there] / parent[draw, there], 0.0, 1.0)
        bins = np.minimum((way * N_BIN).astype(np.int64), N_BIN - 1)
        counts[draw] = np.bincount(bins, weights=parent[draw, there], minlength=N_BIN)
    counts[counts.sum(axis=1) <= 0.0, 0] = 1.0
    return summarised(counts / counts.sum(axis=1, keepdims=True))


def _deviances(
    post: ExpertPosterior, table: Table, share: np.ndarray, numbers: list[tuple[int, list[int]]]
) -> np.ndarray:
    """Return -2 log likelihoods a row, float64 (n_draw, n_node), of one expert fitted to each node's rows."""
    from bayesjpt.experts.fit import make_prior

    model = post.model
    single = replace(model, depth=0)
    x, gate_x, prior = *one_version(row_parts(model, post.missing, table), table.n_row), make_prior(single)
    y = model.units(model.target_cells(table)[0])
    task = Task(x, gate_x, y, model.kind, model.at, model.offset)
    jacobian = float(model.response.log_jacobian().sum())
    out = np.zeros((share.shape[0], model.n_node))
    for number, _ in numbers:
        state = first_state(single, prior)
        for draw in range(share.shape[0]):
            weight = np.ascontiguousarray(share[draw, number])
            total = float(weight.sum())
            if total <= _NO_ROWS:
                out[draw, number] = out[draw, model.parent(number)]
                continue
            # the fit of the draw before is where that of this one begins
            log_density = _fitted(single, task, prior, state, weight)
            out[draw, number] = -2.0 * (float(log_density @ weight) / total + jacobian)
    return out


def _fitted(single: ExpertModel, task: Task, prior: Prior, state: Coefficients, weight: np.ndarray) -> np.ndarray:
    """Fit one expert to weighted rows, in place, and return the log density of each row."""
    penalty, opened = make_penalty(single, prior, defaults_experts.RIDGE), np.zeros(0, bool)
    log_density, before = np.empty(weight.size), -np.inf
    for _ in range(_MOST_PASSES):
        improve_leaves(task, state, opened, penalty, weight[None], 1)
        fill_log_density(task, state, log_density)
        value = float(log_density @ weight)
        if value - before < _SOLVED * weight.sum():
            break
        before = value
    return log_density
