"""What learners share: argument checks, the progress callback, and the growth of a tree from a stack of tasks.

A learner decides about one task at a time, a block of rows and columns; `grow` keeps the tasks and puts the nodes
together, without recursion. It knows nothing of how a learner decides.

      task ── decide ──> None              independent leaves, one a column
                    └──> Columns(tasks)    Product of the tasks' nodes
                    └──> Rows(tasks)       Sum of the tasks' nodes
"""

from __future__ import annotations

import functools
import math
import numbers
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bayesjpt.circuit.build import ColumnLeaf, Node, Product, Sum
from bayesjpt.errors import LearnerError
from bayesjpt.numerics.generator import as_generator
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


_LEAST_SHARE, _LEAST_COUNT = 0.05, 25
"""Share of the table's rows, and number of rows, at which the splitting of a mixed sum-product network ends; the larger
holds. ABDA's grid is 0.1, 0.2 and 0.3: sub-populations that the data do not need lose their rows again. On validation
rows of nine public tables 25 is better than 50 by .23 nats a row on iris, .35 on cars, .03 on heart and diabetes
(docs/results.md)."""


class Progress(Protocol):
    """A callback ``progress(n_done, n_total)``: cells of the table that belong to a leaf already, and all of them."""

    def __call__(self, n_done: int, n_total: int, /) -> None: ...


@dataclass(frozen=True)
class Task:
    """A block of the table for which a node is to be made.

    Parameters
    ----------
    rows : intp (n,)
        Positions in the table, ascending.
    scope : intp (m,)
        Columns, ascending.
    columns_tested : bool
        Whether the columns were found dependent on exactly these rows, so that only a split of rows is left.
    """

    rows: np.ndarray
    scope: np.ndarray
    columns_tested: bool = False


@dataclass(frozen=True)
class Columns:
    """The decision that the tasks' columns are independent."""

    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Rows:
    """The decision that the tasks' rows are sub-populations."""

    tasks: tuple[Task, ...]


Decide = Callable[[Task], Columns | Rows | None]


def independent(rows: np.ndarray, scope: np.ndarray) -> Node:
    """Return a product of one leaf per column, or the leaf itself of a single column."""
    leaves = tuple(ColumnLeaf(int(column), rows) for column in scope)
    return leaves[0] if len(leaves) == 1 else Product(leaves)


def product_of(children: Sequence[Node]) -> Product:
    """Return a Product in which the children that are Products are replaced by their own children."""
    flat: list[Node] = []
    for child in children:
        flat.extend(child.children if isinstance(child, Product) else (child,))
    return Product(tuple(flat))


def sum_of(children: Sequence[Node], n_rows: Sequence[int]) -> Sum:
    """Return a Sum in which the children that are Sums are replaced by their own children."""
    flat: list[Node] = []
    counts: list[int] = []
    for child, count in zip(children, n_rows, strict=True):
        if isinstance(child, Sum):
            flat.extend(child.children)
            counts.extend(child.n_rows)
        else:
            flat.append(child)
            counts.append(count)
    return Sum(tuple(flat), tuple(counts))


def grow(root: Task, decide: Decide, progress: Progress | None = None) -> Node:
    """Return the tree that follows from a learner's decisions, depth first and in the order of the tasks.

    Parameters
    ----------
    root : Task
    decide : callable
        ``(task) -> Columns``, ``Rows`` or None; None makes one leaf per column.
    progress : callable, optional
        Called after each block of leaves.

    Notes
    -----
    The stack holds tasks and, below the tasks of each split, the split itself: when it comes up, its children are the
    last finished nodes. So depth has no limit.
    """
    n_total = root.rows.size * root.scope.size
    n_done = 0
    finished: list[Node] = []
    stack: list[Task | Columns | Rows] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, Task):
            decision = decide(item)
            if decision is None:
                finished.append(independent(item.rows, item.scope))
                n_done += item.rows.size * item.scope.size
                if progress is not None:
                    progress(n_done, n_total)
            else:
                assert len(decision.tasks) > 1
                stack.append(decision)
                # reversed: the first task comes off the stack first
                stack.extend(reversed(decision.tasks))
        else:
            # behind the split the last finished nodes are those of its tasks
            children = finished[-len(item.tasks) :]
            del finished[-len(item.tasks) :]
            if isinstance(item, Columns):
                finished.append(product_of(children))
            else:
                finished.append(sum_of(children, [task.rows.size for task in item.tasks]))
    return finished[0]


def whole(table: Table) -> Task:
    """Return the task of all rows and columns."""
    return Task(np.arange(table.n_row), np.arange(table.n_column))


def last_of[Item](items: Iterable[Item], progress: Progress | None, n_cell: int, n_total: int) -> Item:
    """Return the last of some items, each of which stands for `n_cell` cells done of `n_total`."""
    kept: deque[Item] = deque(maxlen=1)
    for number, item in enumerate(items, 1):
        kept.append(item)
        if progress is not None:
            progress(number * n_cell, n_total)
    return kept.pop()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS at one thread, so that the last bits of a result do not depend on the number of cores.

    The limit holds for the whole process from the first context that is opened to the last that is closed: learners in
    several threads would otherwise lift it under each other.
    """
    with _limit_gate:
        # the first context of the process sets the limit, the last one lifts it
        if not _open_limits:
            _limit.enter_context(_controller().limit(limits=1))
        _open_limits.append(1)
    try:
        yield
    finally:
        with _limit_gate:
            _open_limits.pop()
            if not _open_limits:
                _limit.close()


_limit_gate, _limit = threading.Lock(), ExitStack()
_open_limits: list[int] = []
"""One entry for each open context of `one_thread`."""


@functools.cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401 - loads the libraries, which the controller must see
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def check_input(table: Table, rng: int | np.random.Generator | None) -> np.random.Generator:
    """Return the generator that a seed, a generator or None stands for; raise `LearnerError` without cells or one."""
    if not isinstance(table, Table):
        raise LearnerError(
            f"a {type(table).__name__} instead of a table", "a bayesjpt Table", "Read the data with as_table(data)."
        )
    if table.n_row == 0 or table.n_column == 0:
        raise LearnerError(
            f"a table of {table.n_row} rows and {table.n_column} columns", "at least one row and one column"
        )
    generator = as_generator(rng)
    if generator is None:
        expected = "None, a seed from 0 or a numpy.random.Generator"
        raise LearnerError(f"rng is {_rendered(rng)}", expected, "Pass np.random.default_rng(seed).")
    return generator


def check_count(name: str, value: int, most: int | None = None) -> int:
    """Return a setting that counts something, or raise `LearnerError` unless it is a whole number from 1 to `most`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not 1 <= value <= (most or value):
        expected = f"a whole number {'of at least 1' if most is None else f'from 1 to {most}'}"
        raise LearnerError(f"{name} is {_rendered(value)}", expected)
    return int(value)


def check_choice(name: str, value: str, choices: Sequence[str]) -> str:
    """Return a setting, or raise `LearnerError` unless it is one of some words."""
    if not isinstance(value, str) or value not in choices:
        raise LearnerError(f"{name} is {_rendered(value)}", f"one of {', '.join(choices)}")
    return value


def check_between(name: str, value: float, lo: float, hi: float) -> float:
    """Return a setting, or raise `LearnerError` unless it is a number of the closed interval [lo, hi]."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not lo <= value <= hi:
        raise LearnerError(f"{name} is {_rendered(value)}", f"a number from {lo:g} to {hi:g}")
    return float(value)


def check_share(name: str, value: float) -> float:
    """Return a setting, or raise `LearnerError` unless it is a share in [0, 1), so that something is left."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0.0 <= value < 1.0:
        raise LearnerError(f"{name} is {_rendered(value)}", "a share from 0 to below 1")
    return float(value)


def check_positive_share(name: str, value: float) -> float:
    """Return a setting, or raise `LearnerError` unless it is a share in (0, 1], so that something is taken."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0.0 < value <= 1.0:
        raise LearnerError(f"{name} is {_rendered(value)}", "a share above 0, to 1")
    return float(value)


def check_positive(name: str, value: float) -> float:
    """Return a setting, or raise `LearnerError` unless it is a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0.0 < value < math.inf:
        raise LearnerError(f"{name} is {_rendered(value)}", "a positive number")
    return float(value)


def least_rows(min_rows: float | None, n_row: int) -> int:
    """Return the rows at which a mixed sum-product network is split no more: a setting, as in `rows_of`, or 5 %."""
    if min_rows is not None:
        return rows_of("min_rows", min_rows, n_row)
    return max(_LEAST_COUNT, int(_LEAST_SHARE * n_row))


def rows_of(name: str, value: float, n_row: int) -> int:
    """Return a number of rows from a whole number or from a share of the table's rows.

    Parameters
    ----------
    name : str
        Name of the setting, for the message.
    value : int or float
        A whole number of at least 1, or a share in (0, 1), of which at least one row is made.
    n_row : int
        Rows of the table.

    Raises
    ------
    LearnerError
        Where the value is neither.

    Examples
    --------
    >>> rows_of("min_rows", 0.1, 4177), rows_of("min_rows", 200, 4177)
    (417, 200)
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise LearnerError(f"{name} is {_rendered(value)}", "a number of rows, or a share between 0 and 1")
    if isinstance(value, numbers.Integral):
        return check_count(name, int(value))
    if not 0.0 < value < 1.0:
        raise LearnerError(
            f"{name} is the share {_rendered(value)}",
            "a share between 0 and 1, both excluded",
            "Write a number of rows without decimal point.",
        )
    return max(1, int(value * n_row))


def _rendered(value: object) -> str:
    """Return a value in words short enough for a one-line message."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write whole numbers of thousands of digits
        text = ""
    return text if 0 < len(text) <= 40 else f"a {type(value).__name__}"
