"""How the concentration of a dictionary is divided among its members: evenly, over types first, or as the column says.

    members    a_e = alpha                                          every member alike
    types      a_e = alpha n / (T m)                                n members of T types, m of them of the type of e
    columns    a_e = alpha n w_t / m,    w ~ Dirichlet(1, ..., 1)   w_t: weight of the type of e in the column

The n members that have a type have alpha n together in each. Atoms and backgrounds have none and keep alpha. Weights of
types belong to a column: all its leaves share them, so a leaf with few rows believes what the others found. Where
leaves of one column offer different types (a truncated leaf may lack some), those that offer the same share weights.

Reference: Teh, Jordan, Beal, Blei (2006). Hierarchical Dirichlet Processes. Journal of the American Statistical
Association 101, for weights that are the mean of other weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.errors import ModelError
from bayesjpt.families import registry
from bayesjpt.numerics.borrowed import by_address
from bayesjpt.table.schema import Schema

MEMBERS, TYPES, COLUMNS = "members", "types", "columns"
TYPE_PRIORS = (MEMBERS, TYPES, COLUMNS)
"""Ways to divide a concentration, by the names that users give."""


@by_address
class ColumnTypes(NamedTuple):
    """Weights of types, and the edges of dictionaries that follow them; dictionaries of a single type have none.

    Attributes
    ----------
    edge : int64 (n_edge_of_them,)
    entry : int64 (n_edge_of_them,)
        Which weight the concentration of each edge is proportional to.
    factor : float64 (n_edge_of_them,)
        Members of the dictionary that have a type over its members of that type.
    ptr : int64 (n_group + 1,)
        Groups of weights that add up to one.
    """

    edge: np.ndarray
    entry: np.ndarray
    factor: np.ndarray
    ptr: np.ndarray

    @property
    def n_weight(self) -> int:
        return int(self.ptr[-1])

    def even(self) -> np.ndarray:
        """Return weights, float64 (n_weight,), under which all types of a group are alike."""
        size = np.diff(self.ptr)
        return np.repeat(1.0 / size, size)

    def divided(self, concentration: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return concentrations, float64 (n_edge,), divided by weights of types, float64 (n_weight,)."""
        out = concentration.copy()
        out[self.edge] *= self.factor * weight[self.entry]
        return out

    def undivided(self, concentration: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the concentrations of which `divided` made these."""
        out = concentration.copy()
        out[self.edge] /= self.factor * weight[self.entry]
        return out


class _Dictionary(NamedTuple):
    """Edges of the members that have a type, the type of each, and whose weights they follow."""

    edges: np.ndarray
    types: list[str]
    group: tuple[int, tuple[str, ...]]


def no_column_types() -> ColumnTypes:
    """Return ColumnTypes without any weight."""
    return ColumnTypes(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.zeros(1, np.int64))


def check_type_prior(type_prior: object) -> None:
    """Raise for a name that stands for no way to divide a concentration."""
    if not isinstance(type_prior, str) or type_prior not in TYPE_PRIORS:
        raise ModelError(f"type_prior = {type_prior!r}", f"one of {', '.join(TYPE_PRIORS)}")


def make_column_types(circuit: Circuit, schema: Schema) -> ColumnTypes:
    """Return the ColumnTypes of a circuit; groups are in the order of their columns."""
    dictionaries = _dictionaries(circuit, schema)
    groups = sorted({each.group for each in dictionaries})
    ptr = np.cumsum([0, *(len(names) for _, names in groups)])
    start = dict(zip(groups, ptr[:-1].tolist(), strict=True))
    edge, entry, factor = ([array] for array in no_column_types()[:3])
    for edges, types, group in dictionaries:
        edge.append(edges)
        entry.append(start[group] + np.array([group[1].index(name) for name in types]))
        factor.append(np.array([len(types) / types.count(name) for name in types]))
    return ColumnTypes(np.concatenate(edge), np.concatenate(entry), np.concatenate(factor), ptr)


def column_type_labels(circuit: Circuit, schema: Schema) -> list[str]:
    """Return what to call each weight of `make_column_types`: ``alcohol:real``.

    A prime marks the weights of leaves that offer other types than those before: ``alcohol':real``.
    """
    labels, seen = [], dict.fromkeys(range(len(schema)), "")
    for column, types in sorted({each.group for each in _dictionaries(circuit, schema)}):
        labels += [f"{schema.columns[column].name}{seen[column]}:{name}" for name in types]
        seen[column] += "'"
    return labels


def _dictionaries(circuit: Circuit, schema: Schema) -> list[_Dictionary]:
    """Return the dictionaries that offer several types."""
    found = []
    for node in np.flatnonzero(circuit.kind == arrays.LIKELIHOOD):
        edges = np.arange(int(circuit.child_ptr[node]), int(circuit.child_ptr[node + 1]))
        leaves = circuit.leaf_of[circuit.child[edges]]
        position = int(circuit.leaf_var[leaves[0]])
        column, families = schema.columns[position], [registry.FAMILIES[circuit.leaf_family[leaf]] for leaf in leaves]
        types = [column.type_of_cells(family.statistical_type) for family in families]
        typed = np.array([name != "none" for name in types])
        types = [name for name in types if name != "none"]
        if len(set(types)) > 1:
            found.append(_Dictionary(edges[typed], types, (position, tuple(sorted(set(types))))))
    return found
