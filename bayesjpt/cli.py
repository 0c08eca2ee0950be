"""The command line: ``bayesjpt types TABLE``, ``bayesjpt fit TABLE -o FIT.nc``, ``bayesjpt query FIT.nc EVENT``.

A mistake of the user's becomes one line on standard error, ``bayesjpt: ...``, and exit status 2. Results go to standard
output, timings and progress bars to standard error, the bars on a terminal alone.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesjpt import cli_compare, cli_experts, cli_learners, cli_query, cli_report, defaults, defaults_experts
from bayesjpt.announced import announced
from bayesjpt.cli_export import Output
from bayesjpt.cli_reading import TableReader, decided_of, left_of, reads_table, tell_least
from bayesjpt.cli_text import names_of, tell_doubts, tell_phase, warning_shower, with_options, without_types
from bayesjpt.errors import BayesjptError, BayesjptWarning, CheckpointError, FitFileError
from bayesjpt.learners import LEARNERS
from bayesjpt.user_paths import as_output, as_path

if TYPE_CHECKING:
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.table.dataset import Dataset
    from bayesjpt.table.table import Table

app = typer.Typer(
    name="bayesjpt",
    help="What is in this table? Types of columns, and the joint distribution, with uncertainty.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

USER_MISTAKE = 2
INTERRUPTED = 130
"""Exit statuses beside 0."""

TablePath = Annotated[
    Path,
    typer.Argument(
        help="Table: csv, tsv (also with .gz), xlsx, ods, jsonl, parquet, feather; or a folder or 'pattern*' of files."
    ),
]
Learner = Annotated[
    str,
    typer.Option(
        help=f"Learner: {'; '.join(f'{name}, {words}' if words else name for name, words in LEARNERS.items())}; "
        "or, of fit, experts: columns (--target) given others."
    ),
]
Structures = Annotated[
    int, typer.Option("--structures", help="Structures that are learned and averaged; 1 for a single posterior.")
]
Weights = Annotated[
    str,
    typer.Option(help="Weights of structures: even; stacking on held-out rows, five times as long; boosting (cutset)."),
]
Draws = Annotated[
    int | None,
    typer.Option(help=f"Kept sweeps of each chain: {defaults.STRUCTURE_DRAWS}, of one structure {defaults.DRAWS}."),
]
Tune = Annotated[
    int | None,
    typer.Option(help=f"Sweeps before those: {defaults.STRUCTURE_TUNE}, of one structure {defaults.TUNE}."),
]
Chains = Annotated[
    int | None,
    typer.Option(help=f"Chains of each structure: {defaults.STRUCTURE_CHAINS}, of one structure {defaults.CHAINS}."),
]
Thin = Annotated[int, typer.Option(help="Keep every so many sweeps after tuning.")]
Workers = Annotated[
    str | None,
    typer.Option(help="Processes that count in place of threads: a number, or a Dask scheduler, tcp://HOST:PORT."),
]
Cores = Annotated[
    int | None, typer.Option(help="Threads; as many as structures, or chains of one, and processors unless given.")
]
Seed = Annotated[int | None, typer.Option(help="Same seed, same draws, for any number of cores.")]
Prior = Annotated[str, typer.Option(help="Priors of the likelihoods: default, or abda (the paper's, in raw units).")]
TypePrior = Annotated[
    str,
    typer.Option(
        help="Concentration among likelihoods: the same for all (members), for all types (types), or by weights of "
        "types that a column's leaves share (columns)."
    ),
]
SamplerName = Annotated[
    str,
    typer.Option(
        "--sampler",
        help="How sweeps draw allocations: blocked, or collapsed, row by row with parameters integrated out (slow).",
    ),
]
Families = Annotated[
    str | None,
    typer.Option(
        help="The only likelihoods: normal,gamma. Each column keeps those that fit, or all of its own if none does."
    ),
]
CheckpointPath = Annotated[
    Path | None, typer.Option("--checkpoint", help="Folder that keeps the state, for --resume; gone when FIT is there.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint, or start where it holds nothing.")]
Time = Annotated[
    float | None,
    typer.Option("--time", help="Seconds for all of it: structures done in time are the fit, or a draft."),
]
Kind = Annotated[
    list[str] | None,
    typer.Option("--kind", help="COLUMN=KIND: real, integer, date, category, ordinal, nominal, excluded."),
]
SchemaPath = Annotated[
    Path | None, typer.Option("--schema", help="Document that says what each column is; see `bayesjpt schema`.")
]
Closed = Annotated[bool, typer.Option("--closed", help="No labels but those of the table: others have no probability.")]
Target = Annotated[str | None, typer.Option(help="Learner experts: columns to explain, separated by commas.")]
Given = Annotated[
    str | None, typer.Option(help="Learner experts: covariates, separated by commas; all others unless given.")
]
Depth = Annotated[int | None, typer.Option(help=f"Learner experts: depth of the tree; {defaults_experts.DEPTH}.")]
Experts = Annotated[
    str | None, typer.Option(help="Learner experts: gaussian, logistic, multinomial, poisson, gamma or auto.")
]
Step = Annotated[
    str | None,
    typer.Option(help="Learner experts: column of times; rows then depend on the row before in their series."),
]
Series = Annotated[str | None, typer.Option(help="Learner experts, with --step: column that says a row's series.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars, no timings, no warnings.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        from bayesjpt import __version__

        typer.echo(f"bayesjpt {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """What is in this table? Types of columns, and the joint distribution, with uncertainty."""


@app.command()
@reads_table
@cli_learners.learns("min_rows", "epsilon", "threshold")
def types(
    table: TablePath,
    full: Annotated[
        bool, typer.Option("--full", help="Add what each answer is made of, shares and convergence.")
    ] = False,
    why: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Tell all about one column; again for more.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"Learn from {defaults.QUICK_ROWS} rows, and never sample.")
    ] = False,
    rows: Annotated[
        str | None,
        typer.Option(help=f"Rows to learn from at most, drawn at random, or all: {defaults.TYPE_ROWS}."),
    ] = None,
    learner: Learner = "mspn",
    structures: Annotated[
        int | None,
        typer.Option("--structures", help=f"Sample this many structures; {defaults.TYPE_STRUCTURES} for --full."),
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Weights of structures: even, stacking, boosting.")] = None,
    draws: Annotated[int | None, typer.Option(help=f"Kept sweeps of each chain: {defaults.TYPE_KEPT}.")] = None,
    tune: Annotated[int | None, typer.Option(help=f"Sweeps before those: {defaults.TYPE_TUNE}.")] = None,
    thin: Annotated[int | None, typer.Option(help="Keep every so many sweeps after tuning.")] = None,
    chains: Annotated[int | None, typer.Option(help="Chains of each structure.")] = None,
    cores: Cores = None,
    seed: Seed = None,
    prior: Prior = "default",
    type_prior: TypePrior = "members",
    sampler: SamplerName = "blocked",
    families: Families = None,
    kind: Kind = None,
    schema: SchemaPath = None,
    time: Annotated[
        float | None,
        typer.Option("--time", help="Seconds for all of it: structures done in time are judged, or a draft."),
    ] = None,
    output: Output = None,
    quiet: Quiet = False,
    *,
    reader: TableReader,
    **of_learner: Any,
) -> None:
    """Tell what each column is, and how sure that is."""
    from bayesjpt import cli_types

    began = perf_counter()
    view = cli_types.Shown(full, tuple(why or ()), as_json, as_csv, output)
    n_rows = cli_types.n_rows(rows, quick)
    chosen: dict[str, Any] = {
        "learner": learner,
        "prior": prior,
        "type_prior": type_prior,
        "families": names_of(families, "--families"),
        "sampler": sampler,
    }
    chosen |= cli_learners.given_options(learner, **of_learner)
    chains_of = {"draws": draws, "tune": tune, "thin": thin, "chains": chains, "cores": cores, "seed": seed}
    with _warnings(quiet):
        read = _read(reader, table, quiet, decided_of(kind, schema))
        left = left_of(time, began, n_column=len(read.schema))
        chains_of |= {"n_structures": structures, "weights": weights, "time": left}
        cli_types.check_why(read, view.why)
        post = cli_types.fitted(read, n_rows, quick, quiet, chosen, chains_of)
        with_draws = functools.partial(cli_types.sampled, read, n_rows, quiet, chosen, chains_of)
        cli_types.show(read, post, table.name, view, quiet=quiet, draws=with_draws)
    if not quiet:
        tell_least(time, began, post, "to judge this table")


@app.command()
@reads_table
@cli_learners.learns(*cli_learners.OPTIONS)
def fit(
    table: TablePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write, netCDF.")],
    learner: Learner = "mspn",
    structures: Structures = defaults.STRUCTURES,
    weights: Weights = "even",
    draws: Draws = None,
    tune: Tune = None,
    thin: Thin = defaults.THIN,
    chains: Chains = None,
    cores: Cores = None,
    workers: Workers = None,
    seed: Seed = None,
    prior: Prior = "default",
    type_prior: TypePrior = "members",
    sampler: SamplerName = "blocked",
    families: Families = None,
    checkpoint: CheckpointPath = None,
    resume: Resume = False,
    time: Time = None,
    target: Target = None,
    given: Given = None,
    depth: Depth = None,
    branches: cli_experts.Branches = None,
    experts: Experts = None,
    method: cli_experts.Method = None,
    ridge: cli_experts.Ridge = None,
    passes: cli_experts.Passes = None,
    grow: cli_experts.Grow = False,
    step: Step = None,
    series: Series = None,
    kind: Kind = None,
    schema: SchemaPath = None,
    closed: Closed = False,
    quiet: Quiet = False,
    *,
    reader: TableReader,
    **of_learner: Any,
) -> None:
    """Fit a table and save the draws; `bayesjpt.load` and ArviZ read the file."""
    began = perf_counter()
    as_output(output, FitFileError)  # before the work
    of_experts = {"target": target, "given": given, "depth": depth, "experts": experts}
    of_experts |= {"method": method, "ridge": ridge, "passes": passes, "grow": grow}
    of_experts |= {"branches": branches, "step": step, "series": series}
    if learner == cli_experts.LEARNER:
        others = {"checkpoint": checkpoint, "resume": resume, "families": families, "time": time, "workers": workers}
        # those with a default are known to be asked for where they differ from it
        ensemble = {"structures": structures, "weights": weights, "thin": thin}
        ensemble |= {"prior": prior, "type_prior": type_prior, "sampler": sampler}
        usual = inspect.signature(fit).parameters
        others |= {name: value for name, value in ensemble.items() if value != usual[name].default}
        others |= {cli_learners.FLAGS[name].removeprefix("--"): value for name, value in of_learner.items()}
        cli_experts.check_learner(learner, others)
        of_experts |= {
            "given": cli_experts.names(given),
            "draws": draws,
            "tune": tune,
            "chains": chains,
            "cores": cores,
        }
        with _warnings(quiet):
            decided = decided_of(cli_experts.kinds(kind, step, series, schema), schema, closed)
            with cli_experts.steps_by_option(reader, table, step, series):
                read = _read(reader, table, quiet, decided)
            asked = None if schema is not None else decided["kinds"] or {}
            cli_experts.fit_and_save(read, output, quiet, asked=asked, seed=seed, **of_experts)
        return
    cli_experts.check_learner(learner, of_experts)
    chosen: dict[str, Any] = {"learner": learner, "prior": prior, "type_prior": type_prior, "sampler": sampler}
    chosen |= cli_learners.given_options(learner, **of_learner)
    chosen["families"] = names_of(families, "--families")
    chains_of = {"draws": draws, "tune": tune, "thin": thin, "chains": chains, "cores": cores, "seed": seed}
    checkpoint = None if checkpoint is None else as_path(checkpoint, CheckpointError)
    if resume and checkpoint is not None and not quiet:
        _tell_progress(checkpoint, structures)
    chains_of |= {"n_structures": structures, "weights": weights, "checkpoint": checkpoint, "resume": resume}
    from bayesjpt.sampler import remote_workers

    with contextlib.nullcontext() if workers is None else remote_workers.workers(workers) as chains_of["executor"]:
        with _warnings(quiet):
            read = _read_all(reader, table, quiet, decided_of(kind, schema, closed), chains_of["executor"])
        tell_doubts(read, quiet)
        chains_of["time"] = left_of(time, began, n_column=len(read.schema))
        post = _fit(read, quiet, **chosen, **chains_of).noted(table=table.name, n_row=read.n_row)
    post.save(output)  # before anything else can fail or be interrupted
    if "interrupted" in post.settings and len(post.by_structure()) == post.n_chain == 1:
        kept = str(post.settings["interrupted"])  # such as: a draft from 1000 of 5000 rows
        stability = f"{kept[0].upper()}{kept[1:]}, of which it is not known how stable its answers are."
    else:
        with announced("judging how stable the answers are", not quiet):
            stability = post.convergence().sentence()
    post.noted(stability=stability).save(output)
    if checkpoint is not None and "interrupted" not in post.settings:
        _remove(checkpoint)
    if not quiet:
        typer.echo(f"Wrote {output}: {post!r}")
        typer.echo(with_options(without_types(stability)))
        tell_least(time, began, post, "a fit of this table")


def _tell_progress(checkpoint: Path, n_structures: int) -> None:
    from bayesjpt.sampler.saves import read_progress
    from bayesjpt.sampler.structures_folder import structures_done

    if n_structures > 1:
        done = structures_done(checkpoint)
        text = f"going on from {len(done)} of {n_structures} structures in" if done else "no structure is done in"
        typer.echo(f"{text} {checkpoint}", err=True)
        return
    found = read_progress(checkpoint)
    if found is None:
        typer.echo(f"nothing in {checkpoint} to go on from: starting", err=True)
    else:
        done, n_sweep = found
        typer.echo(f"going on from sweep {sum(done)} of {n_sweep * len(done)} in {checkpoint}", err=True)


def _remove(checkpoint: Path) -> None:
    """Delete the checkpoint of a fit that is saved."""
    from bayesjpt.sampler.checkpoint import Checkpoint

    with Checkpoint(checkpoint) as folder:
        folder.remove()


@app.command("schema")
@reads_table
def show_schema(
    table: TablePath,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write, TOML.")] = None,
    kind: Kind = None,
    schema: SchemaPath = None,
    closed: Closed = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Write over the file where it exists.")] = False,
    quiet: Quiet = False,
    *,
    reader: TableReader,
) -> None:
    """Write what each column is, and why, as a document to edit; hand it back with --schema."""
    from bayesjpt.cli_schema import check_output, write_schema

    with _warnings(quiet):
        if overwrite or check_output(output):
            write_schema(reader.table(table, **decided_of(kind, schema, closed)).schema, output)


for command, example in {**cli_query.COMMANDS, **cli_report.COMMANDS, **cli_compare.COMMANDS}.items():
    app.command(epilog=f"Example: {example}")(command)


@contextlib.contextmanager
def _warnings(quiet: bool) -> Iterator[None]:
    """Show our warnings, unless quiet."""
    with warnings.catch_warnings():
        if quiet:
            warnings.simplefilter("ignore", BayesjptWarning)
        yield


def _read(reader: TableReader, path: Path, quiet: bool, decided: dict[str, Any]) -> Table:
    """Return the table in a file."""
    with announced(f"reading {path.name}", not quiet):
        return reader.table(path, **decided)


def _read_all(reader: TableReader, path: Path, quiet: bool, decided: dict[str, Any], executor: Any) -> Table | Dataset:
    """Return the table in a file, or all rows of several, which need not fit into memory."""
    from bayesjpt.table.batches import is_several

    if not is_several(path):
        return _read(reader, path, quiet, decided)
    with announced(f"reading {path}", not quiet):
        return reader.dataset(path, executor=executor, **decided)


def _fit(table: Table | Dataset, quiet: bool, **chosen: Any) -> Posterior:
    """Return the posterior of a table."""
    import bayesjpt

    gc.enable()  # a fit runs long enough for garbage to matter; see `bayesjpt.__main__`
    with _warnings(quiet):
        return bayesjpt.fit(
            table,
            progress=not quiet,
            on_phase=None if quiet else tell_phase,
            **chosen,
        )


def run(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, 2 for a mistake of the user's, 130 for an interrupt."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", BayesjptWarning)
        warnings.showwarning = warning_shower()
        try:
            status = app(args=arguments, prog_name="bayesjpt", standalone_mode=False)
        except BayesjptError as error:
            # the mark under a place in an event stands on lines of its own
            typer.echo(f"bayesjpt: {error.at_the_command_line()}", err=True)
            return USER_MISTAKE
        except OSError as error:
            if type(error) is not OSError or error.errno is None or error.filename is not None:  # a network, a file
                raise
            return _refuse(f"the output cannot be written: {error.strerror or error}")
        except typer.Abort:
            status = INTERRUPTED
        except typer.TyperException as error:
            # asked for nothing, Typer raises an exception whose message is the help text
            given = sys.argv[1:] if arguments is None else arguments
            if not given:
                typer.echo(error.format_message())
                return USER_MISTAKE
            path = getattr(getattr(error, "ctx", None), "command_path", "")
            if not path:  # the parser of options does not say for which command
                commands = [one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands]
                path = " ".join(["bayesjpt", *(name for name in given[:1] if name in commands)])
            return _refuse(f"{_sentence(error.format_message())} Try '{path} --help'")
    if status == INTERRUPTED:
        typer.echo("bayesjpt: interrupted", err=True)
    return status if isinstance(status, int) else 0


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def _refuse(text: str) -> int:
    typer.echo(f"bayesjpt: {' '.join(text.split())}", err=True)
    return USER_MISTAKE
