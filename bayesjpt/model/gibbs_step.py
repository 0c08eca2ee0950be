"""The step method: one blocked Gibbs sweep of a circuit inside ``pm.sample``.

PyMC finds it by itself: importing `bayesjpt.model` appends it to PyMC's step methods, and it claims every variable
whose op is a `BlockVariable`. One sweep draws all allocations given the parameters (never stored), then all weights and
parameters given the allocations. Before that it refuses models in which those conditionals would be wrong.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep, Competence, CompoundStep, StepMethodState

from bayesjpt.circuit.arrays import LATENT, Params
from bayesjpt.circuit.check_values import check_values
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.type_prior import no_column_types
from bayesjpt.defaults import MAX_DISTINCT_SHARE, MAX_TABLE_BYTES, MAX_WORK_BYTES
from bayesjpt.errors import CircuitError, ModelError
from bayesjpt.internals import STEP_METHODS, dataclass_state, make_initial_point_fn
from bayesjpt.kernels import chain
from bayesjpt.kernels.chain import ChainState
from bayesjpt.kernels.concentration import log_allocations
from bayesjpt.kernels.gaps import completed
from bayesjpt.kernels.samplers import arrange, make_sweeper
from bayesjpt.kernels.units import ArraySource
from bayesjpt.model.block_variables import BlockVariable
from bayesjpt.model.blocks import (
    TYPE_PRIOR,
    check_block,
    find_blocks,
    imputed_cells,
    scale_names,
    touched_blocks,
    variables_of,
)
from bayesjpt.model.circuit_rows import FrozenCircuit
from bayesjpt.model.concentration import concentration_function, hyperparameters
from bayesjpt.model.concentration_step import ConcentrationGibbs
from bayesjpt.model.gaps import check_gaps
from bayesjpt.model.groups import FrozenGroups
from bayesjpt.model.imputed import checked_cells
from bayesjpt.model.starts import START_TOLERANCE
from bayesjpt.table.encode import filler

SAME_POINT = 1e-9
"""Relative: the prior's centre for a symbolic concentration differs in the last bits from that for another."""


def register_step(step: type[BlockedStep] | None = None) -> None:
    """Append a step to the methods among which ``pm.sample`` chooses; once, however often it is called."""
    step = CircuitGibbs if step is None else step
    if step not in STEP_METHODS:
        STEP_METHODS.append(step)


@dataclass_state
class CircuitGibbsState(StepMethodState):
    """What a chain carries from sweep to sweep beside the point."""

    chain_state: ChainState | None
    n_tune: int
    tune: bool


class CircuitGibbs(BlockedStep):
    """Gibbs sweeps over one block.

    Parameters
    ----------
    vars : list of variables, optional
        Variables of the block; ``pm.sample()`` passes them by itself. The block's others are read from the point and
        held: kinds of weights (those of types alone, or with those of dictionaries), or all parameters of a family.
        Variables of several blocks make a CompoundStep, one step a block; with variables of which concentrations are
        made, a `ConcentrationGibbs` of these and of the blocks whose concentrations depend on them.
    model : pm.Model, optional
    random_start : float, default 0.5
        Probability that a chain begins with random allocations instead of the learner's estimate: chains that begin
        apart show whether they mix. In the first half of its tuning such a chain has even weights at sums of the
        structure, unless gamma depends on variables: these would be drawn to fit. A chain whose initial values were
        given begins at those.
    rng : numpy.random.Generator or int, optional

    Raises
    ------
    ModelError
        For a `random_start` that is no probability; if another factor of the model depends on the variables that are
        drawn, one of the block's is not free, or a family's parameters, or weights of types and those of dictionaries
        that they divide, are divided among steps; for a block of the collapsed sampler, if it does not draw all
        variables of the block; for a point without one finite number for each missing cell of a block with
        ``impute=True``.
    SamplingError
        If a row has probability zero, or a conditional distribution is not valid.

    Notes
    -----
    Statistics of each draw: ``log_likelihood``, of all rows at the point *before* the sweep (it lags one draw), and
    ``n_active_edges``, the edges of sums that some row took. In a model with several blocks their names begin with the
    block's.

    Given the allocations and the weights of types, kinds of weights and families are independent of each other: a sweep
    that leaves some as they are draws the others from their conditional given those.
    """

    name = "circuit_gibbs"
    default_tune_steps = 150
    stats_dtypes_shapes = {"log_likelihood": (np.float64, []), "n_active_edges": (np.int64, [])}  # noqa: RUF012 - PyMC's
    _state_class = CircuitGibbsState

    def __new__(cls, *args, **kwargs):
        model = pm.modelcontext(kwargs.get("model"))
        rvs = variables_of(model, kwargs.get("vars", args[0] if args else None))
        above = hyperparameters(rvs)
        touched = {} if len(above) == len(rvs) else touched_blocks(model, rvs)
        if len(touched) == 1 and not above:
            return super().__new__(_step_of(cls, *touched), *args, **kwargs)
        options = {key: value for key, value in kwargs.items() if key not in ("vars", "rng", "model")}
        rngs = pm.util.get_random_generator(kwargs.get("rng")).spawn(len(touched))
        shares = [[model.rvs_to_values[rv] for rv in members if rv in rvs] for members in touched.values()]
        sweeps = [cls(share, model=model, rng=rng, **options) for share, rng in zip(shares, rngs, strict=True)]
        if not above:
            return CompoundStep(sweeps)
        values = [model.rvs_to_values[rv] for rv in above]
        return ConcentrationGibbs.over(values, sweeps, model=model, compile_kwargs=kwargs.get("compile_kwargs"))

    def __init__(
        self,
        vars=None,
        *,
        model=None,
        random_start: float = 0.5,
        rng=None,
        blocked: bool = True,
        initial_point=None,
        compile_kwargs=None,
    ):
        if (
            isinstance(random_start, bool | np.bool_)
            or not isinstance(random_start, Real)
            or not 0 <= random_start <= 1
        ):
            raise ModelError(f"random_start={random_start!r}", "a probability, from 0 to 1")
        model = pm.modelcontext(model)
        rvs = variables_of(model, vars)
        ((rows, members),) = touched_blocks(model, rvs).items()
        drawn = [rv for rv in members if rv in rvs]
        check_block(model, rows, members, drawn)
        frozen = self._swept(rows)
        self.vars = [model.rvs_to_values[rv] for rv in drawn]
        self.blocked = blocked
        self.tune = True
        self.rng = pm.util.get_random_generator(rng)
        self.random_start = random_start
        self.chain_state: ChainState | None = None
        self.n_tune = 0
        self._frozen = frozen
        self._layout = self._named_by(model, rows)
        draws_types = f"{rows.name}_{TYPE_PRIOR}" in {rv.name for rv in drawn}
        self._types = frozen.priors.column_types if draws_types else no_column_types()
        names = (*self._layout.names(), *([TYPE_PRIOR] if draws_types else []))
        self._scale_names = tuple(scale_names(frozen).values())
        names = (*names, *self._scale_names)
        n_scale = np.unique(frozen.priors.scales.family, return_counts=True)[1]
        self._behind = frozen.circuit.n_theta + np.cumsum([0, self._types.n_weight, *n_scale])[: n_scale.size + 1]
        self._value_names = {name: f"{rows.name}_{name}" for name in names}
        self._drawn = {full: name for name, full in self._value_names.items() if model[full] in drawn}
        self._block = rows.name
        self._name_statistics(len(find_blocks(model)) > 1)
        self._unset = _default_point(model, drawn)
        self._concentration = self._concentrations(model, rows)
        self._collapsed = self._sums_with_expressions()
        gamma = frozen.priors.concentration[frozen.circuit.edges_of_kind(LATENT)]
        self._may_be_even = not np.isnan(gamma).any()  # not a number: an expression
        self._filler = np.array([[filler(column)] for column in frozen.schema])
        check_gaps(model, rows)
        self._rows = _data(model.rvs_to_values[rows]), _data(rows.owner.inputs[2])
        cells = imputed_cells(model, rows)
        self._cells = None if cells is None else model.rvs_to_values[cells].name
        self._load(*self._rows)
        if initial_point is None and (self._concentration or self._cells):
            initial_point = model.initial_point()
        self._warm_up(initial_point)
        if self._cells:
            self._complete(initial_point)
            self._warm_up(initial_point)

    def _swept(self, rows) -> FrozenCircuit:
        """Return the circuit that sweeps are over."""
        return rows.owner.op.frozen

    def _named_by(self, model: pm.Model, rows) -> Any:
        """Return the Layout by which named variables become weights and parameters of that circuit."""
        return make_layout(self._frozen.circuit, self._frozen.schema)

    def _concentrations(self, model: pm.Model, rows) -> Any:
        """Return a function from the point to the concentrations of all edges; None where all of them are numbers."""
        return concentration_function(model, rows, self._layout)

    def _sums_with_expressions(self) -> tuple[np.ndarray, np.ndarray]:
        """Return segments and edges of the sums whose weights are drawn and whose concentrations are expressions."""
        numbers = self._frozen.priors.concentration
        kinds = [
            variable
            for variable in self._layout.weights
            if variable.name in self._drawn.values() and np.isnan(numbers[variable.edges]).any()
        ]
        length = np.concatenate([[0], *(np.diff(variable.ptr) for variable in kinds)])
        edges = np.concatenate([np.empty(0, np.int64), *(variable.edges for variable in kinds)])
        return np.cumsum(length), edges.astype(np.int64)

    def _name_statistics(self, several: bool) -> None:
        prefix = f"{self._block}_" if several else ""
        kinds = type(self).stats_dtypes_shapes
        self._statistic = {key: prefix + key for key in kinds}
        self.stats_dtypes_shapes = {prefix + key: kind for key, kind in kinds.items()}
        self.stats_dtypes = [{prefix + key: dtype for key, (dtype, _) in kinds.items()}]

    def _load(self, values: np.ndarray, missing: np.ndarray) -> None:
        frozen = self._frozen
        observed = np.ascontiguousarray(~missing.T)
        by_column = np.where(observed, values.T, self._filler)
        self._sweeper = make_sweeper(
            frozen.circuit,
            frozen.plan,
            frozen.priors._replace(column_types=self._types),
            arrange(
                frozen.plan,
                ArraySource(by_column, observed),
                frozen.sampler,
                max_distinct_share=MAX_DISTINCT_SHARE,
                max_table_bytes=MAX_TABLE_BYTES,
            ),
            sampler=frozen.sampler,
            max_work_bytes=MAX_WORK_BYTES,
            swaps=len(self._drawn) == len(self._value_names),
            log_jacobian=float((observed.sum(axis=1) * frozen.plan.column_log_jacobian).sum()),
            name=self._block,
        )

    def _complete(self, point: dict) -> None:
        """Take the missing cells from the point: what follows is given whole rows."""
        values, missing = self._rows
        cells = checked_cells(self._cells, point[self._cells], missing)
        self._load(completed(values, missing, cells), np.zeros_like(missing))
        self.concentrate(point)

    def _warm_up(self, point: dict | None) -> None:
        """Compile before worker processes are forked, and meet impossible rows before anything is sampled."""
        self.concentrate(point)
        self._sweeper.sweep(self._sweeper.learned(), np.random.default_rng(0), 0, 0)

    def setup_chain(self, rng, tune: int, draws: int) -> None:
        """Let the chain begin anew."""
        super().setup_chain(rng, tune, draws)
        self.tune, self.n_tune, self.chain_state = tune > 0, tune, None

    def step(self, point: dict) -> tuple[dict, list[dict]]:
        """Return the point after one sweep, with fresh arrays, and its statistics."""
        return self.draw(point, self.allocate(point))

    def allocate(self, point: dict) -> ChainState:
        """Draw the allocations given the point: the first half of a sweep, which `draw` completes."""
        self.concentrate(point)
        if self._cells:
            self._complete(point)
        state = (
            self._begin(point) if self.chain_state is None else self.chain_state._replace(params=self._params(point))
        )
        # once tuning is over weights are free, whatever was planned
        if not self.tune:
            state = state._replace(n_even=0)
        return chain.allocate(state, self._sweeper, self.rng)

    def log_allocations(self, point: dict) -> float:
        """Return the log probability of the allocations at a point's concentrations, the weights drawn integrated out.

        But for a constant: weights whose concentrations are numbers have no part in it. -inf where concentrations are
        not positive numbers.
        """
        assert self._concentration
        concentration = self._concentration.given(point)
        if concentration is None:
            return -np.inf
        return log_allocations(*self._collapsed, concentration, self._sweeper.edge_count)

    def concentrate(self, point: dict) -> None:
        """Take the concentrations from the point."""
        if self._concentration:
            concentration = self._concentration(point)
            if self._types.n_weight:  # the sweep draws these itself, and divides
                concentration = self._types.undivided(concentration, point[self._value_names[TYPE_PRIOR]])
            self._sweeper.concentration = concentration

    def draw(self, point: dict, allocated: ChainState) -> tuple[dict, list[dict]]:
        """Return the point with weights and parameters drawn given the allocations, and the sweep's statistics."""
        self.chain_state = chain.draw(allocated, self._sweeper, self.rng)
        values = {"log_likelihood": self.chain_state.log_likelihood, "n_active_edges": self.chain_state.n_active}
        return self._merged(point, self.chain_state.params), [
            {self._statistic[key]: value for key, value in values.items()}
        ]

    def _params(self, point: dict) -> Params:
        values = {name: point[full] for name, full in self._value_names.items()}
        log_weight, theta = self._layout.join(self._frozen.circuit, values)
        scales = [values[name] for name in self._scale_names]
        return Params(log_weight, np.concatenate([theta, values.get(TYPE_PRIOR, []), *scales]))

    def _merged(self, point: dict, params: Params) -> dict:
        """Return the point with the variables that are drawn replaced."""
        _, *behind = np.split(params.theta, self._behind)
        values = self._layout.split(params) | dict(zip((TYPE_PRIOR, *self._scale_names), behind, strict=True))
        return point | {full: values[name] for full, name in self._drawn.items()}

    def _begin(self, point: dict) -> ChainState:
        """Return where a chain begins: at what the user gave, and else at the learner's estimate or at random.

        PyMC's default point is the priors' centre, at which all components are alike, which is no useful start.
        """
        key, is_heads = chain.draw_key(self.rng), bool(self.rng.random() < self.random_start)
        unset = self._unset.items()
        given = {full for full, value in unset if not np.allclose(point[full], value, SAME_POINT, 0.0)}
        at_random = is_heads and not given  # random allocations would have nothing to do with what was given
        n_tune = self.n_tune if self._may_be_even else 0
        start = chain.init(self._sweeper, self.rng, key, at_random=at_random, n_tune=n_tune)
        values = self._merged(point, start.params) | {full: point[full] for full in given}
        with np.errstate(invalid="ignore", divide="ignore"):  # what the user gave is checked in a moment
            params = self._params(values)
        if given:
            self._check_start(params, given)
        return start._replace(params=params)

    def _check_start(self, params: Params, given: set[str]) -> None:
        """Raise `ModelError` where a start that the user gave is no value of its variable."""
        n = self._frozen.circuit.n_theta
        try:
            check_values(self._layout, Params(params.log_weight, params.theta[..., :n]), START_TOLERANCE)
        except CircuitError as error:
            names = ", ".join(sorted(given))
            raise ModelError(f"starting values of {names}: {error.found}", error.expected) from None
        if not (np.isfinite(params.theta).all() and (params.theta[n:] > 0.0).all()):
            raise ModelError(f"starting values of {', '.join(sorted(given))} with numbers not above 0", "positive ones")

    def learned_point(self) -> dict[str, np.ndarray]:
        """Return values of the block's variables at the learner's estimate."""
        return self._merged({}, self._sweeper.learned())

    def random_point(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return values of the block's variables given allocations at random: a start far from the learner's."""
        return self._merged({}, self._sweeper.at_random(rng))

    @staticmethod
    def competence(var, has_grad):
        """Claim the variables of a block, the continuous ones of which concentrations are made, and no others."""
        ours = var.owner is not None and isinstance(var.owner.op, BlockVariable)
        return Competence.IDEAL if ours or hyperparameters([var]) else Competence.INCOMPATIBLE

    def _progressbar_config(self, n_chains=1):
        from rich.progress import TextColumn
        from rich.table import Column

        log_likelihood, active = self._statistic.values()
        of_block = "" if log_likelihood == "log_likelihood" else f" {self._block}"
        columns = [
            TextColumn(
                f"{{task.fields[{log_likelihood}]:.1f}}", table_column=Column(f"Log likelihood{of_block}", ratio=1)
            ),
            TextColumn(f"{{task.fields[{active}]}}", table_column=Column(f"Active edges{of_block}", ratio=1)),
        ]
        return columns, {log_likelihood: [0.0] * n_chains, active: [0] * n_chains}

    def _make_progressbar_update_functions(self):
        names = tuple(self._statistic.values())

        def update(stats):
            return {key: stats[key] for key in names}

        return (update,)


def _step_of(step: type[CircuitGibbs], rows) -> type[CircuitGibbs]:
    """Return the class of the step that sweeps over a block."""
    if isinstance(rows.owner.op.frozen, FrozenGroups):
        from bayesjpt.model.group_step import GroupedGibbs  # which is made of this file's

        return GroupedGibbs
    return step


def _default_point(model: pm.Model, variables: list) -> dict[str, np.ndarray]:
    """Return the values at which PyMC starts variables without initial values."""
    point = make_initial_point_fn(model=model, overrides=dict.fromkeys(variables, "support_point"))(0)
    return {rv.name: np.array(point[rv.name]) for rv in variables}


def _data(variable) -> np.ndarray:
    """Return the value of a shared variable or a constant."""
    return variable.get_value(borrow=True) if hasattr(variable, "get_value") else np.asarray(variable.data)
