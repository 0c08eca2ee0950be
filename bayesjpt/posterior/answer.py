"""Query methods, and their answers: arrays with named axes on the inside, xarray objects on the outside.

      function f(post, ...)    a `PlainAnswer` or `PlainAnswers`, of NumPy alone
      method post.f(...)       the same as a DataArray or Dataset

Queries call each other, and commands call them, as functions: importing xarray and pandas takes a third of a second.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from bayesjpt.announced import announced
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.cells import dates
from bayesjpt.table.row_labels import row_labels
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class PlainAnswer:
    """An array whose axes have names.

    Parameters
    ----------
    name : str
    dims : tuple of str
    values : array
    coords : mapping
        Of dims, and (dims, values) of others, as xarray takes them.
    attrs : mapping
    of_dates : bool
        The values are days since 1970-01-01, and handed out as dates.
    """

    name: str
    dims: tuple[str, ...]
    values: np.ndarray
    coords: Mapping[str, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    of_dates: bool = False

    def to_xarray(self) -> xr.DataArray:
        """Return the same as a DataArray that ArviZ's functions take."""
        from bayesjpt.posterior.labelled import Answer

        values = dates(self.values) if self.of_dates else self.values
        return Answer(values, dims=self.dims, coords=dict(self.coords), name=self.name, attrs=dict(self.attrs))


@dataclass(frozen=True, eq=False)
class PlainAnswers:
    """Several arrays whose axes have names in common.

    Parameters
    ----------
    data : mapping from str to (dims, values)
    coords, attrs, of_dates : as in `PlainAnswer`
    """

    data: Mapping[str, tuple[Any, Any]]
    coords: Mapping[str, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    of_dates: bool = False

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the array of a name."""
        return self.data[name][1]

    def to_xarray(self) -> xr.Dataset:
        """Return the same as a Dataset."""
        import xarray as xr

        data = {name: (dims, dates(values) if self.of_dates else values) for name, (dims, values) in self.data.items()}
        return xr.Dataset(data, coords=dict(self.coords), attrs=dict(self.attrs))


ROWS, LABELS = "obs_id", "index"
"""The axis of the rows that a question is about, and a coordinate of it: the index of a frame of pandas, if it has one
of its own."""

_USED: set[str] = set()
"""Query methods that this process has used."""

_HANDED_OUT = {"PlainAnswer": "xr.DataArray", "PlainAnswers": "xr.Dataset"}


@overload
def labelled[**P](function: Callable[P, PlainAnswer]) -> Callable[P, xr.DataArray]: ...
@overload
def labelled[**P](function: Callable[P, PlainAnswers]) -> Callable[P, xr.Dataset]: ...
@overload
def labelled[**P, Result](function: Callable[P, Result]) -> Callable[P, Result]: ...
def labelled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that does the same and answers with xarray objects."""

    name, signature = function.__name__, inspect.signature(function)

    @functools.wraps(function)
    def method(*args, **kwargs):
        if name in _USED:
            return answered(*args, **kwargs)
        _USED.add(name)
        with announced(f"{name}: its first use compiles or loads what it needs", True):
            return answered(*args, **kwargs)

    def answered(*args, **kwargs):
        # beyond 1e308 an answer is infinite, which says more than a warning from inside; NaNs still warn
        with np.errstate(over="ignore"):
            answer = function(*args, **kwargs)
        if not isinstance(answer, PlainAnswer | PlainAnswers):
            return answer
        if ROWS in answer.coords:
            answer = with_labels_of_rows(answer, signature.bind(*args, **kwargs).arguments.values())
        return answer.to_xarray()

    returned = function.__annotations__["return"]
    method.__annotations__ = function.__annotations__ | {"return": _HANDED_OUT.get(returned, returned)}
    return method


def with_labels_of_rows[Answer: PlainAnswer | PlainAnswers](answer: Answer, arguments: Iterable[Any]) -> Answer:
    """Return an answer about the rows of a frame of pandas with its index beside the rows' numbers.

    The numbers stay the axis: xarray would join answers by labels, and tables have none. Of several tables among the
    arguments, such as reference rows, the first is what is asked about.
    """
    tables = [
        value
        for value in arguments
        if isinstance(value, Table) or (hasattr(value, "columns") and hasattr(value, "shape"))  # events have columns
    ]
    labels = row_labels(tables[0]) if tables else None
    number = answer.coords[ROWS]
    if labels is None or not np.array_equal(number, np.arange(labels.size)) or np.array_equal(labels, number):
        return answer
    of_rows = {f"{LABELS}{other}": (f"{ROWS}{other}", labels) for other in ("", "_other")}
    present = {name: (dim, given) for name, (dim, given) in of_rows.items() if dim in answer.coords}
    return replace(answer, coords={**answer.coords, **present})


def query_method[Method: Callable](function: Method) -> Method:
    """Register a function ``f(post, ...)`` as a method of Posterior, its plain answers `labelled`."""
    setattr(Posterior, function.__name__, labelled(function))
    return function
