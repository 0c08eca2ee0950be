"""Fits of several structures: one seed one answer, weights that find the right one, and going on after a kill."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import CheckpointError, LearnerError, SamplingError
from bayesjpt.fitting import stacking
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.sampler.structures_folder import StructuresFolder
from tests import zoo

FEW = {"draws": 12, "tune": 3, "chains": 2, "progress": False}
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
    products = tuple(zoo.Product(tuple(zoo.ColumnLeaf(k, part) for k in range(table.n_column))) for part in parts)
    return zoo.build_circuit(zoo.Sum(products, tuple(part.size for part in parts)), table)


def no_dependence(table, rng):
    return zoo.independent(table)


def by_colour(table, rng):
    """Return the structure that the rows of `planted` have."""
    code, rows = table.values[1], np.arange(table.n_row)
    parts = [rows[code == value] for value in np.unique(code)]
    products = tuple(zoo.Product((zoo.ColumnLeaf(0, part), zoo.ColumnLeaf(1, part))) for part in parts)
    return zoo.build_circuit(zoo.Sum(products, tuple(part.size for part in parts)), table)


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


def test_the_whole_has_as_many_draws_as_were_asked_for(post):
    assert isinstance(post, StackedPosterior)
    assert (post.n_chain, post.n_draw) == (2, 12)
    assert len(post.by_structure()) > 1
    assert sum(part.n_draw for part in post.by_structure()) == 12


def test_draws_are_in_proportion_to_the_weights(post):
    draws = np.array([part.n_draw for part in post.by_structure()])
    assert np.abs(draws - 12 * post.weights).max() <= 1.0


def test_the_first_structure_is_that_of_a_fit_of_one(table):
    one = bj.fit(table, seed=5, cores=1, **FEW)
    first = bj.fit(table, n_structures=2, seed=5, cores=1, **FEW).by_structure()[0]
    assert first.circuit.digest() == one.circuit.digest()
    drawn = {draw.tobytes() for draw in one.params.theta[0]}
    assert {draw.tobytes() for draw in first.params.theta[0]} <= drawn


def test_other_structures_are_learned_from_half_of_the_rows_and_sampled_on_all(table):
    seen = []

    def counted(given, rng):
        seen.append(given.n_row)
        return zoo.independent(given)

    stacking_rows = bj.fit(table, counted, n_structures=2, seed=5, cores=1, **FEW)
    folds = [113, 113, 112, 112]
    assert seen[: 2 * len(folds)] == [n for fold in folds[::-1] for n in (fold, -(-fold // 2))]
    assert set(seen[2 * len(folds) :]) <= {150, 75}
    assert stacking_rows.settings["learner"] == "counted"


def test_the_structure_that_is_right_gets_the_weight(planted):
    found = bj.fit(planted, [no_dependence, by_colour], n_structures=2, seed=1, cores=1, **FEW)
    assert found.by_structure()[-1].settings["learner"] == "by_colour"
    assert found.weights[-1] > PLANTED


def test_rows_are_held_out_once_and_scored_where_they_are(table, monkeypatch):
    numbered = bj.Table(table.schema, np.tile(np.arange(150.0), (3, 1)), table.observed)
    held_in = np.full(150, -1)

    def score(structures, train, held, *, fold, n_thread):
        assert sorted([*train.values[0], *held.values[0]]) == list(range(150))
        held_in[held.values[0].astype(int)] = fold
        return np.array([held.values[0], -held.values[0]])

    monkeypatch.setattr(stacking, "_scores_of_fold", score)
    structures = stacking.Structures((no_dependence,), 2, 3, {}, bj.fit)
    scores = stacking.held_out_scores(structures, numbered, folder=None, n_thread=1, tell=None)
    assert np.bincount(held_in).tolist() == [38, 38, 37, 37]
    assert np.array_equal(scores, [np.arange(150), -np.arange(150)])


@pytest.mark.parametrize(("method", "call"), [("relearn", 4), ("fit", 1)], ids=["in a fold", "between structures"])
def test_resumed_fit_is_bitwise_that_of_an_undisturbed_one(table, post, tmp_path, monkeypatch, method, call):
    original, calls = getattr(stacking.Structures, method), []

    def killed_once(self, number, *args, **kwargs):
        calls.append(number)
        if len(calls) == call + 1:
            raise SamplingError("killed")
        return original(self, number, *args, **kwargs)

    monkeypatch.setattr(stacking.Structures, method, killed_once)
    options = {"learner": by_chance, "n_structures": 3, "cores": 1, "checkpoint": tmp_path / "kept", **FEW}
    with pytest.raises(SamplingError, match="killed"):
        bj.fit(table, seed=5, **options)
    assert same(bj.fit(table, resume=True, **options), post)
    # killed in its second call of fold 1, or at structure 1; what fold 0 had found is not learned again
    assert calls == {"relearn": [0, 1, 2, 0, 1, *[0, 1, 2] * 3], "fit": [0, 1, *with_weight(post)]}[method]


def test_a_checkpoint_of_a_finished_fit_gives_it_back(table, post, tmp_path):
    first = bj.fit(table, by_chance, n_structures=3, seed=5, cores=1, checkpoint=tmp_path / "kept", **FEW)
    again = bj.fit(table, by_chance, n_structures=3, cores=1, checkpoint=tmp_path / "kept", resume=True, **FEW)
    assert same(first, post)
    assert same(again, post)
    StructuresFolder(tmp_path / "kept").remove()
    assert list(tmp_path.iterdir()) == []


def test_checkpoint_of_other_options_or_without_resume_is_refused(table, tmp_path):
    folder = StructuresFolder(tmp_path / "kept")
    bj.fit(table, no_dependence, n_structures=2, seed=5, cores=1, checkpoint=folder.path, **FEW)
    with pytest.raises(CheckpointError, match="n_structures = 2, not 3"):
        bj.fit(table, no_dependence, n_structures=3, cores=1, checkpoint=folder.path, resume=True, **FEW)
    with pytest.raises(CheckpointError, match="holds a fit already"):
        bj.fit(table, no_dependence, n_structures=2, cores=1, checkpoint=folder.path, **FEW)


def test_damaged_files_of_a_checkpoint_are_refused(tmp_path):
    folder = StructuresFolder(tmp_path / "kept")
    folder.begin({"options": {}, "table": {}, "versions": {}})
    folder.keep_scores(0, np.zeros((2, 5)))
    assert folder.scores(1, (2, 5)) is None
    with pytest.raises(CheckpointError, match="of another run"):
        folder.scores(0, (2, 6))
    (folder.path / "scores_0").write_bytes(b"\x80\x04.")
    with pytest.raises(CheckpointError, match="damaged"):
        folder.scores(0, (2, 5))
    (folder.path / "structures.json").write_text(json.dumps({"format": "other", "facts": folder.facts()}))
    with pytest.raises(CheckpointError, match="of format 'other'"):
        folder.facts()


def test_folder_of_others_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(CheckpointError, match=r"letter\.txt"):
        StructuresFolder(tmp_path)


@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        ({"n_structures": 0}, SamplingError, "n_structures = 0"),
        ({"n_structures": 2.0}, SamplingError, "n_structures = 2.0"),
        ({"n_structures": 13}, SamplingError, "12 draws a chain for 13 structures"),
        ({"learner": ["mspn", "jpt"]}, LearnerError, "2 learners for 1 structure;"),
        ({"learner": [], "n_structures": 2}, LearnerError, "0 learners"),
        ({"learner": ["mspn", "lace"], "n_structures": 2}, LearnerError, "no learner 'lace'"),
    ],
)
def test_what_makes_no_sense_is_refused(table, chosen, error, message):
    with pytest.raises(error, match=message):
        bj.fit(table, **chosen, **FEW)


def test_after_an_interrupt_the_structures_with_draws_are_kept(table, monkeypatch):
    fit_of_one = stacking.Structures.fit

    def interrupted(self, number, *args, **kwargs):
        post = fit_of_one(self, number, *args, **kwargs)
        post.settings["interrupted"] = "2 chains of 12 draws"
        return post

    monkeypatch.setattr(stacking.Structures, "fit", interrupted)
    post = bj.fit(table, by_chance, n_structures=3, seed=5, cores=1, **FEW)
    assert len(post.by_structure()) == 1
    assert post.weights.tolist() == [1.0]
    assert post.settings["interrupted"].startswith(f"1 of {len(with_weight(post))} structures, of the last")


def test_likelihoods_that_cannot_explain_rows_they_were_not_learned_from_are_refused(table):
    options = {"learner": "jpt", "families": ["quantile", "categorical"], "seed": 1, "cores": 1}
    with pytest.raises(SamplingError, match=r"structure 1, relearned from a part .* such as quantile"):
        bj.fit(table, n_structures=2, **options, **FEW)


def test_a_table_of_one_row_is_refused(table):
    with pytest.raises(SamplingError, match="a table of 1 row"):
        bj.fit(table.take([0]), no_dependence, n_structures=2, **FEW)


def test_a_column_with_few_cells_does_no_harm(table):
    frame = table.to_frame().assign(rare=np.where(np.arange(150) == 3, 1.5, np.nan))
    frame.loc[40, "rare"] = 2.5
    post = bj.fit(frame, n_structures=3, seed=1, cores=1, **FEW)
    assert np.isfinite(post.log_mass(frame)).all()


def test_phases_are_reported(table):
    told = []
    options = {"n_structures": 2, "seed": 5, "cores": 1, "on_phase": lambda phase, seconds: told.append(phase)}
    bj.fit(table, no_dependence, **options, **FEW)
    assert told == ["compile", "weigh", "sample"]
