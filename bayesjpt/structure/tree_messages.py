"""Exact sums over the states of a tree, for many rows at once: upward and downward messages, and draws.

Each variable i of a tree has states; a row says how probable its cell is under each of them (`evidence`), and
``transition[i][q, k]`` is the probability of state k of i given state q of its parent (one row, q = 0, at a root).

      below i     evidence of i and of all that depends on it, given the state of i        leaves first
      message i   the same given the state of its parent: below @ transition.T

What lies below is scaled to add up to one in each row, and logarithms of the scales are kept.

Reference: Pearl (1988). Probabilistic Reasoning in Intelligent Systems, chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.structure.bins import blocks


class Messages(NamedTuple):
    """What goes up a tree, for some rows.

    Attributes
    ----------
    log_value : float64 (n_row,), nats
        Log probability of each row.
    below : list of float64 (n_row, n_state)
        One array a variable; each row adds up to 1.
    message : list of float64 (n_row, n_state of the parent)
    """

    log_value: np.ndarray
    below: list[np.ndarray]
    message: list[np.ndarray]


def parents_first(parents: Sequence[int]) -> list[int]:
    """Return the variables of a tree, or of several, each after its parent (-1 at roots)."""
    kids: dict[int, list[int]] = {}
    for variable, parent in enumerate(parents):
        kids.setdefault(int(parent), []).append(variable)
    order = list(kids.get(-1, []))
    # the list grows while it is walked: children behind their parents
    for variable in order:
        order += kids.get(variable, [])
    return order


def upward(parents: Sequence[int], transition: Sequence[np.ndarray], evidence: Sequence[np.ndarray]) -> Messages:
    """Return the messages of a tree.

    Parameters
    ----------
    parents : sequence of int (n,)
        -1 for roots.
    transition : sequence of float64 (n_state of the parent, n_state)
        Positive.
    evidence : sequence of float64 (n_row, n_state)
        With a positive entry in each row; ones where a cell is missing.
    """
    below = [np.array(each) for each in evidence]
    message = below.copy()
    log_value = np.zeros(below[0].shape[0])
    for variable in reversed(parents_first(parents)):
        scale = below[variable].sum(axis=1)
        below[variable] /= scale[:, None]
        log_value += np.log(scale)
        message[variable] = below[variable] @ transition[variable].T
        if parents[variable] >= 0:
            above = below[parents[variable]]
            above *= message[variable]
            top = above.max(axis=1)  # of a variable with hundreds of others below it the product would vanish
            above /= top[:, None]
            log_value += np.log(top)
        else:
            log_value += np.log(message[variable][:, 0])
    return Messages(log_value, below, message)


def log_probabilities(trees: Sequence[tuple[Sequence[int], Sequence[np.ndarray]]], code: np.ndarray) -> np.ndarray:
    """Return the log probability of rows whose cells are states of trees, missing ones summed out.

    Parameters
    ----------
    trees : sequence of pairs
        Parents and transitions of each, as in `upward`, over the same variables.
    code : int (n, n_row)
        The state of each cell, -1 where it is missing.

    Returns
    -------
    float64 (n_tree, n_row), nats

    Examples
    --------
    >>> tables = [np.array([[0.25, 0.75]]), np.array([[0.5, 0.5], [0.1, 0.9]])]
    >>> np.exp(log_probabilities([([-1, 0], tables)], np.array([[0, -1], [1, 1]]))).round(3).tolist()
    [[0.125, 0.8]]
    """
    out = np.zeros((len(trees), code.shape[1]))
    if not len(code):
        return out
    complete = (code >= 0).all(axis=0)
    whole, rest = code[:, complete], np.flatnonzero(~complete)
    if whole.shape[1]:  # a complete row needs no sums: an entry of each table
        for k, (parents, transition) in enumerate(trees):
            value = np.zeros(whole.shape[1])
            for variable, parent in enumerate(parents):
                above = whole[parent] if parent >= 0 else 0
                value += np.log(transition[variable])[above, whole[variable]]
            out[k, complete] = value
    # a cell is its own state: one there, or ones everywhere where it is missing (the last row, of code -1)
    states = [np.vstack([np.eye(table.shape[1]), np.ones(table.shape[1])]) for table in trees[0][1]]
    for part in blocks(rest.size):
        evidence = [of_state[cells] for of_state, cells in zip(states, code[:, rest[part]], strict=True)]
        for k, (parents, transition) in enumerate(trees):
            out[k, rest[part]] = upward(parents, transition, evidence).log_value
    return out


def drawn(
    parents: Sequence[int],
    transition: Sequence[np.ndarray],
    messages: Messages,
    uniform: Callable[[int], np.ndarray],
) -> np.ndarray:
    """Return a draw of all states given the rows, intp (n, n_row): each after its parent's, from the roots down.

    `uniform` returns so many numbers, even on [0, 1).
    """
    n_row = messages.log_value.size
    state = np.zeros((len(parents), n_row), np.intp)
    for variable in parents_first(parents):
        parent = parents[variable]
        above = state[parent] if parent >= 0 else np.zeros(n_row, np.intp)
        reached = np.cumsum(messages.below[variable] * transition[variable][above], axis=1)
        target = uniform(n_row) * reached[:, -1]
        # a target that rounds up to the sum would fall beyond the last state
        state[variable] = np.minimum((reached <= target[:, None]).sum(axis=1), reached.shape[1] - 1)
    return state
