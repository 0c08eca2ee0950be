"""The DataArray that verbs hand out: ArviZ's plots open it as they open draws."""

from __future__ import annotations

import xarray as xr


class Answer(xr.DataArray):
    """A DataArray that also holds itself as the group ``posterior``, where ArviZ's plots look for what they draw.

    Examples
    --------
    >>> answer = Answer([[0.25, 0.75]], dims=("chain", "draw"), name="probability")
    >>> list(answer["posterior"].data_vars), float(answer.mean())
    (['probability'], 0.5)
    """

    __slots__ = ()

    def __getitem__(self, key):
        """Return a part, a coordinate, or for ``posterior`` the Dataset of this array alone."""
        if isinstance(key, str) and key == "posterior":
            return self.to_dataset(name=self.name or "x")
        return super().__getitem__(key)
