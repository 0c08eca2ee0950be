"""Pictures of a tree of gated experts: text, Graphviz, and SVG with a card for each node.

┌ all rows ───────┐      ┌ x > 0.5 (sharp) ┐
│ 100 %           │──┬───│ 42 % (40 to 44) │     y: 1 + 0.5 x, give or take 0.3
│ deviance |-•-|  │  │   │ ▁▁▁▁█  |•|      │
└─────────────────┘  │   └─────────────────┘
                     │   ┌ x < 0.5 (sharp) ┐
                     └───│ ...
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bayesjpt.defaults import INTERVAL
from bayesjpt.experts.tree import N_BIN, ShownNode, ShownTree
from bayesjpt.queries.marginals import Masses
from bayesjpt.report.svg import BOLD, FONT, bold, element, fitted, path, text, title, width, wrapped
from bayesjpt.report.tree import Picture
from bayesjpt.report.tree_svg import BLUE, GREY, INK, LINE, MARGIN, ORANGE, PALE
from bayesjpt.report.tree_text import indented, percent, quoted

CARD, HIGH, BETWEEN, GAP = 236.0, 92.0, 34.0, 12.0
HEADER = 66.0
INSIDE = 10.0
BARS, BAR_HIGH = 96.0, 34.0
WORDS = 560.0
_FEW = 0.01
_BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, eq=False, repr=False)
class ExpertTreeView(Picture):
    """The tree of a chain of experts, from `ExpertPosterior.tree`.

    Parameters
    ----------
    data : ShownTree
        What is shown: shares, histograms and deviances, with credible intervals.
    """

    data: ShownTree

    def to_text(self) -> str:
        """Return a line for each node with its histogram, and under each leaf its experts in words."""
        lines = _heading(self.data)
        for position, lead, below in indented(self.data.nodes):
            node = self.data.nodes[position]
            lines.append(f"{lead}{'  '.join(_facts(node))}")
            lines += [f"{below}      {words}" for words in node.says]
        return "\n".join(lines)

    def to_dot(self) -> str:
        """Return the tree in the language of Graphviz."""
        lines = ["digraph tree {", '  rankdir="LR";', '  node [shape="box", fontname="Helvetica"];']
        for position, node in enumerate(self.data.nodes):
            lines.append(f"  n{position} [label={quoted([*_facts(node), *node.says])}];")
        for position, node in enumerate(self.data.nodes):
            lines += [f"  n{position} -> n{child};" for child in node.children]
        return "\n".join([*lines, "}", ""])

    def to_svg(self) -> str:
        """Return a self-contained picture: gates from left to right, a card for each node, experts in words."""
        return _Drawing(self.data).document()


def _heading(data: ShownTree) -> list[str]:
    of = f"Tree of experts for {', '.join(data.targets)}: chain {data.chain}, {data.n_row} rows"
    ends = f", with {INTERVAL:.0%} intervals over {data.n_draw} draws" if data.n_draw > 1 else ""
    return [of, f"Share of rows, histogram of their probabilities of this way, deviance a row{ends}"]


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) >= 0.005 else "0"


def _with_interval(masses: Masses, say=_number) -> str:
    mean, lo, hi = say(masses.mean[0]), say(masses.lo[0]), say(masses.hi[0])
    return mean if lo == hi else f"{mean} ({lo} to {hi})"


def _facts(node: ShownNode) -> list[str]:
    """Return what is said of a node: condition, share, histogram, deviance."""
    facts = [node.condition or "all rows", _with_interval(node.share, percent)]
    if node.histogram.mean.size:
        facts.append(f"[{_bars(node.histogram.mean)}]")
    facts.append(f"deviance {_with_interval(node.deviance)}")
    if node.gain is not None:
        facts.append(f"split takes {_with_interval(node.gain)}")
    return facts


def _bars(histogram: np.ndarray) -> str:
    """Return a histogram as block characters; what is not 0 is seen."""
    return "".join(_BLOCKS[int(np.ceil(share * (len(_BLOCKS) - 1) - 1e-3))] for share in histogram)


def _condition(words: str, x: float, y: float, room: float) -> list[str]:
    """Return a condition on one line of a card, or on two smaller ones; the card's title has the whole."""
    if fitted(words, room / BOLD, 11.0) == words:
        return [bold(words, x, y + 17.0, room=room, fill=INK)]
    lines = enumerate(wrapped(words, room / BOLD, 9.5))
    return [bold(line, x, y + 12.0 + 11.0 * k, room=room, size=9.5, fill=INK) for k, line in lines]


class _Drawing:
    """Places of cards, and what is drawn on them."""

    def __init__(self, data: ShownTree):
        self.data = data
        self.depth = [0] * len(data.nodes)
        for position, node in enumerate(data.nodes):
            for child in node.children:
                self.depth[child] = self.depth[position] + 1
        self.y = [0.0] * len(data.nodes)
        leaves = data.leaves()
        for row, position in enumerate(leaves):
            self.y[position] = HEADER + row * (HIGH + GAP)
        for position in range(len(data.nodes) - 1, -1, -1):
            children = data.nodes[position].children
            if children:
                self.y[position] = 0.5 * (self.y[children[0]] + self.y[children[-1]])
        self.bottom = HEADER + len(leaves) * (HIGH + GAP)
        self.words_at = MARGIN + (max(self.depth) + 1) * (CARD + BETWEEN) - BETWEEN + 14.0
        self.width, self.height = self.words_at + WORDS + MARGIN, self.bottom + 40.0
        # nodes that hardly have rows may have any deviance: theirs do not stretch the scale
        all_deviances = [node.deviance for node in data.nodes if node.share.mean[0] >= _FEW]
        self.least = min(float(each.lo[0]) for each in all_deviances)
        self.most = max(float(each.hi[0]) for each in all_deviances)

    def document(self) -> str:
        heading, caption = _heading(self.data)
        return element(
            "svg",
            title(heading),
            element("rect", width=self.width, height=self.height, fill="#ffffff"),
            bold(heading, MARGIN, 28.0, room=self.width - 2 * MARGIN, size=16.0, fill=INK),
            text(f"{caption}.", MARGIN, 46.0, room=self.width - 2 * MARGIN, size=11.0, fill=PALE),
            *(self._edge(position, child) for position in range(len(self.y)) for child in self._below(position)),
            *(self._card(position) for position in range(len(self.y))),
            *self._legend(),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {self.width:.0f} {self.height:.0f}",
            width=self.width,
            height=self.height,
            font_family=FONT,
            role="img",
        )

    def _below(self, position: int) -> tuple[int, ...]:
        return self.data.nodes[position].children

    def _x(self, position: int) -> float:
        return MARGIN + self.depth[position] * (CARD + BETWEEN)

    def _edge(self, position: int, child: int) -> str:
        start, end = self._x(position) + CARD, self._x(child)
        middle, here, there = 0.5 * (start + end), self.y[position] + 0.5 * HIGH, self.y[child] + 0.5 * HIGH
        thick = 1.0 + 7.0 * float(self.data.nodes[child].share.mean[0])
        line = path([(start, here), (middle, here), (middle, there), (end, there)])
        return element("path", d=line, fill="none", stroke=GREY, stroke_width=thick, opacity="0.55", class_="split")

    def _card(self, position: int) -> str:
        node, x, y = self.data.nodes[position], self._x(position), self.y[position]
        room, left = CARD - 2 * INSIDE, x + INSIDE
        drawn = [
            title("; ".join([*_facts(node), *node.says])),
            element("rect", x=x, y=y, width=CARD, height=HIGH, rx=6, fill="#ffffff", stroke=LINE),
            *_condition(node.condition or "all rows", left, y, room),
            text(_with_interval(node.share, percent), left, y + 34.0, room=room, size=10.0, fill=PALE),
            *self._histogram(node.histogram, left, y + 38.0),
            *self._deviance(node, left + BARS + 16.0, y),
        ]
        for row, words in enumerate(node.says):
            drawn.append(text(words, self.words_at, y + 22.0 + 16.0 * row, room=WORDS, fill=INK))
        if not node.children and x + CARD + 14.0 < self.words_at:
            line = path([(x + CARD, y + 18.0), (self.words_at - 6.0, y + 18.0)])
            drawn.append(element("path", d=line, stroke=LINE, fill="none"))
        return element("g", *drawn, class_="node")

    def _histogram(self, bins: Masses, x: float, y: float) -> list[str]:
        base, step = y + BAR_HIGH, BARS / N_BIN
        if not bins.mean.size:
            return []
        drawn = [element("rect", x=x, y=base, width=BARS, height=1.0, fill=GREY)]
        for k in range(bins.mean.size):
            mean, lo, hi = (BAR_HIGH * float(ends[k]) for ends in (bins.mean, bins.lo, bins.hi))
            at = x + k * step
            drawn.append(
                element("rect", x=at + 0.8, y=base - mean, width=step - 1.6, height=mean, fill=BLUE, class_="bin")
            )
            if hi - lo > 0.5:
                line = path([(at + 0.5 * step, base - lo), (at + 0.5 * step, base - hi)])
                drawn.append(element("path", d=line, stroke=INK, stroke_width=1.0, fill="none"))
        for place, words in ((0.0, "0"), (BARS, "1")):
            drawn.append(text(words, x + place, base + 11.0, size=9.0, fill=PALE, text_anchor="middle"))
        return drawn

    def _deviance(self, node: ShownNode, x: float, y: float) -> list[str]:
        room = CARD - 2 * INSIDE - BARS - 16.0
        span = max(self.most - self.least, 1e-12)
        mean, lo, hi = (
            x + room * min(max((float(end[0]) - self.least) / span, 0.0), 1.0)
            for end in (node.deviance.mean, node.deviance.lo, node.deviance.hi)
        )
        line = path([(x, y + 64.0), (x + room, y + 64.0)])
        drawn = [
            text(f"deviance {_number(float(node.deviance.mean[0]))}", x, y + 50.0, room=room, size=10.0, fill=PALE),
            element("path", d=line, stroke=LINE, fill="none"),
            element("rect", x=lo, y=y + 62.5, width=max(hi - lo, 0.5), height=3.0, fill=ORANGE, opacity="0.45"),
            element("circle", cx=mean, cy=y + 64.0, r=3.5, fill=ORANGE),
        ]
        if node.gain is not None:
            words = f"split takes {_number(float(node.gain.mean[0]))}"
            drawn.append(text(words, x, y + 83.0, room=room, size=10.0, fill=PALE))
        return drawn

    def _legend(self) -> list[str]:
        x, y, drawn = MARGIN, self.bottom + 18.0, []
        of_bars = "rows of the node before by their probability of this way"
        of_points = "deviance a row, on one scale: less is further left"
        for colour, words in ((BLUE, of_bars), (ORANGE, of_points)):
            drawn.append(element("rect", x=x, y=y - 8.0, width=16, height=9, fill=colour))
            drawn.append(text(words, x + 22.0, y, size=10.5, fill=PALE))
            x += 22.0 + width(words, 10.5) + 22.0
        return drawn
