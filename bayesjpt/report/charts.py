"""The pictures of a report, as SVG: colours are classes of the page, so that they follow light, dark and paper.

Every picture has words (``aria-label``) that say what it shows; none says anything by its colour alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bayesjpt.defaults import INTERVAL
from bayesjpt.queries.marginals import Axis, Masses
from bayesjpt.report.contents import ColumnReport
from bayesjpt.report.pairs import Pair
from bayesjpt.report.svg import element, path, shortened, text, title, told_apart, width

_WIDTH, _HEIGHT = 340.0, 132.0
_LEFT, _TOP, _BOTTOM = 6.0, 8.0, 108.0
_LABEL_ROOM, _SHARE_ROOM = 116.0, 44.0
_N_LABEL, _LABEL_ROW = 8, 19.0
_N_BAR = 16
"""Cells of numbers up to which each has a dot of its own."""
_SMALL = 11.0
_CELL, _LEAST_CELL, _NAME_ROOM, _PAGE = 26.0, 13.0, 150.0, 1_170.0
"""Of the picture of all pairs: cells, which shrink where many columns would go beyond the page, down to the height of a
name."""
_N_NUMBER = 16
"""Columns up to which the cells of the picture of all pairs have room for their numbers."""


def column_svg(column: ColumnReport) -> str:
    """Return the picture of a column: shares of the rows as bars, the model's as a line with its band."""
    if column.axis.labels:
        ranked = column.answer.order if column.answer.type == "ordinal" else ()
        return _labels(column.axis, column.fitted, column.rows, _words(column), ranked)
    return _numbers(column.axis, column.fitted, column.rows, _words(column))


def _words(column: ColumnReport) -> str:
    return f"Distribution of {column.answer.name}: {column.answer.values}."


def _picture(words: str, wide: float, high: float, *content: str) -> str:
    size = {"viewBox": f"0 0 {wide:.0f} {high:.0f}", "width": f"{wide:.0f}", "height": f"{high:.0f}"}
    return element("svg", *content, role="img", aria_label=words, **size)


def _numbers(axis: Axis, fitted: Masses, rows: np.ndarray, words: str) -> str:
    edges = axis.edges
    span = edges[-1] - edges[0]

    def x(value: float) -> float:
        return _LEFT + (_WIDTH - 2.0 * _LEFT) * float(value - edges[0]) / float(span)

    def inside(middle: float, label: str) -> float:
        half = 0.5 * width(label, _SMALL)
        return min(max(middle, half), _WIDTH - half)

    tallest = max(float(np.nanmax(np.append(rows, 0.0))), float(fitted.hi.max()), 1e-300)

    def y(share: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * float(share) / tallest

    bars = [
        element(
            "rect",
            class_="row",
            x=x(lo) + 0.4,
            y=y(share),
            width=max(x(hi) - x(lo) - 0.8, 0.6),
            height=_BOTTOM - y(share),
        )
        for lo, hi, share in zip(edges[:-1], edges[1:], rows, strict=True)
        if share > 0.0
    ]
    middle = [x(value) for value in edges[:-1] + 0.5 * np.diff(edges)]
    few = edges.size - 1 <= _N_BAR
    model = _dots(middle, fitted, y) if few else _band(middle, fitted, y)
    ticks = [
        element("line", class_="axis", x1=x(place), x2=x(place), y1=_BOTTOM, y2=_BOTTOM + 4.0)
        + text(label, inside(x(place), label), _BOTTOM + 17.0, size=_SMALL, text_anchor="middle")
        for place, label in axis.ticks
    ]
    return _picture(
        words,
        _WIDTH,
        _HEIGHT,
        *bars,
        *model,
        element("line", class_="axis", x1=_LEFT, x2=_WIDTH - _LEFT, y1=_BOTTOM, y2=_BOTTOM),
        *ticks,
    )


def _band(middle: list[float], fitted: Masses, y: Callable[[float], float]) -> list[str]:
    """Return the model's probabilities as a line with a band."""
    upper = list(zip(middle, map(y, fitted.hi), strict=True))
    lower = list(zip(middle, map(y, fitted.lo), strict=True))
    return [
        element("path", class_="band", d=path([*upper, *reversed(lower)], closed=True)),
        element("path", class_="mean", d=path(list(zip(middle, map(y, fitted.mean), strict=True)))),
    ]


def _dots(middle: list[float], fitted: Masses, y: Callable[[float], float]) -> list[str]:
    """Return the same as dots with whiskers, where there are few cells."""
    return [
        element("line", class_="mean", x1=x, x2=x, y1=y(lo), y2=y(hi))
        + element("circle", class_="dot", cx=x, cy=y(mean), r=3.0)
        for x, lo, hi, mean in zip(middle, fitted.lo, fitted.hi, fitted.mean, strict=True)
    ]


def _labels(axis: Axis, fitted: Masses, rows: np.ndarray, words: str, ranked: Sequence[str]) -> str:
    """Return bars of labels, those of a known order in it and before the others, which the largest share leads."""
    share = np.where(np.isnan(rows), fitted.mean, rows).tolist()
    mean, lo, hi = (ends.tolist() for ends in (fitted.mean, fitted.lo, fitted.hi))
    order = [
        k for k in np.argsort(-np.array(share), kind="stable").tolist() if share[k] > 0.0 or k < len(axis.labels) - 1
    ]
    rank = {label: number for number, label in enumerate(ranked)}
    listed = sorted(order[:_N_LABEL], key=lambda k: rank.get(axis.labels[k], len(rank)))
    room = _WIDTH - _LABEL_ROOM - _SHARE_ROOM
    longest = max(float(max(share[k], hi[k])) for k in listed)
    drawn = []
    for place, k in enumerate(listed):
        top = 4.0 + place * _LABEL_ROW

        def x(value: float) -> float:
            return _LABEL_ROOM + room * float(value) / longest

        drawn += [
            text(axis.labels[k], _LABEL_ROOM - 6.0, top + 12.0, room=_LABEL_ROOM - 8.0, size=_SMALL, text_anchor="end"),
            element(
                "rect",
                class_="row",
                x=_LABEL_ROOM,
                y=top + 2.0,
                width=max(x(share[k]) - _LABEL_ROOM, 0.6),
                height=_LABEL_ROW - 6.0,
            ),
            element("line", class_="mean", x1=x(lo[k]), x2=x(hi[k]), y1=top + 8.5, y2=top + 8.5),
            element("circle", class_="dot", cx=x(mean[k]), cy=top + 8.5, r=3.0),
            text(_percent(share[k]), _WIDTH, top + 12.0, size=_SMALL, text_anchor="end"),
        ]
    high = 8.0 + _LABEL_ROW * len(listed)
    if len(order) > len(listed):
        rest = sum(float(share[k]) for k in order[_N_LABEL:])
        drawn.append(
            text(f"{len(order) - _N_LABEL} more", _LABEL_ROOM - 6.0, high + 8.0, size=_SMALL, text_anchor="end")
        )
        drawn.append(text(_percent(rest), _WIDTH, high + 8.0, size=_SMALL, text_anchor="end"))
        high += _LABEL_ROW
    return _picture(words, _WIDTH, high, *drawn)


def _percent(share: float) -> str:
    return "<1 %" if 0.0 < share < 0.01 else f"{100.0 * share:.0f} %"


def pairs_svg(names: list[str], pairs: list[Pair], place: dict[int, int]) -> str:
    """Return the picture of all pairs: the fuller a cell, the more two columns tell about each other.

    Parameters
    ----------
    names : list of str
        Of the columns, in their order.
    pairs : list of Pair
    place : dict from int to int
        Where a column of the table stands in that order.
    """
    n = len(names)
    room = min(_NAME_ROOM, max(width(name, _SMALL) for name in names) + 8.0)
    size = min(_CELL, max(_LEAST_CELL, (_PAGE - 2.0 * room) / n))
    wide, high = room + n * size + room, 8.0 + n * size
    cells = []
    for pair in pairs:
        column, row = sorted((place[pair.first], place[pair.second]))
        left, top = room + column * size, 4.0 + row * size
        words = f"{names[column]} and {names[row]}: {pair.mean:.2f} ({pair.lo:.2f} to {pair.hi:.2f})"
        # its height is the number, so that nothing rests on the colour; as broad as the cell it leaves numbers legible
        filled = (size - 3.0) * max(min(pair.mean, 1.0), 0.0)
        middle = left + 0.5 * size, top + 0.5 * size
        drawn = [
            title(words),
            element("rect", class_="cell", x=left + 1.0, y=top + 1.0, width=size - 2.0, height=size - 2.0),
        ]
        if filled >= 0.5:
            bottom = top + size - 1.5
            drawn.append(
                element("rect", class_="tie", x=left + 1.5, y=bottom - filled, width=size - 3.0, height=filled)
            )
        if n <= _N_NUMBER:
            number = f"{pair.mean:.2f}".removeprefix("0")
            drawn.append(text(number, middle[0], middle[1] + 3.5, size=9.5, text_anchor="middle", class_="number"))
        cells.append(element("g", *drawn))
    labels = [
        shortened(name, short, room - 6.0, 8.0 + (k + 0.5) * size, size=_SMALL, text_anchor="end")
        + shortened(name, short, room + k * size + 6.0, 8.0 + (k + 0.5) * size, size=_SMALL)
        for k, (name, short) in enumerate(zip(names, told_apart(names, room - 6.0, _SMALL), strict=True))
    ]
    words = f"How much each two of {n} columns hang together, by {INTERVAL:.0%} intervals in the table below."
    return _picture(words, wide, high, *cells, *labels)
