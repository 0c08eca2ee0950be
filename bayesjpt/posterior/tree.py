"""Arrays and texts of a DataTree in memory, by the words that `bayesjpt.posterior.hdf5.SafeFile` has for a file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.errors import FitFileError

if TYPE_CHECKING:
    import xarray as xr


class Tree:
    """A DataTree to be read as if it came from anywhere.

    Parameters
    ----------
    tree : xarray.DataTree
    """

    def __init__(self, tree: xr.DataTree):
        self._tree = tree

    def names(self, path: str) -> list[str]:
        """Return the names of the variables of a group; none where there is no such group."""
        return [str(name) for name in self._tree[path].data_vars] if path in self._tree.children else []

    def has(self, path: str) -> bool:
        """Return whether there is a group or variable of a path."""
        group, _, name = path.rpartition("/")
        return path in self._tree.children if not group else name in self.names(group)

    def shape(self, path: str) -> tuple[int, ...]:
        """Return the shape of an array of numbers."""
        return self._array(path).shape

    def array(self, path: str, shape: Sequence[int] | None = None) -> np.ndarray:
        """Return an array of numbers, of a shape that it must have where one is given.

        Raises
        ------
        FitFileError
            Where there is none, or one of another shape or type.
        """
        array = self._array(path).to_numpy()
        if array.dtype.kind not in "iufb":
            raise FitFileError(f"array {path!r} of type {array.dtype}", "numbers")
        if shape is not None and array.shape != tuple(shape):
            raise FitFileError(f"array {path!r} of shape {array.shape}", f"{tuple(shape)}")
        return array

    def text(self, path: str, name: str) -> str:
        """Return an attribute of a group that is a text.

        Raises
        ------
        FitFileError
            Where there is none.
        """
        value = self._tree[path].attrs.get(name) if path in self._tree.children else None
        if not isinstance(value, str):
            raise FitFileError(f"no attribute {name!r} of {path!r}", "a text")
        return value

    def json(self, path: str, name: str) -> Any:
        """Return what an attribute says in JSON."""
        return json.loads(self.text(path, name))

    def dims(self, path: str, names: Sequence[str]) -> bool:
        """Return whether the axes of an array have some names."""
        return self._array(path).dims == tuple(names)

    def _array(self, path: str) -> xr.DataArray:
        if not self.has(path):
            raise FitFileError(f"no array {path!r}", "a group of draws with it")
        group, _, name = path.rpartition("/")
        return self._tree[group][name]  # pyright: ignore[reportReturnType] - a variable, since has() found it
