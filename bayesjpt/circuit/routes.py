"""What sends a row to a child of a hard sum: its value in the column that decides, as arrays for kernels."""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.paths import Interval, regions, separating_column
from bayesjpt.table.schema import Schema


def routes(circuit: Circuit, schema: Schema) -> dict[str, np.ndarray]:
    """Return the fields of a Plan that say which values reach each child of a hard sum.

    Returns
    -------
    split_column : int32 (n_node,)
        The column that decides at a hard sum; -1 elsewhere, and where no column tells its children apart.
    edge_lower, edge_upper : float64 (n_edge,)
        The closed interval of numbers that reaches the child, in the user's units.
    edge_label_at : int32 (n_edge,), label_reaches : bool
        On a column of labels: where the flags of the child begin, one a code; -1 elsewhere.
    """
    split = np.full(circuit.n_node, -1, np.int32)
    lower, upper = np.full(circuit.n_edge, -np.inf), np.full(circuit.n_edge, np.inf)
    label_at = np.full(circuit.n_edge, -1, np.int32)
    flags: list[np.ndarray] = []
    hard = np.flatnonzero(circuit.kind == arrays.HARD)
    region = regions(circuit) if hard.size else []
    n_flag = 0
    for node in hard:
        edges = range(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        parts = [region[child] for child in circuit.child[edges.start : edges.stop]]
        column = separating_column(parts) if len(parts) > 1 else -1
        if column < 0:
            continue
        split[node] = column
        for edge, part in zip(edges, parts, strict=True):
            reaches = part[column]
            if isinstance(reaches, Interval):
                lower[edge], upper[edge] = reaches
                continue
            label_at[edge] = n_flag
            flags.append(np.isin(np.arange(schema.columns[column].n_label), reaches))
            n_flag += flags[-1].size
    return {
        "split_column": split,
        "edge_lower": lower,
        "edge_upper": upper,
        "edge_label_at": label_at,
        "label_reaches": np.concatenate([*flags, np.empty(0, bool)]),
    }
