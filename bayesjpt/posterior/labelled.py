"""The DataArray that query methods return: ArviZ's plots take it as they take draws, notebooks show its intervals."""

from __future__ import annotations

import html

import numpy as np
import xarray as xr

from bayesjpt.defaults import INTERVAL

_DRAWS = ("chain", "draw")

_N_SHOWN = 20
"""Answers that a notebook shows: as many lines as are read at a glance."""


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

    def _repr_html_(self) -> str:
        """Return means and intervals over draws as a table, and the array itself, folded."""
        whole = super()._repr_html_()
        if not set(_DRAWS) <= set(self.dims) or not np.issubdtype(self.dtype, np.number) or not self.size:
            return whole
        return f"{_table(self)}<details><summary>all draws</summary>{whole}</details>"


def _table(answer: xr.DataArray) -> str:
    """Return an HTML table of an answer's mean and interval, a row for each thing that was asked."""
    rest = [str(dim) for dim in answer.dims if dim not in _DRAWS]
    values = answer.transpose(*_DRAWS, *rest).to_numpy()
    n_draw = values.shape[0] * values.shape[1]
    flat = values.reshape(n_draw, -1).astype(np.float64)
    index = list(np.ndindex(values.shape[2:]))
    # of a column with itself, or where there is no answer, nothing is shown
    known = [(k, place) for k, place in enumerate(index) if not np.isnan(flat[:, k]).any()]
    names = [answer[dim].to_numpy() if dim in answer.coords else np.arange(answer.sizes[dim]) for dim in rest]
    head = [*rest, "mean", f"{INTERVAL:.0%} interval"]
    lines = []
    for k, place in known[:_N_SHOWN]:
        lo, hi = np.quantile(flat[:, k], [0.5 - 0.5 * INTERVAL, 0.5 + 0.5 * INTERVAL])
        numbers = [f"{flat[:, k].mean():.4g}", f"{lo:.4g} to {hi:.4g}"]
        lines.append([*(str(labels[i]) for labels, i in zip(names, place, strict=True)), *numbers])
    more = f", {len(known) - _N_SHOWN} more" if len(known) > _N_SHOWN else ""
    units = f", in {answer.attrs['units']}" if "units" in answer.attrs else ""
    caption = f"{answer.name or 'answer'}{units}: {n_draw} draws{more}"
    return html_table(head, lines, caption)


def html_table(head: list[str], lines: list[list[str]], caption: str) -> str:
    """Return a table as notebooks show it; all of it is escaped.

    Examples
    --------
    >>> html_table(["x"], [["<1"]], "few").count("&lt;1")
    1
    """

    def row(cells: list[str], tag: str, attributes: str = "") -> str:
        return f"<tr>{''.join(f'<{tag}{attributes}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row(line, "td") for line in lines)
    return (
        f"<table><caption>{html.escape(caption)}</caption><thead>{row(head, 'th', ' scope="col"')}</thead>"
        f"<tbody>{body}</tbody></table>"
    )
