"""The most probable completion of rows: by max-product under each draw, and one answer for all draws together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.paths import regions, separating_column
from bayesjpt.circuit.plan import ATOM
from bayesjpt.defaults import MODE_ROWS, MODE_WIDTH, QUERY_WORK_BYTES
from bayesjpt.errors import QueryError
from bayesjpt.families import registry
from bayesjpt.kernels.modes import fill_modes, make_candidates
from bayesjpt.kernels.work import block_rows
from bayesjpt.posterior.answer import PlainAnswers, verb
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.complete import check_count, empty_rows, grid, highest_label
from bayesjpt.queries.condition import condition, constrain
from bayesjpt.queries.density import log_mass
from bayesjpt.queries.evidence import as_evidence
from bayesjpt.queries.given import log_sum, refuse_impossible_rows
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table


@verb
def mode(post: Posterior, given: Any = None, k: int = 1) -> PlainAnswers:
    """Return the k most probable completions under each draw: the most probable explanation of what is given.

    Values are compared by the mass of what is recorded (the cell of a grid point, a whole number, a label), so that
    real columns, atoms and labels can be weighed against each other, and the answer depends on no unit.

    Parameters
    ----------
    post : Posterior
    given : optional
        An event (text or object): the most probable row in it. A mapping from columns to values, a Table or a data
        frame: the most probable completion of each row.
    k : int
        Completions, different in at least one cell.

    Returns
    -------
    Dataset, dims (chain, draw, rank) and, where `given` is a table, obs_id before rank
        ``log_mass``: log probability of the completion given the evidence, in nats. ``value``, with feature last: the
        row, in the user's units, labels as codes. Where there are fewer than k completions the last have a log mass of
        -inf and values NaN. The attribute ``method`` is ``exact`` where the circuit decides which path a row takes,
        and ``max-product`` elsewhere: then the answer is the best row that follows a single path through the sums
        above the columns' mixtures, among the likeliest values of each of their leaves; its mass is exact all the same.

    Raises
    ------
    EvidenceError
        For an event of probability zero, or rows that are impossible under a draw.
    QueryError
        For evidence that does not fit.

    Notes
    -----
    Finding the most probable row of a mixture over all its paths is NP-hard; max-product maximises over paths. Where an
    event cuts through the cell of a grid point, the value is the nearest one inside the event.

    References
    ----------
    Peharz et al. (2017). On the Latent Variable Interpretation in Sum-Product Networks.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> found = post.mode({"size": 9.0})
    >>> table.schema.columns[0].labels[int(found["value"].sel(feature="kind").item())]
    'b'
    """
    k = check_count(k, "k")
    evidence = as_evidence(given, post.schema)
    rows = evidence.rows
    if rows is None:
        if not evidence.is_certain:
            post = condition(post, given)
        rows = empty_rows(post.schema, 1)
    log_values, values = _modes(post, rows, k)
    single = evidence.rows is None or evidence.one_row
    return _answer(post, log_values, values, single, _method(post))


@verb
def most_probable(post: Posterior, given: Any = None, k: int = 1) -> PlainAnswers:
    """Return the k rows, of those that are the mode of some draw, with the largest probability averaged over draws.

    No draw's mode need be the mode of their average, and searching for that is not tractable. But every candidate is
    scored exactly under all draws.

    Parameters
    ----------
    post : Posterior
    given : optional
        As in `mode`; a mapping, not a table of several rows.
    k : int
        Rows, and modes of each draw that are candidates.

    Returns
    -------
    Dataset, dims (rank)
        ``log_mass``: log of the mean over draws of the row's probability given the evidence. ``value``, with feature
        last. ``share``: of draws under which it is the first mode.

    Raises
    ------
    EvidenceError, QueryError
        As `mode`.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> float(post.most_probable("size > 5")["share"][0])
    1.0
    """
    k = check_count(k, "k")
    evidence = as_evidence(given, post.schema)
    if isinstance(given, Mapping):
        post = constrain(post, given)
    elif evidence.rows is not None:
        raise QueryError(
            "a table as evidence", "an event or a mapping", "Ask for one row after the other, or for mode."
        )
    elif not evidence.is_certain:
        post = condition(post, given)
    log_values, values = _modes(post, empty_rows(post.schema, 1), k)
    n_column = len(post.schema)
    found = values[:, 0].reshape(-1, n_column)[log_values[:, 0].ravel() > -np.inf]
    candidates = np.unique(found, axis=0)
    rows = Table(post.schema, np.ascontiguousarray(candidates.T), np.ones((n_column, candidates.shape[0]), bool))
    scores = log_mass(post, rows).values.reshape(-1, candidates.shape[0])
    together = log_sum(scores, 0) - np.log(scores.shape[0])
    best = np.argsort(-together, kind="stable")[:k]
    share = (values[:, 0, 0, None] == candidates[None, best]).all(axis=2).mean(axis=0)
    return PlainAnswers(
        {
            "log_mass": ("rank", together[best]),
            "value": (("rank", "feature"), candidates[best]),
            "share": ("rank", share),
        },
        coords={"rank": np.arange(best.size), "feature": list(post.schema.names)},
        attrs={"method": _method(post)},
    )


@pooled
def _modes(post: Posterior, rows: Table, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return log masses (n_draw, n_row, k) and completed rows (n_draw, n_row, k, n_column).

    More completions than k are found, scored and sorted: the best path's need not be the best row.
    """
    width = max(k, MODE_WIDTH)
    plan, params = post.plan(), post.flat()
    labels = highest_label(post.schema) + 1.0
    found = make_candidates(
        plan,
        np.where(np.isfinite(labels), labels, 0.0).astype(np.int64),
        grid(post.schema)[1],
        [column.atoms if column.base == "real" else column.levels for column in post.schema],
        width,
    )
    n_draw = params.theta.shape[0]
    log_values = np.empty((n_draw, rows.n_row, k))
    values = np.empty((n_draw, rows.n_row, k, rows.n_column))
    log_evidence = np.empty((n_draw, rows.n_row))
    n_block = block_rows(plan, QUERY_WORK_BYTES)
    for lo in range(0, rows.n_row, MODE_ROWS):
        part = slice(lo, min(lo + MODE_ROWS, rows.n_row))
        n = part.stop - lo
        own_evidence, own_values = np.empty((n_draw, n)), np.empty((n_draw, n, width))
        own = np.empty((n_draw, n, width, rows.n_column))
        fill_modes(
            plan, found, np.ascontiguousarray(rows.values[:, part]), np.ascontiguousarray(~rows.observed[:, part]),
            params, min(n_block, n), own_evidence, own_values, own,
        )  # fmt: skip
        log_evidence[:, part], log_values[:, part], values[:, part] = own_evidence, own_values[..., :k], own[:, :, :k]
    refuse_impossible_rows(post, rows, log_evidence, rows.n_row == 1)
    return log_values, values


def _answer(post: Posterior, log_values: np.ndarray, values: np.ndarray, single: bool, method: str) -> PlainAnswers:
    n_row, k = log_values.shape[1:]
    leading = (post.n_chain, post.n_draw)
    dims = ("chain", "draw", "rank") if single else ("chain", "draw", "obs_id", "rank")
    shape = (*leading, k) if single else (*leading, n_row, k)
    coords: dict[str, Any] = {**post.coords(), "rank": np.arange(k), "feature": list(post.schema.names)}
    if not single:
        coords["obs_id"] = np.arange(n_row)
    return PlainAnswers(
        {
            "log_mass": (dims, log_values.reshape(shape)),
            "value": ((*dims, "feature"), values.reshape((*shape, len(post.schema)))),
        },
        coords=coords,
        attrs={"method": method},
    )


# --- where the answer is exact ---------------------------------------------------------------------------------------


def _method(post: Posterior) -> str:
    """Return ``exact`` where every sum above a column's mixture is decided by the row, and its modes are candidates."""
    circuits = [structure.circuit for structure in post.by_structure()]
    exact = all(is_deterministic(circuit) and _modes_are_candidates(circuit, post.schema) for circuit in circuits)
    return "exact" if exact else "max-product"


def _modes_are_candidates(circuit: Circuit, schema: Schema) -> bool:
    """Return whether the best values of each dictionary are found.

    Over labels they always are; over numbers with one leaf beside the atoms, whose values are candidates too.
    """
    is_atom = np.array([registry.FAMILIES[number].name == ATOM for number in circuit.leaf_family])
    for node in np.flatnonzero(circuit.kind == arrays.LIKELIHOOD):
        leaves = circuit.leaf_of[circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]]]
        if schema.columns[circuit.leaf_var[leaves[0]]].base != "category" and (~is_atom[leaves]).sum() > 1:
            return False
    return True


def is_deterministic(circuit: Circuit) -> bool:
    """Return whether no complete row has a density under two children of a sum above the dictionaries.

    It is decided by their regions (`bayesjpt.circuit.paths`): two children differ for certain where their cells of some
    column are apart.
    """
    region = regions(circuit)
    for node in np.flatnonzero(np.isin(circuit.kind, (arrays.LATENT, arrays.GATE))):
        children = circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]]
        pairs = itertools.combinations([region[child] for child in children], 2)
        if any(separating_column(pair) < 0 for pair in pairs):
            return False
    return True
