"""Refusal of factors that depend on missing cells of a block in which these have no values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
import pytensor
from pytensor.graph.traversal import ancestors, graph_inputs
from pytensor.tensor.variable import TensorVariable

from bayesjpt.errors import ModelError
from bayesjpt.model.imputed import ImputedCellsRV, with_fillers
from bayesjpt.table.schema import Column, Schema

N_TRIED, MAX_TRIED = 25, 200
"""Numbers of a column that factors are tried with, and whole numbers or labels, all of which are up to that many."""


def check_gaps(model: pm.Model, rows: Any) -> None:
    """Raise where a factor outside a block depends on cells of its rows that are missing, and are no variables.

    Such a factor is evaluated with other values in the missing cells of one column after the other, not a number among
    them: what depends on them changes. A factor of complete columns, or one that looks at the mask, does not.

    Raises
    ------
    ModelError
        Naming the factor and the columns.
    """
    data = model.rvs_to_values[rows]
    missing = _value(rows.owner.inputs[2])
    if missing is None or not missing.any() or not hasattr(data, "get_value"):
        return
    schema = rows.owner.op.frozen.schema
    basic = list(model.basic_RVs)
    for factor in [*basic, *model.potentials]:
        is_variable = factor in set(basic)
        inputs = [x for x in factor.owner.inputs if isinstance(x, TensorVariable)] if is_variable else [factor]
        is_of_block = factor is rows or isinstance(factor.owner.op, ImputedCellsRV)
        if is_of_block or not {rows, data} & set(ancestors(inputs, blockers=basic)):
            continue
        columns = _changes(model, inputs, data, missing, schema)
        if columns:
            raise ModelError(
                f"{factor.name} depends on missing cells of block {rows.name!r}, in {', '.join(columns)}",
                "values of observed cells alone",
                "Make the block with impute=True, or look at columns without missing cells",
            )


def _changes(model: pm.Model, inputs: list, data: Any, missing: np.ndarray, schema: Schema) -> list[str]:
    """Return the columns whose missing cells change what a factor is made of."""
    outputs = model.replace_rvs_by_values(inputs)
    free = [v for v in graph_inputs(outputs) if v in set(model.value_vars)]
    rows = data.type("rows")
    evaluate = pytensor.function(
        [rows, *free], outputs, givens={data: rows}, mode="FAST_COMPILE", on_unused_input="ignore"
    )
    at, rng = model.initial_point(), np.random.default_rng(0)
    # away from the centre, where coefficients are 0 and hide what they multiply
    point = [at[v.name] + rng.normal(size=at[v.name].shape) * (at[v.name].dtype.kind == "f") for v in free]
    filled = with_fillers(schema, data.get_value(), missing)
    expected = evaluate(filled, *point)
    found = []
    for number, column in enumerate(schema):
        for value in _others(column) if missing[:, number].any() else ():
            changed = filled.copy()
            changed[missing[:, number], number] = value
            if _differ(expected, evaluate, [changed, *point]):
                found.append(repr(column.name))
                break
    return found


def _differ(expected: list, evaluate: Any, inputs: list[np.ndarray]) -> bool:
    try:
        with np.errstate(all="ignore"):  # not a number, as a whole number
            answers = list(zip(expected, evaluate(*inputs), strict=True))
    except (IndexError, ValueError):  # the value is where something is looked up
        return True
    return not all(np.array_equal(one, other, equal_nan=True) for one, other in answers)


def _others(column: Column) -> list[float]:
    """Return values to try: whatever is computed from a cell is not a number where that is none, comparisons are."""
    lo, hi = (0, len(column.labels)) if column.base == "category" else (column.minimum, column.maximum)
    tried = np.linspace(lo, hi, N_TRIED)
    if column.base != "real":
        tried = np.arange(lo, hi + 1.0) if hi - lo < MAX_TRIED else np.rint(tried)
    return [np.nan, lo - 1.0, *tried.tolist(), hi + 1.0]


def _value(variable: Any) -> np.ndarray | None:
    return np.asarray(variable.get_value(), bool) if hasattr(variable, "get_value") else None
