"""A tree as text: indented lines for a terminal, and the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from bayesjpt.defaults import INTERVAL
from bayesjpt.queries.tree import TreeData, ViewNode

_NAMES_WIDTH = 64
"""Characters of names of columns that are not shown: with what stands around them a line of a terminal."""


def percent(share: float) -> str:
    """Return a share with as many digits as tell it from 0 and 100 %."""
    if 0.0 < share < 0.001:
        return "<0.1%"
    return f"{share:.1%}" if share < 0.0995 else f"{share:.0%}"


def percents(node: ViewNode) -> str:
    """Return a node's share of all rows with its interval, where it has one."""
    if node.lo == node.hi:
        return percent(node.weight)
    return f"{percent(node.weight)} ({percent(node.lo)} to {percent(node.hi)})"


def indented(nodes: Sequence[Any]) -> Iterator[tuple[int, str, str]]:
    """Yield a tree's nodes, children below their parents: position, what its line begins with, and what lines below do.

    Parameters
    ----------
    nodes : sequence of nodes with ``children``, positions among them
        The root first.
    """
    pending = [(0, "", "")]
    while pending:
        position, lead, below = pending.pop()
        yield position, lead, below
        for number, child in enumerate(reversed(nodes[position].children)):
            last = number == 0
            pending.append((child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")))


def tree_text(data: TreeData) -> str:
    """Return a line for each node, and under each part one for each of its columns."""
    n_part, n_leaves = len(data.parts()), data.nodes[0].n_leaves
    merged = f", the smallest sub-trees together: {n_part} parts" if n_part < n_leaves else ""
    lines = [f"{data.heading()}{merged}; shares of rows ({INTERVAL:.0%} intervals)"]
    if data.whose():
        lines.append(f"Of {data.whose()}")
    wide = max((len(axis.name) for axis in data.axes), default=0)
    for position, lead, below in indented(data.nodes):
        node = data.nodes[position]
        name = node.condition or "all rows"
        several = f", {node.n_leaves} leaves" if node.n_leaves > 1 and not node.children else ""
        lines.append(f"{lead}{name}  {percents(node)}{several}")
        for axis, marginal in zip(data.axes, node.marginals, strict=False):
            if not marginal.is_decided:
                lines.append(f"{below}      {axis.name:<{wide}}  {marginal.summary}")
    if data.hidden:
        lines.append(not_shown(data.hidden))
    return "\n".join(lines)


def not_shown(names: Sequence[str]) -> str:
    """Return which columns are not shown on one line, the first of them by name.

    Examples
    --------
    >>> not_shown(["age"]), not_shown([f"question {number}" for number in range(30)])
    ('Not shown: age', 'Not shown: question 0, question 1, question 2, question 3, question 4 and 25 others')
    """
    ends = accumulate(len(name) + 2 for name in names)
    n = max(sum(end <= _NAMES_WIDTH for end in ends), 1)
    n = len(names) if n == len(names) - 1 else n  # "and 1 others" would say less than its name
    rest = f" and {len(names) - n} others" if n < len(names) else ""
    return f"Not shown: {', '.join(names[:n])}{rest}"


def tree_dot(data: TreeData) -> str:
    """Return the tree in the language of Graphviz."""
    lines = [
        "digraph tree {",
        *([f"  label={quoted([data.whose()])};"] if data.whose() else []),
        '  rankdir="LR";',
        '  node [shape="box", fontname="Helvetica"];',
        '  edge [fontname="Helvetica"];',
    ]
    for position, node in enumerate(data.nodes):
        words = [percents(node)]
        pairs = zip(data.axes, node.marginals, strict=False)
        words += [f"{axis.name}: {marginal.summary}" for axis, marginal in pairs if not marginal.is_decided]
        lines.append(f"  n{position} [label={quoted(words)}, tooltip={quoted([node.conditions or 'all rows'])}];")
    for position, node in enumerate(data.nodes):
        lines += [
            f"  n{position} -> n{child} [label={quoted([data.nodes[child].condition])}];" for child in node.children
        ]
    return "\n".join([*lines, "}", ""])


def quoted(words: list[str]) -> str:
    """Return lines as a quoted string; backslashes and line breaks of names are kept from being read as commands."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ") for line in words)
    return '"' + "\\n".join(escaped) + '"'
