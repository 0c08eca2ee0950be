"""Other rows for a block's model: read under its schema, put where its data are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm

from bayesjpt.errors import ModelError
from bayesjpt.model.circuit_rows import CircuitRowsRV
from bayesjpt.model.imputed import GAP, IMPUTED, gap_labels
from bayesjpt.table.encode import filler
from bayesjpt.table.row_labels import row_labels
from bayesjpt.table.table import Table, as_table


def set_rows(model: pm.Model, frame: Any, *, name: str | None = None) -> Table:
    """Replace the rows of a block by those of a data frame, and return them as a Table.

    Sets the block's data and mask and the coordinates of its rows, which become the frame's index. Then
    ``pm.sample_posterior_predictive(..., predictions=True)`` and ``pm.compute_log_likelihood`` are about these rows,
    and ``pm.sample`` is conditioned on them. Data of other variables of the model are the caller's to set.

    Draws from before hold no missing cells of these rows. Of a block with ``impute=True`` predictions therefore want
    them drawn anew, by ``sample_vars=["x_imputed", ...]`` of ``pm.sample_posterior_predictive``, which else takes those
    of the rows before: it warns of that with PyMC's ImplicitFreezeWarning, and raises `ModelError` where there are more
    or fewer of them. ``pm.compute_log_likelihood`` of what depends on missing cells wants draws of ``pm.sample`` given
    these rows; other draws it refuses only where their number differs.

    Parameters
    ----------
    model : pm.Model
    frame : Table or data frame
        A frame is read under the block's schema: columns in any order, missing ones all missing, and columns that
        training did not show ignored with a warning, unless all are.
    name : str, optional
        Name of the block, where the model has several.

    Raises
    ------
    ModelError
        For a model without the block, a Table of another schema, and a block whose rows are not data of the model, or
        have groups.
    SchemaError, TableError
        For rows that do not fit the schema.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 20, "size": np.tile([0.5, 9.0, 1.5, 9.5], 10)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> model = bj.build_model(bj.learn_mspn(table, np.random.default_rng(1), min_rows=20), table)
    >>> bj.set_rows(model, pd.DataFrame({"size": [1.0, 9.0]}, index=["first", "second"])).n_missing
    2
    >>> model.coords["x_obs_id"]
    ('first', 'second')
    """
    name, schema = block_schema(model, name)
    if isinstance(frame, Table) and frame.schema != schema:
        raise ModelError(
            "rows read under another schema than the block's", "a frame, or bj.as_table(frame, schema=table.schema)"
        )
    table = frame if isinstance(frame, Table) else as_table(frame, schema=schema, ignore_new=True)
    if hasattr(model[name].owner.op.frozen, "codes"):
        raise ModelError(
            f"other rows for block {name!r}, whose rows have groups",
            "the rows that it was made with",
            "Ask bj.Posterior.from_idata(idata, group=...) about rows of one group",
        )
    if f"{name}_data" not in model or not hasattr(model[f"{name}_data"], "set_value"):
        raise ModelError(f"rows of block {name!r} that are no data of the model", "those that bj.CircuitMixture made")
    missing = np.ascontiguousarray(~table.observed.T)
    fillers = np.array([filler(column) for column in schema])
    labels = row_labels(frame)
    rows = {f"{name}_obs_id": np.arange(table.n_row) if labels is None else labels}
    with model:
        data = {f"{name}_data": np.where(missing, fillers, table.values.T), f"{name}_missing": missing}
        pm.set_data({model[full].name: values for full, values in data.items()}, coords=rows)
    if f"{name}{IMPUTED}" in model:
        model.set_dim(f"{name}{GAP}", int(missing.sum()), coord_values=gap_labels(table.names, missing))
    model[f"{name}_data"].set_value(np.where(missing, np.nan, table.values.T))  # pm.set_data itself refuses NaN
    return table


def block_schema(model: pm.Model, name: str | None) -> tuple[str, Any]:
    """Return (full name, schema) of a block of a model.

    Raises
    ------
    ModelError
        For an unknown block, or no name where there are several.
    """
    if not isinstance(model, pm.Model):
        raise ModelError(f"a model of type {type(model).__name__}", "a pm.Model with bj.CircuitMixture")
    blocks = {
        str(rv.name): rv.owner.op.frozen.schema
        for rv in model.basic_RVs
        if rv.owner is not None and isinstance(rv.owner.op, CircuitRowsRV)
    }
    if not blocks:
        raise ModelError("the model has no circuit block", "a model with bj.CircuitMixture")
    if name is None and len(blocks) > 1:
        raise ModelError(f"blocks {', '.join(blocks)} in one model", "name= one of them")
    full = next(iter(blocks)) if name is None else name if name in blocks else model.name_for(name)
    if full not in blocks:
        raise ModelError(f"no block {name!r}", f"one of {', '.join(blocks)}")
    return full, blocks[full]
