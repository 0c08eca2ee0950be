"""Cells into which the values of columns are sorted so that little is lost of what they tell about each other.

What a value tells about another column it tells through the slot that the other column's value comes from. So sorting
values into cells loses at most what the cells lose of the information about that slot, I(A; slot) - I(cell; slot): a
sum over the cells of one column. Cells that lose most are halved until all together lose less than a tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.plan import Plan
from bayesjpt.defaults import DEPENDENCE_CELLS, DEPENDENCE_TOLERANCE
from bayesjpt.kernels.pairs import Slots, fill_below, fill_joint, make_cuts, make_slots
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.distribution import quantile
from bayesjpt.queries.intervals import Domain, domain_of
from bayesjpt.table.schema import Column

type Cell = tuple[float, float]
"""Values above the first number and up to the second."""

_LEVELS = np.array([1e-9, 1e-6, 1e-4, 1e-2, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0 - 1e-4, 1.0 - 1e-6, 1.0 - 1e-9])
"""Quantiles to begin with. The outermost tails are one cell each: they lose less than a millionth of a nat."""

_REST = 16.0 / 15.0
"""Loss over what quartering wins, where halving divides a loss by four."""


def column_cuts(one: Posterior, other: Posterior, columns: Sequence[int]) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the cuts of each of some columns, and the most that is lost, in nats, by cutting one for another.

    Parameters
    ----------
    one, other : Posterior
        Some draws: those by which cuts are chosen, and those that tell, together with them, what is lost.
    columns : sequence of int

    Returns
    -------
    list of float64 (n_cut,), float64 (n_target, n_target)
        The loss of the first column's cells for what it tells about the second.
    """
    plan = one.plan()
    slots = make_slots(plan, columns)
    by_draws = [_joint(plan, post.flat(), slots) for post in (one, other)]
    levels = _levels(one, columns)
    cuts: list[np.ndarray] = []
    loss = np.zeros((len(columns), len(columns)))
    for target, column in enumerate(columns):
        facts = one.schema.columns[column]
        if facts.base == "category":
            cuts.append(np.arange(facts.n_label, dtype=np.float64))
            continue
        first, second = (
            _Cells(plan, post, column, [joint for joint, _ in joints[target]])
            for post, joints in zip((one, other), by_draws, strict=True)
        )
        cells, won = first.refined(_first_cells(facts, levels[facts.name]))
        cuts.append(np.array([hi for _, hi in cells]))
        others = [u for _, u in by_draws[0][target]]
        for part in (won, second.gains(cells)):
            loss[target, others] = np.maximum(loss[target, others], part.sum(axis=1).max(axis=1) * _REST)
    return cuts, loss


def _joint(plan: Plan, flat: Params, slots: Slots) -> list[list[tuple[np.ndarray, int]]]:
    """Return, for each column and each other one, float64 (n_draw, n_slot, n_other_slot) and the other's number.

    Entries are the probability of a slot of the other column given one of the column's, times that of the column's.
    """
    joint = np.empty((flat.theta.shape[0], slots.node.size, slots.node.size))
    fill_joint(plan, slots, flat.log_weight, joint)
    whole = np.triu(joint) + np.triu(joint, 1).transpose(0, 2, 1)
    n_target = slots.ptr.size - 1
    part = [slice(slots.ptr[t], slots.ptr[t + 1]) for t in range(n_target)]
    return [[(whole[:, part[t], part[u]], u) for u in range(n_target) if u != t] for t in range(n_target)]


class _Cells:
    """What cells of one column tell about the slots of others, under some draws."""

    def __init__(self, plan: Plan, post: Posterior, column: int, joint: Sequence[np.ndarray]):
        self.plan, self.params = plan, post.flat()
        self.slots = make_slots(self.plan, [column])
        self.domain = domain_of(post.schema.columns[column])
        self.joint = joint
        n_draw = self.params.theta.shape[0]
        self._known: dict[float, np.ndarray] = {
            -math.inf: np.zeros((n_draw, self.slots.node.size)),
            math.inf: np.ones((n_draw, self.slots.node.size)),
        }

    def _below(self, cuts: np.ndarray) -> np.ndarray:
        """Return float64 (n_draw, n_slot, n_cut): probabilities of values up to each cut under each slot."""
        cuts = cuts.tolist()
        new = [cut for cut in dict.fromkeys(cuts) if cut not in self._known]
        if new:
            found = np.empty((self.params.theta.shape[0], self.slots.node.size, len(new)))
            fill_below(self.plan, self.slots, make_cuts([np.array(new)]), *self.params, found)
            self._known |= dict(zip(new, np.moveaxis(found, 2, 0), strict=True))
        return np.stack([self._known[cut] for cut in cuts], axis=2)

    def gains(self, cells: Sequence[Cell]) -> np.ndarray:
        """Return float64 (n_other, n_cell, n_draw): what is won about another column's slots by quartering a cell."""
        parts = [_quarters(cell, self.domain) for cell in cells]
        first = np.cumsum([0, *map(len, parts)])[:-1]
        ends = np.array([end for part in parts for end in part])
        mass = np.maximum(self._below(ends[:, 1]) - self._below(ends[:, 0]), 0.0)
        out = []
        for joint in self.joint:
            fine = joint.transpose(0, 2, 1) @ mass
            won = np.add.reduceat(_terms(fine), first, axis=1) - _terms(np.add.reduceat(fine, first, axis=2))
            out.append(np.maximum(won, 0.0).T)
        return np.array(out)

    def refined(self, cells: list[Cell]) -> tuple[list[Cell], np.ndarray]:
        """Return smaller cells that lose little about any other column, on average over draws, and their `gains`."""
        won = self.gains(cells)
        while len(cells) < DEPENDENCE_CELLS:
            mean = won.mean(axis=2) * _REST
            if mean.sum(axis=1).max() <= DEPENDENCE_TOLERANCE:
                break
            lost = mean.max(axis=0)
            order = np.argsort(-lost)
            left = lost.sum() - np.cumsum(lost[order])
            n_split = min(1 + int(np.argmax(left <= 0.5 * DEPENDENCE_TOLERANCE)), DEPENDENCE_CELLS - len(cells))
            halves = [half for k in order[:n_split] for half in _halves(cells[k], self.domain)]
            kept = np.sort(order[n_split:])
            cells = [cells[k] for k in kept] + halves
            won = np.concatenate([won[:, kept], self.gains(halves)], axis=1)
        order = sorted(range(len(cells)), key=cells.__getitem__)
        return [cells[k] for k in order], won[:, order]


def _terms(parts: np.ndarray) -> np.ndarray:
    """Return float64 (n_draw, n_cell): each cell's part of its information about slots, up to their entropy.

    `parts`, float64 (n_draw, n_slot, n_cell), are probabilities of a slot and a cell.
    """
    total = parts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(parts > 0.0, parts * np.log(parts / total), 0.0).sum(axis=1)


def _levels(post: Posterior, columns: Sequence[int]) -> dict[str, np.ndarray]:
    """Return float64 (n_draw, n_level) for each column of numbers: its quantiles."""
    members = [post.schema.columns[column] for column in columns]
    names = [column.name for column in members if column.base != "category"]
    if not names:
        return {}
    values = quantile(post, _LEVELS, names).to_numpy().reshape(-1, _LEVELS.size, len(names))
    return {name: values[..., k] for k, name in enumerate(names)}


def _first_cells(facts: Column, values: np.ndarray) -> list[Cell]:
    """Return the cells to begin with: between quantiles over all draws, (n_draw, n_level), and atoms by themselves."""
    domain = domain_of(facts)
    lowest, highest = float(values.min()), float(values.max())
    cuts = {*np.median(values, axis=0).tolist(), lowest, highest}
    for atom in facts.atoms:
        cuts |= {domain.before(atom), float(atom)}
    if domain.whole and highest - lowest < DEPENDENCE_CELLS // 4:
        cuts = {float(k) for k in np.arange(lowest, highest + 1.0)}
    ends = [-math.inf, *sorted(cut for cut in cuts if math.isfinite(cut)), math.inf]
    return list(pairwise(ends))


def _halves(cell: Cell, domain: Domain) -> list[Cell]:
    """Return both halves of a cell; an unbounded one, or a single value, stays whole."""
    lo, hi = cell
    if not (math.isfinite(lo) and math.isfinite(hi)):
        return [cell]
    middle = lo + 0.5 * (hi - lo)
    middle = float(math.floor(middle)) if domain.whole else middle
    return [(lo, middle), (middle, hi)] if lo < middle < hi else [cell]


def _quarters(cell: Cell, domain: Domain) -> list[Cell]:
    return [quarter for half in _halves(cell, domain) for quarter in _halves(half, domain)]
