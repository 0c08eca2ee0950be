"""What a command prints as a table, as a file: ``-o FILE``, csv or tsv (also with .gz), parquet or feather."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

OUTPUT_HELP = "File to write in place of printing: csv or tsv (also with .gz), parquet or feather."
Output = Annotated[Path | None, typer.Option("--output", "-o", help=OUTPUT_HELP)]


def check_output(path: Path | None, **others: bool) -> None:
    """Raise, before any work, for a file that cannot be written, or another form that is asked for beside it."""
    from bayesjpt.errors import BayesjptError
    from bayesjpt.table.write import check_path

    if path is None:
        return
    for name, wanted in others.items():
        if wanted:
            raise BayesjptError(f"--output and --{name.replace('_', '-')} together", "one of them")
    check_path(path)


def write_records(path: Path, columns: Mapping[str, Sequence[Any]], what: str) -> None:
    """Write named columns of numbers, texts or None, all of one length, and say so beside the output."""
    from bayesjpt.table.write import is_typed, write_arrow, write_columns

    if is_typed(path):
        import pyarrow as pa

        write_arrow(pa.table({name: list(values) for name, values in columns.items()}), path)
    else:
        write_columns(path, list(columns), [[_text(value) for value in values] for values in columns.values()])
    typer.echo(f"Wrote {path}: {len(next(iter(columns.values())))} {what}", err=True)


def _text(value: Any) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)
