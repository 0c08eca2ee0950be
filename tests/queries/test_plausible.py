"""Posteriors describe plausible columns: moments under each draw and sampled rows are those of the table.

A dictionary's member that no row uses keeps a small weight and parameters from its prior; a prior without moments shows
in every figure here.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.families import registry
from tests.papers.plausible import judge

DATA = Path(__file__).parents[2] / "notebooks" / "data"
N_ROW = {"wine_quality": 2000, "abalone": 1500}
SCHEDULE = {"chains": 2, "draws": 25, "tune": 30, "seed": 1, "cores": 1, "progress": False, "n_structures": 1}
FORMER = {
    "normal": (0.0, 100.0, 1.0, 0.05, 1e-6),
    "gamma": (np.log(2.0), 1.5, 1e10, 2.0, 2.0, 1.0),
    "exponential": (2.0, 2.0, 0.0),
    "lognormal": (0.0, 10.0, 3.0, 0.15, 1e-6, np.inf, np.inf),
    "truncated_rounded_normal": (0.0, 100.0, 1.0, 0.05, 1e-6),
}
"""Priors without moments, or centred elsewhere, as they were once the defaults."""


def frame_of(name: str) -> pd.DataFrame:
    frame = pd.read_csv(DATA / f"{name}.csv")
    return frame.sample(min(N_ROW[name], len(frame)), random_state=0).reset_index(drop=True)


@pytest.mark.parametrize("learner", ["mspn", "jpt"])
@pytest.mark.parametrize("name", list(N_ROW))
def test_moments_samples_and_bounds_are_those_of_the_columns(name, learner):
    frame = frame_of(name)
    for column in judge(bj.fit(bj.as_table(frame), learner, **SCHEDULE), frame, n_sampled=8_000):
        missed = {figure for figure, misses in column.misses.items() if misses}
        assert not missed - {"wide"}, column.row()  # a share of 50 draws is too coarse for one in a hundred
        assert (column.deviation > 1.3 * column.sd).mean() <= 0.04, column.row()


def test_positive_columns_far_from_zero_have_their_own_moments(rng):
    """Latitudes in a town, pressures, years: means of 20 to 200,000 standard deviations."""
    ratios = (20.0, 500.0, 5e3, 9e3, 2e4, 9e4, 2e5)
    frame = pd.DataFrame({f"x{ratio:g}": 1013.25 * (1.0 + rng.normal(size=400) / ratio) for ratio in ratios})
    for column in judge(bj.fit(bj.as_table(frame), **SCHEDULE), frame, n_sampled=8_000):
        missed = {figure for figure, misses in column.misses.items() if misses}
        assert not missed - {"wide"}, column.row()


def test_the_same_figures_catch_priors_without_moments(monkeypatch):
    """Every family is offered, with the prior that it had, and no shared scale."""
    frame = frame_of("wine_quality")[["density", "pH", "quality"]]
    table = bj.as_table(frame)
    patched = list(registry.FAMILIES)
    for number, family in enumerate(registry.FAMILIES):
        if family.name in FORMER:
            prior = np.array(FORMER[family.name])
            former = replace(
                family, priors={"default": lambda column, start, prior=prior: prior}, shared_scale=None, by_name=False
            )
            patched[number] = former
    monkeypatch.setattr(registry, "FAMILIES", patched)
    judged = judge(bj.fit(table, **SCHEDULE), frame, n_sampled=8_000)
    assert any(column.misses["sampled"] or column.misses["sd"] for column in judged)
    assert sum(any(column.misses.values()) for column in judged) >= 2


@pytest.mark.parametrize("learner", ["mspn", "jpt"])
def test_numbers_that_lean_to_one_side_of_zero_keep_their_mean(learner):
    rng = np.random.default_rng(3)
    debt = -np.exp(rng.normal(1.0, 1.0, 500)).round(2)
    profit = np.rint(100.0 * (np.exp(rng.normal(1.0, 1.0, 500)) - 2.0))
    frame = pd.DataFrame({"debt": debt, "profit": profit, "size": rng.normal(size=500)})
    table, fit = bj.as_table(frame), SCHEDULE | {"n_structures": 4, "chains": 1}
    for column in judge(bj.fit(table, learner, **fit), frame, n_sampled=8_000):
        assert not {name for name in ("E", "sampled") if column.misses[name]}, column.row()
    even = {"debt": ["normal", "student_t"], "profit": ["rounded_normal"]}  # what the dictionaries would be without
    former = judge(bj.fit(table, learner, families=even, **fit), frame, n_sampled=8_000)
    assert any(column.misses["E"] or column.misses["sd"] or column.misses["sampled"] for column in former)
