"""When parts of a cutset network are divided: of labels alone as published, of numbers until few rows are left.

Beside that, the checked settings of the learner, and how many rows judge its splits afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bayesjpt import defaults
from bayesjpt.errors import LearnerError
from bayesjpt.structure import base
from bayesjpt.table.table import Table

_MIN_ROWS = 300
"""Delta of Di Mauro et al. (2017)."""

_MIXED_COUNT, _MIXED_SHARE = 25, 0.01
"""In its place where there are numbers, which depend on others by splits alone: rows, or share of the table's, the
larger holds. Of 25, 50 and 100 rows 25 are best on held-out rows of iris, wine and abalone, by .1 to .6 nats a row
against 50 (docs/explanation/cutset.md); the share bounds the circuits of large tables."""


@dataclass(frozen=True)
class Settings:
    """Checked settings of `learn_cutset`; `min_rows` is a number of rows."""

    select: str
    leaf: str
    min_rows: int
    min_columns: int
    ess: float
    subspace: float = 1.0


def divides(table: Table, options: Mapping[str, Any]) -> bool:
    """Return whether `learn_cutset` may divide a table: of one that it does not, every seed gives the same circuit."""
    min_rows, min_columns = options.get("min_rows"), options.get("min_columns")
    return table.n_row > least_rows(table, min_rows) and table.n_column > least_columns(table, min_columns)


def _is_of_labels(table: Table) -> bool:
    return all(column.base == "category" for column in table.schema.columns)


def least_rows(table: Table, min_rows: float | None) -> int:
    """Return the rows of which a part may be divided if it has more; raise where the setting makes no sense."""
    if min_rows is not None:
        return base.rows_of("min_rows", min_rows, table.n_row)
    if _is_of_labels(table):
        return _MIN_ROWS
    return max(_MIXED_COUNT, int(_MIXED_SHARE * table.n_row))


def least_columns(table: Table, min_columns: int | None) -> int:
    """Return the columns of which a part may be divided if it has more left; raise as `least_rows`."""
    if min_columns is not None:
        return base.check_count("min_columns", min_columns)
    return defaults.CUTSET_MIN_COLUMNS if _is_of_labels(table) else defaults.CUTSET_MIXED_COLUMNS


def held_out_rows(table: Table, share: float) -> int:
    """Return the rows that pruning holds out; raise where it would hold out none, and take back what nothing judged."""
    n_out = int(share * table.n_row)
    if share > 0.0 and n_out == 0:
        raise LearnerError(
            f"prune is {share:g}, which holds out none of {table.n_row} rows",
            "0, or a share that holds out at least one row",
            "Hold out a fifth of the rows: prune=0.2." if table.n_row >= 5 else "Prune nothing: prune=0.",
        )
    return n_out
