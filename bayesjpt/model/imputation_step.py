"""The step of missing cells: proposed exactly from the circuit given the row, accepted by the factors of whole rows.

The conditional of a row's missing cells is

    p(missing | observed, weights, parameters)  *  all other factors of the model that depend on the row

and the first is what the circuit draws from. So a proposal is accepted with probability min(1, ratio of the other
factors), and where there are none, always. Of the proposals of a sweep, every other one draws all missing cells of a
row together, and the ones between one cell each, given the others: rows with many gaps then move, too.

Where each entry of the other factors belongs to one row, all rows are proposed and accepted at once, from a single
evaluation. Otherwise rows go one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep, Competence, CompoundStep, StepMethodState
from pytensor.graph.traversal import graph_inputs

from bayesjpt.defaults import MAX_REDRAWS, QUERY_WORK_BYTES
from bayesjpt.errors import ModelError
from bayesjpt.internals import dataclass_state
from bayesjpt.kernels.gaps import complete_rows, completed
from bayesjpt.kernels.work import block_rows
from bayesjpt.model.concentration import blanket
from bayesjpt.model.imputed import CompletedRows, ImputedCellsRV, cell_limits, checked_cells, gap_labels
from bayesjpt.model.row_axis import MIXED, row_axis

IMPUTATION_PROPOSALS = 4
"""For the missing cells of each row in a sweep: two of all together, two of one cell given the others. Each costs one
pass over the rows with gaps and one evaluation of the factors that depend on them, less than the rest of a sweep."""

MAX_ROWS_ONE_BY_ONE = 200
"""Rows, at random, that a proposal is made for in a sweep where factors mix rows: one evaluation of the factors each,
a tenth to half a millisecond."""


@dataclass_state
class CircuitImputationState(StepMethodState):
    """What a chain carries from sweep to sweep beside the point: nothing."""

    tune: bool


class CircuitImputation(BlockedStep):
    """Draws of the missing cells of a block with ``impute=True``; ``pm.sample()`` finds it by itself.

    Parameters
    ----------
    vars : list of variables
        The missing cells; of several blocks they make a CompoundStep.
    model : pm.Model, optional
    rng : numpy.random.Generator or int, optional
    compile_kwargs : dict, optional
        Of ``pm.compile``, by which the other factors become a function of the point.

    Raises
    ------
    ModelError
        For a point, such as ``initvals=`` of ``pm.sample``, without one finite number for each missing cell; for rows
        that ``pm.set_data`` changed, whose missing cells have the labels of others.

    Notes
    -----
    A statistic of each draw, ``x_imputed_accepted``: the share of proposals that were accepted.

    References
    ----------
    Tierney (1994). Markov chains for exploring posterior distributions. Annals of Statistics 22: the independence
    sampler.
    """

    name = "circuit_imputation"
    default_tune_steps = 150
    _state_class = CircuitImputationState

    def __new__(cls, vars, *args, **kwargs):
        if len(vars) == 1:
            return super().__new__(cls, vars, *args, **kwargs)
        options = {key: value for key, value in kwargs.items() if key != "rng"}
        rngs = pm.util.get_random_generator(kwargs.get("rng")).spawn(len(vars))
        return CompoundStep([cls([var], rng=rng, **options) for var, rng in zip(vars, rngs, strict=True)])

    def __init__(
        self,
        vars,
        *,
        model=None,
        rng=None,
        blocked: bool = True,
        initial_point=None,
        compile_kwargs: dict | None = None,
    ):
        model = pm.modelcontext(model)
        (var,) = vars
        rv = model.values_to_rvs.get(var, var)
        value = model.rvs_to_values[rv]
        self.vars = [value]
        self.blocked = blocked
        self.tune = True
        self.rng = pm.util.get_random_generator(rng)
        self._frozen = rv.owner.op.block
        self._name = value.name
        statistic = f"{rv.name}_accepted"
        self.stats_dtypes_shapes = {statistic: (np.float64, [])}
        self.stats_dtypes = [{statistic: np.float64}]
        self._statistic = statistic
        *_, values, missing, log_weight, theta = rv.owner.inputs
        self._values, self._missing = _data(values), _data(missing).astype(bool)
        _check_labels(model, rv.name, gap_labels(self._frozen.schema.names, self._missing))
        self._with_gaps = np.flatnonzero(self._missing.any(axis=1))
        self._limits = cell_limits(self._frozen.schema)
        compile_kwargs = compile_kwargs or {}
        self._parameters = _Function(model, [log_weight, theta], compile_kwargs, of_variables=True)
        terms = [term for factor, term in blanket(model, [value]).items() if factor is not rv]
        axes = [row_axis(term, value, CompletedRows) for term in terms]
        self._apart = MIXED not in axes
        if self._apart:
            terms = [_by_row(term, axis) for term, axis in zip(terms, axes, strict=True)]
        else:
            terms = [term.sum() for term in terms]
        self._factors = _Function(model, [sum(terms)], compile_kwargs) if terms else None
        point = model.initial_point() if initial_point is None else initial_point
        self.step(point)  # compiled before worker processes are forked

    def step(self, point: dict) -> tuple[dict, list[dict]]:
        """Return the point after some proposals for each row, with fresh arrays, and the share accepted."""
        missing = self._missing
        rows = completed(self._values, missing, checked_cells(self._name, point[self._name], missing))
        parameters = self._parameters(point)
        n_accepted = 0
        log_factors = self._log_factors(point, rows)
        for number in range(IMPUTATION_PROPOSALS):
            mask = missing if number % 2 == 0 else self._one_a_row()
            proposed, inside = self._propose(rows, mask, *parameters)
            accept = self._accept_apart if self._apart else self._accept_one_by_one
            accepted, log_factors = accept(point, (rows, log_factors), proposed, inside)
            rows = np.where(accepted[:, None], proposed, rows)
            n_accepted += int(accepted.sum())
        n_judged = self._with_gaps.size if self._apart else min(self._with_gaps.size, MAX_ROWS_ONE_BY_ONE)
        stats = {self._statistic: n_accepted / max(IMPUTATION_PROPOSALS * n_judged, 1)}
        return point | {self._name: rows[missing]}, [stats]

    def _one_a_row(self) -> np.ndarray:
        """Return a mask with one of the missing cells of each row, at random."""
        # each of a row's gaps is as likely as any other to have the largest number
        priority = np.where(self._missing, self.rng.random(self._missing.shape), -1.0)
        mask = np.zeros_like(self._missing)
        mask[self._with_gaps, priority[self._with_gaps].argmax(axis=1)] = True
        return mask

    def _propose(
        self, rows: np.ndarray, mask: np.ndarray, log_weight: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return rows with the cells of a mask drawn anew, and whether each row's keep to the limits."""
        which = self._with_gaps
        out, fine = rows.copy(), np.zeros(rows.shape[0], bool)
        if which.size:
            drawn, inside = rows[which], np.empty(which.size, bool)
            n_block = min(block_rows(self._frozen.plan, QUERY_WORK_BYTES), which.size)
            complete_rows(
                self._frozen.plan, rows[which], np.ascontiguousarray(mask[which]), log_weight, theta, self._limits,
                n_block, MAX_REDRAWS, self.rng, inside, drawn,
            )  # fmt: skip
            out[which], fine[which] = drawn, inside
        return out, fine

    def _log_factors(self, point: dict, rows: np.ndarray) -> Any:
        """Return the log density of the other factors, float64 (n_row,) where rows are apart, else one number."""
        if self._factors is None:
            return np.zeros(rows.shape[0])
        (value,) = self._factors(point | {self._name: rows[self._missing]})
        return np.broadcast_to(value, rows.shape[:1]) if self._apart else float(value)

    def _accept_apart(self, point: dict, now: tuple, proposed: np.ndarray, inside: np.ndarray) -> tuple:
        """Return which rows are accepted, and the log factors behind: all rows at once."""
        _, before = now
        after = self._log_factors(point, np.where(inside[:, None], proposed, now[0]))
        accepted = inside & _accepted(after, before, self.rng)
        return accepted, np.where(accepted, after, before)

    def _accept_one_by_one(self, point: dict, now: tuple, proposed: np.ndarray, inside: np.ndarray) -> tuple:
        """Return the same where factors mix rows: some rows at random, one after the other."""
        rows, before = now
        rows, accepted = rows.copy(), np.zeros(inside.size, bool)
        for row in self.rng.permutation(self._with_gaps)[:MAX_ROWS_ONE_BY_ONE]:
            if inside[row]:
                old = rows[row].copy()
                rows[row] = proposed[row]
                # with the rows as they stand: proposals that were accepted before count
                after = self._log_factors(point, rows)
                accepted[row] = _accepted(np.array([after]), np.array([before]), self.rng)[0]
                if accepted[row]:
                    before = after
                else:
                    rows[row] = old
        return accepted, before

    @staticmethod
    def competence(var, has_grad):
        """Claim the missing cells of blocks, and nothing else."""
        ours = var.owner is not None and isinstance(var.owner.op, ImputedCellsRV)
        return Competence.IDEAL if ours else Competence.INCOMPATIBLE

    def _progressbar_config(self, n_chains=1):
        return [], {}

    def _make_progressbar_update_functions(self):
        return (dict,)


def _check_labels(model: pm.Model, name: str, labels: list[str]) -> None:
    """Raise where the coordinate of missing cells is of other rows: draws would have wrong labels, or no shape."""
    (dim,) = model.named_vars_to_dims[name]
    if list(model.coords[dim] or ()) != labels:
        raise ModelError(
            f"missing cells of other rows than coordinate {dim} names, as where pm.set_data changed the rows",
            "rows that bj.set_rows(model, frame) put there",
            "It sets data, mask and coordinates",
        )


def _accepted(after: np.ndarray, before: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return which proposals are accepted; what is impossible before gives way, what is no number does not come."""
    # where both are -inf their difference is NaN, and is not taken
    with np.errstate(invalid="ignore"):
        ratio = np.where(after > -np.inf, after - before, -np.inf)  # a comparison with NaN is false
    return np.log(rng.random(after.size)) < ratio


class _Function:
    """Expressions of a model as a function of the point."""

    def __init__(self, model: pm.Model, outputs: list, compile_kwargs: dict, *, of_variables: bool = False):
        outputs = model.replace_rvs_by_values(outputs) if of_variables else outputs
        inputs = [v for v in graph_inputs(outputs) if v in set(model.value_vars)]
        self._names = [v.name for v in inputs]
        self._evaluate = pm.pytensorf.compile(inputs, outputs, **compile_kwargs)
        self._evaluate.trust_input = True

    def __call__(self, point: dict) -> list[np.ndarray]:
        """Return the values at a point."""
        return [np.asarray(value, np.float64) for value in self._evaluate(*[point[name] for name in self._names])]


def _by_row(term: Any, axis: int) -> Any:
    """Return a term summed over all its axes but that of the rows."""
    others = tuple(k for k in range(term.type.ndim) if k != axis)
    return term.sum(axis=others) if others else term


def _data(variable: Any) -> np.ndarray:
    return np.array(variable.get_value() if hasattr(variable, "get_value") else variable.data)
