"""Steps that lack covariates, against sums over all paths and all versions of these."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.experts import row_parts, series_passes
from bayesjpt.experts.series_passes import forward_passes, parts_of
from bayesjpt.kernels.expert_series import fill_memory_odds
from bayesjpt.kernels.expert_series_gaps import GapSteps, fill_drawn_gaps, fill_filtered_gaps, fill_smoothed_gaps
from tests.experts import series_naive
from tests.experts.test_series_passes import DRAW, EXACT, frame, post, series_rows
from tests.statistics import LARGEST_Z

__all__ = ["post"]
VALUES = [-1.3, 0.2, 2.1]
"""Of the missing covariate, in place of draws."""
FLAT_DRAW = 7
"""`DRAW`, over all chains."""
N_DRAWN = 20_000


def holed():
    """Return rows of which some lack x: a first step, two neighbours, one without targets, and a series of one."""
    rows = frame()
    for series, step in (("a", 1), ("b", 2), ("b", 3), ("b", 6), ("c", 9)):
        rows.loc[(rows["id"] == series) & (rows["t"] == step), "x"] = np.nan
    return rows


def completed(value: float):
    rows = holed()
    return rows.assign(x=rows["x"].fillna(value))


@pytest.fixture
def gaps(post, monkeypatch):
    """The posterior with `VALUES` for imputations."""

    def drawn(model, joint, table, place, *, n, rng):
        tables = [post.read(completed(value)) for value in VALUES]
        x, gate_x = ([own.matrix(each)[place] for each in tables] for own in (model.covariates, model.gate_covariates))
        return np.stack(x, axis=1), np.stack(gate_x, axis=1)

    monkeypatch.setattr(row_parts, "drawn_covariates", drawn)
    for module in (row_parts, series_passes):
        monkeypatch.setattr(module, "N_IMPUTATION", len(VALUES))
    table = bj.as_table(frame()[["x"]])
    return post.with_missing(bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema))


def steps_by_version(post, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return transitions, (n_version, n_step, 1 + n_leaf, n_leaf), and densities, (n_version, n_step, n_leaf)."""
    gate, offset = post.coefficients.gate[DRAW], post.memory.offset[DRAW]
    transitions, densities = [], []
    for value in VALUES:
        table = post.read(completed(value))
        gate_x = post.model.gate_covariates.matrix(table)
        befores = range(-1, post.model.n_leaf)
        transitions.append(
            [[series_naive.transition(gate, offset, gate_x[row], k, post.transitions) for k in befores] for row in rows]
        )
        densities.append(series_naive.evidence(post, table, DRAW)[rows])
    return np.array(transitions), np.array(densities)


def forward_and_smoothed(post, rows: np.ndarray):
    """Return log densities, filtered and smoothed probabilities of a series from the definition."""
    transitions, densities = steps_by_version(post, rows)
    step = (transitions * densities[:, :, None]).mean(axis=0)
    forward = [step[0, 0]]
    for t in range(1, rows.size):
        forward.append(forward[-1] @ step[t, 1:])
    backward = [np.ones(post.model.n_leaf)]
    for t in range(rows.size - 1, 0, -1):
        backward.insert(0, step[t, 1:] @ backward[0])
    forward, total = np.array(forward), np.array(forward).sum(axis=1)
    smoothed = forward * np.array(backward)
    log_density = np.diff(np.log(total), prepend=0.0)
    return log_density, forward / total[:, None], smoothed / smoothed.sum(axis=1, keepdims=True)


def test_leaves_and_densities_sum_over_versions_of_steps_that_lack_covariates(gaps, post):
    rows = holed()
    density, filtered, smoothed = gaps.log_density(rows), gaps.filter(rows), gaps.smooth(rows)
    for own in series_rows(post.read(frame())):
        expected = forward_and_smoothed(post, own)
        np.testing.assert_allclose(filtered.values[DRAW][:, own].T, expected[1], rtol=1e-9)
        np.testing.assert_allclose(smoothed.values[DRAW][:, own].T, expected[2], rtol=1e-9)
        np.testing.assert_allclose(density.values[DRAW][own], expected[0], rtol=1e-9, atol=EXACT)


def test_steps_that_lack_nothing_are_answered_as_without_imputations(gaps, post):
    for name in ("filter", "smooth", "log_density", "expectation"):
        np.testing.assert_array_equal(getattr(gaps, name)(frame()), getattr(post, name)(frame()))


def test_weights_ahead_are_those_of_each_version(gaps, post):
    rows = holed()
    part = next(part for part in gaps.row_parts(gaps.read(rows)) if part.gaps)
    found = gaps.leaf_weights(part, len(VALUES))[FLAT_DRAW * 3 : FLAT_DRAW * 3 + 3]
    filtered = gaps.filter(rows).values[DRAW].T
    for own in series_rows(post.read(frame())):
        transitions, _ = steps_by_version(post, own)
        for t, row in enumerate(own):
            if row not in part.rows:
                continue
            expected = transitions[:, t, 0] if t == 0 else filtered[own[t - 1]] @ transitions[:, t, 1:]
            # pairs take turns with the versions: the first of this draw is number 21 modulo 3
            np.testing.assert_allclose(found[:, list(part.rows).index(row)], expected, rtol=EXACT)


@pytest.mark.parametrize("n_draw", [1, 4])
def test_probabilities_ahead_are_densities_of_labels(gaps, n_draw):
    one = gaps.of_chain(1).some_draws(n_draw)
    rows = holed()
    last = (rows["id"] == "b") & (rows["t"] == 6)
    alone = rows.assign(label=rows["label"].mask(last, "u"), y=rows["y"].mask(last), count=rows["count"].mask(last))
    row = int(np.flatnonzero(last)[0])
    found = one.probability("label == 'u'", rows)[0, :, row].mean()
    expected = np.exp(one.log_density(alone)[0, :, row]).mean()
    # several draws are asked under some versions each
    np.testing.assert_allclose(found, expected, rtol=1e-9 if n_draw == 1 else 0.3)
    np.testing.assert_allclose(np.exp(one.log_mass(alone)[0, :, row]).mean(), expected, rtol=1e-9)


def test_transition_probabilities_are_means_over_versions(gaps, post):
    found = gaps.transition_probabilities(holed()).values[DRAW]
    for own in series_rows(post.read(frame())):
        transitions, _ = steps_by_version(post, own)
        np.testing.assert_allclose(np.moveaxis(found[..., own], -1, 0), transitions.mean(axis=0), rtol=EXACT)


def test_drawn_paths_and_versions_have_the_posterior_of_all(gaps, post):
    table = gaps.read(holed())
    passes = forward_passes(gaps, table, parts_of(gaps, table))
    forward = next(itertools.islice(passes, FLAT_DRAW, None))
    number = table.order.names.index("b")
    start = table.order.first[number]
    transitions, densities = steps_by_version(post, series_rows(table)[number])
    step = transitions * densities[:, :, None]
    leaf, version = (np.empty((N_DRAWN, 6), np.int64) for _ in "12")
    for k in range(N_DRAWN):
        own = forward.drawn(np.uint64(1_000 + 7 * k))
        leaf[k], version[k] = (each[start : start + 6] for each in own)
    _, filtered, smoothed = forward_and_smoothed(post, series_rows(table)[number])
    assert (version[:, [0, 3, 4]] == 0).all()
    for t in (1, 2, 5):  # which lack x
        ahead = smoothed[t] / filtered[t]
        joint = filtered[t - 1][:, None] * step[:, t, 1:] * ahead
        joint /= joint.sum()
        share = np.zeros(joint.shape)
        np.add.at(share, (version[:, t], leaf[:, t - 1], leaf[:, t]), 1.0 / N_DRAWN)
        open_ones = (joint > 1e-4) & (joint < 1.0 - 1e-4)
        p, found = joint[open_ones], share[open_ones]
        assert np.abs((found - p) / np.sqrt(p * (1.0 - p) / N_DRAWN)).max(initial=0.0) < LARGEST_Z
        np.testing.assert_allclose(share[~open_ones], joint[~open_ones], atol=2e-3)


def test_drawn_series_are_complete(gaps):
    drawn = gaps.sample_series(5, holed(), rng=1)
    assert np.isfinite(drawn[["y", "count"]].to_numpy(float)).all()
    again = gaps.sample_series(5, holed(), rng=1)
    assert drawn.equals(again)


def test_targets_that_are_impossible_under_all_versions_say_nothing():
    n_row, n_leaf, n_version = 4, 4, 2
    rng = np.random.default_rng(1)
    odds = np.empty((3, n_leaf))
    fill_memory_odds(np.zeros((2, n_leaf), np.int64), np.ones((2, n_leaf)), rng.normal(size=(3, 1)), odds)
    base, evidence = np.exp(rng.normal(size=(n_row, 3))), rng.normal(size=(n_row, n_leaf))
    at = np.array([0, -1, 1, 2])
    own = np.exp(rng.normal(size=(n_version, 3, 3))), 100.0 * rng.normal(size=(n_version, 3, n_leaf))
    own[1][:, 1] = -np.inf
    own[1][0, 2], own[1][1, 2] = 1e6, -1e6
    steps = GapSteps(np.array([0, n_row]), odds, base, evidence, at, *own)
    predicted, filtered, smoothed = (np.empty((n_row, n_leaf)) for _ in "123")
    density, leaf, version = np.empty(n_row), np.empty(n_row, np.int64), np.empty(n_row, np.int64)
    fill_filtered_gaps(steps, predicted, filtered, density)
    fill_smoothed_gaps(steps, predicted, filtered, density, smoothed)
    assert np.isneginf(density[2])
    np.testing.assert_array_equal(filtered[2], predicted[2])
    np.testing.assert_allclose(smoothed.sum(axis=1), 1.0, rtol=EXACT)
    fill_drawn_gaps(steps, filtered, np.uint64(1), leaf, version)
    assert version[3] == 0
    assert ((leaf >= 0) & (leaf < n_leaf)).all()
