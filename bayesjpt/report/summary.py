"""Types as text of 80 characters a line, as HTML, one column in detail, and the diagnostics behind them."""

from __future__ import annotations

import html
import math
import re
import shlex
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bayesjpt.queries.look_at import AS_TEXT, IS_CODE, notes_of_left_out
from bayesjpt.queries.type_shares import CONSTANT
from bayesjpt.queries.types import UNSURE, ColumnType, Types
from bayesjpt.table.excluded import censored, first_odd

if TYPE_CHECKING:
    from bayesjpt.queries.type_shares import ColumnShares, TypeShares
    from bayesjpt.table.schema import SetAside

WIDTH = 80
"""Characters a line."""

HEADERS = ("column", "is", "how sure", "values", "look at")

_MOST_LISTED = 30
"""Columns that are named below the table, of those that were left out."""

_GAP = "  "
_LEAST = {"column": 14, "is": 16, "how sure": 8, "values": 18, "look at": 16}
"""Characters that each part of a line keeps while another can still give some."""

_LONGEST_KIND = 20
"""Characters of a command that a line has room for."""

_WORDS = {
    "real": "number",
    "positive": "number >= 0",
    "count": "number, whole",
    "interval": "number, bounded",
    "ordinal": "order",
    "nominal": "label",
    "binary": "binary",
    "constant": "constant",
    "date": "date",
    "year": "number, whole (year)",
}
"""Types in the words of the table."""

_SHORT = _WORDS | {"count": "whole", "interval": "bounded", "year": "year"}
"""The same where two of them stand side by side."""


def words_of(column: ColumnType) -> str:
    """Return a column's type in a few words, and both where it is unsure: ``label, 3``, ``label/order``."""
    if column.certainty == UNSURE and column.second:
        both = [_short(column, column.type), _short(column, column.second)]
        return "/".join(sorted(both) if set(both) == {"label", "order"} else both)
    words = _WORDS[column.type]
    if column.type == "positive":
        return _short(column, column.type)
    if column.type == "ordinal" and 0 < len(column.order) < column.n_distinct:
        return f"{words}, {len(column.order)} + {column.n_distinct - len(column.order)}"
    return f"{words}, {column.n_distinct}" if column.type in ("nominal", "ordinal") else words


def _short(column: ColumnType, kind: str) -> str:
    """Return a type of a column in a word or two."""
    return "number > 0" if kind == "positive" and column.is_above_zero else _SHORT[kind]


def types_text(result: Types, name: str | None = None, n_fitted: int | None = None) -> str:
    """Return the types as aligned text, one line a column, at most `WIDTH` characters wide.

    Parameters
    ----------
    result : Types
    name : str, optional
        Of the table, for the first line.
    n_fitted : int, optional
        Rows that were fitted, where these are not all.
    """
    lines = [_title(result, name)]
    rows = [_cells(column) for column in result.columns]
    n = len(HEADERS) if any(row[-1] for row in rows) else len(HEADERS) - 1
    table = [HEADERS[:n], *(row[:n] for row in rows)]
    widths = _widths(table)
    lines += [_line(row, widths) for row in table]
    lines += _listed("one-hot: ", [f"{first} to {last}, {n} columns" for first, last, n in result.one_hot])
    lines += _left_out(result.left_out)
    moved = [column.name for column in result.columns if column.rivals and column.certainty != UNSURE]
    if moved:
        lines.append(_one_line("another seed may say otherwise: ", moved))
    if n_fitted is not None and result.n_row is not None and n_fitted < result.n_row:
        lines.append(f"fitted: {n_fitted:,} of {result.n_row:,} rows, drawn at random; --rows all takes every row")
    return "\n".join(lines)


def _title(result: Types, name: str | None) -> str:
    n_missing = sum(column.n_missing for column in (*result.columns, *result.left_out))
    n_column = len(result.columns) + len(result.left_out)
    rows = "" if result.n_row is None else f"{result.n_row:,} {'row' if result.n_row == 1 else 'rows'}, "
    text = f"{rows}{n_column} {'column' if n_column == 1 else 'columns'}, {n_missing:,} missing"
    return text if name is None else f"{clipped(name, WIDTH - len(text) - 2)}: {text}"


def _cells(column: ColumnType) -> tuple[str, ...]:
    look_at = "; ".join(column.look_at)
    if look_at.startswith("--kind") and display_width(look_at) > _LONGEST_KIND:
        look_at = (
            "dates? --kind" if look_at.rstrip("'").endswith("=date") else "order? --kind"
        )  # a clipped command is none
    return column.name, words_of(column), column.certainty, column.values, look_at


def _widths(table: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each part of a line: what it needs, or less where that is more than a line has."""
    widths = [max(display_width(_plain(row[k])) for row in table) for k in range(len(table[0]))]
    if len(widths) == len(HEADERS):  # values go on where there is nothing to look at
        spare = len(_GAP) + widths[4]
        widths[3] = max(display_width(_plain(row[3])) - (0 if row[4] else spare) for row in table)
    room = WIDTH - len(_GAP) * (len(widths) - 1)
    for k in (0, 3, 4):
        if k < len(widths):
            widths[k] = max(min(widths[k], _LEAST[HEADERS[k]]), widths[k] - max(sum(widths) - room, 0))
    for k in (0, 3):
        widths[k] -= max(min(sum(widths) - room, widths[k] - 10), 0)
    return widths


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return a line of the table; values may go on where there is nothing to look at."""
    row, widths = list(row), list(widths)
    if len(row) == len(HEADERS) and not row[-1]:
        room = len(_GAP) + widths.pop()
        widths[-1] += room
        row.pop()
    row[3] = _shortened(row[3], widths[3])
    return _GAP.join(_fitted(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _plain(text: str) -> str:
    """Return a text without line ends and characters that a terminal would obey."""
    return "".join(c if c.isprintable() else " " for c in text)


def display_width(text: str) -> int:
    """Return the columns of a terminal that a text takes: two for each wide character."""
    from rich.cells import cell_len

    return cell_len(text)


def clipped(text: str, width: int) -> str:
    """Return a text of at most some width, an ellipsis at the end of one that was longer."""
    from rich.cells import set_cell_size

    text = _plain(text)
    return text if display_width(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + "…"


def _shortened(values: str, width: int) -> str:
    """Return a summary of values without the parts that a line has no room for, the last rank kept."""
    if display_width(values) <= width:
        return values
    between = " < " if " < " in values else ", "
    parts = values.split(between)
    end = [parts.pop()] if between == " < " else []
    for n in range(len(parts) - (not end), 0, -1):
        shortened = between.join([*parts[:n], "…", *end])
        if display_width(shortened) <= width:
            return shortened
    return values


def _fitted(text: str, width: int) -> str:
    short = clipped(text, width)
    return short + " " * (width - display_width(short))


def _left_out(columns: Sequence[SetAside]) -> list[str]:
    """Return the line of columns that were left out, and one where some of them should be looked at."""
    if not columns:
        return []
    odd: dict[str, list[str]] = {}
    for column in columns:
        for note in notes_of_left_out(column):
            odd.setdefault(note, []).append(_with_odd_cell(column))
    lines = _listed("left out: ", [f"{column.name}, {short_reason(column)}" for column in columns])
    return lines + [_one_line(f"look at, {note}: ", names) for note, names in odd.items()]


def _with_odd_cell(column: SetAside) -> str:
    """Return the name of a column that was left out with the first cell that is no number, or date, and a remedy."""
    odd = first_odd(column.reason)
    if odd is None:
        return column.name
    bound = censored(odd[0])
    if bound is not None:
        way = "half" if bound.is_below else "it"
        return f"{column.name} ({odd[0]!r} in row {odd[1]}: write {way}, {bound.stand_in})"
    return f"{column.name} ({odd[0]!r} in row {odd[1]}: --na {shlex.quote(f'{column.name}={odd[0]}')})"


def _listed(start: str, entries: Sequence[str]) -> list[str]:
    """Return entries apart by semicolons in lines of at most `WIDTH` characters, the first `_MOST_LISTED` of them."""
    if not entries:
        return []
    room = WIDTH - len(start) - 1
    entry_lines = [clipped(entry, room) for entry in entries[:_MOST_LISTED]]
    if len(entries) > _MOST_LISTED:
        entry_lines.append(f"{len(entries) - _MOST_LISTED} more, see --full")
    lines: list[str] = []
    for entry in entry_lines:
        if lines and display_width(lines[-1]) + display_width(entry) + 2 <= room:
            lines[-1] += f"; {entry}"
        else:
            if lines:
                lines[-1] += ";"
            lines.append(entry)
    return [f"{start if k == 0 else ' ' * len(start)}{line}" for k, line in enumerate(lines)]


def short_reason(column: SetAside) -> str:
    """Return why a column was left out, in a few words, and how many of its cells are missing, where some are.

    Examples
    --------
    >>> from bayesjpt.table.schema import SetAside
    >>> short_reason(SetAside("note", "identifier or free text: 90 distinct texts in 90 observed cells", 310))
    '90 different texts, 310 missing'
    """
    found = re.search(r"(\d+) (?:distinct texts|labels)", column.reason)
    missing = f", {column.n_missing:,} missing" if column.n_missing and not column.is_empty else ""
    return (f"{found[1]} different texts" if found else column.reason.partition(":")[0]) + missing


def _one_line(start: str, entries: Sequence[str], between: str = ", ") -> str:
    """Return as many entries as a line has room for, and how many more there are."""
    for n in range(len(entries), 0, -1):
        more = f"{between}{len(entries) - n} more" if n < len(entries) else ""
        line = f"{start}{between.join(map(_plain, entries[:n]))}{more}"
        if display_width(line) <= WIDTH:
            return line
    more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
    return clipped(f"{start}{entries[0]}", WIDTH - len(more)) + more


def types_html(result: Types) -> str:
    """Return the types as an HTML table, one row a column."""
    head = "".join(f"<th style='text-align:left'>{header}</th>" for header in HEADERS)
    rows = [_html_row(_cells(column), "text-align:left") for column in result.columns]
    rows += [
        _html_row((aside.name, "left out", "", short_reason(aside), ""), "text-align:left;opacity:.6")
        for aside in result.left_out
    ]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_row(cells: Sequence[str], style: str) -> str:
    return "".join(f"<td style='{style}'>{html.escape(cell)}</td>" for cell in cells)


# --- in detail -------------------------------------------------------------------------------------------------------


def why_text(result: Types, name: str) -> str:
    """Return all that is known of one column's type.

    Raises
    ------
    QueryError
        For an unknown column.
    """
    column = result.find(name)
    if not isinstance(column, ColumnType):
        notes = _wrapped("missing", f"{column.n_missing:,} cells" if column.n_missing else "")
        notes += [f"look at    {note}" for note in notes_of_left_out(column)]
        notes += _wrapped("remedy", _makes_numbers(column))
        return "\n".join([clipped(f"{name}: left out", WIDTH), *_wrapped("because", column.reason), *notes])
    lines = [clipped(f"{column.name}: {words_of(column)}, {column.certainty}", WIDTH)]
    if column.type != CONSTANT:  # of one value nothing tells types apart but how common they are
        ranked = sorted(column.probabilities.items(), key=lambda item: -item[1])
        lines += _wrapped("types", ", ".join(f"{kind} {probability:.1%}" for kind, probability in ranked))
        lines += _wrapped("because", column.because)
    lines += _wrapped("read as", f"{column.base}: {column.reason}")
    lines += _wrapped("values", f"{column.values} ({column.n_distinct} different, {column.n_missing} missing)")
    order = " < ".join(column.order)
    lines += _wrapped("order", "" if column.values == order else order)  # which values may tell, too
    lines += _wrapped("look at", "; ".join(column.look_at))
    lines += _wrapped("remedy", _reads_codes(column) or (_makes_numbers(column) if AS_TEXT in column.look_at else ""))
    lines += _wrapped("rivals", ", ".join(f"{kind} by the sub-populations of one draw" for kind in column.rivals))
    return "\n".join(lines)


def _makes_numbers(column: ColumnType | SetAside) -> str:
    """Return what to do about the first cell that is no number, or date, as most of a column are; "" without one."""
    odd = first_odd(column.reason)
    if odd is None:
        return ""
    bound = censored(odd[0])
    option = f"--na {shlex.quote(f'{column.name}={odd[0]}')}"
    return f"{option} reads it as missing" if bound is None else bound.in_words()


def _reads_codes(column: ColumnType) -> str:
    """Return the option that reads a column's codes as missing cells; nothing where it has none."""
    codes = [note.removesuffix(IS_CODE) for note in column.look_at if note.endswith(IS_CODE)]
    if not codes or "," in column.name:  # which separates them
        return ""
    return f"--na {shlex.quote(','.join(f'{column.name}={code}' for code in codes))} reads that as missing"


def _wrapped(key: str, text: str) -> list[str]:
    """Return lines that begin with a key, nothing for an empty text; wide characters count as two."""
    lines, room = [], WIDTH - 11
    for word in _plain(text).split():
        while display_width(word) > room:
            lines.append(clipped(word, room))
            word = ""
        if lines and display_width(lines[-1]) + 1 + display_width(word) <= room:
            lines[-1] = f"{lines[-1]} {word}".rstrip()
        elif word:
            lines.append(word)
    return [f"{key if k == 0 else '':<11}{line}" for k, line in enumerate(lines)]


def wrapped(text: str) -> str:
    """Return a text in lines of at most `WIDTH` characters."""
    return textwrap.fill(_plain(text), WIDTH)


def shares_text(result: TypeShares) -> str:
    """Return shares of likelihoods, intervals and effective sizes: a few lines a column."""
    lines = ["shares of cells by type and likelihood, with 90 % intervals (diagnostics)"]
    for column in result.columns:
        lines.append(clipped(column.name, WIDTH))
        lines += [f"  {line}" for line in textwrap.wrap(_share_line(column), WIDTH - 2)]
    return "\n".join(lines)


def _share_line(column: ColumnShares) -> str:
    ranked = sorted(column.likelihoods.items(), key=lambda item: -item[1])
    likelihoods = ", ".join(f"{name} {share:.0%}" for name, share in ranked if share >= 0.005)
    ess = "" if math.isnan(column.ess) else f"; effective size {column.ess:.0f}"
    rhat = "" if math.isnan(column.rhat) else f"; R-hat {column.rhat:.2f}"
    return f"{column.type} {column.share:.0%} [{column.lo:.0%}, {column.hi:.0%}]: {likelihoods}{ess}{rhat}"


# how Types shows itself belongs here; the query does not know of reports
Types.__repr__ = types_text  # type: ignore[method-assign]
Types._repr_html_ = types_html  # type: ignore[attr-defined]
