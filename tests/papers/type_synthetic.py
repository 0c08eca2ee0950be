"""ABDA's figure 2 on its synthetic tables: how close inferred weights of types are to the type that generated a column.

    python -m tests.papers.type_synthetic --data DIR

Three answers for each column, all from training rows: shares of the types under ABDA's dictionary, told which columns
are continuous, as in the paper; shares under ours, told nothing; and our probabilities of types, told nothing.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bayesjpt.queries.type_shares import type_shares
from tests.papers.abda_data import ALPHA, GAMMA, our_tables, paper_schema, read_data, under_schema
from tests.papers.programs import names_of, run
from tests.papers.sweeps import add_options, fit

TRUE = ("real", "pos", "count", "cat")
"""Types in the files: normal; gamma or exponential; Poisson or geometric; categorical."""

MEANT = {
    "real": "real",
    "positive": "pos",
    "interval": "pos",
    "count": "count",
    "nominal": "cat",
    "ordinal": "cat",
    "binary": "cat",
}
ANSWERS = ("shares, as in the paper", "shares", "P(type)")


@dataclass(frozen=True)
class Answered:
    """The weights of the four types that one column was given, float64 (4,), and the position of the true one."""

    weights: np.ndarray
    true: int

    @property
    def cosine(self) -> float:
        """Cosine of the angle between the weights and those of the truth, all of which are on one type."""
        size = float(np.linalg.norm(self.weights))
        return float(self.weights[self.true]) / size if size > 0.0 else 0.0


def weights_of(given: Mapping[str, float]) -> np.ndarray:
    """Return the weights of the four types, float64 (4,), of weights by our names; atoms and backgrounds left out.

    Examples
    --------
    >>> weights_of({"count": 0.5, "nominal": 0.25, "binary": 0.15, "none": 0.1}).tolist()
    [0.0, 0.0, 0.5, 0.4]
    """
    weights = np.zeros(len(TRUE))
    for name, weight in given.items():
        if name in MEANT:
            weights[TRUE.index(MEANT[name])] += weight
    return weights


def answers_of(directory: str, name: str, settings: argparse.Namespace) -> dict[str, list[Answered]]:
    """Return the three answers for the columns of one table."""
    data = read_data(directory, name)
    with np.load(Path(directory) / "abda_synthetic" / f"{name}.npz") as arrays:
        truth = [TRUE.index(str(word)) for word in arrays["types"]]
    told = under_schema(paper_schema(data.train, data.discrete), data.train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant columns and the like
        untold, _ = our_tables(data)
    divided = settings.type_prior
    by_paper = fit(told, settings, prior="abda", gamma=GAMMA, alpha=ALPHA, type_prior=divided)
    ours = fit(untold, settings, type_prior=divided).types()
    given = (
        [column.types for column in type_shares(by_paper)],
        [column.types for column in ours.shares],
        [column.probabilities for column in ours],
    )
    return {
        answer: [Answered(weights_of(own), true) for own, true in zip(columns, truth, strict=True)]
        for answer, columns in zip(ANSWERS, given, strict=True)
    }


def confusion(answered: Sequence[Answered]) -> np.ndarray:
    """Return int64 (4, 4): columns of each true type (row) by the type with the largest weight."""
    counts = np.zeros((len(TRUE), len(TRUE)), np.int64)
    for each in answered:
        counts[each.true, int(each.weights.argmax())] += 1
    return counts


def show_confusion(answered: Sequence[Answered], title: str, show: Callable) -> None:
    """Show where the types went: rows are true ones."""
    counts = confusion(answered)
    show(f"\n{title}: most likely type, by column; {np.trace(counts)} of {counts.sum()} right")
    show(f"{'true':<8}" + "".join(f"{name:>8}" for name in TRUE) + f"{'cosine':>10}")
    for k, name in enumerate(TRUE):
        own = [each.cosine for each in answered if each.true == k]
        mean = f"{np.mean(own):>10.3f}" if own else ""
        show(f"{name:<8}" + "".join(f"{n:>8}" for n in counts[k]) + mean)


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer for all synthetic tables and print what was found; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.type_synthetic", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds abda_synthetic/")
    add_options(parser)
    parser.add_argument("--only", default="", help="tables whose name holds this text")
    settings = parser.parse_args(arguments)
    names = names_of(settings.data, f"abda_synthetic/*{settings.only}*.npz".replace("**", "*"), ".npz")
    began = time.perf_counter()
    print(f"mean cosine similarity of a column's weights of types with its true type; seed {settings.seed}")
    print(f"{'table':<24}{'columns':>8}" + "".join(f"{answer:>26}" for answer in ANSWERS))
    everything: dict[str, list[Answered]] = {answer: [] for answer in ANSWERS}
    for name in names:
        found = answers_of(settings.data, name, settings)
        figures = "".join(f"{np.mean([each.cosine for each in own]):>26.3f}" for own in found.values())
        print(f"{name:<24}{len(found[ANSWERS[0]]):>8}{figures}")
        for answer, own in found.items():
            everything[answer] += own
    figures = "".join(f"{np.mean([each.cosine for each in own]):>26.3f}" for own in everything.values())
    print(f"{'all':<24}{len(everything[ANSWERS[0]]):>8}{figures}")
    for answer, own in everything.items():
        show_confusion(own, answer, print)
    print(f"\n{time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    run(main)
