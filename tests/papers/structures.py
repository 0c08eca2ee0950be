"""Held-out mass of several structures against one: python -m tests.papers.structures --data DIR --tables abalone wine.

ABDA's tables with their 70/10/20 split; the validation rows are not used.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

import bayesjpt as bj
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.table import Table
from tests.papers import measures
from tests.papers.abda_data import our_tables, read_data
from tests.papers.programs import run

HEADER = f"{'table':>12}{'structures':>11}{'mass':>10}{'gain':>9}{'error':>8}{'fit':>9}{'weigh':>9}  weights"
"""Mass in nats a row; gain over the first line, its paired standard error; processor seconds, of them for weights."""


def row_scores(post: Posterior, rows: Table) -> np.ndarray:
    """Return the log of the mean over draws of each row's mass, float64 (n_row,)."""
    return measures.log_of_mean(post.log_mass(rows).to_numpy())


def compare(
    train: Table, test: Table, counts: Sequence[int], options: dict, show: Callable[[str], None]
) -> list[np.ndarray]:
    """Return the scores of the test rows for each number of structures, and show a line for each."""
    found: list[np.ndarray] = []
    for count in counts:
        clock = [time.process_time()]
        spent: dict[str, float] = {}

        def on_phase(phase: str, _seconds: float, clock=clock, spent=spent) -> None:
            clock.append(time.process_time())
            spent[phase] = clock[-1] - clock[-2]

        post = bj.fit(
            train,
            n_structures=count,
            weights="stacking" if count > 1 else "even",
            progress=False,
            on_phase=on_phase,
            **options,
        )
        found.append(row_scores(post, test))
        gain = measures.paired(found[-1], found[0])
        fitted = sum(spent.values()) - spent["compile"]
        weights = post.settings.get("structure_weights", "1")
        show(
            f"{count:>11}{found[-1].mean():>10.3f}{gain.difference:>9.3f}{gain.error:>8.3f}{fitted:>9.1f}"
            f"{spent.get('weigh', 0.0):>9.1f}  {weights}"
        )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and print it; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.structures", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds abda/")
    parser.add_argument("--tables", nargs="+", default=["abalone", "wine"], help="of abda/")
    parser.add_argument("--structures", nargs="+", type=int, default=[1, 4], help="numbers of structures")
    parser.add_argument("--learners", nargs="+", default=["mspn"], help="that take turns")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--tune", type=int, default=100)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    options = {"chains": asked.chains, "tune": asked.tune, "draws": asked.draws, "seed": asked.seed}
    print(HEADER)
    for name in asked.tables:
        train, test = our_tables(read_data(asked.data, name))
        learner = asked.learners if len(asked.learners) > 1 else asked.learners[0]
        compare(
            train,
            test,
            asked.structures,
            {"learner": learner, **options},
            lambda line, name=name: print(f"{name:>12}{line}", flush=True),
        )
    return 0


if __name__ == "__main__":
    run(main)
