"""What joint probability trees predict: images of digits, and every column of a table given the others."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import bayesjpt as bj
from bayesjpt.circuit.paths import tree_nodes
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.paths import conditions
from bayesjpt.table.table import Table
from tests.papers.jpt_data import FLIGHT_KINDS, Split, read_texts, split_of

FOLDS = 10
FLIGHT_SHARE = 1.0 / 70.0
"""Least rows of a leaf, of those for training, for both kinds of trees."""
DIGIT_ROWS = 100
"""Least rows of a leaf of the digits' tree, as in Figure 3."""

Fit = Callable[[Table, float, int], Posterior]
"""From training rows, the least share of a leaf and a seed to a posterior."""
Show = Callable[[str], None]


class Cluster(NamedTuple):
    """One leaf of the digits' tree: its probability, the most probable class and its probability, expected pixels."""

    probability: float
    digit: str
    share: float
    pixels: np.ndarray


def digit_clusters(frame: pd.DataFrame, fit: Fit, min_rows: int = DIGIT_ROWS) -> list[Cluster]:
    """Return the leaves of a joint tree of pixels and the class, which is the last column, by their expectations."""
    *pixels, digit = frame.columns
    table = bj.as_table(frame, kinds={**dict.fromkeys(pixels, "integer"), digit: "category"})
    post = fit(table, min_rows, 0)
    column = table.schema.columns[-1]
    found = []
    for leaf in (node for node in tree_nodes(post.circuit) if not node.children):
        event = conditions(leaf.region, table.schema) or None
        share = [float(post.probability(bj.col(digit) == label, event).mean()) for label in column.labels]
        image = post.expectation(pixels, event).mean(("chain", "draw")).to_numpy()
        probability = 1.0 if event is None else float(post.probability(event).mean())
        found.append(Cluster(probability, column.labels[int(np.argmax(share))], max(share), image))
    return found


def run_digits(directory: str, picture: Path | None, fit: Fit, show: Show) -> None:
    """Show the leaves of the digits' tree, and draw their expected images."""
    clusters = digit_clusters(read_texts(directory, "digits"), fit)
    show(f"\ndigits: a joint tree of 65 columns with at least {DIGIT_ROWS} rows to a leaf, {len(clusters)} leaves")
    for cluster in clusters:
        show(f"  probability {cluster.probability:.3f}: {cluster.digit} in {cluster.share:.0%}")
    digits = {cluster.digit for cluster in clusters}
    right = sum(cluster.probability * cluster.share for cluster in clusters)
    show(f"{len(digits)} of 10 digits are some leaf's most probable class; it is that of {right:.0%} of the rows")
    if picture is not None:
        draw_digits(clusters, picture)
        show(f"expected images in {picture}")


def draw_digits(clusters: list[Cluster], picture: Path) -> None:
    """Draw the expected pixels of every leaf, with its most probable class."""
    from matplotlib.figure import Figure

    n_column = -(-len(clusters) // 2)
    figure = Figure(figsize=(n_column, 2.5), layout="constrained")
    for axes, cluster in zip(figure.subplots(2, n_column, squeeze=False).flat, clusters, strict=False):
        side = round(cluster.pixels.size**0.5)
        axes.imshow(cluster.pixels.reshape(side, side), cmap="gray_r")
        axes.set_title(cluster.digit, fontsize=9)
    for axes in figure.axes:
        axes.set_axis_off()
    figure.savefig(picture, dpi=100)


Predict = Callable[[int], np.ndarray]
"""From a column's position to its predicted values, codes where it has labels."""


def joint_predictions(post: Posterior, rows: Table) -> Predict:
    """Return what one joint tree predicts: the expectation given the others, or the most probable label."""

    def predict(column: int) -> np.ndarray:
        observed = rows.observed.copy()
        observed[column] = False
        return post.impute_mean(Table(rows.schema, rows.values, observed), recorded=False).table.values[column]

    return predict


def cart_predictions(train: Table, rows: Table, min_rows: float) -> Predict:
    """Return what scikit-learn's tree for each column predicts; labels among the features are codes."""

    def predict(column: int) -> np.ndarray:
        others = np.arange(train.n_column) != column
        known = train.observed[column]
        is_label = train.schema.columns[column].base == "category"
        tree: Any = DecisionTreeClassifier if is_label else DecisionTreeRegressor
        features = [np.where(part.observed, part.values, np.nan)[others].T for part in (train, rows)]
        fitted = tree(min_samples_leaf=min_rows, random_state=0).fit(features[0][known], train.values[column, known])
        return fitted.predict(features[1])

    return predict


def judge(rows: Table, column: int, predicted: np.ndarray) -> dict[str, float]:
    """Return the mean absolute error of a number, or micro and macro F1 of labels, over rows that have the cell."""
    known = rows.observed[column]
    truth, predicted = rows.values[column, known], predicted[known]
    if rows.schema.columns[column].base != "category":
        return {"MAE": float(np.abs(truth - predicted).mean())}
    return {
        f"{kind} F1": float(f1_score(truth, predicted, average=kind, zero_division=0.0)) for kind in ("micro", "macro")
    }


def flight_scores(split: Split, fit: Fit, seed: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Return (joint tree, CART) by column and measure, on one split."""
    joint = joint_predictions(fit(split.train, FLIGHT_SHARE, seed), split.test)
    cart = cart_predictions(split.train, split.test, FLIGHT_SHARE)
    scores = {}
    for position, name in enumerate(split.train.names):
        ours, theirs = (judge(split.test, position, predict(position)) for predict in (joint, cart))
        scores |= {(name, measure): (ours[measure], theirs[measure]) for measure in ours}
    return scores


def run_flights(name: str, directory: str, n_fold: int, fit: Fit, show: Show) -> None:
    """Show how well each column is predicted from the others, means and standard deviations over folds."""
    frame = read_texts(directory, name)[list(FLIGHT_KINDS)]
    show(f"\n{name}: {len(frame)} rows, 7 columns, {n_fold} folds, at least 1/70 of the training rows in a leaf")
    began = time.perf_counter()
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for seed, test in enumerate(np.array_split(np.random.default_rng(0).permutation(len(frame)), n_fold)):
        for key, pair in flight_scores(split_of(frame, test, FLIGHT_KINDS), fit, seed).items():
            found[key].append(pair)
    show(f"{'':<28}{'joint tree':>22}{'CART of the column':>22}")
    for (column, measure), pairs in found.items():
        cells = "".join(f"{np.mean(side):>13.4f} +- {np.std(side):.4f}" for side in zip(*pairs, strict=True))
        show(f"{column + ', ' + measure:<28}{cells}")
    show(f"{time.perf_counter() - began:.0f} s")
