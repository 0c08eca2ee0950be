"""Comparisons of two tables as text of 80 characters a line, and for notebooks."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from typing import Protocol

from bayesjpt.errors import counted
from bayesjpt.report.summary import WIDTH, clipped, display_width

_HEADERS = ("column", "differs", "by", "how")
_LONGEST_NAME = 24
_FEW_COPIES = 0.05
"""Share of the rows up to which copies are not worth a word."""


class ColumnAnswer(Protocol):
    """How a column differs."""

    @property
    def name(self) -> str: ...
    @property
    def probability(self) -> float: ...
    @property
    def missing(self) -> float: ...
    @property
    def size(self) -> float: ...
    @property
    def verdict(self) -> str: ...
    @property
    def words(self) -> str: ...
    @property
    def rounding(self) -> str: ...


class PartAnswer(Protocol):
    """Where shares differ."""

    @property
    def event(self) -> str: ...
    @property
    def first(self) -> tuple[float, float, float]: ...
    @property
    def second(self) -> tuple[float, float, float]: ...
    @property
    def or_missing(self) -> Sequence[str]: ...


class Answer(Protocol):
    """How two tables differ."""

    @property
    def columns(self) -> Sequence[ColumnAnswer]: ...
    @property
    def together(self) -> float | None: ...
    @property
    def parts(self) -> Sequence[PartAnswer]: ...
    @property
    def only_first(self) -> Sequence[str]: ...
    @property
    def only_second(self) -> Sequence[str]: ...
    @property
    def left_out(self) -> Sequence[str]: ...
    @property
    def reasons(self) -> Sequence[str]: ...
    @property
    def n_row(self) -> tuple[int, int]: ...
    @property
    def names(self) -> tuple[str, str]: ...
    @property
    def n_copied(self) -> int: ...


def comparison_text(comparison: Answer) -> str:
    """Return a comparison as aligned text, the columns that differ most first, at most `WIDTH` characters wide."""
    lines = [clipped(_headline(comparison), WIDTH), *textwrap.wrap(_verdict(comparison), WIDTH)]
    rows = [_HEADERS, *(_cells(column) for column in _ranked(comparison))]
    widths = [min(max(display_width(row[k]) for row in rows), _LONGEST_NAME) for k in range(3)]
    for row in rows:
        start = "  ".join(_padded(cell, width) for cell, width in zip(row[:3], widths, strict=True))
        lines.append(clipped(f"{start}  {row[3]}".rstrip(), WIDTH))
    if comparison.parts:
        lines += textwrap.wrap(f"Where the rows differ most, shares of {' and '.join(comparison.names)}:", WIDTH)
        for part in comparison.parts:
            text = f"{_share(part.first)} -> {_share(part.second)}: {_rows_of(part)}"
            lines += textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="      ")
    for remark in _remarks(comparison):
        lines += textwrap.wrap(remark, WIDTH, subsequent_indent="  ")
    return "\n".join(lines)


def _rows_of(part: PartAnswer) -> str:
    return part.event + (f" (or missing: {', '.join(part.or_missing)})" if part.or_missing else "")


def comparison_html(comparison: Answer) -> str:
    """Return a comparison as an HTML table, everything escaped."""
    from bayesjpt.posterior.labelled import html_table

    lines = [list(_cells(column)) for column in _ranked(comparison)]
    page = html_table(list(_HEADERS), lines, f"{_headline(comparison)}. {_verdict(comparison)}")
    if comparison.parts:
        parts = [[_share(part.first), _share(part.second), _rows_of(part)] for part in comparison.parts]
        page += html_table([*comparison.names, "rows with"], parts, "Where the rows differ most")
    return page + "".join(f"<p>{html.escape(remark)}</p>" for remark in _remarks(comparison))


def _remarks(comparison: Answer) -> list[str]:
    """Return what is to be known beside the columns compared, a sentence each."""
    found = [
        f"{clipped(column.name, _LONGEST_NAME)}: {column.rounding}" for column in comparison.columns if column.rounding
    ]
    for name, only in zip(comparison.names, (comparison.only_first, comparison.only_second), strict=True):
        if only:
            found.append(f"only in {name}: {clipped(', '.join(only), WIDTH)}")
    for name, reason in zip(comparison.left_out, comparison.reasons, strict=True):
        found.append(f"not compared: {clipped(name, _LONGEST_NAME)} ({reason})")
    return found


def _headline(comparison: Answer) -> str:
    first, second = comparison.names
    rows = f"{comparison.n_row[0]:,} and {comparison.n_row[1]:,} rows"
    return f"{first} and {second}: {rows}, {counted(len(comparison.columns), 'column')} compared"


def _verdict(comparison: Answer) -> str:
    """Return what was found in a sentence."""
    differing = [column.name for column in comparison.columns if column.verdict == "differs"]
    if comparison.n_copied and comparison.n_row == (comparison.n_copied, comparison.n_copied):
        return f"Both hold the same rows{_but_for_digits(comparison)}."
    text = (
        f"Taken together: {probability(comparison.together)} that the rows differ."
        if comparison.together is not None
        else ""
    )
    if comparison.n_copied > _FEW_COPIES * min(comparison.n_row):
        text += f" {comparison.n_copied:,} rows are in both."
    if differing:
        n = len(differing)
        return f"{n} column{'s differ' if n > 1 else ' differs'}. {text}".strip()
    if comparison.together is not None and comparison.together >= 0.95:
        return f"No column differs by itself, but what hangs together does. {text}"
    doubtful = [column.name for column in comparison.columns if column.verdict == "may differ"]
    alike = "No column clearly differs" if doubtful else f"The columns are alike{_but_for_digits(comparison)}"
    return f"{alike}. {text}".strip()


def _but_for_digits(comparison: Answer) -> str:
    is_rounded = any(column.rounding for column in comparison.columns)
    return ", but for the digits to which they were recorded" if is_rounded else ""


def probability(value: float) -> str:
    """Return a probability in percent, without saying that anything is impossible or certain."""
    return "<1 %" if value < 0.01 else ">99 %" if value > 0.99 else f"{100.0 * value:.0f} %"


def _ranked(comparison: Answer) -> list[ColumnAnswer]:
    return sorted(comparison.columns, key=lambda column: -round(max(column.probability, column.missing), 3))


def _cells(column: ColumnAnswer) -> tuple[str, str, str, str]:
    text = f"{column.verdict}: {column.words}" if column.words else column.verdict
    return column.name, probability(max(column.probability, column.missing)), f"{100.0 * column.size:.0f} %", text


def _share(numbers: tuple[float, float, float]) -> str:
    mean, lo, hi = (f"{100.0 * number:.0f}" for number in numbers)
    return f"{mean} % ({lo} to {hi})"


def _padded(text: str, width: int) -> str:
    text = clipped(text, width)
    return text + " " * (width - display_width(text))
