"""From and, or, not over sets of values to disjoint products of sets: a decision diagram over columns, and its paths.

Every node asks for the value of one column and has a branch for each different rest of the question:

    a in A or b in B or c in C        a: A -> yes
                                      a: not A -> b: B -> yes
                                                  b: not B -> c: C -> yes

Equal rests are one node, so paths are disjoint, neighbours on a column are merged, and counting comes before listing.
Nodes are interned: equal formulas are one object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from bayesjpt.errors import QueryError
from bayesjpt.queries.intervals import Domain, Intervals

MAX_NODES_PER_BOX = 4
"""Nodes over boxes; a contradiction that takes more nodes to see has no boxes to count."""


@dataclass(frozen=True, eq=False)
class Literal:
    """A column has a value in a set that is neither empty nor the whole domain."""

    column: int
    intervals: Intervals


@dataclass(frozen=True, eq=False)
class Group:
    """All of some formulas (`every`), or one of them at least; of no formulas: true, or false."""

    every: bool
    parts: tuple[Literal | Group, ...]


type Formula = Literal | Group

TRUE = Group(True, ())
FALSE = Group(False, ())


class Formulas:
    """Maker of formulas over columns with given domains; equal ones are the same object."""

    def __init__(self, domains: Sequence[Domain]):
        self.domains = domains
        self._known: dict[tuple, Formula] = {}

    def literal(self, column: int, intervals: Intervals) -> Formula:
        """Return "a column has a value in a set"."""
        if not intervals:
            return FALSE
        if intervals == self.domains[column].everything:
            return TRUE
        return self._known.setdefault((column, intervals), Literal(column, intervals))

    def group(self, every: bool, parts: Iterable[Formula]) -> Formula:
        """Return all, or one at least, of some formulas; what is said of one column is put into one set."""
        sets: dict[int, list[Intervals]] = {}
        rest: dict[Formula, None] = {}
        pending = list(parts)[::-1]
        while pending:
            part = pending.pop()
            if isinstance(part, Literal):
                sets.setdefault(part.column, []).append(part.intervals)
            elif part.every == every:
                pending += part.parts[::-1]
            elif not part.parts:
                return part
            else:
                rest[part] = None
        decided = FALSE if every else TRUE
        made = [self.literal(column, self._joined(every, column, found)) for column, found in sets.items()]
        if decided in made:
            return decided
        kept = (*(literal for literal in made if literal is not (TRUE if every else FALSE)), *rest)
        return self._of_parts(every, kept)

    def _of_parts(self, every: bool, parts: tuple[Formula, ...]) -> Formula:
        """Return the group of parts that need no joining."""
        if not parts:
            return TRUE if every else FALSE
        return parts[0] if len(parts) == 1 else self._known.setdefault((every, parts), Group(every, parts))

    def _joined(self, every: bool, column: int, sets: list[Intervals]) -> Intervals:
        """Return what lies in all, or in one at least, of some sets of a column."""
        if len(sets) == 1:
            return sets[0]
        domain = self.domains[column]
        if not every:
            return domain.canonical([piece for intervals in sets for piece in intervals])
        outside = [piece for intervals in sets for piece in domain.complement(intervals)]
        return domain.complement(domain.canonical(outside))

    def branches(self, formula: Formula, column: int) -> list[tuple[Intervals, Formula]]:
        """Return the different rests of a formula, truth first, each with the values of one column that lead to it."""
        domain = self.domains[column]
        sets = list(dict.fromkeys(part.intervals for part in _literals(formula) if part.column == column))
        starts = {domain.lo}
        for intervals in sets:
            for lo, hi in intervals:
                starts.update((lo, domain.after(hi)))
        cells = np.array(sorted(start for start in starts if start <= domain.hi and start != np.inf))
        answers = np.array([_holds_at(intervals, cells) for intervals in sets])
        ends = [*map(domain.before, cells[1:].tolist()), domain.hi]
        by_answer: dict[bytes, list[int]] = {}
        for number, answer in enumerate(answers.T):
            by_answer.setdefault(answer.tobytes(), []).append(number)
        by_rest: dict[Formula, list[tuple[float, float]]] = {}
        for numbers in by_answer.values():
            truth = dict(zip(sets, answers[:, numbers[0]].tolist(), strict=True))
            rest = self._given(formula, column, truth)
            by_rest.setdefault(rest, []).extend((float(cells[number]), ends[number]) for number in numbers)
        found = [(domain.canonical(pieces), rest) for rest, pieces in by_rest.items()]
        return sorted(found, key=lambda branch: branch[1] is not TRUE)

    def _given(self, formula: Formula, column: int, truth: dict[Intervals, bool]) -> Formula:
        """Return what is left of a formula once the sets of one column are known to hold or not."""
        if isinstance(formula, Literal):
            if formula.column != column:
                return formula
            return TRUE if truth[formula.intervals] else FALSE
        decided, neutral = (FALSE, TRUE) if formula.every else (TRUE, FALSE)
        kept = []
        changed = False
        for part in formula.parts:
            rest = self._given(part, column, truth)
            if rest is decided:
                return decided
            if rest is not neutral:
                kept.append(rest)
                changed |= rest is not part
        if len(kept) == len(formula.parts) and not changed:
            return formula
        return self.group(formula.every, kept) if changed else self._of_parts(formula.every, tuple(kept))


def _holds_at(intervals: Intervals, values: np.ndarray) -> np.ndarray:
    lo, hi = np.array(intervals).T
    position = np.searchsorted(lo, values, side="right") - 1
    return (position >= 0) & (values <= hi[position])


def _literals(formula: Formula) -> Iterator[Literal]:
    if isinstance(formula, Literal):
        yield formula
        return
    for part in formula.parts:
        yield from _literals(part)


def _next_column(formula: Formula) -> int:
    """Return the column to ask for: one that decides a group by itself, otherwise the one most often named."""
    if isinstance(formula, Literal):
        return formula.column
    for part in formula.parts:
        if isinstance(part, Literal):
            return part.column
    count = Counter(literal.column for literal in _literals(formula))
    return min(count, key=lambda column: (-count[column], column))


@dataclass(frozen=True, eq=False)
class Node:
    """Asks for a column: the sets of its values that lead on, each with the node it leads to, or to true or false.

    `n_path` counts the paths to true, one box each.
    """

    column: int
    branches: tuple[tuple[Intervals, Node | bool], ...]
    n_path: int


def disjoint_products(formulas: Formulas, formula: Formula, max_boxes: int) -> list[dict[int, Intervals]]:
    """Return disjoint products of sets, one dict from column to set each, whose union is where a formula holds.

    Raises
    ------
    QueryError
        Where there would be more than `max_boxes`, or a contradiction takes too many nodes to see.
    """
    found: list[dict[int, Intervals]] = []
    pending: list[tuple[Node | bool, dict[int, Intervals]]] = [(_diagram(formulas, formula, max_boxes), {})]
    while pending:
        node, product = pending.pop()
        if isinstance(node, Node):
            pending += [(rest, product | {node.column: intervals}) for intervals, rest in node.branches[::-1]]
        elif node:
            found.append(product)
    return found


def _diagram(formulas: Formulas, formula: Formula, max_boxes: int) -> Node | bool:
    """Return the diagram of a formula.

    Rests come before their nodes, so a part of the event that alone has too many paths ends the work early, and a
    question whose answers all lead to the same rest is left out.
    """
    made: dict[Formula, Node | bool] = {TRUE: True, FALSE: False}
    known: dict[tuple, Node] = {}
    branches: dict[Formula, tuple[int, list[tuple[Intervals, Formula]]]] = {}
    max_nodes = MAX_NODES_PER_BOX * max_boxes + len(formulas.domains)
    pending = [formula]
    while pending:
        top = pending[-1]
        if top in made:
            pending.pop()
        elif top in branches:
            column, choices = branches[top]
            made[top] = node = _reduced(
                column, formulas.domains[column], [(i, made[rest]) for i, rest in choices], known
            )
            if isinstance(node, Node) and node.n_path > max_boxes:
                _refuse(f"the event splits into {node.n_path} boxes or more", f"at most {max_boxes}")
        else:
            if len(branches) >= max_nodes:
                _refuse(f"the event is too entangled: more than {max_nodes} cases to tell apart")
            column = _next_column(top)
            branches[top] = column, formulas.branches(top, column)
            pending += [rest for _, rest in branches[top][1]]
    return made[formula]


def _reduced(
    column: int, domain: Domain, branches: list[tuple[Intervals, Node | bool]], known: dict[tuple, Node]
) -> Node | bool:
    """Return a node, or what it leads to where that is one thing; equal nodes are one."""
    by_rest: dict[Node | bool, list[tuple[float, float]]] = {}
    for intervals, rest in branches:
        by_rest.setdefault(rest, []).extend(intervals)
    if len(by_rest) == 1:
        return next(iter(by_rest))
    kept = tuple((domain.canonical(pieces), rest) for rest, pieces in by_rest.items() if rest is not False)
    n_path = sum(rest.n_path if isinstance(rest, Node) else 1 for _, rest in kept)
    return known.setdefault((column, kept), Node(column, kept, n_path))


def _refuse(found: str, expected: str | None = None) -> NoReturn:
    raise QueryError(found, expected, "Ask for parts of it one by one, or raise max_boxes.")
