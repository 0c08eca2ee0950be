"""Boxes under a plan: only nodes above the constrained columns are visited, equal conditions are shared."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.plan import make_plan
from bayesjpt.kernels.boxes import make_boxes, make_groups
from bayesjpt.kernels.events import fill_box_log_probability
from bayesjpt.kernels.mixture import make_components
from tests import examples as ex

UNITS = np.array([[0.0, 1.0]])


@pytest.fixture
def plan(rng):
    """Return the plan of a mixture of two products of three columns, one leaf each."""
    table = ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 20, rng)
    circuit = ex.mixture(table, dictionary=lambda column: ex.registry.dictionary(column)[:1])
    return make_plan(circuit, table.schema), ex.start(circuit)


def interval(lo: float, hi: float) -> np.ndarray:
    return np.array([[lo, hi]])


def probability(plan, params, boxes) -> np.ndarray:
    out = np.empty((1, len(boxes)))
    draws = Params(params.log_weight[None], params.theta[None])
    fill_box_log_probability(plan, make_boxes(plan, boxes), draws, out)
    return np.exp(out[0])


def groups(plan, boxes):
    return make_groups(plan[0], make_boxes(plan[0], boxes))


def test_graph_of_a_box_has_the_constrained_column_alone(plan):
    (group,) = groups(plan, [{0: interval(0.0, 1.0)}])
    assert group.input_column.tolist() == [0, 0]
    assert group.graph.is_product.tolist() == [True, True, False]


def test_products_keep_the_constrained_parts_alone(plan):
    (group,) = groups(plan, [{0: interval(0.0, 1.0), 2: interval(0.0, 0.0)}])
    products = np.flatnonzero(group.graph.is_product)
    assert (np.diff(group.graph.child_ptr)[products] == 2).all()


def test_boxes_over_the_same_columns_share_their_graph(plan):
    found = groups(plan, [{0: interval(0.0, 1.0)}, {1: interval(2.0, 3.0)}, {0: interval(2.0, 3.0)}])
    assert [group.box.tolist() for group in found] == [[0, 2], [1]]


def test_boxes_share_equal_conditions(plan):
    boxes = make_boxes(plan[0], [{0: interval(0.0, 1.0), 1: interval(2.0, 3.0)}, {0: interval(0.0, 1.0)}])
    assert boxes.condition_column.tolist() == [0, 1]


def test_box_without_constraint_has_probability_one_without_a_pass(plan):
    assert groups(plan, [{}])[0].graph.node.size == 0
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


def test_components_lie_where_boxes_keep_the_leaves(plan):
    boxes = make_boxes(plan[0], [{0: np.array([[0.0, 1.0], [2.0, 3.0]])}])
    components = make_components(plan[0], boxes, [0], UNITS)
    assert components.place.tolist() == [2, 3, 4, 5]  # behind the condition as a whole
    assert components.lower.tolist() == [0.0, 0.0, 2.0, 2.0]
