"""Tables with rows that are known to be odd: those of ADBench, and others to choose scores on.

A score that is chosen on the tables it is reported on looks better than it is. The second collection is made of other
tables: rows of one or more classes are usual, few of another are odd, and the class is dropped; or a few cells of usual
rows are spoiled. Which rows are drawn follows from a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from tests.papers.programs import names_of

N_USUAL = 1500
"""Usual rows of a task, at most."""

ODD_SHARE = 0.05
"""Odd rows for each usual one."""


class Task(NamedTuple):
    """Rows, and which of them are odd: bool (n_row,)."""

    cells: pd.DataFrame
    odd: np.ndarray


Maker = Callable[[str, np.random.Generator], Task]
"""Returns a task from the folder of the data sets."""


def _labelled(data: str, name: str, _seed: int) -> Task:
    """Return a table of ADBench (Han, Hu, Huang, Jiang, Zhao, 2022, NeurIPS Datasets and Benchmarks)."""
    with np.load(Path(data) / "outliers" / f"{name}.npz") as held:
        cells, odd = held["X"].astype(float), held["y"].astype(bool)
    return Task(_frame(cells), odd)


def _frame(cells: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(cells, columns=[f"x{column}" for column in range(cells.shape[1])])


def _read(data: str, path: str) -> pd.DataFrame:
    return pd.read_csv(Path(data) / f"{path}.csv.gz", na_values="?")


def _some(rows: pd.DataFrame, n: float, rng: np.random.Generator) -> pd.DataFrame:
    """Return at most n rows, drawn without replacement."""
    return rows.iloc[rng.permutation(len(rows))[: int(n)]]


def classes(path: str, usual: str, odd: str, drop: str) -> Maker:
    """Return a task of rows for which an expression holds, and few for which another does."""

    def make(data: str, rng: np.random.Generator) -> Task:
        rows = _read(data, path)
        common = _some(rows.query(usual), N_USUAL, rng)
        rare = _some(rows.query(odd), np.ceil(ODD_SHARE * len(common)), rng)
        labels = np.arange(len(common) + len(rare)) >= len(common)
        order = rng.permutation(labels.size)
        return Task(
            pd.concat([common, rare]).drop(columns=drop.split()).iloc[order].reset_index(drop=True), labels[order]
        )

    return make


Spoiler = Callable[[pd.Series, int, np.random.Generator], object]
"""Returns a wrong value for a cell of a column, by number; the right one if there is none."""


def spoiled(rows: Callable[[str], pd.DataFrame], spoil: Spoiler, n_cell: int = 1) -> Maker:
    """Return a task of usual rows, some of which have cells that are wrong."""

    def make(data: str, rng: np.random.Generator) -> Task:
        clean = _some(rows(data), N_USUAL, rng).reset_index(drop=True)
        cells, odd = clean.copy(), np.zeros(len(clean), bool)
        for row in rng.permutation(len(clean))[: int(ODD_SHARE * len(clean))]:
            n_left = n_cell
            for column in rng.permutation(clean.shape[1]):
                wrong = spoil(clean.iloc[:, column], row, rng)
                if n_left and wrong != clean.iat[row, column]:
                    cells.iat[row, column] = wrong
                    odd[row] = True
                    n_left -= 1
        return Task(cells, odd)

    return make


def misplaced(column: pd.Series, row: int, rng: np.random.Generator) -> float:
    """Return a number with its decimal point one place to the left or right."""
    power = 10.0 if rng.random() < 0.5 else 0.1
    return float(np.round(column.iat[row] * power, 9))


def exchanged(column: pd.Series, row: int, rng: np.random.Generator) -> object:
    """Return the cell of another row that differs."""
    values = np.asarray(column)
    others = values[np.asarray((column != column.iat[row]) & column.notna())]
    return rng.choice(others) if others.size else values[row]


def _events(data: str) -> pd.DataFrame:
    """Return 500 rows: their 43 columns of distinct values take as long as all other tables together."""
    with np.load(Path(data) / "miniboone" / "miniboone_prefix.npz") as held:
        return _frame(held["X"][:500].astype(float))


VALIDATION: dict[str, Maker] = {
    "iris": classes("uci/iris", "`class` != 'Iris-virginica'", "`class` == 'Iris-virginica'", "class"),
    "digits": classes("uci/digits", "`class` in [4, 9]", "`class` not in [4, 9]", "class"),
    "shuttle": classes(
        "uci/shuttle_test", "`class` == 'Rad Flow'", "`class` not in ['Rad Flow', 'High']", "time class"
    ),
    "white": classes(
        *("uci/wine_quality", "color == 'white' and 5 <= quality <= 7"),
        *("color == 'white' and quality in [3, 4, 9]", "color quality"),
    ),
    "colour": classes("uci/wine_quality", "color == 'white'", "color == 'red'", "color quality"),
    "abalone": classes("uci/abalone", "8 <= rings <= 11", "rings < 5 or rings > 15", "rings"),
    "breast": classes("uci/breast_wisconsin", "`class` == 2", "`class` == 4", "class sample_id"),
    "car": classes("uci/car_evaluation", "`class` == 'unacc'", "`class` == 'vgood'", "class"),
    "bank": classes("uci/bank_marketing", "y == 'no'", "y == 'yes'", "y"),
    "heart": classes("mspn/heart/raw", "`class` == 1", "`class` == 2", "class"),
    "australian": classes("mspn/australian/raw", "`class` == 0", "`class` == 1", "class"),
    "cars": classes("mspn/cars/raw", "`class` == 'US'", "`class` != 'US'", "class brand"),
    "cloud, decimals": spoiled(lambda data: _read(data, "uci/cloud"), misplaced),
    "miniboone, exchanged": spoiled(_events, exchanged, 3),
    "abalone, exchanged": spoiled(lambda data: _read(data, "uci/abalone"), exchanged),
    "adult, exchanged": spoiled(lambda data: _read(data, "uci/adult").drop(columns="fnlwgt"), exchanged, 3),
}
"""Tables whose odd rows are drawn by a seed, by name."""


def _adbench(data: str) -> dict[str, Callable[[int], Task]]:
    names = names_of(Path(data) / "outliers", "*.npz", ".npz")
    return {name: partial(_labelled, data, name) for name in names}


def _validation(data: str) -> dict[str, Callable[[int], Task]]:
    def make(name: str, seed: int) -> Task:
        return VALIDATION[name](data, np.random.default_rng([seed, *name.encode()]))

    return {name: partial(make, name) for name in VALIDATION}


COLLECTIONS = {"adbench": _adbench, "validation": _validation}
"""Functions of the folder of the data sets: their tasks by name, functions of a seed."""
