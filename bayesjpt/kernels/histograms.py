"""Rows counted by leaf region and value: all that sweeps over a hard tree need to know of a table, however long.

Where splits alone decide which way a row goes, its way does not depend on weights and parameters. Rows that bring the
same value to the same slot are alike to every sweep, and are counted once and for all:

      rows          1  2  3  4  5  6  7            ways, by the splits:   A  A  B  A  B  B  A
      values        3  7  3  3  .  7  3            (. is missing, and not counted)
      histograms    slot in A:  3 -> 3, 7 -> 1     slot in B:  3 -> 1, 7 -> 1

Counts are whole numbers, so they are the same for any division of the rows among threads, files and machines.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.plan import Plan
from bayesjpt.kernels.cells import Cells, assemble, fill_codes
from bayesjpt.kernels.routes import no_routes
from bayesjpt.kernels.units import UNIT_ROWS, Source
from bayesjpt.numerics.jit import kernel

LIKELIHOOD_KIND, PRODUCT_KIND = int(arrays.LIKELIHOOD), int(arrays.PRODUCT)


@dataclass(frozen=True, eq=False)
class Bins:
    """Where the counts of each slot and value lie: decided once for all rows.

    Parameters
    ----------
    values : dict from int to float64 (n_distinct,)
        Distinct observed values of each column that a slot describes, ascending.
    bin_at : int64 (n_slot + 1,)
        Where the bins of each slot begin, one for each distinct value of its column.
    """

    values: dict[int, np.ndarray]
    bin_at: np.ndarray


@dataclass(eq=False)
class Counts:
    """What was counted in some rows; parts of it are merged in any order.

    Attributes
    ----------
    count : int64 (n_bin,)
        Rows by slot and value.
    first : int64 (n_bin,)
        The first of these rows; of no use where there is none.
    taken : int64 (n_edge,)
        Rows that took each edge of a hard sum.
    n_open : int
        Rows that come to a split without an observed cell of its column: their ways are not known.
    impossible : int
        The first row that no child of a split is for, -1 where there is none.
    """

    count: np.ndarray
    first: np.ndarray
    taken: np.ndarray
    n_open: int = 0
    impossible: int = -1

    @classmethod
    def none(cls, plan: Plan, bins: Bins) -> Counts:
        """Return the counts of no rows."""
        n_bin = int(bins.bin_at[-1])
        # first rows are merged by their minimum: larger than any row
        return cls(
            np.zeros(n_bin, np.int64), np.full(n_bin, np.iinfo(np.int64).max), np.zeros(plan.child.size, np.int64)
        )

    def merge(self, other: Counts) -> None:
        """Add what was counted in other rows."""
        self.count += other.count
        self.taken += other.taken
        self.n_open += other.n_open
        np.minimum(self.first, other.first, out=self.first)
        if other.impossible >= 0:
            self.impossible = other.impossible if self.impossible < 0 else min(self.impossible, other.impossible)


class Histograms:
    """The rows of a table under a hard tree, as far as sweeps need them.

    Parameters
    ----------
    plan : Plan
    source : Source
    bins : Bins
    counts : Counts
        Of all rows.

    Attributes
    ----------
    cells : Cells
        Of no row, with the features of all values.
    n_open : int
        0: all ways are known.
    """

    n_open = 0

    def __init__(self, plan: Plan, source: Source, bins: Bins, counts: Counts):
        self.plan, self.source, self.bins, self.counts = plan, source, bins, counts
        self.cells = _cells_of_values(plan, bins)

    @property
    def n_row(self) -> int:
        return self.source.n_row

    def digest(self) -> str:
        """Return a hash of all rows and of how they are arranged."""
        total = hashlib.sha256(f"histograms {self.source.digest()}".encode())
        for column, values in self.bins.values.items():
            total.update(f"{column}".encode())
            total.update(values.tobytes())
        return total.hexdigest()


def make_bins(plan: Plan, source: Source, max_bins: int) -> Bins | None:
    """Return the bins of a table under a plan; None where rows have to be looked at in each sweep.

    That is so where a sum of the structure is latent, or where there would be more bins than `max_bins`.
    """
    inner = (plan.slot_of_node < 0) & (np.diff(plan.child_ptr) > 0) & (plan.kind != PRODUCT_KIND)
    if (plan.split_column[inner] < 0).any():
        return None
    values, left = {}, max_bins
    for column in np.unique(plan.slot_column).tolist():
        n_slot = int((plan.slot_column == column).sum())
        # each slot over the column has bins of its own for all of its values
        found = source.distinct(column, left // n_slot)
        if found is None:
            return None
        values[column] = found
        left -= n_slot * found.size
    sizes = np.array([values[column].size for column in plan.slot_column.tolist()], np.int64)
    return Bins(values, np.append(0, np.cumsum(sizes)))


def count_rows(plan: Plan, bins: Bins, source: Source, rows: tuple[int, int], first_row: int = 0) -> Counts:
    """Return what is counted in some rows: a function of its arguments.

    Parameters
    ----------
    plan : Plan
    bins : Bins
        Of a table to which the rows belong.
    source : Source
    rows : (int, int)
        The first row, and the one behind the last.
    first_row : int
        The number of the source's first row in the table.
    """
    total = Counts.none(plan, bins)
    for first in range(*rows, UNIT_ROWS):
        _add_rows(plan, bins, source, (first, min(first + UNIT_ROWS, rows[1])), first_row, total)
    return total


def _add_rows(plan: Plan, bins: Bins, source: Source, rows: tuple[int, int], first_row: int, total: Counts) -> None:
    values, observed = source.arrays(*rows)
    code = np.zeros(values.shape, np.int32)
    for column, distinct in bins.values.items():
        # cells that are not observed get any code: it is not read
        fill_codes(distinct, np.ascontiguousarray(values[column]), code[column])
    bad = np.array([0, -1], np.int64)
    _count(plan, values, observed, code, bins.bin_at, first_row + rows[0], total.count, total.first, total.taken, bad)
    total.n_open += int(bad[0])
    if bad[1] >= 0:
        total.impossible = int(bad[1]) if total.impossible < 0 else min(total.impossible, int(bad[1]))


def count_in_threads(plan: Plan, bins: Bins, source: Source, n_thread: int = 1) -> Counts:
    """Return what is counted in all rows, by threads of this process; their number has no effect on it.

    Counting ends early where a row's way is not known.
    """
    waiting: Iterable[int] = iter(range(0, source.n_row, UNIT_ROWS))
    lock, total = threading.Lock(), Counts.none(plan, bins)

    def serve(part: Counts) -> Counts:
        while not part.n_open:
            # threads share the iterator alone; counts are each thread's own until all are done
            with lock:
                first = next(waiting, None)
            if first is None:
                break
            _add_rows(plan, bins, source, (first, min(first + UNIT_ROWS, source.n_row)), 0, part)
        return part

    n_thread = min(n_thread, -(-source.n_row // UNIT_ROWS))
    if n_thread <= 1:
        return serve(total)
    with ThreadPoolExecutor(n_thread, thread_name_prefix="histograms") as pool:
        for part in pool.map(serve, [Counts.none(plan, bins) for _ in range(n_thread)]):
            total.merge(part)
    return total


@kernel
def _count(plan, values, observed, code, bin_at, first_row, count, first, taken, bad):
    """Send each row down the splits, and count its values where it arrives and the edges that it takes.

    `bad` is the number of rows that come to a split without a cell of its column, and the first row, by its number
    from `first_row` on, that no child is for.
    """
    stack = np.empty(plan.kind.size + 1, np.int32)
    for row in range(values.shape[1]):
        stack[0] = plan.kind.size - 1
        depth = 1
        while depth > 0:
            depth -= 1
            node = stack[depth]
            slot = plan.slot_of_node[node]
            if slot >= 0:
                column = plan.slot_column[slot]
                if observed[column, row]:
                    at = bin_at[slot] + code[column, row]
                    if count[at] == 0:  # rows come in their order
                        first[at] = first_row + row
                    count[at] += 1
                continue
            if plan.kind[node] == PRODUCT_KIND:
                for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
                    stack[depth] = plan.child[e]
                    depth += 1
                continue
            column = plan.split_column[node]
            if not observed[column, row]:
                bad[0] += 1
                continue
            x, chosen = values[column, row], np.int64(-1)
            for e in range(plan.child_ptr[node], plan.child_ptr[node + 1]):
                if plan.edge_label_at[e] >= 0:
                    reaches = plan.label_reaches[plan.edge_label_at[e] + int(x)]
                else:
                    reaches = plan.edge_lower[e] <= x <= plan.edge_upper[e]
                if reaches:  # children are disjoint
                    chosen = np.int64(e)
                    break
            if chosen >= 0:
                taken[chosen] += 1
                stack[depth] = plan.child[chosen]
                depth += 1
            elif bad[1] < 0:
                # rows come in their order: the first that is found is the smallest
                bad[1] = first_row + row


def _cells_of_values(plan: Plan, bins: Bins) -> Cells:
    """Return the Cells of no row whose slots are all coded; tables of all slots lie in the same place."""
    n_column = plan.column_resolution.size
    values, observed = np.empty((n_column, 0)), np.empty((n_column, 0), bool)
    reached = np.ones(plan.slot_node.size, bool)
    cells = assemble(plan, values, observed, bins.values, no_routes(plan, 0), reached=reached)
    longest = int(cells.n_distinct.max(initial=0)) + 1
    widest = int(np.diff(plan.child_ptr)[plan.slot_node].max(initial=1))
    return cells._replace(
        table_at=np.zeros_like(cells.table_at),
        term_at=np.zeros_like(cells.term_at),
        n_table=np.array([longest], np.int64),
        n_term=np.array([longest * widest], np.int64),
    )
