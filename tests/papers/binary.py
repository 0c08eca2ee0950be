"""Binary tables: test log likelihood of trees of labels, single and averaged, beside published figures.

    python -m tests.papers.binary --data DIR [--sets nltcs plants] [--learner cutset] [--structures 1 40] [--seeds 1]
        [--select random] [--ensemble even] [--subspace 1] [--states 16] [--components 50] [--edges own shared]
        [--chains 8] [--sweeps 24]

DIR/binary20/NAME.{train,valid,test}.data.gz hold rows of 0 and 1 with commas. Structures and weights come from train,
settings are chosen by valid, and test is scored once.

`cutset`: a network's density is the posterior mean over its weights, which is exact without draws: a complete row
passes each split once, and weights of splits are independent given the rows, so the mean of the product is the product
of means. `--structures` networks are averaged; of a single one the mean over `--seeds` is told, as in the paper. By
`--ensemble` each network sees all rows (``even``); a bootstrap sample of them (``bagged``); or rows drawn in inverse
proportion to their density so far, and is mixed in with the share under which train is most probable (``boosted``;
Rosset and Segal, 2002, Boosting density estimation, NIPS 15).

`tree_mixture` and `hclt`: mixtures of Chow-Liu trees, hidden Chow-Liu trees. They are sampled, by the sweeps of their
learners: `--chains` of them, each from a start of its own, and densities are averaged over the draws of all. A draw is
the posterior mean of weights given the rows' allocations. Hidden trees have a quarter of the chains, and the more
sweeps the smaller the set is.

`best`: all three, averaged within each learner; then the three averages stacked, by weights under which valid is most
probable.

References: Di Mauro, Vergari, Basile, Esposito (2017). Fast and Accurate Density Estimation with Extremely Randomized
Cutset Networks. ECML PKDD, Tables 2 and 3. Meila and Jordan (2000). Learning with Mixtures of Trees. JMLR 1. Liu and
Van den Broeck (2021). Tractable Regularization of Probabilistic Circuits. NeurIPS.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar

import bayesjpt as bj
from bayesjpt.posterior.weights import stacking_weights
from bayesjpt.structure import hclt, hidden_gibbs, tree_sampling
from bayesjpt.structure.bins import bins_of
from bayesjpt.structure.cutset import SELECTS
from bayesjpt.structure.distinct_rows import DistinctRows, distinct_rows
from bayesjpt.structure.tree_mixture import EDGES
from bayesjpt.table.table import Table

FIGURES = json.loads(Path(__file__).with_name("binary_figures.json").read_text())["sets"]
MIN_ROWS = (300, 500, 1000, 2000)
ESS = (0.2, 1.0, 4.0)
"""Twice the smoothing constants .1, .5 and 2 of the paper's grid, which are those of one of two ways."""
PARTS = ("train", "valid", "test")
TREE_ESS = 4.0
"""Imaginary rows by which edges of a mixture's trees are judged."""
N_TRIED = 40
"""Networks by which settings of an average are compared, since few networks want larger leaves than many; of sampled
learners it is one chain."""
TRIED_COLUMNS = 8000
"""Columns of all of these together: on wide sets they are fewer, but eight at least."""
N_SINGLE = 10
"""Networks by which settings of a single network are compared, one by one."""
ENSEMBLES = ("even", "bagged", "boosted")
CELL_SWEEPS = 5 * 10**7
"""Cells of a set times sweeps of a hidden tree; within `HIDDEN_SWEEPS`."""
HIDDEN_SWEEPS = (30, 200)
KEPT = 0.4
"""Share of the sweeps of a chain, its last, of which every second scores rows."""
SAMPLED = ("tree_mixture", "hclt")
LEARNERS = ("cutset", *SAMPLED, "best")


@dataclass(frozen=True)
class Data:
    """A set: its three tables under one schema, and the share of test rows that stand verbatim in train."""

    train: Table
    valid: Table
    test: Table
    repeated: float

    @cached_property
    def rows(self) -> tree_sampling.Rows:
        """The rows of train, as sampled learners take them."""
        bins, _ = bins_of(self.train)
        return tree_sampling.rows_of(bins, np.ones(bins.n_bin.size, bool))

    @cached_property
    def others(self) -> list[DistinctRows]:
        """Those of valid and test."""
        return [distinct_rows(bins_of(part)[0], self.rows.distinct.usual) for part in (self.valid, self.test)]


@dataclass(frozen=True)
class Asked:
    """What the command line asks for: settings to choose from, and how long chains are."""

    select: Sequence[str]
    min_rows: Sequence[int]
    ess: Sequence[float]
    states: Sequence[int]
    components: Sequence[int]
    edges: Sequence[str]
    chains: int
    sweeps: int
    ensemble: str
    subspace: float


@dataclass(frozen=True)
class Setting:
    """A learner and its options."""

    learner: str
    options: dict[str, Any]

    def __str__(self) -> str:
        return ",".join(str(value) for value in self.options.values())


@dataclass
class Clock:
    """CPU seconds of learning, of fitting, and of scoring valid and test."""

    learn: float = 0.0
    fit: float = 0.0
    score: float = 0.0


@dataclass(frozen=True)
class Score:
    """What an average of members says of each row, in nats, and what it took; the weights of groups where stacked."""

    valid: np.ndarray
    test: np.ndarray
    clock: Clock = field(default_factory=Clock)
    weights: dict[str, float] = field(default_factory=dict)


def read_set(folder: Path, name: str) -> Data:
    """Return a set; each column has the labels 0 and 1, whether or not train shows both."""
    parts = []
    for part in PARTS:
        with gzip.open(folder / f"{name}.{part}.data.gz") as file:
            text = file.read()
        n_column = text.split(b"\n", 1)[0].count(b",") + 1
        signs = np.frombuffer(text, np.int8)
        parts.append((signs[(signs == ord("0")) | (signs == ord("1"))] - ord("0")).reshape(-1, n_column))
    names = [f"v{k}" for k in range(parts[0].shape[1])]
    frames = [
        pd.DataFrame({name: pd.Categorical.from_codes(own, ["0", "1"]) for name, own in zip(names, x.T, strict=True)})
        for x in parts
    ]
    train = bj.as_table(frames[0], kinds=dict.fromkeys(names, "category"), other=False)
    known = {row.tobytes() for row in parts[0]}
    repeated = float(np.mean([row.tobytes() in known for row in parts[2]]))
    valid, test = (bj.as_table(frame, schema=train.schema) for frame in frames[1:])
    return Data(train, valid, test, repeated)


def settings_of(learner: str, asked: Asked, n_row: int) -> list[Setting]:
    """Return the settings of a learner among which valid chooses."""
    if learner == "hclt":
        return [Setting(learner, {"n_states": n}) for n in asked.states]
    if learner == "tree_mixture":
        return [
            Setting(learner, {"n_components": n, "edges": edges}) for n in asked.components for edges in asked.edges
        ]
    subspace = {"subspace": asked.subspace} if asked.subspace < 1.0 else {}
    return [
        Setting(learner, {"select": select, "min_rows": min_rows, "ess": ess} | subspace)
        for select in asked.select
        for min_rows in asked.min_rows
        for ess in asked.ess
        if min_rows < n_row
    ]


def network(
    train: Table, setting: Setting, rng: np.random.Generator, parts: Sequence[Table], clock: Clock
) -> list[np.ndarray]:
    """Return the log densities of some tables under a cutset network at the mean of its weights."""
    began = time.process_time()
    circuit = bj.learn_cutset(train, rng, **setting.options)
    clock.learn += time.process_time() - began
    began = time.process_time()
    post = bj.Posterior.from_circuit(circuit, train.schema)
    found = [post.log_density(rows).values.ravel() for rows in parts]
    clock.score += time.process_time() - began
    return found


def networks(data: Data, setting: Setting, seed: int, asked: Asked, clock: Clock) -> Iterator[list[np.ndarray]]:
    """Yield the log densities of valid and test under one network, of all rows or a bootstrap sample of them."""
    rng, train = np.random.default_rng(seed), data.train
    if asked.ensemble == "bagged":
        train = train.take(np.sort(rng.integers(train.n_row, size=train.n_row)))
    yield network(train, setting, rng, (data.valid, data.test), clock)


def boosted(data: Data, setting: Setting, seeds: Sequence[int]) -> Score:
    """Return the score of networks of which each is learned from the rows that those before find improbable."""
    clock, tables = Clock(), (data.train, data.valid, data.test)
    total: list[np.ndarray] = []
    for seed in seeds:
        rng, rows = np.random.default_rng(seed), data.train
        if total:
            weight = np.exp(total[0].min() - total[0])
            rows = rows.take(np.sort(rng.choice(rows.n_row, rows.n_row, p=weight / weight.sum())))
        found = network(rows, setting, rng, tables, clock)
        if not total:
            total = found
            continue

        def loss(share: float, *both: np.ndarray) -> float:
            return -mixed(share, *both).mean()

        share = float(minimize_scalar(loss, bounds=(1e-6, 1.0 - 1e-6), args=(total[0], found[0]), method="bounded").x)
        total = [mixed(share, old, new) for old, new in zip(total, found, strict=True)]
    return Score(total[1], total[2], clock)


def mixed(share: float, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the log of a mixture of two densities, given their logs."""
    return np.logaddexp(np.log1p(-share) + old, np.log(share) + new)


def chain(data: Data, setting: Setting, seed: int, asked: Asked, clock: Clock) -> Iterator[list[np.ndarray]]:
    """Yield the log densities of valid and test under each draw of a chain."""
    rng = np.random.default_rng(seed)
    rows, parts = data.rows, data.others
    log_density: Callable[[DistinctRows, Any], np.ndarray]
    if setting.learner == "hclt":
        n_sweep = int(np.clip(CELL_SWEEPS // rows.distinct.bins.code.size, *HIDDEN_SWEEPS))
        draws = hclt.run(rows.distinct, setting.options["n_states"], rng, n_sweep=n_sweep)
        log_density = hidden_gibbs.log_density
    else:
        n_sweep = asked.sweeps
        states = tree_sampling.run(
            rows,
            setting.options["n_components"],
            rng,
            edges=setting.options["edges"],
            ess=TREE_ESS,
            n_sweep=n_sweep,
        )
        draws = (state.estimate for state in states)

        def log_density(part, draw):
            return draw.log_density(part)

    began = time.process_time()
    for number, draw in enumerate(draws, 1):
        clock.fit += time.process_time() - began
        began = time.process_time()
        if number > (1.0 - KEPT) * n_sweep and (n_sweep - number) % 2 == 0:
            yield [log_density(part, draw) for part in parts]
            clock.score += time.process_time() - began
            began = time.process_time()


def score(data: Data, setting: Setting, seeds: Sequence[int], asked: Asked) -> Score:
    """Return the score of the even average of one member a seed, all of its draws."""
    if setting.learner not in SAMPLED and asked.ensemble == "boosted":
        return boosted(data, setting, seeds)
    clock = Clock()
    found: list[list[np.ndarray]] = [[], []]
    draws = chain if setting.learner in SAMPLED else networks
    for seed in seeds:
        for densities in draws(data, setting, seed, asked, clock):
            for part, values in zip(found, densities, strict=True):
                part.append(values)
    valid, test = (log_mean(np.array(part)) for part in found)
    return Score(valid, test, clock)


def log_mean(values: np.ndarray) -> np.ndarray:
    """Return the log of the mean of what the first axis holds the logs of."""
    return np.logaddexp.reduce(values, axis=0) - np.log(len(values))


def choose(data: Data, learner: str, n_structure: int, asked: Asked) -> Setting:
    """Return the setting under which the rows of valid are most probable: by averages, or by networks one by one."""
    settings = settings_of(learner, asked, data.train.n_row)
    if len(settings) == 1:
        return settings[0]
    n_tried = 1 if learner in SAMPLED else min(n_structure, N_TRIED, max(8, TRIED_COLUMNS // data.train.n_column))
    is_single = n_structure == 1 and learner not in SAMPLED
    tried = [[seed] for seed in range(N_SINGLE)] if is_single else [range(n_tried)]

    def probability(setting: Setting) -> float:
        return float(np.mean([score(data, setting, seeds, asked).valid.mean() for seeds in tried]))

    return max(settings, key=probability)


def stacked(scores: dict[str, Score]) -> Score:
    """Return the average of groups under which valid is most probable."""
    weights = stacking_weights(np.array([one.valid for one in scores.values()]))
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)[:, None]
    valid, test = (
        np.logaddexp.reduce(log_weights + np.array([getattr(one, part) for one in scores.values()]), axis=0)
        for part in ("valid", "test")
    )
    clocks = [one.clock for one in scores.values()]
    clock = Clock(*(sum(getattr(one, name) for one in clocks) for name in ("learn", "fit", "score")))
    return Score(valid, test, clock, dict(zip(scores, weights.tolist(), strict=True)))


def n_members(learner: str, n_structure: int, asked: Asked) -> int:
    """Return how many networks or chains of a learner are averaged."""
    if learner == "hclt":
        return max(1, asked.chains // 4)
    if learner == "tree_mixture":
        return asked.chains
    return n_structure


def lines(name: str, data: Data, learner: str, n_structure: int, asked: Asked, seeds: Sequence[int]) -> Iterator[str]:
    """Yield a line for each learner, and for all of them together where `learner` is ``best``.

    Mean test log likelihood and its standard error, standard deviation over seeds, times, figures.
    """
    learners = LEARNERS[:-1] if learner == "best" else (learner,)
    scores: dict[str, list[Score]] = {}
    choosing = 0.0
    for each in learners:
        began = time.process_time()
        n_member = n_members(each, n_structure, asked)
        setting = choose(data, each, n_member, asked)
        own = time.process_time() - began
        choosing += own
        starts = [1000 * (1 + seed) for seed in seeds]
        scores[each] = [score(data, setting, range(at, at + n_member), asked) for at in starts]
        yield line(name, data, scores[each], f"{n_member:4d} {each:12s} {setting!s:14s}", own)
    if learner == "best":
        together = [stacked(dict(zip(scores, group, strict=True))) for group in zip(*scores.values(), strict=True)]
        weights = ",".join(f"{weight:.2f}" for weight in together[0].weights.values())
        yield line(name, data, together, f"{len(scores):4d} {learner:12s} {weights:14s}", choosing)


def line(name: str, data: Data, scores: Sequence[Score], who: str, choosing: float) -> str:
    """Return a line of the table."""
    means = [one.test.mean() for one in scores]
    error = scores[0].test.std(ddof=1) / np.sqrt(scores[0].test.size)
    known = FIGURES.get(name, {})
    published = known.get({"1": "single", "40": "members"}.get(who.split()[0], ""))
    beside = f"{published:8.2f}" if published is not None and "cutset" in who else " " * 8
    spread = f"{np.std(means, ddof=1):6.3f}" if len(means) > 1 else " " * 6
    times = (np.mean([getattr(one.clock, part) for one in scores]) for part in ("learn", "fit", "score"))
    return (
        f"{name:10s} {who} {np.mean([one.valid.mean() for one in scores]):9.3f} {np.mean(means):9.3f} {error:6.3f} "
        f"{spread} {beside} {known.get('best', np.nan):8.2f} {known.get('cm', np.nan):8.2f} {choosing:7.1f} "
        f"{' '.join(f'{seconds:6.1f}' for seconds in times)} {100.0 * data.repeated:5.1f}"
    )


HEADER = (
    f"{'set':10s} {'mean':>4s} {'learner':12s} {'setting':14s} {'valid':>9s} {'test':>9s} {'se':>6s} {'sd':>6s} "
    f"{'C++':>8s} {'sourced':>8s} {'cm':>8s} {'choose':>7s} {'learn':>6s} {'fit':>6s} {'score':>6s} {'% in train':>5s}"
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds binary20")
    parser.add_argument("--sets", nargs="+", help="names; all sets of the folder unless given")
    parser.add_argument("--learner", choices=LEARNERS, default="cutset")
    parser.add_argument("--structures", nargs="+", type=int, default=[1, 40], help="cutset networks that are averaged")
    parser.add_argument("--select", nargs="+", choices=SELECTS, default=["random"])
    parser.add_argument("--ensemble", choices=ENSEMBLES, default="even", help="rows that each cutset network sees")
    parser.add_argument("--subspace", type=float, default=1.0, help="share of columns among which a split is chosen")
    parser.add_argument("--min-rows", nargs="+", type=int, default=MIN_ROWS, help="of a leaf of cutset networks")
    parser.add_argument("--ess", nargs="+", type=float, default=ESS, help="imaginary rows of splits of cutset networks")
    parser.add_argument("--states", nargs="+", type=int, default=[16], help="states of hidden variables")
    parser.add_argument("--components", nargs="+", type=int, default=[50], help="trees of a mixture")
    parser.add_argument("--edges", nargs="+", choices=EDGES, default=EDGES, help="edges of a mixture's trees")
    parser.add_argument("--chains", type=int, default=8, help="chains of mixtures that are averaged")
    parser.add_argument("--sweeps", type=int, default=24, help="of a chain of mixtures")
    parser.add_argument("--seeds", type=int, default=1, help="repetitions, of which the standard deviation is told")
    told = parser.parse_args(arguments)
    asked = Asked(
        told.select, told.min_rows, told.ess, told.states, told.components, told.edges, told.chains, told.sweeps,
        told.ensemble, told.subspace,
    )  # fmt: skip
    folder = told.data / "binary20"
    sets = told.sets or sorted(path.name.removesuffix(".train.data.gz") for path in folder.glob("*.train.data.gz"))
    print(HEADER)
    for name in sets:
        data = read_set(folder, name)
        for n_structure in told.structures[:1] if told.learner in SAMPLED else told.structures:
            for line in lines(name, data, told.learner, n_structure, asked, range(told.seeds)):
                print(line, flush=True)


if __name__ == "__main__":
    main()
