"""Binary tables: test log likelihood of cutset networks, single and averaged, beside published figures.

    python -m tests.papers.binary --data DIR [--sets nltcs plants] [--structures 1 40] [--seeds 1] [--select random]

DIR/binary20/NAME.{train,valid,test}.data.gz hold rows of 0 and 1 with commas. Structures and weights come from train,
settings (rows of a leaf, imaginary rows) are chosen by valid, and test is scored once.

A network's density is the posterior mean over its weights, which is exact without draws: a complete row passes each
split once, and weights of splits are independent given the rows, so the mean of the product is the product of means.

Reference: Di Mauro, Vergari, Basile, Esposito (2017). Fast and Accurate Density Estimation with Extremely Randomized
Cutset Networks. ECML PKDD, Tables 2 and 3.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.structure.cutset import SELECTS
from bayesjpt.table.table import Table

FIGURES = json.loads(Path(__file__).with_name("binary_figures.json").read_text())["sets"]
MIN_ROWS = (300, 500, 1000, 2000)
ESS = (0.2, 1.0, 4.0)
"""Twice the smoothing constants .1, .5 and 2 of the paper's grid, which are those of one of two ways."""
PARTS = ("train", "valid", "test")
N_TRIED = 8
"""Networks by which settings of an average are compared."""


@dataclass(frozen=True)
class Data:
    """A set: its three tables under one schema, and the share of test rows that stand verbatim in train."""

    train: Table
    valid: Table
    test: Table
    repeated: float


@dataclass(frozen=True)
class Setting:
    """How a network is learned."""

    select: str
    min_rows: int
    ess: float


@dataclass(frozen=True)
class Score:
    """What an average of networks says: nats a row, and CPU seconds of learning and of scoring both parts."""

    valid: np.ndarray
    test: np.ndarray
    learning: float
    scoring: float


def read_set(folder: Path, name: str) -> Data:
    """Return a set; each column has the labels 0 and 1, whether or not train shows both."""
    parts = []
    for part in PARTS:
        with gzip.open(folder / f"{name}.{part}.data.gz", "rt") as file:
            parts.append(np.loadtxt(file, delimiter=",", dtype=np.int8, ndmin=2))
    names = [f"v{k}" for k in range(parts[0].shape[1])]
    frames = [pd.DataFrame(x.astype(str), columns=names).astype(pd.CategoricalDtype(["0", "1"])) for x in parts]
    train = bj.as_table(frames[0], kinds=dict.fromkeys(names, "category"), other=False)
    known = {row.tobytes() for row in parts[0]}
    repeated = float(np.mean([row.tobytes() in known for row in parts[2]]))
    return Data(train, *(bj.as_table(frame, schema=train.schema) for frame in frames[1:]), repeated)


def score(data: Data, setting: Setting, seeds: Sequence[int]) -> Score:
    """Return the score of the even average of one network a seed."""
    learning = scoring = 0.0
    found: list[list[np.ndarray]] = [[], []]
    for seed in seeds:
        began = time.process_time()
        rng = np.random.default_rng(seed)
        options = {"select": setting.select, "min_rows": setting.min_rows, "ess": setting.ess}
        circuit = bj.learn_cutset(data.train, rng, **options)
        learned = time.process_time()
        post = bj.Posterior.from_circuit(circuit, data.train.schema)
        for part, rows in zip(found, (data.valid, data.test), strict=True):
            part.append(post.log_density(rows).values.ravel())
        learning, scoring = learning + learned - began, scoring + time.process_time() - learned
    valid, test = (np.logaddexp.reduce(part, axis=0) - np.log(len(seeds)) for part in found)
    return Score(valid, test, learning, scoring)


def choose(data: Data, selects: Sequence[str], n_structure: int) -> Setting:
    """Return the setting under which the rows of valid are most probable."""
    n_row = data.train.n_row
    settings = [
        Setting(select, min_rows, ess) for select in selects for min_rows in MIN_ROWS for ess in ESS if min_rows < n_row
    ]
    seeds = range(min(n_structure, N_TRIED))
    return max(settings, key=lambda setting: score(data, setting, seeds).valid.mean())


def report(name: str, data: Data, n_structure: int, selects: Sequence[str], seeds: Sequence[int]) -> str:
    """Return a line: mean test log likelihood and standard error, standard deviation over seeds, times, figures."""
    began = time.process_time()
    setting = choose(data, selects, n_structure)
    choosing = time.process_time() - began
    first = [1000 * (1 + seed) for seed in seeds]
    scores = [score(data, setting, range(at, at + n_structure)) for at in first]
    means = [one.test.mean() for one in scores]
    error = scores[0].test.std(ddof=1) / np.sqrt(scores[0].test.size)
    known = FIGURES.get(name, {})
    published = known.get("single" if n_structure == 1 else "members")
    beside = f"{published:8.2f}" if published is not None else " " * 8
    spread = f"{np.std(means, ddof=1):6.3f}" if len(means) > 1 else " " * 6
    return (
        f"{name:10s} {n_structure:4d} {setting.select:10s} {setting.min_rows:5d} {setting.ess:8.1f} "
        f"{np.mean([one.valid.mean() for one in scores]):9.3f} {np.mean(means):9.3f} {error:6.3f} {spread} {beside} "
        f"{known.get('best', np.nan):8.2f} {known.get('cm', np.nan):8.2f} {choosing:7.1f} "
        f"{np.mean([one.learning for one in scores]):6.1f} {np.mean([one.scoring for one in scores]):6.1f} "
        f"{100.0 * data.repeated:5.1f}"
    )


HEADER = (
    f"{'set':10s} {'nets':>4s} {'select':10s} {'rows':>5s} {'ess':>8s} {'valid':>9s} {'test':>9s} {'se':>6s} "
    f"{'sd':>6s} "
    f"{'C++':>8s} {'sourced':>8s} {'cm':>8s} {'choose':>7s} {'learn':>6s} {'score':>6s} {'% in train':>5s}"
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds binary20")
    parser.add_argument("--sets", nargs="+", help="names; all sets of the folder unless given")
    parser.add_argument("--learner", choices=["cutset"], default="cutset")
    parser.add_argument("--structures", nargs="+", type=int, default=[1, 40])
    parser.add_argument("--select", nargs="+", choices=SELECTS, default=["random"])
    parser.add_argument("--seeds", type=int, default=1, help="repetitions, of which the standard deviation is told")
    asked = parser.parse_args(arguments)
    folder = asked.data / "binary20"
    sets = asked.sets or sorted(path.name.removesuffix(".train.data.gz") for path in folder.glob("*.train.data.gz"))
    print(HEADER)
    for name in sets:
        data = read_set(folder, name)
        for n_structure in asked.structures:
            print(report(name, data, n_structure, asked.select, range(asked.seeds)), flush=True)


if __name__ == "__main__":
    main()
