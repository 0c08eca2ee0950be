"""Boosted cutset networks against the definition, written out row by row; what cannot be boosted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

import bayesjpt as bj
from bayesjpt.errors import LearnerError
from bayesjpt.fitting import boosting
from bayesjpt.fitting.ensemble import Ensemble, derived_seed
from bayesjpt.fitting.learning import LearnerFunction
from tests.structure.test_cutset import binary

EQUAL = 1e-9
SEARCHED = 1e-5
"""Of a share that a search finds, and so of densities."""
N, SEED, ESS = 4, 3, 0.5
OPTIONS = {"select": "entropy", "leaf": "bernoulli", "min_rows": 200, "min_columns": 1, "ess": ESS}


@pytest.fixture(scope="module")
def table():
    return bj.as_table(binary(np.random.default_rng(8), 300, 5), other=False)


def boosted(table, tell=None):
    ensemble = Ensemble((LearnerFunction("cutset"),), N, SEED, OPTIONS, {"ess": ESS}, "none", 1)
    return boosting.boost(ensemble, table, table, n_chain=1, tell=tell)


def probabilities(circuit, table) -> np.ndarray:
    """Return the probability of each row at the posterior mean of the circuit's weights, by the general pass."""
    return np.exp(bj.Posterior.from_circuit(circuit, table.schema).log_density(table).values.ravel())


def by_definition(table) -> tuple[np.ndarray, np.ndarray]:
    """Return shares of all networks, and the density of each row of the table under their mixture."""
    shares, total = np.zeros(N), np.zeros(table.n_row)
    for number in range(N):
        seed = SEED if number == 0 else derived_seed(SEED, 1, number)
        rows = np.arange(table.n_row)
        if number > 0:
            improbable = np.array([1.0 / p for p in total])
            rng = np.random.default_rng(derived_seed(seed, 4))
            rows = rng.choice(table.n_row, table.n_row, p=improbable / improbable.sum())
        learn_seed, _ = np.random.SeedSequence(seed).spawn(2)
        circuit = bj.learn_cutset(table.take(rows), np.random.default_rng(learn_seed), **OPTIONS)
        own = probabilities(circuit, table)
        share = 1.0
        if number > 0:
            found = minimize_scalar(
                lambda s, f=total, c=own: -np.log((1.0 - s) * f + s * c).mean(), bounds=(0.0, 1.0), method="bounded"
            )
            share = found.x
        shares *= 1.0 - share
        shares[number] = share
        total = (1.0 - share) * total + share * own
    return shares, total


def test_shares_and_networks_are_those_of_the_definition(table, monkeypatch):
    monkeypatch.setattr(boosting, "without_small", lambda weights, least: weights)
    told = []
    networks, shares = boosted(table, lambda *done: told.append(done))
    expected, density = by_definition(table)
    assert (shares > 0.01).sum() > 1
    np.testing.assert_allclose(shares, expected, atol=10 * SEARCHED)
    logs = [boosting._mean_log_density(network, table) for network in networks]
    np.testing.assert_allclose(shares @ np.exp(logs), density, rtol=10 * SEARCHED)
    assert told == [(k + 1, N) for k in range(N)]


def test_rows_that_are_probable_in_place_of_improbable_ones_are_noticed(table, monkeypatch):
    monkeypatch.setattr(boosting, "without_small", lambda weights, least: weights)
    draw = boosting.drawn_rows
    monkeypatch.setattr(boosting, "drawn_rows", lambda log_density, seed: draw(-log_density, seed))
    assert np.abs(boosted(table)[1] - by_definition(table)[0]).max() > 0.01


def test_networks_of_many_sorted_rows_are_learned_from_rows_of_the_whole_table(monkeypatch):
    monkeypatch.setattr(boosting, "LEARN_ROWS", 100)
    frame = binary(np.random.default_rng(8), 1000, 5)
    sorted_table, seen = bj.as_table(frame.sort_values("a"), other=False), []

    def learner(table, rng, **options):
        seen.append(table)
        return bj.learn_cutset(table, rng, **options)

    ensemble = Ensemble((LearnerFunction(learner),), 2, SEED, OPTIONS, {"ess": ESS}, "none", 1)
    boosting.boost(ensemble, sorted_table, sorted_table, n_chain=1, tell=None)
    assert [own.n_row for own in seen] == [100, 100]
    assert all(0.3 < own.values[0].mean() < 0.7 for own in seen)


@pytest.mark.parametrize(("new", "share"), [([0.1, 0.1], 0.0), ([0.9, 0.9], 1.0), ([0.9, 0.2], 0.5)])
def test_shares_are_where_rows_are_most_probable(new, share):
    old = np.log([0.2, 0.6] if share == 0.5 else [0.3, 0.3])
    found = boosting.best_share(old, np.log(new))
    values = [boosting.mixed(s, old, np.log(new)).mean() for s in np.linspace(0.0, 1.0, 1001)]
    assert found == pytest.approx(np.argmax(values) / 1000, abs=1e-3)
    assert found == pytest.approx(share, abs=0.5 if share == 0.5 else EQUAL)


def test_rows_impossible_under_one_density_have_a_share_inside():
    with np.errstate(divide="ignore"):
        found = boosting.best_share(np.log([0.0, 1.0]), np.log([1.0, 0.0]))
    assert found == pytest.approx(0.5, abs=EQUAL)


def test_a_fit_has_draws_by_shares_and_one_seed_one_answer(table):
    def fit():
        return bj.fit(
            table, "cutset", n_structures=N, weights="boosting", draws=5, seed=SEED, progress=False, **OPTIONS
        )

    seen = []
    post = bj.fit(
        table, "cutset", n_structures=N, weights="boosting", draws=5, seed=SEED, progress=False,
        on_structure=seen.append, **OPTIONS,
    )  # fmt: skip
    shares = boosted(table)[1]
    assert post.weights.tolist() == shares[shares > 0.0].tolist()
    assert (post.n_chain, post.n_draw, post.settings["weights"]) == (1, 5 * N, "boosting")
    assert [len(own.weights) for own in seen] == [len(post.weights)]
    assert post.log_density(table).values.tobytes() == fit().log_density(table).values.tobytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learner": "hclt"}, "several structures by cutset"),
        ({"n_structures": 1}, "several structures by cutset"),
        ({"checkpoint": "folder"}, "none"),
        ({"time": 1.0}, "even weights"),
        ({"weights": "boosted"}, "one of even, stacking, boosting"),
        ({"leaf": "dictionary"}, "leaf = 'dictionary'; expected leaves that are counts of labels"),
    ],
)
def test_what_cannot_be_boosted_is_told(table, change, words):
    asked = {"learner": "cutset", "n_structures": 3, "weights": "boosting", "progress": False} | change
    with pytest.raises(bj.BayesjptError, match=words):
        bj.fit(table, **asked)


@pytest.mark.parametrize(
    ("column", "words"),
    [([0.31, 1.7, 0.2, 5.5] * 10, "'x' of numbers"), (["a", None, "b", None] * 10, "'x' with missing cells")],
)
def test_numbers_and_missing_cells_are_refused(column, words):
    frame = pd.DataFrame({"x": column, "y": ["a", "b"] * 20})
    with pytest.raises(LearnerError, match=f"column {words}; expected complete rows of labels"):
        bj.fit(bj.as_table(frame), "cutset", n_structures=2, weights="boosting", seed=1, progress=False)
