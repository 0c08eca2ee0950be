"""The script that asks how often intervals hold what held-out rows say."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.errors import TableError
from tests.papers import intervals
from tests.papers.test_papers import draw_rows


def test_interval_of_draws_ends_at_draws():
    assert intervals.interval(np.array([*range(1, 100), np.inf])) == (5.0, 95.0)


def test_calibrated_draws_hold_held_out_answers_once_their_error_is_added(rng):
    pair = intervals.Pair("x0", "x1", True, -1.0, 0.0, 1.0, None, 0.0)
    n_fit, n_held, n_trial = 300, 600, 200
    held = []
    for _ in range(n_trial):
        rows = {"x0": rng.normal(size=n_held), "x1": rng.normal(size=n_held)}
        below = rng.binomial(n_fit, 0.5)
        draws = rng.beta(below + 0.5, n_fit - below + 0.5, size=400)
        one = intervals.judge(0, draws, pair, rows, rng)
        held.append((one.held, one.held_with_error))
    plain, with_error = np.mean(held, axis=0)
    four_errors = 4.0 * np.sqrt(0.9 * 0.1 / n_trial)
    assert abs(with_error - 0.9) < four_errors
    assert plain < with_error


def test_pairs_begin_with_numbers_and_ask_for_the_commonest_label(rng):
    rows = {"x0": rng.normal(size=50), "x1": np.repeat([0.0, 1.0, 2.0], [10, 30, 10])}
    (pair,) = intervals.pairs_of(rows, ["real", "cat"], 4, rng)
    assert (pair.name, pair.other, pair.label) == ("x0", "x1", 1.0)
    assert pair.holds(rows).sum() == 30


def test_queries_among_rows_are_what_they_say():
    pair = intervals.Pair("x0", "x1", True, 1.0, 2.0, 3.0, None, 0.0)
    x, y = np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, True, False, True])
    found = [query.count(x, y, pair) for query in intervals.QUERIES]
    expected = [0.5, 0.25, 0.5, 0.75, 0.5, 1.0 / 3.0, 2.5, 7.0 / 3.0, 2.5, 3.6]
    assert found == pytest.approx(expected)


@pytest.mark.parametrize("n_structures", ["1", "2"])
def test_interval_script_prints_shares_and_what_is_not_asked(tmp_path, rng, capsys, n_structures):
    (tmp_path / "abda_synthetic").mkdir()
    parts = {part: draw_rows(200, rng)[5:] for part in ("train", "valid", "test")}
    np.savez(tmp_path / "abda_synthetic/n585_d3_seed1.npz", types=np.array(["pos", "real", "count"]), **parts)
    arguments = ["--data", str(tmp_path), "--draws", "6", "--tune", "4", "--chains", "1", "--pairs", "3"]
    arguments += ["--structures", n_structures]
    assert intervals.main(arguments) == 0
    text = capsys.readouterr().out
    assert "1 tables" in text
    assert f"structures: {n_structures}," in text
    assert "Not asked:" in text
    assert "P(Y | x > median)" in text


def test_interval_script_refuses_missing_cells(tmp_path, rng):
    (tmp_path / "abda_synthetic").mkdir()
    parts = {part: draw_rows(40, rng) for part in ("train", "valid", "test")}
    np.savez(tmp_path / "abda_synthetic/made.npz", types=np.array(["pos", "real", "count"]), **parts)
    with pytest.raises(TableError, match=r"missing cells in 'made\.npz'"):
        intervals.main(["--data", str(tmp_path)])
