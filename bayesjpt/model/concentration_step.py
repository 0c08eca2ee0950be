"""The step method for what a block's concentrations are made of: slices given the allocations, inside the Gibbs sweep.

Given the allocations of all rows, the weights of a sum can be integrated out. So the variables eta of which
concentrations are made are drawn from

    p(eta | allocations, all else)  proportional to  p(allocations | a(eta))  times  every factor of the model with eta

with allocations of Dirichlet-multinomial probability (`bayesjpt.kernels.concentration`), and then the weights given
allocations and eta. Given the weights, eta hardly moves: a nearly empty likelihood has a tiny weight, which asks for a
small concentration, which keeps the weight tiny.
"""

from __future__ import annotations

import numpy as np
import pymc as pm
from pymc.step_methods.compound import BlockedStep, CompoundStep, CompoundStepState, StepMethodState
from pytensor.graph.traversal import ancestors, graph_inputs

from bayesjpt.errors import SamplingError
from bayesjpt.internals import dataclass_state
from bayesjpt.model.concentration import blanket
from bayesjpt.numerics.slice import slice_begin, slice_next, slice_state, slice_wants_more

FIRST_SLICE_WIDTH = 1.0
"""Of a slice update of what concentrations are made of, on its unconstrained scale: most of these are logarithms of
positive numbers, whose prior spans a few units. It is adapted while the step tunes, so it decides no more than cost."""

SLICE_WIDTH_PER_MOVE = 3.0
"""Widths over the mean distance moved while tuning: two uniform points of an interval are a third of it apart."""

MAX_SLICES_PER_SWEEP = 20
"""Scalars above concentrations that a sweep updates, at a tenth to half a millisecond each: no more together than the
rest of a sweep over a few thousand rows."""


@dataclass_state
class ConcentrationGibbsState(StepMethodState):
    """What a chain carries from sweep to sweep beside the point."""

    sweeps: CompoundStepState
    tune: bool
    n_tuned: np.ndarray
    moved: np.ndarray


class ConcentrationGibbs(BlockedStep):
    """Gibbs sweeps over blocks, with the variables of which their concentrations are made drawn in between.

    ``pm.sample()`` finds it by itself: `CircuitGibbs` makes it, by `over`.

    Parameters
    ----------
    vars : list of value variables
        All that are drawn: those of `above` and of `sweeps`.
    above : list of value variables
        Continuous; drawn given the allocations.
    sweeps : list of CircuitGibbs
        Of the blocks with a concentration that depends on `above`.
    model : pm.Model, optional
    rng : numpy.random.Generator or int, optional
    compile_kwargs : dict, optional
        Of ``pm.compile``, by which the factors of `above` become a function of the point.

    Raises
    ------
    SamplingError
        If a concentration is not a positive number at a point, or the density there not a finite one.

    Notes
    -----
    A sweep gives each scalar of `above` one slice update on its unconstrained scale; of more than
    `MAX_SLICES_PER_SWEEP` as many, chosen at random. Widths are adapted while the step tunes.

    The allocations of all blocks are drawn before `above`, and all their weights after, so that a variable may be
    shared by blocks. Weights that another step draws (one of the user's, or NUTS those of a block with gradients) are
    factors as the user's own are: `above` is then drawn given them.

    References
    ----------
    van Dyk, Park (2008). Partially collapsed Gibbs samplers. Journal of the American Statistical Association 103: what
    was integrated out has to be drawn next. Neal (2003). Slice sampling. Annals of Statistics 31.
    """

    name = "concentration_gibbs"
    default_tune_steps = 150
    _state_class = ConcentrationGibbsState

    @classmethod
    def over(cls, above: list, sweeps: list, *, model: pm.Model, **options) -> BlockedStep | CompoundStep:
        """Return the step for some variables and blocks; a block that does not depend on them keeps its own."""
        rvs = {model.values_to_rvs[v] for v in above}
        joint = [sweep for sweep in sweeps if any(_depends(model, model.values_to_rvs[v], rvs) for v in sweep.vars)]
        step = cls(
            [*above, *(v for sweep in joint for v in sweep.vars)], above=above, sweeps=joint, model=model, **options
        )
        others = [sweep for sweep in sweeps if sweep not in joint]
        return CompoundStep([*others, step]) if others else step

    def __init__(
        self,
        vars,
        *,
        above: list,
        sweeps: list,
        model=None,
        rng=None,
        blocked: bool = True,
        compile_kwargs: dict | None = None,
    ):
        model = pm.modelcontext(model)
        self.vars = list(vars)
        self.blocked = blocked
        self.tune = True
        self.rng = pm.util.get_random_generator(rng)
        self.sweeps = CompoundStep(sweeps)
        self.stats_dtypes_shapes = {key: kind for sweep in sweeps for key, kind in sweep.stats_dtypes_shapes.items()}
        self.stats_dtypes = [{key: dtype for key, (dtype, _) in self.stats_dtypes_shapes.items()}]
        point = model.initial_point()
        self._shapes = {v.name: np.shape(point[v.name]) for v in above}
        self.n_tuned, self.moved = np.zeros(self._ravel(point).size), np.zeros(self._ravel(point).size)
        drawn = {model.values_to_rvs[v] for sweep in sweeps for v in sweep.vars}
        terms = [term.sum() for factor, term in blanket(model, above).items() if factor not in drawn]
        inputs = [v for v in graph_inputs(terms) if v in set(model.value_vars)]
        self._inputs = [v.name for v in inputs]
        self._log_factors = pm.pytensorf.compile(inputs, sum(terms), **(compile_kwargs or {}))
        self._log_factors.trust_input = True
        self.log_density(point)  # compiled before worker processes are forked

    def setup_chain(self, rng, tune: int, draws: int) -> None:
        """Reset what belongs to a chain: its widths, and what its sweeps reset."""
        super().setup_chain(rng, tune, draws)
        (of_sweeps,) = self.rng.spawn(1)
        self.sweeps.setup_chain(of_sweeps, tune, draws)
        self.tune = tune > 0
        self.n_tuned[:], self.moved[:] = 0.0, 0.0

    def stop_tuning(self) -> None:
        """Keep the widths as they are from here on."""
        super().stop_tuning()
        self.sweeps.stop_tuning()

    def step(self, point: dict) -> tuple[dict, list[dict]]:
        """Return the point after one sweep over all blocks, with fresh arrays, and its statistics."""
        allocated = [sweep.allocate(point) for sweep in self.sweeps.methods]
        point = self._draw(point)
        stats: dict = {}
        for sweep, allocation in zip(self.sweeps.methods, allocated, strict=True):
            sweep.concentrate(point)
            point, (of_block,) = sweep.draw(point, allocation)
            stats |= of_block
        return point, [stats]

    def log_density(self, point: dict) -> float:
        """Return the log density of `above` given the allocations, but for a constant; -inf where it has none."""
        value = float(self._log_factors(*[point[name] for name in self._inputs]))
        for sweep in self.sweeps.methods:
            if not value > -np.inf:
                break
            value += sweep.log_allocations(point)
        return value

    def _draw(self, point: dict) -> dict:
        x = self._ravel(point)
        for i in self.rng.permutation(x.size)[:MAX_SLICES_PER_SWEEP]:
            start, log_density = x[i], self.log_density(point | self._unravel(x))
            if not np.isfinite(log_density):
                raise SamplingError(
                    f"log density {log_density} of {', '.join(self._shapes)}",
                    "a finite one",
                    "Begin at values that the model allows, by initval= of a variable or initvals= of pm.sample",
                )
            state = slice_state()
            x[i] = slice_begin(state, start, log_density, self._width(i), self.rng)
            while slice_wants_more(state):
                x[i] = slice_next(state, self.log_density(point | self._unravel(x)), self.rng)
            if self.tune:
                self.n_tuned[i] += 1.0
                self.moved[i] += abs(x[i] - start)
        return point | self._unravel(x)

    def _width(self, i: int) -> float:
        return (FIRST_SLICE_WIDTH + SLICE_WIDTH_PER_MOVE * self.moved[i]) / (1.0 + self.n_tuned[i])

    def _ravel(self, point: dict) -> np.ndarray:
        return np.concatenate([np.ravel(point[name]) for name in self._shapes]).astype(np.float64)

    def _unravel(self, x: np.ndarray) -> dict[str, np.ndarray]:
        out, at = {}, 0
        for name, shape in self._shapes.items():
            size = int(np.prod(shape))
            out[name] = x[at : at + size].reshape(shape).copy()
            at += size
        return out

    def _progressbar_config(self, n_chains=1):
        return self.sweeps._progressbar_config(n_chains) if self.sweeps.methods else ([], {})

    def _make_progressbar_update_functions(self):
        return (dict,)


def _depends(model: pm.Model, rv, rvs: set) -> bool:
    """Return whether the distribution of a random variable given its parents depends on some of others."""
    return not rvs.isdisjoint(ancestors(list(rv.owner.inputs), blockers=model.basic_RVs))
