"""The command ``bayesjpt report``: a table, or a saved fit, as one page of HTML."""

from __future__ import annotations

import shlex
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from bayesjpt import defaults
from bayesjpt.announced import FIRST_TIME, announced
from bayesjpt.cli_learners import learns
from bayesjpt.cli_reading import TableReader, kinds_of, left_of, reads_table
from bayesjpt.errors import BayesjptError, BayesjptWarning

if TYPE_CHECKING:
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.table.table import Table

FIT = ".nc"
"""How the name of a saved fit ends."""

Source = Annotated[Path, typer.Argument(metavar="TABLE_OR_FIT", help="A table, or what `bayesjpt fit` wrote (.nc).")]
Output = Annotated[Path, typer.Option("--output", "-o", help="Page to write, HTML.")]
Rows = Annotated[
    Path | None, typer.Option("--table", help="With a fit: the table that was fitted, for all of its rows.")
]
Time = Annotated[
    float | None,
    typer.Option("--time", help="Of a table: seconds to read and fit it; what is done by then is reported."),
]
Learner = Annotated[str, typer.Option(help="Of a table: mspn, jpt, wmispn, cutset, tree_mixture or hclt.")]
Structures = Annotated[int, typer.Option("--structures", help="Of a table: structures that are learned and averaged.")]
Cores = Annotated[int | None, typer.Option(help="Of a table: threads.")]
Seed = Annotated[int | None, typer.Option(help="Of a table: same seed, same page.")]
Kind = Annotated[
    list[str] | None,
    typer.Option("--kind", help="COLUMN=real|integer|date|category|ordinal|nominal|excluded; repeatable."),
]
SchemaPath = Annotated[Path | None, typer.Option("--schema", help="Document that says what each column is.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no warnings.")]


@reads_table
@learns()
def report(
    source: Source,
    output: Output,
    table: Rows = None,
    time: Time = None,
    learner: Learner = "mspn",
    structures: Structures = defaults.STRUCTURES,
    cores: Cores = None,
    seed: Seed = None,
    kind: Kind = None,
    schema: SchemaPath = None,
    quiet: Quiet = False,
    *,
    reader: TableReader,
) -> None:
    """Write one page that says what is in a table, and how far that can be trusted; no network is needed to read it."""
    from bayesjpt.fitting.report import check_page, report

    check_page(output)
    began = perf_counter()
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", BayesjptWarning)
        if source.suffix.lower() == FIT:
            options = {"--time": time, "--seed": seed, "--kind": kind or None, "--schema": schema, "--cores": cores}
            options |= {"--learner": None if learner == "mspn" else learner}
            options |= {"--structures": None if structures == defaults.STRUCTURES else structures}
            given = [name for name, value in options.items() if value is not None]
            if given:
                raise BayesjptError(f"{given[0]} with a fit", "a table, which is fitted first")
            post, rows, name = _opened(source, table, reader, quiet)
        else:
            if table is not None:
                raise BayesjptError("--table with a table", "a fit, whose table it is")
            rows = _read(source, reader, quiet, kinds_of(kind), schema)
            chosen = {"learner": learner, "n_structures": structures, "cores": cores, "seed": seed}
            post = _fitted(rows, quiet, time=left_of(time, began), **chosen)
            post, name = post.noted(table=source.name, n_row=rows.n_row), source.name
        with announced(f"writing the report{FIRST_TIME}", not quiet):
            report(post, output, table=rows, name=name, command=_command(post, source))
    if not quiet:
        typer.echo(f"Wrote {output}: {output.stat().st_size / 1000:.0f} kB", err=True)


def _opened(source: Path, table: Path | None, reader: TableReader, quiet: bool) -> tuple[Posterior, Table | None, str]:
    """Return a saved fit, the rows that were fitted, where they are given, and what the table is called."""
    from bayesjpt.posterior.store import load

    post = load(source)
    name = str(post.settings.get("table", source.name))
    if table is None:
        return post, None, name
    with announced(f"reading {table.name}", not quiet):
        return post, reader.rows(table, post.schema), table.name


def _read(path: Path, reader: TableReader, quiet: bool, kinds: dict[str, str] | None, schema: Path | None) -> Table:
    with announced(f"reading {path.name}", not quiet):
        return reader.table(path, kinds=kinds, schema=schema)


def _fitted(rows: Table, quiet: bool, **chosen) -> Posterior:
    import bayesjpt

    return bayesjpt.fit(rows, progress=not quiet, **chosen)


def _command(post: Posterior, source: Path) -> str:
    """Return the command as it was given; with the seed, where a table was fitted with a fresh one."""
    words = ["bayesjpt", *sys.argv[1:]] if sys.argv[1:2] == ["report"] else ["bayesjpt", "report", str(source)]
    fitted = source.suffix.lower() != FIT
    if fitted and not any(word.split("=")[0] == "--seed" for word in words) and "seed" in post.settings:
        words += ["--seed", str(post.settings["seed"])]
    return shlex.join(words)


COMMANDS = {report: "bayesjpt report wine.csv -o report.html --seed 1 --time 60"}
"""Each command with an example of its use."""
