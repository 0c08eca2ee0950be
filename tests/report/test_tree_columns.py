"""Trees of columns beside the tree of splits: each below the column that it follows, as many as there is room for."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit.paths import tree_nodes
from bayesjpt.circuit.trees import label_parents
from bayesjpt.report.tree_columns import MOST, lines_of
from tests.report.test_tree import SVG, check_texts, groups

N_COLUMN = 20
LONG = "would you say that you are in good health, all things considered, number"


@pytest.fixture(scope="module")
def view():
    """Return two splits of twenty columns with long names and labels, each like the one before it."""
    rng = np.random.default_rng(5)
    cells = [rng.integers(2, size=400)]
    for _ in range(N_COLUMN - 1):
        cells.append(cells[rng.integers(len(cells))] ^ (rng.random(400) < 0.2))
    labels = np.array(["no, not really, and not at any other time", "yes"])
    frame = pd.DataFrame({f"{LONG} {k}": labels[x] for k, x in enumerate(cells)})
    table = bj.as_table(frame, other=False)
    circuit = bj.learn_cutset(table, rng, select="entropy", min_rows=150, min_columns=1)
    return bj.Posterior.from_circuit(circuit, table.schema).tree()


def random_forest(rng: np.random.Generator, n: int) -> list[tuple[str, str]]:
    parents = [int(rng.integers(-1, k)) if k else -1 for k in range(n)]
    return [(f"c{k}", f"c{parent}") for k, parent in enumerate(parents) if parent >= 0]


@pytest.mark.parametrize("most", [1, 4, 100])
def test_lines_stand_below_the_column_that_they_follow(rng, most):
    for n in (2, 5, 12):
        follows = random_forest(rng, n)
        above = dict(follows)
        first = [f"c{k}" for k in rng.permutation(n)]
        lines = lines_of(follows, first, most)
        names = {name for pair in follows for name in pair}
        assert len({line.name for line in lines}) == len(lines) == min(most, len(names))
        for line in lines:
            found = None if line.above < 0 else lines[line.above].name
            assert found == above.get(line.name)
            assert line.depth == (0 if line.above < 0 else lines[line.above].depth + 1)


def test_columns_that_are_shown_come_first_with_all_above_them():
    follows = [(f"c{k + 1}", f"c{k}") for k in range(6)] + [(f"d{k}", "c0") for k in range(6)]
    assert [line.name for line in lines_of(follows, ["d5", "c3", "c6", "none"], 6)] == [
        "c0",
        "c1",
        "c2",
        "c3",
        "d0",
        "d5",
    ]


def test_each_leaf_has_the_tree_of_its_part_of_the_circuit(view, rng):
    table = bj.as_table(
        pd.DataFrame({"a": list("xyxy") * 50, "b": list("xyyy") * 50, "c": list("yyxx") * 50}), other=False
    )
    circuit = bj.learn_cutset(table, rng, select="entropy", min_rows=120, min_columns=1)
    data = bj.Posterior.from_circuit(circuit, table.schema).tree().data
    leaves = [node for node in tree_nodes(circuit) if not node.children]
    names = table.schema.names
    expected = [{names[a]: names[b] for a, b in label_parents(circuit, leaf.node).items()} for leaf in leaves]
    assert sorted(map(str, (dict(data.nodes[k].follows) for k in data.parts()))) == sorted(map(str, expected))
    assert any(expected)


def test_the_picture_draws_them_and_says_how_many_are_left_out(view):
    picture = ET.fromstring(view.to_svg())
    drawn = groups(picture, "columns")
    with_trees = [view.data.nodes[k] for k in view.data.parts() if view.data.nodes[k].follows]
    assert len(drawn) == len(with_trees) > 1
    for node, group in zip(with_trees, drawn, strict=True):
        n_column = len({name for pair in node.follows for name in pair})
        words = "".join(group.itertext())
        assert f"and {n_column - MOST} more" in words
        assert node.conditions in words
        assert len(list(group.iter(f"{SVG}path"))) == MOST - 1
    check_texts(picture)


def test_what_is_asked_of_a_column_with_a_long_name_can_be_seen(view):
    picture = ET.fromstring(view.to_svg())
    shown = [element for group in groups(picture, "split") for element in group.iter(f"{SVG}text")]
    words = {(text[-1].tail if len(text) else text.text) or "" for text in shown}
    assert "= 'yes'" in words
    assert any(word.startswith("!= 'yes'") or word.startswith("= 'no, not") for word in words)
