"""Columns of rows predicted by draws, from what ``pm.sample`` returned: given the rows' other cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.errors import QueryError
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.complete import as_rng, complete_within
from bayesjpt.queries.resolve import position_of
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.table.possible import possible_values
from bayesjpt.table.row_labels import row_labels
from bayesjpt.table.table import Table, as_table, restored

if TYPE_CHECKING:
    import xarray as xr

AXES = ("chain", "draw", "obs_id")
_ROWS_AT_ONCE = 2**16


def predict(
    idata: Any,
    model: Any,
    frame: Any,
    targets: str | Sequence[str],
    *,
    name: str | None = None,
    rng: int | np.random.Generator | None = None,
    max_draws: int | None = None,
    group: Any = None,
) -> xr.Dataset:
    """Return columns of some rows drawn given the rows' other cells: one draw of each row for each posterior draw.

    ``pm.sample_posterior_predictive`` draws whole rows from nothing; this conditions on the cells that are known.

    Parameters
    ----------
    idata : xarray.DataTree
        What ``pm.sample`` returned.
    model : pm.Model or None
        The model of the draws; with None circuit and schema are those that travel with them.
    frame : Table or data frame
        Rows; cells of the targets are not looked at, and missing cells of other columns are not given.
    targets : str or sequence of str
        Columns, drawn jointly.
    name : str, optional
        Name of the block, where there are several.
    rng : int, numpy.random.Generator or None
        A seed, a generator, or None for other draws each time.
    max_draws : int, optional
        Draws of all chains that are used; None for all.
    group : optional
        Of a block of groups: the one that the rows belong to; None for a new one, by the weights that groups share.

    Returns
    -------
    xarray.Dataset
        A variable for each target, (chain, draw, obs_id), in the user's units: labels, dates and numbers as the table
        has them. ``obs_id`` is the index of a frame of pandas.

    Raises
    ------
    EvidenceError
        For a row that is impossible under a draw.
    QueryError
        For no target, or an unknown one.
    SchemaError, TableError
        For rows that do not fit the schema.
    ModelError, FitFileError
        As `Posterior.from_idata`.

    Notes
    -----
    Under each draw a row's missing cells have an exact joint distribution given its observed ones; drawn labels are
    labels of the training table, and drawn numbers lie in the support of their column.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=20), table.schema)
    >>> new = pd.DataFrame({"size": [0.5, 9.0]}, index=["first", "second"])
    >>> bj.predict(post.to_idata(), None, new, ["kind"], rng=1)["kind"].sel(obs_id="second").item()
    'b'
    """
    import xarray as xr

    post = Posterior.from_idata(idata, model, name, group=group)
    names = [targets] if isinstance(targets, str) else list(targets) if isinstance(targets, Iterable) else [targets]
    if not all(isinstance(target, str) for target in names):
        raise QueryError(f"targets {targets!r}", "names of columns")
    if not names:
        raise QueryError("no targets", "names of columns")
    taken = [str(target) for target in names if target in AXES]
    if taken:
        raise QueryError(f"target {taken[0]!r}, the name of an axis of the answer", "a column of another name")
    columns = [position_of(target, post.schema) for target in names]
    table = frame if isinstance(frame, Table) else as_table(frame, schema=post.schema, ignore_new=True)
    if table.schema != post.schema:
        raise QueryError("rows read under another schema than the draws'", "bj.as_table(rows, schema=post.schema)")
    rng = as_rng(rng)
    _, some = some_draws(post, max_draws)
    observed = table.observed.copy()
    observed[columns] = False
    rows = Table(post.schema, table.values, observed)
    drawn = _draws(some, rows, columns, rng)
    labels = row_labels(frame)
    index = np.arange(table.n_row) if labels is None else labels
    found = {}
    for number, values in zip(columns, drawn, strict=True):
        column = post.schema.columns[number]
        kind, cells = restored(column, values.ravel())
        dtype = {"number": np.float64, "integer": np.int64, "boolean": np.bool_, "datetime": "datetime64[us]"}
        # times of day stay numbers, of which means and intervals are taken
        array = values if kind == "time" else cells.astype(dtype.get(kind, np.str_)).reshape(values.shape)
        found[column.name] = (AXES, array)
    return xr.Dataset(found, some.coords() | {"obs_id": index})


def _draws(post: Posterior, rows: Table, columns: list[int], rng: np.random.Generator) -> np.ndarray:
    """Return drawn values, float64 (n_target, n_chain, n_draw, n_row)."""
    n_draw = post.n_chain * post.n_draw
    bounds = possible_values(post.schema)
    out = np.empty((len(columns), n_draw, rows.n_row))
    n_part = max(_ROWS_AT_ONCE // max(rows.n_row, 1), 1)
    for lo in range(0, n_draw, n_part):
        part = np.arange(lo, min(lo + n_part, n_draw))
        repeated = rows.take(np.tile(np.arange(rows.n_row), part.size))
        numbers = np.repeat(part, rows.n_row)
        values = complete_within(post, repeated, numbers, rng, bounds=bounds, recorded=True, one_row=False)
        out[:, part] = values[columns].reshape(len(columns), part.size, rows.n_row)
    return out.reshape(len(columns), post.n_chain, post.n_draw, rows.n_row)
