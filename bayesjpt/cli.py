"""The command line: ``bayesjpt types TABLE``, ``bayesjpt fit TABLE -o FIT.nc``.

Errors of ours become one line on standard error and exit status 2; results go to standard output, progress and
timings to standard error.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from bayesjpt import defaults
from bayesjpt.errors import BayesjptError, BayesjptWarning

app = typer.Typer(
    name="bayesjpt",
    help="What is in this table? Types of columns, and the joint distribution, with uncertainty.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

TablePath = Annotated[Path, typer.Argument(help="Table: csv, csv.gz, tsv; parquet or feather with the extra 'arrow'.")]
MinRows = Annotated[
    float,
    typer.Option("--min-rows", help="Learner: rows below which nothing is split; a share below 1, a count from 1."),
]
Threshold = Annotated[float, typer.Option(help="Learner: dependence (0 to 1) below which columns part.")]
Draws = Annotated[int, typer.Option(help="Kept sweeps of each chain.")]
Tune = Annotated[int, typer.Option(help="Sweeps of each chain before those.")]
Chains = Annotated[int, typer.Option(help="Chains.")]
Cores = Annotated[int | None, typer.Option(help="Processes; as many as there are chains and processors unless given.")]
Seed = Annotated[int | None, typer.Option(help="Same seed, same draws, for any number of cores.")]
Prior = Annotated[str, typer.Option(help="Priors of the likelihoods: default, or abda (the paper's, in raw units).")]
Kind = Annotated[list[str] | None, typer.Option("--kind", help="COLUMN=real|integer|category; may be repeated.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars, no timings, no warnings.")]


@app.command()
def types(
    table: TablePath,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    min_rows: MinRows = defaults.MIN_ROWS,
    threshold: Threshold = defaults.THRESHOLD,
    draws: Draws = defaults.DRAWS,
    tune: Tune = defaults.TUNE,
    chains: Chains = defaults.CHAINS,
    cores: Cores = None,
    seed: Seed = None,
    prior: Prior = "default",
    kind: Kind = None,
    quiet: Quiet = False,
) -> None:
    """Tell what each column is, with uncertainty."""
    post = _fit(table, kind, quiet, min_rows=min_rows, threshold=threshold, draws=draws, tune=tune, chains=chains,
                cores=cores, seed=seed, prior=prior)  # fmt: skip
    result = post.types()
    judged = post.convergence(column_types=result)
    if as_json:
        typer.echo(json.dumps(_types_json(result, judged), indent=2))
        return
    from rich.console import Console

    from bayesjpt.report.summary import types_table

    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    console.print(types_table(result, title=f"{table.name}: {len(result.columns)} columns"))
    console.print(judged.sentence())


@app.command()
def fit(
    table: TablePath,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write, netCDF.")],
    min_rows: MinRows = defaults.MIN_ROWS,
    threshold: Threshold = defaults.THRESHOLD,
    draws: Draws = defaults.DRAWS,
    tune: Tune = defaults.TUNE,
    chains: Chains = defaults.CHAINS,
    cores: Cores = None,
    seed: Seed = None,
    prior: Prior = "default",
    kind: Kind = None,
    quiet: Quiet = False,
) -> None:
    """Fit a table and save the draws; `bayesjpt.load` and ArviZ read the file."""
    if not output.parent.is_dir():
        raise BayesjptError(f"no folder {str(output.parent)!r} to write {output.name} into")
    post = _fit(table, kind, quiet, min_rows=min_rows, threshold=threshold, draws=draws, tune=tune, chains=chains,
                cores=cores, seed=seed, prior=prior)  # fmt: skip
    post.save(output)
    if not quiet:
        typer.echo(post.convergence().sentence())
        typer.echo(f"Wrote {output}: {post!r}")


def _fit(path: Path, kind: list[str] | None, quiet: bool, *, min_rows: float, **options):
    import bayesjpt

    table = bayesjpt.read_table(path, kinds=_kinds(kind))
    rows = int(min_rows) if min_rows >= 1 else min_rows
    return bayesjpt.fit(table, min_rows=rows, progress=not quiet, on_phase=None if quiet else _phase, **options)


def _kinds(kind: list[str] | None) -> dict[str, str] | None:
    pairs = [entry.rpartition("=") for entry in kind or []]
    for name, sign, base in pairs:
        if not (name and sign and base):
            raise BayesjptError(f"--kind {name}{sign}{base}", "COLUMN=real, COLUMN=integer or COLUMN=category")
    return {name: base for name, _, base in pairs} or None


def _phase(phase: str, seconds: float) -> None:
    words = {"learn": "structure learned", "compile": "model compiled", "sample": "chains sampled"}
    typer.echo(f"{words[phase]} in {seconds:.1f} s", err=True)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _types_json(result, judged) -> dict:
    return {
        "columns": [
            {
                "column": column.name,
                "base": column.base,
                "type": column.type,
                "share": column.share,
                "interval": [column.lo, column.hi],
                "ess": _number(column.ess),
                "rhat": _number(column.rhat),
                "types": column.types,
                "likelihoods": column.likelihoods,
                "missing": column.n_missing,
                "reason": column.reason,
            }
            for column in result.columns
        ],
        "set_aside": [{"column": aside.name, "reason": aside.reason} for aside in result.set_aside],
        "convergence": {
            "converged": judged.converged,
            "sentence": judged.sentence(),
            "quantities": {
                str(name): {
                    key: _number(float(judged.table[key].sel(quantity=name))) for key in ("rhat", "rhat_q95", "ess")
                }
                for name in judged.table["quantity"].to_numpy()
            },
        },
    }


def run(arguments: list[str] | None = None, echo: Callable[..., None] = typer.echo) -> int:
    """Run the command line and return its exit status: 0, or 2 for a mistake of the user's."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, category, *rest, **more: _show(message, category, echo)
        try:
            app(args=arguments, standalone_mode=False)
        except BayesjptError as error:
            echo(f"bayesjpt: {error}", err=True)
            return 2
        except typer.Exit as stop:
            return stop.exit_code
        except typer.Abort:
            echo("bayesjpt: interrupted", err=True)
            return 130
        except typer.TyperException as error:
            error.show()
            return error.exit_code
    return 0


def _show(message, category, echo: Callable[..., None]) -> None:
    """Print our own warnings as one line; those of libraries are for developers."""
    if issubclass(category, BayesjptWarning):
        echo(f"bayesjpt: {message}", err=True)


def main() -> None:
    """Entry point of the installed command."""
    sys.exit(run())
