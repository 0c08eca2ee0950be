"""How a table is read, as options of every command that reads one."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesjpt import defaults
from bayesjpt.announced import FIRST_TIME
from bayesjpt.errors import BayesjptError
from bayesjpt.table.reading import Reading

if TYPE_CHECKING:
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.table.cells import Cells
    from bayesjpt.table.dataset import Dataset
    from bayesjpt.table.schema import Column, Schema
    from bayesjpt.table.table import Table

_PANEL = "Reading the table"

Encoding = Annotated[
    str | None, typer.Option(help="Of a text file, such as cp1252 or utf-16; found.", rich_help_panel=_PANEL)
]
Sep = Annotated[
    str | None, typer.Option(help="Character between cells of a text file, or tab; found.", rich_help_panel=_PANEL)
]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark, a point or a comma; found.", rich_help_panel=_PANEL)]
Na = Annotated[
    list[str] | None,
    typer.Option(
        help="More values that mean a missing cell, separated by commas: -999,unknown, or age=99 for one column.",
        rich_help_panel=_PANEL,
    ),
]
KeepNa = Annotated[
    list[str] | None,
    typer.Option(
        help="Words that are labels, not missing cells: NA,N/A, or region=NA for one column.", rich_help_panel=_PANEL
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(help="Sheet of a workbook, by name or number; the first with cells.", rich_help_panel=_PANEL),
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first row holds names; found.", rich_help_panel=_PANEL),
]
DayFirst = Annotated[
    bool | None,
    typer.Option("--day-first/--month-first", help="Whether 03/04/2024 is in April; found.", rich_help_panel=_PANEL),
]
LineBytes = Annotated[
    int, typer.Option(help="Bytes of a line at most, a guard against damaged files.", rich_help_panel=_PANEL)
]
Expansion = Annotated[
    float, typer.Option(help="Bytes in a compressed file at most, for each of its own.", rich_help_panel=_PANEL)
]

_OPTIONS: dict[str, tuple[Any, Any]] = {
    "encoding": (Encoding, None),
    "sep": (Sep, None),
    "decimal": (Decimal, None),
    "na": (Na, None),
    "keep_na": (KeepNa, None),
    "sheet": (Sheet, None),
    "header": (Header, None),
    "day_first": (DayFirst, None),
    "line_bytes": (LineBytes, defaults.MAX_LINE_BYTES),
    "expansion": (Expansion, defaults.MAX_EXPANSION),
}
"""Type and default of each."""


def kinds_of(kind: list[str] | None) -> dict[str, str] | None:
    """Return what ``--kind COLUMN=KIND`` says of columns; None where it says nothing."""
    pairs = [entry.rpartition("=") for entry in kind or []]
    for name, sign, base in pairs:
        if not (name and sign and base):
            raise BayesjptError(
                f"--kind {name}{sign}{base}", "COLUMN=real, integer, date, category, ordinal, nominal or excluded"
            )
    kinds: dict[str, str] = {}
    for name, _, base in pairs:
        if kinds.setdefault(name, base) != base:
            raise BayesjptError(f"--kind {name}={kinds[name]} and --kind {name}={base}", "one kind of each column")
    return kinds or None


def decided_of(kind: list[str] | None, schema: Path | None, closed: bool = False) -> dict[str, Any]:
    """Return what is decided about columns, as `TableReader.table` takes it."""
    if closed and schema is not None:
        raise BayesjptError("--closed beside --schema", "one of them", "A document says other = false of a column.")
    return {"kinds": kinds_of(kind), "schema": schema} | ({"other": False} if closed else {})


@dataclass(frozen=True)
class TableReader:
    """Reads tables as the options of a command say.

    Parameters
    ----------
    reading : Reading
    line_bytes : int
    expansion : float
    """

    reading: Reading = field(default_factory=Reading)
    line_bytes: int = defaults.MAX_LINE_BYTES
    expansion: float = defaults.MAX_EXPANSION

    def table(self, path: Path, **decided: Any) -> Table:
        """Return the table in a file; `decided` are kinds or a schema, as `bayesjpt.read_table` takes them.

        Of a folder, or a pattern of names, some rows, chosen by a hash of their numbers; a line says so.
        """
        from bayesjpt.table.batches import is_several
        from bayesjpt.table.table import read_table

        if is_several(path):
            rows = self.dataset(path, **decided)
            if rows.n_row > defaults.LEARN_ROWS:
                typer.echo(f"{defaults.LEARN_ROWS} of {rows.n_row} rows are looked at, chosen at random", err=True)
            return rows.sample(defaults.LEARN_ROWS)
        return read_table(path, limits=self._limits(), **vars(self.reading), **decided)

    def dataset(
        self,
        path: Path,
        *,
        kinds: dict[str, str] | None = None,
        schema: Any = None,
        other: bool = True,
        executor: Any = None,
    ) -> Dataset:
        """Return all rows in the files of a folder or a pattern, arranged by processes of an executor if there is one.

        Raises
        ------
        BayesjptError
            For what is known of one file alone.
        """
        from bayesjpt.table.dataset import dataset

        given = {name: value for name, value in vars(self.reading).items() if value not in (None, ()) and name != "na"}
        for name in given.keys() - {"decimal", "day_first"}:
            raise BayesjptError(
                f"--{name.replace('_', '-')} with several files",
                "files that need none",
                "Read the file that needs it by itself, or write it anew, as text in UTF-8.",
            )
        if schema is not None:
            raise BayesjptError("--schema with several files", "--kind COLUMN=KIND")
        given |= {"na": self.reading.na, "limits": self._limits()}
        return dataset(path, kinds=kinds, other=other, executor=executor, progress=False, **given)

    def rows(self, path: Path, schema: Schema) -> Table:
        """Return new rows under the schema of a fit; columns that it does not know are ignored with a warning."""
        _check_one_file(path)
        return self.table(path, schema=schema, ignore_new=True)

    def columns(self, path: Path, kinds: dict[str, str]) -> tuple[Column, ...]:
        """Return what those columns of a file are that have some kinds."""
        _check_one_file(path)
        known = {cells.name: kinds.get(cells.name, "excluded") for cells in self.cells(path)}
        return self.table(path, kinds=known).schema.columns if set(kinds) & set(known) else ()

    def cells(self, path: Path) -> list[Cells]:
        """Return the cells of a file as they are written."""
        return self.written(path)[0]

    def written(self, path: Path, output: Path | None = None) -> tuple[list[Cells], str]:
        """Return the cells of a file as they are written, and the separator of an output, a .csv file or none."""
        from bayesjpt.table.read import read_cells

        cells, known = read_cells(path, self._limits(), self.reading, as_written=True)
        # columns that spaces align are no longer apart where a cell holds one; tabs may be what the name .tsv promised
        is_lost = known.sep == " " or (known.sep == "\t" and output is not None and ".csv" not in path.suffixes)
        return cells, "," if is_lost or known.sep is None else known.sep

    def stored(self, path: Path) -> Any:
        """Return the columns of a parquet, feather or Arrow file as they are stored; None of a file of another kind."""
        from bayesjpt.table.read import arrow_table

        return arrow_table(path, self._limits())

    def _limits(self) -> Any:
        from bayesjpt.table.read import ReadLimits

        return ReadLimits(line_bytes=self.line_bytes, expansion=self.expansion)


def _check_one_file(path: Path) -> None:
    from bayesjpt.table.batches import is_several

    if is_several(path):
        raise BayesjptError(f"new rows in several files: {path}", "one file")


def reads_table(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of reading in place of its parameter ``reader``, a `TableReader`."""
    # Typer resolves the texts of annotations, but not those of a signature that was made
    signature = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _OPTIONS.items()
    ]

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in _OPTIONS}
        limits = {name: chosen.pop(name) for name in ("line_bytes", "expansion")}
        for name in ("na", "keep_na"):
            chosen[name] = [token for entry in chosen[name] or [] for token in entry.split(",")]
        command(**given, reader=TableReader(Reading(**chosen), **limits))

    kept = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in signature.parameters.items()
        if name != "reader"
    ]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in [*kept, *added]}
    with_options.__signature__ = signature.replace(parameters=[*kept, *added])  # pyright: ignore[reportFunctionMemberAccess, reportAttributeAccessIssue]
    return with_options


def left_of(seconds: float | None, began: float, *, n_column: int | None = None) -> float | None:
    """Return the seconds that reading leaves of a limit of time for structures; one that is no number above 0 as it is.

    Parameters
    ----------
    seconds : float or None
        The limit.
    began : float
        Time of `time.perf_counter` from which it counts.
    n_column : int, optional
        Columns of a fit that is judged, and may be saved, within the limit.

    Examples
    --------
    >>> left_of(1e9, perf_counter() - 10.0) < 1e9, left_of(5.0, perf_counter() - 10.0), left_of(-1.0, 0.0)
    (True, 0.001, -1.0)
    >>> round(left_of(60.0, perf_counter(), n_column=10), 1), round(left_of(3.0, perf_counter(), n_column=10), 1)
    (58.2, 2.0)
    """
    if seconds is None or not seconds > 0.0:
        return seconds
    judging = 0.0 if n_column is None else defaults.JUDGING_SECONDS + defaults.JUDGING_SECONDS_A_COLUMN * n_column
    judging = min(judging, defaults.JUDGING_SHARE * seconds)
    return max(seconds - judging - (perf_counter() - began), 1e-3)


def tell_least(seconds: float | None, began: float, post: Posterior, what: str) -> None:
    """Say how long something takes at least, where a limit of time was too short for more than one structure."""
    took = perf_counter() - began
    is_least = "interrupted" in post.settings and len(post.by_structure()) == 1
    if seconds is not None and took > seconds and is_least:
        typer.echo(
            f"bayesjpt: --time {seconds:g}: {what} takes at least about {math.ceil(took)} s{FIRST_TIME}", err=True
        )
