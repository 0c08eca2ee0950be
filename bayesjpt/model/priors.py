"""The random variable of each weight and parameter, by the name of its prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayesjpt.circuit.layout import ParameterVariable, WeightVariable
from bayesjpt.circuit.type_prior import ColumnTypes
from bayesjpt.errors import ModelError
from bayesjpt.model import block_variables, distributions, truncated_beta

INSIDE = 1e-6
"""How far, relative, starting values are kept from the ends of a support: a transform maps the ends to infinity."""

DRAWN: dict[str, Any] = {
    "normal": block_variables.BlockNormal,
    "normal_below": block_variables.BlockCappedNormal,
    "inverse_gamma": block_variables.BlockFlooredInverseGamma,
    "log_normal": block_variables.BlockCappedLogNormal,
    "gamma": block_variables.BlockGamma,
    "gamma_above": block_variables.BlockFlooredGamma,
    "gamma_below": block_variables.BlockCappedGamma,
    "beta": block_variables.BlockBeta,
    "beta_above": block_variables.BlockFlooredBeta,
    "dirichlet": block_variables.BlockSegmentDirichlet,
}
TRANSFORMED: dict[str, Any] = {
    "normal": pm.Normal,
    "normal_below": distributions.CappedNormal,
    "inverse_gamma": distributions.FlooredInverseGamma,
    "log_normal": distributions.CappedLogNormal,
    "gamma": pm.Gamma,
    "gamma_above": distributions.FlooredGamma,
    "gamma_below": distributions.CappedGamma,
    "beta": pm.Beta,
    "beta_above": truncated_beta.FlooredBeta,
    "dirichlet": distributions.SegmentDirichlet,
}
"""Distributions by the name of the prior: for Gibbs sweeps, and with transforms for samplers that follow gradients."""

_UNBOUNDED = ("normal", "normal_below", "gamma", "beta", "dirichlet")
"""Priors without a bound that starts keep away from; the limit of a normal is no number."""


def weight_variable(
    name: str, dim: str | tuple[str, ...], variable: WeightVariable, concentration, *, start: np.ndarray | None
):
    """Return the random variable of the weights of one kind of sum; see `parameter_variable`."""
    return _variable(name, dim, "dirichlet", (concentration,), ptr=variable.ptr, start=start)


def type_prior_variable(name: str, dim: str, types: ColumnTypes, *, start: np.ndarray | None):
    """Return the random variable of weights of types, flat beforehand; see `parameter_variable`."""
    return _variable(name, dim, "dirichlet", (np.ones(types.n_weight),), ptr=types.ptr, start=start)


def scale_variable(name: str, dim: str, shape: np.ndarray, transforms: bool):
    """Return the random variable of a family's factors, Gamma(shape, shape) each; see `parameter_variable`."""
    start = np.ones(shape.size) if transforms else None
    return _variable(name, dim, "gamma", (shape, shape), ptr=np.arange(shape.size + 1), start=start)


def parameter_variable(name: str, dim: str, variable: ParameterVariable, arguments: tuple, *, start: np.ndarray | None):
    """Return the random variable of one parameter, registered in the model on the context stack.

    Parameters
    ----------
    name, dim : str
    variable : ParameterVariable
    arguments : tuple
        Of the prior.
    start : float64 (n,), optional
        Where samplers begin; with it the variable has its default transform, without it none, for Gibbs sweeps.

    Raises
    ------
    ModelError
        For a prior that no random variable of ours stands for.
    """
    prior = variable.parameter.prior
    if prior not in DRAWN:
        raise ModelError(f"parameter {variable.name} has the unknown prior {prior!r}")
    return _variable(name, dim, prior, arguments, ptr=variable.ptr, start=start)


def _variable(
    name: str, dim: str | tuple[str, ...], prior: str, arguments: tuple, *, ptr: np.ndarray, start: np.ndarray | None
):
    options: dict[str, Any] = {"ptr": ptr} if prior == "dirichlet" else {}
    if prior in ("normal", "gamma", "beta"):
        keywords = {"normal": ("mu", "sigma"), "gamma": ("alpha", "beta"), "beta": ("alpha", "beta")}[prior]
        options |= dict(zip(keywords, arguments, strict=True))
        arguments = ()
    # the dims say as much, but as variables of the graph: each is an input of every function that PyTensor compiles
    options["shape"] = tuple(len(pm.modelcontext(None).coords[d]) for d in ([dim] if isinstance(dim, str) else dim))
    if start is None:
        return DRAWN[prior](name, *arguments, dims=dim, default_transform=None, **options)
    bounds = None if prior in _UNBOUNDED else arguments[-1]
    return TRANSFORMED[prior](
        name, *arguments, dims=dim, initval=_inside(prior, start, ptr=ptr, bounds=bounds), **options
    )


def _inside(prior: str, start: np.ndarray, *, ptr: np.ndarray, bounds: Any) -> np.ndarray:
    """Return starting values away from the ends of the prior's support."""
    match prior:
        case "beta_above" if isinstance(bounds, pt.TensorVariable):
            return np.minimum(start, 1.0 - INSIDE)
        case "beta_above":
            return np.clip(start, bounds + INSIDE * (1.0 - bounds), 1.0 - INSIDE * (1.0 - bounds))
        case "inverse_gamma" | "gamma_above":
            if isinstance(bounds, pt.TensorVariable):  # a start is no tensor; an estimate keeps to its bound
                return np.maximum(start, np.finfo(float).tiny)
            return np.maximum(start, np.maximum((1.0 + INSIDE) * bounds, np.finfo(float).tiny))
        case "log_normal" | "gamma_below":
            return np.minimum(start, (1.0 - INSIDE) * bounds)
        case "beta":
            return np.clip(start, INSIDE, 1.0 - INSIDE)
        case "dirichlet":
            length = np.diff(ptr)
            return (1.0 - INSIDE) * start + INSIDE / np.repeat(length, length)
    return start
