"""What joint probability trees make of x sin x: the paper's Table 1, and what its figures depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.neighbors import KernelDensity
from sklearn.tree import DecisionTreeRegressor

import bayesjpt as bj
from tests.papers.jpt_data import CURVE, curve, curve_rows
from tests.papers.jpt_predict import Fit, Show

N_POINT = 200
KERNEL_WIDTH = 0.1
"""Standard deviation of the kernels of a smooth leaf, in units of x."""


class Errors(NamedTuple):
    """Mean absolute errors of E(y given x) against the curve without noise."""

    joint: float
    discriminative: float
    cart: float


def curve_errors(share: float, fit: Fit, seed: int) -> Errors:
    """Return the errors of a joint tree, of one that is judged by y alone, and of CART, on one draw of the curve."""
    frame = curve_rows(np.random.default_rng(seed))
    table = bj.as_table(frame)
    x = np.linspace(frame["x"].min(), frame["x"].max(), N_POINT)
    points = bj.as_table(pd.DataFrame({"x": x, "y": np.full(N_POINT, np.nan)}), schema=table.schema)
    circuit = bj.learn_jpt(table, np.random.default_rng(seed), min_rows=share, targets=["y"], features=["x"])
    predicted = [
        post.expectation("y", points).mean(("chain", "draw")).to_numpy().ravel()
        for post in (fit(table, share, seed), bj.Posterior.from_circuit(circuit, table.schema))
    ]
    cart = DecisionTreeRegressor(min_samples_leaf=share).fit(frame[["x"]].to_numpy(), frame["y"])
    return Errors(*(float(np.abs(y - curve(x)).mean()) for y in (*predicted, cart.predict(x[:, None]))))


def run_curve(n_seed: int, fit: Fit, show: Show) -> None:
    """Show the errors on the curve at every size of leaf, means over draws of the points."""
    show(f"\nx sin x: mean absolute error of E(y given x) at {N_POINT} points, 1,000 training rows, {n_seed} seeds")
    show(f"{'least':>6}{'joint tree':>18}{'judged by y':>18}{'CART':>18}{'printed: joint, CART':>24}")
    for share, printed in CURVE.items():
        errors = np.array([curve_errors(share, fit, seed) for seed in range(n_seed)])
        cells = "".join(f"{errors[:, k].mean():>10.3f} +- {errors[:, k].std():.3f}" for k in range(3))
        show(f"{share:>6.0%}{cells}{printed[0]:>15.2f}, {printed[1]:.2f}")
    show("the same by hand: how splits weigh their two parts, and how leaves describe x")
    show(f"{'least':>6}" + "".join(f"{name:>27}" for name in READINGS))
    for share in CURVE:
        by_hand = [[reading_error(share, seed, *reading) for seed in range(n_seed)] for reading in READINGS.values()]
        show(f"{share:>6.0%}" + "".join(f"{np.mean(row):>18.3f} +- {np.std(row):.3f}" for row in by_hand))


# --- the same by hand, to see what the printed figures depend on


def split_by_hand(rows: np.ndarray, least: int, equally: bool) -> tuple[int, float] | None:
    """Return (column, threshold) of the best split of rows (n, 2): each column is judged by the variance of the other.

    `equally`: the variances of both parts count alike, instead of by their rows.
    """
    n, best, found = len(rows), 1e-9, None
    for column in (0, 1):
        rows = rows[np.argsort(rows[:, column], kind="stable")]
        other = rows[:, 1 - column] - rows[:, 1 - column].mean()
        left = np.arange(least, n - least + 1)
        left = left[rows[left, column] > rows[left - 1, column]]
        if not left.size:
            continue
        sums, squares = np.append(0.0, other.cumsum()), np.append(0.0, (other**2).cumsum())
        parts = [(left, sums[left], squares[left]), (n - left, sums[n] - sums[left], squares[n] - squares[left])]
        variances = [square / m - (total / m) ** 2 for m, total, square in parts]
        weights = (0.5, 0.5) if equally else (left / n, 1.0 - left / n)
        gain = 1.0 - sum(w * v for w, v in zip(weights, variances, strict=True)) / other.var()
        if gain.max() > best:
            at = left[gain.argmax()]
            best, found = gain.max(), (column, 0.5 * (rows[at - 1, column] + rows[at, column]))
    return found


def leaves_by_hand(rows: np.ndarray, least: int, equally: bool) -> list[np.ndarray]:
    """Return the rows of each leaf of a joint tree of two columns."""
    found = split_by_hand(rows, least, equally) if len(rows) >= 2 * least else None
    if found is None:
        return [rows]
    is_left = rows[:, found[0]] < found[1]
    return [leaf for part in (rows[is_left], rows[~is_left]) for leaf in leaves_by_hand(part, least, equally)]


def histogram(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the density at x of a histogram with two values to a piece, next to none beyond, less with distance."""
    edges = np.quantile(values, np.linspace(0.0, 1.0, max(values.size // 2, 1) + 1))
    piece = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, edges.size - 2)
    beyond = np.maximum(edges[0] - x, x - edges[-1])
    return np.where(beyond <= 0.0, 1.0 / (edges.size - 1) / np.diff(edges)[piece], 1e-9 * np.exp(-beyond))


def kernels(values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the density at x of normal kernels of width `KERNEL_WIDTH` at the values."""
    return np.exp(KernelDensity(bandwidth=KERNEL_WIDTH).fit(values[:, None]).score_samples(x[:, None]))


READINGS: dict[str, tuple[bool, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "by rows, histograms": (False, histogram),
    "equally, histograms": (True, histogram),
    "by rows, kernels": (False, kernels),
    "equally, kernels": (True, kernels),
}


def reading_error(share: float, seed: int, equally: bool, density) -> float:
    """Return the error of one reading on one draw of the curve."""
    rows = curve_rows(np.random.default_rng(seed)).to_numpy()
    x = np.linspace(rows[:, 0].min(), rows[:, 0].max(), N_POINT)
    leaves = leaves_by_hand(rows, round(share * len(rows)), equally)
    weight = np.array([len(leaf) * density(leaf[:, 0], x) for leaf in leaves])
    mean = np.array([leaf[:, 1].mean() for leaf in leaves])
    return float(np.abs(mean @ weight / weight.sum(axis=0) - curve(x)).mean())
