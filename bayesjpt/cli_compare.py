"""The command ``bayesjpt compare``: where two tables, or a saved fit and a table, differ."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesjpt.announced import FIRST_TIME, announced
from bayesjpt.cli_export import Output, check_output, write_records
from bayesjpt.cli_reading import TableReader, reads_table
from bayesjpt.errors import BayesjptError, BayesjptWarning

if TYPE_CHECKING:
    from bayesjpt.fitting.compare import TableComparison

FIT = ".nc"
_FIELDS = ("name", "verdict", "probability", "size", "missing", "words")

First = Annotated[Path, typer.Argument(metavar="A", help="A table, or what `bayesjpt fit` wrote (.nc).")]
Second = Annotated[Path, typer.Argument(metavar="B", help="A table, or a fit.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Seed = Annotated[int, typer.Option(min=0, help="Divides rows into those that parts are chosen on, and judged on.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no warnings.")]


@reads_table
def compare(
    first: First,
    second: Second,
    as_json: Json = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    output: Output = None,
    *,
    reader: TableReader,
) -> None:
    """Tell where two tables differ, column by column and together, with probabilities."""
    from bayesjpt.fitting.compare import compare

    check_output(output, json=as_json)
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", BayesjptWarning)
        tables = [_rows(path, reader, quiet) for path in (first, second)]
        with announced(f"comparing{FIRST_TIME}", not quiet):
            found = compare(*tables, seed=seed, names=_names(first, second))
    if output is not None:
        lines = [asdict(column) | {"verdict": column.verdict} for column in found.columns]
        write_records(output, {name: [line[name] for line in lines] for name in _FIELDS}, "columns")
        return
    typer.echo(json.dumps(_plain(found), indent=2, ensure_ascii=False) if as_json else repr(found))


def _rows(path: Path, reader: TableReader, quiet: bool) -> Any:
    with announced(f"reading {path.name}", not quiet):
        if path.suffix.lower() != FIT:
            with _notes_of(path.name):
                return reader.table(path)
        from bayesjpt.posterior.store import load

        post = load(path)
        kept, n_row = 0 if post.reference is None else post.reference.n_row, post.settings.get("n_row")
        if not quiet and isinstance(n_row, int) and kept < n_row:
            typer.echo(
                f"{path.name} keeps {kept} of its {n_row:,} rows: give the table itself to see small differences",
                err=True,
            )
        return post


@contextlib.contextmanager
def _notes_of(name: str) -> Iterator[None]:
    """Say of our warnings, and of what is refused, which file they are about."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", BayesjptWarning)
            yield
    except BayesjptError as error:
        if name in error.found:
            raise
        raise type(error)(f"{name}: {error.found}", error.expected, error.remedy, command=error.command) from None
    finally:
        for one in caught:
            is_ours = issubclass(one.category, BayesjptWarning)
            warnings.warn(f"{name}: {one.message}" if is_ours else str(one.message), one.category, stacklevel=1)


def _names(first: Path, second: Path) -> tuple[str, str]:
    """Return what the files are called, with their folders where the names are the same."""
    if first.name != second.name:
        return first.name, second.name
    return str(first), str(second)


def _plain(comparison: TableComparison) -> dict[str, Any]:
    return {
        "tables": list(comparison.names),
        "rows": list(comparison.n_row),
        "rows_in_both": comparison.n_copied,
        "together": comparison.together,
        "columns": [asdict(column) | {"verdict": column.verdict} for column in comparison.columns],
        "parts": [asdict(part) for part in comparison.parts],
        "only_in": {"first": list(comparison.only_first), "second": list(comparison.only_second)},
        "not_compared": list(comparison.left_out),
        "not_compared_because": dict(zip(comparison.left_out, comparison.reasons, strict=True)),
    }


COMMANDS = {compare: "bayesjpt compare january.csv february.csv"}
"""Each command with an example of its use."""
