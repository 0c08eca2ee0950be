"""The body of ``bayesjpt schema``: what a table's columns are, as a document to edit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import typer

from bayesjpt.errors import SchemaError


def write_schema(
    table: Path, output: Path | None, *, kinds: Mapping[str, str] | None, schema: Path | None, overwrite: bool
) -> None:
    """Write the schema document of the table in a file, to standard output where no other file is named.

    Raises
    ------
    SchemaError
        Where the output exists, unless `overwrite`, or cannot be written.
    """
    if output is not None and output.exists() and not overwrite:
        raise SchemaError(
            f"{str(output)!r} exists, and may hold your decisions",
            "the name of a new file",
            "Pass --overwrite, or --schema to start from it.",
        )
    import bayesjpt
    from bayesjpt.table.document import text_of

    decided = bayesjpt.read_table(table, kinds=kinds, schema=schema).schema
    if output is None:
        typer.echo(text_of(decided), nl=False)
    else:
        decided.write(output)
