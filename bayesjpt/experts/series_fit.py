"""`bj.fit_experts(..., time=)`: chains of Gibbs sweeps over trees of experts whose paths depend on the row before."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from bayesjpt.errors import LearnerError, SamplingError, TableError, counted, warn
from bayesjpt.experts.em import Search
from bayesjpt.experts.fit import make_model, make_prior, names_of, room, targets_of, tell_single_values
from bayesjpt.experts.missing import check_joint, filled_matrices, make_gaps, own_gaps
from bayesjpt.experts.model import ExpertModel
from bayesjpt.experts.series import ExpertSeriesPosterior
from bayesjpt.experts.series_em import optimise_series
from bayesjpt.experts.series_model import begin_series, steps_of
from bayesjpt.experts.start import FIRST_COMPARED
from bayesjpt.kernels.expert_gaps import Gaps, fill_gaps_of_steps, room_for, run_series_chain_with_gaps
from bayesjpt.kernels.expert_series import Memory
from bayesjpt.kernels.expert_series_start import TRANSITIONS, Start, not_hopeless, slots
from bayesjpt.kernels.expert_series_sweep import run_series_chain
from bayesjpt.kernels.expert_tree import Coefficients, Task
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.steps import read_order
from bayesjpt.table.table import Table, as_table


def fit_series(
    table: Any,
    *,
    time: str,
    series: str | None,
    transitions: str,
    target: str | Sequence[str],
    given: Sequence[str] | None,
    gates: Sequence[str] | None,
    depth: int,
    experts: str | Mapping[str, str],
    kinds: Mapping[str, str] | None,
    chain: tuple[int, int, int, str],
    search: Search | None,
    missing: Posterior | None,
    cores: int | None,
    rng: np.random.Generator,
) -> ExpertSeriesPosterior:
    """Return draws of a hidden Markov decision tree; see `bayesjpt.fit_experts`, which has checked the numbers.

    `chain` is (draws, tune, chains, start); with a `search` each chain is one for the optimum, and one draw.
    """
    draws, tune, chains, start = chain
    targets = targets_of(target)
    for name, what in ((time, "time"), (series, "series")):
        if name is not None and not isinstance(name, str):
            raise LearnerError(f"{what}={name!r}", "the name of a column")
        if name in targets:
            raise LearnerError(f"column {name!r} is both target and {what}", "one or the other")
    if transitions not in TRANSITIONS:
        raise LearnerError(f"transitions={transitions!r}", f"one of {', '.join(TRANSITIONS)}")
    if time == series:
        raise LearnerError(f"column {time!r} is both time and series", "one or the other")
    modelled = [name for names in (given, gates) if names is not None for name in names_of(names)]
    frame, order = read_order(table, time, series, modelled)
    if frame is None:
        raise TableError("no column beside time and series", "the target")
    wanted = kinds
    if isinstance(kinds, Mapping):  # what else it may be is refused where the frame is read
        wanted = {name: kind for name, kind in kinds.items() if name in modelled or name not in (time, series)}
    read = as_table(frame, kinds=wanted or None)
    known = _known(read, targets)[order.rows]
    # gaps are refused below, where all rows are there in the order of the table
    model, _ = make_model(read.take(order.rows[known]), targets, given, gates, depth=depth, experts=experts, gaps=True)
    tell_single_values(model, table, given, gates, wanted)
    rows = Table(model.schema, read.values, read.observed, read.unseen)
    prior = make_prior(model)
    gaps = None
    if missing is not None:
        check_joint(missing, model.covariate_columns)
        gaps = make_gaps(model, missing, rows, rng)
    task = _task(model, rows, gaps, order.rows, known)
    steps = begun_steps = steps_of(model, order, known, transitions)
    if gaps is not None:
        gaps = gaps._replace(place=np.argsort(order.rows)[gaps.place])
        # a step without its covariates says nothing to experts until these are drawn given its targets
        whole = known.copy()
        whole[gaps.place] = False
        if not whole.any():
            raise TableError("no row with a value of the target and all covariates", "one at least")
        begun_steps = steps._replace(seen=whole)
        if search is not None:
            steps, n = begun_steps, int((known & ~whole).sum())
            if n:
                warn(
                    f"the targets of {counted(n, 'step')} without a covariate are left out by method {search.method}; "
                    "gibbs uses them"
                )
    n_slot = slots(depth, transitions)[2]
    seeds = rng.bit_generator.seed_seq.spawn(chains)  # pyright: ignore[reportAttributeAccessIssue] - it has it
    kept_states = [room(model, draws) for _ in range(chains)]
    traces = [np.zeros(1)] * chains
    kept_memory = [Memory(np.empty((draws, model.n_gate, n_slot)), np.empty((draws, 1))) for _ in range(chains)]

    generators = [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]

    def begun(number: int) -> Start:
        return begin_series(model, task, begun_steps, prior, start, generators[number])

    def run(number: int, first: Start) -> None:
        own, (_, state, memory, leaf) = generators[number], first
        if search is not None:
            found = optimise_series(model, task, steps, prior, search, (state, memory))
            for kept, array in zip((*kept_states[number], *kept_memory[number]), (*found[0], *found[1]), strict=True):
                kept[0] = array
            traces[number] = found.trace
            return
        key, kept = np.uint64(own.integers(2**62)), (kept_states[number], kept_memory[number])
        if gaps is None:
            run_series_chain(task, steps, state, memory, prior, leaf, own, key, tune, *kept)
            return
        filled, chosen = own_gaps(task, gaps)
        many = chosen._replace(n_compared=FIRST_COMPARED)
        fill_gaps_of_steps(filled, many, steps, state, memory, leaf, room_for(filled, many), own)
        run_series_chain_with_gaps(filled, chosen, steps, state, memory, prior, leaf, own, key, tune, *kept)

    with ThreadPoolExecutor(max_workers=min(chains, cores or os.cpu_count() or 1)) as pool:
        starts = not_hopeless(list(pool.map(begun, range(chains))))
        list(pool.map(run, range(chains), starts))
    drawn = Coefficients(*(np.stack(arrays) for arrays in zip(*kept_states, strict=True)))
    memory = Memory(*(np.stack(arrays) for arrays in zip(*kept_memory, strict=True)))
    if not all(np.isfinite(array).all() for array in (*drawn, *memory)):
        raise SamplingError("a draw that is not finite", remedy="Rescale covariates with values far from all others.")
    settings = {"depth": depth, "start": start, "rows": rows.n_row, "series": order.n_series}
    if search is None:
        settings["tune"] = tune
    else:
        settings |= {"method": search.method, "ridge": search.ridge}
        settings |= {"passes": max(trace.size - 1 for trace in traces)}
        settings |= {"log_likelihood": float(np.mean([trace[-1] for trace in traces]))}
    return ExpertSeriesPosterior(
        model, drawn, settings, missing, memory=memory, transitions=transitions, time=time, series=series
    )


def _known(read: Table, targets: Sequence[str]) -> np.ndarray:
    """Return bool (n_row,): whether a row has a value of every target, of labels one that the schema knows."""
    known = np.ones(read.n_row, bool)
    for name in targets:
        if name in read.names:
            position = read.schema.index(name)
            column = read.schema.columns[position]
            known &= read.observed[position]
            if column.base == "category":
                known &= read.values[position] < len(column.labels)
    if not known.any():
        raise TableError(f"no row has a value of {', '.join(targets)}", "one at least")
    n_part = 0
    if len(targets) > 1 and all(name in read.names for name in targets):
        n_part = int((read.observed[[read.schema.index(name) for name in targets]].any(axis=0) & ~known).sum())
    if n_part:
        are = "is a step" if n_part == 1 else "are steps"
        warn(f"{counted(n_part, 'row')} without a value of some target {are} without any")
    return known


def _task(model: ExpertModel, rows: Table, gaps: Gaps | None, order: np.ndarray, known: np.ndarray) -> Task:
    """Return rows in an order as kernels take them; targets of rows that are not known are ones.

    Rows that lack covariates have the first of their candidates in `gaps`, whose places are those of the table.
    """
    values = model.target_cells(rows)[0][:, order]
    y = np.where(known, model.units(np.where(known, values, 1.0)), 1.0)
    x, gate_x = filled_matrices(model, rows, gaps)
    return Task(x[order], gate_x[order], y, model.kind, model.at, model.offset)
