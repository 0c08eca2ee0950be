"""Saved fits: one netCDF file, ArviZ's groups for the draws and one group of ours; no pickle anywhere.

      /posterior, /sample_stats    draws as ArviZ reads them, weights as probabilities
      /bayesjpt                    circuit, reference rows and exact log weights as arrays; schema and settings as JSON

Of several structures, whose parameters are of different numbers and mean different things, /bayesjpt holds all draws:

      start_theta, log_weight, ...   |structure 0 |structure 1      |structure 2 |     arrays one behind the other,
      length                          3            5                 3                 and how long each is

Of cutset networks that keep no draws it holds what draws are made from (`bayesjpt.posterior.network_store`).

Arrays carry the format's own checksums and texts one of ours (`bayesjpt.posterior.checked_texts`); what is read is
checked as if it came from anywhere. Files are written through xarray, for ArviZ, and read by h5py alone: a command that
asks a fit one question starts twice as fast.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.build import freeze
from bayesjpt.circuit.layout import ParameterVariable, make_layout
from bayesjpt.circuit.packed import PACKED, unpack
from bayesjpt.errors import BayesjptError, FitFileError, ModelError
from bayesjpt.families import registry
from bayesjpt.posterior import check, network_store
from bayesjpt.posterior.checked_texts import check_texts, with_checksum
from bayesjpt.posterior.convert import SAMPLE_STATS, reference_table, to_datatree
from bayesjpt.posterior.draws import Posterior, check_format
from bayesjpt.posterior.hdf5 import SafeFile
from bayesjpt.posterior.networks import NetworkDraws
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.posterior.tree import Tree
from bayesjpt.replace_file import reason, replace_file
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from bayesjpt.user_paths import as_file, as_output

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "bayesjpt fit 4"
STACKED_FORMAT = "bayesjpt fit of several structures 3"
_GROUP = "bayesjpt"


def save(post: Posterior, path) -> None:
    """Write a fit; see `Posterior.save`.

    Raises
    ------
    FitFileError
        Where the file cannot be written. A file that was there before is then left as it was.
    """
    path = as_output(path, FitFileError)  # before the work
    write_tree(to_tree(post), path)


def write_tree(tree: xr.DataTree, path) -> None:
    """Write a DataTree as netCDF, its arrays with checksums; a file that was there is replaced whole or not at all.

    Raises
    ------
    FitFileError
        Where the file cannot be written.
    """
    path = Path(path)
    checksums = {
        group.path: {key: {"fletcher32": True} for key, array in group.data_vars.items() if array.size}
        for group in tree.subtree
        if group.data_vars
    }
    try:
        # HDF5 writes into memory: a library that meets a full disk in its own files ends the interpreter
        content = io.BytesIO()
        with _no_lock_of_dask():
            tree.to_netcdf(content, engine="h5netcdf", encoding=checksums)  # pyright: ignore[reportArgumentType] - it may
        replace_file(path, content.getvalue())
    except MemoryError:
        raise FitFileError(f"no memory for the content of {str(path)!r}", remedy="Keep fewer draws: thin=") from None
    except OSError as error:
        raise FitFileError(f"cannot write {str(path)!r}: {reason(error)}") from None


@contextmanager
def _no_lock_of_dask() -> Iterator[None]:
    """Have xarray ask no cluster for a lock of what it writes.

    Where a client of Dask is open it does, by the name of the file, and bytes in memory have none.
    """
    dask = sys.modules.get("dask")  # a client that is open has imported it
    with nullcontext() if dask is None else dask.config.set(scheduler="threads"):
        yield


def to_tree(post: Posterior) -> xr.DataTree:
    """Return what is written: `to_datatree` and our own group, for each structure where there are several."""
    import xarray as xr

    if isinstance(post, StackedPosterior):
        return _tree_of_several(post)
    tree = to_datatree(post)
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        name: ((_AXES[name],), array) for name, array in post.circuit._asdict().items()
    }
    arrays["log_weight"] = (("chain", "draw", "edge"), post.params.log_weight)
    tree[_GROUP] = xr.DataTree(
        xr.Dataset(arrays | _reference_arrays(post), attrs=with_checksum(_attributes(post, FORMAT)))
    )
    return tree


_ARRAYS = (*Circuit._fields, "log_weight", "theta")
"""What each of several structures has; of the last two, the draws, all axes in one."""

_AXES = {
    **dict.fromkeys(("kind", "leaf_of"), "node"),
    **dict.fromkeys(("child", "start_log_weight"), "edge"),
    **dict.fromkeys(("leaf_family", "leaf_var", "leaf_cell"), "leaf"),
    **dict.fromkeys(("theta_at", "theta_len", "const_at", "const_len"), "leaf"),
    **{"child_ptr": "node_or_end", "cell": "end_of_cell", "const": "constant", "start_theta": "parameter"},
    **{"log_weight": "weight_of_draw", "theta": "parameter_of_draw"},
}
"""What each array runs over. Arrays share axes: each axis is an array of the file, too, and takes as long."""


def _tree_of_several(post: StackedPosterior) -> xr.DataTree:
    """Return what is written of several structures: their arrays end to end, in one group."""
    import xarray as xr

    networks = network_store.networks_of(post)
    if networks is not None:
        return _tree_of_networks(post, networks)
    structures = post.by_structure()
    by_structure = [structure.circuit._asdict() | structure.params._asdict() for structure in structures]
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        name: ((_AXES[name],), np.concatenate([each[name].ravel() for each in by_structure])) for name in _ARRAYS
    }
    arrays["weights"] = (("structure",), post.weights)
    arrays["n_draw"] = (("structure",), np.array([each.n_draw for each in structures]))
    arrays["length"] = (
        ("structure", "array"),
        np.array([[each[name].size for name in _ARRAYS] for each in by_structure]),
    )
    attrs = _attributes(post, STACKED_FORMAT) | {
        "n_chain": json.dumps(post.n_chain),
        "arrays": json.dumps(_ARRAYS),
        "structures": json.dumps([dict(each.settings) for each in structures]),
    }
    groups = {_GROUP: xr.Dataset(arrays | _reference_arrays(post), attrs=with_checksum(attrs))}
    if post.sample_stats:
        stats = {name: (("chain", "draw"), np.asarray(value)) for name, value in post.sample_stats.items()}
        groups["sample_stats"] = xr.Dataset(stats, post.coords())
    return xr.DataTree.from_dict(groups)


def _tree_of_networks(post: StackedPosterior, networks: list[NetworkDraws]) -> xr.DataTree:
    """Return what is written of networks that keep no draws."""
    import xarray as xr

    arrays = network_store.arrays_of(networks) | {"weights": (("structure",), post.weights)}
    attrs = _attributes(post, network_store.FORMAT) | network_store.attributes_of(networks)
    attrs |= {
        "n_chain": json.dumps(post.n_chain),
        "structures": json.dumps([dict(one.settings) for one in networks]),
    }
    return xr.DataTree.from_dict({_GROUP: xr.Dataset(arrays | _reference_arrays(post), attrs=with_checksum(attrs))})


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


def load(path, name: str | None = None) -> Posterior:
    """Return the Posterior that `Posterior.save` wrote, or that of a block in a file of ``pm.sample``'s draws.

    Opening a file runs no code from it: arrays are checked, and text is read as JSON.

    Parameters
    ----------
    path : str or Path
        What `Posterior.save` wrote, or ``idata.to_netcdf`` of the draws of a model with a block.
    name : str, optional
        Name of the block, where a file of draws has several.

    Raises
    ------
    FitFileError
        For a missing file, one that is not a saved fit, one of another format, and one whose arrays do not fit each
        other, are compressed, lie elsewhere or are larger than the file.
    ModelError
        For a block that the draws do not have, or none named where they have several.

    Examples
    --------
    >>> import bayesjpt as bj
    >>> bj.load("missing.nc")
    Traceback (most recent call last):
    ...
    bayesjpt.errors.FitFileError: no file 'missing.nc'
    """
    path = as_file(path, FitFileError)
    return read_with(path, lambda file: _read(file, name))


def read_tree(idata: xr.DataTree, name: str | None = None) -> Posterior:
    """Return the Posterior in a DataTree; see `Posterior.from_idata`."""
    if not hasattr(idata, "children"):
        raise ModelError(f"draws of type {type(idata).__name__}", "what pm.sample returned, or Posterior.to_idata")
    with reading("the draws"):
        return _read(Tree(idata), name)


def _read(file: SafeFile | Tree, name: str | None) -> Posterior:
    if file.has(_GROUP):
        if name is not None:
            raise ModelError(f"name={name!r} for a saved fit, which is one", "no name: it is for draws of pm.sample")
        if _has_format(file, network_store.FORMAT):
            return _networks(file)
        return _several(file) if _has_format(file, STACKED_FORMAT) else _posterior(file)
    return _sampled(file, name)


def read_with[Read](path: Path, read: Callable[[SafeFile], Read]) -> Read:
    """Return what a function reads from a file.

    Raises
    ------
    FitFileError
        Whatever is wrong with the file.
    """
    with reading(path.name), SafeFile(path) as file:
        return read(file)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn whatever is wrong with what is read into a `FitFileError` that begins with its name."""
    try:
        with np.errstate(all="ignore"):  # absurd numbers are refused where they are checked
            yield
    except MemoryError:
        raise FitFileError(f"{what} cannot be read: it does not fit into memory") from None
    except ModelError:  # the caller's: which block
        raise
    except BayesjptError as error:
        found = f"{what} cannot be read: {error.found}"
        raise FitFileError(found, error.expected, error.remedy, command=error.command) from None
    except _UNREADABLE as error:
        raise FitFileError(f"{what} cannot be read: {_first_line(error)}; expected a saved fit") from None


_UNREADABLE = (
    *(OSError, RuntimeError, ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError),
    *(SystemError, AssertionError, EOFError),
)
"""What the libraries below raise for files that are damaged, or that hold something else."""


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"


def _has_format(file: SafeFile | Tree, form: str) -> bool:
    return file.text(_GROUP, "format").startswith(form.rstrip("0123456789"))


def _at(name: str) -> str:
    return f"{_GROUP}/{name}"


def _settings(file: SafeFile | Tree) -> dict[str, Any]:
    found = file.json(_GROUP, "settings")
    if not isinstance(found, dict):
        raise FitFileError(f"settings that are a {type(found).__name__}", "names with values")
    return found


def _records(file: SafeFile | Tree) -> list[dict[str, Any]]:
    """Return the settings of each structure."""
    found = file.json(_GROUP, "structures")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise FitFileError("settings of structures that are no list of names with values", "one of each structure")
    return found


def _networks(file: SafeFile | Tree) -> StackedPosterior:
    check_format(file.text(_GROUP, "format"), network_store.FORMAT)
    check_texts(file, _GROUP)
    schema = Schema.from_dict(file.json(_GROUP, "schema"))
    check.check_columns(schema)
    weights = np.asarray(file.array(_at("weights")), np.float64)
    check.check_weights(weights)
    settings = _records(file)
    networks = network_store.read_networks(file, _GROUP, schema, _reference(file, schema), settings)
    if weights.size != len(networks):
        raise FitFileError(f"{weights.size} weights of {len(networks)} networks", "one each")
    return StackedPosterior(networks, weights, _settings(file))


def _several(file: SafeFile | Tree) -> StackedPosterior:
    check_format(file.text(_GROUP, "format"), STACKED_FORMAT)
    check_texts(file, _GROUP)
    schema = Schema.from_dict(file.json(_GROUP, "schema"))
    check.check_columns(schema)
    if file.json(_GROUP, "arrays") != list(_ARRAYS):
        raise FitFileError("other arrays than those of this version", ", ".join(_ARRAYS))
    sizes = {name: file.shape(_at(name)) for name in _ARRAYS}
    (n_structure,) = file.shape(_at("weights")) or (0,)
    weights = np.asarray(file.array(_at("weights")), np.float64)
    check.check_weights(weights)
    n_chain, settings = file.json(_GROUP, "n_chain"), _records(file)
    n_draws = file.array(_at("n_draw"), (n_structure,))
    length = file.array(_at("length"), (n_structure, len(_ARRAYS)))
    check.check_lengths(sizes, length, n_draws, n_chain)
    arrays = {name: file.array(_at(name)) for name in _ARRAYS}
    arrays["leaf_family"] = _renumbered(file.json(_GROUP, "families"), arrays["leaf_family"])
    parts = [np.split(arrays[name], np.cumsum(length[:-1, k])) for k, name in enumerate(_ARRAYS)]
    stats = _sample_stats(file, (n_chain, int(n_draws.sum())))
    starts = np.cumsum(n_draws)[:-1]
    stats_parts = {name: np.split(value, starts, axis=1) for name, value in stats.items()}
    reference = _reference(file, schema)
    structures = []
    for number, structure_arrays in enumerate(zip(*parts, strict=True)):
        *circuit_arrays, log_weight, theta = structure_arrays
        circuit = freeze(check.checked_circuit(dict(zip(Circuit._fields, circuit_arrays, strict=True)), schema))
        shape = (n_chain, int(n_draws[number]))
        params = Params(
            np.ascontiguousarray(log_weight, np.float64).reshape(*shape, circuit.n_edge),
            np.ascontiguousarray(theta, np.float64).reshape(*shape, circuit.n_theta),
        )
        check.check_draws(params, circuit, schema)
        stats = {name: value[number] for name, value in stats_parts.items()}
        structures.append(Posterior(circuit, schema, params, stats, reference, settings[number]))
    return StackedPosterior(structures, weights, _settings(file))


def _posterior(file: SafeFile | Tree) -> Posterior:
    check_format(file.text(_GROUP, "format"), FORMAT)
    check_texts(file, _GROUP)
    schema = Schema.from_dict(file.json(_GROUP, "schema"))
    check.check_columns(schema)
    sizes = {name: file.shape(_at(name)) for name in (*Circuit._fields, "log_weight")}
    check.check_sizes(sizes)
    arrays = {name: file.array(_at(name)) for name in Circuit._fields}
    arrays["leaf_family"] = _renumbered(file.json(_GROUP, "families"), arrays["leaf_family"])
    circuit = freeze(check.checked_circuit(arrays, schema))
    n_chain, n_draw, _ = sizes["log_weight"]
    log_weight = np.ascontiguousarray(file.array(_at("log_weight")), np.float64)
    params = Params(log_weight, _theta(file, circuit, schema, log_weight))
    check.check_draws(params, circuit, schema)
    return Posterior(
        circuit,
        schema,
        params,
        sample_stats=_sample_stats(file, (n_chain, n_draw)),
        reference=_reference(file, schema),
        settings=_settings(file),
    )


def _block_name(file: SafeFile | Tree, name: str | None) -> str:
    """Return the name of the block whose circuit the draws hold."""
    constants = set(file.names("constant_data"))
    found = [full.removesuffix(PACKED) for full in constants if full.endswith(PACKED)]
    found = [block for block in found if f"{block}_missing" in constants]
    if not found:
        raise FitFileError(
            f"no group {_GROUP!r}, nor a circuit among the constant data",
            "a file that Posterior.save wrote, or the draws of a model with a circuit block",
        )
    if name is None and len(found) > 1:
        raise ModelError(f"blocks {', '.join(sorted(found))} in these draws", "name= one of them")
    if name is not None and name not in found:
        raise ModelError(f"no block {name!r}", f"one of {', '.join(sorted(found))}")
    return found[0] if name is None else name


def _sampled(file: SafeFile | Tree, name: str | None) -> Posterior:
    """Return the Posterior of a block from the draws of a model, whose circuit travels among its constant data."""
    name = _block_name(file, name)
    header, arrays = unpack(file.array(f"constant_data/{name}{PACKED}"))
    schema = Schema.from_dict(header["schema"])
    check.check_columns(schema)
    arrays["leaf_family"] = _renumbered(header["families"], arrays["leaf_family"])
    circuit = freeze(check.checked_circuit(arrays, schema))
    layout = make_layout(circuit, schema)
    values = {}
    for variable in (*layout.weights, *layout.parameters):
        path = f"posterior/{name}_{variable.name}"
        if not file.dims(path, ("chain", "draw", f"{name}_{variable.dim}")):
            raise FitFileError(
                f"other axes than chain, draw and {name}_{variable.dim} at {path!r}", "those of pm.sample"
            )
        values[variable.name] = file.array(path, (*file.shape(path)[:2], len(variable.labels)))
    params = layout.join(circuit, values)
    check.check_draws(params, circuit, schema)
    stats = {}
    for key in SAMPLE_STATS:
        for path in (f"sample_stats/{name}_{key}", f"sample_stats/{key}"):
            if key not in stats and file.has(path):
                stats[key] = file.array(path, params.theta.shape[:2])
    return Posterior(circuit, schema, params, stats, _observed(file, name, schema))


def _observed(file: SafeFile | Tree, name: str, schema: Schema) -> Table | None:
    """Return a few of the rows that the model was conditioned on."""
    rows, missing = f"observed_data/{name}", f"constant_data/{name}_missing"
    if not (file.has(rows) and file.has(missing)):
        return None
    shape = file.shape(rows)
    if len(shape) != 2 or shape[1] != len(schema) or not shape[0]:
        raise FitFileError(f"rows of shape {shape}", f"(rows, {len(schema)})")
    table = reference_table(schema, file.array(rows).astype(np.float64), file.array(missing, shape).astype(bool))
    check.check_cells(table)
    return table


def _theta(file: SafeFile | Tree, circuit: Circuit, schema: Schema, log_weight: np.ndarray) -> np.ndarray:
    """Return the parameters of the draws that ArviZ reads; their weights must be those of ours."""
    layout = make_layout(circuit, schema)
    theta = np.empty((*log_weight.shape[:2], circuit.n_theta))
    for variable in (*layout.weights, *layout.parameters):
        name = f"posterior/x_{variable.name}"
        dims, shape = ("chain", "draw", f"x_{variable.dim}"), (*log_weight.shape[:2], len(variable.labels))
        if not file.has(name) or file.shape(name) != shape or not file.dims(name, dims):
            raise FitFileError(f"draws that do not fit the circuit at {name!r}", f"dims {dims} of {shape}")
        values = file.array(name)
        if isinstance(variable, ParameterVariable):
            theta[..., variable.positions] = values
        elif not (np.abs(np.exp(log_weight[..., variable.edges]) - values) <= check.WEIGHT_TOLERANCE).all():
            raise FitFileError("its two copies of the weights differ", "a file that Posterior.save wrote")
    return theta


def _sample_stats(file: SafeFile | Tree, shape: tuple[int, int]) -> dict[str, np.ndarray]:
    paths = {name: f"sample_stats/{name}" for name in SAMPLE_STATS}
    return {name: file.array(path, shape) for name, path in paths.items() if file.has(path)}


def _renumbered(families: list[str], stored: np.ndarray) -> np.ndarray:
    """Return the families of leaves by their numbers in this version."""
    numbers = np.array([registry.number(name) for name in families])
    if stored.dtype.kind not in "iu" or not stored.size or stored.min() < 0 or stored.max() >= numbers.size:
        raise FitFileError("leaves of families that the file does not name", f"numbers 0 to {numbers.size - 1}")
    return numbers[stored]


def _reference(file: SafeFile | Tree, schema: Schema) -> Table | None:
    if not file.has(_at("reference_values")):
        return None
    shape = file.shape(_at("reference_values"))
    if len(shape) != 2 or shape[0] != len(schema):
        raise FitFileError(f"reference rows of shape {shape}", f"({len(schema)}, rows)")
    values = np.ascontiguousarray(file.array(_at("reference_values")), np.float64)
    observed = np.ascontiguousarray(file.array(_at("reference_observed"), shape).astype(bool))
    table = Table(schema, values, observed)
    check.check_cells(table)
    return table
