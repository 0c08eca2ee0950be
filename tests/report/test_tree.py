"""Trees as pictures: shares and distributions are those of the queries, and no name breaks the text that holds it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import Posterior
from bayesjpt.errors import QueryError
from bayesjpt.report import svg
from bayesjpt.report.tree import TreeView
from bayesjpt.report.tree_text import percents
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex

EXACT = 1e-9
"""Relative."""

HOSTILE = ("</text><script>alert(1)</script>", 'a "quoted" \\ label & more', "ok")
SVG = "{http://www.w3.org/2000/svg}"
DAY = replace(ex.REAL, name="day", dtype="datetime", atoms=(), families=())


@pytest.fixture(scope="module")
def post() -> Posterior:
    """Return four draws of a tree over columns of every base, with names made to break things."""
    rng = np.random.default_rng(1)
    table = ex.make_table((ex.REAL, ex.POSITIVE, ex.COUNT, ex.LABEL, ex.ZEROS, DAY), 90, rng)
    columns = list(table.schema.columns)
    columns[0] = ex.named(columns[0], '<b>size</b> & "more" of it, ever so long')
    columns[3] = replace(columns[3], labels=HOSTILE[: len(columns[3].labels)])
    table = Table(Schema(tuple(columns)), table.values, table.observed)
    return ex.random_posterior(bj.learn_jpt(table, rng, max_leaves=7), table, rng, n_chain=2, n_draw=2)


@pytest.fixture(scope="module")
def view(post) -> TreeView:
    return post.tree(max_draws=None)


@pytest.fixture(scope="module")
def picture(view) -> ET.Element:
    return ET.fromstring(view.to_svg())


def groups(picture: ET.Element, name: str) -> list[ET.Element]:
    return [group for group in picture.iter(f"{SVG}g") if group.get("class") == name]


def titles(element: ET.Element) -> list[str]:
    return [title.text or "" for title in element.iter(f"{SVG}title")]


def test_shares_are_the_probabilities_of_conditions(post, view):
    for node in view.data.nodes[1:]:
        answer = post.probability(node.conditions).to_numpy()
        assert node.weight == pytest.approx(answer.mean(), rel=EXACT)
        assert (node.lo, node.hi) == pytest.approx(tuple(np.quantile(answer, [0.05, 0.95])), rel=EXACT)


def test_what_a_node_asks_is_told_of_its_parents_rows(post, view):
    for node in view.data.nodes:
        for child in (view.data.nodes[k] for k in node.children):
            both = child.condition if not node.conditions else f"{node.conditions} and {child.condition}"
            np.testing.assert_allclose(post.probability(both), post.probability(child.conditions), rtol=EXACT)


def test_marginals_are_probabilities_given_the_conditions(post, view):
    node = view.data.nodes[view.data.parts()[0]]
    names = {axis.name: (axis, marginal) for axis, marginal in zip(view.data.axes, node.marginals, strict=True)}
    axis, marginal = names["zeros"]
    cell = "{!r} <= zeros < {!r}".format(*axis.edges[3:5].tolist())
    answer = post.probability(f"({cell}) and zeros not in (0, 2)", node.conditions)
    assert marginal.cells.mean[3] == pytest.approx(answer.mean().item(), rel=EXACT)
    assert marginal.atoms.mean[0] == pytest.approx(
        post.probability("zeros = 0", node.conditions).mean().item(), rel=EXACT
    )
    axis, marginal = names["count"]
    answer = post.probability(f"count between {axis.edges[1] + 0.5} and {axis.edges[2] - 0.5}", node.conditions)
    assert marginal.cells.hi[1] == pytest.approx(np.quantile(answer, 0.95), rel=EXACT)
    axis, marginal = names["label"]
    answer = post.probability(f"label = '{axis.labels[0]}'", node.conditions)
    assert marginal.cells.mean[0] == pytest.approx(answer.mean().item(), rel=EXACT)


def test_all_rows_are_the_parts_together(post, view):
    position = view.data.hidden == () and [axis.name for axis in view.data.axes].index("label")
    for code, name in enumerate(view.data.axes[position].labels[:-1]):
        expected = post.probability(bj.col("label") == name).mean().item()
        assert view.data.whole[position][code] == pytest.approx(expected, rel=EXACT)


def test_a_view_of_the_top_holds_all_rows(post, view):
    top = post.tree(["count"], max_leaves=3).data
    parts = [top.nodes[position] for position in top.parts()]
    assert len(parts) == 3
    assert sum(part.n_leaves for part in parts) == top.nodes[0].n_leaves == len(view.data.parts())
    assert sum(part.weight for part in parts) == pytest.approx(1.0, rel=EXACT)
    assert "count" not in top.hidden
    assert len(top.hidden) == 5


def test_the_picture_has_a_group_for_each_leaf_and_every_condition(view, picture):
    assert len(groups(picture, "leaf")) == len(view.data.parts())
    named = [title.split(": ")[0] for group in groups(picture, "split") for title in titles(group)]
    for node in view.data.nodes[1:]:
        assert any(title.startswith(node.condition) for title in named)
    for position, group in zip(view.data.parts(), groups(picture, "leaf"), strict=True):
        assert titles(group)[0].startswith(view.data.nodes[position].conditions)
        assert len(groups(group, "column")) == len(view.data.axes)


def test_names_are_text_and_never_markup(picture):
    assert {element.tag.removeprefix(SVG) for element in picture.iter()} == {
        "svg",
        "title",
        "rect",
        "text",
        "g",
        "path",
    }
    words = "".join(picture.itertext())
    assert HOSTILE[0] in words
    assert HOSTILE[1] in words
    assert not {name for element in picture.iter() for name in element.attrib if name.startswith(("on", "href"))}


def check_texts(picture: ET.Element) -> None:
    """Check that texts lie inside the picture and none on another."""
    boxes = []
    for element in picture.iter(f"{SVG}text"):
        size = float(element.get("font-size"))
        wide = svg.width("".join(element.itertext()) if len(element) == 0 else element[-1].tail, size)
        x, y = float(element.get("x")), float(element.get("y"))
        x -= wide * {"end": 1.0, "middle": 0.5}.get(element.get("text-anchor"), 0.0)
        assert x >= 0.0
        assert x + wide <= float(picture.get("width"))
        boxes.append((x, x + wide, y - 0.8 * size, y + 0.1 * size))
    for a, b in combinations(boxes, 2):
        assert a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]


def test_texts_do_not_overlap(picture):
    check_texts(picture)


def test_text_has_a_line_for_each_node(view):
    lines = str(view).splitlines()
    assert [line for line in lines if "all rows  100%" in line]
    for node in view.data.nodes[1:]:
        assert [line for line in lines if line.endswith(f"─ {node.condition}  {percents(node)}")]


def test_numbers_of_a_narrow_part_of_a_wide_column_have_the_digits_they_need(rng):
    x = np.concatenate([rng.uniform(-0.5, 0.5, 300), rng.uniform(50.0, 90.0, 300)]).round(2)
    table = bj.as_table(pd.DataFrame({"x": x, "half": np.repeat(["a", "b"], 300)}))
    post = bj.fit(table, learner="jpt", min_rows=0.4, n_structures=1, draws=5, tune=5, chains=1, seed=1, progress=False)
    lines = str(post.tree(columns=["x"])).splitlines()
    told = [line.split("  ")[-1] for line in lines if " to " in line and "%" not in line]
    low, high = sorted(tuple(map(float, text.split(" to "))) for text in told)
    assert low == pytest.approx((-0.4, 0.4), abs=0.06)  # it was 0
    assert high == pytest.approx((54.0, 86.0), abs=4.0)


def test_dot_quotes_names(view):
    lines = view.to_dot().splitlines()
    assert sum("->" in line for line in lines) == len(view.data.nodes) - 1
    for line in lines:
        bare = line.replace("\\\\", "").replace('\\"', "")
        assert bare.count('"') % 2 == 0


@pytest.mark.parametrize(
    ("name", "start"), [("a.svg", "<svg "), ("a.DOT", "digraph"), ("a.txt", "Joint probability tree")]
)
def test_files_are_written_by_their_suffix(view, tmp_path, name, start):
    view.save(tmp_path / name)
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    assert view._repr_svg_() == view.to_svg()


def test_mistakes_are_told(post, view, tmp_path, rng):
    with pytest.raises(QueryError, match="unknown kind"):
        view.save(tmp_path / "a.pdf")
    with pytest.raises(QueryError, match="cannot write"):
        view.save(tmp_path / "none" / "a.svg")
    with pytest.raises(QueryError, match="no column 'size'"):
        post.tree(["size"])
    with pytest.raises(QueryError, match="max_leaves=0"):
        post.tree(max_leaves=0)
    table = ex.make_table((ex.REAL,), 30, rng)
    with pytest.raises(QueryError, match="not told apart by splits"):
        Posterior.from_circuit(ex.mixture(table), table.schema).tree()


def test_a_split_with_one_side_left_is_not_shown(post, view):
    given = post.condition(view.data.nodes[1].conditions)
    left = given.tree(["count"]).data
    assert len(left.nodes) == 2 * len(left.parts()) - 1
    assert left.nodes[0].n_leaves == view.data.nodes[1].n_leaves < len(view.data.parts())


# --- labels of any length


class CountedText(str):
    """A text that counts how many of its characters are read, slices included."""

    n_read = 0

    def __iter__(self):
        for letter in str.__iter__(self):
            CountedText.n_read += 1
            yield letter

    def __getitem__(self, key):
        found = CountedText(str.__getitem__(self, key))
        CountedText.n_read += len(found)
        return found


@pytest.mark.parametrize("words", ["x" * 20_000, "a b " * 5_000])
def test_a_long_text_is_shortened_in_linear_time(words):
    CountedText.n_read = 0
    shown = svg.fitted(CountedText(words), 100.0, 11.0)
    assert svg.width(shown, 11.0) <= 100.0
    assert shown.endswith("\u2026")
    assert CountedText.n_read < 4 * len(words)


def test_shortened_texts_are_as_long_as_their_room_allows(rng):
    for _ in range(200):
        words = "".join(rng.choice(list("iaW m("), rng.integers(1, 40)))
        room = float(rng.uniform(20.0, 200.0))
        longest = words
        while svg.width(longest + "\u2026", 11.0) > room:
            longest = longest[:-1]
        expected = words if svg.width(words, 11.0) <= room else longest + "\u2026"
        assert svg.fitted(words, room, 11.0) == expected


def test_wrapped_texts_fill_their_first_line(rng):
    for _ in range(200):
        words = " ".join("".join(rng.choice(list("iaWm("), rng.integers(1, 9))) for _ in range(rng.integers(1, 12)))
        lines = svg.wrapped(words, 90.0, 11.0)
        parts = words.split(" ")
        fits = [k for k in range(1, len(parts) + 1) if svg.width(" ".join(parts[:k]), 11.0) <= 90.0]
        if fits:
            assert lines[0] == " ".join(parts[: max(fits)])


def test_a_picture_of_long_labels_holds_them_a_few_times_at_most():
    label = "very " * 4_000
    x = np.linspace(-3.0, 3.0, 200)
    table = bj.as_table(pd.DataFrame({"x": x, "side": np.where(x < 1.0, label, "right")}))
    circuit = bj.learn_jpt(table, np.random.default_rng(0), max_leaves=2)
    picture = bj.Posterior.from_circuit(circuit, table.schema).tree().to_svg()
    assert len(picture) < 10 * len(label)
