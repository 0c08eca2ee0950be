"""Fits of several structures: one seed one answer, short replicates with even weights, and going on after a kill."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
import bayesjpt.queries.methods  # queries become methods
from bayesjpt.errors import BayesjptWarning, CheckpointError, LearnerError, ModelError, SamplingError, SchemaError
from bayesjpt.fitting import ensemble
from bayesjpt.fitting.ensemble import Crew, Ensemble
from bayesjpt.fitting.learning import LearnerFunction
from bayesjpt.kernels.sweeper import Sweeper
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.sampler.checkpoint import Checkpoint
from bayesjpt.sampler.structures_folder import StructuresFolder, structures_done
from tests import examples as ex
from tests.structure.test_cutset import binary

FEW = {"draws": 6, "tune": 3, "progress": False}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    size = rng.gamma(3.0, 1.0, 150).round(1)
    frame = pd.DataFrame({"size": size, "twice": (2.0 * size + rng.normal(0.0, 0.3, 150)).round(1)})
    return bj.as_table(frame.assign(colour=rng.choice(["red", "white", "none"], 150)))


def by_chance(table, rng):
    """Return two sub-populations of random rows: as quick as a learner can be that depends on seed and rows."""
    parts = np.split(rng.permutation(table.n_row), [table.n_row // 2])
    products = tuple(ex.Product(tuple(ex.ColumnLeaf(k, part) for k in range(table.n_column))) for part in parts)
    return ex.build_circuit(ex.Sum(products, tuple(part.size for part in parts)), table)


def same(one, other) -> bool:
    """Return whether two posteriors have the same structures and draws, to the last bit."""
    return one.weights.tolist() == other.weights.tolist() and all(
        a.circuit.digest() == b.circuit.digest()
        and a.params.theta.tobytes() == b.params.theta.tobytes()
        and a.params.log_weight.tobytes() == b.params.log_weight.tobytes()
        and dict(a.settings) == dict(b.settings)
        for a, b in zip(one.by_structure(), other.by_structure(), strict=True)
    )


@pytest.fixture(scope="module")
def post(table) -> StackedPosterior:
    return bj.fit(table, n_structures=4, seed=5, cores=1, **FEW)


def test_default_fit_is_an_ensemble_of_short_chains_with_even_weights(table):
    post = bj.fit(table, seed=5, progress=False)
    assert len(post.by_structure()) == 16
    assert np.ptp(post.weights) == 0.0
    assert {(own.n_chain, own.n_draw) for own in post.by_structure()} == {(1, 20)}
    assert len({own.circuit.digest() for own in post.by_structure()}) > 1
    assert post.settings["tune"] == 30


def test_draws_are_the_same_for_any_number_of_cores(table, post):
    assert same(bj.fit(table, n_structures=4, seed=5, cores=2, **FEW), post)


def test_the_first_structure_is_that_of_a_fit_of_one(table, post):
    one = bj.fit(table, n_structures=1, seed=5, chains=1, **FEW)
    first = post.by_structure()[0]
    assert first.circuit.digest() == one.circuit.digest()
    assert first.params.theta.tobytes() == one.params.theta.tobytes()


def test_answers_are_averages_over_the_structures(post):
    answer = post.probability("size > 3 and colour = 'red'")
    means = [float(own.probability("size > 3 and colour = 'red'").mean()) for own in post.by_structure()]
    assert float(answer.mean()) == pytest.approx(np.mean(means), rel=1e-12)
    assert answer["structure"].to_numpy().tolist() == np.repeat(range(4), 6).tolist()


@pytest.mark.parametrize(("halved_from", "expected"), [(151, [150, 150, 150]), (150, [150, 75, 75])])
def test_structures_of_large_tables_are_learned_from_half_of_the_rows(table, monkeypatch, halved_from, expected):
    monkeypatch.setattr(ensemble, "HALVED_ROWS", halved_from)
    seen, sampled = [], []

    def counted(given, rng):
        seen.append(given.n_row)
        return by_chance(given, rng)

    counted.__name__ = "counted"
    take = bj.fit(table, counted, n_structures=3, seed=5, cores=1, **FEW)
    assert seen == expected
    sampled += [own.settings["learner"] for own in take.by_structure()]
    assert sampled == ["counted"] * 3


@pytest.mark.parametrize("learner", ["jpt", bj.learn_jpt])
def test_trees_without_chance_are_learned_from_bootstrap_samples_of_small_tables(table, learner):
    post = bj.fit(table, learner, n_structures=4, seed=5, **FEW)
    assert len({own.circuit.digest() for own in post.by_structure()}) == 4
    assert np.isfinite(post.log_density(table)).all()


def without_chance(table, rng):
    return bj.learn_jpt(table, rng)


def spawning(table, rng):
    return by_chance(table, rng.spawn(1)[0])


def test_structures_of_functions_without_chance_differ_whatever_the_number_of_cores(table):
    found = [bj.fit(table, without_chance, n_structures=4, seed=5, cores=cores, **FEW) for cores in (1, 2)]
    assert len({own.circuit.digest() for own in found[0].by_structure()}) == 4
    assert same(*found)


@pytest.mark.parametrize("function", [by_chance, spawning])
def test_functions_that_draw_at_random_see_all_rows_whatever_their_name(table, function):
    seen = []

    def jpt(given, rng):
        seen.append(given)
        return function(given, rng)

    post = bj.fit(table, jpt, n_structures=3, seed=5, cores=1, **FEW)
    assert len(seen) == 3
    assert all(np.array_equal(given.values, table.values, equal_nan=True) for given in seen)
    assert len({own.circuit.digest() for own in post.by_structure()}) == 3


def test_functions_without_chance_are_resampled_whatever_their_name(table):
    def mspn(given, rng):
        return bj.learn_jpt(given, rng)

    post = bj.fit(table, [mspn, by_chance], n_structures=4, seed=5, cores=1, **FEW)
    assert len({own.circuit.digest() for own in post.by_structure()[::2]}) == 2


@pytest.mark.parametrize(("learner", "options"), [("tree_mixture", {"n_components": 1}), ("hclt", {"n_states": 1})])
def test_learners_that_draw_one_of_one_see_bootstrap_samples(rng, learner, options):
    table = bj.as_table(binary(rng, 200, 5), other=False)
    learn = getattr(bj, f"learn_{learner}")
    assert learn(table, 1, **options).digest() == learn(table, 2, **options).digest()
    of_one, of_two = (
        Ensemble((LearnerFunction(learner),), 2, 1, {name: n}, {}, "bootstrap", 1) for n in (1, 2) for name in options
    )
    assert not np.array_equal(of_one.rows(1, table, np.random.default_rng(1)).values, table.values)
    assert of_one.rows(0, table, np.random.default_rng(1)) is table
    assert of_two.rows(1, table, np.random.default_rng(1)) is table


def test_trees_that_hold_rows_out_at_random_see_all_rows(table, monkeypatch):
    taken = []
    monkeypatch.setattr(type(table), "take", lambda *_: taken.append(1))
    found = ensemble.Ensemble((bj.learn_jpt,), 2, 1, {"validation": 0.2}, {}, "bootstrap", 1)
    assert found.rows(1, table, np.random.default_rng(1)) is table
    assert not taken


@pytest.mark.parametrize(("n_row", "n_column", "options"), [(250, 6, {}), (400, 4, {}), (250, 6, {"prune": 0.2})])
def test_networks_that_nothing_divides_are_learned_from_samples(rng, n_row, n_column, options):
    table = bj.as_table(binary(rng, n_row, n_column), other=False)
    found = Ensemble((LearnerFunction("cutset"),), 4, 1, options, {}, "bootstrap", 1)
    seen = [found.rows(k, table, np.random.default_rng(k)).values for k in range(4)]
    assert seen[0] is table.values
    assert len({values.tobytes() for values in seen}) == 4
    divided = Ensemble(
        (LearnerFunction("cutset"),), 4, 1, options | {"min_rows": 100, "min_columns": 2}, {}, "bootstrap", 1
    )
    assert divided.rows(1, table, np.random.default_rng(1)) is table


def test_default_networks_of_few_rows_differ(rng):
    post = bj.fit(binary(rng, 250), "cutset", seed=1, progress=False)
    assert len({one.circuit.digest() for one in post.by_structure()}) > 1


def test_leaves_that_end_where_their_rows_end_are_learned_from_all_rows(table, monkeypatch):
    monkeypatch.setattr(ensemble, "HALVED_ROWS", 100)
    post = bj.fit(table, "jpt", n_structures=2, families=["quantile", "categorical"], seed=1, **FEW)
    assert np.isfinite(post.log_density(table)).all()


def test_learners_take_turns_and_the_first_of_each_sees_all_rows(table, monkeypatch):
    monkeypatch.setattr(ensemble, "HALVED_ROWS", 100)
    seen = {"one": [], "two": []}

    def one(given, rng):
        seen["one"].append(given.n_row)
        return by_chance(given, rng)

    def two(given, rng):
        seen["two"].append(given.n_row)
        return ex.independent(given)

    post = bj.fit(table, [one, two], n_structures=4, seed=5, cores=1, **FEW)
    assert seen == {"one": [150, 75], "two": [150, 75]}
    assert [own.settings["learner"] for own in post.by_structure()] == ["one", "two", "one", "two"]


def test_functions_of_the_users_are_called_by_one_thread_at_a_time(table):
    inside, most = [], []

    def counted(given, rng):
        inside.append(1)
        most.append(len(inside))
        circuit = by_chance(given, rng)
        inside.pop()
        return circuit

    bj.fit(table, counted, n_structures=6, seed=5, cores=2, **FEW)
    assert max(most) == 1


def test_several_chains_of_a_structure_begin_at_both_starts(table, monkeypatch):
    starts = []
    at_random = Sweeper.at_random
    monkeypatch.setattr(Sweeper, "at_random", lambda self, rng: starts.append(1) or at_random(self, rng))
    post = bj.fit(table, by_chance, n_structures=2, chains=2, seed=5, cores=1, **FEW)
    assert (post.n_chain, post.n_draw) == (2, 12)
    assert len(starts) == 2


# --- what is kept


def killed_at(monkeypatch, count: int, error: BaseException) -> list[int]:
    """Let learning fail at its count-th call; return the numbers of the structures that are learned."""
    original, calls = Ensemble.learn, []

    def learn(self, number, *args):
        calls.append(number)
        if len(calls) == count:
            raise error
        return original(self, number, *args)

    monkeypatch.setattr(Ensemble, "learn", learn)
    return calls


def test_resumed_fit_is_that_of_an_undisturbed_one_and_redoes_nothing(table, post, tmp_path, monkeypatch):
    calls = killed_at(monkeypatch, 3, SamplingError("killed"))
    options = {"n_structures": 4, "checkpoint": tmp_path / "kept", **FEW}
    with pytest.raises(SamplingError, match="killed"):
        bj.fit(table, seed=5, cores=1, **options)
    assert structures_done(tmp_path / "kept") == [0, 1]
    resumed = bj.fit(table, resume=True, cores=2, **options)
    assert same(resumed, post)
    assert sorted(calls) == [0, 1, 2, 2, 3]
    for name, one in (("resumed.nc", resumed), ("undisturbed.nc", post)):
        one.save(tmp_path / name)
    assert (tmp_path / "resumed.nc").read_bytes() == (tmp_path / "undisturbed.nc").read_bytes()


def test_a_checkpoint_of_a_finished_fit_gives_it_back_and_can_be_removed(table, post, tmp_path, monkeypatch):
    options = {"n_structures": 4, "checkpoint": tmp_path / "kept", **FEW}
    assert same(bj.fit(table, seed=5, **options), post)
    calls = killed_at(monkeypatch, 1, AssertionError("learned again"))
    assert same(bj.fit(table, resume=True, **options), post)
    assert not calls
    with Checkpoint(tmp_path / "kept") as folder:
        folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_half_written_structure_is_done_again(table, post, tmp_path):
    options = {"n_structures": 4, "checkpoint": tmp_path / "kept", **FEW}
    bj.fit(table, seed=5, **options)
    written = tmp_path / "kept/structure_2.nc"
    written.rename(tmp_path / "kept/structure_2.nc.part77")  # as a kill leaves it
    assert same(bj.fit(table, resume=True, **options), post)


def test_an_interrupt_keeps_the_structures_that_are_done(table, post, monkeypatch):
    killed_at(monkeypatch, 3, KeyboardInterrupt())
    with pytest.warns(BayesjptWarning, match="interrupted: 2 of 4 structures are kept"):
        part = bj.fit(table, n_structures=4, seed=5, cores=1, **FEW)
    assert part.settings["interrupted"] == "2 of 4 structures"
    assert part.weights.tolist() == [0.5, 0.5]
    for own, whole in zip(part.by_structure(), post.by_structure(), strict=False):
        assert own.params.theta.tobytes() == whole.params.theta.tobytes()


def test_an_interrupt_before_the_first_structure_is_an_error_of_ours(table, monkeypatch):
    killed_at(monkeypatch, 1, KeyboardInterrupt())
    with pytest.raises(SamplingError, match="interrupted before the first structure was done"):
        bj.fit(table, n_structures=4, seed=5, cores=1, **FEW)


def test_an_interrupt_before_the_first_structure_names_the_checkpoint_to_go_on_from(table, post, tmp_path, monkeypatch):
    options = {"n_structures": 4, "cores": 1, "checkpoint": tmp_path / "kept", **FEW}
    killed_at(monkeypatch, 1, KeyboardInterrupt())
    with pytest.raises(SamplingError, match=r"Go on from '.*kept' with resume") as caught:
        bj.fit(table, seed=5, **options)
    assert caught.value.command == f"Go on from {str(tmp_path / 'kept')!r} by --resume"
    monkeypatch.undo()
    assert same(bj.fit(table, resume=True, **options), post)


def test_an_interrupt_ends_sweeps_that_are_at_work(table, monkeypatch):
    """The main thread is interrupted while a structure is sampled: it stops within ten sweeps, however many remain."""
    sweep_on, begun = Sweeper.sweep_on, threading.Event()

    def noticed(self, *args, **kwargs):
        begun.set()
        return sweep_on(self, *args, **kwargs)

    def interrupted(self):
        assert begun.wait(60.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(Sweeper, "sweep_on", noticed)
    monkeypatch.setattr(Crew, "_next", interrupted)
    with pytest.raises(SamplingError, match="interrupted before the first structure"):
        bj.fit(table, by_chance, n_structures=2, seed=5, cores=1, draws=10**6, tune=0, thin=10**6, progress=False)


def test_answers_can_be_had_from_the_structures_that_are_done(table, post):
    found = []
    told = bj.fit(table, n_structures=4, seed=5, cores=1, on_structure=lambda part: found.append(part), **FEW)
    assert [len(part.by_structure()) for part in found] == [1, 2, 3, 4]
    assert same(found[-1], post)
    assert same(told, post)


def test_an_error_of_a_learner_is_raised_and_ends_the_others(table):
    def failing(given, rng):
        raise LearnerError("no structure")

    with pytest.raises(LearnerError, match="no structure"):
        bj.fit(table, [by_chance, failing], n_structures=6, seed=5, cores=2, **FEW)


def test_folder_of_others_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(CheckpointError, match=r"letter\.txt"):
        StructuresFolder(tmp_path)


@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        ({"n_structures": 0}, SamplingError, "n_structures = 0"),
        ({"n_structures": 2.0}, SamplingError, "n_structures = 2.0"),
        ({"weights": "bayes"}, LearnerError, "weights = 'bayes'; expected one of even, stacking"),
        ({"learner": ["mspn", "jpt"], "n_structures": 1}, LearnerError, "2 learners for 1 structure;"),
        ({"learner": []}, LearnerError, "0 learners"),
        ({"learner": ["mspn", "lace"]}, LearnerError, "no learner 'lace'"),
        ({"learner": None}, LearnerError, "no learner None"),
        ({"weights": "stacking", "n_structures": 1}, LearnerError, "of one structure; expected several"),
        ({"families": 3}, SchemaError, "of type int; expected a list of names"),
        ({"alpha": "x"}, ModelError, "alpha = 'x'; expected a positive number"),
    ],
)
def test_what_makes_no_sense_is_refused(table, chosen, error, message):
    with pytest.raises(error, match=message):
        bj.fit(table, **chosen, **FEW)


def test_a_column_with_few_cells_does_no_harm(table):
    frame = table.to_frame().assign(rare=np.where(np.arange(150) == 3, 1.5, np.nan))
    frame.loc[40, "rare"] = 2.5
    post = bj.fit(frame, n_structures=3, seed=1, cores=1, **FEW)
    assert np.isfinite(post.log_mass(frame)).all()


def test_phases_are_reported(table):
    told = []
    bj.fit(table, by_chance, n_structures=2, seed=5, on_phase=lambda phase, seconds: told.append(phase), **FEW)
    assert told == ["compile", "structures"]


def test_networks_of_labels_keep_few_draws_and_networks_of_numbers_as_many_as_others():
    """Of labels a network's posterior is known, and draws are made from it where they are asked for."""
    rng = np.random.default_rng(3)
    labels = pd.DataFrame(rng.choice(["yes", "no"], (60, 3)), columns=list("abc"))
    options = {"n_structures": 2, "tune": 2, "seed": 1, "progress": False}
    assert bj.fit(labels, "cutset", **options).by_structure()[0].n_draw == 2
    numbers = labels.assign(size=rng.normal(size=60).round(2))
    post = bj.fit(numbers, "cutset", **options)
    assert post.by_structure()[0].n_draw == 20
    assert str(post.tree()).startswith("Cutset network of")
