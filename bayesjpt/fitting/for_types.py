"""What types of columns need, and no more: some rows of a large table, one learned structure, and no sweeps.

Types are judged given sub-populations. Those of a learner's estimate score as well as those of sampled draws
(docs/results.md); sweeps are for the shares of likelihoods, and for who asks for them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.defaults import STRUCTURES, TYPE_KEPT, TYPE_ROWS, TYPE_STRUCTURES, TYPE_TUNE
from bayesjpt.errors import SamplingError

if TYPE_CHECKING:
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.table.table import Table

_ROWS = 3
"""What a seed is for, beside structures and chains."""


def rows_for_types(table: Table, n: int | None, seed: int) -> Table:
    """Return at most so many rows, drawn at random without replacement and in their order; all where n is None.

    The schema stays that of all rows.
    """
    if n is None or table.n_row <= n:
        return table
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_ROWS,)))
    return table.take(np.sort(rng.choice(table.n_row, n, replace=False)))


def fit_for_types(
    table: Table, learner: str = "mspn", *, n_rows: int | None = TYPE_ROWS, seed: int | None = None, **options: Any
) -> Posterior:
    """Return the posterior of a few structures and sweeps, for shares of likelihoods and types.

    Parameters
    ----------
    table : Table
    learner : str
    n_rows : int or None
        Rows that are fitted at most, drawn at random; None for all.
    seed : int, optional
        Of rows and fit; a fresh one unless given.
    **options
        Of `bayesjpt.fit`, which say more than `defaults.TYPE_STRUCTURES` structures of `TYPE_TUNE` and `TYPE_KEPT`
        sweeps; with a limit of time, `defaults.STRUCTURES` of them.

    Raises
    ------
    LearnerError, SchemaError, ModelError, SamplingError
        As `bayesjpt.fit`.
    """
    from bayesjpt.fitting.facade import fit

    seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
    chosen = {name: value for name, value in options.items() if value is not None}
    short: dict[str, int] = {"n_structures": STRUCTURES if "time" in chosen else TYPE_STRUCTURES}
    if chosen.get("n_structures", TYPE_STRUCTURES) > 1:
        short |= {"tune": TYPE_TUNE, "draws": TYPE_KEPT}
    kept = rows_for_types(table, n_rows, seed) if seed >= 0 else table  # the fit refuses the seed by name
    return fit(kept, learner, seed=seed, **{**short, **chosen}).noted(n_row=kept.n_row)


def estimate_for_types(
    table: Table,
    learner: str = "mspn",
    *,
    n_rows: int | None = TYPE_ROWS,
    seed: int | None = None,
    families: Any = None,
    **options: Any,
) -> Posterior:
    """Return the learner's estimate alone, of some rows of a table: no sweeps are sampled.

    Parameters
    ----------
    table : Table
    learner : str
    n_rows : int or None
        Rows that are learned from at most, drawn at random; None for all.
    seed : int, optional
        Of rows and learner; a fresh one unless given.
    families : names, or mapping from column to names, optional
        The only likelihoods, as in `bayesjpt.fit`.
    **options
        Of the learner.

    Raises
    ------
    LearnerError
        For an unknown learner, or an option that makes no sense.
    SchemaError
        For families or columns that do not exist or do not fit.
    SamplingError
        For a seed that makes no sense.
    """
    from bayesjpt.fitting.learning import check_learners, check_options, learn, restricted
    from bayesjpt.posterior.convert import reference_of
    from bayesjpt.posterior.draws import Posterior

    check_learners([learner], 1)
    check_options(learner, table, options)
    seed = int(np.random.default_rng().integers(2**31)) if seed is None else seed
    if seed < 0:
        raise SamplingError(f"seed = {seed!r}", "a whole number of at least 0")
    rows = rows_for_types(table, n_rows, seed)
    circuit = learn(restricted(rows, families), learner, np.random.default_rng(seed), False, options)
    estimate = Posterior.from_circuit(circuit, table.schema)
    return replace(estimate, reference=reference_of(rows), settings={"n_row": rows.n_row})
