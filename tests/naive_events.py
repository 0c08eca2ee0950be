"""Probabilities of events by recursion, from the definition: slow twins of the queries."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.table.schema import Schema
from tests.naive import edges_of, family_log_interval, leaf_column, leaf_family, leaf_theta, within


def leaf_log_mass(circuit: Circuit, schema: Schema, params: Params, leaf: int, lo: float, hi: float) -> float:
    """Return log P(lo ... hi | the leaf's cell)."""
    family, column = leaf_family(circuit, leaf), schema.columns[leaf_column(circuit, leaf)]
    theta = leaf_theta(circuit, schema, params, leaf)
    lower, upper = (float(end) for end in circuit.leaf_interval()[leaf])
    lo, hi = max(lo, lower), min(hi, upper)
    if lo > hi:
        return -math.inf
    if lower == upper and column.base == "real" and family != "atom":
        return 0.0
    log_cell = family_log_interval(family, column, theta, lower, upper)
    return within(family_log_interval(family, column, theta, lo, hi), log_cell)


def probability(circuit: Circuit, schema: Schema, params: Params, boxes: Sequence[Mapping[int, np.ndarray]]) -> float:
    """Return the probability of a union of disjoint boxes (column -> closed intervals), by recursion."""

    @functools.cache
    def mass(leaf: int, lo: float, hi: float) -> float:
        return math.exp(leaf_log_mass(circuit, schema, params, leaf, lo, hi))

    def value(node: int, box: Mapping[int, np.ndarray]) -> float:
        if circuit.kind[node] == arrays.LEAF:
            leaf = int(circuit.leaf_of[node])
            column = leaf_column(circuit, leaf)
            return math.fsum(mass(leaf, lo, hi) for lo, hi in box[column].tolist()) if column in box else 1.0
        values = [(edge, value(circuit.child[edge], box)) for edge in edges_of(circuit, node)]
        if circuit.kind[node] == arrays.PRODUCT:
            return math.prod(v for _, v in values)
        return math.fsum(math.exp(params.log_weight[edge]) * v for edge, v in values if v > 0.0)

    return math.fsum(value(circuit.n_node - 1, box) for box in boxes)
