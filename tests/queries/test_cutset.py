"""Every query of a fit of cutset networks, whose trees of labels share their nodes: answers are those of all states."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bayesjpt as bj
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.circuit.paths import Division, splits_of_tree, tree_nodes
from bayesjpt.circuit.trees import Tree
from bayesjpt.defaults import INTERVAL
from bayesjpt.errors import QueryError
from bayesjpt.queries.some_draws import enough_draws
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


def joint_of(post: bj.Posterior, structure: int, states: pd.DataFrame) -> np.ndarray:
    """Return the probability of each state under draws that a structure is shown with, (n_draw, n_state)."""
    density = enough_draws(post, structure).log_density(states).transpose("chain", "draw", "obs_id").values
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


def test_tree_shows_shares_and_labels_of_its_parts(post, states):
    data = post.tree(max_draws=None, max_leaves=100).data
    own = joint_of(post, data.structure, states)
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


def test_explanation_tells_what_each_part_contributes(post, states):
    found = post.explain("b = '1'", "c = '0'")
    own = joint_of(post, found.structure, states)
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


N_TABLE = 12
"""Their mean width is known to .02: that of one interval, of 200 draws, to .064."""

CLOSE = 0.15
"""Of a mean width, relative."""


def test_intervals_of_one_structure_are_as_wide_as_its_posterior():
    widths: dict[str, list[float]] = {"tree": [], "explain": [], "patterns": [], "components": []}
    for seed in range(N_TABLE):
        rng = np.random.default_rng(seed)
        a = rng.random(600) < 0.4
        frame = pd.DataFrame({f"x{k}": np.where(rng.random(600) < 0.92, a, ~a) for k in range(5)}).astype(int)
        table = bj.as_table(frame.astype(str), other=False)
        post = bj.fit(table, "cutset", select="entropy", seed=seed, progress=False, n_structures=3, min_rows=200)
        nodes = post.tree().data.nodes
        split = nodes[nodes[0].children[0]].column
        n_one = int(frame[split].sum())
        exact = np.ptp(stats.beta(n_one + 0.5, 600 - n_one + 0.5).ppf([0.5 - INTERVAL / 2, 0.5 + INTERVAL / 2]))
        first, largest = nodes[nodes[0].children[0]], post.patterns(min_support=0.0).parts[0].weight
        parts = {
            "tree": (first.lo, first.hi),
            "explain": post.explain(f"{split} = '1'").parts[0].intervals["weight"],
            "patterns": (largest.lo[0], largest.hi[0]),
            "components": post.components(split).parts[0].weight_interval,
        }
        for name, ends in parts.items():
            widths[name].append(float(np.ptp(ends) / exact))
    for name, found in widths.items():
        assert np.mean(found) == pytest.approx(1.0, abs=CLOSE), name


def test_more_draws_begin_with_those_that_are_kept(post):
    shown = post.tree(max_draws=None).data
    assert shown.n_draw == shown.n_draw_shown == 200
    whole = bj.fit(post.reference, "cutset", n_structures=2, seed=1, progress=False, draws=300)
    assert whole.tree().data.n_draw == 300


@pytest.fixture(scope="module")
def chain_of_labels() -> bj.Posterior:
    """Return a fit whose networks are single trees: each column follows the one before."""
    rng = np.random.default_rng(3)
    columns = [rng.random(800) < 0.4]
    for _ in range(3):
        columns.append(np.where(rng.random(800) < 0.9, columns[-1], ~columns[-1]))
    frame = pd.DataFrame(np.array(columns, int).T, columns=list("abcd")).astype(str)
    table = bj.as_table(frame, other=False)
    return bj.fit(table, "cutset", min_rows=5000, n_structures=2, seed=1, progress=False)


def test_a_tree_of_labels_without_splits_is_shown_as_such(chain_of_labels):
    post = chain_of_labels
    view = post.tree()
    (root,) = view.data.nodes
    assert len(root.follows) == 3
    assert view.data.heading() == "Chow-Liu tree"
    assert sum(", follows" in line for line in str(view).splitlines()) == 3
    assert "Chow-Liu tree" in view.to_svg()
    assert "follows" in view.to_dot()
    explanation = post.explain("b = '1'", "a = '1'")
    assert [part.conditions for part in explanation.parts] == [""]
    assert explanation.parts[0].weight == 1.0
    membership = post.by_structure()[0].membership(post.reference)
    assert membership.sizes["sub_population"] == 1
    assert "conditions" not in membership.coords


def test_two_columns_are_a_tree_of_labels(chain_of_labels):
    table = bj.as_table(chain_of_labels.reference.to_frame()[["a", "b"]].astype(str), other=False)
    circuit = build_circuit(Tree(np.arange(2), np.array([-1, 0]), np.arange(table.n_row)), table)
    view = bj.Posterior.from_circuit(circuit, table.schema).tree()
    assert str(view).splitlines()[0].startswith("Chow-Liu tree;")
    assert view.data.nodes[0].follows == (("b", "a"),)


def test_one_label_beside_numbers_is_split_and_no_tree(rng):
    frame = pd.DataFrame({"a": np.repeat(["u", "v"], 200), "x": np.repeat([0.0, 9.0], 200) + rng.normal(size=400)})
    table = bj.as_table(frame, kinds={"x": "real"}, other=False)
    halves = np.split(np.arange(400), 2)
    parts = [Product((Tree(np.array([0]), np.array([-1]), rows), ColumnLeaf(1, rows))) for rows in halves]
    circuit = build_circuit(Sum(tuple(parts), (200, 200), Division(0, ((0,), (1,)))), table)
    assert [bool(node.children) for node in tree_nodes(circuit)] == [True, False, False]
    whole = Product((Tree(np.array([0]), np.array([-1]), np.arange(400)), ColumnLeaf(1, np.arange(400))))
    with pytest.raises(QueryError, match="not told apart by splits"):
        bj.Posterior.from_circuit(build_circuit(whole, table), table.schema).tree()


def test_columns_that_are_not_shown_are_counted_and_said_where_others_follow_them(rng):
    columns = [rng.random(400) < 0.5]
    for _ in range(39):
        columns.append(np.where(rng.random(400) < 0.9, columns[-1], ~columns[-1]))
    order = rng.permutation(40)
    frame = pd.DataFrame({f"question_{k}": np.array(columns[at], int) for k, at in enumerate(order)}).astype(str)
    post = bj.fit(
        bj.as_table(frame, other=False), "cutset", min_rows=5000, n_structures=2, draws=1, seed=1, progress=False
    )
    view = post.tree(max_columns=3)
    lines = str(view).splitlines()
    assert lines[-1] == "Not shown: question_3, question_4, question_5, question_6, question_7 and 32 others"
    assert all(len(line) <= 88 for line in lines)
    shown = [axis.name for axis in view.data.axes]
    follows = [line.split(", follows ")[1] for line in lines if ", follows " in line]
    assert follows
    for name in follows:
        assert name.endswith(" (not shown)") == (name.removesuffix(" (not shown)") not in shown)
    assert "and 32 others" in view.to_svg()


def test_a_split_of_what_is_true_or_false_names_the_label(rng):
    a = rng.random(400) < 0.5
    frame = pd.DataFrame({"a": a} | {f"x{k}": np.where(rng.random(400) < 0.9, a, ~a) for k in range(5)})
    assert all(column.dtype == "boolean" and column.other for column in bj.as_table(frame).schema)
    post = bj.fit(frame, "cutset", select="entropy", min_rows=150, n_structures=1, draws=2, seed=1, progress=False)
    data = post.tree().data
    assert len(data.nodes) > 2
    for node in data.nodes[1:]:
        assert node.condition in (f"{node.column} = 'True'", f"{node.column} = 'False'")
        # as an event it holds all rows of the part, "other" among them
        assert post.probability(node.conditions).mean() == pytest.approx(node.weight, rel=EXACT)


@pytest.mark.parametrize(
    ("learner", "python", "command"),
    [
        ("cutset", "a lower min_rows or min_columns", "a lower --min-rows or --min-columns"),
        ("jpt", "a lower min_rows;", "a lower --min-rows;"),
        ("hclt", 'or learner="cutset"', "or --learner cutset"),
    ],
)
def test_a_fit_without_splits_says_what_helps(rng, learner, python, command):
    table = bj.as_table(binary(rng, 60, 3), other=False)
    options = {"leaf": "bernoulli"} if learner == "cutset" else {"min_rows": 60} if learner == "jpt" else {}
    post = bj.fit(table, learner, n_structures=1, draws=1, tune=1, chains=1, seed=1, progress=False, **options)
    with pytest.raises(QueryError) as error:
        post.tree()
    assert python in str(error.value)
    assert command in error.value.at_the_command_line()
