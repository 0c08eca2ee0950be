"""A report as one page of HTML that needs no network: the template, and what it is filled with.

What a table says (names, labels, texts) goes into the page through the template's escaping, into pictures through that
of `bayesjpt.report.svg`, and into the script as JSON, of which no character can end it.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from bayesjpt import __version__
from bayesjpt.queries.differences import percent
from bayesjpt.queries.marginals import Masses
from bayesjpt.queries.representative import whose
from bayesjpt.queries.type_shares import CONSTANT
from bayesjpt.queries.types import ColumnType
from bayesjpt.report.charts import column_svg, pairs_svg
from bayesjpt.report.contents import Contents, named
from bayesjpt.report.pairs import TOP_PAIRS

DRAWN_ROWS = 200
"""Rows that a page holds, for pictures of any pair: as many as a fit keeps."""


_SECTIONS = (
    ("look", "To look at"),
    ("columns", "Columns"),
    ("pairs", "What hangs together"),
    ("parts", "Sub-populations"),
    ("outliers", "Outliers"),
    ("gaps", "Gaps"),
    ("trust", "Can you trust it?"),
    ("again", "How to repeat it"),
)


def page_html(contents: Contents, command: str) -> str:
    """Return a report as a self-contained page.

    Parameters
    ----------
    contents : Contents
    command : str
        What makes this report again.
    """
    names = [column.answer.name for column in contents.columns]
    order = sorted(contents.paired)
    place = {column: k for k, column in enumerate(order)}
    picture = pairs_svg([names[k] for k in order], list(contents.pairs), place) if contents.pairs else ""
    return _template().render(
        page=contents,
        version=__version__,
        size=_size(contents),
        sections=_SECTIONS,
        look=contents.to_look_at(),
        columns=[(column, column_svg(column)) for column in contents.columns],
        why=_why,
        picture_of_pairs=picture,
        top=contents.pairs[:TOP_PAIRS],
        name=names.__getitem__,
        whose=whose(contents.patterns.structure, contents.patterns.chain),
        parts=[
            (_rendered(part.weight), _rendered(part.probability), _rendered(part.support), part.event)
            for part in sorted(contents.patterns.parts, key=lambda part: -part.weight.mean[0])
        ],
        outliers=_about_outliers(contents),
        numbered=all(odd.row for odd in contents.odd),
        gaps=sorted((c for c in contents.columns if c.n_missing), key=lambda c: -c.n_missing),
        complete=_complete(contents),
        left_out=_left_out(contents),
        share=lambda n, of: f"{100.0 * n / of:.1f} %" if of else "",
        command=command,
        settings=[(key, value) for key, value in contents.settings.items() if key not in ("stability", "seed")],
        data=_data(contents, order, place),
    )


@functools.cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bayesjpt.report", "."), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("page.html.j2")


def _size(contents: Contents) -> str:
    n_column = len(contents.columns) + len(contents.types.left_out)
    n_missing = sum(column.n_missing for column in (*contents.columns, *contents.types.left_out))
    rows = "" if contents.n_row is None else f"{contents.n_row:,} row{'s' * (contents.n_row != 1)}, "
    return f"{rows}{n_column} column{'s' * (n_column != 1)}, {n_missing:,} missing cell{'s' * (n_missing != 1)}"


def _why(answer: ColumnType) -> str:
    """Return the reason of a type in one line; a constant has no other type beside it."""
    if answer.type == CONSTANT:
        return answer.reason
    ranked = sorted(answer.probabilities.items(), key=lambda item: -item[1])
    shares = ", ".join(f"{kind} {probability:.0%}" for kind, probability in ranked if probability >= 0.005)
    return "; ".join(part for part in (answer.reason, shares) if part)


def _rendered(numbers: Masses) -> str:
    mean, lo, hi = (percent(float(values[0])) for values in (numbers.mean, numbers.lo, numbers.hi))
    return mean if lo == hi else f"{mean} ({lo} to {hi})"


def _about_outliers(contents: Contents) -> str:
    far = sum(odd.is_far for odd in contents.odd)
    among = f"{contents.n_scored:,} rows" if contents.whole else f"the {contents.n_scored:,} rows that the fit keeps"
    drawn = contents.whole and contents.n_row is not None and contents.n_scored < contents.n_row
    looked = f"Looked for among {among}{', drawn at random' if drawn else ''}. "
    found = (
        f"{far} row{'s stand' if far != 1 else ' stands'} out."
        if far
        else "None stands out: such rows are met by chance in a table of this size."
    )
    unknown = (
        " The fit does not tell which rows of the table these are." if any(not odd.row for odd in contents.odd) else ""
    )
    return f"{looked}{found}{unknown} A score of 2.3 is reached by one in ten usual rows, 4.6 by one in a hundred."


def _complete(contents: Contents) -> str:
    if contents.rows is None or not contents.whole:
        return ""
    n = int(contents.rows.observed.all(axis=0).sum())
    where = " in the columns of the model" if _left_out(contents) else ""
    return f"{n:,} of {contents.rows.n_row:,} rows have all their cells{where}."


def _left_out(contents: Contents) -> str:
    """Return where cells are missing of which the model does not know; empty for nowhere."""
    found = [column for column in contents.types.left_out if column.n_missing]
    n = sum(column.n_missing for column in found)
    names = named([column.name for column in found])
    return f"Columns that were left out have {n:,} missing cell{'s' * (n != 1)}: {names}." if found else ""


def _data(contents: Contents, order: list[int], place: dict[int, int]) -> dict[str, Any]:
    """Return what the script draws pairs from: a few rows, and how much each pair hangs together."""
    rows = contents.rows
    kept = np.empty(0, np.int64)
    if rows is not None:
        kept = np.unique(np.linspace(0, rows.n_row - 1, min(DRAWN_ROWS, rows.n_row)).astype(np.int64))
    columns = []
    for k in order:
        axis = contents.columns[k].axis
        labels = list(axis.labels)
        if contents.columns[k].rows[-1:].sum() == 0.0 and labels[-1:] == ["other"]:
            labels.pop()  # no row has it
        answer = contents.columns[k].answer
        ranks = [label for label in answer.order if label in labels] if answer.type == "ordinal" else []
        ranks += [label for label in labels if label not in ranks]
        rank = [ranks.index(label) for label in labels] + [len(labels)] * (len(axis.labels) - len(labels))
        described: dict[str, Any] = {"name": axis.name, "labels": ranks or None, "values": []}
        if rows is not None:
            seen = zip(rows.values[k, kept].tolist(), rows.observed[k, kept].tolist(), strict=True)
            # places on a picture, to a thousandth of its width or better
            digits = 0 if axis.labels else 3 - math.floor(math.log10(max(axis.edges[-1] - axis.edges[0], 1e-300)))
            described["values"] = [
                (rank[int(value)] if axis.labels else round(value, digits)) if observed else None
                for value, observed in seen
            ]
        if not axis.labels:
            described |= {"lo": float(axis.edges[0]), "hi": float(axis.edges[-1]), "ticks": axis.ticks}
        columns.append(described)
    pairs = [(place[p.first], place[p.second], *(round(x, 3) for x in (p.mean, p.lo, p.hi))) for p in contents.pairs]
    return {"columns": columns, "pairs": pairs}
