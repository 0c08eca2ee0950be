"""Every verb asked of several structures: what it answers is what they answer, put together in proportion."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
import bayesjpt.queries.methods  # queries become methods
import bayesjpt.report  # likewise
from bayesjpt.errors import EvidenceError, QueryError
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.queries.stability import answers_of, distances
from bayesjpt.queries.type_shares import TYPES, _diagnose_structures
from tests import examples as ex
from tests.statistics import LARGEST_Z, dkw_bound

EVENT = "real > 1 and count <= 2"
GIVEN = "label in ('a', 'b')"
N_ROW = 10_000
SUM_TOLERANCE = 1e-12

ASKED = {
    "log_density": lambda post, table: post.log_density(table),
    "log_density given": lambda post, table: post.log_density(table, GIVEN),
    "log_mass": lambda post, table: post.log_mass(table),
    "probability": lambda post, table: post.probability(EVENT, GIVEN),
    "probability of rows": lambda post, table: post.probability("count <= 2", table.take(range(5)), on_zero="nan"),
    "log_probability": lambda post, table: post.log_probability(EVENT, {"count": 1}),
    "expectation": lambda post, table: post.expectation(given=EVENT),
    "variance": lambda post, table: post.variance(["real", "count"]),
    "quantile": lambda post, table: post.quantile([0.1, 0.9], "positive"),
    "cdf": lambda post, table: post.cdf(1.0, "real", table.take(range(5))),
    "confidence_bounds": lambda post, table: post.confidence_bounds("real")["upper"],
    "dependence": lambda post, table: post.dependence(["real", "label"]),
    "mode": lambda post, table: post.mode(GIVEN, 2)["log_mass"],
}
"""Verbs with an answer for each draw."""

OTHERS = {
    "most_probable": lambda post, table, rng: post.most_probable(),
    "sample": lambda post, table, rng: post.sample(5, rng=rng),
    "impute": lambda post, table, rng: post.impute(table, rng=rng),
    "impute_mean": lambda post, table, rng: post.impute_mean(table),
    "outliers": lambda post, table, rng: post.outliers(table),
    "predict": lambda post, table, rng: post.predict("real", table),
    "types": lambda post, table, rng: post.types(),
    "convergence": lambda post, table, rng: post.convergence(),
    "condition": lambda post, table, rng: post.condition(EVENT),
    "constrain": lambda post, table, rng: post.constrain({"count": 1}),
    "marginal": lambda post, table, rng: post.marginal(["real"]),
    "components": lambda post, table, rng: post.components("real"),
    "patterns": lambda post, table, rng: post.patterns(),
    "membership": lambda post, table, rng: post.membership(table),
    "comembership": lambda post, table, rng: post.comembership(table),
    "explain": lambda post, table, rng: post.explain(EVENT),
    "plot_marginal": lambda post, table, rng: post.plot_marginal("real", max_draws=4),
    "tree": lambda post, table, rng: post.tree(),
    "_repr_html_": lambda post, table, rng: post._repr_html_(),
}
REFUSED = {"membership": "each with sub-populations of its own", "tree": "not told apart by splits"}
"""Query methods of a single structure, or that need trees, with their refusals."""


@pytest.fixture(scope="module")
def table():
    return ex.make_table(ex.COLUMNS, 60, np.random.default_rng(1))


@pytest.fixture(scope="module")
def parts(table) -> list[Posterior]:
    """Return two structures with unrelated draws: six and three a chain."""
    rng = np.random.default_rng(2)
    circuits = ex.two_level(table), ex.mixture(table, 3)
    return [ex.random_posterior(c, table, rng, n_draw=n) for c, n in zip(circuits, (6, 3), strict=True)]


@pytest.fixture(scope="module")
def whole(parts) -> StackedPosterior:
    return StackedPosterior(parts, [2 / 3, 1 / 3])


def test_every_verb_is_asked_here():
    registered = {
        name
        for name, method in vars(Posterior).items()
        if inspect.isfunction(method) and method.__module__.startswith(("bayesjpt.queries", "bayesjpt.report"))
    }
    assert registered == {name.split()[0] for name in ASKED} | set(OTHERS)


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_answers_are_those_of_the_structures_side_by_side(whole, parts, table, asked):
    answer = asked(whole, table)
    assert answer.sizes["draw"] == 9
    assert answer["structure"].values.tolist() == [0] * 6 + [1] * 3
    for number, part in enumerate(parts):
        own = answer.isel(draw=answer["structure"] == number).transpose("chain", "draw", ...)
        assert np.array_equal(own.values, asked(part, table).transpose("chain", "draw", ...).values, equal_nan=True)


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_means_over_draws_are_weighted_means_of_the_structures(whole, table, asked):
    means = [asked(each, table).mean(("chain", "draw")) for each in whole.by_structure()]
    expected = sum(weight * mean for weight, mean in zip(whole.weights, means, strict=True))
    together = asked(whole, table).mean(("chain", "draw"))
    assert np.allclose(together, expected, rtol=SUM_TOLERANCE, atol=SUM_TOLERANCE, equal_nan=True)


@pytest.mark.parametrize("name", OTHERS)
def test_other_verbs_answer_or_refuse_with_an_error_of_ours(whole, table, rng, name):
    if name in REFUSED:
        with pytest.raises(QueryError, match=REFUSED[name]):
            OTHERS[name](whole, table, rng)
    else:
        assert OTHERS[name](whole, table, rng) is not None


def test_arviz_takes_answers_as_they_are(whole):
    import arviz as az

    answer = whole.probability(EVENT)
    assert az.hdi(answer).sizes == {"ci_bound": 2}
    assert np.isclose(az.summary(answer)["mean"].iloc[0], float(answer.mean()), atol=0.01)


def test_a_ratio_of_means_is_that_of_all_draws(whole):
    joint = whole.probability(f"({EVENT}) and {GIVEN}").mean()
    expected = float(joint / whole.probability(GIVEN).mean())
    assert float(whole.probability(EVENT, GIVEN, ratio_of_means=True)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    "changed",
    [lambda post: post.condition(EVENT), lambda post: post.constrain({"count": 1}), lambda post: post.marginal("real")],
    ids=["condition", "constrain", "marginal"],
)
def test_posteriors_of_the_structures_keep_their_weights_and_draws(whole, changed):
    found = changed(whole)
    assert np.array_equal(found.weights, whole.weights)
    for own, part in zip(found.by_structure(), whole.by_structure(), strict=True):
        assert own.params.log_weight.tobytes() == changed(part).params.log_weight.tobytes()
    assert found.settings.get("given") == found.by_structure()[0].settings.get("given")


def test_rows_follow_the_mean_of_the_cdfs(whole, rng):
    x = whole.sample(N_ROW, rng=rng, recorded=False).values[0]
    points = np.quantile(x, np.linspace(0.01, 0.99, 25))
    expected = whole.cdf(points, "real").mean(("chain", "draw")).to_numpy()[:, 0]
    assert np.abs((x[None] <= points[:, None]).mean(axis=1) - expected).max() < dkw_bound(N_ROW)


def test_completed_rows_follow_the_mean_of_the_conditionals(whole, rng):
    drawn = whole.sample(N_ROW, {"label": "b", "count": 2}, rng=rng, recorded=False)
    expected = float(whole.probability("real > 1", {"label": "b", "count": 2}).mean())
    share = (drawn.values[0] > 1.0).mean()
    assert (drawn.values[2] == 2.0).all()
    assert abs(share - expected) < LARGEST_Z * np.sqrt(expected * (1.0 - expected) / N_ROW)


def test_imputed_means_are_weighted_means_of_the_structures(whole, table):
    holes = bj.Table(table.schema, table.values, np.arange(5)[:, None] != np.arange(60) % 4)  # a number in each row
    found = whole.impute_mean(holes).cells["expectation"]
    means = [each.impute_mean(holes).cells["expectation"] for each in whole.by_structure()]
    expected = sum(weight * mean for weight, mean in zip(whole.weights, means, strict=True))
    assert int(np.isfinite(found).sum()) == 60
    assert np.allclose(found, expected, equal_nan=True)


def test_outliers_score_rows_and_cells_by_the_average(whole, table):
    rows = table.take(range(8))
    found = whole.outliers(rows)
    row = np.log(np.exp(whole.log_mass(rows)).mean(("chain", "draw")))
    assert np.allclose(found["log_mass"], row)
    observed = rows.observed.copy()
    observed[0] = False
    rest = np.log(np.exp(whole.log_mass(bj.Table(rows.schema, rows.values, observed))).mean(("chain", "draw")))
    assert np.allclose(found["cell_log_mass"].sel(feature="real"), row - rest)
    tails = [part.outliers(rows)["cell_tail"] for part in whole.by_structure()]
    assert np.allclose(
        found["cell_tail"], sum(weight * tail for weight, tail in zip(whole.weights, tails, strict=True))
    )


def test_the_most_probable_row_is_scored_by_the_average(whole):
    found = whole.most_probable()
    row = _as_rows(found)
    assert float(found["log_mass"][0]) == pytest.approx(float(np.log(np.exp(whole.log_mass(row)).mean())))
    for part in whole.by_structure():
        modes = part.mode()["value"].to_numpy().reshape(-1, row.shape[1])
        others = whole.log_mass(pd.DataFrame(modes, columns=row.columns).infer_objects())
        together = np.log(np.exp(others).mean(("chain", "draw")))
        assert float(together.max()) <= float(found["log_mass"][0]) + SUM_TOLERANCE


def _as_rows(found) -> pd.DataFrame:
    return pd.DataFrame(found["value"].values, columns=found["feature"].values).infer_objects()


def test_shares_of_types_are_weighted_means_of_the_structures(whole, parts):
    found, own = whole.types().shares, [part.types().shares for part in parts]
    for column in found:
        first, second = (each[column.name].types for each in own)
        for name, share in column.types.items():
            assert share == pytest.approx(2 / 3 * first.get(name, 0.0) + 1 / 3 * second.get(name, 0.0))


def test_an_explanation_is_of_the_structure_whose_mean_is_nearest_and_names_it(whole):
    found = whole.explain(EVENT, k=2)
    answer = whole.probability(EVENT)
    assert found.answer.equals(answer)
    means = answer.groupby("structure").mean().mean("chain").to_numpy()
    assert found.structure == int(np.argmin(np.abs(means - float(answer.mean()))))
    assert int(answer["structure"][found.draw]) == found.structure
    explained = float(answer.sel(chain=found.chain, draw=found.draw))
    assert sum(part.weight_given * part.probability for part in found.parts) == pytest.approx(explained)
    assert f"structure {found.structure} of 2, the nearest to the mean" in found.headline()


def test_an_ensemble_of_one_is_explained_as_its_structure(parts):
    found = StackedPosterior(parts[:1], [1.0]).explain(EVENT, k=2)
    assert found.structure is None
    assert repr(found) == repr(parts[0].explain(EVENT, k=2))


@pytest.fixture(scope="module")
def trees() -> StackedPosterior:
    rng = np.random.default_rng(5)
    x = rng.normal(size=300)
    table = bj.as_table(
        pd.DataFrame({"x": x, "side": np.where(x < 0.5, "left", "right"), "y": x + rng.normal(size=300)})
    )
    return bj.fit(table, "jpt", n_structures=3, seed=1, draws=6, tune=3, max_leaves=3, progress=False)


def test_a_tree_of_an_ensemble_is_that_of_one_structure_and_names_it(trees):
    data = trees.tree().data
    own = trees.by_structure()[data.structure].tree().data
    assert data.n_structure == 3
    assert [node.conditions for node in data.nodes] == [node.conditions for node in own.nodes]
    assert [node.weight for node in data.nodes] == [node.weight for node in own.nodes]
    shares = trees.types().shares.draws["type_share"].to_numpy()
    distance = distances(trees.split(answers_of(trees, shares).values), trees.weights)
    assert data.structure == int(np.argmin(distance))
    words = f"structure {data.structure} of 3"
    assert words in repr(trees.tree())
    assert words in trees.tree().to_svg()
    assert words in trees.tree().to_dot()


def test_an_ensemble_of_one_tree_is_shown_as_its_structure(trees):
    one = trees.by_structure()[0]
    assert repr(StackedPosterior([one], [1.0]).tree()) == repr(one.tree())


def test_leaves_that_explain_are_those_of_the_nearest_tree(trees):
    found = trees.explain("y > 1", "side = 'right'")
    own = trees.by_structure()[found.structure].explain("y > 1", "side = 'right'")
    assert found.chain is None
    assert [part.name() for part in found.parts] == [part.name() for part in own.parts]
    assert f"leaves of the tree of structure {found.structure} of 3" in found.headline()


def test_a_type_that_another_seed_could_change_is_not_determined(table, rng):
    """The lead of the first type is .14 +- .2 from structure to structure: 40 of them tell, four do not."""
    shares = np.zeros((1, 40, len(TYPES)))
    shares[..., 0], shares[..., 1] = 0.57, 0.43
    shares[:, ::2, 0] += 0.1
    shares[:, ::2, 1] -= 0.1
    shares[:, 1::2, 0] -= 0.1
    shares[:, 1::2, 1] += 0.1
    own = ex.random_posterior(ex.independent(table), table, rng, n_chain=1, n_draw=1)
    many, few = (StackedPosterior([own] * n, np.full(n, 1.0 / n)) for n in (40, 4))
    ess, _, rival = _diagnose_structures(many, shares, 0)
    assert rival == ""
    assert ess == pytest.approx(39.0)  # each structure is a draw
    assert _diagnose_structures(few, shares[:, :4], 0)[2] == "positive"


def test_fewer_draws_are_in_proportion(whole):
    kept, few = some_draws(whole, 6)
    assert kept.tolist() == [1, 4, 7]
    assert [part.n_draw for part in few.by_structure()] == [2, 1]
    assert few.probability(EVENT).values.tolist() == whole.probability(EVENT).values[:, kept].tolist()


def test_a_structure_that_is_left_without_draws_is_left_out(whole):
    kept, few = some_draws(whole, 2)
    assert kept.tolist() == [4]
    assert len(few.by_structure()) == 1
    assert few.weights.tolist() == [1.0]


def test_impossible_evidence_names_the_structure(whole, parts):
    impossible = parts[1].condition("count >= 5")
    both = StackedPosterior([parts[0], impossible], whole.weights)
    with pytest.raises(EvidenceError, match="in structure 1"):
        both.probability("real > 1", "count <= 2")


def test_of_a_single_structure_the_circuit_is_at_hand(parts):
    alone = StackedPosterior(parts[:1], [1.0])
    assert alone.circuit is parts[0].circuit
    assert alone.probability(EVENT).values.tolist() == parts[0].probability(EVENT).values.tolist()


def test_a_posterior_of_one_structure_is_that_structure(parts):
    assert parts[0].by_structure() == (parts[0],)
