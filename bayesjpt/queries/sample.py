"""Rows drawn from the posterior, with or without evidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesjpt.errors import QueryError
from bayesjpt.posterior.answer import query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.complete import (
    as_rng,
    check_count,
    complete,
    complete_within,
    empty_rows,
    even_draws,
    limits_of,
)
from bayesjpt.queries.condition import condition
from bayesjpt.queries.evidence import as_evidence
from bayesjpt.table.possible import possible_values
from bayesjpt.table.table import Table

LABELS = ("seen", "all")


@query_method
def sample(
    post: Posterior,
    n: int,
    given: Any = None,
    *,
    rng: int | np.random.Generator | None = None,
    recorded: bool = True,
    labels: str = "seen",
) -> Table:
    """Return rows drawn from the posterior: each from a draw of its own, all draws equally often up to one.

    Parameters
    ----------
    post : Posterior
    n : int
        Rows; with rows as evidence, rows for each of them.
    given : optional
        An event (text or object): rows that lie in it. A mapping from columns to values, a Table or a data frame: `n`
        completions of each row, its observed cells as they are, the others drawn jointly from their conditional.
    rng : int, numpy.random.Generator or None
        A seed, a generator, or None for other rows each time.
    recorded : bool
        Round real columns to the grid on which they were recorded, as the table's rows are. A value whose grid point
        lies outside the event takes the next one inside, or stays as it is where there is none. False: draws from the
        densities themselves.
    labels : str
        ``seen``: labels of the training table and numbers up to the ends of their column, as in `impute` (but for what
        likelihoods leave above zero where no training value is); rows follow the distribution given that no drawn cell
        is "other" or beyond these ends, and that a column of one value keeps it, unless what is given rules that out.
        ``all``: of the model as it is: "other" is drawn too, as often as the posterior says that a new row has a label
        of its own, and a normal likelihood may give a value below zero where the table has none.

    Returns
    -------
    Table
        Without missing cells, in the user's units, labels as codes (`Table.to_frame` has them as labels). With rows as
        evidence, the `n` completions of a row stand side by side.

    Raises
    ------
    EvidenceError
        For an event of probability zero, or a row that is impossible under a draw; for evidence that leaves no
        probability to labels of the training table.
    QueryError
        For `n` below 1, another word for `labels`, and evidence that does not fit the schema.
    SchemaError, TableError
        For rows that do not fit the schema.

    Notes
    -----
    Draws of the posterior keep their weight whatever is given: evidence about a new row says nothing of the rows that
    were fitted. So rows follow the mean over draws of the conditionals.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> rows = post.sample(100, "kind = 'a' and size > 2", rng=np.random.default_rng(2))
    >>> bool((rows.to_frame()["kind"] == "a").all() and (rows.values[1] > 2).all())
    True
    >>> post.sample(3, {"kind": "b"}, rng=np.random.default_rng(2)).n_row
    3
    """
    n = check_count(n, "n")
    rng = as_rng(rng)
    if labels not in LABELS:
        raise QueryError(f"labels={labels!r}", "'seen' or 'all'")
    evidence = as_evidence(given, post.schema)
    n_draw = post.n_chain * post.n_draw
    if evidence.rows is None:
        if not evidence.is_certain:
            post = condition(post, given)
        rows = empty_rows(post.schema, n)
        draw = even_draws(n, n_draw, rng)
    else:
        rows = evidence.rows.take(np.repeat(np.arange(evidence.rows.n_row), n))
        draw = np.concatenate([even_draws(n, n_draw, rng) for _ in range(evidence.rows.n_row)])
    if labels == "seen":
        bounds = possible_values(post.schema, keep_sign=False)
        values = complete_within(post, rows, draw, rng, bounds=bounds, recorded=recorded, one_row=evidence.one_row)
    else:
        limits = limits_of(post.schema, bounds=None, recorded=recorded)
        values = complete(post, rows, draw, rng, limits=limits, one_row=evidence.one_row)
    return Table(post.schema, values, np.ones(values.shape, bool), rows.unseen)
