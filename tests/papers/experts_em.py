"""Trees of experts by EM, least squares, row by row, and by approximate posteriors: on the arm, and beside Gibbs."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

import bayesjpt as bj
from tests.papers import experts_regimes
from tests.papers.experts_arm import simulate

NAMES, TARGETS = [f"x{k}" for k in range(12)], [f"y{j}" for j in range(4)]
PASSES = {"em": 35, "least_squares": 39}
"""As the slides print them."""


def arm_rows(n_train: int, n_test: int) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Return training rows, covariates of new ones, and their targets in units of the training spread."""
    x, y = simulate(n_train, 1)
    new_x, new_y = simulate(n_test, 2)
    scale = y.std(axis=0)
    rows = pd.DataFrame(np.hstack([x, y / scale]), columns=NAMES + TARGETS)
    return rows, pd.DataFrame(new_x, columns=NAMES), new_y / scale


def relative(post, rows: pd.DataFrame, new: pd.DataFrame, truth: np.ndarray) -> float:
    """Return the squared error over that of the training means, all outputs together."""
    found = post.expectation(new).mean(("chain", "draw")).values.T
    return float(((truth - found) ** 2).sum() / ((truth - rows[TARGETS].to_numpy().mean(axis=0)) ** 2).sum())


def searched(n_train: int = 15_000, n_test: int = 5_000, depth: int = 4) -> None:
    """Print relative errors of both algorithms of the slides on the simulated arm, and the time of a pass."""
    rows, new, truth = arm_rows(n_train, n_test)
    own = {"target": TARGETS, "depth": depth, "experts": "gaussian"}
    for method, printed in (("em", ".10"), ("least_squares", ".12")):
        passes = PASSES[method]
        bj.fit_experts(rows.head(500), method=method, passes=2, rng=1, **own)  # compiles
        errors = [
            relative(bj.fit_experts(rows, method=method, passes=passes, rng=seed, **own), rows, new, truth)
            for seed in range(4)
        ]
        seconds = [_seconds(rows, own | {"method": method, "passes": n, "rng": 1}) for n in (5, 25)]
        each = (seconds[1] - seconds[0]) / 20
        both = bj.fit_experts(rows, method=method, passes=passes, chains=4, rng=1, **own)
        averaged = relative(both, rows, new, truth)
        print(f"{method:14s} {min(errors):.4f} to {max(errors):.4f} of 4 starts   slides {printed}; ", end="")
        print(f"4 trees averaged {averaged:.4f}; {passes} passes, {each:.3f} CPU s each", flush=True)
    for depth in (4, 6):
        begun = time.process_time()
        post = bj.fit_experts(rows, method="em", passes=35, grow=True, rng=1, **own | {"depth": depth})
        seconds = time.process_time() - begun
        print(f"em, grown to {post.settings['leaves']} leaves of at most {2**depth}: ", end="")
        print(f"{relative(post, rows, new, truth):.4f}, {seconds:.0f} CPU s", flush=True)


def _seconds(rows: pd.DataFrame, own: dict) -> float:
    begun = time.process_time()
    bj.fit_experts(rows, **own)
    return time.process_time() - begun


def online(n_train: int = 15_000, n_test: int = 5_000, depth: int = 4, n_pass: int = 10) -> None:
    """Print relative errors of recursive least squares after each pass over the arm's rows."""
    rows, new, truth = arm_rows(n_train, n_test)
    own = {"target": TARGETS, "depth": depth, "experts": "gaussian", "rng": 1}
    bj.OnlineExperts(rows.head(500), **own)  # compiles
    for forgetting in (1.0, 0.9999, 0.9995):
        begun = time.process_time()
        learner = bj.OnlineExperts(rows, forgetting=forgetting, **own)
        errors = [relative(learner.posterior(), rows, new, truth)]
        for _ in range(n_pass - 1):
            learner.partial_fit(rows)
            errors.append(relative(learner.posterior(), rows, new, truth))
        seconds = time.process_time() - begun
        shown = ", ".join(f"{errors[k - 1]:.4f} after {k}" for k in (1, 2, 5, n_pass))
        print(f"online, forgetting {forgetting:g}: {shown} passes; {seconds:.1f} CPU s with the questions", flush=True)


def approximations(n_row: int = 1_000, n_seed: int = 5) -> None:
    """Print log scores of the piecewise regression of `regimes` by every method, and spreads beside those of Gibbs."""
    scores: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(n_seed):
        rows, new, truth = experts_regimes.simulate(seed, n_row)
        ways = {
            "gibbs": {},
            "gibbs from em": {"start": bj.fit_experts(rows, target="y", method="em", chains=4, rng=seed)},
            "em": {"method": "em"},
            "em, 4 starts": {"method": "em", "chains": 4},
            "em, grown": {"method": "em", "grow": True, "depth": 4},
            "least_squares": {"method": "least_squares"},
            "laplace": {"method": "laplace"},
            "mean_field": {"method": "mean_field"},
        }
        for name, own in ways.items():
            begun = time.process_time()
            post = bj.fit_experts(rows, target="y", rng=seed, **own)
            seconds = time.process_time() - begun
            density = np.log(np.exp(post.log_density(new)).mean(("chain", "draw"))).mean()
            within = float(post.expectation(new).std("draw").mean())
            scores.setdefault(name, []).append((float(density), within, seconds))
        scores.setdefault("the truth", []).append((float(truth), 0.0, 0.0))
    for name, own in scores.items():
        score, within, _ = np.mean(own, axis=0)
        seconds = min(each[2] for each in own)
        print(f"{name:14s} log score {score:.3f}, spread of a chain's expectations {within:.3f}, {seconds:.2f} CPU s")
