"""A circuit whose structure stands there once for each group of rows, with leaves and dictionaries that all share.

                        hard                 the root: which group a row is of, a label of one more column
                      /      \\
                     x        x              a product a group: its label, and the structure with weights of its own
                   /   \\    /   \\
            g = DE   +     +   g = FR        copies of latent sums, splits, and the products between them
                     | \\ / |
                     | / \\ |
                     x     x                 leaves, dictionaries, and products of these alone: shared

So groups are what circuits have already, and a sweep draws a group's weights as it draws all others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import freeze
from bayesjpt.circuit.priors import Priors
from bayesjpt.families import registry
from bayesjpt.families.label import constants_of
from bayesjpt.table.schema import Column, Schema

SHARED = -1
"""The group of an edge that all groups have in common, and of the root's."""


class Grouped(NamedTuple):
    """A circuit over one more column, the group, and where its edges come from.

    Attributes
    ----------
    circuit : Circuit
        Its leaves are those of the original circuit, with the same parameters, and then a label a group.
    schema : Schema
        The original columns, and the group as the last one.
    edge_from : int32 (n_edge,)
        The original edge; -1 for edges of the root and of the products below it.
    edge_group : int32 (n_edge,)
        The group whose weight the edge has, `SHARED` for all others.
    """

    circuit: Circuit
    schema: Schema
    edge_from: np.ndarray
    edge_group: np.ndarray

    def priors(self, original: Priors) -> Priors:
        """Return the Priors of the circuit; the root's weights, of which nobody asks, have concentration one."""
        n_label = self.circuit.n_leaf - original.hyper_at.size + 1
        hyper_at = np.append(original.hyper_at, np.full(n_label, original.hyper_at[-1])).astype(np.int32)
        concentration = np.where(self.edge_from >= 0, original.concentration[self.edge_from], 0.0)
        root = self.circuit.child_ptr[-2]
        concentration[root:] = 1.0
        return original._replace(hyper_at=hyper_at, concentration=concentration)


def repeat_structure(circuit: Circuit, schema: Schema, n_group: int) -> Grouped:
    """Return the circuit with its structure once for each group.

    Parameters
    ----------
    circuit : Circuit
        With a latent sum or a split, so that groups can differ.
    schema : Schema
    n_group : int

    Notes
    -----
    Cost and size: the leaves once, all above leaves and dictionaries `n_group` times. Rows visit their own copy.
    """
    is_copied = _above_structure(circuit)
    assert is_copied[-1]  # the root: something differs by group
    shared, copied = np.flatnonzero(~is_copied), np.flatnonzero(is_copied)
    n_shared, n_copy = shared.size, copied.size
    place = np.empty((n_group, circuit.n_node), np.int64)
    # nothing below a shared node is copied, so that all of them may come first
    place[:, shared] = np.arange(n_shared)
    place[:, copied] = n_shared + n_copy * np.arange(n_group)[:, None] + np.arange(n_copy)
    first_label = n_shared + n_group * n_copy
    labels = first_label + np.arange(n_group)
    products = first_label + n_group + np.arange(n_group)

    edges_of = [np.arange(circuit.child_ptr[node], circuit.child_ptr[node + 1]) for node in range(circuit.n_node)]
    edge_from = [np.concatenate([edges_of[node] for node in shared] or [np.empty(0, np.int64)])]
    edge_from += [np.concatenate([edges_of[node] for node in copied])] * n_group
    group_of = np.repeat(np.arange(-1, n_group), [part.size for part in edge_from])
    flat = np.concatenate(edge_from).astype(np.int64)
    n_children = np.diff(circuit.child_ptr)
    column = _group_column(schema, n_group)
    const = [constants_of((group,), column) for group in range(n_group)]
    const_at = circuit.const.size + np.arange(n_group) * const[0].size
    structure = arrays.one_of(circuit.kind[circuit.edge_parent()], arrays.STRUCTURE_KINDS)
    nothing = np.full(n_group, -1, np.int64)

    def nodes(array: np.ndarray, at_labels, at_products, at_root) -> np.ndarray:
        """Return an array of nodes: shared ones, the copies, and then labels, products and the root."""
        kept = [array[shared], np.tile(array[copied], n_group)]
        return np.concatenate([*kept, at_labels, at_products, [at_root]]).astype(array.dtype)

    def leaves(array: np.ndarray, of_labels) -> np.ndarray:
        return np.concatenate([array, np.broadcast_to(of_labels, n_group)]).astype(array.dtype)

    lengths = nodes(n_children, np.zeros(n_group), np.full(n_group, 2), n_group)
    last = np.stack([labels, place[:, -1]], axis=1).ravel()
    repeated = Circuit(
        kind=nodes(circuit.kind, np.full(n_group, arrays.LEAF), np.full(n_group, arrays.PRODUCT), arrays.HARD),
        child_ptr=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        # edges of shared nodes lead to shared ones, at the same place in every group
        child=np.concatenate([place[np.maximum(group_of, 0), circuit.child[flat]], last, products]).astype(np.int32),
        leaf_of=nodes(circuit.leaf_of, circuit.n_leaf + np.arange(n_group), nothing, -1),
        leaf_family=leaves(circuit.leaf_family, registry.number("label")),
        leaf_var=leaves(circuit.leaf_var, len(schema)),
        leaf_cell=leaves(circuit.leaf_cell, -1),
        cell=circuit.cell,
        theta_at=leaves(circuit.theta_at, circuit.n_theta),
        theta_len=leaves(circuit.theta_len, 0),
        const_at=leaves(circuit.const_at, const_at),
        const_len=leaves(circuit.const_len, const[0].size),
        const=np.concatenate([circuit.const, *const]),
        start_log_weight=np.concatenate(
            [circuit.start_log_weight[flat], np.zeros(2 * n_group), np.full(n_group, -np.log(n_group))]
        ),
        start_theta=circuit.start_theta,
    )
    return Grouped(
        circuit=freeze(repeated),
        schema=Schema((*schema.columns, column)),
        edge_from=np.concatenate([flat, np.full(3 * n_group, -1)]).astype(np.int32),
        edge_group=np.concatenate([np.where(structure[flat], group_of, SHARED), np.full(3 * n_group, SHARED)]).astype(
            np.int32
        ),
    )


def _above_structure(circuit: Circuit) -> np.ndarray:
    """Return whether each node is a sum of the structure or has one below it, bool (n_node,)."""
    out = arrays.one_of(circuit.kind, arrays.STRUCTURE_KINDS)
    for node in range(circuit.n_node):
        out[node] |= out[circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]]].any()
    return out


def _group_column(schema: Schema, n_group: int) -> Column:
    """Return the column of groups, under a name that no column of the schema has."""
    name = "group"
    while name in schema.names:
        name += "_"
    labels = tuple(str(group) for group in range(n_group))
    share = (1.0 / n_group,) * n_group
    return Column(name, "category", (0.0, n_group - 1.0), labels, frequencies=share, other=False)
