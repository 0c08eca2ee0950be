"""The little of TOML that schema documents need beside `tomllib`: writing values, and the line of each key."""

from __future__ import annotations

import math
import re
import textwrap
import tomllib
from collections.abc import Sequence
from typing import Any

_WIDTH = 110
"""Characters of a line of an array."""

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_TO_ESCAPE = re.compile('[\\\\"\\x00-\\x1f\\x7f\\x85\\u2028\\u2029]')
_NOT_IN_COMMENT = re.compile("[\\x00-\\x1f\\x7f\\x85\\u2028\\u2029]+")
_KEY_PART = re.compile(r"""[ \t]*(?:([A-Za-z0-9_-]+)|("(?:[^"\\]|\\.)*")|('[^']*'))[ \t]*""")
_BLANK = re.compile(r"(?:[ \t\r\n]|\#[^\n]*)+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""+|' + r"'''(?:[^']|'(?!''))*'''+|" + r""""(?:[^"\\\n]|\\.)*"|'[^'\n]*\'""", re.S
)


def text(value: str) -> str:
    """Return a text as a TOML string on one line.

    Examples
    --------
    >>> print(text('say "no"'))
    "say \\"no\\""
    """
    return '"' + _TO_ESCAPE.sub(lambda found: _ESCAPES.get(found[0], f"\\u{ord(found[0]):04x}"), value) + '"'


def number(value: float) -> str:
    """Return a number as a TOML float that reads back exactly.

    Examples
    --------
    >>> [number(value) for value in (0.1, 3.0, 1e300, float("-inf"))]
    ['0.1', '3.0', '1e+300', '-inf']
    """
    return repr(float(value)) if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def array(items: Sequence[str]) -> str:
    """Return written values as a TOML array, on several lines where it is long."""
    line = f"[{', '.join(items)}]"
    if len(line) <= _WIDTH:
        return line
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) + 2 > _WIDTH:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{item},"
    return "\n".join(["[", *(f"    {one}" for one in lines), "]"])


def comment(words: str) -> str:
    """Return a comment line that says some words, control characters left out."""
    return f"# {_NOT_IN_COMMENT.sub(' ', words)}".rstrip()


def comments(words: str) -> str:
    """Return comment lines of readable length that say some words."""
    lines = textwrap.wrap(
        comment(words), _WIDTH, subsequent_indent="# ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)


def key_lines(document: str) -> dict[tuple[str, ...], int]:
    """Return the line, counted from 1, on which each key and each table header of a valid document stands.

    Keys inside inline tables are not listed.

    Examples
    --------
    >>> key_lines('format = 1\\n\\n[column."a.b"]\\nbase = "real"')
    {('format',): 1, ('column', 'a.b'): 3, ('column', 'a.b', 'base'): 4}
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    at, line = 0, 1
    while True:
        blank = _BLANK.match(document, at)
        end = blank.end() if blank else at
        line += document.count("\n", at, end)
        at = end
        if at >= len(document):
            return lines
        if document[at] == "[":
            table, end = _key(document, at + (2 if document.startswith("[[", at) else 1))
            lines.setdefault(table, line)
            end = document.find("\n", end)
            end = len(document) if end < 0 else end
        else:
            key, end = _key(document, at)
            lines.setdefault((*table, *key), line)
            end = _value_end(document, end)
        line += document.count("\n", at, end)
        at = end


def _key(document: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return the parts of the key that begins somewhere, and where it ends."""
    parts = []
    while True:
        found = _KEY_PART.match(document, at)
        assert found is not None, "the document is valid"
        bare, basic, literal = found.groups()
        parts.append(bare if bare is not None else literal[1:-1] if literal else tomllib.loads(f"x = {basic}")["x"])
        at = found.end()
        if document[at] != ".":
            return tuple(parts), at
        at += 1


def _value_end(document: str, at: int) -> int:
    """Return where the line ends on which a value, that begins after some place, ends."""
    depth = 0
    while at < len(document):
        character = document[at]
        if character in "\"'":
            found = _STRING.match(document, at)
            assert found is not None, "the document is valid"
            at = found.end()
            continue
        if character == "#":
            at = document.find("\n", at)
            if at < 0:
                return len(document)
            continue
        if character == "\n" and not depth:
            return at
        depth += (character in "[{") - (character in "]}")
        at += 1
    return at


def rendered(value: Any) -> str:
    """Return a value as an error message shows it."""
    plain = str(value).lower() if isinstance(value, bool) else repr(value)
    return plain if len(plain) <= 60 else f"{plain[:57]}..."
