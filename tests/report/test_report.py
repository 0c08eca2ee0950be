"""Reports: what stands on the page is what the fit says, whatever a table is called and holds."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import cli
from bayesjpt.defaults import FOLDS, INTERVAL
from bayesjpt.errors import FitFileError, QueryError
from bayesjpt.fitting.held_out import _half_width, held_out_score
from bayesjpt.report.charts import pairs_svg
from bayesjpt.report.pairs import Pair
from bayesjpt.report.summary import why_text
from tests.statistics import LARGEST_Z

NASTY = "<script>alert('x')</script> & \"quoted\" {{ 7 * 7 }} ]]> \u2028"
N_ROW = 160
SECTIONS = ("look", "columns", "pairs", "parts", "outliers", "gaps", "trust", "again")
VOID = {"meta", "link", "br", "img"}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Return rows with labels, gaps, a constant, a text, and names and labels that a page must not obey."""
    rng = np.random.default_rng(1)
    kind = np.where(rng.random(N_ROW) < 0.5, NASTY, "plain")
    size = (rng.gamma(3.0, 1.0, N_ROW) + 6.0 * (kind == "plain")).round(1)
    size[7] = 900.0
    return pd.DataFrame(
        {
            "size": np.where(np.arange(N_ROW) % 9 == 0, np.nan, size),
            f"kind {NASTY}": kind,
            "rings": rng.poisson(30.0, N_ROW),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, N_ROW), "D"),
            "same": 4,
            "text": [f"{NASTY} {k}" for k in range(N_ROW)],
        }
    )


@pytest.fixture(scope="module")
def table(frame) -> bj.Table:
    with pytest.warns(bj.BayesjptWarning):
        return bj.as_table(frame)


@pytest.fixture(scope="module")
def post(table) -> bj.Posterior:
    return bj.fit(table, n_structures=3, draws=4, tune=4, seed=1, cores=1, progress=False)


@pytest.fixture(scope="module")
def page(post, table, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert post.report(path, table=table, name=NASTY) == path
    return path.read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Reads a page as a browser does, as far as tests need it."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text += data


def test_page_has_its_sections_with_headings_and_is_well_formed(page):
    read = Reader(page)
    assert read.open == []
    assert [attrs["id"] for tag, attrs in read.tags if tag == "section"] == list(SECTIONS)
    assert [tag for tag, _ in read.tags].count("h2") == len(SECTIONS)
    assert [tag for tag, _ in read.tags].count("h1") == 1
    tables = [tag for tag, _ in read.tags].count("table")
    assert tables == [tag for tag, _ in read.tags].count("caption") > 3
    pictures = [attrs for tag, attrs in read.tags if tag == "svg"]
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in pictures)
    links = [attrs["href"] for tag, attrs in read.tags if tag == "a"]
    assert links == [f"#{name}" for name in SECTIONS]


def test_what_the_table_says_is_text_and_never_markup(page, table):
    read = Reader(page)
    assert [tag for tag, _ in read.tags].count("script") == 2  # the data and the page's own
    assert "{{" in read.text
    assert "49" not in re.findall(r"quoted\W+(\d+)", read.text)
    assert read.text.count("alert('x')") >= 3
    assert "<script>alert" not in page
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    names = [column["name"] for column in data["columns"]]
    assert names == [name for name in table.names if name != "same"]
    assert data["columns"][1]["labels"] == list(table.schema.columns[1].labels)
    assert NASTY.strip() in data["columns"][1]["labels"]


def test_page_asks_no_network(page):
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#|data:)""", page)
    assert "@import" not in page
    assert "default-src 'none'" in page
    outside = set(re.findall(r"https?://[^\s\"'<)]+", page))
    assert outside == {"http://www.w3.org/2000/svg"}  # the name of a language, never fetched


def test_columns_are_told_as_types_tells_them(page, post, table):
    text = Reader(page).text
    for column in post.types(table):
        assert column.name.split("\u2028")[0] in text
        assert f"{column.certainty}" in text
    assert "160 rows, 6 columns" in text
    assert "(160 different texts)" in text


def test_a_constant_is_told_to_be_one_and_of_no_other_type(page, post, table):
    card = Reader(page[page.index("<h3>same</h3>") :].partition("</article>")[0]).text
    assert "constant, sure" in card
    assert "Why: constant: the only value is '4'" in card
    assert "%" not in card.partition("Why:")[2]
    assert "positive" not in why_text(post.types(table), "same")


def test_histogram_holds_the_shares_of_rows_and_the_model(post, table):
    from bayesjpt.report.contents import contents_of

    found = contents_of(post, table, name="t", held_out=None, rng=np.random.default_rng(1))
    rings = found.columns[2]
    seen = table.values[2]
    by_hand = [
        ((seen >= lo) & (seen < hi)).mean() for lo, hi in zip(rings.axis.edges, rings.axis.edges[1:], strict=False)
    ]
    np.testing.assert_allclose(rings.rows, by_hand)
    lo, hi = float(rings.axis.edges[3]), float(rings.axis.edges[4])
    exact = post.probability(f"rings > {lo} and rings < {hi}").values
    assert rings.fitted.mean[3] == pytest.approx(exact.mean(), abs=1e-9)
    assert rings.fitted.lo[3] <= rings.fitted.mean[3] <= rings.fitted.hi[3]
    assert rings.n_missing == 0
    assert found.columns[0].n_missing == int((~table.observed[0]).sum())


def test_rows_on_a_coarse_grid_are_compared_on_it():
    """Values of 0, .25, ... 2 alone: cells are as wide as what a recorded value stands for, and the model fits."""
    from bayesjpt.report.contents import contents_of

    rng = np.random.default_rng(8)
    table = bj.as_table(pd.DataFrame({"x": rng.binomial(8, 0.4, 400) / 4.0}), kinds={"x": "real"})
    post = bj.fit(table, n_structures=2, draws=8, tune=4, seed=1, cores=1, progress=False)
    column = contents_of(post, table, name="t", held_out=None, rng=rng).columns[0]
    assert column.axis.edges[1] - column.axis.edges[0] == pytest.approx(0.25)
    assert column.rows.sum() == pytest.approx(1.0, abs=0.02)
    assert column.verdict != "differs"


def test_far_row_is_found_with_what_was_expected(post, table, page):
    from bayesjpt.report.contents import contents_of

    found = contents_of(post, table, name="t", held_out=None, rng=np.random.default_rng(1))
    first = found.odd[0]
    assert (first.row, first.column, first.value) == (8, "size", "900")
    assert first.is_far
    lo, hi = (float(end) for end in first.expected.split(" to "))
    assert 0.0 <= lo < hi < 100.0
    (rows,) = [named for what, named in found.to_look_at() if what == "rows far from all others (Outliers)"]
    assert rows.split(", ")[0] == "8"  # of so few draws chance may make another far, never farther


def test_wrong_model_is_told_to_differ(post, table):
    """Rows that another distribution made are met by a gap that chance does not explain."""
    from bayesjpt.report.contents import contents_of

    values = table.values.copy()
    values[2] = np.where(np.arange(N_ROW) % 2, 15.0, 45.0)
    moved = bj.Table(table.schema, values, table.observed)
    found = contents_of(post, moved, name="t", held_out=None, rng=np.random.default_rng(1))
    assert found.columns[2].verdict == "differs"
    assert found.columns[2].gap > 0.3
    true = contents_of(post, table, name="t", held_out=None, rng=np.random.default_rng(1))
    assert true.columns[2].verdict != "differs"


def test_report_of_a_fit_alone_tells_of_the_rows_that_it_keeps(post, tmp_path):
    path = post.report(tmp_path / "few.html")
    text = Reader(path.read_text(encoding="utf-8")).text
    assert "the rows that the fit keeps" in text
    one = post.by_structure()[0]
    bare = replace(one, reference=None).report(tmp_path / "none.html")
    assert "There are no rows at hand" in Reader(bare.read_text(encoding="utf-8")).text


def test_same_fit_gives_the_same_page(post, table, tmp_path):
    pages = [post.report(tmp_path / f"{k}.html", table=table, name="t", command="c").read_bytes() for k in range(2)]
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("column", "whole"), [("rings", "No cell is missing"), ("size", "142 of 160 rows have all their cells")]
)
def test_gaps_of_columns_that_were_left_out_are_told(frame, tmp_path, column, whole):
    texts = [None, *(f"text {k}" for k in range(1, N_ROW))]
    table = bj.as_table(frame[[column]].assign(note=texts))
    post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    page = post.report(tmp_path / "page.html", table=table).read_text(encoding="utf-8")
    assert f"<p>{whole} in the columns of the model." in page
    assert "<p>Columns that were left out have 1 missing cell: note.</p>" in page


def test_table_of_one_column_has_a_report(tmp_path):
    table = bj.as_table(pd.DataFrame({"grade": ["a", "b", "c"] * 20}))
    post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    text = Reader(post.report(tmp_path / "one.html", table=table).read_text(encoding="utf-8")).text
    assert "There are no two columns to compare" in text


def test_paths_that_hold_no_page_are_refused(post, tmp_path):
    with pytest.raises(QueryError, match=r"ends in \.html"):
        post.report(tmp_path / "report.pdf")
    with pytest.raises(FitFileError, match="no folder"):
        post.report(tmp_path / "nowhere" / "report.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(FitFileError, match="is a folder"):
        post.report(tmp_path / "folder.html")


# --- held-out rows


def test_held_out_gain_is_that_of_a_known_dependence():
    """Two equal coins: a row is twice as probable as under independence, log 2 nats, whatever was held out."""
    rng = np.random.default_rng(3)
    coin = np.where(rng.random(400) < 0.5, "heads", "tails")
    table = bj.as_table(pd.DataFrame({"one": coin, "other": coin}))
    found = held_out_score(table, "mspn", rng, n_row=400)
    assert found.n_row == 400
    assert found.gain == pytest.approx(np.log(2.0), abs=0.05)
    assert found.lo > 0.5
    assert "2.0 times as probable" in found.sentence()


def test_held_out_gain_of_independent_columns_is_none():
    rng = np.random.default_rng(4)
    table = bj.as_table(pd.DataFrame({f"x{k}": rng.normal(size=400).round(2) for k in range(3)}))
    found = held_out_score(table, "mspn", rng, n_row=400)
    assert found.lo < 0.05
    assert "more than chance" not in found.sentence()
    assert held_out_score(table.take(range(10)), "mspn", rng, n_row=400) is None


def test_held_out_interval_allows_for_what_the_structures_of_folds_differ_by(rng):
    """Gains of a fold have a part in common, with the variance of a mean of as many rows as were learned from."""
    n_row, n_table = 200, 3000
    n_train = n_row - n_row // FOLDS
    shared = rng.normal(size=(n_table, 1, FOLDS)) / np.sqrt(n_train)
    gains = (rng.normal(size=(n_table, n_row // FOLDS, FOLDS)) + shared).reshape(n_table, n_row)
    held = [abs(gain.mean()) <= _half_width(gain) for gain in gains]
    assert abs(np.mean(held) - INTERVAL) < LARGEST_Z * np.sqrt(INTERVAL * (1.0 - INTERVAL) / n_table)


# --- command line


def test_command_writes_a_page_of_a_table_and_of_a_fit(tmp_path, capfd):
    path = tmp_path / "small table.csv"
    rng = np.random.default_rng(5)
    pd.DataFrame({"x": rng.normal(size=60).round(2), "k": rng.choice(["a", "b"], 60)}).to_csv(path, index=False)
    few = ("--structures", "2", "--seed", "3", "--cores", "1")
    status = cli.run(["report", str(path), "-o", str(tmp_path / "a.html"), *few])
    out, err = capfd.readouterr()
    assert (status, out) == (0, "")
    assert "Wrote" in err
    text = html.unescape((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "small table.csv: what is in this table?" in text
    assert "60 rows, 2 columns" in text
    assert "--seed 3" in text
    fit = tmp_path / "fit.nc"
    assert cli.run(["fit", str(path), "-o", str(fit), "-q", *few, "--draws", "4", "--tune", "2"]) == 0
    assert cli.run(["report", str(fit), "--table", str(path), "-o", str(tmp_path / "b.html"), "-q"]) == 0
    assert "60 rows, 2 columns" in (tmp_path / "b.html").read_text(encoding="utf-8")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("t.csv", "-o", "t.pdf"), "ends in .html"),
        (("t.nc", "-o", "t.html", "--seed", "1"), "--seed with a fit"),
        (("t.csv", "-o", "t.html", "--table", "t.csv"), "--table with a table"),
    ],
)
def test_mistakes_are_told_in_one_line(tmp_path, monkeypatch, capfd, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert cli.run(["report", *arguments]) == 2
    err = capfd.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_codes_for_missing_cells_do_not_stretch_a_picture_and_labels_stand_in_their_order():
    from bayesjpt.report.charts import column_svg
    from bayesjpt.report.contents import contents_of

    rng = np.random.default_rng(9)
    values = np.where(rng.random(300) < 0.1, -999.0, rng.normal(20.0, 4.0, 300).round(1))
    whole = np.where(rng.random(300) < 0.1, -999, rng.poisson(30.0, 300))
    often = rng.choice(["never", "sometimes", "always", "Don't know"], 300, p=[0.1, 0.2, 0.6, 0.1])
    table = bj.as_table(pd.DataFrame({"temp": values, "whole": whole, "often": often}))
    post = bj.fit(table, n_structures=2, draws=4, tune=2, seed=1, cores=1, progress=False)
    found = contents_of(post, table, name="t", held_out=None, rng=rng)
    for column in found.columns[:2]:
        assert column.axis.edges[0] > 0.0
        assert all(column.axis.edges[0] <= place <= column.axis.edges[-1] for place, _ in column.axis.ticks)
        assert column.rows.sum() == pytest.approx(0.9, abs=0.05)
        assert column.fitted.mean.sum() == pytest.approx(0.9, abs=0.07)
    noted = ("a code for missing cells? --na COLUMN=CODE says so", "temp (-999), whole (-999), often (Don't know)")
    assert noted in found.to_look_at()
    picture = column_svg(found.columns[2]).partition(".")[2]
    places = [picture.index(label) for label in ("never", "sometimes", "always", "Don&#x27;t know")]
    assert places == sorted(places)


def test_rows_that_a_fit_keeps_have_their_number_or_are_said_to_have_none(post, table):
    from bayesjpt.posterior.convert import reference_rows
    from bayesjpt.report.contents import contents_of
    from bayesjpt.report.page import page_html

    known = post.noted(n_row=table.n_row)
    told, untold = (contents_of(p, None, name="t", held_out=None, rng=np.random.default_rng(1)) for p in (known, post))
    assert {odd.row for odd in told.odd} <= set((reference_rows(table.n_row) + 1).tolist())
    assert {odd.row for odd in untold.odd} == {0}
    page = page_html(untold, "bayesjpt report fit.nc -o report.html")
    assert "does not tell which rows" in page
    assert 'class="n">row</th>' not in page
    assert "does not tell which rows" not in page_html(told, "bayesjpt report fit.nc -o report.html")


def test_cells_within_what_was_expected_are_no_outliers(post, table):
    from bayesjpt.report.contents import contents_of

    found = contents_of(post, table, name="t", held_out=None, rng=np.random.default_rng(1))
    assert found.odd
    for odd in found.odd:
        if odd.column in ("size", "rings"):
            lo, hi = (float(end) for end in odd.expected.split(" to "))
            assert not lo < float(odd.value) < hi
        assert odd.column or odd.is_far


def test_what_was_expected_of_a_number_is_the_interval_of_predict(post, table):
    from bayesjpt.report.contents import _expected

    rows = table.take(np.arange(1, 9))
    told = post.predict("size", rows, interval=0.9, max_draws=None)
    for (words, _), lo, hi in zip(_expected(post, "size", rows), told["lower"], told["upper"], strict=True):
        assert [float(end) for end in words.split(" to ")] == pytest.approx([lo, hi], abs=0.06)  # words have one digit


def test_long_names_that_begin_alike_are_told_apart_beside_the_picture_of_pairs():
    names = [f"gene_expression_measure_{k:02}" for k in range(20)]
    picture = pairs_svg(names, [Pair(0, 1, 0.5, 0.4, 0.6, True)], {k: k for k in range(20)})
    for k, name in enumerate(names):
        assert picture.count(f"\u2026measure_{k:02}</text>") == 2
        assert f"<title>{name}</title>" in picture


@pytest.mark.parametrize("n", [2, 20, 60])
def test_the_picture_of_pairs_is_no_wider_than_the_page(n):
    names = [f"a measurement of its own, {k:02}" for k in range(n)]
    picture = pairs_svg(names, [Pair(0, 1, 0.5, 0.4, 0.6, True)], {k: k for k in range(n)})
    found = re.search(r'width="(\d+)" height="(\d+)"', picture)
    assert found is not None
    assert int(found[1]) <= 1170
    assert int(found[2]) >= 13 * n  # the height of a name each


@pytest.mark.parametrize("names", [["b", "c"], ["z", "alcohol"], ["\u00e4", "pH"], ["quality", "k"]])
def test_short_names_beside_the_picture_of_pairs_are_whole(names):
    picture = pairs_svg(names, [Pair(0, 1, 0.5, 0.4, 0.6, True)], {0: 0, 1: 1})
    assert "\u2026" not in picture
