"""Posterior: a circuit, its schema, and Params with leading (chain, draw) axes.

A point estimate is one chain of one draw, so each query has one signature and one code path. Queries and reports
register themselves as methods (`bayesjpt.posterior.answer.query_method`), so this package imports neither.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.circuit.arrays import Circuit, Params, start_params
from bayesjpt.circuit.plan import Plan, make_plan
from bayesjpt.circuit.recognised import Recognised, recognise
from bayesjpt.errors import FitFileError
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    import xarray as xr


INDEPENDENT = "independent, from the posterior in closed form"
"""What settings say of draws that are no chain."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """Draws of a circuit's weights and parameters.

    Parameters
    ----------
    circuit : Circuit
    schema : Schema
    params : Params
        ``log_weight`` (n_chain, n_draw, n_edge) in nats, ``theta`` (n_chain, n_draw, n_theta).
    sample_stats : mapping from str to array (n_chain, n_draw)
        What the sampler recorded.
    reference : Table, optional
        A few training rows, on which convergence is judged.
    settings : mapping from str to str, int or float
        How the fit was made, for the record; ``given``, in words, what the posterior was conditioned on.
    """

    circuit: Circuit
    schema: Schema
    params: Params
    sample_stats: Mapping[str, np.ndarray] = field(default_factory=dict)
    reference: Table | None = None
    settings: Mapping[str, str | int | float] = field(default_factory=dict)

    if TYPE_CHECKING:  # the query methods, for editors and type checkers; queries and report register them at run time
        from bayesjpt.fitting.report import report
        from bayesjpt.posterior import answer as _answer
        from bayesjpt.queries import density as _density
        from bayesjpt.queries import dependence as _dependence
        from bayesjpt.queries import distribution as _distribution
        from bayesjpt.queries import membership as _membership
        from bayesjpt.queries import mode as _mode
        from bayesjpt.queries import moments as _moments
        from bayesjpt.queries import outliers as _outliers
        from bayesjpt.queries import probability as _probability
        from bayesjpt.queries.components import components
        from bayesjpt.queries.condition import condition, constrain, marginal
        from bayesjpt.queries.explain import explain
        from bayesjpt.queries.impute import impute, impute_mean
        from bayesjpt.queries.patterns import patterns
        from bayesjpt.queries.predict import predict
        from bayesjpt.queries.sample import sample
        from bayesjpt.queries.types import types
        from bayesjpt.report.convergence import convergence
        from bayesjpt.report.plots import plot_marginal
        from bayesjpt.report.tree import tree

        log_density = _answer.labelled(_density.log_density)
        log_mass = _answer.labelled(_density.log_mass)
        probability = _answer.labelled(_probability.probability)
        log_probability = _answer.labelled(_probability.log_probability)
        expectation = _answer.labelled(_moments.expectation)
        variance = _answer.labelled(_moments.variance)
        quantile = _answer.labelled(_distribution.quantile)
        cdf = _answer.labelled(_distribution.cdf)
        confidence_bounds = _answer.labelled(_distribution.confidence_bounds)
        dependence = _answer.labelled(_dependence.dependence)
        mode = _answer.labelled(_mode.mode)
        most_probable = _answer.labelled(_mode.most_probable)
        outliers = _answer.labelled(_outliers.outliers)
        membership = _answer.labelled(_membership.membership)
        comembership = _answer.labelled(_membership.comembership)

    @property
    def n_chain(self) -> int:
        return self.params.theta.shape[0]

    @property
    def n_draw(self) -> int:
        return self.params.theta.shape[1]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle so that the process that reads it has the query methods, too."""
        _, _, *rest = super().__reduce_ex__(protocol)
        return (_with_verbs, (type(self),), *rest)

    def plan(self) -> Plan:
        """Return the Plan that kernels take; made once."""
        return self._plan

    @cached_property
    def _plan(self) -> Plan:
        return make_plan(self.circuit, self.schema)

    @cached_property
    def recognised(self) -> Recognised | None:
        """The cutset network of labels that the circuit is, by which complete rows are scored; None if it is none."""
        return recognise(self.circuit, self.schema)

    def table_weights(self, numbers: np.ndarray) -> np.ndarray:
        """Return the log weights of the network's ways and table entries, float64 (n, n_entry), of some draws.

        Draws are numbered over all chains, as in `flat`.
        """
        assert self.recognised is not None
        edge_of, log_weight = self.recognised.edge_of, self.flat().log_weight
        if log_weight.shape[1] == 0:  # a single column of a single label
            return np.zeros((numbers.size, edge_of.size))
        out = np.empty((numbers.size, edge_of.size))
        for draw_weights, number in zip(out, numbers.tolist(), strict=True):
            np.take(log_weight[number], edge_of, out=draw_weights, mode="wrap")  # -1 is in range, which saves a copy
        out[:, edge_of < 0] = 0.0
        return out

    def by_structure(self) -> Sequence[Posterior]:
        """Return a posterior for each structure that was fitted; of one structure, the posterior itself.

        Examples
        --------
        >>> import numpy as np, pandas as pd, bayesjpt as bj
        >>> table = bj.as_table(pd.DataFrame({"grade": ["a", "b", "c"] * 20}))
        >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
        >>> [float(each.probability("grade = 'a'").mean().round(1)) for each in post.by_structure()]
        [0.3]
        """
        return (self,)

    def noted(self, **settings: str | float) -> Posterior:
        """Return the posterior with more settings, which are saved with it."""
        return replace(self, settings={**self.settings, **settings})

    def take_draws(self, kept: np.ndarray) -> Posterior:
        """Return the posterior of some draws of every chain: ascending positions on the draw axis, int64 (n,)."""
        params = Params(*(np.ascontiguousarray(array[:, kept]) for array in self.params))
        return replace(self, params=params, sample_stats={name: x[:, kept] for name, x in self.sample_stats.items()})

    def locate(self, draw: np.ndarray) -> Iterable[tuple[Posterior, np.ndarray, np.ndarray]]:
        """Return whose draws these are: (structure, positions in `draw`, draw numbers there) for each that has some.

        Draws are numbered over all chains, those of a chain side by side, as in `flat`.
        """
        return [(self, np.arange(draw.size), draw)]

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """Return arrays of each structure's draws, from one with the leading axes (chain, draw)."""
        return [values]

    def flat(self) -> Params:
        """Return Params with one leading axis over all chains' draws.

        Kernels are compiled for arrays that may be written, as sweeps write them, and anew for such that may not: those
        of a learner's estimate are copied.
        """
        n = self.n_chain * self.n_draw  # -1 cannot stand for it where a circuit has no edges
        return Params(
            np.require(self.params.log_weight.reshape(n, self.circuit.n_edge), requirements=("C", "W")),
            np.require(self.params.theta.reshape(n, self.circuit.n_theta), requirements=("C", "W")),
        )

    def coords(self) -> dict[str, Any]:
        """Return the coordinates of the (chain, draw) axes, as xarray takes them."""
        return {"chain": np.arange(self.n_chain), "draw": np.arange(self.n_draw)}

    @classmethod
    def from_idata(cls, idata, model=None, name: str | None = None, *, group: Any = None) -> Posterior:
        """Return the Posterior of a block from the draws of ``pm.sample``, or from what `to_idata` returned.

        Parameters
        ----------
        idata : xarray.DataTree
            With a ``posterior`` group; ``sample_stats``, ``observed_data`` and ``constant_data`` are used where there.
        model : pm.Model, optional
            The model that was sampled. Without it circuit and schema are those that travel in ``constant_data``.
        name : str, optional
            Name of the block, where the model has several.
        group : label, optional
            Of a block with ``group=``: the posterior of one group, with its weights. Without it that of the weights
            which groups share: around these the weights of a group that was not seen are expected.

        Raises
        ------
        ModelError
            For an unknown block or group, no name where there are several, and draws of another model.
        FitFileError
            Without a model, where the draws hold no circuit, or what they hold does not fit together.
        """
        if group is not None:
            from bayesjpt.posterior.groups import of_group

            idata = of_group(idata, group, name)
        if model is not None:
            from bayesjpt.posterior.convert import from_model

            return from_model(idata, model, name)
        from bayesjpt.posterior.store import read_tree

        return read_tree(idata, name)

    def to_idata(self) -> xr.DataTree:
        """Return the draws as a DataTree in ArviZ's groups, with circuit and schema in a group of their own.

        It is what `save` writes; `from_idata` reads it. Of several structures, whose parameters mean different things,
        the group ``bayesjpt`` holds all draws.

        Examples
        --------
        >>> import numpy as np, pandas as pd, bayesjpt as bj
        >>> table = bj.as_table(pd.DataFrame({"grade": ["a", "b", "c"] * 20}))
        >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
        >>> bj.Posterior.from_idata(post.to_idata()).schema == post.schema
        True
        """
        from bayesjpt.posterior.store import to_tree

        return to_tree(self)

    @classmethod
    def from_circuit(cls, circuit: Circuit, schema: Schema) -> Posterior:
        """Return the learner's estimate as a Posterior of one chain and one draw.

        Spline leaves have the smooth shape there that their prior is centred on: their weights are what a fit learns.
        """
        estimate = start_params(circuit)
        return cls(circuit, schema, Params(estimate.log_weight[None, None], estimate.theta[None, None]))

    def save(self, path) -> None:
        """Write the fit to a netCDF file in ArviZ's groups; read it back with `bayesjpt.load`.

        Raises
        ------
        FitFileError
            Where the file cannot be written.
        """
        from bayesjpt.posterior.store import save

        save(self, path)

    def __repr__(self) -> str:
        return (
            f"Posterior({self.n_chain} chains x {self.n_draw} draws, {len(self.schema)} columns, "
            f"{self.circuit.n_leaf} leaves, {self.circuit.n_theta} parameters"
            f"{f'; given {self.settings["given"]}' if 'given' in self.settings else ''})"
        )


def check_format(found: object, expected: str) -> None:
    """Raise `FitFileError` unless a file's format mark is the expected one."""
    if str(found).startswith("bayesjpt experts") and found != expected:
        raise FitFileError(
            "a saved mixture of experts",
            "a joint distribution",
            "Open it with bj.load_experts",
            command="Ask it with bayesjpt predict",
        )
    if found != expected:
        raise FitFileError(f"format {found!r}", repr(expected), "Write the file again with this version of bayesjpt")


def _with_verbs(cls: type[Posterior]) -> Posterior:
    """Return a posterior without content, in a process that has the query methods, as all who ask bayesjpt for it."""
    _ = importlib.import_module("bayesjpt").Posterior
    return cls.__new__(cls)
