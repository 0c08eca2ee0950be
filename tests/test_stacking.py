"""Weights of structures by stacking: one seed one answer, the right structure wins, and going on after a kill."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import CheckpointError, SamplingError
from bayesjpt.fitting import ensemble as ensemble_module
from bayesjpt.fitting import stacking
from bayesjpt.fitting.ensemble import Ensemble
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.sampler.checkpoint import RUN
from bayesjpt.sampler.structures_folder import StructuresFolder
from tests import examples as ex

FEW = {"weights": "stacking", "draws": 6, "tune": 3, "chains": 2, "progress": False}
PLANTED = 0.9
"""Weight that the structure which is right gets at least."""


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    size = rng.gamma(3.0, 1.0, 150).round(1)
    frame = pd.DataFrame({"size": size, "twice": (2.0 * size + rng.normal(0.0, 0.3, 150)).round(1)})
    return bj.as_table(frame.assign(colour=rng.choice(["red", "white", "none"], 150)))


def same(one, other) -> bool:
    """Return whether two posteriors have the same structures, weights and draws, to the last bit."""
    pairs = list(zip(one.by_structure(), other.by_structure(), strict=True))
    return one.weights.tolist() == other.weights.tolist() and all(
        a.circuit.digest() == b.circuit.digest()
        and a.params.theta.tobytes() == b.params.theta.tobytes()
        and a.params.log_weight.tobytes() == b.params.log_weight.tobytes()
        for a, b in pairs
    )


def with_weight(post) -> list[int]:
    """Return the numbers of the structures that were sampled."""
    return np.flatnonzero([float(w) for w in post.settings["structure_weights"].split(", ")]).tolist()


def by_chance(table, rng):
    """Return two sub-populations of random rows: as quick as a learner can be that depends on seed and rows."""
    parts = np.split(rng.permutation(table.n_row), [table.n_row // 2])
    products = tuple(ex.Product(tuple(ex.ColumnLeaf(k, part) for k in range(table.n_column))) for part in parts)
    return ex.build_circuit(ex.Sum(products, tuple(part.size for part in parts)), table)


def no_dependence(table, rng):
    return ex.independent(table)


def by_colour(table, rng):
    """Return the structure that the rows of `planted` have."""
    code, rows = table.values[1], np.arange(table.n_row)
    parts = [rows[code == value] for value in np.unique(code)]
    products = tuple(ex.Product((ex.ColumnLeaf(0, part), ex.ColumnLeaf(1, part))) for part in parts)
    return ex.build_circuit(ex.Sum(products, tuple(part.size for part in parts)), table)


@pytest.fixture(scope="module")
def post(table):
    return bj.fit(table, by_chance, n_structures=3, seed=5, cores=1, **FEW)


@pytest.fixture(scope="module")
def planted():
    rng = np.random.default_rng(2)
    colour = rng.choice(["red", "white"], 400)
    size = rng.normal(np.where(colour == "red", 0.0, 6.0), 1.0).round(1)
    return bj.as_table(pd.DataFrame({"size": size, "colour": colour}))


def test_same_seed_gives_the_same_draws_and_weights_whatever_the_number_of_cores(table, post):
    assert same(post, bj.fit(table, by_chance, n_structures=3, seed=5, cores=2, **FEW))


def test_draws_of_all_structures_are_divided_by_the_weights(post):
    assert isinstance(post, StackedPosterior)
    assert (post.n_chain, post.n_draw) == (2, 18)
    draws = np.array([part.n_draw for part in post.by_structure()])
    assert np.abs(draws - 18 * post.weights).max() <= 1.0


def test_the_structure_that_is_right_gets_the_weight(planted):
    found = bj.fit(planted, [no_dependence, by_colour], n_structures=2, seed=1, cores=1, **FEW)
    assert found.by_structure()[-1].settings["learner"] == "by_colour"
    assert found.weights[-1] > PLANTED


def test_several_learners_are_weighed_and_their_structures_are_alike(planted):
    found = bj.fit(planted, [no_dependence, by_colour], n_structures=5, seed=1, cores=1, **FEW)
    weights = [float(weight) for weight in found.settings["structure_weights"].split(", ")]
    assert weights[1] == weights[3] > 0.5 * PLANTED
    assert weights[0] == weights[2] == weights[4]


def test_learners_have_the_weights_of_their_averages(rng):
    scores = rng.normal(size=(5, 30))
    averages = [np.log(np.exp(scores[k::2]).mean(axis=0)) for k in range(2)]
    by_group = stacking.weigh(np.array(averages))
    np.testing.assert_allclose(
        stacking.weigh_by_learner(scores, 2), by_group[[0, 1, 0, 1, 0]] / np.array([3, 2, 3, 2, 3]), rtol=1e-9
    )


def test_rows_are_held_out_once_and_scored_where_they_are(table, monkeypatch):
    numbered = bj.Table(table.schema, np.tile(np.arange(150.0), (3, 1)), table.observed)
    held_in = np.full(150, -1)

    def score(ensemble, train, held, fold):
        assert sorted([*train.values[0], *held.values[0]]) == list(range(150))
        held_in[held.values[0].astype(int)] = fold
        return np.array([held.values[0], -held.values[0]])

    monkeypatch.setattr(stacking, "_scores_of_fold", score)
    ensemble = Ensemble((no_dependence,), 2, 3, {}, {}, False, 1)
    scores = stacking.held_out_scores(ensemble, numbered, folder=None, tell=None)
    assert np.bincount(held_in).tolist() == [38, 38, 37, 37]
    assert np.array_equal(scores, [np.arange(150), -np.arange(150)])


def test_folds_of_a_large_table_are_relearned_from_half_of_their_rows(table, monkeypatch):
    monkeypatch.setattr(ensemble_module, "HALVED_ROWS", 100)
    seen = []

    def counted(given, rng):
        seen.append(given.n_row)
        return ex.independent(given)

    bj.fit(table, counted, n_structures=2, seed=5, cores=1, **FEW)
    assert seen[:8] == [n for fold in (112, 112, 113, 113) for n in (fold, -(-fold // 2))]
    assert set(seen[8:]) <= {150, 75}


def test_resumed_fit_scores_no_fold_twice(table, post, tmp_path, monkeypatch):
    original, calls = Ensemble.learn, []

    def killed_once(self, number, *args, **kwargs):
        calls.append(number)
        if len(calls) == 5:
            raise SamplingError("killed")
        return original(self, number, *args, **kwargs)

    monkeypatch.setattr(Ensemble, "learn", killed_once)
    options = {"learner": by_chance, "n_structures": 3, "cores": 1, "checkpoint": tmp_path / "kept", **FEW}
    with pytest.raises(SamplingError, match="killed"):
        bj.fit(table, seed=5, **options)
    assert same(bj.fit(table, resume=True, **options), post)
    # killed in its second call of fold 1; what fold 0 had found is not learned again
    assert calls == [0, 1, 2, 0, 1, *[0, 1, 2] * 3, *with_weight(post)]


@pytest.mark.parametrize(("kept", "remedy"), [(None, "Nothing was kept; start again"), ("kept", "with resume")])
def test_an_interrupt_of_a_fold_says_whether_something_was_kept(table, tmp_path, monkeypatch, kept, remedy):
    def interrupted(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Ensemble, "learn", interrupted)
    folder = None if kept is None else tmp_path / kept
    with pytest.raises(SamplingError, match=f"before the structures were weighed.* {remedy}$"):
        bj.fit(table, by_chance, n_structures=3, seed=5, cores=1, checkpoint=folder, **FEW)


def test_a_checkpoint_of_a_finished_fit_gives_it_back(table, post, tmp_path):
    first = bj.fit(table, by_chance, n_structures=3, seed=5, cores=1, checkpoint=tmp_path / "kept", **FEW)
    again = bj.fit(table, by_chance, n_structures=3, cores=1, checkpoint=tmp_path / "kept", resume=True, **FEW)
    assert same(first, post)
    assert same(again, post)
    with StructuresFolder(tmp_path / "kept") as folder:
        folder.remove()
    assert list(tmp_path.iterdir()) == []


def test_checkpoint_of_other_options_or_without_resume_is_refused(table, tmp_path):
    kept = tmp_path / "kept"
    bj.fit(table, no_dependence, n_structures=2, seed=5, cores=1, checkpoint=kept, **FEW)
    with pytest.raises(CheckpointError, match="n_structures = 2, not 3"):
        bj.fit(table, no_dependence, n_structures=3, cores=1, checkpoint=kept, resume=True, **FEW)
    with pytest.raises(CheckpointError, match="holds a fit already"):
        bj.fit(table, no_dependence, n_structures=2, cores=1, checkpoint=kept, **FEW)


def test_a_damaged_structure_of_a_checkpoint_is_named_with_the_remedy(table, tmp_path):
    kept = tmp_path / "kept"
    whole = bj.fit(table, no_dependence, n_structures=2, seed=5, cores=1, checkpoint=kept, **FEW)
    file = kept / "structure_1.nc"
    file.write_bytes(file.read_bytes()[:900])
    with pytest.raises(CheckpointError, match=r"in checkpoint '.*kept', structure_1\.nc .*Delete this file, and go on"):
        bj.fit(table, no_dependence, n_structures=2, seed=5, cores=1, checkpoint=kept, resume=True, **FEW)
    file.unlink()
    again = bj.fit(table, no_dependence, n_structures=2, seed=5, cores=1, checkpoint=kept, resume=True, **FEW)
    np.testing.assert_array_equal(again.log_density(table), whole.log_density(table))


def test_damaged_files_of_a_checkpoint_are_refused(tmp_path):
    with StructuresFolder(tmp_path / "kept") as folder:
        folder.begin({"options": {}, "table": {}, "versions": {}})
        folder.keep_scores(0, np.zeros((2, 5)))
        assert folder.scores(1, (2, 5)) is None
        with pytest.raises(CheckpointError, match="of another run"):
            folder.scores(0, (2, 6))
        (folder.path / "scores_0").write_bytes(b"\x80\x04.")
        with pytest.raises(CheckpointError, match="damaged"):
            folder.scores(0, (2, 5))
        (folder.path / RUN).write_text(json.dumps({"format": "other", "facts": folder.facts()}))
        with pytest.raises(CheckpointError, match="of format 'other'"):
            folder.facts()


def test_rows_that_are_impossible_without_themselves_do_not_spoil_the_weights(table):
    options = {"learner": "jpt", "families": ["quantile", "categorical"], "seed": 1, "cores": 1}
    post = bj.fit(table, n_structures=2, **options, **FEW)
    assert post.weights.sum() == pytest.approx(1.0)
    assert np.isfinite(post.log_density(table)).all()


def test_a_table_of_one_row_is_refused(table):
    with pytest.raises(SamplingError, match="a table of 1 row"):
        bj.fit(table.take([0]), no_dependence, n_structures=2, **FEW)


def test_phases_are_reported(table):
    told = []
    options = {"n_structures": 2, "seed": 5, "cores": 1, "on_phase": lambda phase, seconds: told.append(phase)}
    bj.fit(table, no_dependence, **options, **FEW)
    assert told == ["compile", "weigh", "structures"]
