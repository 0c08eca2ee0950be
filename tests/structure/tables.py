"""Tables made by hand from arrays, without the readers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table


def table_of(*columns: Sequence[float], bases: str = "") -> Table:
    """Return a table from columns of numbers in which NaN is missing.

    `bases` holds one letter a column: r(eal), i(nteger) or c(ategory); all real unless given.
    """
    values = np.array(columns, np.float64)
    observed = ~np.isnan(values)
    schema = []
    for position, base in enumerate(bases or "r" * len(values)):
        cells = values[position, observed[position]]
        values[position, ~observed[position]] = cells[0] if cells.size else 0.0
        schema.append(_column(f"x{position}", base, cells))
    for array in (values, observed):
        array.flags.writeable = False
    return Table(Schema(tuple(schema)), values, observed)


def _column(name: str, base: str, cells: np.ndarray) -> Column:
    facts = {"mean": float(cells.mean()) if cells.size else 0.0, "maximum": float(cells.max(initial=0.0))}
    if base == "c":
        n_label = int(cells.max(initial=0.0)) + 1
        counts = np.append(np.bincount(cells.astype(int), minlength=n_label), 0) + 1.0
        labels = tuple(f"label {code}" for code in range(n_label))
        shares = tuple((counts / counts.sum()).tolist())
        return Column(name, "category", (0.0, float(n_label)), labels=labels, frequencies=shares, **facts)
    if base == "i":
        lowest = 0.0 if cells.min(initial=0.0) >= 0.0 else -np.inf
        return Column(
            name, "integer", (lowest, np.inf), scale=max(float(cells.std()) if cells.size else 1.0, 1.0), **facts
        )
    spread = float(cells.std()) if cells.size else 0.0
    scale = spread if spread > 0.0 else 1.0
    return Column(
        name, "real", (-np.inf, np.inf), resolution=scale / 1000.0, scale=scale, location=facts["mean"], **facts
    )


def without_cells(table: Table, share: float, rng: np.random.Generator) -> Table:
    """Return the table with a share of its cells hidden at random."""
    return Table(table.schema, table.values, table.observed & (rng.random(table.observed.shape) >= share))
