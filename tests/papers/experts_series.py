"""Simulated series that switch among regimes, and what the truth itself knows of them."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import scipy.stats
from sklearn.metrics import adjusted_rand_score

import bayesjpt as bj
from bayesjpt.experts.series_model import slots
from bayesjpt.kernels.expert_series import fill_base_odds, fill_drawn_paths, fill_filtered, fill_memory_odds

INTERCEPT = np.array([2.0, -1.0, 0.0, 0.5])
SLOPE = np.array([1.0, -1.0, 2.0, -0.5])
SPREAD = np.array([0.4, 0.6, 0.5, 0.3])
"""Of four regimes: each a linear regression with noise of its own."""


def transitions(x: np.ndarray) -> np.ndarray:
    """Return P(regime | the one before), (n_row, 4, 4): a covariate drives how soon a regime is left."""
    leave = 1.0 / (1.0 + np.exp(3.0 - x))
    out = np.zeros((x.size, 4, 4))
    for k in range(4):
        out[:, k, k], out[:, k, (k + 1) % 4], out[:, k, (k + 2) % 4] = 1.0 - leave, 0.7 * leave, 0.3 * leave
    return out


def simulate(n_series: int, n_step: int, seed: int) -> pd.DataFrame:
    """Return series of ``t``, ``id``, ``x``, ``y`` and the true ``regime``."""
    rng, out = np.random.default_rng(seed), []
    for number in range(n_series):
        x, regime = rng.normal(size=n_step), np.zeros(n_step, np.int64)
        share = transitions(x)
        regime[0] = rng.integers(4)
        for t in range(1, n_step):
            regime[t] = rng.choice(4, p=share[t, regime[t - 1]])
        y = INTERCEPT[regime] + SLOPE[regime] * x + SPREAD[regime] * rng.normal(size=n_step)
        out.append(pd.DataFrame({"t": np.arange(n_step), "id": number, "x": x, "y": y, "regime": regime}))
    return pd.concat(out, ignore_index=True)


def truth(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what the truth says: log density of each row given those before it, filtered and smoothed regimes."""
    score, filtered, smoothed = np.empty(len(rows)), np.empty((len(rows), 4)), np.empty((len(rows), 4))
    for _, own in rows.groupby("id"):
        at, x, y = own.index.to_numpy(), own["x"].to_numpy(), own["y"].to_numpy()
        share = transitions(x)
        density = scipy.stats.norm.pdf(y[:, None], INTERCEPT + SLOPE * x[:, None], SPREAD)
        predicted = np.full((len(own), 4), 0.25)
        for t, row in enumerate(at):
            if t:
                predicted[t] = filtered[at[t - 1]] @ share[t]
            weight = predicted[t] * density[t]
            score[row], filtered[row] = np.log(weight.sum()), weight / weight.sum()
        smoothed[at[-1]] = filtered[at[-1]]
        for t in range(len(at) - 2, -1, -1):
            smoothed[at[t]] = filtered[at[t]] * (share[t + 1] @ (smoothed[at[t + 1]] / predicted[t + 1]))
    return score, filtered, smoothed


def hmdt(n_series: int = 10, n_step: int = 400, n_seed: int = 5) -> None:
    """Print log scores, regimes and coverage on new series of the same kind."""
    for kind in ("leaf", "decision"):
        lines, worst = [], 1.0
        for seed in range(n_seed):
            rows, new = simulate(n_series, n_step, seed), simulate(n_series, n_step, 100 + seed)
            begun = time.process_time()
            post = bj.fit_experts(
                rows, target="y", given=["x"], time="t", series="id", depth=2, transitions=kind, rng=seed
            )
            seconds = time.process_time() - begun
            apart = bj.fit_experts(rows, target="y", given=["x"], depth=2, rng=seed)
            score, filtered, smoothed = truth(new)
            own = [
                float(np.log(np.exp(each.log_density(new)).mean(("chain", "draw"))).mean()) for each in (post, apart)
            ]
            ends = post.predict(new)
            held = ((new["y"] >= ends["lower"]) & (new["y"] <= ends["upper"])).mean()
            rand = [adjusted_rand_score(new["regime"], each.argmax(axis=1)) for each in (filtered, smoothed)]
            for ask in (post.filter, post.smooth):
                found = ask(new).mean("draw").values.argmax(axis=1)
                each = [adjusted_rand_score(new["regime"], chain) for chain in found]
                rand.append(float(np.mean(each)))
                worst = min(worst, *each)
            lines.append((score.mean(), *own, *rand, held, seconds))
            print(f"  {kind} {seed}: " + " ".join(f"{value:.3f}" for value in lines[-1]), flush=True)
        score, own, apart, filter_truth, smooth_truth, filter_own, smooth_own, held, seconds = np.mean(lines, axis=0)
        print(f"transitions={kind}, {n_series} x {n_step} rows, {n_seed} seeds, depth 2")
        print(f"  log score a row: {own:.4f}, the truth {score:.4f}, experts without time {apart:.4f}")
        print(f"  adjusted Rand, filtered: {filter_own:.3f}, the truth {filter_truth:.3f}")
        print(
            f"  adjusted Rand, smoothed: {smooth_own:.3f}, the truth {smooth_truth:.3f}; least of a chain {worst:.3f}"
        )
        print(f"  intervals of 90 % hold {100 * held:.1f} %; {seconds:.1f} CPU s a fit")
    passes()


def passes(n_row: int = 2_000, n_repeat: int = 5) -> None:
    """Print the times of the forward pass and of drawing paths, by number of leaves."""
    rng = np.random.default_rng(1)
    for depth in range(1, 7):
        n_leaf = 2**depth
        slot, sign, n_slot = slots(depth, "leaf")
        base, odds = np.empty((n_row, n_leaf - 1)), np.empty((n_leaf - 1, n_leaf))
        fill_memory_odds(slot, sign, rng.normal(size=(n_leaf - 1, n_slot)), odds)
        evidence, first = rng.normal(size=(n_row, n_leaf)), np.array([0, n_row])
        predicted, filtered, each = np.empty((n_row, n_leaf)), np.empty((n_row, n_leaf)), np.empty(n_row)
        leaf, gate_x, gate = np.empty(n_row, np.int64), rng.normal(size=(n_row, 3)), rng.normal(size=(n_leaf - 1, 3))
        took = []
        for repeat in range(n_repeat + 1):  # the first compiles
            begun = time.perf_counter()
            fill_base_odds(gate_x, gate, base)
            fill_filtered(first, base, odds, evidence, predicted, filtered, each)
            middle = time.perf_counter()
            fill_drawn_paths(first, base, odds, filtered, np.uint64(repeat), leaf)
            took.append((middle - begun, time.perf_counter() - middle))
        forward, back = 1e6 * np.min(took[1:], axis=0) / n_row
        print(f"  {n_leaf:2d} leaves: forward {forward:.2f}, back {back:.2f} microseconds a row")
