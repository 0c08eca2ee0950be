"""What sends a row to a child of a hard sum: its value in the column that decides, as arrays for kernels."""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.possible import Possible, possible
from bayesjpt.numerics.jit import kernel
from bayesjpt.table.schema import Schema

_FEW = 64
"""Sets of codes that are compared one by one; more are sorted."""


def routes(circuit: Circuit, schema: Schema) -> dict[str, np.ndarray]:
    """Return the fields of a Plan that say which values reach each child of a hard sum.

    Returns
    -------
    split_column : int32 (n_node,)
        The column that decides at a hard sum; -1 elsewhere, and where no column tells its children apart.
    edge_lower, edge_upper : float64 (n_edge,)
        The closed interval of numbers that reaches the child, in the user's units.
    edge_label_at : int32 (n_edge,), label_reaches : bool
        On a column of labels: where the flags of the child begin, one a code; -1 elsewhere. Children that the same
        codes reach share them.
    """
    values = possible(circuit)
    split = values.split_columns(circuit)
    column = split[circuit.edge_parent()]
    lower, upper = np.full(circuit.n_edge, -np.inf), np.full(circuit.n_edge, np.inf)
    # small numbers are sorted by their digits, in a tenth of the time
    order = np.argsort(column.astype(np.int16) if len(schema) < 2**15 else column, kind="stable")
    begin = np.searchsorted(column, np.arange(len(schema) + 1), sorter=order)
    for place, bounded in enumerate(values.bounded.tolist()):
        edges = order[begin[bounded] : begin[bounded + 1]]
        lower[edges] = values.lower[circuit.child[edges], place]
        upper[edges] = values.upper[circuit.child[edges], place]
    label_at = np.full(circuit.n_edge, -1, np.int32)
    flags: list[np.ndarray] = []
    n_flag = 0
    for place, flagged in enumerate(values.flagged.tolist()):
        edges = order[begin[flagged] : begin[flagged + 1]]
        if not edges.size:
            continue
        reaching, number = _distinct(values, circuit.child[edges], place)
        label_at[edges] = n_flag + schema.columns[flagged].n_label * number
        for node in reaching.tolist():
            flags.append(values.reaches(node, place))
            n_flag += flags[-1].size
    return {
        "split_column": split,
        "edge_lower": lower,
        "edge_upper": upper,
        "edge_label_at": label_at,
        "label_reaches": np.concatenate([*flags, np.empty(0, bool)]),
    }


def _distinct(values: Possible, nodes: np.ndarray, place: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes that stand for all that the same codes of a column reach, and which of them each node is alike."""
    words = values.bits[nodes, values.words(place)] & values.mask(place)
    if words.shape[1] == 1:
        first, number = _number(words[:, 0], _FEW)
        if first.size <= _FEW:
            return nodes[first], number
        _, first, number = np.unique(words[:, 0], return_index=True, return_inverse=True)
    else:
        _, first, number = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return nodes[first], number.ravel()


@kernel
def _number(words, most):
    """Return where each distinct word stands first, and which of them each word is; of more than `most`, that many."""
    first, number = np.empty(most + 1, np.int64), np.empty(words.size, np.int64)
    n = 0
    for i in range(words.size):
        k = 0
        while k < n and words[first[k]] != words[i]:
            k += 1
        if k == n:
            first[n] = i
            n += 1
            if n > most:
                break
        number[i] = k
    return first[:n].copy(), number
