"""Every query of a fit of cutset networks, whose trees of labels share their nodes: answers are those of all states."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit.paths import splits_of_tree, tree_nodes
from tests.structure.test_cutset import binary

EXACT = 1e-9
"""Relative."""

N_COLUMN = 8
N_STRUCTURE = 3


@pytest.fixture(scope="module")
def post() -> bj.Posterior:
    table = bj.as_table(binary(np.random.default_rng(5), 500, N_COLUMN), other=False)
    return bj.fit(
        table, learner="cutset", n_structures=N_STRUCTURE, seed=1, progress=False, min_rows=150, min_columns=2
    )


@pytest.fixture(scope="module")
def states(post) -> pd.DataFrame:
    names = post.schema.names
    return pd.DataFrame(list(itertools.product("01", repeat=len(names))), columns=list(names))


@pytest.fixture(scope="module")
def joint(post, states) -> np.ndarray:
    """Return the probability of each state under each draw, float64 (n_draw, n_state)."""
    density = post.log_density(states).transpose("chain", "draw", "obs_id").values
    return np.exp(density.reshape(-1, len(states)))


def share(joint: np.ndarray, event, given=None) -> np.ndarray:
    """Return the probability of some states given others, float64 (n_draw,); both are bool (n_state,)."""
    given = np.ones(joint.shape[1], bool) if given is None else given
    return joint[:, event & given].sum(axis=1) / joint[:, given].sum(axis=1)


def meets(states: pd.DataFrame, conditions: str) -> np.ndarray:
    """Return bool (n_state,): which states meet conditions such as ``a = '1' and b != '1'``."""
    found = np.ones(len(states), bool)
    for condition in filter(None, conditions.split(" and ")):
        name, relation, label = condition.split()
        found &= (states[name] == label.strip("'")).to_numpy() == (relation == "=")
    return found


def test_trees_of_labels_are_no_part_of_the_tree_that_is_shown(post):
    for one in post.by_structure():
        nodes = tree_nodes(one.circuit)
        assert len({node.node for node in nodes}) == len(nodes) < one.circuit.n_node
        assert splits_of_tree(one.circuit).sum() == sum(bool(node.children) for node in nodes)


def test_tree_shows_shares_and_labels_of_its_parts(post, states, joint):
    data = post.tree(max_draws=None, max_leaves=100).data
    own = joint.reshape(N_STRUCTURE, -1, len(states))[data.structure]
    parts = [data.nodes[position] for position in data.parts()]
    assert len(parts) > 2
    assert len(data.axes) == N_COLUMN
    for part in parts:
        inside = meets(states, part.conditions)
        assert part.weight == pytest.approx(share(own, inside).mean(), rel=EXACT)
        for axis, marginal in zip(data.axes, part.marginals, strict=True):
            expected = share(own, (states[axis.name] == "1").to_numpy(), inside).mean()
            assert marginal.cells.mean[axis.labels.index("1")] == pytest.approx(expected, rel=EXACT)


def test_probability_and_condition_are_sums_over_states(post, states, joint):
    event, given = meets(states, "b = '1' and d = '0'"), meets(states, "a = '1' and c = '0'")
    expected = share(joint, event, given)
    answer = post.probability("b = '1' and d = '0'", "a = '1' and c = '0'").values.ravel()
    assert answer == pytest.approx(expected, rel=EXACT)
    answer = post.condition("a = '1' and c = '0'").probability("b = '1' and d = '0'").values.ravel()
    assert answer == pytest.approx(expected, rel=EXACT)


def test_mode_is_the_most_probable_state(post, states, joint):
    found = post.mode()
    log_mass = found["log_mass"].values.reshape(len(joint))
    assert log_mass == pytest.approx(np.log(joint.max(axis=1)), rel=EXACT)
    rows = found["value"].values.reshape(len(joint), N_COLUMN).astype(str)
    assert (rows == states.to_numpy()[joint.argmax(axis=1)]).all()


def test_explanation_tells_what_each_part_contributes(post, states, joint):
    found = post.explain("b = '1'", "c = '0'")
    own = joint.reshape(N_STRUCTURE, -1, len(states))[found.structure]
    event, given = meets(states, "b = '1'"), meets(states, "c = '0'")
    total = sum(part.weight_given * part.probability for part in found.parts)
    assert total == pytest.approx(share(own, event, given).mean(), rel=0.05)
    assert sum(part.weight for part in found.parts) == pytest.approx(1.0, rel=EXACT)


def test_dependence_is_the_information_of_pairs(post, states, joint):
    found = post.dependence().values.reshape(len(joint), N_COLUMN, N_COLUMN)
    for i, j in [(0, 1), (1, 2), (2, 5)]:
        one, other = (states.iloc[:, k].to_numpy() == "1" for k in (i, j))
        expected = np.zeros(len(joint))
        for a, b in itertools.product((True, False), repeat=2):
            pair = share(joint, (one == a) & (other == b))
            expected += pair * np.log(pair / share(joint, one == a) / share(joint, other == b))
        assert found[:, i, j] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_samples_have_the_shares_of_states(post, states, joint):
    n = 20_000
    rows = post.sample(n, rng=np.random.default_rng(2)).to_frame().astype(str)
    counts = rows.groupby(list(rows.columns)).size()
    index = pd.MultiIndex.from_frame(states)
    found = counts.reindex(index, fill_value=0).to_numpy() / n
    expected = joint.mean(axis=0)
    error = 5.0 * np.sqrt(expected * (1.0 - expected) / n) + 1.0 / n
    assert (np.abs(found - expected) < error).all()


def test_a_saved_fit_answers_as_before(post, states, joint, tmp_path):
    post.save(tmp_path / "fit.nc")
    again = bj.load(tmp_path / "fit.nc")
    density = again.log_density(states).transpose("chain", "draw", "obs_id").values.reshape(joint.shape)
    assert np.array_equal(np.exp(density), joint)
    assert str(again.tree()) == str(post.tree())
