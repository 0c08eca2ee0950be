"""How posteriors and their stability are shown at the end of a notebook's cell: small tables, all texts escaped."""

from __future__ import annotations

import html
import math

from bayesjpt.posterior.draws import Posterior
from bayesjpt.report.convergence import Convergence
from bayesjpt.report.stability import Stability

_N_SHOWN = 60
"""Columns that are shown."""


def posterior_html(post: Posterior) -> str:
    """Return what a posterior is of: its columns, how many draws, and how stable its answers were found to be."""
    from bayesjpt.posterior.labelled import html_table

    lines = []
    for column in post.schema.columns[:_N_SHOWN]:
        is_label = column.base == "category"
        ends = [column.text(end) for end in (column.minimum, column.maximum)] if not is_label else []
        values = (
            ", ".join(column.labels[:5]) + ("…" if len(column.labels) > 5 else "") if is_label else " to ".join(ends)
        )
        lines.append([column.name, column.base, values, f"{column.n_missing}"])
    more = len(post.schema) - len(lines)
    given = f"; given {post.settings['given']}" if "given" in post.settings else ""
    n_structure = len(post.by_structure())
    structures = f"{n_structure} structures, " if n_structure > 1 else ""
    caption = f"Posterior: {structures}{post.n_chain * post.n_draw} draws, {len(post.schema)} columns{given}"
    table = html_table(["column", "read as", "values", "missing"], lines, caption)
    lines = [f"and {more} more columns"] if more > 0 else []
    lines += [str(post.settings["stability"])] if "stability" in post.settings else []
    lines.append("Ask it: post.types(), post.probability('…'), post.report('report.html')")
    return table + "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def convergence_html(convergence: Convergence) -> str:
    """Return R-hat and effective sizes as a table, and the sentence that says what they mean."""
    from bayesjpt.posterior.labelled import html_table

    lines = []
    for name in convergence.table["quantity"].to_numpy():
        row = convergence.table.sel(quantity=name)
        numbers = (_rendered(float(row.rhat), 3), _rendered(float(row.rhat_q95), 3), _rendered(float(row.ess), 0))
        lines.append([str(name), *numbers, str(int(row.n_entry))])
    return html_table(["quantity", "R-hat worst", "R-hat 95 %", "ESS least", "entries"], lines, convergence.sentence())


def stability_html(stability: Stability) -> str:
    """Return how far another seed moves each kind of answer, and the sentence that says what that means."""
    from bayesjpt.posterior.labelled import html_table

    lines = []
    for name in stability.table["quantity"].to_numpy():
        row = stability.table.sel(quantity=name)
        move = float(row.move)
        moved = "" if math.isnan(move) else f"{100.0 * move:.0f} % of the interval"
        lines.append([str(name), moved, _rendered(float(row.rhat_halves), 3), str(int(row.n_entry))])
    return html_table(["quantity", "another seed moves", "R-hat of halves", "entries"], lines, stability.sentence())


def _rendered(value: float, n_digit: int) -> str:
    return "" if math.isnan(value) else f"{value:.{n_digit}f}"


# how these show themselves belongs here; draws know nothing of reports
Posterior._repr_html_ = posterior_html  # type: ignore[attr-defined]
Convergence._repr_html_ = convergence_html  # type: ignore[attr-defined]
Stability._repr_html_ = stability_html  # type: ignore[attr-defined]
