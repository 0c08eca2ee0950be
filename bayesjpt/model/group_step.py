"""The Gibbs step of a block whose rows have groups: sweeps over a circuit with the structure once for each group.

    rows choose their ways by their group's weights   z | w, theta         the sweep's first half
    tables of a restaurant                             m | z, pi            per group and edge: few for many rows
    shared weights, the groups' integrated out         pi | m               Dirichlet(gamma + tables of all groups)
    the groups' weights, and parameters                w, theta | z, pi     the sweep's second half, at kappa pi

What a sum's n rows of one group choose, their weights integrated out, is a Chinese restaurant whose tables have the
dishes of pi: edge e has kappa pi_e imaginary rows. Given how many tables serve each edge, pi is conjugate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pymc as pm
import pytensor
from pytensor.graph.traversal import graph_inputs

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.layout import Layout, make_layout
from bayesjpt.errors import SamplingError
from bayesjpt.kernels.chain import ChainState
from bayesjpt.model.circuit_rows import FrozenCircuit
from bayesjpt.model.gibbs_step import CircuitGibbs
from bayesjpt.model.groups import GROUP, FrozenGroups, weights_of_groups
from bayesjpt.numerics.draw import draw_dirichlet
from bayesjpt.numerics.jit import kernel


@kernel
def draw_tables(count, concentration, rng):
    """Return a draw of the number of tables at which `count` customers sit, in a restaurant of that concentration.

    Customer j, from 0, opens a table with probability a / (a + j). Cost: linear in the customers.
    """
    tables = 0
    for j in range(count):
        if rng.random() * (concentration + j) < concentration:
            tables += 1
    return tables


@kernel
def fill_shared(count, weight, kappa, concentration, ptr, out, rng):
    """Fill `out` with a draw of the shared weights given the rows that took each edge in each group.

    Parameters
    ----------
    count : int64 (n_group, n)
    weight : float64 (n,)
        Shared weights so far.
    kappa : float
    concentration : float64 (n,)
        Of the shared weights beforehand.
    ptr : int64 (n_sum + 1,)
    out : float64 (n,)

    Returns
    -------
    bool
        False where a concentration is not positive and finite.
    """
    posterior = concentration.copy()
    for group in range(count.shape[0]):
        for k in range(weight.size):
            posterior[k] += draw_tables(count[group, k], kappa * weight[k], rng)
    valid = True
    for s in range(ptr.size - 1):
        valid &= draw_dirichlet(posterior[ptr[s] : ptr[s + 1]], out[ptr[s] : ptr[s + 1]], rng)
    return valid


class GroupLayout:
    """Which named variable of a grouped block holds which weight of the repeated circuit; as `Layout`, but for pi."""

    def __init__(self, frozen: FrozenGroups):
        self._layout: Layout = make_layout(frozen.circuit, frozen.schema)
        self.parameters = self._layout.parameters
        self.weights = ()  # concentrations of none are expressions: `GroupedGibbs` sets all of them
        grouped = frozen.grouped
        self.shared = weights_of_groups(self._layout)
        place = np.full((frozen.n_group + 1, frozen.circuit.n_edge), -1)
        place[grouped.edge_group, grouped.edge_from] = np.arange(grouped.circuit.n_edge)  # the last row: common edges
        self._common = {
            variable.name: place[-1, variable.edges] for variable in self._layout.weights if variable not in self.shared
        }
        self.group_edges = {variable.name: place[:-1, variable.edges] for variable in self.shared}

    def names(self) -> tuple[str, ...]:
        """Return all names but those of the shared weights, without the block's prefix."""
        of_groups = [f"{GROUP}_{name}" for name in self.group_edges]
        return (*self._common, *of_groups, *(p.name for p in self.parameters))

    def split(self, params: Params) -> dict[str, np.ndarray]:
        """Return the named arrays of flat ones."""
        out = {name: np.exp(params.log_weight[edges]) for name, edges in self._common.items()}
        out |= {f"{GROUP}_{name}": np.exp(params.log_weight[edges]) for name, edges in self.group_edges.items()}
        return out | {p.name: params.theta[p.positions] for p in self.parameters}

    def join(self, circuit, values: dict[str, np.ndarray]) -> Params:
        """Return flat arrays of named ones. The root's weights are one: the group of a row is given, not modelled."""
        log_weight, theta = np.zeros(circuit.n_edge), np.empty(circuit.n_theta)
        for name, edges in self._common.items():
            log_weight[edges] = np.log(values[name])
        for name, edges in self.group_edges.items():
            log_weight[edges] = np.log(values[f"{GROUP}_{name}"])
        for p in self.parameters:
            theta[p.positions] = values[p.name]
        return Params(log_weight, theta)


class Kappa:
    """The concentration kappa of a block's groups as a function of the point; PyTensor runs it in Python."""

    def __init__(self, model: pm.Model, rows, layout: GroupLayout):
        variable = layout.shared[0]
        self._n_first = int(variable.ptr[1])  # kappa pi adds up to kappa at every sum
        expression = model[f"{rows.name}_{GROUP}_{variable.name}"].owner.inputs[-1]
        (output,) = model.replace_rvs_by_values([expression])
        inputs = [v for v in graph_inputs([output]) if v in set(model.value_vars)]
        self._evaluate = pytensor.function(inputs, output, mode="FAST_COMPILE", on_unused_input="ignore")
        self._evaluate.trust_input = True
        self._names = [v.name for v in inputs]
        self._block = rows.name

    def __call__(self, point: dict[str, np.ndarray]) -> float:
        """Return kappa at a point.

        Raises
        ------
        SamplingError
            If it is not a positive number.
        """
        concentration = np.asarray(self._evaluate(*[point[name] for name in self._names]))
        kappa = float(concentration[0, : self._n_first].sum())
        if not 0.0 < kappa < np.inf:
            raise SamplingError(
                f"kappa = {kappa} of block {self._block!r}",
                "a positive number at every point",
                "Give kappa an expression that is positive everywhere, such as pm.Gamma or pm.HalfNormal",
            )
        return kappa


class GroupedGibbs(CircuitGibbs):
    """Gibbs sweeps over one block with ``group=``: `CircuitGibbs` makes it, and has its parameters.

    Notes
    -----
    A sweep costs what one without groups does, as each row visits the structure of its own group, and one uniform
    number a row and sum. kappa is read from the point: where it is a random variable, another step draws it given the
    groups' weights.

    References
    ----------
    Teh, Jordan, Beal, Blei (2006). Hierarchical Dirichlet Processes. Journal of the American Statistical Association
    101, section 5: sampling by auxiliary numbers of tables. van Dyk, Park (2008). Partially collapsed Gibbs samplers:
    weights that were integrated out are drawn before anything depends on them.
    """

    name = "grouped_circuit_gibbs"

    def _swept(self, rows) -> FrozenCircuit:
        self._groups: FrozenGroups = rows.owner.op.frozen
        return self._groups.repeated

    def _named_by(self, model: pm.Model, rows) -> GroupLayout:
        layout = GroupLayout(self._groups)
        edges = np.concatenate([w.edges for w in layout.shared])
        self._group_edges = np.concatenate([layout.group_edges[w.name] for w in layout.shared], axis=1)
        self._ptr = np.cumsum(np.concatenate([[0], *(np.diff(w.ptr) for w in layout.shared)])).astype(np.int64)
        self._names = [f"{rows.name}_{w.name}" for w in layout.shared]
        self._parts = np.cumsum([w.edges.size for w in layout.shared])[:-1]
        self._prior = self._groups.priors.concentration[edges]
        self._pi = np.exp(self._groups.circuit.start_log_weight[edges])
        self._kappa = Kappa(model, rows, layout)
        return layout

    def _concentrations(self, model: pm.Model, rows) -> Callable[[dict], np.ndarray]:
        return lambda point: self._around(self._kappa(point) * self._shared(point))

    def _shared(self, point: dict) -> np.ndarray:
        return np.concatenate([point[name] for name in self._names])

    def _around(self, concentration: np.ndarray) -> np.ndarray:
        """Return concentrations, float64 (n_edge,), with those of every group's weights replaced."""
        out = self._frozen.priors.concentration.copy()
        out[self._group_edges] = concentration
        return out

    def _load(self, values: np.ndarray, missing: np.ndarray) -> None:
        codes = self._groups.codes.astype(np.float64)[:, None]
        super()._load(np.hstack([values, codes]), np.hstack([missing, np.zeros(codes.shape, bool)]))

    def allocate(self, point: dict) -> ChainState:
        """Draw allocations and, given them alone, the shared weights, which `draw` then writes."""
        allocated = super().allocate(point)
        count, kappa = self._sweeper.edge_count[self._group_edges], self._kappa(point)
        self._pi = np.empty(self._prior.size)
        if not fill_shared(count, self._shared(point), kappa, self._prior, self._ptr, self._pi, self.rng):
            raise SamplingError(f"the conditional distribution of shared weights of block {self._block!r} is not valid")
        self._sweeper.concentration = self._around(kappa * self._pi)
        return allocated

    def _merged(self, point: dict, params: Params) -> dict:
        pi = dict(zip(self._names, np.split(self._pi.copy(), self._parts), strict=True))
        return super()._merged(point, params) | pi
