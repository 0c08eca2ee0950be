"""Checks of weights and parameters that come from users or files: finite, positive, shares of one."""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.layout import Layout, ParameterVariable, WeightVariable
from bayesjpt.errors import CircuitError

WEIGHT_TOLERANCE = 1e-9
"""By which weights of a sum may miss one: a few thousand rounding errors."""


def check_values(layout: Layout, params: Params, tolerance: float = WEIGHT_TOLERANCE) -> None:
    """Raise `CircuitError` unless weights and parameters, (..., n), are such as a circuit can have.

    Shares may miss one by `tolerance`.
    """
    shares = {variable.name for variable in layout.weights}
    for name, array in layout.split(params).items():
        if not np.isfinite(array).all():
            what = "numbers that are no shares of one" if name in shares else "a number that is not finite"
            raise CircuitError(
                f"{name} holds {what}", "positive ones that add up to one" if name in shares else "finite numbers"
            )
    for variable in layout.weights:
        check_weights(variable, np.exp(params.log_weight[..., variable.edges]), tolerance)
    for variable in layout.parameters:
        check_parameter(variable, params.theta[..., variable.positions], tolerance)


def check_weights(variable: WeightVariable, weights: np.ndarray, tolerance: float = WEIGHT_TOLERANCE) -> None:
    """Raise `CircuitError` unless weights of one kind, (..., n), are shares of one."""
    _check_simplex(variable.name, weights, variable.ptr, least=0.0, tolerance=tolerance)


def check_parameter(variable: ParameterVariable, values: np.ndarray, tolerance: float = WEIGHT_TOLERANCE) -> None:
    """Raise `CircuitError` unless finite values of one parameter, (..., n), are in its range."""
    constraint = variable.parameter.constraint
    if constraint == "simplex":
        _check_simplex(variable.name, values, variable.ptr, least=np.nextafter(0.0, 1.0), tolerance=tolerance)
    elif (constraint != "real" and (values <= 0.0).any()) or (constraint == "unit" and (values > 1.0).any()):
        raise CircuitError(
            f"{variable.name} holds {values.min():g}", "positive numbers" if constraint == "positive" else "0 to 1"
        )


def _check_simplex(name: str, values: np.ndarray, ptr: np.ndarray, *, least: float, tolerance: float) -> None:
    """Conditioning makes weights of zero, sampling does not; parameters are positive always."""
    total = np.add.reduceat(values, ptr[:-1], axis=-1)
    if (values < least).any() or (np.abs(total - 1.0) > tolerance).any():
        raise CircuitError(f"{name} holds numbers that are no shares of one", "positive ones that add up to one")
