"""How far another seed moves an ensemble's answers: the statement against repeated ensembles, and planted errors."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
import bayesjpt.report  # convergence becomes a method
from bayesjpt.circuit.arrays import Params
from bayesjpt.cli_text import of_saved_fit, with_options
from bayesjpt.defaults import STABLE_SHARE
from bayesjpt.errors import QueryError
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.queries import stability as answers
from bayesjpt.queries.stability import answers_of, distances, moves_of, usual_move
from bayesjpt.report.convergence import Convergence, nested_rhat
from bayesjpt.report.stability import MAX_SEED_MOVE, Stability, drift, rhat_of_halves, stability
from tests import examples as ex

N_STRUCTURE = 16
CALIBRATION_TOLERANCE = 0.01
EXACT = 1e-12


def ensemble(rng, n_answer: int, n_structure: int = N_STRUCTURE, between=None) -> list[np.ndarray]:
    """Return draws of an ensemble, (1, 20, n_answer) of each structure, with unlike shares of variance between them."""
    between = np.linspace(0.05, 2.0, n_answer) if between is None else between
    means = between * rng.normal(size=(n_structure, 1, 1, n_answer))
    return list(means + rng.normal(size=(n_structure, 1, 20, n_answer)))


def coverage(rng, *, n_structure: int, share: float, factor: float = 1.0) -> float:
    """Return which share of the answers moves by at most what is announced, when ensembles are repeated."""
    weights = np.full(n_structure, 1.0 / n_structure)
    within = []
    for _ in range(400):
        one, other = (moves_of(ensemble(rng, 20, n_structure), weights) for _ in range(2))
        announced = factor * usual_move(one.scale, float(n_structure), share)
        within.append((np.abs(one.mean - other.mean) / one.width <= announced).mean())
    return float(np.mean(within))


@pytest.mark.parametrize("share", [0.5, STABLE_SHARE])
@pytest.mark.parametrize("n_structure", [4, N_STRUCTURE])
def test_as_many_answers_move_within_what_is_announced_as_are_said_to(rng, share, n_structure):
    found = coverage(rng, n_structure=n_structure, share=share)
    assert share - 2 * CALIBRATION_TOLERANCE < found < share + 4 * CALIBRATION_TOLERANCE


def test_for_a_single_answer_the_announcement_is_exact(rng):
    even = np.full(6, 1.0 / 6.0)
    within = []
    for _ in range(8000):
        one, other = (moves_of(ensemble(rng, 1, 6, between=np.ones(1)), even) for _ in range(2))
        within.append(abs(one.mean - other.mean) / one.width <= usual_move(one.scale, 6.0, STABLE_SHARE))
    assert np.mean(within) == pytest.approx(STABLE_SHARE, abs=CALIBRATION_TOLERANCE)


def test_an_announcement_that_forgets_the_other_fits_own_error_is_caught(rng):
    found = coverage(rng, n_structure=N_STRUCTURE, share=STABLE_SHARE, factor=np.sqrt(0.5))
    assert found < STABLE_SHARE - 4 * CALIBRATION_TOLERANCE


def test_errors_are_standard_deviations_of_means_over_the_root_of_their_number(rng):
    parts = ensemble(rng, 3)
    moves = moves_of(parts, np.full(N_STRUCTURE, 1.0 / N_STRUCTURE))
    means = np.array([part.mean(axis=(0, 1)) for part in parts])
    assert moves.error == pytest.approx(means.std(axis=0, ddof=1) / 4.0, rel=EXACT)
    lo, hi = np.quantile(np.concatenate([part[0] for part in parts]), [0.05, 0.95], axis=0)
    assert moves.width == pytest.approx(hi - lo, rel=EXACT)


def test_errors_of_weighted_averages_follow_the_weights(rng):
    """By simulation: the variance of sum w_k m_k over ensembles is what is estimated, on average."""
    weights = np.array([0.5, 0.3, 0.1, 0.1])
    found = [moves_of(ensemble(rng, 1, 4, between=np.ones(1)), weights) for _ in range(4000)]
    variance = np.var([moves.mean[0] for moves in found])
    assert np.mean([moves.error[0] ** 2 for moves in found]) == pytest.approx(variance, rel=0.1)


def test_what_differs_between_learners_moves_no_answer(rng):
    """By simulation: two learners that disagree make half of the structures each, in every fit."""
    learners, weights = ["one", "other"] * 3, np.array([0.25, 0.05, 0.2, 0.1, 0.25, 0.15])
    apart = np.array([5.0 * (name == "one") for name in learners])[:, None, None, None]
    found = [
        moves_of(list(apart + np.stack(ensemble(rng, 1, 6, between=np.ones(1)))), weights, learners)
        for _ in range(4000)
    ]
    variance = np.var([moves.mean[0] for moves in found])
    assert np.mean([moves.error[0] ** 2 for moves in found]) == pytest.approx(variance, rel=0.1)
    shares = np.array([weights[::2] / 0.7, weights[1::2] / 0.3])
    assert found[0].n_effective == pytest.approx(1.0 + (1.0 / (shares**2).sum(axis=1) - 1.0).sum(), rel=EXACT)
    alone = moves_of(list(apart + np.stack(ensemble(rng, 1, 6))), weights, ["one", *["other"] * 5])
    assert alone.n_effective == pytest.approx(1.0 / (weights**2).sum(), rel=EXACT)


@pytest.fixture(scope="module")
def table():
    return ex.make_table(ex.COLUMNS, 60, np.random.default_rng(1))


@pytest.fixture(scope="module")
def whole(table) -> StackedPosterior:
    rng = np.random.default_rng(2)
    parts = [ex.random_posterior(ex.mixture(table, 2), table, rng, n_chain=1, n_draw=8) for _ in range(5)]
    reference = table.take(range(50))
    return StackedPosterior([replace(part, reference=reference) for part in parts], np.full(5, 0.2))


def test_followed_answers_are_those_of_the_queries(whole, table):
    shares = whole.types().shares.draws["type_share"].to_numpy()
    found = answers_of(whole, shares)
    kinds = list(zip(found.kind, found.name, strict=True))
    means = whole.expectation("real").to_numpy()[..., 0]
    assert np.allclose(found.values[..., kinds.index(("mean", "real"))], means, rtol=EXACT)
    cells = whole.reference.values[0, whole.reference.observed[0]]
    middle = np.quantile(cells, 0.5, method="inverted_cdf")
    cdfs = [found.values[..., k] for k, entry in enumerate(kinds) if entry == ("marginal_cdf", "real")]
    assert any(np.allclose(values, whole.cdf(middle, "real").to_numpy()[..., 0], rtol=1e-9) for values in cdfs)
    count = np.quantile(whole.reference.values[2, whole.reference.observed[2]], 0.5, method="inverted_cdf")
    together = whole.probability((bj.col("real") > middle) & (bj.col("count") > count)).to_numpy()
    assert np.allclose(found.values[..., kinds.index(("pair_probability", "real, count"))], together, rtol=1e-9)
    labels = [found.values[..., k] for k, entry in enumerate(kinds) if entry == ("label_share", "label")]
    assert any(np.allclose(values, whole.probability("label = 'a'").to_numpy(), rtol=1e-9) for values in labels)


def test_pairs_are_the_same_few_for_every_fit_of_a_table(whole, monkeypatch):
    monkeypatch.setattr(answers, "MAX_FOLLOWED_PAIRS", 3)
    shares = whole.types().shares.draws["type_share"].to_numpy()
    names = [
        [name for kind, name in zip(found.kind, found.name, strict=True) if kind == "pair_probability"]
        for found in (answers_of(whole, shares), answers_of(whole.take_draws(np.arange(20)), shares[:, :20]))
    ]
    assert len(names[0]) == 3
    assert names[0] == names[1]


def test_ensembles_are_judged_by_their_stability(whole):
    judged = whole.convergence()
    assert isinstance(judged, Stability)
    assert judged.sentence().startswith("5 structures; another seed moves 95 % of the answers by less than ")
    expected = usual_move(judged.answers["move"].to_numpy(), 5.0, STABLE_SHARE)
    assert judged.move == pytest.approx(expected)
    assert repr(judged).splitlines()[-1] == judged.sentence()
    assert judged.converged == (judged.move <= MAX_SEED_MOVE and not judged.undetermined)


def test_structures_that_are_alike_are_stabler_than_those_that_differ(whole):
    one = whole.by_structure()[0]
    alike = StackedPosterior([one] * 5, np.full(5, 0.2))
    assert alike.convergence().move < 1e-9
    assert whole.convergence().move > 0.1


def test_one_structure_is_judged_by_its_chains(whole):
    assert isinstance(whole.by_structure()[0].convergence(), Convergence)
    assert isinstance(StackedPosterior(whole.by_structure()[:1], [1.0]).convergence(), Convergence)


def test_the_nearest_structure_is_the_one_whose_means_are_nearest(rng):
    parts = [np.full((1, 4, 2), shift) + rng.normal(size=(1, 4, 2)) * 1e-3 for shift in (0.0, 1.1, 2.0, 1.4)]
    assert int(np.argmin(distances(parts, np.full(4, 0.25)))) == 1
    np.testing.assert_array_equal(distances(parts[:1], np.ones(1)), [0.0])


def test_small_tables_fitted_anew_move_as_announced():
    """Real fits: announced by eight fits, and measured between them."""
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 2, 120)
    frame = pd.DataFrame({"x": rng.normal(4.0 * kind, 1.0).round(1), "y": rng.normal(0.0, 1.0 + kind).round(1)})
    table = bj.as_table(frame)
    fits = [bj.fit(table, n_structures=6, draws=8, tune=10, seed=seed, progress=False) for seed in range(8)]
    types = fits[0].types().shares
    judged = [stability(post, types) for post in fits]

    def mean(number: int) -> dict[tuple[str, int], float]:
        found = judged[number].answers
        names = [f"{kind} {name}" for kind, name in zip(found["kind"].values, found["name"].values, strict=True)]
        order = [names[:k].count(name) for k, name in enumerate(names)]
        entries = zip(names, order, found["mean"].values, found["width"].values, strict=True)
        return {(name, k): (m, width) for name, k, m, width in entries if "type_share" not in name}

    means = [mean(number) for number in range(len(fits))]
    within = [
        abs(one[key][0] - other[key][0]) / one[key][1] <= own.move
        for own, one in zip(judged, means, strict=True)
        for other in means
        if other is not one
        for key in one.keys() & other.keys()
    ]
    assert np.mean(within) > 0.85


# --- warm-up, and chains of one structure


def test_halves_of_independent_draws_agree_and_those_of_drifting_ones_do_not(rng):
    parts = ensemble(rng, 4, between=np.ones(4))
    drifting = [part + np.linspace(0.0, 3.0, 20)[:, None] for part in parts]
    assert (rhat_of_halves(parts) < 1.05).all()
    assert (rhat_of_halves(drifting) > 1.2).all()
    assert abs(drift([part[..., :1] for part in parts])) < 4.0
    assert drift([part[..., :1] for part in drifting]) > 4.0


def test_a_warm_up_that_was_too_short_is_told(whole, rng):
    level = np.linspace(-200.0, -100.0, 8)
    climbing = [
        replace(own, sample_stats={"log_likelihood": level[None] + rng.normal(size=(1, 8))})
        for own in whole.by_structure()
    ]

    def taking(*draws: int) -> StackedPosterior:
        chosen = [replace(own, params=Params(*(array[:, draws] for array in own.params))) for own in climbing]
        return StackedPosterior(chosen, whole.weights)

    told = taking(0, 2, 0, 2, 1, 3, 1, 3).convergence().sentence()
    assert "The warm-up was too short" in told
    assert "--tune N" in with_options(told)
    assert "larger tune" not in with_options(told)
    assert told.startswith(of_saved_fit(told))
    assert "warm-up" not in of_saved_fit(told)  # another fit alone would mend it
    assert "warm-up" not in taking(0, 1, 2, 3, 0, 1, 2, 3).convergence().sentence()  # answers stand still
    level = [replace(own, sample_stats={"log_likelihood": rng.normal(size=(1, 8))}) for own in whole.by_structure()]
    assert "warm-up" not in StackedPosterior(level, whole.weights).convergence().sentence()


def test_structures_of_which_one_has_nearly_all_weight_tell_nothing_about_another_seed():
    """Student's t has no bounds there: a boosted fit said that answers move by less than 7e63 % of their intervals."""
    table = bj.as_table(pd.DataFrame({"size": np.random.default_rng(1).gamma(2.0, 1.0, 60).round(1)}))
    post = bj.fit(table, n_structures=2, draws=5, tune=2, seed=1, cores=1, progress=False)
    judged = StackedPosterior(post.by_structure(), [0.999, 0.001]).convergence()
    said = "2 structures; too few carry weight to tell how far another seed moves answers. Ask for more structures."
    assert judged.sentence().startswith(said)
    assert not judged.converged
    assert "e+" not in repr(judged)
    assert max(map(len, repr(judged).splitlines()[:-1])) < 80


def test_structures_of_a_single_chain_are_judged_without_the_diagnostics_of_chains(monkeypatch):
    """To load ArviZ takes longer than the judging itself."""
    table = bj.as_table(pd.DataFrame({"size": np.random.default_rng(1).gamma(2.0, 1.0, 60).round(1)}))
    post = bj.fit(table, n_structures=2, draws=5, tune=2, seed=1, cores=1, progress=False)
    monkeypatch.setitem(sys.modules, "arviz_stats.base.array", None)
    assert post.convergence().n_structure == 2


def test_nested_rhat_is_that_of_the_definition(rng):
    values = rng.normal(size=(6, 10, 2)) + np.repeat([0.0, 2.0], 3)[:, None, None]
    groups = np.repeat([0, 1], 3)
    means = [values[groups == g].mean(axis=(0, 1)) for g in (0, 1)]
    within = []
    for g in (0, 1):
        chains = values[groups == g]
        within.append(chains.mean(axis=1).var(axis=0, ddof=1) + chains.var(axis=1, ddof=1).mean(axis=0))
    expected = np.sqrt(1.0 + np.var(means, axis=0, ddof=1) / np.mean(within, axis=0))
    assert nested_rhat(values, groups) == pytest.approx(expected, rel=EXACT)
    assert (nested_rhat(values - values.mean(axis=1, keepdims=True), groups) < 1.01).all()
    assert (nested_rhat(values, np.array([0, 1, 0, 1, 0, 1])) < nested_rhat(values, groups)).all()


def test_superchains_of_one_structure_are_compared(table, rng):
    post = ex.random_posterior(ex.mixture(table, 2), table, rng, n_chain=4, n_draw=6)
    judged = post.convergence(superchains=[0, 1, 0, 1])
    assert judged.nested
    assert judged.sentence().startswith(("Superchains agree: nested R-hat", "Superchains do not agree yet: nested"))


@pytest.mark.parametrize(
    ("superchains", "message"),
    [
        ([0, 1], "a whole number for each of 4 chains"),
        ([0.5, 1.0, 1.0, 0.5], "a whole number for each of 4 chains"),
        ([3, 3, 3, 3], "one superchain"),
        ([0, 0, 1, 1], "superchain 0 with chains from the learner"),
    ],
)
def test_superchains_that_say_nothing_are_refused(table, rng, superchains, message):
    post = ex.random_posterior(ex.mixture(table, 2), table, rng, n_chain=4, n_draw=6)
    with pytest.raises(QueryError, match=message):
        replace(post, settings={"seed": 1}).convergence(superchains=superchains)


def test_superchains_of_an_ensemble_are_refused(whole):
    with pytest.raises(QueryError, match=r"superchains of 5 structures.*by_structure"):
        whole.convergence(superchains=[0])
