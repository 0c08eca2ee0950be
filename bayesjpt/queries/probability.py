"""Probability of an event, with or without evidence, exact under each draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bayesjpt.defaults import MAX_BOXES
from bayesjpt.errors import QueryError, warn
from bayesjpt.kernels.boxes import make_boxes
from bayesjpt.kernels.row_events import fill_row_log_probability, queried_slots
from bayesjpt.posterior.answer import PlainAnswer, query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import pooled
from bayesjpt.queries.boxes import Box, boxes, contains, intersections, why_between_steps, why_null
from bayesjpt.queries.evidence import Evidence, as_evidence
from bayesjpt.queries.given import (
    box_log_probability,
    check_on_zero,
    log_sum,
    refuse_impossible_boxes,
    refuse_impossible_rows,
    row_blocks,
)
from bayesjpt.queries.route import routed
from bayesjpt.table.table import Table

LOG_NOTHING = float(np.log(1e-9))
"""Nats; a single number of a continuous column has less, but for one whose neighbouring floats lie a resolution off."""


@query_method
def probability(
    post: Posterior, event, given=None, *, ratio_of_means: bool = False, on_zero: str = "error"
) -> PlainAnswer:
    """Return the probability of an event under each draw, given evidence where there is some.

    Each draw is a distribution of its own, so its answer is exact, and the draws together give the answer a credible
    interval. The interval is that of the posterior given the learned structure and schema, both chosen on the same
    rows: it leaves their uncertainty out and can be too narrow.

    Parameters
    ----------
    post : Posterior
    event : Event or str
        Such as ``bj.col("alcohol") > 12`` or ``"alcohol > 12 and quality >= 7"``.
    given : optional
        An event (text or object), by probability: the answer is P(event and given) / P(given). A mapping from columns
        to values, by density. A Table or data frame: one answer a row, each given the row's observed cells. A column
        of the event that a row itself observes answers yes or no; drop it from the rows in order to predict it.
    ratio_of_means : bool
        The posterior-predictive conditional in place of one answer a draw: the mean over all draws of the joint
        probability over the mean of the evidence's. It weighs draws, and structures where there are several, by how
        well they explain the evidence.
    on_zero : str
        For evidence that has probability zero under some draw: ``error``, or ``nan`` as the answer there.

    Returns
    -------
    DataArray, dims (chain, draw), with obs_id last where `given` is a table
        With `ratio_of_means`, without chain and draw.

    Raises
    ------
    EvidenceError
        For evidence that is impossible under some draw, naming the first column that makes it so.
    QueryError
        For an event or evidence that does not fit the columns.
    SchemaError, TableError
        For rows that do not fit the schema.

    Warns
    -----
    BayesjptWarning
        Where the answer is zero because the event asks for single values of a continuous column, or misses what the
        model gives to numbers between the multiples that were all recorded, with what to ask.

    Notes
    -----
    An event is a union of disjoint boxes; each is one pass from the leaves to the root, over the nodes that its columns
    meet. What an event, or evidence that is one row, excludes by the conditions of a tree is not visited. Cost: draws x
    boxes x leaves of those columns, and for rows draws x rows x leaves.

    References
    ----------
    Saad, Rinard and Mansinghka (2021). SPPL: Probabilistic Programming with Fast Exact Symbolic Inference. PLDI.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([1, 2, 3, 9], 20)})
    >>> table = bj.as_table(frame)
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> post.probability("kind = 'a'").round(2).values.tolist()
    [[0.5]]
    >>> post.probability("kind = 'a'", pd.DataFrame({"size": [1, 9]})).sizes
    Frozen({'chain': 1, 'draw': 1, 'obs_id': 2})

    The ratio of means differs from the mean of the ratios. Two kinds of rows, one with b always and one with b half of
    the time, and two draws that disagree about the share of the first kind, 0.8 or 0.1:

    >>> from bayesjpt.circuit.arrays import Params
    >>> from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
    >>> frame = pd.DataFrame({"a": ["yes"] * 40 + ["no"] * 40, "b": ["yes"] * 60 + ["no"] * 20})
    >>> table = bj.as_table(frame)
    >>> kinds = [Product((ColumnLeaf(0, rows), ColumnLeaf(1, rows))) for rows in np.arange(80).reshape(2, 40)]
    >>> circuit = build_circuit(Sum(tuple(kinds), (40, 40)), table)
    >>> estimate = bj.Posterior.from_circuit(circuit, table.schema).params
    >>> log_weight = np.tile(estimate.log_weight, (1, 2, 1))
    >>> log_weight[0, :, circuit.child_ptr[-2]:] = np.log([[0.8, 0.2], [0.1, 0.9]])
    >>> post = bj.Posterior(circuit, table.schema, Params(log_weight, np.tile(estimate.theta, (1, 2, 1))))
    >>> post.probability("b = 'yes'").round(2).values.tolist()
    [[0.89, 0.56]]
    >>> each = post.probability("a = 'yes'", "b = 'yes'")
    >>> each.round(2).values.tolist()
    [[0.86, 0.19]]
    >>> together = post.probability("a = 'yes'", "b = 'yes'", ratio_of_means=True)
    >>> round(float(each.mean()), 2), round(float(together), 2)
    (0.53, 0.6)

    The draw under which b is likely counts more.
    """
    answer = log_probability(post, event, given, ratio_of_means=ratio_of_means, on_zero=on_zero)
    return replace(answer, name="probability", values=np.exp(answer.values))


@query_method
def log_probability(
    post: Posterior, event, given=None, *, ratio_of_means: bool = False, on_zero: str = "error"
) -> PlainAnswer:
    """Return the natural logarithm of `probability`, for events far in the tails; -inf where it is zero.

    Nothing underflows, however many columns an event or its evidence has. Parameters, dims and errors are those of
    `probability`.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"size": np.linspace(-1.0, 1.0, 80)}))
    >>> post = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    >>> bool(np.isfinite(post.log_probability("size > 1e6")).all())
    True
    """
    check_on_zero(on_zero)
    found = boxes(event, post.schema)
    log_joint, log_evidence = _by_draw(post, found, as_evidence(given, post.schema), on_zero)
    if ratio_of_means:
        log_joint, log_evidence = log_sum(log_joint, 0), log_sum(log_evidence, 0)
    impossible = log_evidence == -np.inf
    ratio = np.minimum(log_joint - np.where(impossible, 0.0, log_evidence), 0.0)
    if found and (ratio <= LOG_NOTHING).all() and (reason := why_null(found, post.schema)) is not None:
        warn(reason)
    if (reason := why_between_steps(found, post.schema)) is not None:
        warn(reason)
    return _answer(post, np.where(impossible, np.nan, ratio), ratio_of_means)


@pooled
def _by_draw(post: Posterior, union: Sequence[Box], evidence: Evidence, on_zero: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the log probabilities of event and evidence together, and of the evidence, float64 (n_draw[, n_row])."""
    reached = routed(post, evidence, {column for box in union for column in box.columns}, union)
    if evidence.rows is None:
        log_joint, log_evidence = _given_event(reached, union, evidence)
        if on_zero == "error":
            refuse_impossible_boxes(post, evidence, log_evidence)
        return log_joint, log_evidence
    log_joint, log_evidence = _given_rows(reached, union, evidence.rows)
    if on_zero == "error":
        refuse_impossible_rows(post, evidence.rows, log_evidence, evidence.one_row, nan_offered=True)
    return (log_joint[:, 0], log_evidence[:, 0]) if evidence.one_row else (log_joint, log_evidence)


def _given_event(post: Posterior, union: Sequence[Box], evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Return the log probabilities of event and evidence together, and of the evidence, float64 (n_draw,) each."""
    assert evidence.boxes is not None
    if len(union) * len(evidence.boxes) > MAX_BOXES:
        raise QueryError(
            f"an event of {len(union)} boxes given one of {len(evidence.boxes)}",
            f"at most {MAX_BOXES} pairs of boxes",
            "Ask for parts of the event one by one.",
        )
    joint = intersections(union, evidence.boxes)
    log_box = box_log_probability(post, post.plan(), (*joint, *evidence.boxes))
    return log_sum(log_box[:, : len(joint)], 1), log_sum(log_box[:, len(joint) :], 1)


def _given_rows(post: Posterior, union: Sequence[Box], rows: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return the same for each row, float64 (n_draw, n_row) each, the evidence by density in the families' units."""
    plan, flat = post.plan(), post.flat()
    log_joint = np.empty((flat.theta.shape[0], rows.n_row))
    log_evidence = np.empty_like(log_joint)
    columns = np.array(sorted({column for box in union for column in box.columns}), np.int64)
    arranged = make_boxes(plan, [box.intervals for box in union])
    queried = queried_slots(plan, arranged, columns)
    for which, part, cells, n_block in row_blocks(plan, rows, queried=columns.tolist()):
        joint, alone = np.empty((log_joint.shape[0], part.n_row)), np.empty((log_joint.shape[0], part.n_row))
        fill_row_log_probability(plan, cells, arranged, queried, flat, n_block, _allowed(union, part), alone, joint)
        log_joint[:, which], log_evidence[:, which] = joint, alone
    return log_joint, log_evidence


def _allowed(union: Sequence[Box], rows: Table) -> np.ndarray:
    """Return bool (n_box, n_row): whether the observed cells of a row lie in a box."""
    out = np.ones((len(union), rows.n_row), bool)
    for number, box in enumerate(union):
        for column, intervals in box.intervals.items():
            inside = contains(Box({0: intervals}), rows.values[column : column + 1])
            out[number] &= inside | ~rows.observed[column]
    return out


def _answer(post: Posterior, log_values: np.ndarray, ratio_of_means: bool) -> PlainAnswer:
    leading = () if ratio_of_means else (post.n_chain, post.n_draw)
    trailing = log_values.shape if ratio_of_means else log_values.shape[1:]
    dims = (() if ratio_of_means else ("chain", "draw")) + (("obs_id",) if trailing else ())
    coords = {} if ratio_of_means else dict(post.coords())
    if trailing:
        coords["obs_id"] = np.arange(trailing[0])
    return PlainAnswer("log_probability", dims, log_values.reshape(leading + trailing), coords)
