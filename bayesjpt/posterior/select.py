"""One column of a block's rows, as ArviZ's predictive and PIT plots take it: they know one quantity a row."""

from __future__ import annotations

import numpy as np
import xarray as xr

from bayesjpt.errors import ModelError

PREDICTED = ("posterior_predictive", "prior_predictive")


def select_column(idata: xr.DataTree, column: str, *, name: str | None = None, model=None) -> xr.DataTree:
    """Return the part of a block's draws that concerns one column, for ArviZ's predictive and PIT plots.

    Parameters
    ----------
    idata : xarray.DataTree
        From ``pm.sample``, with what ``pm.sample_posterior_predictive(..., extend_inferencedata=True)`` and, for plots
        that leave rows out, ``pm.compute_log_likelihood`` added.
    column : str
        Name of the column.
    name : str, optional
        Name of the block, where the model has several.
    model : pm.Model, optional
        Where given, a column of labels carries their names in code order as the attribute ``labels``.

    Returns
    -------
    xarray.DataTree
        Groups ``observed_data`` and, where `idata` has them, ``posterior_predictive``, ``prior_predictive``,
        ``log_likelihood`` and ``posterior``. Each but the last holds one variable of the column's name, with ``_`` for
        ``/``, which parts groups there, and the block's name before ``chain``, ``draw`` and ``<block>_obs_id``, which
        are axes. Rows whose cell is missing are left out; counts and labels (as codes) are whole numbers.

    Raises
    ------
    ModelError
        For draws without the block's rows, an unknown column or block, or a column without an observed cell.

    Notes
    -----
    ``log_likelihood`` is that of the whole row: the plots then leave out rows, not cells.

    Examples
    --------
    >>> import numpy as np, xarray as xr, bayesjpt as bj
    >>> rows = xr.DataArray([[1.5, 2.0], [0.3, 1.0]], dims=("x_obs_id", "x_feature"))
    >>> rows = rows.assign_coords(x_feature=["height", "count"])
    >>> idata = xr.DataTree.from_dict({"observed_data": xr.Dataset({"x": rows})})
    >>> bj.select_column(idata, "count")["observed_data"]["count"].to_numpy()
    array([2, 1])
    """
    name = _block_name(idata, name)
    observed = idata["observed_data"][name]
    obs_id, feature = map(str, observed.dims)
    known = [str(label) for label in observed[feature].to_numpy()]
    if column not in known:
        raise ModelError(f"no column {column!r} in block {name!r}", f"one of {', '.join(known)}")
    at = known.index(column)
    is_observed = ~np.isnan(observed.to_numpy()[:, at])
    if "constant_data" in idata.children and f"{name}_missing" in idata["constant_data"]:
        is_observed &= ~idata["constant_data"][f"{name}_missing"].to_numpy()[:, at].astype(bool)
    if not is_observed.any():
        raise ModelError(f"column {column!r} of block {name!r} has no observed cell", "at least one")
    rows = {obs_id: np.flatnonzero(is_observed)}
    parts = {"observed_data": observed.isel({feature: at, **rows}, drop=True)}
    for group in PREDICTED:
        if group in idata.children and name in idata[group]:
            predicted = idata[group][name]
            if predicted.sizes[obs_id] != is_observed.size:
                raise ModelError(
                    f"{predicted.sizes[obs_id]} rows in {group} and {is_observed.size} observed ones",
                    "predictions of the observed rows",
                )
            parts[group] = predicted.isel({feature: at, **rows}, drop=True)
    whole = all(bool((part == np.floor(part)).all()) for part in parts.values())
    labels = _labels(model, name, column)
    variable = column.replace("/", "_")
    if variable in ("chain", "draw", obs_id):
        variable = f"{name}_{variable}"
    groups = {}
    for group, part in parts.items():
        typed = part.astype(np.int64 if whole else np.float64).rename(variable)
        groups[group] = xr.Dataset({variable: typed.assign_attrs(labels)})
    if "log_likelihood" in idata.children and name in idata["log_likelihood"]:
        groups["log_likelihood"] = xr.Dataset({variable: idata["log_likelihood"][name].isel(rows).rename(variable)})
    if "posterior" in idata.children:
        groups["posterior"] = idata["posterior"].to_dataset()
    return xr.DataTree.from_dict(groups)


def _block_name(idata: xr.DataTree, name: str | None) -> str:
    found = []
    if not hasattr(idata, "children"):
        raise ModelError(f"draws of type {type(idata).__name__}", "what pm.sample returned")
    if "observed_data" in idata.children:
        observed = idata["observed_data"].data_vars
        found = [key for key, rows in observed.items() if rows.dims == (f"{key}_obs_id", f"{key}_feature")]
    if not found:
        raise ModelError("draws without the rows of a circuit block", "what pm.sample returned for one")
    if name is None and len(found) == 1:
        return str(found[0])
    if name is None:
        raise ModelError(f"blocks {', '.join(map(str, found))} in one model", "name= one of them")
    if name not in found:
        raise ModelError(f"no block {name!r}", f"one of {', '.join(map(str, found))}")
    return name


def _labels(model, name: str, column: str) -> dict[str, list[str]]:
    if model is None:
        return {}
    facts = model[name].owner.op.frozen.schema
    facts = facts.columns[facts.index(column)]
    return {"labels": list(facts.code_names)} if facts.base == "category" else {}
