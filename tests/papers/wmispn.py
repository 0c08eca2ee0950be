"""Piecewise polynomials at the leaves: python -m tests.papers.wmispn --data DIR [--tables iris heart].

Tables of DIR/mspn, each a folder with train, valid and test, as csv with a line of names. The schema is decided from
the training rows and is the same for all models, so that their masses compare. What is printed is in README.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.errors import TableError
from bayesjpt.families import registry
from bayesjpt.families.record import Family
from bayesjpt.families.spline_choice import Rule, leaf_constants
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table
from tests.papers import measures
from tests.papers.programs import names_of, run
from tests.papers.wmispn_picture import draw

PAPER = {
    "anneal-U": -14.543,
    "australian": -10.473,
    "auto": -27.126,
    "car": -9.111,
    "cars": -9.111,
    "cleave": -13.829,
    "crx": -10.525,
    "diabetes": -6.299,
    "german": -20.429,
    "german-org": -21.144,
    "heart": -14.875,
    "iris": -3.560,
}
"""Table 2 of Bueff et al. (2018), LearnWMISPN: bins of one-hot bits, another split; the folder cars is their car."""

MODELS = ("paper", "paper, several", "splines", "splines beside", "default")
SPLINE_ROWS = 12
"""Rows of a sub-population that is divided no further, where all numbers are splines: breaks stay where they were
placed, so that sub-populations cannot narrow during sweeps as those of normals do. Of 12 and 25 on held-out rows."""
HEADER = f"{'table':>12} {'model':<15}{'mass':>9}{'- default':>11}{'error':>7}{'density':>10}{'zero':>6}{'seconds':>9}"


class Data(NamedTuple):
    """One table of the folder: training rows as a table of ours, test rows as a frame."""

    train: Table
    test: pd.DataFrame


def read(folder: Path, part: str) -> Data:
    """Return training rows and those of `part`, ``test`` or ``valid``."""
    train, rows = (_frame(folder, name) for name in ("train", part))
    return Data(bj.as_table(train), rows)


def _frame(folder: Path, part: str) -> pd.DataFrame:
    for ending in (".csv.gz", ".csv"):
        path = folder / f"{part}{ending}"
        if path.exists():
            return pd.read_csv(path)
    raise TableError(f"no {part} rows in {str(folder)!r}", f"a file {part}.csv or {part}.csv.gz")


def beside(column: Column) -> list[Family]:
    """Return the default dictionary of a column and, for numbers, splines."""
    family = registry.family("spline")
    return [*registry.dictionary(column), *([family] if registry.fits(family, column) else [])]


def settings(name: str, seed: int, structures: int | None) -> dict[str, Any]:
    """Return the options of `bj.fit` of a model."""
    many: dict[str, Any] = {} if structures is None else {"n_structures": structures}
    one = {"n_structures": 1, "chains": 2, "tune": 60, "draws": 60}
    return {"seed": seed, "progress": False} | {
        "paper": {"learner": "wmispn", **one},
        "paper, several": {"learner": "wmispn", **many},
        "splines": {"dictionary": bj.spline_dictionary, "min_rows": SPLINE_ROWS, **many},
        "splines beside": {"dictionary": beside, **many},
        "default": many,
    }[name]


def compare(name: str, data: Data, asked: argparse.Namespace) -> dict[str, np.ndarray]:
    """Return the log mass of each row under every model, and print a line for each."""
    found: dict[str, np.ndarray] = {}
    lines = []
    # the default first, which the others are compared with
    for model in [name for name in reversed(MODELS) if name in {*asked.models, "default"}]:
        clock = time.process_time()
        post = bj.fit(data.train, **settings(model, asked.seed, asked.structures))
        seconds = time.process_time() - clock
        log_mass = post.log_mass(data.test).to_numpy()
        found[model] = measures.log_of_mean(log_mass)
        density = measures.log_of_mean(post.log_density(data.test).to_numpy()).mean()
        gain = measures.paired(found[model], found["default"])
        lines.append(
            f"{name:>12} {model:<15}{found[model].mean():>9.3f}{gain.difference:>11.3f}{gain.error:>7.3f}"
            f"{density:>10.3f}{measures.n_impossible(log_mass):>6}{seconds:>9.1f}"
        )
    print("\n".join(reversed(lines)), flush=True)
    if name in PAPER:
        print(
            f"{name:>12} {'printed':<15}{PAPER[name]:>9.3f}  (bits of bins, another split: not comparable)", flush=True
        )
    return found


def orders(table: Table, n_bins: int) -> np.ndarray:
    """Return how many columns of numbers, without levels, have each order by BIC, int (6,)."""
    out = np.zeros(6, int)
    for position, column in enumerate(table.schema.columns):
        values = table.values[position, table.observed[position]]
        values = values[~np.isin(values, column.atoms)]
        if column.base != "category" and not column.levels and np.unique(values).size > 1:
            constants = leaf_constants(column, values, -np.inf, np.inf, rule=Rule(n_bins=n_bins))
            out[int(constants[0]) - 1] += 1
    return out


def show_orders(name: str, table: Table) -> None:
    """Print the shares of orders at 2 and 5 bins: the paper's table 3, and order 1, which it does not list."""
    for n_bins in (2, 5):
        count = orders(table, n_bins)
        shares = "".join(f"{100.0 * n / max(count.sum(), 1):>8.1f}" for n in count)
        print(f"{name:>12}{n_bins:>6}{count.sum():>9}{shares}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print it; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.wmispn", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, type=Path, help="folder that holds mspn/")
    parser.add_argument("--tables", nargs="+", help="of mspn/; all unless given")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS, help="beside the default")
    parser.add_argument("--part", default="test", choices=("test", "valid"))
    parser.add_argument("--structures", type=int, help="of ensembles; the default of fit unless given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--orders", action="store_true", help="print the orders that BIC chooses, and fit nothing")
    parser.add_argument("--picture", metavar="FILE", help="draw plasma glucose of diabetes, and nothing else")
    asked = parser.parse_args(arguments)
    if asked.picture:
        draw(read(asked.data / "mspn" / "diabetes", asked.part).train, "A2", asked.picture)
        return 0
    names = asked.tables or names_of(asked.data / "mspn", "*/")
    data = {name: read(asked.data / "mspn" / name, asked.part) for name in names}
    if not asked.orders:
        print("Mass, density: nats a row; difference from the default, its paired error; rows of probability zero.")
        print(HEADER)
        for name in names:
            compare(name, data[name], asked)
        print()
    print(f"Orders by BIC, per cent of columns of numbers\n{'table':>12}{'bins':>6}{'columns':>9}", end="")
    print("".join(f"{order:>8}" for order in range(1, 7)))
    for name in names:
        show_orders(name, data[name].train)
    return 0


if __name__ == "__main__":
    run(main)
