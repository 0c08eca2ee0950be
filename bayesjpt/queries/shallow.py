"""One column of a deep circuit as a shallow mixture: its leaves, the weight of each, the sub-populations it is in.

ABDA's "collapsing the deep mixture distribution into a shallow one": the marginal of one column is exactly

      p(x) = sum over its leaves of P(the path of a row runs through the leaf) p(x | leaf)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesjpt.circuit.arrays import LEAF
from bayesjpt.circuit.sub_populations import children, sub_populations
from bayesjpt.families import registry
from bayesjpt.families.record import Family
from bayesjpt.kernels.boxes import make_boxes
from bayesjpt.kernels.events import fill_masses
from bayesjpt.kernels.flow import node_probabilities
from bayesjpt.posterior.draws import Posterior


@dataclass(frozen=True, eq=False)
class Shallow:
    """A column as a mixture of its leaves.

    Parameters
    ----------
    leaf : int32 (n_leaf,)
        Their numbers in the circuit's table of leaves.
    families : tuple of Family
    weight : float64 (n_draw, n_leaf)
        Draws of all chains one after the other; each adds up to 1.
    groups : tuple of tuples of int
        Numbers of the sub-populations whose rows each leaf describes, as in `membership`.
    """

    leaf: np.ndarray
    families: tuple[Family, ...]
    weight: np.ndarray
    groups: tuple[tuple[int, ...], ...]


def shallow(post: Posterior, position: int) -> Shallow:
    """Return a column of a posterior of one structure as a mixture of its leaves."""
    circuit = post.circuit
    leaves = np.flatnonzero(circuit.leaf_var == position)
    node_of = circuit.leaf_node()
    groups = _groups(post)
    return Shallow(
        leaf=leaves.astype(np.int32),
        families=tuple(registry.FAMILIES[number] for number in circuit.leaf_family[leaves]),
        weight=node_probabilities(post.plan(), post.flat().log_weight, node_of[leaves]),
        groups=tuple(tuple(sorted(groups[node])) for node in node_of[leaves].tolist()),
    )


def _groups(post: Posterior) -> list[set[int]]:
    """Return the sub-populations from which each node is reached; all of them for what lies beside them."""
    circuit = post.circuit
    nodes = sub_populations(circuit, len(post.schema))
    groups: list[set[int]] = [set() for _ in range(circuit.n_node)]
    for number, node in enumerate(nodes):
        groups[node].add(number)
    for node in range(circuit.n_node - 1, -1, -1):  # parents before children
        for child in children(circuit, node):
            groups[child] |= groups[node]
    everywhere = set(range(len(nodes)))
    return [group or everywhere if circuit.kind[node] == LEAF else group for node, group in enumerate(groups)]


def leaf_masses(post: Posterior, position: int, intervals: np.ndarray) -> np.ndarray:
    """Return the probability of each closed interval under each leaf of a column, float64 (n_draw, n_interval, n_leaf).

    Leaves are in the order of `shallow`; `intervals` is float64 (n_interval, 2), in the user's units.
    """
    plan, thetas = post.plan(), post.flat().theta
    boxes = make_boxes(plan, [{position: ends[None]} for ends in np.unique(intervals, axis=0)])
    mass = np.empty((int(boxes.n_mass[0]), thetas.shape[0]))
    fill_masses(boxes, plan.const, thetas, mass)
    leaves = boxes.leaf[boxes.leaf_ptr[position] : boxes.leaf_ptr[position + 1]]
    found = np.empty((mass.shape[1], boxes.interval_at.size, leaves.size))
    found[..., np.argsort(np.argsort(leaves))] = np.exp(mass.T[:, boxes.interval_at[:, None] + np.arange(leaves.size)])
    return found[:, np.unique(intervals, axis=0, return_inverse=True)[1].ravel()]
