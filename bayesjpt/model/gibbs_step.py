"""The step method: one blocked Gibbs sweep of a circuit inside ``pm.sample``.

PyMC finds it by itself: `register_step` appends it to PyMC's step methods, and it claims every variable whose op is a
`BlockVariable`. One sweep draws all allocations given the parameters (never stored), then all weights and parameters
given the allocations. Before that it refuses models in which those conditionals would be wrong.
"""

from __future__ import annotations

import numpy as np
import pymc as pm
from pymc.initial_point import make_initial_point_fn
from pymc.sampling import mcmc
from pymc.step_methods.compound import BlockedStep, Competence, StepMethodState
from pymc.step_methods.state import dataclass_state
from pytensor.graph.traversal import ancestors

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.layout import make_layout
from bayesjpt.defaults import MAX_DISTINCT_SHARE, MAX_TABLE_BYTES, MAX_WORK_BYTES
from bayesjpt.errors import ModelError, SamplingError
from bayesjpt.kernels.cells import block_rows, make_cells, make_work
from bayesjpt.kernels.gibbs import allocate, count_active, draw_params
from bayesjpt.model.circuit_rows import CircuitRowsRV
from bayesjpt.model.distributions import BlockVariable
from bayesjpt.numerics.counter_rng import sweep_key


def register_step() -> None:
    """Append the step to the methods among which ``pm.sample`` chooses; once, however often it is called."""
    if CircuitGibbs not in mcmc.STEP_METHODS:
        mcmc.STEP_METHODS.append(CircuitGibbs)


def find_blocks(model: pm.Model) -> dict:
    """Return {observed variable of a block: its free variables} of a model."""
    blocks = {}
    for rows in model.basic_RVs:
        if rows.owner is not None and isinstance(rows.owner.op, CircuitRowsRV):
            _, _, _, *parameters = rows.owner.inputs
            above = set(ancestors(parameters))
            blocks[rows] = [rv for rv in model.free_RVs if rv in above and isinstance(rv.owner.op, BlockVariable)]
    return blocks


def outside_factors(model: pm.Model, rows, variables: list) -> list[str]:
    """Return the names of factors outside the block that depend on its variables: they make its conditionals wrong."""
    mine = set(variables)
    basic = list(model.basic_RVs)
    names = []
    for factor in [*basic, *model.potentials]:
        if factor is rows or factor in mine:
            continue
        inputs = factor.owner.inputs if factor in set(basic) else [factor]
        if set(ancestors(list(inputs), blockers=basic)) & mine:
            names.append(factor.name)
    return names


@dataclass_state
class CircuitGibbsState(StepMethodState):
    """What a chain carries from sweep to sweep beside the point."""

    chain_key: int
    sweep: int
    at_random: bool
    tune: bool


class CircuitGibbs(BlockedStep):
    """Gibbs sweeps over one block.

    Parameters
    ----------
    vars : list of variables, optional
        All variables of the block; ``pm.sample()`` passes them by itself.
    model : pm.Model, optional
    random_start : float, default 0.5
        Probability that a chain begins with random allocations instead of the learner's estimate: chains that begin
        apart show whether they mix. A chain whose initial values were given begins at those.
    rng : numpy.random.Generator or int, optional

    Raises
    ------
    ModelError
        If another factor of the model depends on the block's variables, one of them is not free or is given to
        another step, or two blocks are asked of one step.
    SamplingError
        If a row has probability zero, or a conditional distribution is not valid.

    Notes
    -----
    Statistics of each draw: ``log_likelihood``, of all rows at the point *before* the sweep (it lags one draw), and
    ``n_active_edges``, the edges of sums that some row took.
    """

    name = "circuit_gibbs"
    default_tune_steps = 150
    stats_dtypes_shapes = {"log_likelihood": (np.float64, []), "n_active_edges": (np.int64, [])}  # noqa: RUF012 - PyMC's
    _state_class = CircuitGibbsState

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
        model = pm.modelcontext(model)
        rvs = [model.values_to_rvs.get(v, v) for v in (model.free_RVs if vars is None else vars)]
        rows, variables = _only_block(model, rvs)
        _refuse(model, rows, variables, rvs)
        frozen = rows.owner.op.frozen
        self.vars = [model.rvs_to_values[rv] for rv in variables]
        self.blocked = blocked
        self.tune = True
        self.rng = pm.util.get_random_generator(rng)
        self.random_start = random_start
        self.chain_key, self.sweep, self.at_random = 0, 0, False
        self._circuit, self._plan, self._priors = frozen.circuit, frozen.plan, frozen.priors
        self._layout = make_layout(frozen.circuit, frozen.schema)
        self._value_names = {name: f"{rows.name}_{name}" for name in self._layout.names()}
        self._block = rows.name
        self._unset = _default_point(model, variables)
        self._load(_data(model.rvs_to_values[rows]), _data(rows.owner.inputs[2]))
        self._warm_up()

    def _load(self, values: np.ndarray, missing: np.ndarray) -> None:
        observed = np.ascontiguousarray(~missing.T)
        self._cells = make_cells(
            self._plan,
            np.ascontiguousarray(values.T),
            observed,
            max_distinct_share=MAX_DISTINCT_SHARE,
            max_table_bytes=MAX_TABLE_BYTES,
        )
        self._work = make_work(self._plan, self._cells, block_rows(self._plan, MAX_WORK_BYTES))
        self._stats = np.zeros(self._plan.stat_at[-1])
        self._edge_count = np.zeros(self._circuit.n_edge, np.int64)
        self._log_jacobian = float((observed.sum(axis=1) * self._plan.column_log_jacobian).sum())

    def _warm_up(self) -> None:
        """Compile before worker processes are forked, and meet impossible rows before anything is sampled."""
        self._sweep(self._start(), np.random.default_rng(0), False, np.uint64(0))

    def setup_chain(self, rng, tune: int, draws: int) -> None:
        """Reset what belongs to a chain: its key for allocations, and the coin for its start."""
        super().setup_chain(rng, tune, draws)
        self.tune = tune > 0
        self.chain_key = int(self.rng.integers(2**63))
        self.at_random = bool(self.rng.random() < self.random_start)
        self.sweep = 0

    def step(self, point: dict) -> tuple[dict, list[dict]]:
        """Return the point after one sweep, with fresh arrays, and its statistics."""
        params = self._begin(point) if self.sweep == 0 else self._params(point)
        key = np.uint64(sweep_key(np.uint64(self.chain_key), np.uint64(self.sweep)))
        log_likelihood = self._sweep(params, self.rng, False, key)
        self.sweep += 1
        new = dict(point)
        for name, value in self._layout.split(params).items():
            new[self._value_names[name]] = value
        active = count_active(self._plan, self._edge_count)
        return new, [{"log_likelihood": log_likelihood, "n_active_edges": active}]

    def _params(self, point: dict) -> Params:
        return self._layout.join(self._circuit, {name: point[full] for name, full in self._value_names.items()})

    def _begin(self, point: dict) -> Params:
        """Return where a chain begins: at the point, unless nobody chose it.

        PyMC's default point is the priors' centre, at which all components are alike: nobody's choice of a start.
        """
        if any(not np.array_equal(point[full], value) for full, value in self._unset.items()):
            return self._params(point)
        return self._random_start(self.rng) if self.at_random else self._start()

    def _start(self) -> Params:
        return Params(self._circuit.start_log_weight.copy(), self._circuit.start_theta.copy())

    def learned_point(self) -> dict[str, np.ndarray]:
        """Return values of the block's variables at the learner's estimate."""
        return {self._value_names[name]: value for name, value in self._layout.split(self._start()).items()}

    def random_point(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return values of the block's variables given allocations at random: a start far from the learner's."""
        params = self._random_start(rng)
        return {self._value_names[name]: value for name, value in self._layout.split(params).items()}

    def _random_start(self, rng: np.random.Generator) -> Params:
        params = self._start()
        self._sweep(params, rng, True, np.uint64(rng.integers(2**63)))
        return params

    def _sweep(self, params: Params, rng: np.random.Generator, flat: bool, key) -> float:
        log_likelihood, impossible = allocate(
            self._plan, self._cells, *params, self._work, key, flat, self._stats, self._edge_count
        )
        if impossible >= 0:
            raise SamplingError(
                f"row {impossible + 1} of block {self._block!r} has probability zero at the current parameters",
                "every row inside the support of some likelihood of each column",
            )
        node = draw_params(
            self._plan,
            self._stats,
            self._edge_count,
            self._priors.concentration,
            self._priors.hyper,
            self._priors.hyper_at,
            *params,
            rng,
        )
        if node >= 0:
            raise SamplingError(f"the conditional distribution at node {node} of block {self._block!r} is not valid")
        return log_likelihood + self._log_jacobian

    @staticmethod
    def competence(var, has_grad):
        """Claim the variables of a block, and no others."""
        ours = var.owner is not None and isinstance(var.owner.op, BlockVariable)
        return Competence.IDEAL if ours else Competence.INCOMPATIBLE

    @staticmethod
    def _progressbar_config(n_chains=1):
        from rich.progress import TextColumn
        from rich.table import Column

        columns = [
            TextColumn("{task.fields[log_likelihood]:.1f}", table_column=Column("Log likelihood", ratio=1)),
            TextColumn("{task.fields[n_active_edges]}", table_column=Column("Active edges", ratio=1)),
        ]
        return columns, {"log_likelihood": [0.0] * n_chains, "n_active_edges": [0] * n_chains}

    @staticmethod
    def _make_progressbar_update_functions():
        def update(stats):
            return {key: stats[key] for key in ("log_likelihood", "n_active_edges")}

        return (update,)


def _default_point(model: pm.Model, variables: list) -> dict[str, np.ndarray]:
    """Return the values at which PyMC starts variables of which nobody said anything."""
    point = make_initial_point_fn(model=model, overrides=dict.fromkeys(variables, "support_point"))(0)
    return {rv.name: np.array(point[rv.name]) for rv in variables}


def _data(variable) -> np.ndarray:
    """Return the value of a shared variable or a constant."""
    return variable.get_value(borrow=True) if hasattr(variable, "get_value") else np.asarray(variable.data)


def _only_block(model: pm.Model, rvs: list):
    touched = {rows: members for rows, members in find_blocks(model).items() if set(members) & set(rvs)}
    if not touched:
        names = ", ".join(rv.name for rv in rvs) or "no variable"
        raise ModelError(f"{names} of no circuit block in the model", "the variables that bj.CircuitMixture made")
    if len(touched) > 1:
        names = ", ".join(repr(rows.name) for rows in touched)
        raise ModelError(f"blocks {names} in one model", "one block", "Fit each block in a model of its own")
    ((rows, members),) = touched.items()
    return rows, members


def _refuse(model: pm.Model, rows, variables: list, given: list) -> None:
    layout = make_layout(rows.owner.op.frozen.circuit, rows.owner.op.frozen.schema)
    expected = {f"{rows.name}_{name}" for name in layout.names()}
    fixed = sorted(expected - {rv.name for rv in variables})
    if fixed:
        raise ModelError(
            f"{', '.join(fixed)} of block {rows.name!r} is no longer a free variable",
            "all variables of the block free",
            "Sample the model from before pm.do or pm.observe",
        )
    if rows not in model.observed_RVs:
        raise ModelError(f"block {rows.name!r} is not observed", "an observed block", "Pass its rows as data")
    elsewhere = sorted(rv.name for rv in variables if rv not in given)
    if elsewhere:
        raise ModelError(
            f"{', '.join(elsewhere)} of block {rows.name!r} is given to another step",
            "all variables of a block in one Gibbs step",
            "Leave the block out of step=",
        )
    outside = outside_factors(model, rows, variables)
    if outside:
        raise ModelError(
            f"{', '.join(outside)} depends on variables of block {rows.name!r}: its conjugate updates would be wrong",
            "only Deterministics to depend on them",
            "Make it a function of data or of variables outside the block",
        )
