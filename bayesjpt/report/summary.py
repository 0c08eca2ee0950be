"""Tables of types for the terminal, for text and for HTML."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

from bayesjpt.queries.types import ColumnType, Types

if TYPE_CHECKING:
    from rich.table import Table as RichTable


def _share(column: ColumnType) -> str:
    return f"{column.share:.0%} [{column.lo:.0%}, {column.hi:.0%}]"


def _likelihoods(column: ColumnType) -> str:
    ranked = sorted(column.likelihoods.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {share:.0%}" for name, share in ranked if share >= 0.005)


def _ess(column: ColumnType) -> str:
    return "" if math.isnan(column.ess) else f"{column.ess:.0f}"


def _probable(column: ColumnType) -> str:
    """Return the most probable type with its probability, that of both where they are not told apart."""
    share = sum(column.probabilities.get(name, 0.0) for name in column.most_probable.split(" or "))
    return f"{column.most_probable} {share:.0%}" if share else column.most_probable


def _reason(column: ColumnType) -> str:
    """Return why the column was read as it was, and by how many nats its most probable type leads."""
    lead = column.because.partition(";")[0].partition(" (")[0]
    return f"{column.reason} {lead[:1].upper()}{lead[1:]}." if lead else column.reason


HEADERS = ("column", "base", "probably", "type", "share", "likelihoods", "ess", "missing", "reason")


def _cells(column: ColumnType) -> tuple[str, ...]:
    return (
        column.name,
        column.base,
        _probable(column),
        column.type,
        _share(column),
        _likelihoods(column),
        _ess(column),
        str(column.n_missing),
        _reason(column),
    )


def types_table(result: Types, title: str | None = None) -> RichTable:
    """Return the types as a rich Table."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title) if title else None, title_justify="left", show_lines=False)
    for header in HEADERS:
        numeric = header in ("ess", "missing")
        table.add_column(
            header, justify="right" if numeric else "left", no_wrap=header in ("base", "share"), overflow="fold"
        )
    for column in result.columns:
        style = "yellow" if column.type == "not determined" else ""
        table.add_row(*(Text(cell) for cell in _cells(column)), style=style)
    for aside in result.set_aside:
        table.add_row(
            *(Text(cell) for cell in (aside.name, "", "set aside", "", "", "", "", "", aside.reason)), style="dim"
        )
    return table


def types_text(result: Types) -> str:
    """Return the types as aligned text."""
    rows = [HEADERS[:-1], *(_cells(column)[:-1] for column in result.columns)]
    rows += [(aside.name, "", "set aside", "", "", "", "", "") for aside in result.set_aside]
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADERS) - 1)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def types_html(result: Types) -> str:
    """Return the types as an HTML table, one row a column."""
    head = "".join(f"<th style='text-align:left'>{header}</th>" for header in HEADERS)
    rows = [_html_row(_cells(column), "text-align:left") for column in result.columns]
    rows += [
        _html_row((aside.name, "", "set aside", "", "", "", "", "", aside.reason), "text-align:left;opacity:.6")
        for aside in result.set_aside
    ]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _html_row(cells: tuple[str, ...], style: str) -> str:
    return "".join(f"<td style='{style}'>{html.escape(cell)}</td>" for cell in cells)


# how Types shows itself belongs here; the query does not know of reports
Types.__repr__ = types_text  # type: ignore[method-assign]
Types._repr_html_ = types_html  # type: ignore[attr-defined]
