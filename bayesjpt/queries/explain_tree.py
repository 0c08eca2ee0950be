"""Why an answer is what it is, where a tree says which rows belong together: its leaves, by their conditions.

Leaves are the same under every draw, so every number of theirs has a credible interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.paths import TreeNode, begins_with_split, tree_nodes
from bayesjpt.circuit.trees import label_parents
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.density import log_density
from bayesjpt.queries.event import Event
from bayesjpt.queries.evidence import Evidence
from bayesjpt.queries.probability import log_probability
from bayesjpt.queries.route import below, given_values, node_weights


class Leaves(NamedTuple):
    """What the leaves of a tree have to do with an answer; arrays are float64 (n_draw, n_leaf).

    Attributes
    ----------
    nodes : list of TreeNode
    share : array
        P(leaf given event and evidence).
    weight : array
        P(leaf).
    weight_given : array
        P(leaf given the evidence).
    probability : array
        P(event given leaf and evidence), 0 where these exclude each other.
    """

    nodes: list[TreeNode]
    share: np.ndarray
    weight: np.ndarray
    weight_given: np.ndarray
    probability: np.ndarray


def is_tree(post: Posterior) -> bool:
    """Return whether conditions tell rows apart first of all, or all rows are one tree of labels."""
    circuit = post.circuit
    if begins_with_split(circuit):
        return True
    return not (circuit.kind == arrays.LATENT).any() and bool(label_parents(circuit, circuit.n_node - 1))


def leaves_of_answer(post: Posterior, event: Event, given, evidence: Evidence, columns: set[int]) -> Leaves:
    """Return what each leaf has to do with the probability of an event; `columns` are those of both."""
    nodes = tree_nodes(post.circuit)
    at = [position for position, node in enumerate(nodes) if not node.children]
    weight = node_weights(post, nodes)[:, at]
    log_given, probability = np.full_like(weight, -np.inf), np.zeros_like(weight)
    values = given_values(evidence)
    for j, position in enumerate(at):
        leaf = below(post, nodes[position].node, columns, values)
        if leaf is None:
            continue
        log_given[:, j] = _log_evidence(leaf, evidence)
        answer = np.exp(log_probability(leaf, event, given, on_zero="nan").values.ravel())
        probability[:, j] = np.nan_to_num(answer)
    weight_given = weight * np.exp(log_given - log_given.max(axis=1, keepdims=True))
    weight_given /= weight_given.sum(axis=1, keepdims=True)
    share = weight_given * probability
    total = share.sum(axis=1, keepdims=True)
    share = np.divide(share, total, out=np.zeros_like(share), where=total > 0.0)
    return Leaves([nodes[position] for position in at], share, weight, weight_given, probability)


def _log_evidence(leaf: Posterior, evidence: Evidence) -> np.ndarray:
    """Return the log probability, or density, of the evidence in a leaf, float64 (n_draw,)."""
    if evidence.rows is not None:
        return log_density(leaf, evidence.rows).values.ravel()
    if evidence.is_certain:
        return np.zeros(leaf.n_chain * leaf.n_draw)
    assert evidence.event is not None
    return log_probability(leaf, evidence.event).values.ravel()
