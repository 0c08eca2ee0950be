"""A circuit's inner nodes in groups that one array operation evaluates: of one height, kind and number of children.

What a group's children are is said by places in one growing array of values: leaves first, in an order of the caller's,
then the nodes of the first group, of the second, and so on; the root is last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.arrays import LEAF, PRODUCT
from bayesjpt.circuit.plan import Plan


class NodeGroup(NamedTuple):
    """Nodes of one height and kind that have as many children.

    Attributes
    ----------
    is_product : bool
        Whether they are products, or sums.
    children : int (n_node, n_child)
        Places of values.
    edges : int (n_node, n_child)
    """

    is_product: bool
    children: np.ndarray
    edges: np.ndarray


def node_groups(plan: Plan, place_of_leaf: np.ndarray) -> list[NodeGroup]:
    """Return the inner nodes of a circuit in groups, children before parents.

    Parameters
    ----------
    plan : Plan
    place_of_leaf : int (n_leaf,)
        Places of the leaves' values.
    """
    n_node = plan.kind.size
    height, place = np.zeros(n_node, int), np.full(n_node, -1)
    leaf_nodes = np.flatnonzero(plan.kind == LEAF)
    place[leaf_nodes] = place_of_leaf[plan.leaf_of[leaf_nodes]]
    inner = np.flatnonzero(plan.kind != LEAF)
    for node in inner:  # children come before parents
        height[node] = 1 + height[plan.child[plan.child_ptr[node] : plan.child_ptr[node + 1]]].max()
    groups: list[NodeGroup] = []
    n_placed = place_of_leaf.size
    keys = np.stack([height, plan.kind == PRODUCT, np.diff(plan.child_ptr)])[:, inner]
    for key in np.unique(keys, axis=1).T:
        nodes = inner[(keys == key[:, None]).all(axis=0)]
        edges = plan.child_ptr[nodes][:, None] + np.arange(key[2])
        groups.append(NodeGroup(bool(key[1]), place[plan.child[edges]], edges))
        place[nodes] = n_placed + np.arange(nodes.size)
        n_placed += nodes.size
    return groups  # the root is higher than any other node
