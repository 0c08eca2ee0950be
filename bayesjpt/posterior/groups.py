"""Draws of one group of a block whose rows have groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.errors import ModelError
from bayesjpt.table.row_labels import written_label

if TYPE_CHECKING:
    import xarray as xr

_GROUP = "group"
_OF_GROUPS = f"_{_GROUP}_sum_weights", f"_{_GROUP}_split_weights"
"""What the block's name is followed by in the names of variables that each group has: `bayesjpt.model.groups`."""


def of_group(idata: xr.DataTree, group: Any, name: str | None = None) -> xr.DataTree:
    """Return draws in which the weights that groups share are replaced by those of one group.

    Parameters
    ----------
    idata : xarray.DataTree
        Draws of a model.
    group : label
    name : str, optional
        Of the block, where several have groups.

    Raises
    ------
    ModelError
        For draws without such a block, no name where there are several, and an unknown group.
    """
    import xarray as xr

    if not hasattr(idata, "children") or "posterior" not in idata.children:
        raise ModelError(f"draws of type {type(idata).__name__}, with group={group!r}", "what pm.sample returned")
    draws = idata["posterior"].to_dataset()
    full_names = [str(full) for full in draws.data_vars if str(full).endswith(_OF_GROUPS)]
    blocks = sorted({full.removesuffix(end) for full in full_names for end in _OF_GROUPS if full.endswith(end)})
    if name is None and len(blocks) > 1:
        raise ModelError(f"blocks {', '.join(blocks)} with groups in these draws", "name= one of them")
    if not blocks:
        raise ModelError(f"group={group!r} of draws without a block whose rows have groups", "no group")
    name = name or blocks[0]
    if name not in blocks:
        raise ModelError(f"no block {name!r} whose rows have groups", f"one of {', '.join(blocks)}, or no group")
    dim = f"{name}_{_GROUP}"
    labels, wanted = _labels(draws[dim].to_numpy(), group)
    if wanted not in labels:
        raise ModelError(f"no group {group!r} of block {name!r}", f"one of {', '.join(map(repr, labels))}")
    of_one_group = {
        full.replace(f"{name}_{_GROUP}_", f"{name}_", 1): draws[full].isel({dim: labels.index(wanted)}, drop=True)
        for full in full_names
        if full.startswith(f"{name}_{_GROUP}_")
    }
    groups = {path: child.to_dataset() for path, child in idata.children.items()}
    return xr.DataTree.from_dict(groups | {"posterior": draws.assign(of_one_group)})


def _labels(values: np.ndarray, group: Any) -> tuple[list[Any], Any]:
    """Return the labels of groups as users write them, and the one that is asked for in the same spelling."""
    if values.dtype.kind != "M":
        return values.tolist(), written_label(group)
    try:
        wanted = str(np.datetime64(group).astype("datetime64[us]"))
    except (ValueError, TypeError):  # no date: no group is called so
        wanted = group
    return [str(label) for label in values.astype("datetime64[us]")], wanted
