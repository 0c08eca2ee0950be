"""Hidden Markov decision trees inside a PyMC model: a tree of experts whose paths depend on the row before.

Paths are summed out by a forward pass over the rows, in plain PyTensor, so that the density of each row is that given
the responses before it in its series. They add up to the joint density.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

from bayesjpt import defaults_experts
from bayesjpt.errors import ModelError
from bayesjpt.kernels.expert_series_start import TRANSITIONS, slots
from bayesjpt.kernels.expert_tree import LARGEST, MULTINOMIAL
from bayesjpt.model.expert_density import draw_at_leaves, leaf_logp, logistic_weights, signature
from bayesjpt.table.cells import unmasked
from bayesjpt.table.steps import Order, read_order

_NAMES = ("time", "series")


class Rows(NamedTuple):
    """Which rows follow each other.

    Attributes
    ----------
    order : int64 (n_row,)
        Rows series by series, in the order of time.
    begins : int64 (n_row,)
        1 where the first of a series stands in that order.
    """

    order: np.ndarray
    begins: np.ndarray


def check_series(depth: int, branches: int, time: Any, series: Any, transitions: str) -> None:
    """Raise `ModelError` for settings of series without time, and for those that series do not have."""
    if transitions not in TRANSITIONS:
        raise ModelError(f"transitions={transitions!r}", f"one of {', '.join(TRANSITIONS)}")
    if time is None:
        if series is not None or transitions != TRANSITIONS[0]:
            raise ModelError("series or transitions without time", "the column of time, too", "Name it: time=COLUMN.")
        return
    if branches > 2:
        raise ModelError(f"branches={branches} with time", "branches=2")
    if depth == 0:
        raise ModelError("depth=0 with time, a single leaf", "depth 1 or more")


def read_rows(X: Any, time: Any, series: Any) -> tuple[Any, Rows]:
    """Return covariates without the columns of time and series, and the order of the rows.

    Raises
    ------
    ModelError
        Where one of time and series is a name of a column of X and the other is values.
    TableError
        For what `bayesjpt.table.steps.read_order` refuses.
    """
    named = isinstance(time, str)
    if series is not None and isinstance(series, str) != named:
        raise ModelError("a name of a column and values as time and series", "names of both, or values of both")
    if named:
        if isinstance(X, np.ndarray | pt.TensorVariable):
            raise ModelError(f"time={time!r} with covariates that have no names", "the time of each row")
        X, order = read_order(X, time, series, ())
        return X, _as_rows(order)
    pairs = zip(_NAMES, (time, series), strict=True)
    given = {name: list(unmasked(np.asanyarray(values))) for name, values in pairs if values is not None}
    return X, _as_rows(read_order(given, "time", "series" if series is not None else None, ())[1])


def _as_rows(order: Order) -> Rows:
    begins = np.zeros(order.rows.size, np.int64)
    begins[order.first[:-1]] = 1
    return Rows(order.rows.astype(np.int64), begins)


def add_offsets(name: str, depth: int, transitions: str) -> Any:
    """Register what gates make of the leaf before, and return what it adds to log odds, (leaf before, gate)."""
    slot, sign, n_slot = slots(depth, transitions)
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    model = pm.modelcontext(None)
    full = model.name_for(name)
    model.add_coord(f"{full}_slot", np.arange(n_slot))
    precision = pm.Gamma(f"{name}_offset_precision", *defaults_experts.GATE_PRECISION)
    offset = pm.Normal(f"{name}_offset", 0.0, precision**-0.5, dims=(f"{full}_gate_node", f"{full}_slot"))
    return (offset[np.arange(level.size)[:, None], slot[level]] * sign[level]).T


def add_series(
    name: str,
    kinds: Sequence[int],
    log_odds: tuple[Any, Any],
    leaves: Sequence[Any],
    rows: Rows,
    data: Mapping[str, Any],
) -> Any:
    """Register the observed variable, and return it.

    Parameters
    ----------
    name : str
    kinds : sequence of int
        Of the experts of each response.
    log_odds : (row, gate) and (leaf before, gate)
        What covariates and the leaf before say at each gate.
    leaves : sequence
        What stands at the leaves; see `bayesjpt.model.expert_density.leaf_logp`.
    rows : Rows
    data : mapping
        ``observed``, ``dtype``, ``n_leaf``, ``dims``.
    """
    order, begins = (pm.Data(f"{name}_{part}", values) for part, values in zip(Rows._fields, rows, strict=True))
    n_leaf = data["n_leaf"]
    # as in the kernels, so that no path has a probability below e^-600
    clipped: Any = [pt.clip(part, -LARGEST, LARGEST) for part in log_odds]
    base, memory = clipped[0][order], clipped[1]
    return pm.CustomDist(
        name,
        logistic_weights(base, n_leaf),
        logistic_weights(base[:, None, :] + memory[None], n_leaf),
        order,
        begins,
        *leaves,
        logp=partial(_series_logp, kinds),
        random=partial(_series_random, kinds),
        signature=signature(kinds, len(leaves) > 2 * len(kinds), ["(n,l)", "(n,l,l)", "(n)", "(n)"], ("n",)),
        dtype=data["dtype"],
        observed=data["observed"],
        dims=data["dims"],
    )


def _series_logp(
    kinds: Sequence[int], value: Any, log_begin: Any, log_move: Any, order: Any, begins: Any, *leaves: Any
) -> Any:
    """Return the log density of each row given those before it in its series, (row,); 0 of rows without a response.

    Row t of `log_move` holds log P(leaf | leaf before), (leaf before, leaf); it and `log_begin` are in the order of the
    series.
    """
    evidence = leaf_logp(kinds, value, leaves)[order]

    def step(first: Any, begin: Any, move: Any, own: Any, before: Any) -> tuple[Any, Any]:
        predicted = pt.switch(pt.neq(first, 0), begin, pt.logsumexp(before[:, None] + move, axis=0))
        joint = predicted + own
        total = pt.logsumexp(joint)
        return joint - total, total

    _, totals = pytensor.scan(
        step,
        sequences=[begins, log_begin, log_move, evidence],
        outputs_info=[pt.zeros_like(evidence[0]), None],
        return_updates=False,
    )
    nothing: Any = pt.zeros_like(totals)
    return nothing[order].set(totals)


def _series_random(
    kinds: Sequence[int], *parameters: np.ndarray, rng: np.random.Generator, size: Any = None
) -> np.ndarray:
    """Return whole series drawn from their beginning, (..., row[, response])."""
    core = [2, 3, 1, 1, *(n for kind in kinds for n in (3 if kind == MULTINOMIAL else 2, 1))]
    core += [1] * (len(parameters) - len(core))
    heads = [array.shape[: array.ndim - n] for array, n in zip(parameters, core, strict=True)]
    batch = tuple(size) if size is not None else np.broadcast_shapes(*heads)
    spread = [
        np.broadcast_to(array, (*batch, *array.shape[array.ndim - n :]))
        for array, n in zip(parameters, core, strict=True)
    ]
    drawn = np.array([_draw_series(kinds, [array[at] for array in spread], rng) for at in np.ndindex(*batch)])
    return drawn.reshape(*batch, *drawn.shape[1:])


def _draw_series(kinds: Sequence[int], parameters: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    log_begin, log_move, order, begins, *leaves = parameters
    noise, leaf, before = rng.gumbel(size=log_begin.shape), np.empty(order.size, np.int64), 0
    for t, row in enumerate(order):
        log_weight = log_begin[t] if begins[t] else log_move[t, before]
        before = leaf[row] = int(np.argmax(log_weight + noise[t]))
    return draw_at_leaves(kinds, leaf, leaves, rng)
