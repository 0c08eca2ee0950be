"""Saved fits: one netCDF file, ArviZ's groups for the draws and one group of ours; no pickle anywhere.

      /posterior, /sample_stats    draws as ArviZ reads them, weights as probabilities
      /bayesjpt                    circuit, reference rows and exact log weights as arrays; schema and settings as JSON

Every number carries a checksum (the format's own), and what is read is checked as if it came from anywhere.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import xarray as xr

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.build import freeze
from bayesjpt.errors import BayesjptError, FitFileError
from bayesjpt.families import registry
from bayesjpt.posterior import check
from bayesjpt.posterior.convert import from_datatree, to_datatree
from bayesjpt.posterior.draws import Posterior, check_format
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table

FORMAT = "bayesjpt fit 2"
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
        f"/{name}": {key: {"fletcher32": True} for key, array in group.data_vars.items() if array.size}
        for name, group in tree.children.items()
    }
    part = path.with_name(f"{path.name}.part{os.getpid()}")
    try:
        tree.to_netcdf(part, engine="h5netcdf", encoding=checksums)
        part.replace(path)
    except OSError as error:
        raise FitFileError(f"cannot write {str(path)!r}: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def _tree(post: Posterior) -> xr.DataTree:
    """Return what is written: `to_datatree` and our own group."""
    tree = to_datatree(post)
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        name: ((f"{name}_dim",), array) for name, array in post.circuit._asdict().items()
    }
    arrays["log_weight"] = (("chain", "draw", "edge"), post.params.log_weight)
    if post.reference is not None:
        arrays["reference_values"] = (("feature", "reference"), post.reference.values)
        arrays["reference_observed"] = (("feature", "reference"), post.reference.observed.astype(np.int8))
    tree[_GROUP] = xr.DataTree(
        xr.Dataset(
            arrays,
            attrs={
                "format": FORMAT,
                "schema": json.dumps(post.schema.to_dict()),
                "families": json.dumps([family.name for family in registry.FAMILIES]),
                "settings": json.dumps(dict(post.settings)),
            },
        )
    )
    return tree


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
        # h5netcdf leaves a half-built object that complains at its end where h5py cannot open the file
        h5py.File(path, "r").close()
        tree = xr.open_datatree(path, engine="h5netcdf", phony_dims="access")
    except _UNREADABLE as error:
        raise FitFileError(f"{path.name} cannot be read ({_first_line(error)})", "a saved fit") from None
    with tree:
        if _GROUP not in tree.children:
            raise FitFileError(f"{path.name} has no group {_GROUP!r}", "a file that Posterior.save wrote")
        try:
            group = tree[_GROUP].to_dataset().load()
            check_format(group.attrs.get("format"), FORMAT)
            return _posterior(tree, group)
        except _UNREADABLE as error:
            text = str(error) if isinstance(error, BayesjptError) else _first_line(error)
            raise FitFileError(f"{path.name} cannot be read: {text}") from None


_UNREADABLE = (OSError, RuntimeError, ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError)
"""What the libraries below raise for files that are damaged, or that hold something else."""


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"


def _posterior(tree: xr.DataTree, group: xr.Dataset) -> Posterior:
    schema = Schema.from_dict(json.loads(group.attrs["schema"]))
    check.check_columns(schema)
    circuit = freeze(check.checked_circuit(_arrays(group), schema))
    post = from_datatree(
        tree, circuit, schema, reference=_reference(group, schema), settings=json.loads(group.attrs["settings"])
    )
    log_weight = np.ascontiguousarray(group["log_weight"].to_numpy(), np.float64)
    if log_weight.shape != post.params.log_weight.shape or not np.allclose(
        np.exp(log_weight), np.exp(post.params.log_weight), rtol=0.0, atol=check.WEIGHT_TOLERANCE
    ):
        raise FitFileError("its two copies of the weights differ", "a file that Posterior.save wrote")
    post = replace(post, params=Params(log_weight, post.params.theta))
    check.check_draws(post.params, circuit, schema)
    return post


def _arrays(group: xr.Dataset) -> dict[str, np.ndarray]:
    """Return the circuit's arrays, families numbered as in this version."""
    arrays = {field: group[field].to_numpy() for field in Circuit._fields}
    numbers = np.array([registry.number(name) for name in json.loads(group.attrs["families"])])
    stored = arrays["leaf_family"]
    if stored.dtype.kind not in "iu" or stored.min() < 0 or stored.max() >= numbers.size:
        raise FitFileError("leaves of families that the file does not name", f"numbers 0 to {numbers.size - 1}")
    arrays["leaf_family"] = numbers[stored]
    return arrays


def _reference(group: xr.Dataset, schema: Schema) -> Table | None:
    if "reference_values" not in group:
        return None
    values = np.ascontiguousarray(group["reference_values"].to_numpy(), np.float64)
    observed = np.ascontiguousarray(group["reference_observed"].to_numpy().astype(bool))
    if values.ndim != 2 or values.shape[0] != len(schema) or values.shape != observed.shape:
        raise FitFileError(f"reference rows of shape {values.shape}", f"({len(schema)}, rows)")
    table = Table(schema, values, observed)
    check.check_cells(table)
    return table
