"""Hierarchical mixtures of experts on the problems of Jordan's slides, beside scikit-learn in the same run."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.stats
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import bayesjpt as bj
from tests.papers import experts_em, experts_regimes
from tests.papers.experts_arm import simulate
from tests.papers.experts_series import TRUTHS, hmdt

PARTS = ("arm", "em", "online", "classes", "regimes", "approximations", "hmdt")
TABLES = {"heart": "nomiss.heart.all.csv", "diabetes": "nomiss.diabetes.all.csv"}


def relative_error(truth: np.ndarray, found: np.ndarray, trained: np.ndarray) -> float:
    """Return the squared error over that of the training means, all outputs together."""
    return float(((truth - found) ** 2).sum() / ((truth - trained.mean(axis=0)) ** 2).sum())


def arm(n_train: int = 15_000, n_test: int = 5_000, depth: int = 4, draws: int = 100, tune: int = 200) -> None:
    """Print relative errors on the simulated arm; the slides' own arm is not published."""
    x, y = simulate(n_train, 1)
    new_x, new_y = simulate(n_test, 2)
    scale = y.std(axis=0)
    y, new_y = y / scale, new_y / scale
    linear = LinearRegression().fit(x, y).predict(new_x)
    print(f"linear          {relative_error(new_y, linear, y):.3f}   slides .31")
    trees = [
        DecisionTreeRegressor(min_samples_leaf=10, random_state=0).fit(x, y[:, j]).predict(new_x) for j in range(4)
    ]
    print(f"CART            {relative_error(new_y, np.column_stack(trees), y):.3f}   slides .17, of linear leaves .13")
    names, targets = [f"x{k}" for k in range(12)], [f"y{j}" for j in range(4)]
    frame = pd.DataFrame(np.hstack([x, y]), columns=names + targets)
    begun = time.process_time()
    post = bj.fit_experts(
        frame, target=targets, given=names, depth=depth, experts="gaussian", draws=draws, tune=tune, chains=4, rng=1
    )
    seconds = time.process_time() - begun
    n_sweep = 4 * (draws + tune)
    new = pd.DataFrame(np.hstack([new_x, new_y]), columns=names + targets)
    found = post.expectation(new)
    mean = found.mean(("chain", "draw")).values.T
    each = [relative_error(new_y, found.mean("draw").values[chain].T, y) for chain in range(4)]
    error, a_sweep = relative_error(new_y, mean, y), seconds / n_sweep / n_train / depth
    print(f"experts, Gibbs  {error:.3f}   slides (EM) .10; single chains {min(each):.3f} to {max(each):.3f}")
    print(f"depth {depth}, {n_sweep} sweeps: {seconds:.0f} CPU s, {1e6 * a_sweep:.2f} us a row and level")
    print_question_times(post, new[:1_000])


def print_question_times(post: bj.ExpertPosterior, rows: pd.DataFrame) -> None:
    """Print what questions about some rows, with targets, cost a pair of a draw and a row; each is asked twice."""
    table, n_pair, target = post.read(rows), post.n_chain * post.n_draw * len(rows), post.targets[0]
    questions = {
        "predict, one target": lambda: post.predict(table, target=target),
        "expectation": lambda: post.expectation(table),
        "variance": lambda: post.variance(table),
        "log density": lambda: post.log_density(table),
        "params": lambda: [None for _ in post._parts(table)],
    }
    for name, ask in questions.items():
        ask()  # compiles
        begun = time.process_time()
        ask()
        print(f"{name}: {1e6 * (time.process_time() - begun) / n_pair:.2f} us a (draw, row)", flush=True)


METHODS = {
    "gibbs0": {"depth": 0},
    "gibbs1": {"depth": 1},
    "gibbs2": {"depth": 2},
    "em0": {"depth": 0, "method": "em", "chains": 4},
    "em1": {"depth": 1, "method": "em", "chains": 4},
    "em2": {"depth": 2, "method": "em", "chains": 4},
    "grown": {"depth": 2, "method": "em", "chains": 4, "grow": True},
}
"""By depth; EM with 4 starts, of which "grown" chooses its leaves by training rows alone."""


def classes(directory: Path, repeats: int, chosen: Sequence[str]) -> None:
    """Print log losses and error rates of heart and Pima by so many times 10-fold cross-validation."""
    methods = {name: METHODS[name] for name in chosen}
    for name in TABLES:
        files = sorted((directory / "mspn" / name).glob("nomiss*"))
        if not files:
            print(f"{name}: no file mspn/{name}/nomiss* in {str(directory)!r}")
            continue
        frame = pd.read_csv(files[0])
        target = frame.columns[-1]
        frame[target] = np.where(frame[target] == sorted(frame[target].unique())[-1], "yes", "no")
        kinds = {c: "category" for c in frame.columns[:-1] if name == "heart" and frame[c].nunique() in (3, 4)}
        scores: dict[str, list[tuple[float, float]]] = {}
        folds = [StratifiedKFold(10, shuffle=True, random_state=repeat) for repeat in range(repeats)]
        for train, test in (pair for each in folds for pair in each.split(frame, frame[target])):
            rows, new = frame.iloc[train], frame.iloc[test]
            hit = (new[target] == "yes").to_numpy()
            found = {"logistic regression": _logistic(rows, new, target, list(kinds))}
            for key, own in methods.items():
                post = bj.fit_experts(rows, target=target, kinds=kinds | {target: "category"}, rng=1, **own)
                found[key] = post.predict(new.drop(columns=target))["yes"].to_numpy()
            for key, p in found.items():
                scores.setdefault(key, []).append((-np.log(np.where(hit, p, 1 - p)).sum(), ((p > 0.5) != hit).sum()))
        print(f"{name}, {len(frame)} rows: log loss, error rate")
        for key, own in scores.items():
            loss, wrong = np.sum(own, axis=0) / len(frame) / repeats
            print(f"  {key:22s} {loss:.4f}  {wrong:.3f}", flush=True)


def _logistic(rows: pd.DataFrame, new: pd.DataFrame, target: str, labels: list[str]) -> np.ndarray:
    both = pd.get_dummies(pd.concat([rows, new]).drop(columns=target), columns=labels, drop_first=True).to_numpy(float)
    scaler = StandardScaler().fit(both[: len(rows)])
    model = LogisticRegressionCV(Cs=10, cv=5, max_iter=2_000, scoring="neg_log_loss")
    model.fit(scaler.transform(both[: len(rows)]), rows[target] == "yes")
    return model.predict_proba(scaler.transform(both[len(rows) :]))[:, 1]


def regimes(n_row: int = 1_000, n_seed: int = 5) -> None:
    """Print log scores and coverage on a piecewise linear regression whose noise changes, beside boosting."""
    lines = []
    for seed in range(n_seed):
        rows, new, truth = experts_regimes.simulate(seed, n_row)
        post = bj.fit_experts(rows, target="y", depth=2, rng=seed)
        density = np.log(np.exp(post.log_density(new)).mean(("chain", "draw"))).mean()
        ends = post.predict(new)
        held = ((new["y"] >= ends["lower"]) & (new["y"] <= ends["upper"])).mean()
        boosted = GradientBoostingRegressor(random_state=0).fit(rows[["a", "b", "c"]], rows["y"])
        half = GradientBoostingRegressor(random_state=0).fit(rows[["a", "b", "c"]][::2], rows["y"][::2])
        deviation = (rows["y"][1::2] - half.predict(rows[["a", "b", "c"]][1::2])).std()
        other = scipy.stats.norm.logpdf(new["y"], boosted.predict(new[["a", "b", "c"]]), deviation).mean()
        lines.append((float(density), float(other), truth, float(held)))
        if seed == 0:
            print_question_times(post, new)
    ours, theirs, truth, held = np.mean(lines, axis=0)
    print(f"log score a row: experts {ours:.3f}, boosting with a gaussian head {theirs:.3f}, the truth {truth:.3f}")
    print(f"intervals of 90 % hold {100 * held:.1f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="Folder of the tables of heart and Pima.")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, default=1, help="Of the 10 folds of classes, each time others.")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="Of classes; all.")
    parser.add_argument("--truths", nargs="+", choices=TRUTHS, default=TRUTHS, help="Of hmdt; all.")
    parser.add_argument("--series", type=int, default=10, help="Of hmdt, to fit and to judge by, of 400 rows each.")
    chosen = parser.parse_args()
    if "classes" in chosen.parts and chosen.data is None:
        parser.error("--data is needed for classes; other parts: --parts arm em online regimes approximations")
    warnings.simplefilter("ignore")
    if "arm" in chosen.parts:
        arm()
    if "em" in chosen.parts or "arm" in chosen.parts:
        experts_em.searched()
    if "online" in chosen.parts:
        experts_em.online()
    if "classes" in chosen.parts:
        classes(chosen.data, chosen.repeats, chosen.methods)
    if "regimes" in chosen.parts:
        regimes()
    if "approximations" in chosen.parts:
        experts_em.approximations()
    if "hmdt" in chosen.parts:
        hmdt(chosen.truths, n_series=chosen.series)


if __name__ == "__main__":
    main()
