"""Starting values that users give for a block or a tree of experts, checked before PyMC makes a graph of them.

``initvals=`` of ``pm.sample``, ``start=`` of ``pm.find_MAP``: PyMC puts these into a graph before it asks any step, and
what has no place there ends in an error about types of PyTensor's. Names that are no free variable's it passes over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
from pymc import initial_point
from pymc.distributions.transforms import LogTransform
from pymc.util import get_untransformed_name, is_transformed_name
from pytensor.graph.basic import Variable

from bayesjpt.circuit.check_values import check_parameter, check_weights
from bayesjpt.circuit.layout import make_layout
from bayesjpt.errors import CircuitError, ModelError
from bayesjpt.model.blocks import TYPE_PRIOR, scale_names
from bayesjpt.model.circuit_rows import CircuitRowsRV
from bayesjpt.model.expert_step import block_of
from bayesjpt.model.groups import GROUP
from bayesjpt.model.imputed import ImputedCellsRV

START_TOLERANCE = 1e-3
"""By which shares that a user begins at may miss one: rounded to three digits, or of 32 bits."""

_STRATEGIES = ("support_point", "prior")
"""PyMC's words for where a variable begins."""


def register_starts() -> None:
    """Have PyMC call `check_starts` where it reads starting values."""
    theirs = initial_point.convert_str_to_rv_dict

    def convert_str_to_rv_dict(model, start):
        check_starts(model, start)
        return theirs(model, start)

    initial_point.convert_str_to_rv_dict = convert_str_to_rv_dict


def check_starts(model: pm.Model, start: Mapping[Any, Any]) -> None:
    """Raise `ModelError` for starting values of a block's variables that cannot be these.

    Parameters
    ----------
    model : pm.Model
    start : mapping
        Values by variables or their names, as ``initvals=`` of ``pm.sample`` takes them.

    Raises
    ------
    ModelError
        For a name with the prefix of a block or an `ExpertTree` that is no variable's; for values of another shape
        than the variable's, that are no finite numbers, or outside the variable's support. Shapes of missing cells are
        their step's to check.
    """
    blocks: dict[str, Any] = {tree.name: None for rv in model.free_RVs if (tree := block_of(rv)) is not None}
    blocks |= {
        str(rv.name): rv.owner.op.frozen
        for rv in model.basic_RVs
        if rv.owner is not None and isinstance(rv.owner.op, CircuitRowsRV)
    }
    deterministic = {str(each.name) for each in model.deterministics}
    for key, value in start.items():
        name = model.name_for(key) if isinstance(key, str) else str(key.name)
        of = [block for block in blocks if name == block or name.startswith(f"{block}_")]
        # pm.find_MAP returns deterministics, too, which PyMC passes over
        if of and name not in deterministic:
            block = max(of, key=len)
            variable = _variable(model, block, name)
            if value is not None and not isinstance(value, Variable):
                values = _numbers(model, name, variable, value)
                if values is not None and variable.owner is not None:  # no value on the whole line
                    _check_support(model, blocks[block], name, name.removeprefix(f"{block}_"), values)


def _variable(model: pm.Model, block: str, name: str) -> Any:
    """Return the variable whose value a start is, on the scale that its name says."""
    free = {str(rv.name): rv for rv in model.free_RVs}
    plain = get_untransformed_name(name) if is_transformed_name(name) else name
    if plain not in free or (plain != name and model.rvs_to_values[free[plain]].name != name):
        own = [other for other in free if other.startswith(f"{block}_")]
        raise ModelError(f"starting values of {name}, which is no free variable of {block!r}", ", ".join(own))
    return free[name] if plain == name else model.rvs_to_values[free[plain]]


def _numbers(model: pm.Model, name: str, variable: Any, value: Any) -> np.ndarray | None:
    """Return finite numbers of the variable's shape; None of words of PyMC's, and of missing cells."""
    if variable.owner is not None and isinstance(variable.owner.op, ImputedCellsRV):
        return None
    if isinstance(value, str):
        if value not in _STRATEGIES:
            raise ModelError(f"starting values of {name}: {value!r}", f"numbers, {', '.join(map(repr, _STRATEGIES))}")
        return None
    try:
        values = np.asarray(value)
    except ValueError:  # lists of unequal lengths
        values = np.array(None)
    if values.dtype.kind not in "buif":
        raise ModelError(f"starting values of {name} that are no numbers", "real numbers")
    dims = model.named_vars_to_dims.get(name, ())
    labels = [model.coords[str(dim)] for dim in dims]
    shape = tuple(None if of_dim is None else len(of_dim) for of_dim in labels) if dims else variable.type.shape
    if len(shape) != values.ndim or any(n not in (None, m) for n, m in zip(shape, values.shape, strict=True)):
        coords = f"model.coords of {' and '.join(map(str, dims))} names them in their order" if dims else None
        raise ModelError(f"starting values of {name} of shape {values.shape}", str(shape), coords)
    if not np.isfinite(values).all():
        raise ModelError(f"starting values of {name} that are not finite", "finite numbers")
    return values


def _check_support(model: pm.Model, frozen: Any, full: str, name: str, values: np.ndarray) -> None:
    """Raise where weights are no shares of one, or a parameter is none of its family's; of trees (None) its sign."""
    scales = () if frozen is None else (TYPE_PRIOR, *scale_names(frozen).values())
    is_positive = name in scales or isinstance(model.rvs_to_transforms[model[full]], LogTransform)
    if is_positive and (values <= 0.0).any():
        raise ModelError(f"starting values of {full} with numbers not above 0", "positive ones")
    if frozen is None:
        return
    layout = make_layout(frozen.circuit, frozen.schema)
    try:
        for weights in layout.weights:
            if name in (weights.name, f"{GROUP}_{weights.name}"):
                check_weights(weights, values, START_TOLERANCE)
        for parameter in layout.parameters:
            if name == parameter.name:
                check_parameter(parameter, values, START_TOLERANCE)
    except CircuitError as error:
        raise ModelError(f"starting values of {full}: {error.found}", error.expected) from None
