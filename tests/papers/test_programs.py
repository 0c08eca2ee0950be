"""What the programs beside say where a folder has nothing for them: one line, and exit status 2."""

from __future__ import annotations

import sys

import pytest

from tests.papers import (
    binary,
    intervals,
    jpt,
    outliers,
    plausible,
    programs,
    repeatability,
    resolutions,
    scores,
    type_scores,
    type_synthetic,
    types,
    wmispn,
)

PROGRAMS = [
    binary,
    intervals,
    jpt,
    outliers,
    plausible,
    repeatability,
    resolutions,
    scores,
    type_scores,
    type_synthetic,
    types,
    wmispn,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_folder_without_data_is_a_line(program, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["program", "--data", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        programs.run(program.main)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert str(tmp_path) in told
    assert told.count("\n") == 1


def test_a_file_that_is_not_there_is_a_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        programs.run(lambda: (tmp_path / "rows.csv").read_text() and 0)
    assert ended.value.code == 2
    assert "rows.csv" in capsys.readouterr().err


def test_names_are_those_of_files_without_their_ending(tmp_path):
    for name in ("b.train.csv", "a.train.csv", "a.test.csv"):
        (tmp_path / name).touch()
    assert programs.names_of(tmp_path, "*.train.csv", ".train.csv") == ["a", "b"]
