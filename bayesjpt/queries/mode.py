"""The most probable completion of rows: by max-product under each draw, and one answer for all draws together."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.plan import ATOM
from bayesjpt.circuit.possible import possible
from bayesjpt.defaults import QUERY_WORK_BYTES
from bayesjpt.families import registry
from bayesjpt.kernels.modes import fill_modes, make_candidates
from bayesjpt.kernels.passes import slot_graph
from bayesjpt.kernels.work import block_rows
from bayesjpt.posterior.answer import PlainAnswers, query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.complete import check_count, empty_rows, grid
from bayesjpt.queries.condition import condition
from bayesjpt.queries.density import log_mass
from bayesjpt.queries.evidence import Evidence, as_evidence
from bayesjpt.queries.given import log_sum, refuse_impossible_rows
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.table.possible import highest_label
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table, restored

MODE_ROWS = 256
"""Rows whose modes are found together: bounds the memory of what is handed back by a kernel, and changes no answer."""

MODE_WIDTH = 8
"""Best parts that `mode` keeps of every node, at least: the best rows are then sorted by their mass over all paths."""


SCORED_MODES = 64
"""Modes of draws that `most_probable` scores under all draws: the best of them under `SCREENING_DRAWS` draws."""

SCREENING_DRAWS = 48
"""Draws under which more modes than those are compared first."""

CELL_CHOICES = 12
"""Values that it tries in a cell of the best row, unless there are fewer."""

LEAST_GAIN = 1e-9
"""Nats below which a change is rounding: without it a climb might turn round between equal rows."""


@query_method
def mode(post: Posterior, given: Any = None, k: int = 1) -> PlainAnswers:
    """Return the k most probable completions under each draw: the most probable explanation of what is given.

    Values are compared by the mass of what is recorded (the cell of a grid point, a whole number, a label), so that
    real columns, atoms and labels can be weighed against each other, and the answer depends on no unit. The cells of a
    column's values are equally wide here: grid points that a table favours, such as tens, count in `log_mass` alone.

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
        row, as objects: numbers in the user's units, labels, booleans and dates as the table has them. Where there are
        fewer than k completions the last have a log mass of -inf and missing values. The attribute ``method`` is
        ``exact`` where the circuit decides which path a row takes, ``max-product`` elsewhere: then the answer is the
        best row that follows a single path through the sums above the columns' mixtures, among the likeliest values of
        each of their leaves; its mass is exact all the same.

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
    >>> post.mode({"size": 9.0})["value"].sel(feature="kind").item()
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
    return _answer(post, log_values, _as_stored(post.schema, values, rows), not _has_rows(evidence))


@query_method
def most_probable(post: Posterior, given: Any = None, k: int = 1) -> PlainAnswers:
    """Return the k rows with the largest probability averaged over draws that a search from their modes finds.

    No draw's mode need be the mode of their average, and finding that for certain is not tractable. So the best of the
    draws' modes is changed one cell at a time, to values that other modes have there (to any label or level, of few),
    until no such change helps. Every row that is returned is scored exactly under all draws.

    Parameters
    ----------
    post : Posterior
    given : optional
        As in `mode`.
    k : int
        Rows, and modes of each draw that the search starts from.

    Returns
    -------
    Dataset, dims (rank) and, where `given` is a table, obs_id before it
        ``log_mass``: log of the mean over draws of the row's probability given the evidence, of which rows are given by
        their recorded cells, as in `log_mass`. ``value``, with feature last, as in `mode`. ``share``: of draws under
        which it is the first mode, often none of them. Where a row has fewer than k candidates the last have a log mass
        of -inf, missing values and a share of 0.

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
    >>> post.most_probable(frame[["size"]].head(2))["value"].sel(feature="kind")[:, 0].values.tolist()
    ['a', 'b']
    """
    k = check_count(k, "k")
    evidence = as_evidence(given, post.schema)
    rows = evidence.rows
    if rows is None:
        if not evidence.is_certain:
            post = condition(post, given)
        rows = empty_rows(post.schema, 1)
    log_values, values = _modes(post, rows, k)
    found = [_best_together(post, rows.take([i]), log_values[:, i], values[:, i], k) for i in range(rows.n_row)]
    log_mass_of, value, share = (np.stack(part) for part in zip(*found, strict=True))
    named = _as_stored(post.schema, value, rows)
    dims = ("obs_id", "rank")
    coords: dict[str, Any] = {"rank": np.arange(k), "feature": list(post.schema.names)}
    if _has_rows(evidence):
        coords["obs_id"] = np.arange(rows.n_row)
    else:
        kept = int((log_mass_of[0] > -np.inf).sum())  # fewer rows than asked for are no ranks
        dims, log_mass_of, named, share = ("rank",), log_mass_of[0, :kept], named[0, :kept], share[0, :kept]
        coords["rank"] = np.arange(kept)
    data = {"log_mass": (dims, log_mass_of), "value": ((*dims, "feature"), named), "share": (dims, share)}
    return PlainAnswers(data, coords=coords, attrs={"method": _method(post)})


def _best_together(
    post: Posterior, row: Table, log_values: np.ndarray, values: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log mean probabilities (k,), completions (k, n_column) and shares (k,) of one row's best completions.

    The search starts at the modes of draws, float64 (n_draw, k, n_column), whose log masses are above -inf.
    """
    out = np.full(k, -np.inf), np.full((k, row.n_column), np.nan), np.zeros(k)
    modes = np.unique(values[log_values > -np.inf], axis=0)
    if not len(modes):
        return out
    cells = modes
    if len(modes) > max(SCORED_MODES, k):
        under_some = _log_mean_mass(some_draws(post, SCREENING_DRAWS)[1], row, modes)
        cells = modes[np.argsort(-under_some, kind="stable")[: max(SCORED_MODES, k)]]
    cells, together = _climb(post, row, modes, cells, _log_mean_mass(post, row, cells))
    best = np.argsort(-together, kind="stable")[:k]
    best = best[together[best] > -np.inf]
    out[0][: best.size], out[1][: best.size] = together[best], cells[best]
    out[2][: best.size] = (values[:, 0, None] == cells[None, best]).all(axis=2).mean(axis=0)
    return out


def _log_mean_mass(post: Posterior, row: Table, cells: np.ndarray) -> np.ndarray:
    """Return float64 (n,): log of the mean over draws of the mass of completions, (n, n_column), of one row."""
    missing = np.repeat(~row.observed, len(cells), axis=1)
    completed = Table(row.schema, np.ascontiguousarray(cells.T), missing)
    scores = log_mass(post, completed, row if row.observed.any() else None).values.reshape(-1, len(cells))
    return log_sum(scores, 0) - np.log(scores.shape[0])


def _climb(
    post: Posterior, row: Table, modes: np.ndarray, cells: np.ndarray, together: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return some completions, (n, n_column), and their scores, (n,), with those met on a climb from the best.

    The best change of each cell, to values that the modes of draws have there, is scored; then those that help are made
    together, the best first, as far as that helps. The climb ends where no change of one cell does.
    """
    highest = highest_label(row.schema)
    choices = {c: _choices(row.schema.columns[c], highest[c], modes[:, c]) for c in np.flatnonzero(~row.observed[:, 0])}
    found, scores = [cells], [together]
    top = int(np.argmax(together))
    best, score = cells[top], together[top]
    while score > -np.inf:
        changes = [(c, value) for c, values in choices.items() for value in values[values != best[c]]]
        if not changes:
            break
        changed = np.repeat(best[None, :], len(changes), axis=0)
        for i, (c, value) in enumerate(changes):
            changed[i, c] = value
        found.append(changed)
        scores.append(_log_mean_mass(post, row, changed))
        helpful: dict[int, int] = {}  # column: its best change
        for i in np.argsort(-scores[-1], kind="stable"):
            if scores[-1][i] > score + LEAST_GAIN:
                helpful.setdefault(changes[i][0], i)
        if not helpful:
            break
        steps = np.repeat(best[None, :], len(helpful), axis=0)
        for number, (c, i) in enumerate(helpful.items()):
            steps[number:, c] = changes[i][1]
        found.append(steps)
        scores.append(_log_mean_mass(post, row, steps))
        top = int(np.argmax(scores[-1]))
        best, score = steps[top], scores[-1][top]
    everything, first = np.unique(np.concatenate(found), axis=0, return_index=True)
    return everything, np.concatenate(scores)[first]


def _choices(column: Column, highest: float, values: np.ndarray) -> np.ndarray:
    """Return values to try in a cell: all labels or levels of a column of few, or some of the modes' values."""
    listed = np.arange(highest + 1.0) if column.base == "category" else np.array(column.levels)
    if 0 < listed.size <= CELL_CHOICES:
        return listed
    if column.base == "category":
        label, count = np.unique(values, return_counts=True)
        return label[np.argsort(-count, kind="stable")[:CELL_CHOICES]]
    share = (np.arange(CELL_CHOICES) + 0.5) / CELL_CHOICES
    return np.unique(np.quantile(values, share, method="nearest"))


@pooled
def _modes(post: Posterior, rows: Table, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return log masses (n_draw, n_row, k) and completed rows (n_draw, n_row, k, n_column).

    More completions than k are found, scored and sorted: the best path's need not be the best row.
    """
    width = max(k, MODE_WIDTH)
    plan, params = post.plan(), post.flat()
    labels = highest_label(post.schema) + 1.0
    graph = slot_graph(plan)
    candidates = make_candidates(
        plan,
        np.where(np.isfinite(labels), labels, 0.0).astype(np.int64),
        grid(post.schema),
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
        part_evidence, part_values = np.empty((n_draw, n)), np.empty((n_draw, n, width))
        part_cells = np.empty((n_draw, n, width, rows.n_column))
        hidden = np.ascontiguousarray(~rows.observed[:, part])
        fill_modes(
            plan, graph, candidates, np.ascontiguousarray(rows.values[:, part]), hidden, params,
            min(n_block, n), part_evidence, part_values, part_cells,
        )  # fmt: skip
        log_evidence[:, part], log_values[:, part], values[:, part] = (
            part_evidence,
            part_values[..., :k],
            part_cells[:, :, :k],
        )
    refuse_impossible_rows(post, rows, log_evidence, rows.n_row == 1)
    return log_values, values


def _has_rows(evidence: Evidence) -> bool:
    """Return whether several rows are given, so that answers have an axis of them."""
    return evidence.rows is not None and not evidence.one_row


def _as_stored(schema: Schema, values: np.ndarray, rows: Table) -> np.ndarray:
    """Return completions (..., n_row, k, n_column) of rows as objects: labels for codes, None where there is none."""
    out = np.full(values.shape, None, object)
    n_row, k = values.shape[-3:-1]
    exists = ~np.isnan(values[..., 0])
    for c, column in enumerate(schema):
        unseen = rows.unseen.get(c)
        if unseen is not None:
            unseen = np.broadcast_to(unseen[:, None], (*values.shape[:-3], n_row, k))[exists]
        out[..., c][exists] = restored(column, values[..., c][exists], unseen)[1]
    return out


def _answer(post: Posterior, log_values: np.ndarray, values: np.ndarray, single: bool) -> PlainAnswers:
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
        attrs={"method": _method(post)},
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
    values = possible(circuit)
    for node in np.flatnonzero(circuit.kind == arrays.LATENT):
        children = circuit.child[circuit.child_ptr[node] : circuit.child_ptr[node + 1]]
        if any(values.separating_column(np.array(pair)) < 0 for pair in itertools.combinations(children, 2)):
            return False
    return True
