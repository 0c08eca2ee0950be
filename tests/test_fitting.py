"""The facade: one seed one answer, what it reports, and what it refuses before any time is spent."""

from __future__ import annotations

import contextlib

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import (
    BayesjptWarning,
    CheckpointError,
    FitFileError,
    LearnerError,
    ModelError,
    SamplingError,
    SchemaError,
    TableError,
)
from bayesjpt.fitting.learning import check_options
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.sampler.saves import read_progress
from tests import examples as ex

FEW = {"n_structures": 1, "draws": 6, "tune": 3, "chains": 2, "progress": False}


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
        "tune": 3,
        "thin": 1,
        "gamma": 2.0,
        "alpha": 0.5,
        "ess": 1.0,
        "prior": "default",
        "type_prior": "members",
        "sampler": "blocked",
        "threshold": 0.4,
    }


def test_data_frame_is_as_good_as_a_table(table):
    assert bj.fit(table.to_frame(), seed=5, cores=1, **FEW).schema == table.schema


def test_learner_may_be_a_function(table):
    asked = []

    def two_parts(given, rng, *, n_part):
        asked.append((given is table, isinstance(rng, np.random.Generator), n_part))
        return ex.mixture(given, n_part)

    post = bj.fit(table, two_parts, seed=5, cores=1, n_part=2, **FEW)
    assert asked == [(True, True, 2)]
    assert post.circuit.digest() == ex.mixture(table, 2).digest()
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
        ({"thin": 0}, SamplingError, "thin = 0"),
        ({"chains": 0}, SamplingError, "chains = 0"),
        ({"cores": 0}, SamplingError, "cores = 0"),
        ({"seed": -1}, SamplingError, "seed = -1"),
        ({"seed": "x"}, SamplingError, "seed = 'x'"),
        ({"learner": "magic"}, LearnerError, "no learner 'magic'"),
        ({"prior": "flat"}, ModelError, "no prior 'flat'"),
        ({"type_prior": "leaves"}, ModelError, "type_prior = 'leaves'; expected one of members, types, columns"),
        ({"sampler": "nuts"}, ModelError, "sampler = 'nuts'; expected one of blocked, collapsed"),
        ({"threshold": 2.0}, LearnerError, "threshold is 2.0"),
        ({"min_row": 9}, LearnerError, "no option 'min_row'; expected one like 'min_rows'"),
        ({"random_seed": 1}, LearnerError, "no option 'random_seed'; expected 'seed'"),
        ({"learner": "jpt", "threshold": 0.3}, LearnerError, "learner 'jpt' has no option 'threshold'"),
        ({"gamma": -1.0}, ModelError, "gamma = -1.0"),
        ({"alpha": float("nan")}, ModelError, "alpha = nan"),
        ({"families": ["gama"]}, SchemaError, "'gama'"),
        ({"families": {"size": []}}, SchemaError, "column 'size' is left without"),
    ],
)
def test_setting_that_makes_no_sense_is_refused_by_name(table, options, error, words):
    with pytest.raises(error) as caught:
        bj.fit(table, **{**FEW, **options})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("learner", "options"),
    [
        ("mspn", {"threshold": 2.0}),
        ("jpt", {"epsilon": -1.0}),
        ("wmispn", {"bins": "equal"}),
        ("wmispn", {"order": 7}),
        ("wmispn", {"p_value": 2.0}),
        ("cutset", {"min_rows": 0}),
    ],
)
def test_what_a_learner_refuses_is_refused_before_kernels_are_compiled_in_the_same_words(table, learner, options):
    with pytest.raises(LearnerError) as late:
        getattr(bj, f"learn_{learner}")(table, 0, **options)
    with pytest.raises(LearnerError) as early:
        check_options(learner, table, options)
    assert str(early.value) == str(late.value)


def test_what_is_no_table_is_refused():
    with pytest.raises(TableError, match="data frame"):
        bj.fit([1.0, 2.0, 3.0])


def test_learner_that_returns_no_circuit_is_refused(table):
    with pytest.raises(LearnerError, match="type str"):
        bj.fit(table, lambda table, rng: "tree", **FEW)


def test_circuit_of_other_columns_is_refused(table):
    other = ex.mixture(bj.as_table(pd.DataFrame({"size": [1.5, 2.5, 3.5] * 10})))
    with pytest.raises(bj.BayesjptError, match="circuit"):
        bj.fit(table, lambda table, rng: other, **FEW)


def test_draws_that_do_not_fit_into_memory_are_refused_before_sampling(table, monkeypatch):
    monkeypatch.delattr(Sweeper, "allocate")
    monkeypatch.setattr("bayesjpt.fitting.learning._compile_kernels", lambda sampler: None)
    with pytest.raises(SamplingError, match=r"would take .* expected at most 80% .* fewer draws"):
        bj.fit(table, **{**FEW, "draws": 10**12})


def test_much_memory_is_announced(table, monkeypatch):
    monkeypatch.setattr("bayesjpt.fitting.facade.LARGE_MEMORY_BYTES", 1)
    with pytest.warns(BayesjptWarning, match=r"sampling takes .* MiB .* of memory"):
        bj.fit(table, seed=5, **FEW)


# --- thinning, families


def test_thinned_draws_are_every_second_one(table):
    every = bj.fit(table, seed=5, cores=1, **{**FEW, "draws": 8})
    second = bj.fit(table, seed=5, cores=1, thin=2, **{**FEW, "draws": 4})
    np.testing.assert_array_equal(every.params.theta[:, 1::2], second.params.theta)
    assert second.settings["thin"] == 2


def test_targets_and_features_of_a_tree_are_on_record(table):
    post = bj.fit(table, "jpt", seed=5, targets=["size"], features=("twice", "colour"), **FEW)
    assert (post.settings["targets"], post.settings["features"]) == ("size", "twice, colour")


def test_families_are_the_only_ones_of_the_circuit(table):
    post = bj.fit(table, seed=5, families=["gamma", "categorical"], **FEW)
    assert set(post.types().shares["size"].likelihoods) == {"gamma"}
    assert post.settings["families"] == "size: gamma; twice: gamma; colour: categorical"


def test_families_of_one_column_leave_the_others_alone_and_the_schema_as_it_was(table):
    post = bj.fit(table, seed=5, families={"size": ["exponential"]}, **FEW)
    assert set(post.types().shares["size"].likelihoods) == {"exponential"}
    assert set(post.types().shares["twice"].likelihoods) == set(
        bj.fit(table, seed=5, **FEW).types().shares["twice"].likelihoods
    )
    assert post.log_density(table).sizes["obs_id"] == table.n_row


def test_families_reach_learners_of_the_user(table):
    post = bj.fit(table, lambda given, rng: ex.mixture(given), families=["normal", "categorical"], seed=5, **FEW)
    assert set(post.types().shares["size"].likelihoods) == {"normal"}


# --- weights of types


def test_ways_to_divide_alpha_give_other_draws_of_the_same_form(table, tmp_path):
    posts = [bj.fit(table, seed=5, type_prior=how, **FEW) for how in ("members", "types", "columns")]
    assert len({post.params.log_weight.tobytes() for post in posts}) == 3
    assert len({post.params.theta.shape for post in posts}) == 1
    posts[2].save(tmp_path / "fit.nc")
    assert same_draws(bj.load(tmp_path / "fit.nc"), posts[2])


@pytest.mark.filterwarnings("ignore:interrupted")
@pytest.mark.parametrize(
    "option", [{"type_prior": "columns"}, {"sampler": "collapsed"}], ids=lambda option: next(iter(option))
)
def test_fit_with_an_option_of_the_sweep_is_resumed_bitwise(table, tmp_path, monkeypatch, option):
    options = FEW | {"seed": 5, "checkpoint": tmp_path / "fit", **option}
    with monkeypatch.context() as patch:
        stop_after(patch, 7)
        with contextlib.suppress(SamplingError):
            bj.fit(table, cores=1, **options)
    undisturbed = bj.fit(table, cores=2, **options | {"checkpoint": None})
    assert same_draws(bj.fit(table, resume=True, cores=2, **options), undisturbed)


def test_several_structures_divide_alpha_in_the_same_way(table):
    post, members = (
        bj.fit(table, seed=5, type_prior=how, **{**FEW, "n_structures": 2}) for how in ("columns", "members")
    )
    assert post.settings["type_prior"] == "columns"
    for own, other in zip(post.by_structure(), members.by_structure(), strict=True):
        assert own.params.log_weight.tobytes() != other.params.log_weight.tobytes()


# --- the collapsed sampler

COLLAPSED = {"sampler": "collapsed", "seed": 5}


def test_a_collapsed_fit_has_other_draws_of_the_same_form_for_any_number_of_cores(table, tmp_path):
    several = FEW | {"n_structures": 2}
    for few in (FEW, several):
        one, two, blocked = bj.fit(table, cores=1, **COLLAPSED, **few), bj.fit(table, cores=2, **COLLAPSED, **few), None
        blocked = bj.fit(table, cores=1, seed=5, **few)
        assert one.settings["sampler"] == "collapsed"
        pairs = zip(*([post] if few is FEW else post.by_structure() for post in (one, two, blocked)), strict=True)
        for first, second, other in pairs:
            assert same_draws(first, second)
            assert first.params.theta.shape == other.params.theta.shape
            assert first.params.theta.tobytes() != other.params.theta.tobytes()
        one.save(tmp_path / "fit.nc")
        assert bj.load(tmp_path / "fit.nc").settings["sampler"] == "collapsed"


# --- checkpoints


def same_draws(one, two) -> bool:
    arrays = [(one.params.theta, two.params.theta), (one.params.log_weight, two.params.log_weight)]
    arrays += [(one.sample_stats[name], two.sample_stats[name]) for name in one.sample_stats]
    return all(a.tobytes() == b.tobytes() for a, b in arrays) and one.settings == two.settings


def stop_after(monkeypatch, n_sweep: int) -> None:
    """Make sweeps raise what Ctrl-C raises after so many of any chain."""
    draw, done = Sweeper.draw, []

    def stopped(self, *given, **how):
        if len(done) == n_sweep:
            raise KeyboardInterrupt
        done.append(1)
        return draw(self, *given, **how)

    monkeypatch.setattr(Sweeper, "draw", stopped)


@pytest.mark.parametrize("n_sweep", [0, 2, 11])
@pytest.mark.filterwarnings("ignore:interrupted")
def test_resumed_fit_is_bitwise_that_of_an_undisturbed_one_and_learns_nothing_again(
    table, tmp_path, monkeypatch, n_sweep
):
    undisturbed = bj.fit(table, seed=5, **FEW)
    with monkeypatch.context() as patch:
        stop_after(patch, n_sweep)
        with contextlib.suppress(SamplingError):
            bj.fit(table, seed=5, cores=1, checkpoint=tmp_path / "fit", **FEW)
    assert sum(read_progress(tmp_path / "fit")[0]) == n_sweep
    monkeypatch.delattr("bayesjpt.structure.mspn.learn_mspn")
    phases = []
    resumed = bj.fit(
        table, cores=2, checkpoint=tmp_path / "fit", resume=True, on_phase=lambda *given: phases.append(given[0]), **FEW
    )
    assert same_draws(resumed, undisturbed)
    assert phases == ["compile", "resume", "sample"]


def test_a_structure_that_the_disk_does_not_take_is_told_as_that_of_a_checkpoint(table, tmp_path, monkeypatch):
    def full(*_):
        raise FitFileError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("bayesjpt.posterior.draws.Posterior.save", full)
        with pytest.raises(CheckpointError, match=r"structure of checkpoint .* no space left"):
            bj.fit(table, seed=5, checkpoint=tmp_path / "fit", **FEW)
    assert not (tmp_path / "fit").exists()


def test_resume_starts_where_nothing_has_begun_and_leaves_the_checkpoint_finished(table, tmp_path):
    first = bj.fit(table, seed=5, checkpoint=tmp_path / "fit", resume=True, **FEW)
    assert same_draws(first, bj.fit(table, seed=5, **FEW))
    assert same_draws(first, bj.fit(table, checkpoint=tmp_path / "fit", resume=True, **FEW))
    with pytest.raises(CheckpointError, match=r"holds a fit already.*resume=True"):
        bj.fit(table, checkpoint=tmp_path / "fit", **FEW)


def test_resume_without_a_checkpoint_is_refused(table):
    with pytest.raises(CheckpointError, match="resume without a checkpoint"):
        bj.fit(table, resume=True, **FEW)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 6}, "seed = 5, not 6"),
        ({"draws": 7}, "draws = 6, not 7"),
        ({"thin": 2}, "thin = 1, not 2"),
        ({"alpha": 0.2}, "alpha = 0.1, not 0.2"),
        ({"type_prior": "types"}, "type_prior = 'members', not 'types'"),
        ({"sampler": "collapsed"}, "sampler = 'blocked', not 'collapsed'"),
        ({"min_rows": 20}, "min_rows = None, not 20"),
        ({"families": ["normal", "categorical"]}, "families = None"),
    ],
)
def test_checkpoint_begun_with_other_options_is_refused_by_name(table, tmp_path, change, words):
    bj.fit(table, seed=5, checkpoint=tmp_path / "fit", **FEW)
    with pytest.raises(CheckpointError, match=words):
        bj.fit(table, checkpoint=tmp_path / "fit", resume=True, **FEW | change)


def test_checkpoint_of_another_table_is_refused(table, tmp_path):
    bj.fit(table, seed=5, checkpoint=tmp_path / "fit", **FEW)
    with pytest.raises(CheckpointError, match="another table"):
        bj.fit(table.take(range(149)), checkpoint=tmp_path / "fit", resume=True, **FEW)
    values = table.values.copy()
    values[0, 3] += 0.1
    changed = bj.Table(table.schema, values, table.observed)
    with pytest.raises(CheckpointError, match="another table"):
        bj.fit(changed, checkpoint=tmp_path / "fit", resume=True, **FEW)


def test_checkpoint_whose_priors_come_out_differently_is_refused(table, tmp_path, monkeypatch):
    bj.fit(table, seed=5, checkpoint=tmp_path / "fit", **FEW)
    monkeypatch.setattr("bayesjpt.sampler.target.Target.digest", lambda self: "0")
    with pytest.raises(CheckpointError, match="plan, priors or cells differ"):
        bj.fit(table, checkpoint=tmp_path / "fit", resume=True, **FEW)


def test_a_learner_that_fails_leaves_no_folder_behind(table, tmp_path):
    def failing(table, rng):
        raise LearnerError("no structure")

    with pytest.raises(LearnerError):
        bj.fit(table, failing, checkpoint=tmp_path / "fit", **FEW)
    assert not (tmp_path / "fit").exists()


# --- interrupts


def test_interrupt_before_the_first_kept_draw_is_an_error_of_ours(table, monkeypatch):
    stop_after(monkeypatch, 0)
    with pytest.raises(SamplingError, match="interrupted before the first kept draw"):
        bj.fit(table, n_structures=1, seed=5, cores=1, draws=6, tune=3, chains=1, progress=False)


def test_interrupt_keeps_the_completed_draws_of_all_chains_warns_and_marks_them(table, monkeypatch):
    undisturbed = bj.fit(table, n_structures=1, seed=5, draws=20, tune=3, chains=2, progress=False)
    stop_after(monkeypatch, 17)
    with pytest.warns(BayesjptWarning, match="interrupted"):
        post = bj.fit(table, n_structures=1, seed=5, cores=1, draws=20, tune=3, chains=2, progress=False)
    assert (post.n_chain, post.n_draw) == (2, 5)
    assert post.settings["interrupted"] == "2 chains of 5 draws"
    np.testing.assert_array_equal(post.params.theta, undisturbed.params.theta[:, :5])


def test_half_of_the_chains_begin_at_random_allocations(table, monkeypatch):
    starts = []
    at_random = Sweeper.at_random
    monkeypatch.setattr(Sweeper, "at_random", lambda self, rng: starts.append(1) or at_random(self, rng))
    bj.fit(table, n_structures=1, seed=5, cores=1, draws=4, tune=0, chains=5, progress=False)
    assert len(starts) == 2


def test_pymc_is_not_loaded(run_python):
    program = """
import sys, pandas as pd, bayesjpt as bj
frame = pd.DataFrame({"grade": ["a", "b", "c"] * 20})
post = bj.fit(frame, n_structures=1, draws=4, tune=2, chains=2, seed=1, progress=False)
print([name for name in ("pymc", "pytensor", "arviz") if name in sys.modules], post.n_draw)
"""
    assert run_python(program).strip() == "[] 4"
