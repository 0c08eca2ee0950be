"""Missing covariates, drawn from a joint posterior of them given the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesjpt.errors import QueryError
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.sample import sample
from bayesjpt.table.table import Table, as_table

N_IMPUTATION = 10
"""Of each row of a question with missing covariates; draws take turns with them."""


def check_joint(joint: Posterior, names: Sequence[str]) -> None:
    """Raise `QueryError` for what is no posterior, or one without some covariate."""
    remedy = "Fit it: bj.fit(covariates)."
    if not isinstance(joint, Posterior):
        raise QueryError(f"a {type(joint).__name__} to draw missing covariates from", "a Posterior of them", remedy)
    lacking = [name for name in names if name not in joint.schema.names]
    if lacking:
        raise QueryError(f"a posterior without the covariate {lacking[0]!r}", "one of all covariates", remedy)


def imputed(joint: Posterior, table: Table, names: Sequence[str], n: int, rng: np.random.Generator) -> list[Table]:
    """Return n versions of rows whose missing covariates are drawn given their others; the rows alone where none is.

    Parameters
    ----------
    joint : Posterior
    table : Table
    names : sequence of str
        The covariates.
    n : int
    rng : numpy.random.Generator
    """
    index = [table.schema.index(name) for name in names]
    if table.observed[index].all():
        return [table]
    frame = table.to_frame()
    gaps = np.flatnonzero(~table.observed[index].all(axis=0))
    known = as_table(frame[[name for name in joint.schema.names if name in names]].iloc[gaps], schema=joint.schema)
    drawn = sample(joint, n, known, rng=rng).to_frame()
    out = []
    for version in range(n):
        own = as_table(drawn.iloc[version::n][list(names)], schema=table.schema)
        values, observed = table.values.copy(), table.observed.copy()
        for k in index:
            lacks = ~table.observed[k, gaps]
            values[k, gaps[lacks]] = own.values[k, lacks]
            observed[k] = True
        out.append(Table(table.schema, values, observed, table.unseen))
    return out
