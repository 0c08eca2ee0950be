"""Dirichlet concentrations of a block: numbers, or expressions of the user's random variables.

A number becomes a constant of the block. An expression becomes the parameter of the weights' random variable; the Gibbs
step evaluates it at each point, and the free variables that it is made of carry a mark by which the step knows them:
`bayesjpt.model.concentration_step` draws them.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors, graph_inputs

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.layout import LIKELIHOOD_WEIGHTS, SPLIT_WEIGHTS, SUM_WEIGHTS, Layout
from bayesjpt.circuit.priors import Priors, make_priors
from bayesjpt.circuit.type_prior import MEMBERS, ColumnTypes, check_type_prior
from bayesjpt.defaults import ESS
from bayesjpt.errors import ModelError, SamplingError
from bayesjpt.model.block_variables import BlockVariable
from bayesjpt.table.schema import Schema

MARK = "circuit_concentration"
"""Attribute of a variable's op; it survives ``model.copy``, ``pm.do``, ``pm.observe`` and ``freeze_dims_and_data``,
which makes variables and their tags anew."""

_ARGUMENT = {SUM_WEIGHTS: "gamma", SPLIT_WEIGHTS: "ess", LIKELIHOOD_WEIGHTS: "alpha"}
"""What gives the concentrations of each kind of weights."""


def block_priors(
    circuit: Circuit,
    schema: Schema,
    layout: Layout,
    *,
    gamma: Any,
    alpha: Any,
    prior: str,
    type_prior: str = MEMBERS,
    ess: Any = ESS,
) -> tuple[Priors, dict[str, Any]]:
    """Return the Priors of a block, and the expressions among its concentrations by the name of the weights' variable.

    Parameters
    ----------
    gamma, alpha : float, vector or tensor
        One concentration for all edges at latent sums (dictionaries), or one an edge. Edges whose concentration is an
        expression have NaN in the Priors.
    type_prior : str
        How alpha is divided; weights of the columns' types come later, by `divide_by`.
    ess : float, vector, tensor or BDeu
        Imaginary rows of each split, divided evenly over its ways, or of all; or one concentration an edge.

    Raises
    ------
    ModelError
        For concentrations that are not positive numbers or not as many as edges, or one an edge that are to be divided.
    """
    check_type_prior(type_prior)
    given = {"gamma": _plain(gamma), "alpha": _plain(alpha), "ess": _plain(ess)}
    if type_prior != MEMBERS and getattr(given["alpha"], "ndim", 0) > 0:
        raise ModelError(
            f"concentrations alpha of each edge with type_prior={type_prior!r}", "one for all to be divided"
        )
    # arrays and expressions take their place below: any number will do here
    numbers = {name: 1.0 if isinstance(value, np.ndarray | Variable) else value for name, value in given.items()}
    priors = make_priors(circuit, schema, layout, **numbers, prior=prior, type_prior=type_prior)
    concentration = priors.concentration.copy()
    expressions = {}
    for variable in layout.weights:
        name = _ARGUMENT[variable.name]
        value, n = given[name], variable.edges.size
        if isinstance(value, Variable):
            expressions[variable.name] = _expression(name, value, n) * concentration[variable.edges]
        elif isinstance(value, np.ndarray):
            if value.shape != (n,) or not (np.isfinite(value) & (value > 0.0)).all():
                raise ModelError(
                    f"concentration {name} of shape {value.shape}", f"a positive number, or {n} of them, one an edge"
                )
            concentration[variable.edges] = value
        if variable.name in expressions:
            concentration[variable.edges] = np.nan
    return priors._replace(concentration=concentration), expressions


def divide_by(
    weight: Variable, types: ColumnTypes, layout: Layout, priors: Priors, expressions: dict[str, Any]
) -> tuple[Priors, dict[str, Any]]:
    """Return what `block_priors` did, with alpha divided by weights of the columns' types, a tensor (n_weight,)."""
    (variable,) = (variable for variable in layout.weights if variable.name == LIKELIHOOD_WEIGHTS)
    concentration = priors.concentration.copy()
    whole = expressions.get(variable.name, pt.as_tensor(concentration[variable.edges]))
    at = np.searchsorted(variable.edges, types.edge)
    divided = pt.set_subtensor(whole[at], whole[at] * types.factor * weight[types.entry])
    # whoever reads these in place of the expression gets NaN, not a number that is wrong
    concentration[variable.edges] = np.nan
    return priors._replace(concentration=concentration), expressions | {variable.name: divided}


def _plain(value: Any) -> Any:
    """Return constants of PyTensor and sequences as arrays, one number as it is."""
    if isinstance(value, Constant):
        value = np.asarray(value.data)
    if isinstance(value, list | tuple):
        value = np.asarray(value, object)
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return value.item()
        try:
            return value.astype(np.float64)
        except (TypeError, ValueError):
            raise ModelError(f"concentrations {value!r}", "positive numbers") from None
    return value


def _expression(name: str, value: Variable, n: int):
    ndim = getattr(value.type, "ndim", None)
    dtype = str(getattr(value.type, "dtype", ""))
    shape = getattr(value.type, "shape", ())
    if (
        ndim not in (0, 1)
        or not dtype.startswith(("float", "int", "uint"))
        or (ndim == 1 and shape[0] not in (n, None))
    ):
        raise ModelError(
            f"concentration {name} of type {value.type}", f"a scalar expression, or a vector of {n}, one an edge"
        )
    value = pt.as_tensor(value).astype("float64")
    return pt.broadcast_to(value, (n,)) if ndim == 0 else pt.specify_shape(value, (n,))


def mark_hyperparameters(model: pm.Model, expressions: list) -> None:
    """Mark the free variables of which the concentrations are made, at whatever distance."""
    above = set(ancestors(expressions, blockers=model.observed_RVs))
    for rv in model.free_RVs:
        if rv in above and not isinstance(rv.owner.op, BlockVariable):
            # PyMC has one op for all variables of a distribution
            rv.owner.op = copy(rv.owner.op)
            setattr(rv.owner.op, MARK, True)


def hyperparameters(rvs: list) -> list:
    """Return those of some random variables that are continuous and of which concentrations are made."""
    marked = [rv for rv in rvs if rv.owner is not None and getattr(rv.owner.op, MARK, False)]
    return [rv for rv in marked if rv.dtype in pm.vartypes.continuous_types]


def blanket(model: pm.Model, value_vars: list) -> dict:
    """Return {factor: its log density} of the random variables and potentials that depend on some value variables."""
    factors = [*model.free_RVs, *model.observed_RVs, *model.potentials]
    mine = set(value_vars)
    terms = zip(factors, model.logp(vars=factors, sum=False), strict=True)
    return {factor: term for factor, term in terms if mine & set(graph_inputs([term]))}


class Concentrations:
    """Concentrations of a block's edges as a function of the point.

    PyTensor runs it in Python: that costs 20 microseconds a call, and spares the seconds of a compilation.

    Parameters
    ----------
    model : pm.Model
    rows : TensorVariable
        Observed variable of the block.
    edges : int (n,)
        Edges whose concentrations are expressions.
    expressions : list of TensorVariable
        Their concentrations, one expression after the other.
    """

    def __init__(self, model: pm.Model, rows, edges: np.ndarray, expressions: list):
        outputs = model.replace_rvs_by_values(expressions)
        inputs = [v for v in graph_inputs(outputs) if v in set(model.value_vars)]
        self._evaluate = pytensor.function(inputs, outputs, mode="FAST_COMPILE")
        self._evaluate.trust_input = True
        self._names = [v.name for v in inputs]
        self._numbers = rows.owner.op.frozen.priors.concentration
        self._edges = edges
        self._block = rows.name

    def given(self, point: dict[str, np.ndarray]) -> np.ndarray | None:
        """Return concentrations, float64 (n_edge,), or None where some are not positive numbers."""
        out = self._at(point)
        values = out[self._edges]
        return out if values.min() > 0.0 and values.max() < np.inf else None

    def __call__(self, point: dict[str, np.ndarray]) -> np.ndarray:
        """Return concentrations, float64 (n_edge,).

        Raises
        ------
        SamplingError
            If some are not positive numbers.
        """
        out = self.given(point)
        if out is None:
            raise SamplingError(
                f"concentration {float(self._at(point)[self._edges].min())} of block {self._block!r}",
                "positive numbers at every point",
                "Give gamma, alpha and ess expressions that are positive everywhere, such as pm.Gamma or pm.HalfNormal",
            )
        return out

    def _at(self, point: dict[str, np.ndarray]) -> np.ndarray:
        out = self._numbers.copy()
        values: Any = self._evaluate(*[point[name] for name in self._names])
        out[self._edges] = np.concatenate(values)
        return out


def concentration_function(model: pm.Model, rows, layout: Layout) -> Concentrations | None:
    """Return the function from a point to the concentrations of a block, or None where all of them are numbers."""
    numbers = rows.owner.op.frozen.priors.concentration
    symbolic = [variable for variable in layout.weights if np.isnan(numbers[variable.edges]).any()]
    if not symbolic:
        return None
    expressions = [model[f"{rows.name}_{variable.name}"].owner.inputs[-1] for variable in symbolic]
    return Concentrations(model, rows, np.concatenate([variable.edges for variable in symbolic]), expressions)
