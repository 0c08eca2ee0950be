"""Saved fits: one netCDF file, ArviZ's groups for the draws and one group of ours; no pickle anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import xarray as xr

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import freeze
from bayesjpt.circuit.check import check_circuit
from bayesjpt.errors import BayesjptError, FitFileError
from bayesjpt.families import registry
from bayesjpt.posterior.convert import from_datatree, to_datatree
from bayesjpt.posterior.draws import Posterior, check_format
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table

FORMAT = "bayesjpt fit 1"
_GROUP = "bayesjpt"


def save(post: Posterior, path) -> None:
    """Write a fit; see `Posterior.save`.

    Raises
    ------
    FitFileError
        Where the file cannot be written.
    """
    tree = to_datatree(post)
    arrays = {name: ((f"{name}_dim",), array) for name, array in post.circuit._asdict().items()}
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
    try:
        tree.to_netcdf(Path(path), engine="h5netcdf")
    except OSError as error:
        raise FitFileError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


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
    try:
        tree = xr.open_datatree(path, engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        raise FitFileError(f"{path.name} is not a netCDF file ({type(error).__name__})", "a saved fit") from None
    with tree:
        if _GROUP not in tree.children:
            raise FitFileError(f"{path.name} has no group {_GROUP!r}", "a file that Posterior.save wrote")
        group = tree[_GROUP].to_dataset().load()
        check_format(group.attrs.get("format"), FORMAT)
        try:
            schema = Schema.from_dict(json.loads(group.attrs["schema"]))
            circuit = _circuit(group, json.loads(group.attrs["families"]))
            check_circuit(circuit, len(schema))
            return from_datatree(
                tree,
                circuit,
                schema,
                reference=_reference(group, schema),
                settings=json.loads(group.attrs["settings"]),
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            if isinstance(error, BayesjptError):
                raise FitFileError(f"{path.name} is damaged: {error}") from None
            raise FitFileError(f"{path.name} is damaged ({type(error).__name__}: {error})") from None


def _circuit(group: xr.Dataset, names: list[str]) -> Circuit:
    arrays = {field: group[field].to_numpy() for field in Circuit._fields}
    numbers = np.array([registry.number(name) for name in names], np.int16)
    arrays["leaf_family"] = numbers[arrays["leaf_family"]]
    return freeze(Circuit(**arrays))


def _reference(group: xr.Dataset, schema: Schema) -> Table | None:
    if "reference_values" not in group:
        return None
    values = np.ascontiguousarray(group["reference_values"].to_numpy(), np.float64)
    return Table(schema, values, np.ascontiguousarray(group["reference_observed"].to_numpy().astype(bool)))
