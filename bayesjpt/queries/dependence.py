"""How much columns tell about each other: their mutual information under each draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from bayesjpt.circuit.arrays import Params
from bayesjpt.defaults import DEPENDENCE_DRAWS, MAX_DEPENDENCE_BYTES
from bayesjpt.errors import QueryError
from bayesjpt.kernels.pairs import apart, fill_information, make_cuts, make_slots
from bayesjpt.posterior.draws import Posterior, verb
from bayesjpt.queries.cells_of_columns import column_cuts
from bayesjpt.queries.condition import given_posterior
from bayesjpt.queries.resolve import position_of
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.table.schema import Schema


@verb
def dependence(
    post: Posterior,
    columns: Sequence[str] | None = None,
    *,
    normalised: bool = False,
    given=None,
    max_draws: int | None = None,
) -> xr.DataArray:
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

    Returns
    -------
    DataArray, dims (chain, draw, feature, feature_other)
        Symmetric; NaN for a column with itself. The coordinate ``error_bound``, dims (feature, feature_other), says how
        much is lost at most in nats, normalised or not.

    Raises
    ------
    QueryError
        For fewer than two columns, unknown ones, one that is named twice; for rows as evidence; for circuits with too
        many slots.
    EvidenceError
        For impossible evidence.

    Notes
    -----
    Values are sorted into cells, and the tables of any two columns' cells are summed. Labels and whole numbers of a
    short range are cells by themselves: there the answer is exact. Otherwise cells lose information, never add any.
    What they lose is bounded by what they lose about the slots that values of the other column come from; they are made
    finer until each column loses less than 5e-4 nats on average over a few draws. ``error_bound`` is the largest loss
    under these and as many others, estimated by quartering every cell: about 1e-3 nats, more where chains disagree. See
    docs/explanation/dependence.md.

    Cost: a tenth to a third of a millisecond a pair and draw.

    References
    ----------
    Linfoot (1957). An informational measure of correlation.

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
    kept, some = some_draws(post, max_draws)
    asked = given_posterior(some, given)
    plan, params = asked.plan(), asked.flat()
    slots = make_slots(plan, positions)
    if 8 * slots.node.size**2 > MAX_DEPENDENCE_BYTES:
        raise QueryError(
            f"{slots.node.size} slots of {len(positions)} columns",
            f"at most {int((MAX_DEPENDENCE_BYTES / 8) ** 0.5)}",
            "Name fewer columns.",
        )
    separate = apart(plan, positions)
    cuts, lost = column_cuts(*_looked_at(asked), positions)
    values = np.empty((params.theta.shape[0], len(positions), len(positions)))
    fill_information(plan, slots, make_cuts(cuts), separate, params, values)
    if normalised:
        values = np.sqrt(-np.expm1(-2.0 * values))
    bound = np.where(separate, 0.0, lost + lost.T)
    np.fill_diagonal(bound, np.nan)
    names = [post.schema.names[position] for position in positions]
    return xr.DataArray(
        values.reshape(asked.n_chain, asked.n_draw, *values.shape[1:]),
        dims=("chain", "draw", "feature", "feature_other"),
        coords={
            "chain": np.arange(post.n_chain),
            "draw": kept,
            "feature": names,
            "feature_other": names,
            "error_bound": (("feature", "feature_other"), bound),
        },
        name="correlation" if normalised else "mutual_information",
        attrs={} if normalised else {"units": "nats"},
    )


def _positions(columns: Sequence[str] | None, schema: Schema) -> list[int]:
    names = schema.names if columns is None else [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if list(names).count(name) > 1:
            raise QueryError(f"column {name!r} named twice")
    positions = [position_of(name, schema) for name in names]
    if len(positions) < 2:
        raise QueryError(f"columns {', '.join(map(repr, names)) or 'none'}", "two columns at least")
    return positions


def _looked_at(post: Posterior) -> tuple[Posterior, Posterior]:
    """Return some draws of all chains, and others; the same where there are few."""
    flat = post.flat()
    n = flat.theta.shape[0]
    found = np.unique(np.linspace(0, n - 1, 2 * DEPENDENCE_DRAWS).round().astype(np.int64))
    parts = [found[0::2], found[1::2] if found.size > 1 else found]
    one, other = (Params(flat.log_weight[part][None], flat.theta[part][None]) for part in parts)
    return replace(post, params=one, sample_stats={}, reference=None), replace(post, params=other, sample_stats={})
