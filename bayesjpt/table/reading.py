"""How a table is to be read: what `read_table`, `as_table` and every command take beside the table itself."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

from bayesjpt.errors import TableError
from bayesjpt.table.cells import MISSING_TOKENS


class ReadingOptions(TypedDict, total=False):
    """Keywords of `bayesjpt.read_table`; see `Reading`."""

    encoding: str | None
    sep: str | None
    decimal: str | None
    na: str | Iterable[str] | None
    sheet: str | int | None
    header: bool | None
    day_first: bool | None
    keep_na: str | Iterable[str] | None


@dataclass(frozen=True)
class Reading:
    """What is known of a table before it is read; what is None is found.

    Parameters
    ----------
    encoding : str, optional
        Of a file of text, by any name that Python knows.
    sep : str, optional
        The character between cells of a file of text.
    decimal : str, optional
        ``.`` or ``,``; the other one may then stand between thousands.
    na : str or iterable of str
        More texts and numbers that mean a missing cell; ``COLUMN=TOKEN`` for one column alone.
    sheet : str or int, optional
        Name of a sheet, or its number from 1; the first one that holds anything, unless given.
    header : bool, optional
        Whether the first row holds the names of the columns.
    day_first : bool, optional
        Whether 03/04/2024 is in April.
    keep_na : str or iterable of str
        Words such as ``NA`` that are labels, though they mean a missing cell otherwise; ``COLUMN=NA`` for one column.

    Raises
    ------
    TableError
        For an option that makes no sense.

    Examples
    --------
    >>> Reading(sep="tab", na="-999").sep, Reading(na="-999").na
    ('\\t', ('-999',))
    """

    encoding: str | None = None
    sep: str | None = None
    decimal: str | None = None
    na: str | Iterable[str] | None = ()
    sheet: str | int | None = None
    header: bool | None = None
    day_first: bool | None = None
    keep_na: str | Iterable[str] | None = ()

    def __post_init__(self):
        for name in ("na", "keep_na"):
            given = getattr(self, name)
            tokens = () if given is None else (given,) if isinstance(given, str | int | float) else tuple(given)
            object.__setattr__(self, name, tuple(str(token).strip() for token in tokens))
        for word in self.kept:
            if word.rpartition("=")[2] not in MISSING_TOKENS - {""}:
                raise TableError(
                    f"keep_na {word!r}", f"one of {', '.join(sorted(MISSING_TOKENS - {''}))}, or COLUMN=NA",
                    "Other words are labels already.",
                )  # fmt: skip
        if self.sep is not None and not isinstance(self.sep, str):
            raise TableError(f"sep {self.sep!r}", "one character, such as ; or tab")
        sep = {"tab": "\t", "\\t": "\t", "space": " "}.get(self.sep or "", self.sep)
        object.__setattr__(self, "sep", sep)
        if sep is not None and (len(sep) != 1 or sep in '"\r\n'):
            raise TableError(f"sep {self.sep!r}", "one character, such as ; or tab")
        if self.decimal not in (None, ".", ","):
            raise TableError(f"decimal {self.decimal!r}", "a point or a comma")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except (LookupError, ValueError, TypeError):
                raise TableError(
                    f"encoding {self.encoding!r}", "one that Python knows, such as cp1252 or utf-16"
                ) from None

    @property
    def tokens(self) -> tuple[str, ...]:
        """What means a missing cell."""
        return tuple(self.na or ())

    @property
    def kept(self) -> tuple[str, ...]:
        """Which words that mean a missing cell are labels."""
        return tuple(self.keep_na or ())


NOTHING_KNOWN = Reading()
