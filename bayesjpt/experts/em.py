"""Trees of gated experts by expectation-maximisation: the most likely coefficients, with a ridge.

Leaves of a tree that is not complete are copied to all leaves below the gates that are closed: the density is the same,
and readers of coefficients need not know of closed gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt import defaults_experts
from bayesjpt.errors import LearnerError, counted, warn
from bayesjpt.experts.model import ExpertModel, first_leaf_of_a_single_expert
from bayesjpt.experts.start import begin, first_state
from bayesjpt.kernels.expert_em import (
    Penalty,
    em_pass,
    fill_active,
    fill_posteriors,
    improve_gates,
    improve_leaves,
    least_squares_pass,
    penalty_of,
)
from bayesjpt.kernels.expert_sweep import Prior
from bayesjpt.kernels.expert_tree import GAUSSIAN, LOG_LINKED, Coefficients, Task

OPTIMISERS = ("em", "least_squares")
"""Methods whose answer is one state; others make draws around one."""
_START_PASSES = 3
_SURE = 30.0
"""Log odds, or the logarithm of a mean, that a regression without an optimum passes on its way to infinity."""


class Search(NamedTuple):
    """How coefficients are optimised.

    Attributes
    ----------
    method : str
        ``em`` or ``least_squares``.
    ridge : float
    passes : int
        At most.
    gain : float
        Nats a row; a pass of EM that gains less is the last.
    steps : int
        Newton steps of each regression in a pass.
    """

    method: str = "em"
    ridge: float = defaults_experts.RIDGE
    passes: int = defaults_experts.PASSES
    gain: float = defaults_experts.PASS_GAIN
    steps: int = defaults_experts.NEWTON_STEPS


class Optimum(NamedTuple):
    """Where a search ended.

    Attributes
    ----------
    state : Coefficients
    opened : bool (n_gate,)
        Gates that divide their rows.
    trace : float64 (n_pass + 1,), nats
        Penalised log likelihoods before the first pass and after each.
    """

    state: Coefficients
    opened: np.ndarray
    trace: np.ndarray


def make_penalty(model: ExpertModel, prior: Prior, ridge: float) -> Penalty:
    """Return what is added to the log likelihood: nothing without a ridge, but for the floor of variances."""
    rows, variance = defaults_experts.IMAGINARY_ROWS
    some = ridge > 0.0
    precision = prior.log_shape_deviation**-2 if some else 0.0
    return Penalty(
        float(ridge),
        expert_ridges(model, ridge),
        rows if some else 0.0,
        variance,
        prior.log_shape_mean,
        precision,
        prior.floor,
    )


def expert_ridges(model: ExpertModel, ridge: float) -> np.ndarray:
    """Return the ridge of each target's experts, float64 (n_target,): bounded from below where means are exponentials.

    0 stays 0, which asks for the most likely coefficients.
    """
    least = defaults_experts.LOG_LINK_RIDGE * (1.0 + len(model.covariates.columns)) if ridge > 0.0 else 0.0
    return np.where(np.isin(model.kind, LOG_LINKED), max(least, ridge), ridge)


def optimise(model: ExpertModel, task: Task, prior: Prior, search: Search, first: Optimum) -> Optimum:
    """Return the best state that passes from a first one lead to.

    Parameters
    ----------
    model : ExpertModel
    task : Task
    prior : Prior
        Whose floors, and prior of shapes, are used.
    search : Search
    first : Optimum
        Left as it is.
    """
    penalty = make_penalty(model, prior, search.ridge)
    state, opened = copied(first.state), first.opened
    posterior = np.empty((model.n_node, task.x.shape[0]))
    least = search.gain * task.x.shape[0]
    best, best_value, since, trace = copied(state), -np.inf, 0, []
    for _ in range(search.passes):
        if search.method == "em":
            value = em_pass(task, state, opened, penalty, posterior, search.steps)
        else:
            before = copied(state)
            value = least_squares_pass(task, state, opened, penalty, posterior)
            since = 0 if value > best_value + least else since + 1
            if value > best_value:
                best, best_value = before, value
        trace.append(value)
        done = trace[-1] - trace[-2] < least if len(trace) > 1 else False
        if (search.method == "em" and done) or since >= defaults_experts.PATIENCE:
            break
    value = fill_posteriors(task, state, opened, posterior) + penalty_of(task, state, opened, penalty)
    trace.append(value)
    if best_value > value:
        state = best
    return Optimum(completed(model, state, opened), opened, np.array(trace))


def first_optimum(model: ExpertModel, task: Task, prior: Prior, start: str, rng: np.random.Generator) -> Optimum:
    """Return where a search begins: hard splits learned from half of the rows, or gates at random."""
    opened, n_row = np.ones(model.n_gate, bool), task.x.shape[0]
    state, leaf = begin(model, task, prior, start, rng)
    posterior = np.zeros((model.n_node, n_row))
    found = np.any(state.gate) or (model.branches > 2 and start == "cart" and np.any(leaf))
    if found:
        posterior[model.n_gate + leaf, np.arange(n_row)] = 1.0
    else:
        # experts of the same rows would be nearly the same, and EM would take long to part them
        state.gate[:] = rng.normal(size=state.gate.shape)
        few = min(n_row, 2 * task.x.shape[1] + 3)
        for own in posterior[model.n_gate :]:
            own[rng.permutation(n_row)[:few]] = 1.0
    # experts of the rows behind the splits; any ridge will do, for the search has its own
    penalty = make_penalty(model, prior, defaults_experts.RIDGE)
    for _ in range(_START_PASSES):
        improve_leaves(task, state, opened, penalty, posterior, 1)
    if found and model.branches > 2:  # splits of which no gate says the same; some steps say nearly the same
        improve_gates(task, state, opened, penalty, posterior, _START_PASSES)
    return Optimum(state, opened, np.zeros(0))


def single_leaf(model: ExpertModel, prior: Prior) -> Optimum:
    """Return a tree all of whose gates are closed, before any row."""
    return Optimum(first_state(model, prior), np.zeros(model.n_gate, bool), np.zeros(0))


def copied(state: Coefficients) -> Coefficients:
    """Return a copy of a state."""
    return Coefficients(*(array.copy() for array in state))


def completed(model: ExpertModel, state: Coefficients, opened: np.ndarray) -> Coefficients:
    """Return the same density with nothing to know of closed gates, and gates' experts between their children's."""
    state, n_gate = copied(state), model.n_gate
    active = np.zeros(model.n_node, bool)
    fill_active(opened, active)
    for gate in range(n_gate):
        if not active[gate] or opened[gate]:
            continue
        lo = hi = gate
        while hi < n_gate:
            state.gate[model.gate_rows(lo).start : model.gate_rows(hi).stop] = 0.0
            lo, hi = model.children(lo)[0], model.children(hi)[-1]
        state.node[lo + 1 : hi + 1] = state.node[lo]
        state.dispersion[lo + 1 - n_gate : hi + 1 - n_gate] = state.dispersion[lo - n_gate]
    for gate in range(n_gate - 1, -1, -1):
        state.node[gate] = state.node[model.children(gate)].mean(axis=0)
    return state


def opened_in(model: ExpertModel, state: Coefficients) -> np.ndarray:
    """Return which gates divide their rows, bool (n_gate,): not those above copies of one expert, as in `completed`."""
    single = [first_leaf_of_a_single_expert(state.node, state.dispersion, gate) for gate in range(model.n_gate)]
    return np.array([leaf is None for leaf in single], bool)


def tell_divergence(model: ExpertModel, task: Task, prior: Prior, found: Optimum) -> None:
    """Warn of what has no finite optimum without a ridge, naming the reasons."""
    posterior = np.empty((model.n_node, task.x.shape[0]))
    fill_posteriors(task, found.state, found.opened, posterior)
    active = np.zeros(model.n_node, bool)
    fill_active(found.opened, active)
    reasons = []
    gates = np.flatnonzero(active[: model.n_gate] & found.opened)
    each = found.state.gate.reshape(model.n_gate, model.branches - 1, task.gate_x.shape[1])[gates]
    log_odds = np.abs(each @ task.gate_x.T).max(axis=1, initial=0.0) * (posterior[gates] > 0.5)
    separating = int((log_odds.max(axis=1, initial=0.0) > _SURE).sum())
    if separating:
        reasons.append(
            "1 gate that separates its rows" if separating == 1 else f"{separating} gates that separate their rows"
        )
    leaves = np.flatnonzero(active[model.n_gate :])
    few = int((posterior[model.n_gate + leaves].sum(axis=1) < task.x.shape[1]).sum())
    if few:
        reasons.append(f"{counted(few, 'leaf', 'leaves')} with fewer rows than coefficients")
    sure = exact = 0
    for leaf in leaves:
        held = posterior[model.n_gate + leaf] > 0.5
        eta = np.abs(task.x[held] @ found.state.node[model.n_gate + leaf].T)
        for c, kind in enumerate(model.kind):
            if kind == GAUSSIAN:
                exact += bool(found.state.dispersion[leaf, c] <= 1.01 * prior.floor[c])
            else:
                sure += bool(eta[:, model.at[c] : model.at[c + 1]].max(initial=0.0) > _SURE)
    if sure:
        reasons.append(
            "1 expert that is sure of its rows" if sure == 1 else f"{sure} experts that are sure of their rows"
        )
    if exact:
        reasons.append(f"{counted(exact, 'expert')} without noise")
    pairs = ((task.x, model.covariates), (task.gate_x, model.gate_covariates))
    if any(np.linalg.matrix_rank(x) < x.shape[1] - covariates.n_redundant for x, covariates in pairs):
        reasons.append("collinear covariates")
    if reasons:
        warn(
            f"without a ridge EM has no single finite optimum here: {', '.join(reasons)}. "
            f"Give a ridge of {defaults_experts.RIDGE:g}."
        )


def record_of(search: Search, found: Sequence[Optimum], branches: int = 2) -> dict[str, str | int | float]:
    """Return what a posterior says of the searches that it is made of."""
    leaves = [int(1 + (branches - 1) * optimum.opened.sum()) for optimum in found]
    return {
        "method": search.method,
        "ridge": search.ridge,
        "passes": max(optimum.trace.size - 1 for optimum in found),
        "leaves": max(leaves),
        "log_likelihood": float(np.mean([optimum.trace.max() for optimum in found])),
    }


def check_search(method: str, ridge: object, passes: object) -> Search:
    """Return the settings of a search.

    Raises
    ------
    LearnerError
        For a ridge that is no number from 0, or a number of passes that is none.
    """
    ridge = defaults_experts.RIDGE if ridge is None else ridge
    if isinstance(ridge, bool) or not isinstance(ridge, int | float | np.number) or not 0.0 <= float(ridge) < np.inf:
        raise LearnerError(f"ridge={ridge!r}", "a number from 0")
    passes = defaults_experts.PASSES if passes is None else passes
    if isinstance(passes, bool) or not isinstance(passes, int | np.integer) or passes < 1:
        raise LearnerError(f"passes={passes!r}", "a whole number from 1")
    return Search("least_squares" if method == "least_squares" else "em", float(ridge), int(passes))
