"""The script that compares held-out scores, on a table in miniature."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptError
from tests.papers import contestants, lace_peer, measures, resolutions, scores
from tests.papers.abda_data import our_tables, read_data

QUICK = ["--seeds", "1", "--chains", "1", "--draws", "6", "--tune", "6"]

SUM = 1e-9
"""Nats by which contributions may differ from what they add up to."""


@pytest.fixture
def folder(tmp_path, rng) -> Path:
    """Return a folder of one table: two groups of rows, a number to hundredths and a count, some missing cells."""
    (tmp_path / "abda").mkdir()
    group = rng.integers(0, 2, 190)
    rows = np.column_stack([rng.normal(8.0 * group, 1.0).round(2), rng.poisson(2.0 + 9.0 * group)])
    rows[::20, 0] = np.nan
    parts = {"train": rows[:120], "valid": rows[120:140], "test": rows[140:]}
    np.savez(tmp_path / "abda/tiny.npz", meta_type=np.array([1, 3]), **parts)
    return tmp_path


def two_normals(wrong: float = 0.0) -> lace_peer.Lace:
    """Return the truth as a peer's fit, its means off by `wrong`."""
    view = {
        "columns": [0, 1],
        "weights": [0.5, 0.5],
        "parameters": [[[wrong, 1.0], [8.0 + wrong, 1.0]], [[2.0], [11.0]]],
    }
    return lace_peer.read_lace(
        {"kinds": {"0": "Continuous", "1": "Count"}, "states": [[view]], "processor_seconds": 0.5}
    )


@pytest.mark.parametrize("text", ["type_prior", "=3"])
def test_option_that_is_not_name_and_value_is_refused(folder, capsys, text):
    with pytest.raises(SystemExit):
        scores.main(["--data", str(folder), "--options", text])
    assert f"invalid option value: '{text}'" in capsys.readouterr().err


def test_script_prints_every_model_and_every_column(folder, capsys, monkeypatch):
    monkeypatch.setattr(lace_peer, "fit_lace", lambda data, settings, seed: two_normals())
    assert scores.main(["--data", str(folder), *QUICK, "--lace-python", "python"]) == 0
    text = capsys.readouterr().out
    assert "rows left out: none (3 missing cells, summed out)" in text
    for name in (scores.OURS, scores.LACE, scores.INDEPENDENT, scores.ABDA):
        assert f"\n| {name} | -" in text
    assert "\n| x1 | 1 | -" in text
    assert "\n| tiny | -" in text


@pytest.mark.filterwarnings("ignore::bayesjpt.errors.BayesjptWarning")
def test_our_contributions_add_up_and_dependence_beats_independent_columns(folder):
    task = contestants.make_task(read_data(folder, "tiny"), "test")
    observed = ~np.isnan(task.rows.T)
    ours = scores.score(contestants.fit_ours(task, contestants.Settings(chains=1, draws=10, tune=10), 0), observed)
    assert ours.parts.sum(axis=0) == pytest.approx(ours.mass, abs=SUM)
    apart = scores.score(
        contestants.fit_independent(task, contestants.Settings(chains=1, draws=1, tune=10), 0), observed
    )
    assert apart.parts == pytest.approx(apart.alone, abs=SUM)
    assert apart.size == 1.0
    assert measures.paired(ours.mass, apart.mass).difference > 0.3
    assert (ours.narrow < ours.mass)[observed[0]].all()
    assert (ours.wide > ours.mass)[observed[0]].all()


@pytest.mark.filterwarnings("ignore::bayesjpt.errors.BayesjptWarning")
@pytest.mark.parametrize("n_structures", [1, 2])
def test_even_cells_have_the_draws_of_a_fit_without_favourites(tmp_path, rng, n_structures):
    (tmp_path / "abda").mkdir()
    group = rng.integers(0, 2, 700)
    size = rng.normal(10.0 + 8.0 * group, 2.0)
    size = np.where(rng.random(700) < 0.4, size.round(), size.round(1))  # people who round to whole numbers, or do not
    rows = np.column_stack([size, rng.poisson(2.0 + 9.0 * group)])
    parts = {"train": rows[:500], "valid": rows[500:600], "test": rows[600:]}
    np.savez(tmp_path / "abda/tiny.npz", meta_type=np.array([1, 3]), **parts)
    task = contestants.make_task(read_data(tmp_path, "tiny"), "test")
    observed = np.ones_like(task.rows.T, bool)
    settings = contestants.Settings(chains=1, draws=10, tune=5, options={"n_structures": n_structures})
    ours = contestants.fit_ours(task, settings, 0)
    even = contestants.with_even_cells(ours, task)
    assert ours.posterior.schema.columns[0].cell_ends
    assert not even.posterior.schema.columns[0].cell_ends
    assert even.mass(1.0, False)(observed).mean() < ours.mass(1.0, False)(observed).mean() - 0.05
    assert even.density(observed) == pytest.approx(ours.density(observed))
    if n_structures == 1:  # parameters of several are not in one array
        train, _ = our_tables(task.data)
        train = bj.Table(even.posterior.schema, train.values, train.observed)
        refitted = bj.fit(train, n_structures=1, chains=1, draws=10, tune=5, seed=0, progress=False)
        np.testing.assert_array_equal(refitted.params.theta, ours.posterior.params.theta)


def test_peer_that_is_wrong_loses_by_what_its_error_costs(folder):
    task = contestants.make_task(read_data(folder, "tiny"), "test")
    observed = ~np.isnan(task.rows.T)
    found = []
    for wrong in (0.0, 1.0):
        score = two_normals(wrong).score(task.rows.T, task.widths(1.0))
        found.append(measures.log_of_mean(score(observed)))
    pair = measures.paired(*found)
    assert pair.difference == pytest.approx(0.5 * observed[0].mean(), abs=4.0 * pair.error)
    assert pair.difference > 4.0 * pair.error
    assert scores.difference(found[1], found[0]).startswith("**-")


def test_peer_fills_in_expectations_given_the_rest_of_the_row():
    values = np.array([[0.0, np.nan, np.nan, 4.0], [np.nan, 3.0, np.nan, np.nan]])
    filled = two_normals().complete(values)
    assert filled[:, 0] == pytest.approx([0.0, 2.0], abs=1e-6)
    count = np.array([2.0, 11.0])
    share = np.exp(3.0 * np.log(count) - count)
    assert filled[0, 1] == pytest.approx(8.0 * share[1] / share.sum(), rel=1e-12)
    assert filled[:, 2] == pytest.approx([4.0, 6.5])
    assert filled[:, 3] == pytest.approx([4.0, 6.5])


def test_interpreter_without_the_peer_is_told(folder):
    arguments = ["--data", str(folder), *QUICK, "--lace-python"]
    with pytest.raises(BayesjptError, match="lace stopped on 'tiny'"):
        scores.main([*arguments, sys.executable])
    with pytest.raises(BayesjptError, match="no interpreter"):
        scores.main([*arguments, str(folder / "nothing")])


def test_weights_that_do_not_fit_are_refused(folder, monkeypatch):
    def run(command, **options):
        Path(command[-1]).write_text('{"recovery_error": 0.5}')
        return type("Done", (), {"returncode": 0, "stderr": ""})

    monkeypatch.setattr(lace_peer.subprocess, "run", run)
    with pytest.raises(lace_peer.PeerError, match=r"0\.5 nats from lace's own"):
        lace_peer.fit_lace(read_data(folder, "tiny"), lace_peer.Settings(Path("python")), 0)


def test_file_of_resolutions_is_written_from_training_rows(folder, capsys):
    out = folder / "widths.json"
    assert resolutions.main(["--data", str(folder), "--out", str(out)]) == 0
    assert out.read_text() == '{\n  "tiny": {"x0": 0.01, "x1": 1.0}\n}\n'


def test_widths_vary_for_numbers_alone(folder):
    task = contestants.make_task(read_data(folder, "tiny"), "valid")
    assert len(task.rows) == 20
    assert task.widths(10.0).tolist() == pytest.approx([0.1, 1.0])


def test_committed_widths_are_known_by_the_name_of_the_table():
    widths = resolutions.known_resolutions("abalone")
    assert widths is not None
    assert widths.tolist() == [1.0, 0.005, 0.005, 0.005, 0.0005, 0.0005, 0.0005, 0.0005, 1.0]
    assert resolutions.known_resolutions("no such table") is None
