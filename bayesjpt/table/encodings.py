"""Bytes of a text file to UTF-8, whatever encoding they are in; which one is found where it is not given."""

from __future__ import annotations

import codecs

from bayesjpt.errors import TableError, warn

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks; that of UTF-32 begins as one of UTF-16 does."""

_N_LOOKED_AT = 4_000
_ZERO_SHARE = 0.3
"""Share of zero bytes at even or odd places from which a text is UTF-16 without a mark; European texts have most."""


def as_utf8(content: bytes, name: str, encoding: str | None) -> bytes:
    """Return the bytes of a text file in UTF-8, without a mark; of other encodings than Unicode's a note says which.

    Parameters
    ----------
    content : bytes
    name : str
        Of the file, for messages.
    encoding : str, optional
        In which it is; found where None.

    Raises
    ------
    TableError
        Where the bytes are no text in the encoding.
    """
    if encoding is not None:
        return _decoded(content, name, encoding).encode("utf-8", "surrogatepass").removeprefix(codecs.BOM_UTF8)
    mark = next(((mark, found) for mark, found in _MARKS if content.startswith(mark)), None)
    if mark is not None:
        rest = content[len(mark[0]) :]
        return _checked(rest, name) if mark[1] == "utf-8" else _decoded(rest, name, mark[1]).encode()
    wide = _wide(content)
    if wide:
        return _decoded(content, name, wide).encode()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return _single_bytes(content, name, error)
    return content


def _checked(content: bytes, name: str) -> bytes:
    _decoded(content, name, "utf-8")
    return content


def _decoded(content: bytes, name: str, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise TableError(
            f"file {name!r} is not {encoding} text (byte {error.start})", None, "Say its encoding, such as cp1252."
        ) from None
    except LookupError:  # of bytes to bytes, such as zip
        raise TableError(f"encoding {encoding!r}", "one of texts, such as cp1252") from None


def _wide(content: bytes) -> str:
    """Return which UTF-16 bytes without a mark are in; empty where they are not."""
    start = content[:_N_LOOKED_AT]
    half = len(start) // 2
    if half < 2:
        return ""
    even, odd = start[0::2].count(0) / half, start[1::2].count(0) / half
    if max(even, odd) < _ZERO_SHARE or min(even, odd) > 0.05:
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def _single_bytes(content: bytes, name: str, error: UnicodeDecodeError) -> bytes:
    """Return bytes that are not UTF-8 as the text that Windows, or else Unix, would write in western Europe."""
    if content.count(0) > 0:
        raise TableError(
            f"file {name!r} is no text: it holds zero bytes", None, "Export it as csv, or say its encoding."
        ) from None
    try:
        encoding, words = "cp1252", "Windows-1252"
        text = content.decode(encoding)
    except UnicodeDecodeError:
        encoding, words = "latin-1", "Latin-1"
        text = content.decode(encoding)
    start = content[max(0, error.start - 15) : error.start + 15].decode(encoding)
    sample = " ".join("".join(letter if letter.isprintable() else " " for letter in start).split())
    where = f"{name!r} is not UTF-8 and read as {words} ({sample!r})"
    warn(f"{where}; where letters look wrong give its encoding (encoding=, or --encoding)")
    return text.encode()
