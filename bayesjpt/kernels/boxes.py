"""Boxes of events, arranged for one plan: what is asked of each column, and where the answers of its leaves lie.

interval    a closed interval of one column, in the user's units
condition   the union of disjoint intervals of one column; boxes share equal conditions
box         one condition for each of some columns, all of which hold
group       boxes over the same columns: they share one graph (`bayesjpt.kernels.passes`)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.plan import WHOLE, Plan
from bayesjpt.families import registry
from bayesjpt.kernels.passes import Graph, make_graph, n_input, nodes_above
from bayesjpt.numerics.borrowed import by_address

Box = Mapping[int, np.ndarray]
"""A column's position to float64 (n_interval, 2): disjoint closed intervals in the user's units."""

EVERYWHERE = np.array([[-np.inf, np.inf]])


@by_address
class Boxes(NamedTuple):
    """Boxes under one plan.

    Attributes
    ----------
    leaf_ptr : int32 (n_column + 1,), leaf : int32 (n_leaf,)
        Leaves of each column, those of one family side by side; a leaf's rank is its position among its column's.
    leaf_at, leaf_len : int32 (n_leaf,)
        Where the parameters of these leaves lie.
    leaf_lower, leaf_upper : float64 (n_leaf,)
        Their cells, in the user's units.
    batch_ptr : int32 (n_column + 1,), batch_first : int32 (n_batch + 1,)
        Batches of each column: runs of leaves of one family and the same constants.
    batch_at_once : bool (n_batch,)
        Whether the family has a slot for several leaves, and nothing is truncated.
    batch_family, batch_const_at, batch_const_len : int32 (n_batch,)
    batch_offset, batch_scale, batch_resolution : float64 (n_batch,)
        What `bayesjpt.numerics.ends` takes as units.
    batch_step : float64 (n_batch,)
        As the plan's.
    condition_column : int32 (n_condition,), interval_ptr : int32 (n_condition + 1,)
    interval_lo, interval_hi : float64 (n_interval,)
    condition_at : int64 (n_condition,), interval_at : int64 (n_interval,)
        Where the log masses of the column's leaves lie, in the order of their ranks; one place for both where a
        condition is a single interval.
    n_mass : int64 (1,)
    box_condition : int32 (n_box, n_column)
        -1 where nothing is asked of a column.
    """

    leaf_ptr: np.ndarray
    leaf: np.ndarray
    leaf_at: np.ndarray
    leaf_len: np.ndarray
    leaf_lower: np.ndarray
    leaf_upper: np.ndarray
    batch_ptr: np.ndarray
    batch_first: np.ndarray
    batch_at_once: np.ndarray
    batch_family: np.ndarray
    batch_const_at: np.ndarray
    batch_const_len: np.ndarray
    batch_offset: np.ndarray
    batch_scale: np.ndarray
    batch_resolution: np.ndarray
    batch_step: np.ndarray
    condition_column: np.ndarray
    interval_ptr: np.ndarray
    interval_lo: np.ndarray
    interval_hi: np.ndarray
    condition_at: np.ndarray
    interval_at: np.ndarray
    n_mass: np.ndarray
    box_condition: np.ndarray


@by_address
class Group(NamedTuple):
    """Some of the boxes, all over the same columns, and the graph above these.

    Attributes
    ----------
    graph : Graph
    input_column : int32 (n_input,)
    input_rank : int32 (n_input,)
        Of the leaves that are the graph's inputs, among those of their columns.
    box : int32 (n_own_box,)
    """

    graph: Graph
    input_column: np.ndarray
    input_rank: np.ndarray
    box: np.ndarray


def make_boxes(plan: Plan, boxes: Sequence[Box], also: Sequence[int] = ()) -> Boxes:
    """Return boxes arranged for a plan.

    Parameters
    ----------
    plan : Plan
    boxes : sequence of mappings
        Column position to intervals.
    also : sequence of int
        Columns whose leaves are needed as well, whether or not a box asks anything of them.
    """
    leaf_ptr, leaf = _leaves_by_column(plan)
    conditions: dict[tuple[int, bytes], int] = {}
    intervals: list[np.ndarray] = []
    box_condition = np.full((len(boxes), plan.column_resolution.size), -1, np.int32)
    for number, box in enumerate(boxes):
        # what the box asks of a column comes last, and replaces "everywhere"
        for column, given in {**dict.fromkeys(also, EVERYWHERE), **box}.items():
            given = np.ascontiguousarray(given, np.float64).reshape(-1, 2)
            # conditions with the same bytes are one: their masses are computed once for all boxes
            key = (column, given.tobytes())
            if key not in conditions:
                conditions[key] = len(intervals)
                intervals.append(given)
            box_condition[number, column] = conditions[key]
    condition_column = np.array([column for column, _ in conditions], np.int32)
    n_interval = np.array([given.shape[0] for given in intervals], np.int64)
    # a union of several intervals (or none) has a place for itself in front of those of its intervals
    n_place = n_interval + (n_interval != 1)
    length = np.diff(leaf_ptr)[condition_column].astype(np.int64)
    condition_at = np.cumsum(n_place * length) - n_place * length
    ends = np.concatenate([*intervals, np.empty((0, 2))])
    first_place = condition_at + (n_interval != 1) * length
    within = np.arange(int(n_interval.sum())) - np.repeat(np.cumsum(n_interval) - n_interval, n_interval)
    return Boxes(
        leaf_ptr=leaf_ptr,
        leaf=leaf,
        leaf_at=plan.theta_at[leaf],
        leaf_len=plan.theta_len[leaf],
        leaf_lower=plan.leaf_lower[leaf],
        leaf_upper=plan.leaf_upper[leaf],
        **_batches(plan, leaf_ptr, leaf),
        condition_column=condition_column,
        interval_ptr=_pointer(n_interval.tolist()),
        interval_lo=np.ascontiguousarray(ends[:, 0]),
        interval_hi=np.ascontiguousarray(ends[:, 1]),
        condition_at=condition_at,
        interval_at=np.repeat(first_place, n_interval) + within * np.repeat(length, n_interval),
        n_mass=np.array([(n_place * length).sum()], np.int64),
        box_condition=box_condition,
    )


def make_groups(plan: Plan, boxes: Boxes) -> list[Group]:
    """Return the groups of some boxes; those that ask of no column have a graph without nodes."""
    rank = leaf_ranks(plan, boxes)
    members: dict[bytes, list[int]] = {}
    for number, conditions in enumerate(boxes.box_condition):
        members.setdefault((conditions >= 0).tobytes(), []).append(number)
    groups = []
    for chosen, box in members.items():
        graph = make_graph(plan, nodes_above(plan, np.flatnonzero(np.frombuffer(chosen, bool))))
        leaf = plan.leaf_of[graph.node[: n_input(graph)]]
        column = plan.feature_column[plan.leaf_value[leaf]]
        groups.append(Group(graph, column, rank[leaf], np.array(box, np.int32)))
    return groups


def leaf_ranks(plan: Plan, boxes: Boxes) -> np.ndarray:
    """Return each leaf's position among those of its column, int32 (n_leaf,)."""
    rank = np.empty(boxes.leaf.size, np.int32)
    rank[boxes.leaf] = np.arange(boxes.leaf.size)
    return rank - boxes.leaf_ptr[plan.feature_column[plan.leaf_value]]


def _pointer(lengths: Sequence[int]) -> np.ndarray:
    return np.cumsum([0, *lengths]).astype(np.int32)


def _leaves_by_column(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    column = plan.feature_column[plan.leaf_value]
    # lexsort's last key counts first: leaves of one column, then of one family, constants and cut, lie side by side
    order = np.lexsort((np.arange(column.size), plan.leaf_cut != WHOLE, plan.const_at, plan.leaf_family, column))
    counts = np.bincount(column, minlength=plan.column_resolution.size)
    return _pointer(counts.tolist()), order.astype(np.int32)


def _batches(plan: Plan, leaf_ptr: np.ndarray, leaf: np.ndarray) -> dict[str, np.ndarray]:
    first: list[int] = []
    at_once: list[bool] = []
    counts: list[int] = []
    for begin, end in pairwise(leaf_ptr):
        keys = [(plan.leaf_family[k], plan.const_at[k], plan.leaf_cut[k] != WHOLE) for k in leaf[begin:end]]
        starts = [int(begin) + j for j, key in enumerate(keys) if j == 0 or key != keys[j - 1]]
        first += starts
        for start in starts:
            family = registry.FAMILIES[plan.leaf_family[leaf[start]]]
            # `fill_log_masses` knows no truncation: truncated leaves are done one by one
            at_once.append(family.fill_log_masses is not None and bool(plan.leaf_cut[leaf[start]] == WHOLE))
        counts.append(len(starts))
    of_batch = leaf[first]
    return {
        "batch_ptr": _pointer(counts),
        "batch_first": np.array([*first, leaf.size], np.int32),
        "batch_at_once": np.array(at_once, bool),
        "batch_family": plan.leaf_family[of_batch],
        "batch_const_at": plan.const_at[of_batch],
        "batch_const_len": plan.const_len[of_batch],
        "batch_offset": plan.feature_offset[plan.leaf_value[of_batch]],
        "batch_scale": plan.feature_scale[plan.leaf_value[of_batch]],
        "batch_resolution": plan.leaf_resolution[of_batch],
        "batch_step": plan.leaf_step[of_batch],
    }
