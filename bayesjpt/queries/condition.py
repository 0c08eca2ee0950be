"""Posteriors of fewer columns, given an event, or given values: of the same kind, so that every query works on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.build import freeze
from bayesjpt.circuit.edit import Edit, conditioned, constrained, marginalised
from bayesjpt.circuit.plan import make_plan
from bayesjpt.errors import EvidenceError, QueryError
from bayesjpt.kernels.reweight import conditioned_params, constrained_params
from bayesjpt.posterior.answer import query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.boxes import Box, contains, why_null
from bayesjpt.queries.event import Event, rendered_name
from bayesjpt.queries.evidence import as_evidence
from bayesjpt.queries.resolve import names_of, position_of, value_name
from bayesjpt.table.schema import SUMMED_OUT, Schema, SetAside
from bayesjpt.table.table import Table

MAX_EDITED_EDGES = 1_000_000
"""Edges of the circuit that a condition makes: boxes times the part of the circuit that they constrain. Above it one
draw's weights take 8 MB, and one pass over the circuit tens of milliseconds."""

MAX_EDITED_BYTES = 4 * 2**30
"""Bytes of the weights of all draws of such a circuit: half the memory of a small laptop."""


Reweight = Callable[..., tuple[Params, np.ndarray]]


@query_method
@pooled
def condition(post: Posterior, event: Event | str | Mapping[str, Any]) -> Posterior:
    """Return the posterior of rows that lie in an event: under each draw, the distribution given the event.

    Parameters
    ----------
    post : Posterior
    event : Event, str, or mapping from column to value
        A mapping stands for equalities, on columns of labels or integers, or at atoms of real columns; None and NaN in
        it are not given.

    Returns
    -------
    Posterior
        Over the same columns, with the same chains and draws. Reference rows outside the event are dropped.

    Raises
    ------
    EvidenceError
        For an event of probability zero, under all draws or some; the message names the first column that makes it so.
    QueryError
        For what is not an event of the posterior's columns; for an event that needs too large a circuit.

    Notes
    -----
    Draws keep their weight, and structures theirs: an event about a new row says nothing of the rows that were fitted
    (`probability` with ``ratio_of_means`` weighs both by the event). Densities are those
    given the event, so the joint density divided by the event's probability; on a real column that holds a known value
    (`constrain`) the base measure counts. Costs: a copy of what the event constrains for each box of the event, and
    one pass over it for each draw.

    References
    ----------
    Saad, Rinard and Mansinghka (2021). SPPL: Probabilistic Programming with Fast Exact Symbolic Inference. PLDI.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"grade": ["a", "a", "a", "b"] * 20, "size": np.linspace(0.1, 8.0, 80)})
    >>> table = bj.as_table(frame)
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=40), table.schema)
    >>> large = post.condition("size > 2")
    >>> large.settings["given"]
    'size > 2'
    >>> bool(np.isneginf(large.log_density(pd.DataFrame({"size": [1.0]}))))
    True
    """
    if isinstance(event, Mapping):
        columns, values = _row(post, event)
        as_event = None
        boxes: tuple[Box, ...] = (Box({column: np.array([[value, value]]) for column, value in values.items()}),)
        text = _equalities(post.schema, values)
    else:
        evidence = as_evidence(event, post.schema)
        if evidence.boxes is None:
            raise QueryError(
                f"an event of type {type(event).__name__}", "an event, a text such as 'alcohol > 12', or a mapping"
            )
        boxes, text, as_event = evidence.boxes, repr(evidence.event), evidence.event
        columns = list(dict.fromkeys(column for box in boxes for column in box.columns))
    reason = why_null(boxes, post.schema, as_event)
    if reason is not None and not _is_known(post, boxes):
        remedy = "For values of continuous columns use post.constrain." if boxes else None
        raise EvidenceError(f"evidence of probability zero: {reason}", remedy=remedy)

    def edited(queried: Sequence[int]) -> Edit:
        parts = [{column: box.intervals[column] for column in queried if column in box.intervals} for box in boxes]
        return conditioned(post.circuit, post.schema, parts, max_edges=MAX_EDITED_EDGES)

    given = _given(post, columns, edited, conditioned_params)
    return replace(given, reference=_inside(post.reference, boxes), settings=_noted(post, text))


@query_method
@pooled
def constrain(post: Posterior, values: Mapping[str, Any]) -> Posterior:
    """Return the posterior of rows of which some values are known exactly: conditional on densities.

    On columns of labels and integers, and at atoms of real columns, this is `condition`. A continuous column then holds
    a single value: its density is 1 there, and its probability too.

    Parameters
    ----------
    post : Posterior
    values : mapping from column to value
        None and NaN are not given.

    Returns
    -------
    Posterior
        Over the same columns, with the same chains and draws. In reference rows the known columns are missing.

    Raises
    ------
    EvidenceError
        For values without density, under all draws or some; the message names the first column that makes it so.
    QueryError
        For a column, label or value that does not fit the schema.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"grade": ["a", "a", "a", "b"] * 20, "size": np.linspace(0.1, 8.0, 80)})
    >>> table = bj.as_table(frame)
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=40), table.schema)
    >>> joint = post.log_density(pd.DataFrame({"grade": ["b"], "size": [2.5]}))
    >>> size = post.log_density(pd.DataFrame({"size": [2.5]}))
    >>> given = post.constrain({"size": 2.5}).log_density(pd.DataFrame({"grade": ["b"]}))
    >>> bool(np.isclose(given, joint - size))
    True
    """
    columns, known = _row(post, values)

    def edited(queried: Sequence[int]) -> Edit:
        queried_values = {column: known[column] for column in queried}
        return constrained(post.circuit, post.schema, queried_values, max_edges=MAX_EDITED_EDGES)

    given = _given(post, columns, edited, constrained_params)
    return replace(
        given,
        reference=_without_cells(post.reference, columns),
        settings=_noted(post, _equalities(post.schema, known)),
    )


@query_method
@pooled
def marginal(post: Posterior, columns: Sequence[str] | str) -> Posterior:
    """Return the posterior of some columns, the others summed out.

    Parameters
    ----------
    post : Posterior
    columns : sequence of str, or str
        Names of those that stay, in the order that the answer has.

    Returns
    -------
    Posterior
        With the same chains and draws. Rows given to it may still hold the other columns; they are ignored.

    Raises
    ------
    QueryError
        For no columns, one that is named twice, or one that the schema does not have.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"grade": ["a", "a", "a", "b"] * 20, "size": np.linspace(0.1, 8.0, 80)}))
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=40), table.schema)
    >>> post.marginal(["size"]).schema.names
    ('size',)
    """
    names = names_of(columns)
    positions = [position_of(name, post.schema) for name in names]
    if not positions or len(set(positions)) < len(positions):
        raise QueryError(f"columns {', '.join(map(repr, names)) or 'none'}", "each name once, one at least")
    edit = marginalised(post.circuit, positions, max_edges=MAX_EDITED_EDGES)
    left = [column for column in post.schema if column.name not in names]
    schema = Schema(
        tuple(post.schema.columns[position] for position in positions),
        (*post.schema.set_aside, *(SetAside(column.name, SUMMED_OUT) for column in left)),
    )
    new = make_plan(edit.circuit, schema)
    params, _ = conditioned_params(edit, post.plan(), new, post.flat())
    circuit = _with_start(post, edit, schema, conditioned_params)
    return replace(
        post,
        circuit=circuit,
        schema=schema,
        params=_shaped(post, params),
        reference=_some_columns(post.reference, positions, schema),
    )


def given_posterior(post: Posterior, given: Any) -> Posterior:
    """Return the posterior given an event or a mapping from columns to values; as it is where nothing is given.

    Raises
    ------
    EvidenceError
        For impossible evidence.
    QueryError
        For rows as evidence, and what does not fit the schema.
    """
    if given is None:
        return post
    if isinstance(given, Mapping):
        return constrain(post, given)
    if isinstance(given, Event | str):
        return condition(post, given)
    raise QueryError(
        f"evidence of type {type(given).__name__}", "an event, a text such as 'alcohol > 12', or a mapping"
    )


# --- evidence --------------------------------------------------------------------------------------------------------


def _row(post: Posterior, values: Mapping[str, Any]) -> tuple[list[int], dict[int, float]]:
    """Return the positions of the columns that are given, in the order of the mapping, and their values."""
    if not isinstance(values, Mapping):
        raise QueryError(f"values of type {type(values).__name__}", "a mapping such as {'alcohol': 12}")
    rows = as_evidence(values, post.schema).rows
    assert rows is not None
    columns = [position_of(name, post.schema) for name in values]
    known = {column: float(rows.values[column, 0]) for column in columns if rows.observed[column, 0]}
    return list(known), known


def _is_known(post: Posterior, boxes: Sequence[Box]) -> bool:
    """Return whether every column that makes a box null by its form already holds a single value."""
    held = _held(post.circuit)
    return bool(boxes) and all(held[list(box.null_columns(post.schema))].all() for box in boxes)


def _held(circuit: Circuit) -> np.ndarray:
    """Return bool (n_column,): whether all leaves of a column are truncated to single values."""
    interval = circuit.leaf_interval()
    held = np.ones(int(circuit.leaf_var.max()) + 1, bool)
    np.logical_and.at(held, circuit.leaf_var, interval[:, 0] == interval[:, 1])
    return held


def _given(post: Posterior, columns: Sequence[int], edited: Callable[[Sequence[int]], Edit], reweight) -> Posterior:
    """Return the posterior with the circuit of an edit; `edited` makes it for some of the columns that are queried.

    Raises
    ------
    EvidenceError
        Where the evidence has probability zero under some draw.
    """

    def log_evidence(n: int) -> tuple[Edit, Params, np.ndarray] | None:
        """Return the answer to the first n columns; None where it is impossible whatever the draw."""
        try:
            edit = edited(columns[:n])
        except EvidenceError:
            return None
        n_bytes = 8 * post.n_chain * post.n_draw * edit.circuit.n_edge
        if n_bytes > MAX_EDITED_BYTES:
            raise QueryError(
                f"weights of {n_bytes / 2**30:.1f} GiB: {edit.circuit.n_edge:,} edges in each of "
                f"{post.n_chain * post.n_draw:,} draws",
                f"at most {MAX_EDITED_BYTES / 2**30:.1f} GiB",
                "Ask for an event with fewer boxes.",
            )
        return edit, *reweight(edit, post.plan(), make_plan(edit.circuit, post.schema), post.flat())

    def is_possible(n: int) -> bool:
        answer = log_evidence(n)
        return answer is not None and not np.isneginf(answer[2]).any()

    answer = log_evidence(len(columns))
    if answer is None or np.isneginf(answer[2]).any():
        possible, impossible = 0, len(columns)
        while impossible - possible > 1:
            middle = (possible + impossible) // 2
            possible, impossible = (middle, impossible) if is_possible(middle) else (possible, middle)
        raise _zero(post, columns[impossible - 1], answer)
    edit, params, _ = answer
    return replace(
        post,
        circuit=_with_start(post, edit, post.schema, reweight),
        params=_shaped(post, params),
    )


def _zero(post: Posterior, column: int, answer: tuple[Edit, Params, np.ndarray] | None) -> EvidenceError:
    name = post.schema.columns[column].name
    n_draw = post.n_chain * post.n_draw
    n_zero = n_draw if answer is None else int(np.isneginf(answer[2]).sum())
    share = "" if n_zero == n_draw else f" under {n_zero} of {n_draw} draws"
    return EvidenceError(
        f"evidence of probability zero{share}: column {name!r} makes it so",
        "values that the model can produce together",
        f"Leave {name!r} out, or widen what is asked of it.",
    )


def _with_start(post: Posterior, edit: Edit, schema: Schema, reweight: Reweight) -> Circuit:
    """Return the edit's circuit with the learner's weights given the evidence, where they allow it."""
    old = post.circuit
    start = Params(old.start_log_weight[None].copy(), old.start_theta[None].copy())
    params, log_evidence = reweight(edit, post.plan(), make_plan(edit.circuit, schema), start)
    if np.isneginf(log_evidence[0]):
        return edit.circuit
    return freeze(edit.circuit._replace(start_log_weight=params.log_weight[0].copy()))


def _shaped(post: Posterior, params: Params) -> Params:
    shape = (post.n_chain, post.n_draw)
    return Params(*(array.reshape(*shape, array.shape[1]) for array in params))


# --- what goes along -------------------------------------------------------------------------------------------------


def _equalities(schema: Schema, values: Mapping[int, float]) -> str:
    return " and ".join(
        f"{rendered_name(schema.columns[column].name)} == {value_name(schema.columns[column], value)}"
        for column, value in values.items()
    )


def _noted(post: Posterior, text: str) -> dict[str, str | int | float]:
    """Return the settings with what is given now added to what was given before."""
    before = post.settings.get("given")
    given = text if not before else f"{before}; {text}" if text else str(before)
    return dict(post.settings) | ({"given": given} if given else {})


def _inside(rows: Table | None, boxes: Sequence[Box]) -> Table | None:
    """Return the rows that are seen to lie in a box."""
    if rows is None:
        return None
    values = np.where(rows.observed, rows.values, np.nan)
    inside = np.zeros(rows.n_row, bool)
    for box in boxes:
        inside |= contains(box, values)
    return rows.take(np.flatnonzero(inside)) if inside.any() else None


def _without_cells(rows: Table | None, columns: Sequence[int]) -> Table | None:
    """Return the rows with the cells of some columns missing; None where nothing is left."""
    if rows is None:
        return None
    observed = rows.observed.copy()
    observed[list(columns)] = False
    return Table(rows.schema, rows.values, observed) if observed.any() else None


def _some_columns(rows: Table | None, positions: Sequence[int], schema: Schema) -> Table | None:
    """Return the rows' cells of some columns."""
    if rows is None:
        return None
    index = list(positions)
    return Table(schema, np.ascontiguousarray(rows.values[index]), np.ascontiguousarray(rows.observed[index]))
