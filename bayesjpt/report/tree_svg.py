"""A tree as a picture: splits from left to right, and a row for each part, in which every column has its place.

      all rows ─┬─ x < 3 ──────────────── | 60 %  | /\\  | ▆ ▂ |
                └─ x >= 3 ─┬─ y = 'a' ─── | 25 %  |  /\\ | ▂ ▆ |
                           └─ y != 'a' ── | 15 %  |  ^^ | ▄ ▄ |
                                            share     x     y

Columns stand below each other on the same scale, so parts are compared by looking up and down. Trees of columns, where
leaves have them, are drawn below (`bayesjpt.report.tree_columns`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bayesjpt.defaults import INTERVAL
from bayesjpt.queries.marginals import Axis, Masses
from bayesjpt.queries.tree import Marginal, TreeData, ViewNode
from bayesjpt.report.svg import FONT, bold, element, fitted, path, text, title, width, wrapped
from bayesjpt.report.tree_columns import Panel, drawn_panels, height_of, panel_of, rows_of_panels
from bayesjpt.report.tree_text import not_shown, percent, percents

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#8c959f"
"""Okabe and Ito's colours, which people tell apart whatever they see."""

INK, PALE, LINE = "#1f2328", "#59636e", "#d1d9e0"

MARGIN = 24.0
ROW, GAP = 58.0, 8.0
SHARE, PANEL, BETWEEN = 112.0, 118.0, 14.0
HEADER = 96.0
LABEL_ROOM = 190.0
NAME = 68.0
N_BAR = 4
N_TEXT = 24.0


def tree_svg(data: TreeData) -> str:
    """Return a self-contained SVG document."""
    return _Drawing(data).document()


class _Drawing:
    """Places of everything, and what is drawn there."""

    def __init__(self, data: TreeData):
        self.data = data
        self.parts = data.parts()
        self.y = self._heights()
        self.x = self._levels()
        self.cards = self.x[-1] + 10.0
        self.card_width = SHARE + len(data.axes) * (PANEL + BETWEEN) + 2.0
        self.bottom = HEADER + len(self.parts) * (ROW + GAP)
        self.width = max(self.cards + self.card_width + MARGIN, 560.0)
        self.legend_end = self.bottom + 62.0
        self.tree_number = {position: k for k, position in enumerate(self._with_trees(), 1)}
        self.panels = rows_of_panels([self._panel(position) for position in self.tree_number], self.width - 2 * MARGIN)
        self.height = self.legend_end + (height_of(self.panels) + 44.0 if self.panels else 0.0)

    def document(self) -> str:
        heading = self.data.heading()
        return element(
            "svg",
            title(heading),
            element("rect", width=self.width, height=self.height, fill="#ffffff"),
            bold(heading, MARGIN, 30.0, size=16.0, fill=INK),
            text(self._caption(), MARGIN, 48.0, room=self.width - 2 * MARGIN, size=11.0, fill=PALE),
            *self._headers(),
            *self._splits(),
            *(self._part(position) for position in self.parts),
            *self._legend(),
            *self._trees(),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {self.width:.0f} {self.height:.0f}",
            width=self.width,
            height=self.height,
            font_family=FONT,
            role="img",
        )

    def _caption(self) -> str:
        merged = self.data.nodes[0].n_leaves - len(self.parts)
        words = [f"Shares of rows with {INTERVAL:.0%} credible intervals"]
        if merged:
            words.append(f"the smallest sub-trees are one row each, with all of their leaves ({len(self.parts)} rows)")
        return "; ".join(words) + "."

    # --- places

    def _depths(self) -> list[int]:
        depth = [0] * len(self.data.nodes)
        for position, node in enumerate(self.data.nodes):
            for child in node.children:
                depth[child] = depth[position] + 1
        return depth

    def _heights(self) -> list[float]:
        """Return the middle of every node: a part's row, half way between the first and the last child elsewhere."""
        y = [0.0] * len(self.data.nodes)
        for row, position in enumerate(self.parts):
            y[position] = HEADER + row * (ROW + GAP) + 0.5 * ROW
        for position in range(len(y) - 1, -1, -1):
            children = self.data.nodes[position].children
            if children:
                y[position] = 0.5 * (y[children[0]] + y[children[-1]])
        return y

    def _levels(self) -> list[float]:
        """Return where the splits of every depth stand, and where the deepest conditions end."""
        self.depth = self._depths()
        room = [0.0] * max(self.depth)
        for depth, node in zip(self.depth, self.data.nodes, strict=True):
            if depth:
                share = width(percents(node), 9.5) if node.children else 0.0
                room[depth - 1] = max(
                    room[depth - 1],
                    max(width(words, 11.0) for words in _condition_lines(node)),
                    share,
                )
        x = [MARGIN + width("all rows", 11.0) + 10.0]
        for wide in room:
            x.append(x[-1] + wide + N_TEXT)
        return x

    # --- the tree

    def _splits(self) -> list[str]:
        root = self.x[0]
        drawn = [bold("all rows", MARGIN, self.y[0] + 4.0, fill=INK)]
        for position, node in enumerate(self.data.nodes):
            x = root if position == 0 else self.x[self.depth[position]]
            drawn += [self._edge(x, self.y[position], child) for child in node.children]
        return drawn

    def _edge(self, x: float, y: float, child: int) -> str:
        node = self.data.nodes[child]
        child_y, half = self.y[child], 0.5 + 3.5 * node.weight
        end = self.x[self.depth[child]] if node.children else self.cards
        line = path([(x, y), (x, child_y), (end, child_y)])
        drawn = [
            title(f"{node.condition}: {percents(node)} of all rows"),
            element("path", d=line, fill="none", stroke=GREY, stroke_width=2 * half, opacity="0.55"),
        ]
        lines = _condition_lines(node)
        for number, words in enumerate(reversed(lines)):
            drawn.append(text(words, x + 10.0, child_y - 4.5 - half - 13.0 * number, room=LABEL_ROOM, fill=INK))
        below = child_y + 10.5 + half
        if node.children:
            drawn.append(text(percents(node), x + 10.0, below, size=9.5, fill=PALE))
        elif node.n_leaves > 1:
            words = f"{node.n_leaves} leaves"
            drawn.append(text(words, self.cards - 8.0, below, size=9.5, fill=PALE, text_anchor="end"))
        return element("g", *drawn, class_="split")

    # --- the parts

    def _headers(self) -> list[str]:
        drawn = [bold("share of rows", self.cards + 10.0, HEADER - 22.0, fill=INK)]
        for number, axis in enumerate(self.data.axes):
            x = self._panel_x(number)
            drawn.append(bold(axis.name, x, HEADER - 22.0, room=PANEL, fill=INK))
            drawn += self._ticks(axis, x, HEADER - 7.0)
            if len(self.parts) > 7:
                drawn += self._ticks(axis, x, self.bottom + 6.0)
        return drawn

    def _ticks(self, axis: Axis, x: float, y: float) -> list[str]:
        """Return the ticks that have room."""
        drawn, end = [], x - 6.0
        for place, words in axis.ticks:
            half = 0.5 * width(words, 9.0)
            at = min(max(x + _scale(axis, place), x + half), x + PANEL - half)
            if at - half > end + 5.0:
                drawn.append(text(words, at, y, size=9.0, fill=PALE, text_anchor="middle"))
                end = at + half
        return drawn

    def _panel_x(self, number: int) -> float:
        return self.cards + SHARE + number * (PANEL + BETWEEN)

    def _part(self, position: int) -> str:
        node = self.data.nodes[position]
        y = self.y[position] - 0.5 * ROW
        drawn = [
            title(f"{node.conditions}: {percents(node)} of all rows"),
            element("rect", x=self.cards, y=y, width=self.card_width, height=ROW, rx=6, fill="#ffffff", stroke=LINE),
            *self._share(position, self.cards + 10.0, y),
        ]
        for number, (axis, marginal) in enumerate(zip(self.data.axes, node.marginals, strict=True)):
            draw = _labels if axis.labels else _numbers
            drawn.append(draw(axis, marginal, self.data.whole[number], self._panel_x(number), y + 6.0))
        return element("g", *drawn, class_="leaf")

    def _share(self, position: int, x: float, y: float) -> list[str]:
        node = self.data.nodes[position]
        largest = max(self.data.nodes[part].hi for part in self.parts)
        room = SHARE - 30.0
        mean, lo, hi = (room * value / largest for value in (node.weight, node.lo, node.hi))
        several = self.data.n_draw > 1
        drawn = [bold(percent(node.weight), x, y + 21.0, size=14.0, fill=INK)]
        if position in self.tree_number:
            words = f"tree {self.tree_number[position]}"
            drawn.append(text(words, x + room, y + 21.0, size=9.5, fill=PALE, text_anchor="end"))
        if several:
            drawn.append(text(f"{percent(node.lo)} to {percent(node.hi)}", x, y + 36.0, size=9.5, fill=PALE))
        drawn.append(element("rect", x=x, y=y + 43.0, width=mean, height=5, fill=BLUE, opacity="0.75"))
        if several:
            drawn.append(_whisker(x + lo, x + hi, y + 45.5))
        return drawn

    # --- below

    def _legend(self) -> list[str]:
        y = self.bottom + 28.0
        band = f", {INTERVAL:.0%} interval" if self.data.n_draw_shown > 1 else ""
        entries = [(BLUE, "0.35", f"these rows: mean{band}"), (GREY, "0.28", "all rows")]
        if any(axis.atoms.size for axis in self.data.axes):
            entries.append((ORANGE, "1", "a single value, its bar as high as its probability"))
        if any(m.allowed for position in self.parts for m in self.data.nodes[position].marginals):
            entries.append((INK, "1", "values that the conditions leave"))
        x, drawn = MARGIN, []
        for color, opacity, words in entries:
            high = 2.0 if color == INK else 9.0
            drawn.append(
                element("rect", x=x, y=y - 0.5 * high - 3.5, width=16, height=high, fill=color, opacity=opacity)
            )
            drawn.append(text(words, x + 22.0, y, size=10.5, fill=PALE))
            x += 22.0 + width(words, 10.5) + 22.0
        hidden = not_shown(self.data.hidden) if self.data.hidden else ""
        whose = f"Of {self.data.whose()}" if self.data.whose() else ""
        words = "; ".join(part for part in (hidden, whose) if part)
        if words:
            drawn.append(text(words, MARGIN, y + 18.0, room=self.width - 2 * MARGIN, size=10.5, fill=PALE))
        return drawn

    # --- trees of columns

    def _with_trees(self) -> list[int]:
        return [position for position in self.parts if self.data.nodes[position].follows]

    def _panel(self, position: int) -> Panel:
        node = self.data.nodes[position]
        heading = f"tree {self.tree_number[position]}: {percent(node.weight)} of rows"
        return panel_of(heading, node.conditions, node.follows, [axis.name for axis in self.data.axes])

    def _trees(self) -> list[str]:
        if not self.panels:
            return []
        words = "Trees of columns in the leaves: each column depends on the one that it stands below"
        y = self.legend_end + 12.0
        heading = bold(words, MARGIN, y, room=self.width - 2 * MARGIN, size=12.0, fill=INK)
        return [heading, *drawn_panels(self.panels, MARGIN, y + 16.0)]


def _condition_lines(node: ViewNode) -> list[str]:
    """Return a condition on one line or two; a long name is cut, so that the condition on the column can be seen."""
    if width(node.column, 11.0) > LABEL_ROOM and node.condition.startswith(node.column):
        condition = node.condition.removeprefix(node.column).lstrip()
        return [fitted(words, LABEL_ROOM, 11.0) for words in (node.column, condition)]
    return wrapped(node.condition, LABEL_ROOM, 11.0)


# --- one column in one part ------------------------------------------------------------------------------------------


def _scale(axis: Axis, place: float) -> float:
    return PANEL * (place - axis.edges[0]) / (axis.edges[-1] - axis.edges[0])


def _numbers(axis: Axis, marginal: Marginal, whole: np.ndarray, x: float, y: float) -> str:
    """Return cells as a curve with its band, before that of all rows; atoms as bars."""
    high = ROW - 16.0
    base = y + high
    cells = marginal.cells
    inside = max(float(cells.mean.sum()), 0.3) if axis.atoms.size else 1.0  # of all, what no atom holds
    top = max(float(cells.hi.max()), float(whole.max()), 1e-300) / inside
    drawn = [title(f"{axis.name}: mostly {marginal.summary}")]
    for place, _ in axis.ticks:
        at = x + _scale(axis, place)
        drawn.append(element("path", d=path([(at, y), (at, base)]), stroke="#eaeef2"))
    outline = [(x + _scale(axis, place), value) for place, value in _steps(axis, whole)]
    drawn.append(element("path", d=_area(outline, base, high / top), fill=GREY, opacity="0.28"))
    band = [*_steps(axis, cells.hi), *reversed(_steps(axis, cells.lo))]
    curve = [(x + _scale(axis, place), base - value * high / top) for place, value in band]
    drawn.append(element("path", d=path(curve, closed=True), fill=BLUE, opacity="0.35"))
    curve = [(x + _scale(axis, place), base - value * high / top) for place, value in _steps(axis, cells.mean)]
    drawn.append(element("path", d=path(curve), fill="none", stroke=BLUE, stroke_width=1.3, stroke_linejoin="round"))
    drawn.append(element("path", d=path([(x, base), (x + PANEL, base)]), stroke=LINE))
    drawn += _allowed(axis, marginal, x, base)
    for place, mean, lo, hi in zip(axis.atoms, marginal.atoms.mean, marginal.atoms.lo, marginal.atoms.hi, strict=True):
        at = x + _scale(axis, float(place))
        drawn.append(element("rect", x=at - 1.5, y=base - high * mean, width=3, height=high * mean, fill=ORANGE))
        drawn.append(element("path", d=path([(at, base - high * lo), (at, base - high * hi)]), stroke=INK))
    return element("g", *drawn, class_="column")


def _steps(axis: Axis, values: np.ndarray) -> list[tuple[float, float]]:
    """Return the corners of a histogram, or the middles of its cells where they are many."""
    edges = axis.edges
    if values.size > N_TEXT:
        middle = 0.5 * (edges[:-1] + edges[1:])
        return list(zip(middle.tolist(), values.tolist(), strict=True))
    return list(zip(np.repeat(edges, 2)[1:-1].tolist(), np.repeat(values, 2).tolist(), strict=True))


def _area(points: Sequence[tuple[float, float]], base: float, unit: float) -> str:
    curve = [(x, base - value * unit) for x, value in points]
    return path([(curve[0][0], base), *curve, (curve[-1][0], base)], closed=True)


def _allowed(axis: Axis, marginal: Marginal, x: float, base: float) -> list[str]:
    if marginal.allowed is None:
        return []
    lo, hi = (min(max(_scale(axis, end), 0.0), PANEL) if math.isfinite(end) else end for end in marginal.allowed)
    ends = x + max(lo, 0.0), x + min(hi, PANEL)
    if ends[1] - ends[0] < 1.5:
        return []
    return [element("path", d=path([(ends[0], base + 2.0), (ends[1], base + 2.0)]), stroke=INK, stroke_width=2)]


def _labels(axis: Axis, marginal: Marginal, whole: np.ndarray, x: float, y: float) -> str:
    """Return the most probable labels as bars, with a mark where all rows are."""
    drawn = [title(f"{axis.name}: mostly {marginal.summary}")]
    for row, (name, numbers) in enumerate(_bars(axis, marginal.cells, whole)):
        mean, lo, hi, everywhere = numbers
        at = y + 1.0 + row * 11.5
        bar, room = x + NAME, PANEL - NAME
        drawn.append(text(name, bar - 5.0, at + 8.0, room=NAME - 5.0, size=9.5, fill=INK, text_anchor="end"))
        drawn.append(element("rect", x=bar, y=at, width=room, height=9, fill="#f0f3f6"))
        drawn.append(element("rect", x=bar, y=at, width=room * mean, height=9, fill=BLUE, opacity="0.75"))
        if hi > lo:
            drawn.append(_whisker(bar + room * lo, bar + room * hi, at + 4.5))
        mark = bar + room * everywhere
        drawn.append(element("path", d=path([(mark, at - 1.0), (mark, at + 10.0)]), stroke=PALE, stroke_width=1.5))
    return element("g", *drawn, class_="column")


def _bars(axis: Axis, cells: Masses, whole: np.ndarray) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Return names and (mean, lo, hi, mean of all rows) of the bars: of all labels in their order, or the largest."""
    order = [int(k) for k in np.argsort(-cells.mean, kind="stable") if cells.mean[k] >= 0.005 or whole[k] >= 0.005]
    drawn = sorted(order) if len(order) <= N_BAR else order[: N_BAR - 1]
    bars = [
        (axis.labels[k], (float(cells.mean[k]), float(cells.lo[k]), float(cells.hi[k]), float(whole[k]))) for k in drawn
    ]
    if len(order) > N_BAR:
        rest = [k for k in range(len(axis.labels)) if k not in drawn]
        mean = float(cells.mean[rest].sum())
        bars.append((f"{len(rest)} others", (mean, mean, mean, float(whole[rest].sum()))))
    return bars


def _whisker(lo: float, hi: float, y: float) -> str:
    return element("path", d=path([(lo, y), (hi, y)]), stroke=INK, stroke_width=1.2)
