"""Probabilities of an event given rows, under many draws: evidence by density, the event by mass, one answer a row.

      evidence   one pass from the leaves to the root, columns that the row does not observe being exactly 1
      event      for each box one more pass over the nodes that meet its columns: where the row does not observe such
                 a column, every slot has the box's mass in place of 1

Every column of the event is coded (`make_cells(queried=...)`), so the mass is one entry of each of its slots' tables.
A row that observes a column of the event itself answers yes or no there: see `allowed`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels.boxes import Boxes, leaf_ranks
from bayesjpt.kernels.events import fill_masses
from bayesjpt.kernels.passes import nodes_above
from bayesjpt.kernels.routes import block_size
from bayesjpt.kernels.slots import members_of
from bayesjpt.kernels.upward import fill_tables, prepare_coefficients, root_log_value, upward, upward_again
from bayesjpt.kernels.work import make_work
from bayesjpt.numerics.borrowed import borrowed, by_address, keep
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.special import logaddexp

_DRAWS_AT_ONCE = 64
"""Draws whose masses are found together: one leaf under many draws is one loop."""


@by_address
class QueriedSlots(NamedTuple):
    """The slots of an event's columns, and what has to be evaluated anew for each box.

    Attributes
    ----------
    node : int32 (n_again,)
        Nodes whose scope meets the columns, ascending; leaves inside dictionaries left out.
    slot : int32 (n_asked_slot,)
    part_ptr : int32 (n_asked_slot + 1,), part_rank, part_edge : int32 (n_part,)
        The leaves of each slot by their ranks in `Boxes`, and the edges of their weights (-1 for bare leaves).
    """

    node: np.ndarray
    slot: np.ndarray
    part_ptr: np.ndarray
    part_rank: np.ndarray
    part_edge: np.ndarray


def queried_slots(plan: Plan, boxes: Boxes, columns: np.ndarray) -> QueriedSlots:
    """Return what an event over some columns, their positions, has to evaluate for each box."""
    slot = np.flatnonzero(np.isin(plan.slot_column, columns)).astype(np.int32)
    part_ptr, leaves, edges = members_of(plan, plan.slot_node[slot])
    return QueriedSlots(
        node=np.flatnonzero(nodes_above(plan, columns) & (plan.node_row >= 0)).astype(np.int32),
        slot=slot,
        part_ptr=part_ptr,
        part_rank=leaf_ranks(plan, boxes)[leaves],
        part_edge=edges,
    )


@kernel
def _put_masses(plan, cells, boxes, queried, box, mass, log_weight, table):
    """Set the entry of each queried slot's table to the log mass of its column's condition in a box; 0 for box -1."""
    for k in range(queried.slot.size):
        slot = queried.slot[k]
        if cells.table_at[slot] < 0:  # no row needs it
            continue
        column = plan.slot_column[slot]
        condition = boxes.box_condition[box, column] if box >= 0 else -1
        value = 0.0
        if condition >= 0:
            value = -np.inf
            for j in range(queried.part_ptr[k], queried.part_ptr[k + 1]):
                term = mass[boxes.condition_at[condition] + queried.part_rank[j]]
                value = logaddexp(value, term + log_weight[queried.part_edge[j]] if queried.part_edge[j] >= 0 else term)
        # the last distinct value stands for the event; the entry behind it is that of missing cells
        table[cells.table_at[slot] + cells.n_distinct[column] - 1] = value


@kernel
def _add_log(value, allowed, out):
    for i in range(out.size):
        if allowed[i]:
            out[i] = logaddexp(out[i], value[i])


@kernel
def fill_row_log_probability(plan, cells, boxes, queried, params, n_block, allowed, log_evidence, log_joint):
    """Fill the log densities of each row's evidence, and of the evidence together with a union of disjoint boxes.

    Parameters
    ----------
    plan, cells, boxes, queried : Plan, Cells, Boxes, QueriedSlots
    params : tuple of float64 (n_draw, n_edge) and (n_draw, n_theta)
    n_block : int
        Rows that are evaluated together.
    allowed : bool (n_box, n_row)
        Whether what the row observes of the box's columns lies in the box.
    log_evidence, log_joint : float64 (n_draw, n_row)
        Filled, in the families' units; their difference is the log probability of the event given the row.
    """
    log_weights, thetas = params
    made = make_work(plan, cells, n_block)
    value = np.empty(n_block)
    n_row = log_joint.shape[1]
    masses = np.empty((boxes.n_mass[0], 0))
    all_boxes, const = boxes, plan.const
    plan, cells, boxes = borrowed(plan), borrowed(cells), borrowed(boxes)
    queried, work = borrowed(queried), borrowed(made)
    for draw in range(log_joint.shape[0]):
        log_weight = log_weights[draw]
        if draw % _DRAWS_AT_ONCE == 0:
            masses = np.empty((boxes.n_mass[0], min(log_joint.shape[0] - draw, _DRAWS_AT_ONCE)))
            fill_masses(all_boxes, const, thetas[draw : draw + masses.shape[1]], masses)
        mass = masses[:, draw % _DRAWS_AT_ONCE]
        prepare_coefficients(plan, cells, thetas[draw], work)
        fill_tables(plan, cells, log_weight, work)
        lo = 0
        while lo < n_row:
            n = block_size(cells.segment_ptr, lo, n_block, n_row)
            # 1 at the event's columns: the evidence alone
            _put_masses(plan, cells, boxes, queried, -1, mass, log_weight, work.table)
            upward(plan, cells, log_weight, work, lo, n)
            root_log_value(plan, work, n, log_evidence[draw, lo : lo + n])
            log_joint[draw, lo : lo + n] = -np.inf
            for box in range(allowed.shape[0]):
                _put_masses(plan, cells, boxes, queried, box, mass, log_weight, work.table)
                # only nodes above the event's columns: all others keep their values of this block
                upward_again(plan, cells, log_weight, work, queried.node, lo, n)
                root_log_value(plan, work, n, value)
                _add_log(value, allowed[box, lo : lo + n], log_joint[draw, lo : lo + n])
            lo += n
    keep(made)
    keep(all_boxes)
