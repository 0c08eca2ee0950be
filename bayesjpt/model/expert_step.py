"""The step method of `ExpertTree`: Gibbs sweeps with Polya-Gamma draws inside ``pm.sample``, found by PyMC itself.

The model's coefficients are steps from the parent's in units of the level's deviation, those of the sweep are the
coefficients themselves: one is a function of the other given the precisions, so a sweep serves both.

      step, precision   ->   node = sum over the path of step / sqrt(precision)   -> sweep ->   back
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep, Competence, CompoundStep, StepMethodState
from pytensor import function
from pytensor.graph.traversal import ancestors

from bayesjpt import defaults_experts
from bayesjpt.errors import ModelError
from bayesjpt.internals import dataclass_state
from bayesjpt.kernels.expert_series_start import seen_rows
from bayesjpt.kernels.expert_start import begin_paths, begin_ways
from bayesjpt.kernels.expert_sweep import Prior, draw_given_paths, fill_paths
from bayesjpt.kernels.expert_tree import GAUSSIAN, LOG_LINKED, MULTINOMIAL, Coefficients, Task
from bayesjpt.model.blocks import variables_of
from bayesjpt.model.expert_responses import Response

_NO_FLOOR = 1e-200
"""Variances of the model have none; the sweep asks for one."""
_ROUNDING = 1e-16


class ExpertBlock(NamedTuple):
    """What a step has to know of a tree, ``transitions`` if over time; the tag ``expert_block`` of its variables.

    ``n_column`` is the number of covariates, of which priors of experts with a log link depend.
    """

    name: str
    responses: tuple[Response, ...]
    depth: int
    branches: int
    n_column: int
    transitions: str = ""


@dataclass_state
class ExpertGibbsState(StepMethodState):
    """What a chain carries from sweep to sweep beside the point."""

    begun: bool
    tune: bool


class ExpertGibbs(BlockedStep):
    """Gibbs sweeps over the variables of one `ExpertTree` whose covariates are data.

    Parameters
    ----------
    vars : list of variables, optional
        All of a tree's; ``pm.sample()`` passes them by itself. Those of several trees make a CompoundStep.
    model : pm.Model, optional
    rng : numpy.random.Generator or int, optional

    Raises
    ------
    ModelError
        If some of the tree's variables are left to another step, or another factor of the model depends on them.

    Notes
    -----
    A chain begins with a tree of hard splits, learned from a random half of the rows, whatever its initial point is.
    """

    name = "expert_gibbs"
    default_tune_steps = 200
    stats_dtypes_shapes = {}  # noqa: RUF012 - PyMC's
    _state_class = ExpertGibbsState

    def __new__(cls, *args, **kwargs):
        model = pm.modelcontext(kwargs.get("model"))
        rvs = [rv for rv in variables_of(model, kwargs.get("vars", args[0] if args else None)) if cls.claims(rv)]
        names = list(dict.fromkeys(block_of(rv).name for rv in rvs))
        if len(names) == 1:
            return super().__new__(cls, *args, **kwargs)
        if not names:
            raise ModelError("variables of no ExpertTree", "those that bj.ExpertTree made of data")
        options = {key: value for key, value in kwargs.items() if key not in ("vars", "rng", "model")}
        # one each: from a seed that they shared, trees would be drawn with the same random numbers
        rngs = pm.util.get_random_generator(kwargs.get("rng")).spawn(len(names))
        shares = [[model.rvs_to_values[rv] for rv in rvs if block_of(rv).name == name] for name in names]
        return CompoundStep(
            [cls(share, model=model, rng=rng, **options) for share, rng in zip(shares, rngs, strict=True)]
        )

    def __init__(self, vars=None, *, model=None, rng=None, blocked=True, initial_point=None, compile_kwargs=None):
        model = pm.modelcontext(model)
        drawn = [rv for rv in variables_of(model, vars) if self.claims(rv)]
        self._block = block_of(drawn[0])
        members = [rv for rv in model.free_RVs if block_of(rv) == self._block]
        _check(model, self._block.name, members, drawn)
        self.vars = [model.rvs_to_values[rv] for rv in members]
        self._value_names = {
            rv.name.removeprefix(f"{self._block.name}_"): (str(value.name), model.rvs_to_transforms[rv] is not None)
            for rv, value in zip(members, self.vars, strict=True)
        }
        self.blocked, self.tune, self.begun = blocked, True, False
        self.rng = pm.util.get_random_generator(rng)
        self._task, self._prior = self._read(model), _prior(self._block)
        self._leaf = np.zeros(self._task.x.shape[0], np.int64)
        point = model.initial_point()
        self._moved(point, np.random.default_rng(0), begin=True)  # compiles before workers are forked

    def setup_chain(self, rng, tune: int, draws: int) -> None:
        """Let the chain begin anew."""
        super().setup_chain(rng, tune, draws)
        self.tune, self.begun = tune > 0, False

    def step(self, point: dict) -> tuple[dict, list[dict]]:
        """Return the point after one sweep."""
        moved = self._moved(point, self.rng, begin=not self.begun)
        self.begun = True
        return point | moved, [{}]

    def _read(self, model: pm.Model) -> Task:
        """Return the rows as kernels take them, without those that lack a response."""
        task, seen = task_of(model, self._block)
        return seen_rows(task, seen)

    def _moved(self, point: dict, rng: np.random.Generator, *, begin: bool) -> dict[str, np.ndarray]:
        """Return the tree's variables after one sweep."""
        state = self._state(point)
        self._sweep(state, rng, begin=begin)
        return self._values(state)

    def _sweep(self, state: Coefficients, rng: np.random.Generator, *, begin: bool) -> None:
        if begin and state.gate.shape[0]:
            state.gate[:] = 0.0
            block = self._block
            if block.branches == 2:
                self._leaf = begin_paths(self._task, state.gate, rng)
            else:
                self._leaf = begin_ways(self._task, block.depth, block.branches, rng)
        else:
            fill_paths(self._task, state, rng, self._leaf)
        draw_given_paths(self._task, state, self._prior, self._leaf, rng)

    def _state(self, point: dict) -> Coefficients:
        """Return the sweep's coefficients at a point."""
        values = {
            name: np.exp(point[full]) if logged else np.array(point[full], np.float64)
            for name, (full, logged) in self._value_names.items()
        }
        for c, own in enumerate(self._block.responses):
            # PyMC's value of a bounded variable is the logarithm of what lies above the bound
            values[f"precision{own.suffix}"] += self._least_precision[:, c]
        responses, n_way = self._block.responses, self._block.branches
        level, n_leaf = levels(self._block.depth, n_way), n_way**self._block.depth

        def columns(*names: str, default: np.ndarray) -> np.ndarray:
            """Return what the responses have of some name, or the default, side by side."""
            found = [
                next((values[name + own.suffix] for name in names if name + own.suffix in values), default)
                for own in responses
            ]
            return np.stack(found, axis=-1)

        steps = [values[f"step{own.suffix}"].reshape(level.size, -1, self._task.x.shape[1]) for own in responses]
        precision = columns("precision", default=np.zeros(0))
        node = np.concatenate(
            [step / np.sqrt(precision[level, c])[:, None, None] for c, step in enumerate(steps)], axis=1
        )
        for number in range(1, level.size):
            node[number] += node[(number - 1) // n_way]
        return Coefficients(
            gate=values.get("gate", np.zeros((0, self._task.x.shape[1]))),
            node=np.ascontiguousarray(node),
            dispersion=columns("variance", "shape", default=np.ones(n_leaf)),
            gate_precision=np.atleast_1d(values.get("gate_precision", np.ones(1))),
            precision=precision,
            noise=columns("noise", default=np.ones(())),
        )

    def _values(self, state: Coefficients) -> dict[str, np.ndarray]:
        """Return the model's variables, as a point has them."""
        steps, n_way = state.node.copy(), self._block.branches
        for number in range(1, steps.shape[0]):
            steps[number] -= state.node[(number - 1) // n_way]
        level = levels(self._block.depth, n_way)
        values = {"gate": state.gate, "gate_precision": state.gate_precision[0]}
        for c, own in enumerate(self._block.responses):
            step = steps[:, self._task.at[c] : self._task.at[c + 1]]
            step = step * np.sqrt(state.precision[level, c])[:, None, None]
            values |= {
                f"step{own.suffix}": step if own.kind == MULTINOMIAL else step[:, 0],
                f"precision{own.suffix}": self._above_least(state.precision[:, c], c),
                f"noise{own.suffix}": state.noise[c],
                f"variance{own.suffix}": state.dispersion[:, c],
                f"shape{own.suffix}": state.dispersion[:, c],
            }
        return {
            full: np.array(np.log(values[name]) if logged else values[name])
            for name, (full, logged) in self._value_names.items()
            if name in values
        }

    @property
    def _least_precision(self) -> np.ndarray:
        """What precisions are at least, float64 (level, response); 0 where they have no bound."""
        return self._prior.least_precision[np.minimum(np.arange(self._block.depth + 1), 1)]

    def _above_least(self, precision: np.ndarray, c: int) -> np.ndarray:
        """Return how far a response's precisions lie above their bound, which they may be but for rounding."""
        return np.maximum(precision - self._least_precision[:, c], _ROUNDING * precision)

    @classmethod
    def claims(cls, rv) -> bool:
        """Return whether a variable is of a tree whose covariates are data and whose rows stand by themselves."""
        block = block_of(rv)
        return block is not None and not block.transitions

    @classmethod
    def competence(cls, var, has_grad):
        """Claim the variables of such trees, and no others."""
        return Competence.IDEAL if cls.claims(var) else Competence.INCOMPATIBLE


def block_of(rv) -> ExpertBlock | None:
    """Return what a variable of a tree was tagged with, None of others."""
    return getattr(rv.tag, "expert_block", None)


def _check(model: pm.Model, name: str, members: list, drawn: list) -> None:
    left = [rv.name for rv in members if rv not in drawn]
    if left:
        raise ModelError(f"{', '.join(left)} of ExpertTree {name!r} is left to another step", "all of its variables")
    mine, basic = set(members), list(model.basic_RVs)
    for factor in [*basic, *model.potentials]:
        if factor in mine or factor.name == name:
            continue
        inputs = list(factor.owner.inputs) if factor in basic else [factor]
        if set(ancestors(inputs, blockers=basic)) & mine:
            raise ModelError(
                f"{factor.name} depends on variables of ExpertTree {name!r}: Gibbs sweeps would be wrong",
                "only Deterministics to depend on them",
                "Sample with pm.sample(step=pm.NUTS()).",
            )


def covariates_name(name: str) -> str:
    """Return what the covariates of a tree of some name, with their intercept, are called in the model's graph."""
    return f"{name}_intercept_and_covariates"


def levels(depth: int, n_way: int) -> np.ndarray:
    """Return the level of each node, int64 (n_node,)."""
    return np.repeat(np.arange(depth + 1), n_way ** np.arange(depth + 1))


def task_of(model: pm.Model, block: ExpertBlock) -> tuple[Task, np.ndarray]:
    """Return the data of a tree as kernels take them, and which rows have all responses; others hold ones."""
    # by its name, since a copy of the model (pm.do) has variables of its own and the same names
    named = (v for v in ancestors([model[block.name]]) if v.name == covariates_name(block.name))
    tensors = [next(named), model.rvs_to_values[model[block.name]]]
    found: Any = function([], tensors, mode="FAST_COMPILE")()
    x, values = (np.asarray(array, np.float64) for array in found)
    if x.shape[0] != values.shape[0]:
        rows = f"covariates of {block.name!r} of {x.shape[0]} rows for {values.shape[0]} values"
        raise ModelError(rows, "as many rows", "Hand pm.set_data both.")
    values = values.reshape(x.shape[0], len(block.responses))
    seen = ~np.isnan(values).any(axis=1)
    values = np.where(seen[:, None], values, 1.0)
    # a gaussian response in units of its spread, around its mean; in others the mean is in the predictor
    gaussian = np.array([own.kind == GAUSSIAN for own in block.responses])
    offset, scale = (np.array([getattr(own, what) for own in block.responses]) for what in ("offset", "scale"))
    task = Task(
        x=x,
        gate_x=x,
        y=np.ascontiguousarray(np.where(gaussian, (values - offset) / scale, values).T),
        kind=np.array([own.kind for own in block.responses], np.int8),
        at=np.cumsum([0, *(max(len(own.labels), 1) for own in block.responses)]).astype(np.int32),
        offset=np.where(gaussian, 0.0, offset),
    )
    return task, seen


def _prior(block: ExpertBlock) -> Prior:
    log_linked = np.isin([own.kind for own in block.responses], LOG_LINKED)
    rate, least = defaults_experts.precision_bounds(log_linked, block.n_column, block.depth)
    return Prior(
        *defaults_experts.GATE_PRECISION,
        defaults_experts.PRECISION_SHAPE,
        np.array(rate),
        np.array(least),
        defaults_experts.NOISE_SHAPE,
        *defaults_experts.NOISE_RATE,
        *defaults_experts.LOG_SHAPE,
        np.full(log_linked.size, _NO_FLOOR),
    )
