"""Columns of numbers given evidence: what expectation, variance, quantile and cdf have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.plan import Plan
from bayesjpt.errors import QueryError
from bayesjpt.kernels.boxes import make_boxes
from bayesjpt.kernels.cells import Cells
from bayesjpt.kernels.events import leaf_shares
from bayesjpt.kernels.mixture import Components, make_components
from bayesjpt.kernels.path_probability import Targets, make_targets
from bayesjpt.posterior.answer import PlainAnswer
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.evidence import Evidence, as_evidence
from bayesjpt.queries.given import (
    check_on_zero,
    log_sum,
    refuse_impossible_boxes,
    refuse_impossible_rows,
    row_blocks,
)
from bayesjpt.queries.resolve import names_of
from bayesjpt.queries.route import routed
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table


def positions_of(columns: str | Sequence[str] | None, schema: Schema) -> list[int]:
    """Return the positions of columns of numbers by their names; of all of them for None.

    Raises
    ------
    QueryError
        For unknown columns, columns of labels, no column at all, or one named twice.
    """
    if columns is None:
        found = [position for position, column in enumerate(schema) if column.base != "category"]
        if not found:
            raise QueryError(
                "a table without columns of numbers",
                remedy="Ask for the probability of labels: post.probability(event).",
            )
        return found
    names = names_of(columns)
    if not names:
        raise QueryError("no columns", "the names of columns, or None for all columns of numbers")
    for name in names:
        if names.count(name) > 1:
            raise QueryError(f"column {name!r} named twice")
        if schema.columns[schema.index(name)].base == "category":
            raise QueryError(
                f"column {name!r} holds labels, which have no numbers to average or order",
                "a column of numbers",
                f"Ask for the probability of a label: post.probability(bj.col({name!r}) == ...).",
            )
    return [schema.index(name) for name in names]


@dataclass(frozen=True, eq=False)
class Question:
    """Some columns of numbers under evidence, ready for the kernels.

    Parameters
    ----------
    post : Posterior
    plan : Plan
        Of what the evidence leaves of the circuit.
    evidence : Evidence
    positions : list of int
        The columns, in the order of the answer.
    units : float64 (n_target, 2)
        Location and scale of each.
    params : Params
        Of the same, draws of all chains one after the other.
    on_zero : str
    """

    post: Posterior
    plan: Plan
    evidence: Evidence
    positions: list[int]
    units: np.ndarray
    params: Params
    on_zero: str

    @property
    def n_draw(self) -> int:
        return self.params.theta.shape[0]

    @property
    def n_target(self) -> int:
        return len(self.positions)

    @property
    def rows(self) -> Table | None:
        return self.evidence.rows

    def event_parts(self) -> Iterator[tuple[slice, Components, np.ndarray]]:
        """Yield parts of the draws: (which, components of the columns, shares of their leaves given the event).

        Raises
        ------
        EvidenceError
            After the last part, where the event is impossible under some draw, unless that is to be NaN.
        """
        found = self.evidence.boxes
        assert found is not None
        boxes = make_boxes(self.plan, [box.intervals for box in found] or [{}], also=self.positions)
        wanted = np.isin(np.arange(len(self.post.schema)), self.positions)
        log_box = np.empty((self.n_draw, len(found)))
        components = make_components(self.plan, boxes, self.positions, self.units)
        for part, share in leaf_shares(self.plan, boxes, self.params, wanted, log_box):
            yield part, components, share
        if self.on_zero == "error":
            refuse_impossible_boxes(self.post, self.evidence, log_sum(log_box, 1))

    def row_setting(self) -> tuple[Components, Targets]:
        """Return (components, targets) for evidence by rows."""
        boxes = make_boxes(self.plan, [{}], also=self.positions)
        leaves = [boxes.leaf[boxes.leaf_ptr[c] : boxes.leaf_ptr[c + 1]] for c in self.positions]
        components = make_components(self.plan, boxes, self.positions, self.units)
        return components, make_targets(self.plan, components, np.concatenate(leaves), self.positions)

    def components_near(self, near: Mapping[int, np.ndarray]) -> Components:
        """Return the components of `row_setting`, in its order, within an interval of each of some columns."""
        boxes = make_boxes(self.plan, [near], also=self.positions)
        return make_components(self.plan, boxes, self.positions, self.units)

    def row_parts(self) -> Iterator[tuple[slice | np.ndarray, Table, Cells, int, np.ndarray]]:
        """Yield parts of the rows: (which, the part, its Cells, rows in one go, log evidence to be filled)."""
        assert self.rows is not None
        for which, part, cells, n_block in row_blocks(self.plan, self.rows):
            yield which, part, cells, n_block, np.empty((self.n_draw, part.n_row))

    def check_rows(self, log_evidence: np.ndarray) -> None:
        """Raise `EvidenceError` where a row is impossible under some draw, unless that is to be NaN."""
        assert self.rows is not None
        if self.on_zero == "error":
            refuse_impossible_rows(self.post, self.rows, log_evidence, self.evidence.one_row, nan_offered=True)

    def answer(
        self, values: np.ndarray, name: str, middle: Mapping[str, Any] | None = None, *, in_units: bool = False
    ) -> PlainAnswer:
        """Return values (n_draw, ..., n_target[, n_row]) with the axes' names.

        `middle` maps the names of the axes between draws and columns to their coordinates. Values `in_units` are some
        of the columns' own: dates, where all columns are dates.
        """
        middle = dict(middle or {})
        shape = values.shape[1:]
        coords: dict[str, Any] = {
            **self.post.coords(),
            **middle,
            "feature": [self.post.schema.names[position] for position in self.positions],
        }
        dims = ["chain", "draw", *middle, "feature"]
        if self.rows is not None:
            if self.evidence.one_row:
                shape, values = shape[:-1], values[..., 0]
            else:
                dims.append("obs_id")
                coords["obs_id"] = np.arange(shape[-1])
        values = values.reshape(self.post.n_chain, self.post.n_draw, *shape)
        of_dates = all(self.post.schema.columns[position].dtype == "datetime" for position in self.positions)
        return PlainAnswer(name, tuple(dims), values, coords, of_dates=in_units and of_dates)


def ask(post: Posterior, columns: str | Sequence[str] | None, given: Any, on_zero: str) -> Question:
    """Return a question about columns of numbers.

    Raises
    ------
    QueryError, SchemaError, TableError
        For columns or evidence that do not fit the schema.
    """
    check_on_zero(on_zero)
    positions = positions_of(columns, post.schema)
    members = [post.schema.columns[position] for position in positions]
    evidence = as_evidence(given, post.schema)
    reached = routed(post, evidence, positions)
    return Question(
        post=post,
        plan=reached.plan(),
        evidence=evidence,
        positions=positions,
        units=np.array([(column.location, column.scale) for column in members]),
        params=reached.flat(),
        on_zero=on_zero,
    )


def known(
    question: Question, part: Table, answer: np.ndarray, value: Callable[[np.ndarray], np.ndarray | float]
) -> None:
    """Overwrite the answers of rows that observe the column themselves.

    `answer` is (n_draw, ..., n_target, n_row) of the part's rows; `value` makes the answer of the observed values.
    """
    for target, position in enumerate(question.positions):
        seen = part.observed[position]
        if seen.any():
            answer[..., target, seen] = value(part.values[position, seen])
