"""What ``bayesjpt fit --learner experts`` and ``bayesjpt predict`` of such a fit do."""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesjpt import defaults, defaults_experts
from bayesjpt.announced import announced
from bayesjpt.errors import BayesjptError, BayesjptWarning, LearnerError, QueryError, SchemaError, TableError
from bayesjpt.listed_names import split_names
from bayesjpt.table.schema import Schema, closest

if TYPE_CHECKING:
    from bayesjpt.cli_reading import TableReader
    from bayesjpt.experts.posterior import ExpertPosterior
    from bayesjpt.experts.series import ExpertSeriesPosterior
    from bayesjpt.queries.predict import Prediction
    from bayesjpt.report.tree import Picture
    from bayesjpt.table.table import Table

LEARNER = "experts"
_SETTINGS = "depth|branches|draws|tune|chains|cores|experts|method|ridge|passes|grow|time|series"

Method = Annotated[
    str | None, typer.Option(help="Learner experts: gibbs, em, least_squares, laplace or mean_field; gibbs.")
]
Branches = Annotated[
    int | None, typer.Option(min=2, help="Learner experts, --method gibbs or em: ways of each gate; 2.")
]
Ridge = Annotated[
    float | None,
    typer.Option(
        help=f"Learner experts, --method em and others: precision of coefficients; {defaults_experts.RIDGE:g}."
    ),
]
Passes = Annotated[
    int | None,
    typer.Option(help=f"Learner experts, --method em and others: passes at most; {defaults_experts.PASSES}."),
]
Grow = Annotated[
    bool, typer.Option("--grow", help="Learner experts, --method em and others: split where held-out rows gain.")
]

PictureOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help="File to write: svg, dot or txt. Text is printed without it.")
]
ShownRows = Annotated[
    Path | None, typer.Argument(metavar="[TABLE]", help="Of a fit of experts: rows with targets, to show its tree for.")
]
Chain = Annotated[int | None, typer.Option(min=0, help="Of a fit of experts: the chain whose tree is shown; 0.")]
ShownDraws = Annotated[
    int | None,
    typer.Option(min=1, help=f"Draws to look at; {defaults.TREE_DRAWS}, of experts {defaults_experts.SHOWN_DRAWS}."),
]


def check_learner(learner: str, chosen: dict[str, Any]) -> None:
    """Raise `LearnerError` for options of the one kind of learner given with the other."""
    given = [
        f"--{name.replace('_', '-')}" for name, value in chosen.items() if value is not None and value is not False
    ]
    if given:
        one = len(given) == 1
        words = f"go{'es' * one} with --learner experts alone"
        if learner == LEARNER:
            words = f"do{'es' * one} not go with --learner experts"
        no_limit = "Fits of experts have no limit of time: ask for fewer --draws, or for --method em."
        remedy = no_limit if "--time" in given else None
        raise LearnerError(f"{', '.join(given)} {words}", "options of one learner", remedy)


def fit_and_save(
    table: Table,
    output: Path,
    quiet: bool,
    *,
    asked: Mapping[str, str] | None,
    target: str | None,
    seed: int | None,
    **chosen: Any,
) -> None:
    """Fit experts and write the file; `asked` are kinds that were asked for, None where a schema says them all."""
    from bayesjpt.experts.fit import fit_experts

    if target is None:
        raise LearnerError("--learner experts without --target", "the column to explain")
    targets = names(target) or []
    if not targets:
        raise LearnerError(f"--target {target!r}, which names no column", "the column to explain")
    options = {"time" if name == "step" else name: value for name, value in chosen.items() if value is not None}
    with announced("fitting trees of experts", not quiet), warnings.catch_warnings():
        # reading has told of columns that are constant, but for those whose kind was asked for
        told = [] if asked is None else [c.name for c in table.schema if c.n_distinct == 1 and c.name not in asked]
        if told:
            any_of = "|".join(map(re.escape, told))
            only = rf"covariates with a single value are left out: ({any_of})(, ({any_of}))*\Z"
            warnings.filterwarnings("ignore", only, BayesjptWarning)
        try:
            post = fit_experts(table, target=targets, rng=seed, **options)
        except LearnerError as error:
            raise _in_options(error) from error
    post.save(output)
    if not quiet:
        typer.echo(f"Wrote {output}")
        typer.echo(post.explain())  # which begins with what the fit is of


def _in_options(error: LearnerError) -> LearnerError:
    """Return an error that names settings as options of the command: --depth 9 for depth=9."""

    def option(found: re.Match) -> str:
        name = {"time": "step"}.get(found[1], found[1])
        return f"--{name}" if found[2] == "True" else f"--{name} {shlex.quote(found[2].strip(chr(39)))}"

    def said(text: str | None) -> str | None:
        return None if text is None else re.sub(rf"\b({_SETTINGS})=([\w.+-]+|'[^']*')", option, text)

    expected = re.sub(rf"\A({_SETTINGS}) with ", r"--\1 with ", error.expected or "")
    command = error.remedy if error.command is None else error.command
    return LearnerError(said(error.found) or "", said(expected) or None, said(error.remedy), command=said(command))


@contextmanager
def steps_by_option(reader: TableReader, path: Path, step: str | None, series: str | None) -> Iterator[None]:
    """Name the option where a table that cannot be read lacks the column of times or series."""
    try:
        yield
    except SchemaError:
        known = [cells.name for cells in reader.cells(path)]
        for name, option in ((step, "--step"), (series, "--series")):
            if name is not None and name not in known:
                found = f"{option} {name!r}, a column that the table does not have"
                raise LearnerError(found, closest(name, known)) from None
        raise


def kinds(kind: list[str] | None, step: str | None, series: str | None, schema: Any) -> list[str] | None:
    """Return what ``--kind`` says, and that the columns of time and series are no running numbers; a schema says it."""
    if schema is not None or step is None:
        return kind
    known = {entry.rpartition("=")[0] for entry in kind or []}
    time_kinds = [f"{step}=real"] if series is None else [f"{step}=real", f"{series}=category"]
    return [*(kind or []), *(entry for entry in time_kinds if entry.rpartition("=")[0] not in known)]


def rows(reader: TableReader, path: Path, post: ExpertPosterior, *, targets: bool) -> Table:
    """Return new rows as a fit reads them, with targets if asked for; those of series always, with their times."""
    from bayesjpt.experts.series import ExpertSeriesPosterior

    of_series = isinstance(post, ExpertSeriesPosterior)
    schema = post.model.read_schema(targets=targets or of_series)
    table = reader.rows(path, _with_order(reader, path, post, schema) if of_series else schema)
    bare = [name for name in post.model.covariate_columns if not table.observed[table.schema.index(name)].any()]
    if bare:  # a table under a schema has all its columns, those that the file lacks without values
        known = [cells.name for cells in reader.cells(path)]
        absent = [name for name in bare if name not in known]
        if absent:
            raise TableError(f"{path} has no column {absent[0]!r}", "all covariates of the fit")
    return post.read(table) if of_series else table


def _with_order(reader: TableReader, path: Path, post: ExpertSeriesPosterior, schema: Schema) -> Schema:
    """Return a schema with the columns of time and series, too: what they are, the new rows say unless the fit does."""
    order = {post.time: "real"} | ({} if post.series is None else {post.series: "category"})
    own = reader.columns(path, {name: kind for name, kind in order.items() if name not in schema.names})
    return Schema((*schema, *own), schema.set_aside)


def predicted(
    fit: Path, table: Callable[[ExpertPosterior], Table], target: str | None, interval: float, draws: int | None
) -> Prediction:
    """Return what a target is in new rows, which `table` reads as a fit reads them."""
    from bayesjpt.experts.predict import prediction
    from bayesjpt.experts.store import load_experts

    if draws is not None and draws < 1:
        raise QueryError(f"--draws {draws}", "a whole number from 1")
    post = load_experts(fit).some_draws(draws)
    known = list(post.targets)
    if target is None and len(known) > 1:
        raise QueryError("a fit of several targets", f"--target, one of {', '.join(known)}")
    name = known[0] if target is None else target
    if name not in known:
        raise QueryError(f"--target {name!r}", f"one of {', '.join(known)}")
    return prediction(post, table(post), name, interval)


def show_tree(
    fit: Path,
    table: Path | None,
    reader: TableReader,
    columns: str | None,
    chosen: tuple[Path | None, int | None, int | None],
) -> None:
    """Print or write the tree of a chain for rows of a table; `chosen` are output, chain and draws."""
    from bayesjpt.experts.store import load_experts

    output, chain, draws = chosen
    if table is None:
        raise QueryError(
            "a fit of experts without rows", "the table, too: a tree is shown for rows", f"bayesjpt tree {fit} TABLE"
        )
    if columns is not None:
        raise QueryError("--columns with a fit of experts", "no columns: leaves are shown in words")
    post = load_experts(fit)
    view = post.tree(rows(reader, table, post, targets=True), chain or 0, max_draws=draws)
    show_picture(view, output, len(view.data.leaves()))


def show_picture(view: Picture, output: Path | None, n_leaf: int) -> None:
    """Print a tree, or write it."""
    if output is None:
        typer.echo(view)
    else:
        view.save(output)
        typer.echo(f"Wrote {output}: {n_leaf} {'leaf' if n_leaf == 1 else 'leaves'}", err=True)


def check_no_tree(table: Path | None, chain: int | None) -> None:
    """Raise `QueryError` for what only trees of experts are shown with."""
    if table is not None or chain is not None:
        found = f"rows of {table}" if table is not None else f"--chain {chain}"
        raise QueryError(f"{found} with a fit that is not of experts", "the fit alone")


def is_experts(fit: Path) -> bool:
    """Return whether a file is a saved fit of experts; what cannot be read is not."""
    from bayesjpt.experts.store import FORMAT, SERIES_FORMAT
    from bayesjpt.posterior.hdf5 import SafeFile

    try:
        with SafeFile(fit) as file:
            known = [name.rstrip("0123456789") for name in (FORMAT, SERIES_FORMAT)]
            return file.text("bayesjpt", "format").rstrip("0123456789") in known
    except (OSError, BayesjptError, ValueError, KeyError):
        return False


def names(text: str | None) -> list[str] | None:
    """Return names separated by commas."""
    return None if text is None else split_names(text)
