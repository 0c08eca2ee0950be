"""Simulated series that switch among regimes, and what the truth itself knows of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
import pandas as pd
import scipy.stats
from sklearn.metrics import adjusted_rand_score

import bayesjpt as bj
from bayesjpt.kernels.expert_series import fill_base_odds, fill_drawn_paths, fill_filtered, fill_memory_odds
from bayesjpt.kernels.expert_series_start import slots

INTERCEPT = np.array([2.0, -1.0, 0.0, 0.5])
SLOPE = np.array([1.0, -1.0, 2.0, -0.5])
SPREAD = np.array([0.4, 0.6, 0.5, 0.3])
"""Of four regimes: each a linear regression with noise of its own."""


STAYS = 0.93
PULL = np.array([1.0, -1.0, 0.5, -0.5])
"""Of a covariate towards each regime, wherever a series was before."""


def leaving(x: np.ndarray) -> np.ndarray:
    """Return P(regime | the one before), (n_row, 4, 4): the covariate drives how soon a regime is left.

    No tree of gates can say that: the covariate's effect would have to change its sign with the regime before.
    """
    leave = 1.0 / (1.0 + np.exp(3.0 - x))
    out = np.zeros((x.size, 4, 4))
    for k in range(4):
        out[:, k, k], out[:, k, (k + 1) % 4], out[:, k, (k + 2) % 4] = 1.0 - leave, 0.7 * leave, 0.3 * leave
    return out


def pulling(x: np.ndarray) -> np.ndarray:
    """Return P(regime | the one before), (n_row, 4, 4): a sticky matrix times what the covariate pulls to."""
    sticky = np.full((4, 4), (1.0 - STAYS) / 3.0) + (STAYS - (1.0 - STAYS) / 3.0) * np.eye(4)
    out = sticky * np.exp(PULL * x[:, None])[:, None, :]
    return out / out.sum(axis=2, keepdims=True)


def deciding(x: np.ndarray) -> np.ndarray:
    """Return P(regime | the one before), (n_row, 4, 4), of gates that see the decision before at their level."""
    out = np.empty((x.size, 4, 4))
    for before in range(4):
        sides = 2 * (before // 2) - 1, 2 * (before % 2) - 1
        right = 1.0 / (1.0 + np.exp(-0.8 * x - 2.2 * sides[0]))
        for half, share in enumerate((1.0 - right, right)):
            own = 1.0 / (1.0 + np.exp((1.6 * half - 0.8) * x - 1.8 * sides[1]))
            out[:, before, 2 * half], out[:, before, 2 * half + 1] = share * (1.0 - own), share * own
    return out


class Truth(NamedTuple):
    """What series are simulated from.

    Attributes
    ----------
    transitions : callable
        P(regime | the one before), (n_row, 4, 4), of a covariate's values.
    noise : float
        Factor of all standard deviations within regimes.
    """

    transitions: Callable[[np.ndarray], np.ndarray]
    noise: float = 1.0


TRUTHS = {
    "quiet": Truth(pulling, 0.6),
    "pulling": Truth(pulling),
    "leaving": Truth(leaving),
    "deciding": Truth(deciding),
}
"""The noise of *quiet* is the factor of .4, .5, .6, .7, 1 with which the truth's own filter is nearest to an adjusted
Rand index of .9 (two series of seeds that are not used here, nothing fitted)."""
PAIRS = (
    ("quiet", "leaf"),
    ("pulling", "leaf"),
    ("deciding", "decision"),
    ("leaving", "leaf"),
    ("pulling", "decision"),
)
"""Truths, and what transitions they are fitted with; the last two are truths that such transitions cannot say."""


def simulate(chosen: Truth, n_series: int, n_step: int, seed: int) -> pd.DataFrame:
    """Return series of ``t``, ``id``, ``x``, ``y`` and the true ``regime``."""
    rng, out = np.random.default_rng(seed), []
    for number in range(n_series):
        x, regime = rng.normal(size=n_step), np.zeros(n_step, np.int64)
        share = chosen.transitions(x)
        regime[0] = rng.integers(4)
        for t in range(1, n_step):
            regime[t] = rng.choice(4, p=share[t, regime[t - 1]])
        y = INTERCEPT[regime] + SLOPE[regime] * x + chosen.noise * SPREAD[regime] * rng.normal(size=n_step)
        out.append(pd.DataFrame({"t": np.arange(n_step), "id": number, "x": x, "y": y, "regime": regime}))
    return pd.concat(out, ignore_index=True)


def truth(chosen: Truth, rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what the truth says: log density of each row given those before it, filtered and smoothed regimes."""
    score, filtered, smoothed = np.empty(len(rows)), np.empty((len(rows), 4)), np.empty((len(rows), 4))
    for _, own in rows.groupby("id"):
        at, x, y = own.index.to_numpy(), own["x"].to_numpy(), own["y"].to_numpy()
        share = chosen.transitions(x)
        density = scipy.stats.norm.pdf(y[:, None], INTERCEPT + SLOPE * x[:, None], chosen.noise * SPREAD)
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


def hmdt(truths: Collection[str] = TRUTHS, n_series: int = 10, n_step: int = 400, n_seed: int = 5) -> None:
    """Print log scores, regimes and coverage on new series of the same kind, then the times of the passes."""
    print(
        "log score: experts over time, the truth, experts without time; adjusted Rand filtered and smoothed: experts,"
    )
    print(
        "the truth; least of a chain; per cent within intervals of 90 %; CPU seconds a fit; the truth's log score less"
    )
    print("that of experts over time, and its standard error over series")
    for name, kind in [pair for pair in PAIRS if pair[0] in truths]:
        lines = []
        for seed in range(n_seed):
            lines.append(_compare(name, kind, n_series, n_step, seed))
            print(f"  {name} {kind} {seed}: " + " ".join(f"{value:.4f}" for value in lines[-1]), flush=True)
        print(f"  {name} {kind}: " + " ".join(f"{value:.4f}" for value in np.mean(lines, axis=0)), flush=True)
    passes()


def _compare(name: str, kind: str, n_series: int, n_step: int, seed: int) -> list[float]:
    rows = simulate(TRUTHS[name], n_series, n_step, seed)
    new = simulate(TRUTHS[name], n_series, n_step, 100 + seed)
    begun = time.process_time()
    post = bj.fit_experts(rows, target="y", given=["x"], time="t", series="id", depth=2, transitions=kind, rng=seed)
    seconds = time.process_time() - begun
    assert isinstance(post, bj.ExpertSeriesPosterior)
    apart = bj.fit_experts(rows, target="y", given=["x"], depth=2, rng=seed)
    score, filtered, smoothed = truth(TRUTHS[name], new)
    own_score = _log_scores(post, new)
    line, least = [float(own_score.mean()), float(score.mean()), float(_log_scores(apart, new).mean())], 1.0
    for own, theirs in ((post.filter(new), filtered), (post.smooth(new), smoothed)):
        found = own.mean("draw").values.argmax(axis=1)
        each = [adjusted_rand_score(new["regime"], chain) for chain in found]
        line += [float(np.mean(each)), adjusted_rand_score(new["regime"], theirs.argmax(axis=1))]
        least = min(least, *each)
    ends = post.predict(new)
    held = ((new["y"] >= ends["lower"]) & (new["y"] <= ends["upper"])).mean()
    each = pd.Series(score - own_score).groupby(new["id"].to_numpy()).mean()
    return [*line, least, 100.0 * float(held), seconds, float(each.mean()), float(each.sem())]


def _log_scores(post: bj.ExpertPosterior, rows: pd.DataFrame) -> np.ndarray:
    return np.log(np.exp(post.log_density(rows)).mean(("chain", "draw"))).values


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
            begun = time.process_time()
            fill_base_odds(gate_x, gate, base)
            fill_filtered(first, base, odds, evidence, predicted, filtered, each)
            middle = time.process_time()
            fill_drawn_paths(first, base, odds, filtered, np.uint64(repeat), leaf)
            took.append((middle - begun, time.process_time() - middle))
        forward, back = 1e6 * np.min(took[1:], axis=0) / n_row
        print(f"  {n_leaf:2d} leaves: forward {forward:.2f}, back {back:.2f} microseconds a row")
