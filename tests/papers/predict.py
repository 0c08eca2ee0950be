"""What the estimators predict and fill in, beside scikit-learn's: classes by logistic regression, gaps by iteration."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - makes the next import possible
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bayesjpt.sklearn import CircuitClassifier, CircuitImputer

N_ROW = 1_000
TEST_SHARE = 0.25
HOLES = 0.1
"""Share of the cells that are hidden, for imputation."""
WITHIN = 0.02
"""Nats of log loss that count as the same."""

CLASSES = {
    "abalone": "sex",
    "adult": "income",
    "autism": "Gender",
    "bank_marketing": "y",
    "breast_wisconsin": "class",
    "car_evaluation": "class",
    "chess_krk": "",
    "iris": "class",
    "wine": "class",
    "wine_quality": "color",
}
"""Tables of ``DIR/uci`` and the column to predict; where no such column is there, the last one is taken."""
MOST_CLASSES = 30
"""Different values of a column that can be a target."""
LEAST_ROWS = 8
"""Rows of a class that takes part."""


class Line(NamedTuple):
    """Scores on one table, ours and theirs, and what the most frequent class (or the mean) gets."""

    name: str
    ours: float
    theirs: float
    baseline: float
    seconds: float


def read(directory: Path, name: str, n_row: int, seed: int) -> pd.DataFrame:
    """Return some rows of a table, drawn at random, "?" as missing, without columns that are numbers of rows."""
    frame = pd.read_csv(directory / "uci" / f"{name}.csv.gz", na_values=["?"], skipinitialspace=True)
    return frame.sample(min(n_row, len(frame)), random_state=seed).reset_index(drop=True)


def split(frame: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return the names of columns of numbers, and of the others."""
    numbers = [name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name])]
    return numbers, [name for name in frame.columns if name not in numbers]


def logistic(frame: pd.DataFrame, seed: int) -> Any:
    """Return a cross-validated logistic regression of standardised numbers and indicators of labels."""
    numbers, labels = split(frame)
    encoded = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), labels),
    )
    strengths = {"C": np.logspace(-3, 2, 6)}
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    best = GridSearchCV(LogisticRegression(max_iter=2_000), strengths, scoring="neg_log_loss", cv=folds)
    return make_pipeline(encoded, best)


def classify(frame: pd.DataFrame, target: str, seed: int, **options: Any) -> Line:
    """Return the log loss of held-out classes, in nats."""
    frame = frame[frame[target].notna()]
    y = frame[target].astype(str).to_numpy()
    common = np.isin(y, [label for label, n in zip(*np.unique(y, return_counts=True), strict=True) if n >= LEAST_ROWS])
    X, y = frame[common].drop(columns=target), y[common]
    train, test, y_train, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=seed, stratify=y)
    started = time.perf_counter()
    ours = CircuitClassifier(random_state=seed, **options).fit(train, y_train)
    found = ours.predict_proba(test)
    seconds = time.perf_counter() - started
    theirs = logistic(train, seed).fit(train, y_train)
    share = np.array([(y_train == label).mean() for label in ours.classes_])
    scores = [
        log_loss(y_test, each, labels=list(ours.classes_))
        for each in (found, theirs.predict_proba(test), np.tile(share, (len(y_test), 1)))
    ]
    return Line(target, *scores, seconds)


def hidden(frame: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with some of its cells hidden, and which, bool (n_row, n_column)."""
    holes = (np.random.default_rng(seed).random(frame.shape) < HOLES) & frame.notna().to_numpy()
    return frame.mask(holes), holes


def iterated(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return a table filled by IterativeImputer; labels take part as indicators, and the largest one wins."""
    numbers, labels = split(frame)
    parts = [frame[numbers].astype(float)]
    for name in labels:
        indicator = pd.get_dummies(frame[name], dtype=float, prefix=name)
        parts.append(indicator.mask(frame[name].isna()))
    wide = pd.concat(parts, axis=1)
    filled = pd.DataFrame(IterativeImputer(random_state=seed).fit_transform(wide), columns=wide.columns)
    out = filled[numbers].copy()
    for name, part in zip(labels, parts[1:], strict=True):
        out[name] = [column.removeprefix(f"{name}_") for column in filled[list(part.columns)].idxmax(axis=1)]
    return out[list(frame.columns)]


def error(frame: pd.DataFrame, filled: pd.DataFrame, holes: np.ndarray) -> float:
    """Return the mean over columns of errors at hidden cells: in standard deviations, or the share of wrong labels."""
    numbers, _ = split(frame)
    found = []
    for position, name in enumerate(frame.columns):
        which = holes[:, position]
        if not which.any():
            continue
        truth, guess = frame.loc[which, name], filled.loc[which, name]
        if name in numbers and frame[name].std() > 0.0:
            found.append(float(np.sqrt(((truth - guess.astype(float)) ** 2).mean()) / frame[name].std()))
        elif name not in numbers:
            found.append(float((truth.astype(str) != guess.astype(str)).mean()))
    return float(np.mean(found))


def impute(frame: pd.DataFrame, seed: int, **options: Any) -> Line:
    """Return the errors at hidden cells of the columns that ours models, which are all but identifiers."""
    holey, holes = hidden(frame, seed)
    numbers, labels = split(frame)
    started = time.perf_counter()
    ours = CircuitImputer(random_state=seed, **options).fit_transform(holey)
    seconds = time.perf_counter() - started
    common = holey.copy()
    common[numbers] = common[numbers].fillna(common[numbers].mean())
    for name in labels:
        common[name] = common[name].fillna(common[name].mode()[0])
    theirs = iterated(holey, seed)
    kind = "mixed" if labels else "numbers"
    modelled = ours.notna().all().to_numpy()
    kept = frame.columns[modelled]
    kind += "" if modelled.all() else f", without {', '.join(frame.columns[~modelled])}"
    return Line(kind, *(error(frame[kept], each[kept], holes[:, modelled]) for each in (ours, theirs, common)), seconds)


def tables_of(directory: Path) -> list[str]:
    """Return the tables of `CLASSES` in a folder of data; where there is none, all that are there.

    Raises
    ------
    FileNotFoundError
        Without a table.
    """
    found = sorted(path.name.removesuffix(".csv.gz") for path in (directory / "uci").glob("*.csv.gz"))
    if not found:
        raise FileNotFoundError(f"no file uci/*.csv.gz in {str(directory)!r}; name the folder of the data sets")
    return [name for name in CLASSES if name in found] or found


def target_of(name: str, frame: pd.DataFrame) -> str | None:
    """Return the column to predict, None where the last one has too many values, or fewer than two frequent ones."""
    target = CLASSES.get(name, "")
    if target not in frame.columns:
        target = str(frame.columns[-1])
    counts = frame[target].value_counts()
    return target if counts.size <= MOST_CLASSES and (counts >= LEAST_ROWS).sum() >= 2 else None


def lines(
    directory: Path, names: list[str], score: Callable[[str, pd.DataFrame], Line], n_row: int, seed: int
) -> Iterator[tuple[str, Line]]:
    """Yield the scores of each table."""
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield name, score(name, read(directory, name, n_row, seed))


def main(arguments: list[str] | None = None) -> None:
    """Print the scores of all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--tables", nargs="*", help="of DIR/uci; by default the ten of the results")
    parser.add_argument("--rows", type=int, default=N_ROW)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--structures", type=int, default=8)
    parser.add_argument("--part", choices=("classes", "gaps", "both"), default="both")
    chosen = parser.parse_args(arguments)
    options = {"n_structures": chosen.structures}

    try:
        names = chosen.tables or tables_of(chosen.data)
        targets = {name: target_of(name, read(chosen.data, name, chosen.rows, chosen.seed)) for name in names}
    except FileNotFoundError as found:
        parser.error(str(found))
    with_target = [name for name in names if targets[name] is not None]

    def by_class(name: str, frame: pd.DataFrame) -> Line:
        return classify(frame, targets[name], chosen.seed, **options)

    def by_gaps(name: str, frame: pd.DataFrame) -> Line:
        return impute(frame, chosen.seed, **options)

    header = f"{'table':18} {'what':26} {'ours':>7} {'theirs':>7} {'baseline':>8} {'s':>6}"
    if chosen.part != "gaps":
        print(
            f"log loss of held-out classes, {chosen.rows} rows; theirs: cross-validated logistic regression\n{header}"
        )
        n_good = 0
        for name, line in lines(chosen.data, with_target, by_class, chosen.rows, chosen.seed):
            good = line.ours <= line.theirs + WITHIN
            n_good += good
            print(shown(name, line), "" if good else "  more", flush=True)
        print(f"within {WITHIN} or better: {n_good} of {len(with_target)}")
        if len(with_target) < len(names):
            print(f"no target: {', '.join(name for name in names if targets[name] is None)}")
    if chosen.part != "classes":
        print(f"errors at {HOLES:.0%} hidden cells; theirs: IterativeImputer; baseline: mean, most frequent\n{header}")
        for name, line in lines(chosen.data, names, by_gaps, chosen.rows, chosen.seed):
            print(shown(name, line), f"  {line.ours / line.theirs:.2f} times", flush=True)


def shown(name: str, line: Line) -> str:
    """Return the scores as a line of a table."""
    numbers = f"{line.ours:7.3f} {line.theirs:7.3f} {line.baseline:8.3f} {line.seconds:6.1f}"
    return f"{name[:18]:18} {line.name[:26]:26} {numbers}"


if __name__ == "__main__":
    main()
