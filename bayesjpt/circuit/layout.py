"""Which named variable holds which weight or parameter: the bridge between flat arrays and a model's variables.

One variable a *kind*, never one a node: the weights of all latent sums, of all splits, of all dictionaries, and one
variable for each parameter of each family. The model package makes random variables of these, the posterior one reads
their draws back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, overload

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.families import registry
from bayesjpt.families.record import Parameter
from bayesjpt.table.schema import Schema

SUM_WEIGHTS = "sum_weights"
SPLIT_WEIGHTS = "split_weights"
LIKELIHOOD_WEIGHTS = "likelihood_weights"


class Labels(Sequence[str]):
    """So many texts, which are written when the first of them is read: few who ask for a layout read any."""

    def __init__(self, size: int, write: Callable[[], Sequence[str]]):
        self._size, self._write = size, write

    @functools.cached_property
    def _texts(self) -> tuple[str, ...]:
        return tuple(self._write())

    def __len__(self) -> int:
        return self._size

    def __reduce__(self) -> tuple:
        """Pickle as the texts themselves: a step that holds a layout goes to other processes."""
        return tuple, (list(self),)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...

    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self._texts[index]


class WeightVariable(NamedTuple):
    """Ragged simplexes of one kind of sum.

    Attributes
    ----------
    name, dim : str
        Without the block's prefix.
    edges : int (n,)
        Edge of each entry.
    ptr : int (n_sum + 1,)
        Segments, one a sum.
    labels : sequence of str
    """

    name: str
    dim: str
    edges: np.ndarray
    ptr: np.ndarray
    labels: Sequence[str]


class ParameterVariable(NamedTuple):
    """One parameter of one family, over all leaves of that family; of leaves that share it, the first.

    Attributes
    ----------
    name, dim : str
        Without the block's prefix.
    family : int
    parameter : Parameter
    leaves : int (n_leaf_of_family,)
    positions : int (n,)
        Place of each entry in the flat parameter vector.
    ptr : int (n_leaf_of_family + 1,)
        Segments of the entries, one a leaf.
    labels : tuple of str
    """

    name: str
    dim: str
    family: int
    parameter: Parameter
    leaves: np.ndarray
    positions: np.ndarray
    ptr: np.ndarray
    labels: tuple[str, ...]


class Layout(NamedTuple):
    """All variables of a circuit: weights (up to three, where there are such sums) and parameters."""

    weights: tuple[WeightVariable, ...]
    parameters: tuple[ParameterVariable, ...]

    def names(self) -> tuple[str, ...]:
        """Return all names, without the block's prefix."""
        return tuple(variable.name for variable in (*self.weights, *self.parameters))

    def dims(self) -> dict[str, tuple[str, ...]]:
        """Return the labels of each dimension, without the block's prefix."""
        return {variable.dim: tuple(variable.labels) for variable in (*self.weights, *self.parameters)}

    def split(self, params: Params) -> dict[str, np.ndarray]:
        """Return the named arrays, (..., n), of flat ones: weights as probabilities, parameters as they are."""
        out = {w.name: np.exp(params.log_weight[..., w.edges]) for w in self.weights}
        return out | {p.name: params.theta[..., p.positions] for p in self.parameters}

    def join(self, circuit: Circuit, values: dict[str, np.ndarray]) -> Params:
        """Return flat arrays of named ones: the inverse of `split`."""
        first = next(iter(values.values()))
        batch = np.shape(first)[:-1]
        log_weight = np.zeros((*batch, circuit.n_edge))
        theta = np.empty((*batch, circuit.n_theta))
        for w in self.weights:
            log_weight[..., w.edges] = np.log(values[w.name])
        for p in self.parameters:
            theta[..., p.positions] = values[p.name]
        return Params(log_weight, theta)


def make_layout(circuit: Circuit, schema: Schema) -> Layout:
    """Return the Layout of a circuit over the columns of a schema."""
    names = functools.cache(lambda: _node_names(circuit, schema, circuit.edge_parent()))
    return Layout(weight_variables(circuit, schema), tuple(_parameters(circuit, schema, names)))


def weight_variables(circuit: Circuit, schema: Schema) -> tuple[WeightVariable, ...]:
    """Return the weights of a Layout alone, which takes a small part of the time."""
    parent = circuit.edge_parent()
    kind = circuit.kind[parent]
    names = functools.cache(lambda: _node_names(circuit, schema, parent))
    weights = []
    for sums, name, dim in (
        (arrays.LATENT, SUM_WEIGHTS, "edge"),
        (arrays.HARD, SPLIT_WEIGHTS, "split_edge"),
        (arrays.LIKELIHOOD, LIKELIHOOD_WEIGHTS, "likelihood_edge"),
    ):
        edges = np.flatnonzero(kind == sums)
        if edges.size:
            labels = Labels(edges.size, functools.partial(_edge_labels, circuit, edges, parent, names))
            # edges of one sum lie side by side: a new segment where the parent changes
            ptr = np.concatenate([np.flatnonzero(np.r_[True, np.diff(parent[edges]) != 0]), [edges.size]])
            weights.append(WeightVariable(name, dim, edges, ptr, labels))
    return tuple(weights)


def _edge_labels(
    circuit: Circuit, edges: np.ndarray, parent: np.ndarray, names: Callable[[], list[str]]
) -> Sequence[str]:
    """Return the labels of edges of sums of one kind."""
    children, named = circuit.child[edges], names()
    if circuit.kind[parent[edges[0]]] != arrays.LIKELIHOOD:
        ends = [f"->{named[child]}" for child in children]
    else:
        ends = [
            f":{registry.FAMILIES[circuit.leaf_family[leaf]].name}{_cell_label(circuit, leaf)}"
            for leaf in circuit.leaf_of[children]
        ]
    return [f"{named[parent[e]]}{end}" for e, end in zip(edges, ends, strict=True)]


def _cell_label(circuit: Circuit, leaf: int) -> str:
    if circuit.leaf_cell[leaf] < 0:
        return ""
    lo, hi = circuit.cell[2 * circuit.leaf_cell[leaf] :][:2]
    return f" in [{lo:.15g}, {hi:.15g}]"


def _node_names(circuit: Circuit, schema: Schema, parent: np.ndarray) -> list[str]:
    """Return readable, unique names: ``S7`` and ``P6`` for structure, ``alcohol[3]`` for the slots of a column."""
    names = [""] * circuit.n_node
    seen: dict[str, int] = {}
    inside = np.zeros(circuit.n_node, bool)
    inside[circuit.child[circuit.kind[parent] == arrays.LIKELIHOOD]] = True
    slot_of_leaf: dict[int, str] = {}
    for node in range(circuit.n_node):
        kind = circuit.kind[node]
        if kind == arrays.PRODUCT:
            names[node] = f"P{node}"
        elif kind == arrays.LIKELIHOOD or (kind == arrays.LEAF and not inside[node]):
            leaf_node = node if kind == arrays.LEAF else circuit.child[circuit.child_ptr[node]]
            column = schema.columns[circuit.leaf_var[circuit.leaf_of[leaf_node]]].name
            names[node] = f"{column}[{seen.get(column, 0)}]"
            seen[column] = seen.get(column, 0) + 1
            if kind == arrays.LIKELIHOOD:
                for edge in range(circuit.child_ptr[node], circuit.child_ptr[node + 1]):
                    slot_of_leaf[int(circuit.child[edge])] = names[node]
        elif kind != arrays.LEAF:
            names[node] = f"S{node}"
    for node, name in slot_of_leaf.items():
        names[node] = name
    return names


def _parameters(circuit: Circuit, schema: Schema, names: Callable[[], list[str]]):
    leaf_node = circuit.leaf_node()
    for number in np.unique(circuit.leaf_family):
        family = registry.FAMILIES[number]
        leaves = np.flatnonzero(circuit.leaf_family == number)
        # of leaves that share parameters the first, in the order of the leaves
        leaves = leaves[np.sort(np.unique(circuit.theta_at[leaves], return_index=True)[1])]
        for index, parameter in enumerate(family.parameters):
            dim = f"{family.name}_leaf"
            if parameter.constraint == "simplex":
                lengths = circuit.theta_len[leaves]
                positions = np.concatenate(
                    [circuit.theta_at[leaf] + np.arange(int(circuit.theta_len[leaf])) for leaf in leaves]
                )
                labels = tuple(
                    f"{names()[leaf_node[leaf]]}={label}"
                    for leaf in leaves
                    for label in _entry_labels(circuit, schema, leaf)
                )
            else:
                lengths = np.ones(leaves.size, int)
                positions = circuit.theta_at[leaves] + index
                labels = tuple(names()[leaf_node[leaf]] for leaf in leaves)
            ptr = np.concatenate([[0], np.cumsum(lengths)])
            name = f"{family.name}_{parameter.name}"
            yield ParameterVariable(name, dim, int(number), parameter, leaves, positions, ptr, labels)


def _entry_labels(circuit: Circuit, schema: Schema, leaf: int) -> Sequence[str]:
    name_entries = registry.FAMILIES[circuit.leaf_family[leaf]].entry_labels
    if name_entries is None:
        return [str(k) for k in range(circuit.theta_len[leaf])]
    return name_entries(schema.columns[circuit.leaf_var[leaf]], circuit.constants_of(leaf))
