"""Boxes under a plan: only nodes above the constrained columns are visited, equal conditions are shared."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.circuit.plan import make_plan
from bayesjpt.kernels.boxes import PRODUCT_STEP, SUM_STEP, make_boxes
from bayesjpt.kernels.events import fill_box_log_probability
from bayesjpt.kernels.mixture import make_pieces
from tests import zoo

UNITS = np.array([[0.0, 1.0]])


@pytest.fixture
def plan(rng):
    """Return the plan of a mixture of two products of three columns, one leaf each."""
    table = zoo.make_table((zoo.REAL, zoo.COUNT, zoo.LABEL), 20, rng)
    circuit = zoo.mixture(table, dictionary=lambda column: zoo.registry.dictionary(column)[:1])
    return make_plan(circuit, table.schema), zoo.start(circuit)


def interval(lo: float, hi: float) -> np.ndarray:
    return np.array([[lo, hi]])


def probability(plan, params, boxes) -> np.ndarray:
    out = np.empty((1, len(boxes)))
    arranged = make_boxes(plan, boxes)
    fill_box_log_probability(plan, arranged, params.log_weight[None], params.theta[None], out)
    return np.exp(out[0])


def test_products_with_one_part_left_are_no_steps(plan):
    boxes = make_boxes(plan[0], [{0: interval(0.0, 1.0)}])
    assert PRODUCT_STEP not in boxes.step_kind
    assert boxes.step_kind.size == 3  # two leaves and the sum
    assert boxes.step_kind[-1] == SUM_STEP


def test_products_keep_the_constrained_parts_alone(plan):
    boxes = make_boxes(plan[0], [{0: interval(0.0, 1.0), 2: interval(0.0, 0.0)}])
    products = np.flatnonzero(boxes.step_kind == PRODUCT_STEP)
    assert (np.diff(boxes.entry_ptr)[products] == 2).all()


def test_boxes_over_the_same_columns_share_their_steps(plan):
    boxes = make_boxes(plan[0], [{0: interval(0.0, 1.0)}, {0: interval(2.0, 3.0)}, {1: interval(2.0, 3.0)}])
    assert boxes.box_group.tolist() == [0, 0, 1]
    assert boxes.step_ptr.size == 3


def test_boxes_share_equal_conditions(plan):
    boxes = make_boxes(plan[0], [{0: interval(0.0, 1.0), 1: interval(2.0, 3.0)}, {0: interval(0.0, 1.0)}])
    assert boxes.condition_column.tolist() == [0, 1]


def test_box_without_constraint_has_probability_one_without_a_step(plan):
    assert make_boxes(plan[0], [{}]).step_kind.size == 0
    assert probability(*plan, [{}])[0] == 1.0


def test_condition_of_several_intervals_adds_their_probabilities(plan):
    several = np.array([[-1.0, 0.0], [1.0, 2.5], [4.0, np.inf]])
    together = probability(*plan, [{0: several}])[0]
    apart = probability(*plan, [{0: row[None]} for row in several]).sum()
    assert together == pytest.approx(apart, rel=1e-13)


def test_columns_asked_for_besides_get_a_condition_everywhere(plan):
    boxes = make_boxes(plan[0], [{0: interval(0.0, 1.0)}], also=(1,))
    assert sorted(boxes.condition_column.tolist()) == [0, 1]
    assert boxes.interval_lo[boxes.condition_column.tolist().index(1)] == -np.inf


def test_pieces_lie_where_boxes_keep_the_leaves(plan):
    boxes = make_boxes(plan[0], [{0: np.array([[0.0, 1.0], [2.0, 3.0]])}])
    pieces = make_pieces(plan[0], boxes, [0], UNITS)
    assert pieces.place.tolist() == [2, 3, 4, 5]  # behind the condition as a whole
    assert pieces.lower.tolist() == [0.0, 0.0, 2.0, 2.0]
