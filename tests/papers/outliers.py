"""Odd rows told from usual ones, beside isolation forests: python -m tests.papers.outliers --data DIR.

Tables of ADBench (Han, Hu, Huang, Jiang, Zhao, 2022, NeurIPS Datasets and Benchmarks) whose rows are labelled or, with
`--tasks validation`, others, on which scores are chosen. Nobody sees the labels: every program learns from all rows and
scores the same ones. Ours by both scores of `outliers`, each row by the posterior without it and as it was fitted.
Forests see labels as indicators, and the median of a column where a cell is missing.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

import bayesjpt as bj
from tests.papers import outlier_tasks
from tests.papers.programs import run
from tests.papers.scores import markdown

HEADER = (
    *("table", "rows", "columns", "outliers", "isolation forest"),
    *("tails", "tails, as fitted", "log mass", "log mass, as fitted", "processor s"),
)


def our_scores(cells: pd.DataFrame, seed: int, options: dict[str, Any]) -> list[np.ndarray]:
    """Return how odd we find each row, float64 (n_row,), without it in the fit and with it: by tails, and by mass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bj.BayesjptWarning)  # constant columns, chains that do not agree yet
        post = bj.fit(bj.as_table(cells, kinds=_numbers(cells)), seed=seed, progress=False, **options)
    asked = [post.outliers(cells, training=training, max_draws=None) for training in (True, False)]
    return [*(found["score"].to_numpy() for found in asked), *(-found["log_mass"].to_numpy() for found in asked)]


def forest_scores(cells: pd.DataFrame, seed: int) -> np.ndarray:
    """Return how odd an isolation forest of scikit-learn's defaults finds each row, float64 (n_row,)."""
    numbers = pd.get_dummies(cells, dtype=float)
    numbers = numbers.fillna(numbers.median()).to_numpy()
    return -IsolationForest(random_state=seed).fit(numbers).score_samples(numbers)


def _numbers(cells: pd.DataFrame) -> dict[str, str]:
    """Return kinds that keep every column: nearly distinct whole numbers would be set aside as identifiers."""
    numbers = cells.select_dtypes("number")
    whole = (numbers.isna() | (numbers == numbers.round())).all() & (numbers.nunique() > 0.9 * len(cells))
    return dict.fromkeys(numbers.columns[whole], "integer")


def compare(
    name: str, read: Callable[[int], outlier_tasks.Task], seeds: Sequence[int], options: dict[str, Any]
) -> tuple[list[str], np.ndarray]:
    """Return a line of the table, and the mean areas under the curve of all scores, the forest's first."""
    areas, seconds = [], 0.0
    for seed in seeds:
        task = read(seed)
        start = time.process_time()
        scores = our_scores(task.cells, seed, options)
        seconds += time.process_time() - start
        areas.append([roc_auc_score(task.odd, score) for score in (forest_scores(task.cells, seed), *scores)])
    mean, spread = np.mean(areas, axis=0), np.std(areas, axis=0)
    shown = [f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True)]
    n_row, n_column = task.cells.shape
    row = [name, str(n_row), str(n_column), f"{task.odd.mean():.1%}", *shown, f"{seconds / len(seeds):.1f}"]
    return row, mean


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print it; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.outliers", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder of the data sets")
    parser.add_argument("--tasks", choices=outlier_tasks.COLLECTIONS, default="adbench")
    parser.add_argument("--tables", nargs="+", help="of the collection; all of them unless given")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--chains", type=int)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--tune", type=int)
    asked = parser.parse_args(arguments)
    tasks = outlier_tasks.COLLECTIONS[asked.tasks](asked.data)
    options = {"chains": asked.chains, "draws": asked.draws, "tune": asked.tune}
    rows, means = [], []
    for name in asked.tables or tasks:
        row, mean = compare(name, tasks[name], range(asked.seeds), options)
        print(" ".join(row), file=sys.stderr, flush=True)
        rows.append(row)
        means.append(mean)
    rows.append(["mean", "", "", "", *(f"{area:.3f}" for area in np.mean(means, axis=0)), ""])
    print(markdown(HEADER, rows))
    return 0


if __name__ == "__main__":
    run(main)
