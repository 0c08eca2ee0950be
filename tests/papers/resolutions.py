"""The width of a cell of every column of ABDA's tables, fixed in a file that holds for every model.

    python -m tests.papers.resolutions --data DIR

writes `resolutions.json` beside this script, from training rows alone: 1 for a column of integers or of whole codes,
the recording grid of other columns ({1, 2, 5} x 10^k, as the table's reader finds it).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bayesjpt.table import resolution
from bayesjpt.table.schema import Column, Schema
from tests.papers.abda_data import Data, our_tables, read_data, table_names
from tests.papers.programs import run

FILE = Path(__file__).with_name("resolutions.json")


def find_resolutions(data: Data) -> np.ndarray:
    """Return float64 (n_column,), decided from the training rows."""
    train, _ = our_tables(data)
    return np.array([_of_column(*pair) for pair in zip(train.schema, data.train.T, strict=True)])


def _of_column(column: Column, values: np.ndarray) -> float:
    if column.base != "category":
        return column.resolution
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if (distinct == np.round(distinct)).all():
        return 1.0
    return resolution.grid(distinct, counts) or resolution.fallback(distinct, float(np.ptp(distinct)))


def known_resolutions(name: str) -> np.ndarray | None:
    """Return the widths of a table's columns, float64 (n_column,), or None for a table that the file does not know."""
    known = json.loads(FILE.read_text())
    return np.array(list(known[name].values())) if name in known else None


def with_widths(schema: Schema, widths: np.ndarray) -> Schema:
    """Return a schema whose columns of reals are recorded to these widths; integers and labels are cells already."""
    columns = zip(schema, widths, strict=True)
    return replace(schema, columns=tuple(replace(c, resolution=w) if c.base == "real" else c for c, w in columns))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.resolutions", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds abda/")
    parser.add_argument("--out", type=Path, default=FILE)
    chosen = parser.parse_args(arguments)
    found = {name: find_resolutions(read_data(chosen.data, name)) for name in table_names(chosen.data)}
    named = {name: {f"x{k}": width for k, width in enumerate(widths)} for name, widths in found.items()}
    lines = [f"  {json.dumps(name)}: {json.dumps(widths)}" for name, widths in named.items()]
    chosen.out.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(named)} tables in {chosen.out}")
    return 0


if __name__ == "__main__":
    run(main)
