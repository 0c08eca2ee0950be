"""Which sub-population each row belongs to, and which rows belong together whatever sub-populations are called."""

from __future__ import annotations

from typing import Any

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.paths import begins_with_split, regions
from bayesjpt.circuit.sub_populations import above, sub_populations
from bayesjpt.errors import QueryError
from bayesjpt.kernels.passes import make_graph, numbers_in
from bayesjpt.kernels.path_probability import Targets
from bayesjpt.kernels.slot_shares import fill_slot_shares
from bayesjpt.posterior.answer import PlainAnswer, query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.evidence import as_rows
from bayesjpt.queries.given import refuse_impossible_rows, row_blocks
from bayesjpt.queries.paths import conditions
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.table.table import Table

MAX_PAIRED_ROWS = 10_000
"""Rows of a matrix of pairs: 763 MiB."""


_BYTES_AT_ONCE = 2**26
"""Responsibilities of some draws that are multiplied together: 64 MB."""


@query_method
def membership(post: Posterior, rows) -> PlainAnswer:
    """Return the responsibility of each sub-population for each row, under each draw: P(sub-population given the row).

    A sub-population is where a row comes to through the sums nearest to the root of the circuit: a component of the
    mixture, or a leaf of a tree (`bayesjpt.circuit.sub_populations`; `explain` splits these further where an answer
    asks for it). They are the same under all draws of a structure, but what number 3 is may differ from chain to chain,
    and from draw to draw, of a mixture: what does not depend on numbers is `comembership`.

    Parameters
    ----------
    post : Posterior
        Of one structure.
    rows : Table or data frame
        Missing cells are marginalised; a row without observed cells has the weights of the sub-populations.

    Returns
    -------
    DataArray, dims (chain, draw, obs_id, sub_population)
        Adds up to 1 over sub-populations. Of a tree, the coordinate ``conditions`` says which rows these are.

    Raises
    ------
    QueryError
        For several structures, each of which has sub-populations of its own.
    EvidenceError
        For a row that is impossible under a draw.
    SchemaError, TableError
        For rows that do not fit the schema.

    Notes
    -----
    Exact: the share of the root's density that runs through a node, one pass up and one down. Nothing is stored with
    the draws, so it can be asked of rows that were not fitted as well.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_jpt(table, np.random.default_rng(0), features=["kind"])
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> found = post.membership(pd.DataFrame({"kind": ["a", "b"]}))
    >>> found[0, 0].round(2).values.tolist(), found["conditions"].values.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], ["kind = 'a'", "kind != 'a'"])
    """
    n_structure = len(post.by_structure())
    if n_structure > 1:
        raise QueryError(
            f"a posterior of {n_structure} structures, each with sub-populations of its own",
            "one structure",
            "Take one of post.by_structure(), or ask post.comembership(rows) which rows belong together.",
        )
    return _membership(post, as_rows(rows, post.schema))


@query_method
def comembership(post: Posterior, rows, *, max_draws: int | None = None) -> PlainAnswer:
    """Return the probability that two rows belong to the same sub-population, averaged over draws and structures.

    It does not depend on how sub-populations are numbered, so it compares all draws of all chains and structures: the
    posterior similarity matrix of model-based clustering.

    Parameters
    ----------
    post : Posterior
    rows : Table or data frame
    max_draws : int, optional
        Draws to look at, evenly spaced; all unless given.

    Returns
    -------
    DataArray, dims (obs_id, obs_id_other)
        Symmetric, 1 on the diagonal.

    Raises
    ------
    QueryError
        For more rows than a matrix of pairs is made of.
    EvidenceError, SchemaError, TableError
        As `membership`.

    Notes
    -----
    Given a draw, rows are independent: the mean over draws of sum over k of P(k given the one) P(k given the other).
    Cost: n_row^2 times the sub-populations of all draws.

    References
    ----------
    Fritsch and Ickstadt (2009). Improved Criteria for Clustering Based on the Posterior Similarity Matrix. Bayesian
    Analysis 4(2).

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_jpt(table, np.random.default_rng(0), max_leaves=2)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> post.comembership(table.take([0, 1, 2])).round(2).values.tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    table = as_rows(rows, post.schema)
    if table.n_row > MAX_PAIRED_ROWS:
        raise QueryError(
            f"{table.n_row:,} rows, a matrix of {8 * table.n_row**2 / 2**30:.1f} GiB",
            f"at most {MAX_PAIRED_ROWS:,}",
            "Take some of them, for example frame.sample(2000, random_state=1).",
        )
    _, few = some_draws(post, max_draws)
    together = np.zeros((table.n_row, table.n_row))
    for structure in few.by_structure():
        n_group = len(sub_populations(structure.circuit, len(structure.schema)))
        n_draw = structure.n_chain * structure.n_draw
        n_at_once = max(_BYTES_AT_ONCE // (8 * table.n_row * n_group), 1)
        for lo in range(0, n_draw, n_at_once):
            found = _responsibilities(structure, table, slice(lo, lo + n_at_once))
            found = found.reshape(-1, table.n_row)
            together += found.T @ found
    together /= few.n_chain * few.n_draw
    np.fill_diagonal(together, 1.0)
    number = np.arange(table.n_row)
    coords = {"obs_id": number, "obs_id_other": number}
    return PlainAnswer("comembership", ("obs_id", "obs_id_other"), together, coords)


@pooled
def _membership(post: Posterior, rows: Table) -> PlainAnswer:
    """Return the answer for one structure."""
    found = _responsibilities(post, rows, slice(None)).transpose(0, 2, 1)
    coords: dict[str, Any] = {
        **post.coords(),
        "obs_id": np.arange(rows.n_row),
        "sub_population": np.arange(found.shape[2]),
    }
    if begins_with_split(post.circuit):
        coords["conditions"] = ("sub_population", names_of_sub_populations(post))
    values = found.reshape(post.n_chain, post.n_draw, *found.shape[1:])
    return PlainAnswer("membership", ("chain", "draw", "obs_id", "sub_population"), values, coords)


def names_of_sub_populations(post: Posterior) -> list[str]:
    """Return what the sub-populations of one structure are called: a tree's by their conditions, others by numbers."""
    nodes = sub_populations(post.circuit, len(post.schema))
    if not begins_with_split(post.circuit):
        return [str(number) for number in range(len(nodes))]
    return [conditions(region, post.schema) for region in regions(post.circuit, nodes)]


def _responsibilities(post: Posterior, rows: Table, which: slice) -> np.ndarray:
    """Return float64 (n_draw, n_sub_population, n_row) under some draws of one structure, counted over all chains."""
    plan, flat = post.plan(), post.flat()
    params = Params(*(array[which].copy() for array in flat))  # one signature, however they came
    targets = _targets_of(post)
    found = np.empty((params.theta.shape[0], targets.slot.size, rows.n_row))
    for part_of, part, cells, n_block in row_blocks(plan, rows):
        part_shares = np.empty((*found.shape[:2], part.n_row))
        fill_slot_shares(plan, cells, targets, params, n_block, part_shares)
        found[..., part_of] = part_shares
    impossible = found.sum(axis=1) == 0.0
    if impossible.any():
        log_evidence = np.zeros((flat.theta.shape[0], rows.n_row))
        log_evidence[which][impossible] = -np.inf
        refuse_impossible_rows(post, rows, log_evidence, False)
    return found


def _targets_of(post: Posterior) -> Targets:
    """Return the nodes from the root to the sub-populations, which take the place of slots."""
    nodes = sub_populations(post.circuit, len(post.schema))
    inside = np.zeros(post.circuit.n_node, bool)
    inside[above(post.circuit, nodes)] = True
    graph = make_graph(post.plan(), inside)
    nothing = np.empty(0, np.int32)
    return Targets(
        graph=graph,
        slot_ptr=np.array([0, len(nodes)], np.int32),
        slot=numbers_in(graph, post.circuit.n_node)[nodes],
        part_ptr=np.zeros(len(nodes) + 1, np.int32),
        part=nothing,
        part_edge=nothing,
    )
