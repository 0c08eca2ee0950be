"""Plots of columns: what is drawn are probabilities that the queries give."""

from __future__ import annotations

import sys
from dataclasses import replace

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from bayesjpt import Posterior, as_table, learn_mspn
from bayesjpt.circuit.arrays import Params
from bayesjpt.errors import QueryError
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.queries.marginals import axes_of, cell_masses
from bayesjpt.queries.mixture_parts import by_likelihood, by_sub_population
from bayesjpt.table.table import Table
from tests import examples as ex

EXACT = 1e-9
"""Relative."""

DAY = replace(ex.REAL, name="day", dtype="datetime", atoms=(), families=())


@pytest.fixture(scope="module")
def table() -> Table:
    return ex.make_table((ex.REAL, ex.COUNT, ex.LABEL, ex.ZEROS, DAY), 60, np.random.default_rng(1))


@pytest.fixture(scope="module")
def post(table) -> Posterior:
    return ex.random_posterior(ex.mixture(table), table, np.random.default_rng(2), n_chain=2, n_draw=3)


@pytest.fixture
def ax():
    """Return an empty plot in a figure that no window knows."""
    return Figure().subplots()


def ends(values) -> np.ndarray:
    return np.quantile(values, [0.05, 0.95])


def test_curve_and_band_are_probabilities_of_cells(post, ax):
    assert post.plot_marginal("real", ax=ax) is ax
    x, y = ax.lines[0].get_data()
    width = x[1] - x[0]
    answer = post.probability(f"{x[40] - width / 2} <= real < {x[40] + width / 2}").to_numpy() / width
    assert y[40] == pytest.approx(answer.mean(), rel=1e-6)
    band = ax.collections[0].get_paths()[0].vertices
    at = band[np.isclose(band[:, 0], x[40]), 1]
    assert (at.min(), at.max()) == pytest.approx(tuple(ends(answer)), rel=1e-6)
    assert ax.get_xlabel() == "real"


def test_evidence_is_given(post, ax):
    post.plot_marginal("real", given="label = 'a'", ax=ax)
    x, y = ax.lines[0].get_data()
    width = x[1] - x[0]
    answer = post.probability(f"{x[50] - width / 2} <= real < {x[50] + width / 2}", "label = 'a'") / width
    assert y[50] == pytest.approx(answer.mean().item(), rel=1e-6)


def test_whole_numbers_are_points_with_error_bars(post, ax):
    post.plot_marginal("count", ax=ax)
    x, y = ax.lines[0].get_data()
    assert (x == np.rint(x)).all()
    for number, height in list(zip(x, y, strict=True))[:3]:
        assert height == pytest.approx(post.probability(f"count = {number:g}").mean().item(), rel=EXACT)
    assert ax.get_ylabel() == "probability"


def test_labels_are_bars(post, table, ax):
    post.plot_marginal("label", table=table, ax=ax)
    names = [label.get_text() for label in ax.get_xticklabels()]
    for name, bar in zip(names, ax.patches, strict=True):
        assert bar.get_height() == pytest.approx(post.probability(f"label = '{name}'").mean().item(), rel=EXACT)


def test_atoms_are_stems_on_an_axis_of_their_own(post, ax):
    post.plot_marginal("zeros", ax=ax)
    right = ax.figure.axes[1]
    heights = [segment[1, 1] for segment in right.collections[0].get_segments()]
    assert heights[0] == pytest.approx(post.probability("zeros = 0").mean().item(), rel=EXACT)


def test_few_fractions_are_stems_alone_beside_their_shares_of_the_rows(ax, rng):
    table = as_table(pd.DataFrame({"share": rng.choice([0.5, 0.8, 1.0], 90), "y": rng.normal(size=90)}))
    post = Posterior.from_circuit(learn_mspn(table, rng, min_rows=90), table.schema)
    post.plot_marginal("share", table=table, ax=ax)
    assert ax.figure.axes == [ax]
    assert ax.get_ylabel() == "probability"
    heights = [segment[1, 1] for segment in ax.collections[0].get_segments()]
    assert heights == pytest.approx([post.probability(f"share = {at}").item() for at in (0.5, 0.8, 1.0)], rel=EXACT)
    shares = [(table.values[0] == at).mean() for at in (0.5, 0.8, 1.0)]
    assert ax.lines[-1].get_ydata().tolist() == pytest.approx(shares)


def test_two_columns_are_a_map_of_their_joint_density(post, table, ax):
    post.plot_marginal(["real", "day"], table=table, ax=ax)
    mesh = ax.collections[0]
    edges = mesh.get_coordinates()
    (x0, y0), (x1, y1) = edges[7, 9], edges[8, 10]
    days = [str(np.datetime64(0, "us") + np.timedelta64(round(day * 86_400e6), "us")) for day in (y0, y1)]
    answer = post.probability(f"{x0} <= real < {x1} and '{days[0]}' <= day < '{days[1]}'").mean().item()
    assert mesh.get_array()[7, 9] == pytest.approx(answer / ((x1 - x0) * (y1 - y0)), rel=1e-4)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("real", "day")
    assert ax.get_yticklabels()[0].get_text().startswith(("19", "20"))


def test_rows_are_drawn_behind(post, table, ax):
    post.plot_marginal("real", table=table, ax=ax)
    area = sum(bar.get_height() * bar.get_width() for bar in ax.patches)
    shown = table.values[0, table.observed[0]]
    edges = ax.patches[0].get_x(), ax.patches[-1].get_x() + ax.patches[-1].get_width()
    assert area == pytest.approx(((shown >= edges[0]) & (shown <= edges[1])).mean(), rel=EXACT)


AXES = {"real": (0, 120), "count": (1, 120), "label": (2, 120), "zeros": (3, 40)}


@pytest.mark.parametrize("by", [by_likelihood, by_sub_population])
@pytest.mark.parametrize("name", AXES)
def test_parts_of_a_column_add_up_to_it(post, by, name):
    one = replace(post, params=Params(*(array[:1] for array in post.params)))  # whose chain is its representative
    position, n_cell = AXES[name]
    (axis,) = axes_of(one, [position], n_cell)
    ((cells, _),) = cell_masses(one, [axis])
    parts = by(one, axis)
    assert np.abs(sum(parts.values()) - cells.mean(axis=0)).max() < EXACT


def test_likelihoods_of_several_structures_add_up_to_their_average(post, table):
    other = ex.random_posterior(ex.two_level(table), table, np.random.default_rng(3), n_chain=2, n_draw=6)
    whole = StackedPosterior([post, other], [1 / 3, 2 / 3])
    (axis,) = axes_of(whole, [0], 50)
    ((cells, _),) = cell_masses(whole, [axis])
    assert np.abs(sum(by_likelihood(whole, axis).values()) - cells.mean(axis=0)).max() < EXACT
    assert {name.split()[0] for name in by_sub_population(whole, axis)} == {"sub-population"}


def test_sub_populations_of_little_weight_are_drawn_together(post, monkeypatch):
    monkeypatch.setattr("bayesjpt.queries.mixture_parts.COMPONENTS", 1)
    (axis,) = axes_of(post, [0], 20)
    first, rest = by_sub_population(post, axis)
    assert first.startswith("sub-population ")
    assert rest == "1 others"


@pytest.mark.parametrize(
    ("column", "by"), [("real", "likelihood"), ("count", "sub-population"), ("label", "likelihood")]
)
def test_what_a_column_is_made_of_is_drawn_and_named(post, ax, column, by):
    position = post.schema.index(column)
    post.plot_marginal(column, by=by, ax=ax)
    (axis,) = axes_of(post, [position], 120)
    expected = (by_likelihood if by == "likelihood" else by_sub_population)(post, axis)
    assert set(expected) <= {text.get_text() for text in ax.get_legend().get_texts()}


@pytest.mark.parametrize(("columns", "by"), [("real", "family"), (("real", "zeros"), "likelihood")])
def test_other_words_for_by_and_two_columns_are_refused(post, ax, columns, by):
    with pytest.raises(QueryError, match="'likelihood' or 'sub-population'"):
        post.plot_marginal(columns, by=by, ax=ax)


def test_a_figure_is_made_where_none_is_given(post, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setitem(matplotlib.rcParams, "backend", "agg")
    axes = post.plot_marginal("real")
    assert axes.figure.number in plt.get_fignums()
    plt.close(axes.figure)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("size", "no column 'size'"),
        ([], "columns none"),
        (["real", "real"], "two different"),
        (["real", "count", "zeros"], "two different"),
        (["real", "label"], "'label' holds labels"),
    ],
)
def test_mistakes_are_told(post, ax, columns, message):
    with pytest.raises(QueryError, match=message):
        post.plot_marginal(columns, ax=ax)


def test_without_matplotlib_the_error_says_how_to_install_it(post, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(QueryError, match="pip install"):
        post.plot_marginal("real")
