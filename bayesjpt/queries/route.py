"""Posteriors of the part of a circuit that a question reaches, for query methods that ask less than everything."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.paths import TreeNode
from bayesjpt.circuit.route import Part, reached
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.boxes import Box
from bayesjpt.queries.evidence import Evidence


def routed(
    post: Posterior, evidence: Evidence, columns: Collection[int], event: Sequence[Box] | None = None
) -> Posterior:
    """Return a posterior that answers as this one does, given evidence, about some columns, or an event in them.

    What the evidence excludes by the cells of leaves, and leaves of other columns, are left out. That is the posterior
    itself for several rows, and where nothing would be left.

    Parameters
    ----------
    post : Posterior
    evidence : Evidence
    columns : collection of int
        What is asked about, without the columns of the evidence.
    event : sequence of Box, optional
        Where nothing is given, and nothing but the probability of these is asked for.
    """
    if evidence.rows is not None and not evidence.one_row:
        return post
    values = hull(event) if event is not None and evidence.is_certain else given_values(evidence)
    part = reached(post.circuit, evidence.columns.union(columns), values)
    if part is None or part.circuit.n_node == post.circuit.n_node:
        return post
    return _of_part(post, part)


def below(post: Posterior, node: int, columns: Collection[int], values: Mapping[int, np.ndarray]) -> Posterior | None:
    """Return the posterior of the rows of one node of a tree, about some columns.

    Only what lies inside some `values` may be asked of it; None where the node holds none of them.
    """
    part = reached(post.circuit, columns, values, root=node)
    return None if part is None else _of_part(post, part)


def given_values(evidence: Evidence) -> dict[int, np.ndarray]:
    """Return the intervals that an event or a single row leaves possible, by column."""
    if evidence.rows is not None:
        row = evidence.rows.values[:, 0]
        return {column: row[[[column, column]]] for column in evidence.columns}
    return hull(evidence.boxes or ())


def hull(boxes: Sequence[Box]) -> dict[int, np.ndarray]:
    """Return the intervals of some boxes in the columns that all of them constrain."""
    if not boxes:
        return {}
    shared = set(boxes[0].columns).intersection(*(box.columns for box in boxes[1:]))
    return {column: np.concatenate([box.intervals[column] for box in boxes]) for column in shared}


def node_weights(post: Posterior, nodes: Sequence[TreeNode]) -> np.ndarray:
    """Return the share of all rows that each node of a tree holds, float64 (n_draw, n_node), the root's being 1."""
    log_weight = post.flat().log_weight
    total = np.zeros((log_weight.shape[0], len(nodes)))
    for position, node in enumerate(nodes):  # parents before children
        total[:, node.children] = total[:, [position]] + log_weight[:, node.edges]
    return np.exp(total)


def _of_part(post: Posterior, part: Part) -> Posterior:
    # `take` leaves each draw's weights side by side, as kernels want them; indexing does not
    params = Params(np.take(post.params.log_weight, part.edge_from, axis=-1), post.params.theta)
    return replace(post, circuit=part.circuit, params=params, sample_stats={}, reference=None)
