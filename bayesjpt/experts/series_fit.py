"""`bj.fit_experts(..., time=)`: chains of Gibbs sweeps over trees of experts whose paths depend on the row before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bayesjpt.errors import TableError, counted, warn
from bayesjpt.experts.fit import (
    Problem,
    chain_generators,
    joined,
    make_model,
    make_prior,
    one_draw,
    room,
    tell_single_values,
)
from bayesjpt.experts.missing import check_joint, filled_matrices, make_gaps, own_gaps
from bayesjpt.experts.model import ExpertModel
from bayesjpt.experts.series import ExpertSeriesPosterior
from bayesjpt.experts.series_em import SeriesOptimum, optimise_series
from bayesjpt.experts.series_model import begin_series, steps_of
from bayesjpt.experts.settings import ExpertSettings
from bayesjpt.experts.start import FIRST_COMPARED
from bayesjpt.kernels.expert_gaps import Gaps, fill_gaps_of_steps, room_for, run_series_chain_with_gaps
from bayesjpt.kernels.expert_series import Memory, Steps
from bayesjpt.kernels.expert_series_start import Start, not_hopeless, slots
from bayesjpt.kernels.expert_series_sweep import run_series_chain
from bayesjpt.kernels.expert_tree import Coefficients, Task
from bayesjpt.table.steps import read_order
from bayesjpt.table.table import Table, as_table


def fit_series(table: Any, settings: ExpertSettings, rng: np.random.Generator) -> ExpertSeriesPosterior:
    """Return draws of a hidden Markov decision tree; see `bayesjpt.fit_experts`.

    By EM each chain is a search for the optimum, and one draw.
    """
    assert settings.time is not None
    problem, steps, begun_steps = _problem_of(table, settings, rng)
    rngs = chain_generators(rng, settings.schedule.n_chain)
    recorded: dict[str, Any] = {
        "depth": settings.depth,
        "start": settings.start,
        "rows": problem.task.x.shape[0],
        "series": steps.first.size - 1,
    }
    with ThreadPoolExecutor(max_workers=settings.n_thread) as pool:
        starts = not_hopeless(list(pool.map(partial(_begin, problem, begun_steps), rngs)))
        if settings.method == "gibbs":
            states, memories = zip(*pool.map(partial(_sample, problem, steps), starts, rngs), strict=True)
            recorded["tune"] = settings.schedule.n_tune
        else:
            found = list(pool.map(partial(_search, problem, steps), starts))
            states, memories = [one_draw(each.state) for each in found], [one_draw(each.memory) for each in found]
            recorded |= {
                "method": settings.method,
                "ridge": settings.search.ridge,
                "passes": max(each.trace.size - 1 for each in found),
                "log_likelihood": float(np.mean([each.trace[-1] for each in found])),
            }
    return ExpertSeriesPosterior(
        problem.model,
        joined(states),
        recorded,
        settings.missing,
        memory=joined(memories),
        transitions=settings.transitions,
        time=settings.time,
        series=settings.series,
    )


def _problem_of(table: Any, settings: ExpertSettings, rng: np.random.Generator) -> tuple[Problem, Steps, Steps]:
    """Return what chains run on, rows in the order of steps; these, and those of them that chains begin with."""
    assert settings.time is not None
    targets, missing = settings.targets, settings.missing
    modelled = [name for names in settings.covariates(()) for name in names]
    frame, order = read_order(table, settings.time, settings.series, modelled)
    if frame is None:
        raise TableError("no column beside time and series", "the target")
    kinds = settings.kinds
    if isinstance(kinds, Mapping):  # what else it may be is refused where the frame is read
        unused = {settings.time, settings.series}.difference(modelled)
        kinds = {name: kind for name, kind in kinds.items() if name not in unused}
    read = as_table(frame, kinds=kinds or None)
    known = _known(read, targets)[order.rows]
    # gaps are refused below, where all rows are there in the order of the table
    model, _ = make_model(read.take(order.rows[known]), replace(settings, target=targets, kinds=None), gaps=True)
    tell_single_values(model, table, replace(settings, target=targets, kinds=kinds))
    rows, prior, gaps = Table(model.schema, read.values, read.observed, read.unseen), make_prior(model), None
    if missing is not None:
        check_joint(missing, model.covariate_columns)
        gaps = make_gaps(model, missing, rows, rng)
    task = _task(model, rows, gaps, order.rows, known)
    steps = begun_steps = steps_of(model, order, known, settings.transitions)
    if gaps is not None:
        gaps = gaps._replace(place=np.argsort(order.rows)[gaps.place])
        begun_steps = _complete_steps(steps, gaps)
        if settings.method != "gibbs":
            steps, n = begun_steps, int((known & ~begun_steps.seen).sum())
            if n:
                what = f"the targets of {counted(n, 'step')} without a covariate"
                warn(f"{what} are left out by method {settings.method}; gibbs uses them")
    return Problem(settings, model, task, prior, gaps), steps, begun_steps


def _complete_steps(steps: Steps, gaps: Gaps) -> Steps:
    """Return steps of which those without a covariate say nothing to experts, until it is drawn given their targets."""
    whole = steps.seen.copy()
    whole[gaps.place] = False
    if not whole.any():
        raise TableError("no row with a value of the target and all covariates", "one at least")
    return steps._replace(seen=whole)


def _begin(problem: Problem, steps: Steps, rng: np.random.Generator) -> Start:
    start = problem.settings.start
    assert isinstance(start, str)
    return begin_series(problem.model, problem.task, steps, problem.prior, start, rng)


def _search(problem: Problem, steps: Steps, first: Start) -> SeriesOptimum:
    settings, model, task, prior, _ = problem
    return optimise_series(model, task, steps, prior, settings.search, (first.state, first.memory))


def _sample(problem: Problem, steps: Steps, first: Start, rng: np.random.Generator) -> tuple[Coefficients, Memory]:
    """Return the draws of a chain of Gibbs sweeps."""
    settings, model, task, prior, gaps = problem
    _, state, memory, leaf = first
    n_tune, n_draw = settings.schedule.n_tune, settings.schedule.n_draw
    n_slot = slots(settings.depth, settings.transitions)[2]
    kept = room(model, n_draw), Memory(np.empty((n_draw, model.n_gate, n_slot)), np.empty((n_draw, 1)))
    key = np.uint64(rng.integers(2**62))
    if gaps is None:
        run_series_chain(task, steps, state, memory, prior, leaf, rng, key, n_tune, *kept)
        return kept
    filled, chosen = own_gaps(task, gaps)
    many = chosen._replace(n_compared=FIRST_COMPARED)
    fill_gaps_of_steps(filled, many, steps, state, memory, leaf, room_for(filled, many), rng)
    run_series_chain_with_gaps(filled, chosen, steps, state, memory, prior, leaf, rng, key, n_tune, *kept)
    return kept


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
    # in the layout for which kernels are compiled already
    values = np.ascontiguousarray(model.target_cells(rows)[0][:, order])
    y = np.where(known, model.units(np.where(known, values, 1.0)), 1.0)
    x, gate_x = filled_matrices(model, rows, gaps)
    return Task(x[order], gate_x[order], y, model.kind, model.at, model.offset)
