"""Binary tables: test log likelihood of trees of labels, single and averaged, beside published figures.

    python -m tests.papers.binary --data DIR [--sets nltcs plants] [--learner cutset] [--structures 1 40] [--seeds 1]
        [--select random] [--leaf chow_liu] [--ensemble even] [--subspace 1] [--states 16] [--components 50]
        [--edges own shared] [--chains 8] [--sweeps 24]

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

`best`: random networks, of few columns also bagged networks by likelihood, mixtures of trees with edges of their own
(up to `OWN_COLUMNS` columns), mixtures with shared edges, and hidden trees, each averaged evenly; then these averages
stacked, by weights under which valid is most probable. Groups without weight at the first seed are left out. How many
networks and hidden trees there are follows from the size of the set, unless `--structures` says how many networks.

References: Di Mauro, Vergari, Basile, Esposito (2017). Fast and Accurate Density Estimation with Extremely Randomized
Cutset Networks. ECML PKDD, Tables 2 and 3. Meila and Jordan (2000). Learning with Mixtures of Trees. JMLR 1. Liu and
Van den Broeck (2021). Tractable Regularization of Probabilistic Circuits. NeurIPS.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bayesjpt.posterior.weights import stacking_weights
from bayesjpt.structure.cutset import SELECTS
from bayesjpt.structure.tree_mixture import EDGES
from tests.papers.binary_members import ENSEMBLES, LEAVES, SAMPLED, Clock, Data, Score, Setting, read_set, score
from tests.papers.programs import names_of, run

FIGURES = json.loads(Path(__file__).with_name("binary_figures.json").read_text())["sets"]
MIN_ROWS = (300, 500, 1000, 2000)
ESS = (0.2, 1.0, 4.0)
"""Twice the smoothing constants .1, .5 and 2 of the paper's grid, which are those of one of two ways."""
BEST_MIN_ROWS, BEST_ESS = (100, 300, 1000), (0.2, 1.0)
"""Of networks among other learners: many of them, so that leaves may be small."""
N_TRIED = 40
"""Networks by which settings of an average are compared, since few networks want larger leaves than many; of sampled
learners it is one chain."""
TRIED_COLUMNS = 8000
"""Columns of all of these together: on wide sets they are fewer, but eight at least."""
N_SINGLE = 10
"""Networks by which settings of a single network are compared, one by one."""
BEST_TRIED = (4, 16)
"""The same among other learners, which make up for a setting that is not the best: an eighth of the networks, from 4 to
16."""
NARROW_COLUMNS = 20
"""Columns up to which `best` has bagged networks by likelihood, too: their cost grows with the third power."""
N_JUDGED, SUBSPACE = 12, 0.5
"""How many of these there are, and the share of columns that a split is chosen among."""
MIN_GROUP_WEIGHT = 0.02
"""A group that gets less with the members of the first seed is left out, with all seeds."""
LEARNERS = ("cutset", *SAMPLED, "best")
OWN_COLUMNS = 200
"""Columns up to which mixtures have trees of their own: beyond, shared edges are better, and quicker to learn."""
NETWORK_CELLS, PAIR_CELLS, NETWORKS = 3 * 10**8, 20, (8, 300)
"""Cells of all networks of `best` together, a pair of columns counting as so many; least and most networks."""
TREE_COLUMNS = 25_000
"""Trees of a mixture of `best` times columns, at most, but 16 trees at least."""
SMALL_CELLS = 5 * 10**5
"""Cells of a set below which `best` has twice the hidden trees: they are cheap there."""


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
    leaf: str = "chow_liu"
    n_tried: int = N_TRIED


def settings_of(learner: str, asked: Asked) -> list[Setting]:
    """Return the settings of a learner among which valid chooses."""
    if learner == "hclt":
        return [Setting(learner, {"n_states": n}) for n in asked.states]
    if learner == "tree_mixture":
        return [
            Setting(learner, {"n_components": n, "edges": edges}) for n in asked.components for edges in asked.edges
        ]
    more = {"subspace": asked.subspace} if asked.subspace < 1.0 else {}
    if asked.leaf != LEAVES[0]:
        more["leaf"] = asked.leaf
    return [
        Setting(learner, {"select": select, "min_rows": min_rows, "ess": ess} | more)
        for select in asked.select
        for min_rows in asked.min_rows
        for ess in asked.ess
    ]


def choose(data: Data, learner: str, n_structure: int, asked: Asked) -> Setting:
    """Return the setting under which the rows of valid are most probable: by averages, or by networks one by one."""
    settings = settings_of(learner, asked)
    if len(settings) == 1:
        return settings[0]
    n_tried = 1 if learner in SAMPLED else min(n_structure, asked.n_tried, max(8, TRIED_COLUMNS // data.train.n_column))
    is_single = n_structure == 1 and learner not in SAMPLED
    has_chance = "random" in asked.select or asked.subspace < 1.0 or asked.ensemble != "even"
    tried = [[seed] for seed in range(N_SINGLE if has_chance else 1)] if is_single else [range(n_tried)]

    def probability(setting: Setting) -> float:
        return float(
            np.mean([score(data, setting, seeds, asked.ensemble, asked.sweeps).valid.mean() for seeds in tried])
        )

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


@dataclass(frozen=True)
class Group:
    """A learner, how many of its members are averaged, and what there is to choose from."""

    name: str
    learner: str
    n_member: int
    asked: Asked


def groups_of(data: Data, learner: str, n_structure: int, asked: Asked) -> list[Group]:
    """Return the groups that are averaged; `n_structure` networks, or as many as suit the set where it is 0."""
    n_hidden = max(1, asked.chains // 4)
    if learner != "best":
        n_member = {"cutset": n_structure, "tree_mixture": asked.chains, "hclt": n_hidden}[learner]
        return [Group(learner, learner, n_member, asked)]
    n_row, n_column = data.train.n_row, data.train.n_column
    n_cell = n_row * n_column
    if n_structure == 0:
        n_structure = int(np.clip(NETWORK_CELLS // (n_cell + PAIR_CELLS * n_column**2), *NETWORKS))
    n_tried = int(np.clip(n_structure // 8, *BEST_TRIED))
    groups = [Group("cutset", "cutset", n_structure, replace(asked, n_tried=n_tried))]
    if n_column <= NARROW_COLUMNS:
        judged = replace(asked, select=["likelihood"], ensemble="bagged", subspace=SUBSPACE, n_tried=BEST_TRIED[0])
        groups.append(Group("by likelihood", "cutset", min(n_structure, N_JUDGED), judged))
    edges = asked.edges if n_column <= OWN_COLUMNS else ["shared"]
    components = [min(n, max(TREE_COLUMNS // n_column, 16)) for n in asked.components]
    for each in edges:
        n_chain = max(1, asked.chains // 2)
        groups.append(
            Group(f"trees {each}", "tree_mixture", n_chain, replace(asked, edges=[each], components=components))
        )
    groups.append(Group("hclt", "hclt", n_hidden * (2 if n_cell < SMALL_CELLS else 1), asked))
    return groups


def lines(name: str, data: Data, learner: str, n_structure: int, asked: Asked, seeds: Sequence[int]) -> Iterator[str]:
    """Yield a line for each group of a learner, and for all of them together where `learner` is ``best``.

    Mean test log likelihood and its standard error, standard deviation over seeds, times, figures.
    """
    groups, width = groups_of(data, learner, n_structure, asked), setting_width(asked)
    settings, choosing = [], []
    for group in groups:
        began = time.process_time()
        settings.append(choose(data, group.learner, group.n_member, group.asked))
        choosing.append(time.process_time() - began)
    scores = {group.name: [scored(data, group, own, seeds[0])] for group, own in zip(groups, settings, strict=True)}
    first = stacked({name: found[0] for name, found in scores.items()})
    kept = [name for name, weight in first.weights.items() if weight >= MIN_GROUP_WEIGHT or len(groups) == 1]
    for group, setting, seconds in zip(groups, settings, choosing, strict=True):
        if group.name in kept:
            scores[group.name] += [scored(data, group, setting, seed) for seed in seeds[1:]]
        who = f"{group.n_member:4d} {group.name:13s} {setting!s:{width}s}"
        yield line(name, data, scores[group.name], who, seconds)
    if learner == "best":
        together = [stacked({name: scores[name][k] for name in kept}) for k in range(len(seeds))]
        weights = np.mean([list(one.weights.values()) for one in together], axis=0).tolist()
        shares = dict(zip(kept, weights, strict=True))
        told = ",".join(f"{shares.get(group.name, 0.0):.2f}" for group in groups)
        yield line(name, data, together, f"{len(kept):4d} {learner:13s} {told:{width}s}", sum(choosing))


def scored(data: Data, group: Group, setting: Setting, seed: int) -> Score:
    """Return the score of a group's members under a seed."""
    first = 1000 * (1 + seed)
    return score(data, setting, range(first, first + group.n_member), group.asked.ensemble, group.asked.sweeps)


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
        f"{spread} {beside} {known.get('best', np.nan):8.3f} {known.get('cm', np.nan):8.2f} {choosing:7.1f} "
        f"{' '.join(f'{seconds:6.3g}' for seconds in times)} {100.0 * data.repeated:5.1f}"
    )


def setting_width(asked: Asked) -> int:
    """Return how wide the widest setting may be, or the weights of the five groups of ``best``."""
    judged = replace(asked, select=[*asked.select, "likelihood"], subspace=min(asked.subspace, SUBSPACE))
    settings = [setting for learner in ("cutset", *SAMPLED) for setting in settings_of(learner, judged)]
    return max(24, *(len(str(setting)) for setting in settings))


def header(width: int) -> str:
    """Return the names of the columns, that of the setting so wide."""
    return (
        f"{'set':10s} {'mean':>4s} {'learner':13s} {'setting':{width}s} {'valid':>9s} {'test':>9s} {'se':>6s} "
        f"{'sd':>6s} {'C++':>8s} {'sourced':>8s} {'cm':>8s} {'choose':>7s} {'learn':>6s} {'fit':>6s} {'score':>6s} "
        f"{'% in train':>5s}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds binary20")
    parser.add_argument("--sets", nargs="+", help="names; all sets of the folder unless given")
    parser.add_argument("--learner", choices=LEARNERS, default="cutset")
    parser.add_argument(
        "--structures", nargs="+", type=int, help="cutset networks that are averaged; 1 and 40 unless given"
    )
    parser.add_argument("--select", nargs="+", choices=SELECTS, default=["random"])
    parser.add_argument("--leaf", choices=LEAVES, default=LEAVES[0], help="of cutset networks")
    parser.add_argument("--ensemble", choices=ENSEMBLES, default="even", help="rows that each cutset network sees")
    parser.add_argument("--subspace", type=float, default=1.0, help="share of columns among which a split is chosen")
    parser.add_argument("--min-rows", nargs="+", type=int, help="of a leaf of cutset networks")
    parser.add_argument("--ess", nargs="+", type=float, help="imaginary rows of splits of cutset networks")
    parser.add_argument("--states", nargs="+", type=int, default=[16], help="states of hidden variables")
    parser.add_argument("--components", nargs="+", type=int, default=[50], help="trees of a mixture")
    parser.add_argument("--edges", nargs="+", choices=EDGES, default=EDGES, help="edges of a mixture's trees")
    parser.add_argument("--chains", type=int, default=8, help="chains of mixtures that are averaged")
    parser.add_argument("--sweeps", type=int, default=24, help="of a chain of mixtures")
    parser.add_argument("--seeds", type=int, default=1, help="repetitions, of which the standard deviation is told")
    told = parser.parse_args(arguments)
    min_rows, ess, structures = (BEST_MIN_ROWS, BEST_ESS, [0]) if told.learner == "best" else (MIN_ROWS, ESS, [1, 40])
    asked = Asked(
        told.select, told.min_rows or min_rows, told.ess or ess, told.states, told.components, told.edges, told.chains,
        told.sweeps, told.ensemble, told.subspace, told.leaf,
    )  # fmt: skip
    structures = [0] if told.learner in SAMPLED else told.structures or structures
    folder = told.data / "binary20"
    sets = told.sets or names_of(folder, "*.train.data.gz", ".train.data.gz")
    print(header(setting_width(asked)))
    for name in sets:
        data = read_set(folder, name)
        for n_structure in structures:
            for line in lines(name, data, told.learner, n_structure, asked, range(told.seeds)):
                print(line, flush=True)


if __name__ == "__main__":
    run(main)
