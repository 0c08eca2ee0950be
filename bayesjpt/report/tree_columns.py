"""Trees of columns in the leaves of a picture: a panel a leaf, each column below the one that it follows.

      tree 2   12 % of rows
      a = '0' and b = '1'
      c
      ├─ d
      │  └─ f
      └─ e
      and 61 more

Of many columns those that the picture shows come first, with the columns between them and the root of their tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bayesjpt.report.svg import bold, element, path, text, title

PANEL_WIDTH, BETWEEN = 220.0, 16.0
MOST = 14
"""Columns of a panel: more are no longer seen at a glance."""

_LINE, _HEAD, _STEP, _DEEPEST = 13.5, 36.0, 14.0, 98.0
_INK, _PALE, _BRANCH = "#1f2328", "#59636e", "#8c959f"


class Line(NamedTuple):
    """A column in a tree: the line of the one that it follows, -1 for none, and how deep it stands."""

    name: str
    above: int
    depth: int


def lines_of(follows: Sequence[tuple[str, str]], first: Iterable[str], most: int = MOST) -> list[Line]:
    """Return columns of a forest, each below the one that it follows.

    Parameters
    ----------
    follows : sequence of (str, str)
        Columns, each once, and the column that each follows.
    first : iterable of str
        Columns that are shown first, each with all that are above it, as far as there is room.
    most : int

    Examples
    --------
    >>> [line.name for line in lines_of([("b", "a"), ("c", "a"), ("d", "c")], ["d"], most=3)]
    ['a', 'c', 'd']
    """
    above = dict(follows)
    names = list(dict.fromkeys(name for name, parent in follows for name in (parent, name)))
    below: dict[str, list[str]] = {name: [] for name in names}
    for name, parent in follows:
        below[parent].append(name)
    roots = [name for name in names if name not in above]
    kept: set[str] = set()
    for name in first:
        way = [name] if name in below else []
        while way and way[-1] in above:
            way.append(above[way[-1]])
        new = set(way) - kept
        if len(kept) + len(new) <= most:
            kept |= new
    level = roots
    while level and len(kept) < most:
        for name in level:
            if len(kept) < most and (name in roots or above[name] in kept):
                kept.add(name)
        level = [child for name in level for child in below[name]]
    found: list[Line] = []
    pending = [(name, -1, 0) for name in reversed(roots) if name in kept]
    while pending:
        name, line, depth = pending.pop()
        pending += [(child, len(found), depth + 1) for child in reversed(below[name]) if child in kept]
        found.append(Line(name, line, depth))
    return found


class Panel(NamedTuple):
    """What a panel holds: its heading, which rows it is of, lines, and how many columns are left out."""

    heading: str
    conditions: str
    lines: list[Line]
    n_more: int

    @property
    def height(self) -> float:
        return _HEAD + _LINE * (len(self.lines) + (self.n_more > 0)) + BETWEEN


def panel_of(heading: str, conditions: str, follows: Sequence[tuple[str, str]], first: Iterable[str]) -> Panel:
    """Return the panel of a leaf's tree."""
    lines = lines_of(follows, first)
    n_column = len({name for pair in follows for name in pair})
    return Panel(heading, conditions, lines, n_column - len(lines))


def rows_of_panels(panels: Sequence[Panel], room: float) -> list[Sequence[Panel]]:
    """Return panels in rows that are no wider than the room."""
    n = max(int((room + BETWEEN) // (PANEL_WIDTH + BETWEEN)), 1)
    return [panels[k : k + n] for k in range(0, len(panels), n)]


def height_of(rows: Sequence[Sequence[Panel]]) -> float:
    """Return how high rows of panels are."""
    return sum(max(panel.height for panel in row) for row in rows)


def drawn_panels(rows: Sequence[Sequence[Panel]], x: float, y: float) -> list[str]:
    """Return rows of panels, whose top left corner is given."""
    drawn = []
    for row in rows:
        drawn += [_drawn(panel, x + number * (PANEL_WIDTH + BETWEEN), y) for number, panel in enumerate(row)]
        y += max(panel.height for panel in row)
    return drawn


def _drawn(panel: Panel, x: float, y: float) -> str:
    deepest = max((line.depth for line in panel.lines), default=0)
    step = min(_STEP, _DEEPEST / max(deepest, 1))
    drawn = [
        title(f"{panel.conditions or 'all rows'}: how columns depend on each other"),
        bold(panel.heading, x, y + 11.0, room=PANEL_WIDTH, fill=_INK),
        text(panel.conditions or "all rows", x, y + 24.0, room=PANEL_WIDTH, size=9.5, fill=_PALE),
    ]
    heights = [y + _HEAD + _LINE * (number + 0.5) for number in range(len(panel.lines))]
    for line, height in zip(panel.lines, heights, strict=True):
        at = x + step * line.depth
        if line.above >= 0:
            stem = at - step + 3.0
            corner = [(stem, heights[line.above] + 5.0), (stem, height), (at - 2.0, height)]
            drawn.append(element("path", d=path(corner), fill="none", stroke=_BRANCH))
        drawn.append(text(line.name, at, height + 3.5, room=x + PANEL_WIDTH - at, size=10.0, fill=_INK))
    if panel.n_more:
        words = f"and {panel.n_more} more"
        drawn.append(text(words, x, y + _HEAD + _LINE * (len(panel.lines) + 0.5) + 3.5, size=9.5, fill=_PALE))
    return element("g", *drawn, class_="columns")
