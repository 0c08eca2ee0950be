"""Answers of commands as text of 80 characters a line."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import typer

from bayesjpt.errors import BayesjptError, BayesjptWarning
from bayesjpt.listed_names import split_names

if TYPE_CHECKING:
    import numpy as np

    from bayesjpt.queries.explain import Explanation
    from bayesjpt.table.dataset import Dataset
    from bayesjpt.table.table import Table

_WIDTH = 80
_INDENT = 6 * " "
_PAIR = len("  0.342  0.248 to 0.426 ?    ")
_CELL = len("    184        7.0     0.005      2.8  ")
"""What stands before names."""

_LARGEST_K = 0.7
"""Of the Pareto shape, up to which importance weights are trusted (Vehtari et al., 2024)."""


def names_of(listed: str | None, option: str) -> list[str] | None:
    """Return the names that an option lists with commas; None where nothing was given.

    Raises
    ------
    BayesjptError
        For commas, or nothing, without a name.

    Examples
    --------
    >>> names_of("normal, gamma,", "--families"), names_of(None, "--families")
    (['normal', 'gamma'], None)
    """
    if listed is None:
        return None
    names = split_names(listed)
    if not names:
        raise BayesjptError(f"{option} {listed!r}", "names with commas between them")
    return names


def explained_text(why: Explanation) -> str:
    """Return which sub-populations carry an answer, a paragraph each."""
    lines = [fill(f"{why.whose().capitalize()}:", _WIDTH)]
    for share, weight, within, name in why.rows():
        line = f"{share:>5} of the answer, {weight} of the rows, probability {within} there: {name}"
        lines.append(fill(line, _WIDTH, subsequent_indent=_INDENT, break_on_hyphens=False, break_long_words=False))
    return "\n".join(lines)


def pairs_text(
    names: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    mean: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    shown: Sequence[bool | None] = (),
) -> Iterator[str]:
    """Yield a line for each pair of columns: a number, its interval, "?" where rows do not show it, and their names."""
    short_names = names_within(names, (_WIDTH - _PAIR) // 2)
    width = max(len(name) for name in short_names)
    for (i, j), is_shown in zip(pairs, [*shown, *[None] * len(pairs)], strict=False):
        mark = " ?  " if is_shown is False else "    "
        yield f"{mean[i, j]:7.3f}  {lo[i, j]:.3f} to {hi[i, j]:.3f}{mark}{short_names[i]:<{width}}  {short_names[j]}"


def outliers_text(lines: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Iterator[str]:
    """Yield a header, and a line for each row: its numbers, and the cell that makes it so."""
    from bayesjpt.report.summary import clipped

    short_name = dict(zip(names, names_within(names, (_WIDTH - _CELL) // 2), strict=True))
    yield f"{'row':>7} {'score':>10} {'quantile':>9} {'of cell':>8}  responsible cell"
    for line in lines:
        cell = f"{short_name[line['column']]} = {line['value']}" if line["column"] else "none observed"
        doubt = "  (k > 0.7)" if "pareto_k" in line and not (line["pareto_k"] or 0.0) <= _LARGEST_K else ""
        numbers = f"{_rendered(line['score']):>10} {_rendered(line['quantile']):>9} {_rendered(line['cell_score']):>8}"
        yield f"{line['row']:>7} {numbers}  {clipped(cell, _WIDTH - _CELL - len(doubt))}{doubt}"


def tell_doubts(table: Table | Dataset, quiet: bool) -> None:
    """Say which numbers of a table in memory seem to be codes for missing cells, or dates, and how to read them so."""
    from bayesjpt.queries.look_at import may_be_dates, missing_codes
    from bayesjpt.table.table import Table

    if quiet or not isinstance(table, Table):
        return
    codes, dates = [], []
    for column, values, observed in zip(table.schema, table.values, table.observed, strict=True):
        cells = values[observed]
        if "," not in column.name:  # which separates them
            codes += [f"{column.name}={code:.17g}" for code in missing_codes(column, cells)]
        dates += [f"--kind {shlex.quote(f'{column.name}=date')}"] if may_be_dates(column, cells) else []
    if codes:
        found = shlex.quote(",".join(codes))
        typer.echo(f"bayesjpt: are these codes for missing cells? --na {found} reads them so", err=True)
    if dates:
        typer.echo(f"bayesjpt: are these numbers dates? {' '.join(dates)} reads them so", err=True)


def without_types(stability: str) -> str:
    """Return how stable answers are without what is said of shares: `types` tells types by another measure."""
    return stability.partition(" Type not determined:")[0]


def with_options(stability: str) -> str:
    """Return what a fit says of how stable answers are, remedies as options of the command.

    Examples
    --------
    >>> with_options("The warm-up was too short: ask for a larger tune.")
    'The warm-up was too short: ask for more sweeps before the draws, --tune N.'
    """
    text = stability.replace("ask for a larger tune.", "ask for more sweeps before the draws, --tune N.")
    return text.replace("Ask for more structures.", "Ask for more structures, --structures N.")


def of_saved_fit(stability: str) -> str:
    """Return how stable answers of a saved fit are, without what could be mended by another fit alone.

    Examples
    --------
    >>> of_saved_fit("8 structures. The warm-up was too short: ask for a larger tune. Type not determined: a.")
    '8 structures.'
    """
    return without_types(stability).partition(" The warm-up was too short:")[0]


def warning_shower() -> Callable[..., None]:
    """Return what prints our own warnings, each once, as one line; those of libraries are for developers."""
    said: set[str] = set()

    def show(message, category, filename, lineno, file=None, line=None) -> None:
        if issubclass(category, BayesjptWarning) and str(message) not in said:
            said.add(str(message))  # a file that is read as a table, and as it was written, says all twice
            typer.echo(f"bayesjpt: {message}", err=True)

    return show


def names_within(names: Sequence[str], width: int) -> list[str]:
    """Return names of at most some width, or as they are where two of them would be one.

    Examples
    --------
    >>> names_within(["overall satisfaction", "age"], 8), names_within(["level of a", "level of b"], 6)
    (['overall…', 'age'], ['level of a', 'level of b'])
    """
    from bayesjpt.report.summary import clipped

    short = [clipped(name, width) for name in names]
    return short if len(set(short)) == len(set(names)) else list(names)


def _rendered(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if abs(value) < 1 else f"{value:.1f}"


def tell_phase(phase: str, seconds: float) -> None:
    """Say on standard error that a phase of a fit has ended."""
    words = {
        "learn": "structure learned",
        "compile": "kernels compiled or loaded",
        "resume": "checkpoint read",
        "weigh": "structures weighed",
        "structures": "structures learned and sampled",
        "sample": "chains sampled",
    }
    typer.echo(f"{words[phase]} in {seconds:.1f} s", err=True)
