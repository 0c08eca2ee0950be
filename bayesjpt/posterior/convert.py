"""Between a Posterior and the DataTree of ``pm.sample`` and ArviZ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.check_values import check_values
from bayesjpt.circuit.layout import Layout, make_layout
from bayesjpt.errors import CircuitError, ModelError
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.encode import filler
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    import xarray as xr

    from bayesjpt.table.dataset import Dataset

_DRAW_TOLERANCE = 1e-5
"""By which shares that another sampler drew may miss one; samplers in JAX count in single precision."""

REFERENCE_ROWS = 200
"""Rows whose log density is followed by the convergence battery, and which a saved fit keeps."""


SAMPLE_STATS = ("log_likelihood", "n_active_edges")
"""What is kept of what the sampler recorded."""


def from_model(idata, model, name: str | None = None) -> Posterior:
    """Return the Posterior of a block of a model; see `Posterior.from_idata`."""
    name, frozen = _block(model, name)
    layout = make_layout(frozen.circuit, frozen.schema)
    if not hasattr(idata, "children") or "posterior" not in idata.children:
        raise ModelError(f"draws of type {type(idata).__name__} without a posterior", "what pm.sample returned")
    draws = idata["posterior"]
    if any(draws.sizes.get(dim, 0) == 0 for dim in ("chain", "draw")):
        raise ModelError("a posterior without chains or draws", "at least one of each, in dims chain and draw")
    values = {}
    for variable in (*layout.weights, *layout.parameters):
        full = f"{name}_{variable.name}"
        if full not in draws:
            raise ModelError(f"the draws hold no {full!r}", "the draws of this very model")
        values[variable.name] = draws[full].transpose("chain", "draw", f"{name}_{variable.dim}").to_numpy()
        if variable in layout.weights and not (values[variable.name] >= 0.0).all():
            raise ModelError(f"draws of {full!r} below 0 or not a number", "shares of one")
    params = layout.join(frozen.circuit, values)
    try:
        check_values(layout, params, _DRAW_TOLERANCE)
    except CircuitError as error:
        raise ModelError(
            f"draws whose {error.found}", error.expected, "Sample again, with a step that keeps them."
        ) from None
    return Posterior(
        circuit=frozen.circuit,
        schema=frozen.schema,
        params=_of_double_precision(layout, params),
        sample_stats=_stats(idata, name),
        reference=_reference(idata, name, frozen.schema),
    )


def _of_double_precision(layout: Layout, params: Params) -> Params:
    """Return draws whose shares add up to one: as they are where they do, as saved fits have them."""
    try:
        check_values(layout, params)
    except CircuitError:
        log_weight, theta = params.log_weight.copy(), params.theta.copy()
        for weights in layout.weights:
            log_weight[..., weights.edges] -= np.log(_totals(np.exp(log_weight[..., weights.edges]), weights.ptr))
        for variable in layout.parameters:
            if variable.parameter.constraint == "simplex":
                theta[..., variable.positions] /= _totals(theta[..., variable.positions], variable.ptr)
        return Params(log_weight, theta)
    return params


def _totals(shares: np.ndarray, ptr: np.ndarray) -> np.ndarray:
    """Return the sum of each segment of the last axis, once an entry."""
    return np.repeat(np.add.reduceat(shares, ptr[:-1], axis=-1), np.diff(ptr), axis=-1)


def _block(model, name: str | None) -> tuple[str, Any]:
    if not hasattr(model, "basic_RVs"):
        raise ModelError(f"a model of type {type(model).__name__}", "a pm.Model with bj.CircuitMixture")
    blocks = {str(rv.name): rv.owner.op.frozen for rv in model.basic_RVs if hasattr(rv.owner.op, "frozen")}
    if not blocks:
        raise ModelError("the model has no circuit block", "a model with bj.CircuitMixture")
    if name is None:
        if len(blocks) > 1:
            raise ModelError(f"blocks {', '.join(blocks)} in one model", "name= one of them")
        name = next(iter(blocks))
    if name not in blocks:
        raise ModelError(f"no block {name!r}", f"one of {', '.join(blocks)}")
    return name, blocks[name]


def _stats(idata, name: str) -> dict[str, np.ndarray]:
    """Return the statistics of a block's step: with the block's name before theirs where the model has several."""
    if "sample_stats" not in idata.children:
        return {}
    group = idata["sample_stats"]
    stats = {}
    for key in SAMPLE_STATS:
        for full in (f"{name}_{key}", key):
            if full in group:
                stats[key] = group[full].to_numpy()
                break
    return stats


def _reference(idata, name: str, schema: Schema) -> Table | None:
    if "observed_data" not in idata.children or "constant_data" not in idata.children:
        return None
    values = np.asarray(idata["observed_data"][name].to_numpy(), np.float64)
    missing = np.asarray(idata["constant_data"][f"{name}_missing"].to_numpy(), bool)
    return reference_table(schema, values, missing)


def reference_table(schema: Schema, values: np.ndarray, missing: np.ndarray) -> Table:
    """Return a few of a block's rows: of the data and mask, (n_row, n_column) each."""
    rows = reference_rows(len(values))
    values, missing = values[rows].T, missing[rows].T
    fillers = np.array([[filler(column)] for column in schema])
    return Table(schema, np.where(missing, fillers, values), ~missing)


def reference_rows(n_row: int) -> np.ndarray:
    """Return the positions of the rows that a posterior keeps for reference, spread over the table."""
    return np.unique(np.linspace(0, n_row - 1, REFERENCE_ROWS).astype(int))


def reference_of(table: Table | Dataset) -> Table:
    """Return the rows of a table that its posteriors keep for reference: the same object for all structures."""
    if table not in _REFERENCE:
        _REFERENCE[table] = table.take(reference_rows(table.n_row))
    return _REFERENCE[table]


_REFERENCE: WeakKeyDictionary[Table | Dataset, Table] = WeakKeyDictionary()


def to_datatree(post: Posterior, name: str = "x") -> xr.DataTree:
    """Return the draws as a DataTree in ArviZ's groups ``posterior`` and ``sample_stats``.

    Parameters
    ----------
    post : Posterior
    name : str, default "x"
        Prefix of the variables, as a block of that name would have them.
    """
    import xarray as xr

    layout = make_layout(post.circuit, post.schema)
    arrays = {}
    coords: dict = dict(post.coords())
    for variable in (*layout.weights, *layout.parameters):
        coords[f"{name}_{variable.dim}"] = list(variable.labels)
    for variable in (*layout.weights, *layout.parameters):
        value = layout.split(post.params)[variable.name]
        arrays[f"{name}_{variable.name}"] = (("chain", "draw", f"{name}_{variable.dim}"), value)
    groups = {"posterior": xr.Dataset(arrays, coords)}
    if post.sample_stats:
        stats = {key: (("chain", "draw"), np.asarray(value)) for key, value in post.sample_stats.items()}
        groups["sample_stats"] = xr.Dataset(stats, post.coords())
    return xr.DataTree.from_dict(groups)
