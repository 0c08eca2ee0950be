"""The facade: one seed one answer, what it reports, and what it refuses before any time is spent."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptWarning, LearnerError, ModelError, SamplingError, TableError
from bayesjpt.model.gibbs_step import CircuitGibbs
from tests import zoo

FEW = {"draws": 6, "tune": 3, "chains": 2, "progress": False}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    size = rng.gamma(3.0, 1.0, 150).round(1)
    frame = pd.DataFrame({"size": size, "twice": (2.0 * size + rng.normal(0.0, 0.3, 150)).round(1)})
    return bj.as_table(frame.assign(colour=rng.choice(["red", "white", "none"], 150)))


def test_same_seed_gives_the_same_draws_whatever_the_number_of_cores(table):
    one, two = (bj.fit(table, seed=5, cores=cores, **FEW) for cores in (1, 2))
    assert one.circuit.digest() == two.circuit.digest()
    assert one.params.theta.tobytes() == two.params.theta.tobytes()
    assert one.params.log_weight.tobytes() == two.params.log_weight.tobytes()


def test_another_seed_gives_other_draws(table):
    one, two = (bj.fit(table, seed=seed, cores=1, **FEW) for seed in (5, 6))
    assert one.params.theta.shape != two.params.theta.shape or not np.array_equal(one.params.theta, two.params.theta)


def test_seed_that_was_drawn_is_kept_and_gives_the_same_draws_again(table):
    first = bj.fit(table, cores=1, **FEW)
    again = bj.fit(table, cores=1, seed=first.settings["seed"], **FEW)
    assert first.params.theta.tobytes() == again.params.theta.tobytes()


def test_settings_say_how_the_fit_was_made(table):
    post = bj.fit(table, seed=5, cores=1, gamma=2, alpha=0.5, threshold=0.4, **FEW)
    assert post.settings == {
        "learner": "mspn",
        "seed": 5,
        "gamma": 2.0,
        "alpha": 0.5,
        "prior": "default",
        "threshold": 0.4,
    }


def test_data_frame_is_as_good_as_a_table(table):
    assert bj.fit(table.to_frame(), seed=5, cores=1, **FEW).schema == table.schema


def test_learner_may_be_a_function(table):
    asked = []

    def two_parts(given, rng, *, n_part):
        asked.append((given is table, isinstance(rng, np.random.Generator), n_part))
        return zoo.mixture(given, n_part)

    post = bj.fit(table, two_parts, seed=5, cores=1, n_part=2, **FEW)
    assert asked == [(True, True, 2)]
    assert post.circuit.digest() == zoo.mixture(table, 2).digest()
    assert post.settings["learner"] == "two_parts"


def test_table_of_one_category_is_fitted_without_any_sum():
    table = bj.as_table(pd.DataFrame({"colour": ["red", "white", "none"] * 20}))
    post = bj.fit(table, seed=5, cores=1, **FEW)
    assert post.circuit.n_edge == 0
    assert post.types()["colour"].type == "nominal"


def test_phases_are_reported_in_order_with_their_seconds(table):
    phases = []
    bj.fit(table, seed=5, cores=1, on_phase=lambda phase, seconds: phases.append((phase, seconds)), **FEW)
    assert [phase for phase, _ in phases] == ["compile", "learn", "sample"]
    assert all(seconds > 0.0 for _, seconds in phases)


def test_without_progress_nothing_is_printed(table, capfd, caplog):
    bj.fit(table, seed=5, cores=2, **FEW)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"draws": 0}, SamplingError, "draws = 0"),
        ({"draws": 2.5}, SamplingError, "draws = 2.5"),
        ({"draws": True}, SamplingError, "draws = True"),
        ({"tune": -1}, SamplingError, "tune = -1"),
        ({"chains": 0}, SamplingError, "chains = 0"),
        ({"cores": 0}, SamplingError, "cores = 0"),
        ({"seed": -1}, SamplingError, "seed = -1"),
        ({"seed": "x"}, SamplingError, "seed = 'x'"),
        ({"learner": "magic"}, LearnerError, "no learner 'magic'"),
        ({"prior": "flat"}, ModelError, "no prior 'flat'"),
        ({"threshold": 2.0}, LearnerError, "threshold is 2.0"),
        ({"gamma": -1.0}, ModelError, "gamma = -1.0"),
        ({"alpha": float("nan")}, ModelError, "alpha = nan"),
    ],
)
def test_setting_that_makes_no_sense_is_refused_by_name(table, options, error, words):
    with pytest.raises(error) as caught:
        bj.fit(table, **{**FEW, **options})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_table_is_refused():
    with pytest.raises(TableError, match="data frame"):
        bj.fit([1.0, 2.0, 3.0])


# --- interrupts


def interrupt_after(monkeypatch, n_step: int) -> None:
    """Make the step raise what Ctrl-C raises after so many sweeps of any chain."""
    step, done = CircuitGibbs.step, []

    def interrupted(self, point):
        if len(done) == n_step:
            raise KeyboardInterrupt
        done.append(1)
        return step(self, point)

    monkeypatch.setattr(CircuitGibbs, "step", interrupted)


def test_interrupt_before_the_first_kept_draw_is_an_error_of_ours(table, monkeypatch):
    interrupt_after(monkeypatch, 0)
    with pytest.raises(SamplingError, match="interrupted before the first kept draw"):
        bj.fit(table, seed=5, cores=1, draws=6, tune=3, chains=1, progress=False)


def test_interrupt_keeps_the_completed_draws_warns_and_marks_them(table, monkeypatch):
    interrupt_after(monkeypatch, 8)
    with pytest.warns(BayesjptWarning, match="interrupted"):
        post = bj.fit(table, seed=5, cores=1, draws=20, tune=3, chains=1, progress=False)
    assert (post.n_chain, post.n_draw) == (1, 5)
    assert post.settings["interrupted"] == "1 chains of 5 draws"


def test_half_of_the_chains_begin_at_random_allocations(table, monkeypatch):
    starts = []
    learned, at_random = CircuitGibbs.learned_point, CircuitGibbs.random_point
    monkeypatch.setattr(CircuitGibbs, "learned_point", lambda self: starts.append("learned") or learned(self))
    monkeypatch.setattr(CircuitGibbs, "random_point", lambda self, rng: starts.append("random") or at_random(self, rng))
    bj.fit(table, seed=5, cores=1, draws=4, tune=0, chains=3, progress=False)
    assert starts == ["learned", "random", "learned"]
