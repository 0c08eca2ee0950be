"""What people see while chains run: on a terminal alone."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bayesjpt.circuit.arrays import Params
from bayesjpt.kernels.chain import ChainState
from bayesjpt.sampler import progress
from bayesjpt.sampler.progress import describe, sampling_bar
from tests.sampler.conftest import SCHEDULE, seeded


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(progress, "visible", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")


def standing(sweep: int, log_likelihood: float, n_active: int) -> ChainState:
    nothing = Params(np.empty(0), np.empty(0))
    return ChainState(nothing, key=1, sweep=sweep, log_likelihood=log_likelihood, n_active=n_active)


def at(sweep: int) -> list:
    """Return chains that have come so far."""
    chains = seeded()
    for chain in chains:
        if sweep:
            chain.state = standing(sweep, -12.34 - chain.number, 40 + chain.number)
    return chains


def shown(capsys) -> str:
    return re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", capsys.readouterr().err)


def test_bar_shows_sweeps_of_all_chains_likelihoods_edges_and_time_left(terminal, capsys):
    chains = at(0)
    with sampling_bar(chains, SCHEDULE, True) as watch:
        for chain in chains:
            chain.state = standing(5, -3.25 * (1 + chain.number), 7)
        watch()
        middle = shown(capsys)
    for words in ("Sampling 3 chains", "15/30", "log likelihood -9.8 to -3.2", "7 active edges", ":"):
        assert words in middle


def test_bar_of_a_resumed_fit_says_from_where(terminal, capsys):
    with sampling_bar(at(4), SCHEDULE, True):
        pass
    text = shown(capsys)
    assert "resumed at sweep 12" in text
    assert "12/30" in text


@pytest.mark.parametrize("wanted", [True, False])
def test_nothing_is_shown_where_there_is_no_terminal_or_nobody_wants_it(wanted, monkeypatch, capsys):
    monkeypatch.setattr(progress, "visible", lambda: not wanted)
    with sampling_bar(at(3), SCHEDULE, wanted) as watch:
        assert watch is None
    assert capsys.readouterr() == ("", "")


def test_chains_in_words_are_a_range_or_one_number():
    chains = at(2)
    assert describe(chains) == ", log likelihood -14.3 to -12.3, 40 to 42 active edges"
    assert describe(chains[:1]) == ", log likelihood -12.3, 40 active edges"
    chains[0].state = None
    assert "nan" not in describe(chains)
    assert describe(at(0)) == ""
