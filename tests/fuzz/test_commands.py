"""Commands on a few files as people have them in every run of the tests; `tests.fuzz --commands` makes many."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest

from tests.fuzz import commands
from tests.fuzz.commands import Case, Done, run_case
from tests.fuzz.sheets import make_sheet

SEED = 7
FEW = (194, 249, 336)
"""Files with names that hold separators and line breaks, of two rows; of JSON; of UTF-16 with tabs."""
N_SLOW = 8


@pytest.mark.parametrize("number", FEW)
def test_commands_answer_or_refuse_a_file_as_people_have_it(tmp_path, number):
    case = run_case(tmp_path, SEED, number)
    assert case.findings == []
    assert any(name.endswith("answered") for name in case.counts)


def test_a_file_is_the_same_whenever_it_is_made(tmp_path):
    for number in range(40):
        made = []
        for name in ("one", "other"):
            (tmp_path / f"{number} {name}").mkdir()
            sheet = make_sheet(tmp_path / f"{number} {name}", np.random.default_rng([SEED, number]))
            # a workbook, and a gzip, hold the time
            made.append(sheet.rows if sheet.path.suffix in (".xlsx", ".gz") else sheet.path.read_bytes())
        assert made[0] == made[1]


@pytest.mark.parametrize(
    ("status", "out", "err", "words"),
    [
        (0, "the mean is nan\n", "", "nan in"),
        (0, "from 1 to -inf", "", "-inf in"),
        (0, "", "RuntimeWarning: divide by zero", "RuntimeWarning"),
        (1, "", "", "types"),
        (2, "", "no file", "an error of"),
        (2, "a table\n", "bayesjpt: no file", "an error of"),
        (2, "", f"bayesjpt: {'x' * 500}", "an error of"),
    ],
)
def test_what_no_command_may_say_is_found(tmp_path, monkeypatch, status, out, err, words):
    def run(arguments: list[str]) -> int:
        sys.stdout.write(out)
        sys.stderr.write(err)
        return status

    monkeypatch.setattr(commands.cli, "run", run)
    case = Case(tmp_path, np.random.default_rng([SEED, FEW[0]]))
    case.run("types", "a.csv")
    assert len(case.findings) == 1
    assert words in case.findings[0]


def test_an_exception_of_a_command_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(commands.cli, "run", lambda arguments: 1 // 0)
    case = Case(tmp_path, np.random.default_rng([SEED, FEW[0]]))
    assert case.run("types", "a.csv").status == -1
    assert "ZeroDivisionError" in case.findings[0]


def test_a_line_that_is_too_wide_and_another_answer_are_found(tmp_path, monkeypatch):
    answers = iter(["one", "other"])
    monkeypatch.setattr(commands, "call", lambda arguments: Done(arguments, 0, next(answers), ""))
    case = Case(tmp_path, np.random.default_rng([SEED, FEW[1]]))
    case.wide(Done(["types"], 0, "x" * 81, ""))
    case.again(case.run("types"))
    assert ["81 characters" in case.findings[0], "another answer" in case.findings[1]] == [True, True]


@pytest.mark.slow
def test_commands_answer_or_refuse_many_files_as_people_have_them(capsys):
    counts, failed = commands.run(N_SLOW, seed=SEED, first=1000)
    assert failed == 0, capsys.readouterr().out[-6000:]
    assert isinstance(counts, Counter)
    assert counts["query answered"] > N_SLOW
