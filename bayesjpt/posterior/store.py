"""Saved fits: one netCDF file, ArviZ's groups for the draws and one group of ours; no pickle anywhere.

      /posterior, /sample_stats    draws as ArviZ reads them, weights as probabilities
      /bayesjpt                    circuit, reference rows and exact log weights as arrays; schema and settings as JSON

Of several structures, whose parameters are of different numbers and mean different things, /bayesjpt holds all draws:

      start_theta, log_weight, ...   |structure 0 |structure 1      |structure 2 |     arrays one behind the other,
      length                          3            5                 3                 and how long each is

Every number carries a checksum (the format's own), and what is read is checked as if it came from anywhere. Files are
written through xarray, for ArviZ, and read by h5py alone: a command that asks a fit one question starts twice as fast.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.build import freeze
from bayesjpt.circuit.layout import ParameterVariable, make_layout
from bayesjpt.errors import BayesjptError, FitFileError
from bayesjpt.families import registry
from bayesjpt.posterior import check
from bayesjpt.posterior.convert import SAMPLE_STATS, to_datatree
from bayesjpt.posterior.draws import Posterior, check_format
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.replace_file import reason, replace_file
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    import h5py
    import xarray as xr

FORMAT = "bayesjpt fit 3"
STACKED_FORMAT = "bayesjpt fit of several structures 2"
_GROUP = "bayesjpt"


def save(post: Posterior, path) -> None:
    """Write a fit; see `Posterior.save`.

    Raises
    ------
    FitFileError
        Where the file cannot be written. A file that was there before is then left as it was.
    """
    path = Path(path)
    if path.is_dir():
        raise FitFileError(f"{str(path)!r} is a folder", "the name of a file to write")
    tree = _tree(post)
    checksums = {
        group.path: {key: {"fletcher32": True} for key, array in group.data_vars.items() if array.size}
        for group in tree.subtree
        if group.data_vars
    }
    try:
        # HDF5 writes into memory: a library that meets a full disk in its own files ends the interpreter
        content = io.BytesIO()
        tree.to_netcdf(content, engine="h5netcdf", encoding=checksums)  # pyright: ignore[reportArgumentType] - it may
        replace_file(path, content.getvalue())
    except MemoryError:
        raise FitFileError(f"no memory for the content of {str(path)!r}", remedy="Keep fewer draws: thin=") from None
    except OSError as error:
        raise FitFileError(f"cannot write {str(path)!r}: {reason(error)}") from None


def _tree(post: Posterior) -> xr.DataTree:
    """Return what is written: `to_datatree` and our own group, for each structure where there are several."""
    import xarray as xr

    if isinstance(post, StackedPosterior):
        return _tree_of_several(post)
    tree = to_datatree(post)
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        name: ((f"{name}_dim",), array) for name, array in post.circuit._asdict().items()
    }
    arrays["log_weight"] = (("chain", "draw", "edge"), post.params.log_weight)
    tree[_GROUP] = xr.DataTree(xr.Dataset(arrays | _reference_arrays(post), attrs=_attributes(post, FORMAT)))
    return tree


_ARRAYS = (*Circuit._fields, "log_weight", "theta")
"""What each of several structures has; of the last two, the draws, all axes in one."""


def _tree_of_several(post: StackedPosterior) -> xr.DataTree:
    """Return what is written of several structures: their arrays end to end, in one group."""
    import xarray as xr

    structures = post.by_structure()
    own = [own.circuit._asdict() | own.params._asdict() for own in structures]
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        name: ((f"{name}_dim",), np.concatenate([each[name].ravel() for each in own])) for name in _ARRAYS
    }
    arrays["weights"] = (("structure",), post.weights)
    arrays["n_draw"] = (("structure",), np.array([each.n_draw for each in structures]))
    arrays["length"] = (("structure", "array"), np.array([[each[name].size for name in _ARRAYS] for each in own]))
    attrs = _attributes(post, STACKED_FORMAT) | {
        "n_chain": json.dumps(post.n_chain),
        "arrays": json.dumps(_ARRAYS),
        "structures": json.dumps([dict(each.settings) for each in structures]),
    }
    groups = {_GROUP: xr.Dataset(arrays | _reference_arrays(post), attrs=attrs)}
    if post.sample_stats:
        stats = {name: (("chain", "draw"), np.asarray(value)) for name, value in post.sample_stats.items()}
        groups["sample_stats"] = xr.Dataset(stats, post.coords())
    return xr.DataTree.from_dict(groups)


def _attributes(post: Posterior, form: str) -> dict[str, Any]:
    return {
        "format": form,
        "schema": json.dumps(post.schema.to_dict()),
        "families": json.dumps([family.name for family in registry.FAMILIES]),
        "settings": json.dumps(dict(post.settings)),
    }


def _reference_arrays(post: Posterior) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    if post.reference is None:
        return {}
    return {
        "reference_values": (("feature", "reference"), post.reference.values),
        "reference_observed": (("feature", "reference"), post.reference.observed.astype(np.int8)),
    }


def load(path) -> Posterior:
    """Return the Posterior that `Posterior.save` wrote.

    Opening a file runs no code from it: arrays are checked, and text is read as JSON.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    FitFileError
        For a missing file, one that is not a saved fit, or one of another format.

    Examples
    --------
    >>> import bayesjpt as bj
    >>> bj.load("missing.nc")
    Traceback (most recent call last):
    ...
    bayesjpt.errors.FitFileError: no file 'missing.nc'
    """
    path = Path(path)
    if not path.is_file():
        raise FitFileError(f"no file {str(path)!r}")
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return _several(file) if _is_stacked(file) else _posterior(file)
    except _UNREADABLE as error:
        text = str(error) if isinstance(error, BayesjptError) else f"{_first_line(error)}; expected a saved fit"
        raise FitFileError(f"{path.name} cannot be read: {text}") from None


_UNREADABLE = (OSError, RuntimeError, ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)
"""What the libraries below raise for files that are damaged, or that hold something else."""


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"


def _is_stacked(file: h5py.File) -> bool:
    form = _group(file, _GROUP).attrs.get("format") if _GROUP in file else None
    return isinstance(form, str) and form.startswith(STACKED_FORMAT.rstrip("0123456789"))


def _several(file: h5py.File) -> StackedPosterior:
    group = _group(file, _GROUP)
    check_format(group.attrs.get("format"), STACKED_FORMAT)
    schema = Schema.from_dict(_json(group, "schema"))
    check.check_columns(schema)
    weights = np.asarray(_values(group, "weights"), np.float64)
    check.check_weights(weights)
    if _json(group, "arrays") != list(_ARRAYS):
        raise FitFileError("other arrays than those of this version", ", ".join(_ARRAYS))
    arrays = {name: _values(group, name) for name in _ARRAYS}
    arrays["leaf_family"] = _renumbered(group, arrays["leaf_family"])
    n_chain, n_draws, length = _json(group, "n_chain"), _values(group, "n_draw"), _values(group, "length")
    check.check_lengths(arrays, length, n_draws, weights.size)
    parts = [np.split(arrays[name], np.cumsum(length[:-1, k])) for k, name in enumerate(_ARRAYS)]
    stats = _sample_stats(file, (n_chain, int(n_draws.sum())))
    starts = np.cumsum(n_draws)[:-1]
    stats_parts = {name: np.split(value, starts, axis=1) for name, value in stats.items()}
    reference, settings = _reference(group, schema), _json(group, "structures")
    structures = []
    for number, own in enumerate(zip(*parts, strict=True)):
        *circuit_arrays, log_weight, theta = own
        circuit = freeze(check.checked_circuit(dict(zip(Circuit._fields, circuit_arrays, strict=True)), schema))
        shape = (n_chain, int(n_draws[number]))
        params = Params(
            np.ascontiguousarray(log_weight, np.float64).reshape(*shape, circuit.n_edge),
            np.ascontiguousarray(theta, np.float64).reshape(*shape, circuit.n_theta),
        )
        check.check_draws(params, circuit, schema)
        stats = {name: value[number] for name, value in stats_parts.items()}
        structures.append(Posterior(circuit, schema, params, stats, reference, settings[number]))
    return StackedPosterior(structures, weights, _json(group, "settings"))


def _posterior(file: h5py.Group) -> Posterior:
    if _GROUP not in file:
        raise FitFileError(f"no group {_GROUP!r}", "a file that Posterior.save wrote")
    group = _group(file, _GROUP)
    check_format(group.attrs.get("format"), FORMAT)
    schema = Schema.from_dict(_json(group, "schema"))
    check.check_columns(schema)
    circuit = freeze(check.checked_circuit(_arrays(group), schema))
    log_weight = np.ascontiguousarray(_values(group, "log_weight"), np.float64)
    params = Params(log_weight, _theta(_group(file, "posterior"), circuit, schema, log_weight))
    check.check_draws(params, circuit, schema)
    return Posterior(
        circuit,
        schema,
        params,
        sample_stats=_sample_stats(file, params.theta.shape[:2]),
        reference=_reference(group, schema),
        settings=_json(group, "settings"),
    )


def _theta(draws: h5py.Group, circuit: Circuit, schema: Schema, log_weight: np.ndarray) -> np.ndarray:
    """Return the parameters of the draws that ArviZ reads; their weights must be those of ours."""
    layout = make_layout(circuit, schema)
    if log_weight.shape[2:] != (circuit.n_edge,):
        raise FitFileError(f"log weights of shape {log_weight.shape}", f"(chains, draws, {circuit.n_edge})")
    theta = np.empty((*log_weight.shape[:2], circuit.n_theta))
    for variable in (*layout.weights, *layout.parameters):
        name = f"x_{variable.name}"
        dims, shape = ("chain", "draw", f"x_{variable.dim}"), (*log_weight.shape[:2], len(variable.labels))
        values = _values(draws, name) if name in draws and _dims(draws, name) == dims else None
        if values is None or values.shape != shape:
            raise FitFileError(f"draws that do not fit the circuit at {name!r}", f"dims {dims} of {shape}")
        if isinstance(variable, ParameterVariable):
            theta[..., variable.positions] = values
        elif not (np.abs(np.exp(log_weight[..., variable.edges]) - values) <= check.WEIGHT_TOLERANCE).all():
            raise FitFileError("its two copies of the weights differ", "a file that Posterior.save wrote")
    return theta


def _group(parent: Any, name: str) -> h5py.Group:
    return parent[name]


def _values(group: Any, name: str) -> np.ndarray:
    return group[name][()]


def _json(group: Any, name: str) -> Any:
    return json.loads(group.attrs[name])


def _dims(group: Any, name: str) -> tuple[str, ...]:
    """Return the names of an array's axes, which netCDF keeps as references."""
    array = group[name]
    return tuple(str(array.file[axis[0]].name).rpartition("/")[2] for axis in array.attrs["DIMENSION_LIST"])


def _sample_stats(file: h5py.Group, shape: tuple[int, int]) -> dict[str, np.ndarray]:
    stats = {}
    for name in SAMPLE_STATS:
        if f"sample_stats/{name}" in file:
            stats[name] = _values(_group(file, "sample_stats"), name)
            if stats[name].shape != shape:
                raise FitFileError(f"sampler statistics of shape {stats[name].shape}", f"{shape}")
    return stats


def _arrays(group: h5py.Group) -> dict[str, np.ndarray]:
    """Return the circuit's arrays, families numbered as in this version."""
    arrays = {field: _values(group, field) for field in Circuit._fields}
    arrays["leaf_family"] = _renumbered(group, arrays["leaf_family"])
    return arrays


def _renumbered(group: h5py.Group, stored: np.ndarray) -> np.ndarray:
    """Return the families of leaves by their numbers in this version."""
    numbers = np.array([registry.number(name) for name in _json(group, "families")])
    if stored.dtype.kind not in "iu" or stored.min() < 0 or stored.max() >= numbers.size:
        raise FitFileError("leaves of families that the file does not name", f"numbers 0 to {numbers.size - 1}")
    return numbers[stored]


def _reference(group: h5py.Group, schema: Schema) -> Table | None:
    if "reference_values" not in group:
        return None
    values = np.ascontiguousarray(_values(group, "reference_values"), np.float64)
    observed = np.ascontiguousarray(_values(group, "reference_observed").astype(bool))
    if values.ndim != 2 or values.shape[0] != len(schema) or values.shape != observed.shape:
        raise FitFileError(f"reference rows of shape {values.shape}", f"({len(schema)}, rows)")
    table = Table(schema, values, observed)
    check.check_cells(table)
    return table
