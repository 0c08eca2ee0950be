"""What PyMC draws and prints of a model with blocks is short enough to read."""

from __future__ import annotations

import importlib.util
import re

import pymc as pm
import pytest

import bayesjpt as bj
from tests import examples as ex

LONGEST_NODE = 60
LONGEST_LINE = 250
FEW = ex.only("normal", "poisson", "geometric")


@pytest.fixture
def model(rng) -> pm.Model:
    """Return two blocks under one hyperparameter."""
    table = ex.make_table((ex.REAL, ex.COUNT), 6, rng)
    with pm.Model() as model:
        alpha = pm.Gamma("alpha", 2.0, 2.0)
        bj.CircuitMixture("left", ex.mixture(table, dictionary=FEW), table, alpha=alpha)
        bj.CircuitMixture("right", ex.mixture(table, 3, FEW), table, alpha=alpha)
    return model


def test_mermaid_text_has_short_nodes_and_plates_by_dims(model):
    text = pm.model_to_mermaid(model)
    nodes = re.findall(r"^\S+[(\[]+(.*?)[)\]]+$", text, re.MULTILINE)
    assert "left ~ CircuitMixture" in nodes
    assert "left_sum_weights ~ SegmentDirichlet" in nodes
    assert "left_normal_variance ~ FlooredInverseGamma" in nodes
    assert max(map(len, nodes)) < LONGEST_NODE
    plates = set(re.findall(r'subgraph "(.*)"', text))
    assert {"left_edge (2)", "right_edge (3)", "left_normal_leaf (2)", "left_obs_id (6) x left_feature (2)"} <= plates


def test_mermaid_edges_lead_from_hyperparameter_to_weights_to_rows(model):
    edges = set(re.findall(r"^(\S+) --> (\S+)$", pm.model_to_mermaid(model), re.MULTILINE))
    assert {
        ("alpha", "left_likelihood_weights"),
        ("alpha", "right_likelihood_weights"),
        ("left_likelihood_weights", "left"),
        ("left_normal_mu", "left"),
        ("left", "left_data"),
        ("left_sum_weights", "left_type_weights"),
    } <= edges
    assert not any(a.startswith("left") and b.startswith("right") for a, b in edges)


def test_printed_model_is_short(model):
    lines = model.str_repr().splitlines()
    assert max(map(len, lines)) < LONGEST_LINE
    assert any(re.search(r"left_likelihood_weights ~ SegmentDirichlet\(f\(alpha\)\)", line) for line in lines)


@pytest.mark.skipif(importlib.util.find_spec("graphviz") is None, reason="graphviz is not installed")
def test_graphviz_text_has_the_same_nodes(model):
    source = pm.model_to_graphviz(model).source
    assert "SegmentDirichlet" in source
    assert "left_obs_id (6) x left_feature (2)" in source
