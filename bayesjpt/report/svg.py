"""Small pieces of SVG: elements with escaped contents, and texts that fit their room."""

from __future__ import annotations

import html
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"

_NARROW = frozenset("iIjl.,:;'|!()[]{}`ft /\\-")
_WIDE = frozenset("mwMW@%")
_FIGURES = frozenset("0123456789$")
_LATIN = 0x02AF
BOLD = 1.1
_UNHOLDABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def element(name: str, *content: str, **attributes: float | str) -> str:
    """Return an element; `content` is markup, attributes are escaped, and their underscores are hyphens.

    Examples
    --------
    >>> element("g", element("title", escaped("a < b")), class_="leaf", stroke_width=1.234)
    '<g class="leaf" stroke-width="1.2"><title>a &lt; b</title></g>'
    """
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    inner = "".join(content)
    return f"<{name}{written}>{inner}</{name}>" if inner else f"<{name}{written}/>"


def escaped(words: str) -> str:
    """Return a text as markup; characters that XML cannot hold become U+FFFD."""
    return html.escape(_UNHOLDABLE.sub("\ufffd", words))


def title(text: str) -> str:
    """Return what a picture's part is, for tooltips and screen readers."""
    return element("title", escaped(text))


def text(words: str, x: float, y: float, *, room: float = float("inf"), size: float = 11.0, **attributes) -> str:
    """Return a text, shortened with an ellipsis where it is wider than its room; then its title is the whole text."""
    return shortened(words, fitted(words, room, size), x, y, size=size, **attributes)


def shortened(words: str, rendered: str, x: float, y: float, *, size: float = 11.0, **attributes) -> str:
    """Return a text as it is rendered; where that is not the whole of it, its title is."""
    whole = title(words) if rendered != words else ""
    return element("text", whole, escaped(rendered), x=x, y=y, font_size=size, **attributes)


def bold(words: str, x: float, y: float, *, room: float = float("inf"), size: float = 11.0, **attributes) -> str:
    """Return a text in bold, which is wider."""
    return text(words, x, y, room=room / BOLD, size=size, font_weight="bold", **attributes)


def width(words: str, size: float) -> float:
    """Return about how wide a text is; rather too much than too little, since fonts differ."""
    return size * sum(_letter_width(letter) for letter in words)


def _letter_width(letter: str) -> float:
    if letter in _NARROW:
        return 0.35
    if letter in _WIDE or ord(letter) > _LATIN:
        return 1.0
    return 0.74 if letter.isupper() else 0.64 if letter in _FIGURES else 0.59


def fitted(words: str, room: float, size: float) -> str:
    """Return a text that is no wider than its room.

    Examples
    --------
    >>> fitted("total sulfur dioxide", 80.0, 11.0), fitted("pH", 80.0, 11.0)
    ('total sulfur …', 'pH')
    """
    if width(words, size) <= room:
        return words
    widths = itertools.accumulate(map(_letter_width, words))
    return words[: _n_within(widths, room / size - _letter_width("\u2026"))] + "\u2026"


def told_apart(names: Sequence[str], room: float, size: float) -> list[str]:
    """Return names that are no wider than a room; those that would end alike lose their middle in place of their end.

    Examples
    --------
    >>> told_apart(["gene_expression_01", "gene_expression_02", "batch"], 70.0, 11.0)
    ['gen…on_01', 'gen…on_02', 'batch']
    """
    rendered = [fitted(name, room, size) for name in names]
    n_alike = Counter(rendered)
    return [
        _without_middle(name, room, size) if n_alike[short] > 1 and short != name else short
        for name, short in zip(names, rendered, strict=True)
    ]


def _without_middle(words: str, room: float, size: float) -> str:
    n_end = _n_within(itertools.accumulate(map(_letter_width, reversed(words))), 0.5 * room / size)
    end = words[len(words) - n_end :]
    return fitted(words, room - width(end, size), size) + end


def _n_within(ascending: Iterable[float], most: float) -> int:
    """Return how many of some ascending numbers come before the first that is larger: linear in their number."""
    return sum(1 for _ in itertools.takewhile(lambda number: number <= most, ascending))


def wrapped(words: str, room: float, size: float) -> list[str]:
    """Return a text on one line or two, divided between words; the second ends with an ellipsis where it is too long.

    Examples
    --------
    >>> wrapped("color in ('red', 'white')", 90.0, 11.0)
    ["color in ('red',", "'white')"]
    """
    if width(words, size) <= room:
        return [words]
    parts = words.split(" ")
    widths = itertools.accumulate(width(f"{part} ", size) for part in parts[:-1])
    n = _n_within(widths, room + width(" ", size))
    if n == 0:
        return [fitted(words, room, size)]
    return [" ".join(parts[:n]), fitted(" ".join(parts[n:]), room, size)]


def path(points: Iterable[tuple[float, float]], *, closed: bool = False) -> str:
    """Return the data of a path through points.

    Examples
    --------
    >>> path([(0, 0), (1.5, 2)], closed=True)
    'M0 0L1.5 2Z'
    """
    return "M" + "L".join(f"{_value(x)} {_value(y)}" for x, y in points) + ("Z" if closed else "")


def _value(value: float | str) -> str:
    if isinstance(value, str):
        return escaped(value)
    written = f"{value:.1f}".removesuffix(".0")
    return "0" if written == "-0" else written
