"""Odd rows told from usual ones, beside isolation forests: python -m tests.papers.outliers --data DIR.

Tables of ADBench (Han, Hu, Huang, Jiang, Zhao, 2022, NeurIPS Datasets and Benchmarks) whose rows are labelled. Nobody
sees the labels: every program learns from all rows and scores the same ones. Ours by both scores of
`outliers`, each row by the posterior without it and as it was fitted.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

import bayesjpt as bj
from bayesjpt.defaults import CHAINS, DRAWS, TUNE
from tests.papers.scores import markdown

HEADER = (
    *("table", "rows", "columns", "outliers", "isolation forest"),
    *("tails", "tails, as fitted", "log mass", "log mass, as fitted", "processor s"),
)


def read(data: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the cells of a table, float64 (n_row, n_column), and whether each row is an outlier."""
    with np.load(Path(data) / "outliers" / f"{name}.npz") as held:
        return held["X"].astype(float), held["y"].astype(bool)


def our_scores(cells: np.ndarray, seed: int, options: dict[str, Any]) -> list[np.ndarray]:
    """Return how odd we find each row, float64 (n_row,), without it in the fit and with it: by tails, and by mass."""
    frame = pd.DataFrame(cells, columns=[f"x{column}" for column in range(cells.shape[1])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bj.BayesjptWarning)  # constant columns, chains that do not agree yet
        post = bj.fit(bj.as_table(frame, kinds=_numbers(cells)), seed=seed, progress=False, **options)
    asked = [post.outliers(frame, training=training) for training in (True, False)]
    return [*(found["score"].to_numpy() for found in asked), *(-found["log_mass"].to_numpy() for found in asked)]


def _numbers(cells: np.ndarray) -> dict[str, str]:
    """Return kinds that keep every column: nearly distinct whole numbers would be set aside as identifiers."""
    whole = (cells == np.rint(cells)).all(axis=0)
    distinct = np.array([np.unique(column).size for column in cells.T])
    return {f"x{c}": "integer" for c in np.flatnonzero(whole & (distinct > 0.9 * len(cells)))}


def compare(name: str, data: str, seeds: Sequence[int], options: dict[str, Any]) -> tuple[list[str], np.ndarray]:
    """Return a line of the table, and the mean areas under the curve of all scores, the forest's first."""
    cells, odd = read(data, name)
    areas, seconds = [], 0.0
    for seed in seeds:
        start = time.process_time()
        scores = our_scores(cells, seed, options)
        seconds += time.process_time() - start
        forest = -IsolationForest(random_state=seed).fit(cells).score_samples(cells)
        areas.append([roc_auc_score(odd, score) for score in (forest, *scores)])
    mean, spread = np.mean(areas, axis=0), np.std(areas, axis=0)
    shown = [f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True)]
    row = [name, str(odd.size), str(cells.shape[1]), f"{odd.mean():.1%}", *shown, f"{seconds / len(seeds):.1f}"]
    return row, mean


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print it; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.outliers", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds outliers/")
    parser.add_argument("--tables", nargs="+", help="of outliers/; all of them unless given")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--chains", type=int, default=CHAINS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--tune", type=int, default=TUNE)
    asked = parser.parse_args(arguments)
    names = asked.tables or sorted(path.stem for path in (Path(asked.data) / "outliers").glob("*.npz"))
    options = {"chains": asked.chains, "draws": asked.draws, "tune": asked.tune}
    rows, means = [], []
    for name in names:
        row, mean = compare(name, asked.data, range(asked.seeds), options)
        print(" ".join(row), file=sys.stderr, flush=True)
        rows.append(row)
        means.append(mean)
    rows.append(["mean", "", "", "", *(f"{area:.3f}" for area in np.mean(means, axis=0)), ""])
    print(markdown(HEADER, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
