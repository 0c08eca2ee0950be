"""Refusal of factors that depend on missing cells of a block in which these have no values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors, graph_inputs
from pytensor.tensor.variable import TensorVariable

from bayesjpt.errors import ModelError
from bayesjpt.model.taint import tainted
from bayesjpt.table.encode import with_fillers
from bayesjpt.table.schema import Schema


def check_gaps_of(data: Any) -> None:
    """Do `check_gaps` for the block whose rows are these data, if a model is being worked on that has it."""
    model = pm.Model.get_context(error_if_none=False)
    for rows in model.observed_RVs if model is not None else ():
        if model.rvs_to_values[rows] is data:
            check_gaps(model, rows)


def check_gaps(model: pm.Model, rows: Any) -> None:
    """Raise where a factor outside a block depends on cells of its rows that are missing, and are no variables.

    A comparison with such a cell would be false, a sum not a number. A factor of complete columns, of selected rows, or
    one that looks at the mask first, uses none (`bayesjpt.model.taint`).

    Raises
    ------
    ModelError
        Naming the factor and the columns.
    """
    data = model.rvs_to_values[rows]
    missing = _value(rows.owner.inputs[2])
    if missing is None or not missing.any() or _value(data) is None:
        return
    schema = rows.owner.op.frozen.schema
    basic = list(model.basic_RVs)
    for factor in [*basic, *model.potentials]:
        is_variable = factor in set(basic)
        inputs = [x for x in factor.owner.inputs if isinstance(x, TensorVariable)] if is_variable else [factor]
        is_of_block = factor is rows or getattr(factor.owner.op, "completes_rows", False)
        if is_of_block or not {rows, data} & set(ancestors(inputs, blockers=basic)):
            continue
        columns = _used(model, inputs, data, missing, schema)
        if columns:
            raise ModelError(
                f"{factor.name} depends on missing cells of block {rows.name!r}, in {', '.join(columns)}",
                "values of observed cells alone",
                "Make the block with impute=True, or look at columns without missing cells",
            )


def _used(model: pm.Model, inputs: list, data: Any, missing: np.ndarray, schema: Schema) -> list[str]:
    """Return the columns whose missing cells a factor is made of, one column after the other."""
    outputs = model.replace_rvs_by_values(inputs)
    free = [v for v in graph_inputs(outputs) if v in set(model.value_vars)]
    rows, marks = data.type("rows"), pt.matrix("marks", dtype="bool")
    used = clone_replace(pt.any(tainted(outputs, data, marks)), {data: rows})
    evaluate = pytensor.function([rows, marks, *free], used, mode="FAST_COMPILE", on_unused_input="ignore")
    at = model.initial_point()
    filled = with_fillers(schema, _value(data), missing)
    found = []
    for number in np.flatnonzero(missing.any(axis=0)):
        of_column = missing & (np.arange(len(schema)) == number)
        try:
            with np.errstate(all="ignore"):
                is_used = evaluate(np.where(of_column, np.nan, filled), of_column, *(at[v.name] for v in free))
        except (IndexError, ValueError):  # not a number, where something is looked up
            is_used = True
        if is_used:
            found.append(repr(schema.columns[number].name))
    return found


def _value(data: Any) -> Any:
    """Return what data or a constant hold, an array; None of anything else."""
    return data.get_value() if hasattr(data, "get_value") else getattr(data, "data", None)
