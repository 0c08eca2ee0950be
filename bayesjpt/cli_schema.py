"""The body of ``bayesjpt schema``: what a table's columns are, as a document to edit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bayesjpt.errors import SchemaError

if TYPE_CHECKING:
    from bayesjpt.table.schema import Schema


def check_output(output: Path | None) -> bool:
    """Return True, or raise `SchemaError` where the output exists."""
    if output is not None and os.path.exists(output):
        raise SchemaError(
            f"{str(output)!r} exists, and may hold your decisions",
            "the name of a new file",
            "Pass --overwrite, or --schema to start from it.",
        )
    return True


def write_schema(decided: Schema, output: Path | None) -> None:
    """Write the document of a schema, to standard output where no other file is named.

    Raises
    ------
    SchemaError
        Where the output cannot be written.
    """
    from bayesjpt.table.document import text_of

    if output is None:
        typer.echo(text_of(decided), nl=False)
    else:
        decided.write(output)
