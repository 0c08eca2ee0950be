"""How much columns tell about each other: their mutual information under each draw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesjpt.errors import QueryError
from bayesjpt.kernels.pairs import fill_information
from bayesjpt.kernels.slots import apart, make_slots
from bayesjpt.posterior.answer import PlainAnswer, query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.cells_of_columns import first_cells, is_exact
from bayesjpt.queries.condition import given_posterior
from bayesjpt.queries.resolve import names_of, position_of
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.table.schema import Schema

DEPENDENCE_TOLERANCE = 3e-4
"""Nats by which two estimates of what a column's values tell may differ; the better one is then off by 1e-4 at most."""

DEPENDENCE_SPLITS = 160
"""Splits of a column's cells at most, each of which makes four quarters more."""

MAX_DEPENDENCE_BYTES = 2**28
"""Bytes of the table of slots that rows take together: 5,792 slots, such as 100 columns in 57 components."""


@query_method
def dependence(
    post: Posterior,
    columns: Sequence[str] | None = None,
    *,
    normalised: bool = False,
    given=None,
    max_draws: int | None = None,
    tolerance: float = DEPENDENCE_TOLERANCE,
) -> PlainAnswer:
    """Return the mutual information of every two columns under each draw, in nats.

    It is 0 where two columns are independent, and exactly 0 where the structure keeps them apart. The spread over draws
    is its credible interval given the learned structure and schema; it leaves their uncertainty out and is usually too
    narrow. A learner that tests for dependence sets small values to 0 by not joining columns.

    Parameters
    ----------
    post : Posterior
    columns : sequence of str, optional
        Two at least; all of them by default.
    normalised : bool
        The informational coefficient of correlation, sqrt(1 - exp(-2 I)), in place of I: between 0 and 1, and the
        absolute correlation of two columns that are normal together. Columns of labels do not reach 1; two labels of
        one half each reach 0.87.
    given : optional
        An event (text or object) or a mapping from columns to values: the dependence that is left given it.
    max_draws : int, optional
        At most so many draws, spread evenly over each chain, in place of all.
    tolerance : float
        Nats by which two estimates of what a column's values tell may differ, positive: larger is coarser and quicker.

    Returns
    -------
    DataArray, dims (chain, draw, feature, feature_other)
        Symmetric; NaN for a column with itself. The coordinate ``error_bound``, dims (feature, feature_other), says by
        how much an answer may be off in nats, normalised or not.

    Raises
    ------
    QueryError
        For fewer than two columns, unknown ones, one that is named twice; for rows as evidence; for circuits with too
        many slots; for a tolerance that is not positive.
    EvidenceError
        For impossible evidence.

    Notes
    -----
    Values are sorted into cells, and the tables of any two columns' cells are summed. Labels and whole numbers of a
    short range are cells by themselves: there the answer is exact. Real columns are cut under each draw, finer where
    halving cells does not win what it does in smooth places, and sums over cells, halves and quarters are carried on to
    the limit. ``error_bound`` is the largest difference, over draws, from the same with cells twice as wide, and a
    fifth of the tolerance for each such column: two or three ten-thousandths of a nat in all at the default; an
    estimate, which a leaf far narrower than others may exceed. See docs/explanation/dependence.md.

    Cost: a few tenths of a millisecond a pair and draw.

    References
    ----------
    Linfoot (1957). An informational measure of correlation.

    Romberg (1955). Vereinfachte numerische Integration.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame)
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> found = bj.Posterior.from_circuit(circuit, table.schema).dependence()
    >>> found.sizes
    Frozen({'chain': 1, 'draw': 1, 'feature': 2, 'feature_other': 2})
    >>> found.sel(feature="kind", feature_other="size").round(1).values.tolist()
    [[0.5]]
    """
    positions = _positions(columns, post.schema)
    if not 0.0 < tolerance < np.inf:
        raise QueryError(f"tolerance = {tolerance!r}", "a positive number of nats")
    kept, some = some_draws(post, max_draws)
    conditioned = given_posterior(some, given)
    values, doubt = _information(conditioned, positions, tolerance)
    if normalised:
        # what is carried on to the limit may end a hair below 0
        values = np.sqrt(-np.expm1(-2.0 * np.maximum(values, 0.0)))
    names = [post.schema.names[position] for position in positions]
    return PlainAnswer(
        "correlation" if normalised else "mutual_information",
        ("chain", "draw", "feature", "feature_other"),
        values.reshape(conditioned.n_chain, conditioned.n_draw, *values.shape[1:]),
        coords=conditioned.coords()
        | {
            "draw": kept,
            "feature": names,
            "feature_other": names,
            "error_bound": (("feature", "feature_other"), doubt.max(axis=0)),
        },
        attrs={} if normalised else {"units": "nats"},
    )


@pooled
def _information(post: Posterior, positions: Sequence[int], tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return mutual information, and bounds of its error, float64 (n_draw, n_column, n_column) each."""
    plan, params = post.plan(), post.flat()
    slots = make_slots(plan, positions)
    if 8 * slots.node.size**2 > MAX_DEPENDENCE_BYTES:
        raise QueryError(
            f"{slots.node.size} slots of {len(positions)} columns",
            f"at most {int((MAX_DEPENDENCE_BYTES / 8) ** 0.5)}",
            "Name fewer columns.",
        )
    separate = apart(plan, positions)
    values, doubt = np.empty((2, params.theta.shape[0], len(positions), len(positions)))
    start = first_cells(post.schema, positions)
    limits = tolerance, DEPENDENCE_SPLITS
    fill_information(plan, slots, start, separate, limits, params, values, doubt)
    n_cut = np.array([float(not is_exact(post.schema.columns[position])) for position in positions])
    doubt += np.where(separate, 0.0, 0.2 * tolerance * (n_cut + n_cut[:, None]))
    return values, doubt


def _positions(columns: Sequence[str] | None, schema: Schema) -> list[int]:
    names = schema.names if columns is None else names_of(columns)
    for name in names:
        if list(names).count(name) > 1:
            raise QueryError(f"column {name!r} named twice")
    positions = [position_of(name, schema) for name in names]
    if len(positions) < 2:
        raise QueryError(f"columns {', '.join(map(repr, names)) or 'none'}", "two columns at least")
    return positions
