"""The body of ``bayesjpt types``: reads a table, fits what the answer needs, and prints it."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bayesjpt import defaults
from bayesjpt.cli_export import check_output, write_records
from bayesjpt.cli_learners import OPTIONS
from bayesjpt.cli_text import with_options
from bayesjpt.errors import BayesjptError, SamplingError

if TYPE_CHECKING:
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.queries.type_shares import TypeShares
    from bayesjpt.queries.types import Types
    from bayesjpt.report.convergence import Convergence
    from bayesjpt.report.stability import Stability
    from bayesjpt.table.table import Table


@dataclass(frozen=True)
class Shown:
    """In which form the answer is wanted."""

    full: bool = False
    why: tuple[str, ...] = ()
    as_json: bool = False
    as_csv: bool = False
    output: Path | None = None

    def __post_init__(self):
        chosen = [
            name
            for name, wanted in (
                ("--json", self.as_json),
                ("--csv", self.as_csv),
                ("--why", bool(self.why)),
                ("--output", self.output is not None),
            )
            if wanted
        ]
        if len(chosen) > 1:
            raise BayesjptError(f"{' and '.join(chosen)} together", "one of them")
        if self.full and chosen and not self.as_json:
            raise BayesjptError(f"--full with {chosen[0]}", "--full alone, or with --json")
        check_output(self.output)


def check_why(table: Table, why: Sequence[str]) -> None:
    """Raise `SchemaError` for a column that the table does not have, before anything is fitted."""
    left_out = [column.name for column in table.schema.set_aside]
    for name in why:
        if name not in left_out:
            table.schema.index(name)


def n_rows(rows: str | None, quick: bool) -> int | None:
    """Return the rows that ``--rows`` asks for, or the default; None for all."""
    if rows is None:
        return defaults.QUICK_ROWS if quick else defaults.TYPE_ROWS
    if rows == "all":
        return None
    if not rows.isdecimal() or int(rows) < 1:
        raise BayesjptError(f"--rows {rows}", "a whole number from 1, or all")
    return int(rows)


def fitted(
    table: Table, rows: int | None, quick: bool, quiet: bool, learner: dict[str, Any], sampler: dict[str, Any]
) -> Posterior:
    """Return the posterior whose types are wanted: the learner's estimate, unless an option asks for sweeps."""
    from bayesjpt.announced import FIRST_TIME, announced
    from bayesjpt.fitting.for_types import estimate_for_types

    given = [name for name, value in sampler.items() if value is not None and name not in ("seed", "cores")]
    if quick and given:
        raise BayesjptError(f"--quick with --{given[0].removeprefix('n_')}", "no option of the sampler")
    if sampler["cores"] is not None and sampler["cores"] < 1:
        raise SamplingError(f"cores = {sampler['cores']!r}", "a whole number of at least 1")
    if given or (learner["prior"], learner["type_prior"], learner["sampler"]) != ("default", "members", "blocked"):
        return sampled(table, rows, quiet, learner, sampler)
    options = {key: value for key, value in learner.items() if key in OPTIONS}
    options |= {"families": learner["families"], "seed": sampler["seed"]}
    with announced(f"learning a structure{FIRST_TIME}", not quiet):
        return estimate_for_types(table, learner["learner"], n_rows=rows, **options)


def sampled(table: Table, rows: int | None, quiet: bool, learner: dict[str, Any], sampler: dict[str, Any]) -> Posterior:
    """Return the posterior of a few structures, with sweeps, for the shares of likelihoods."""
    from bayesjpt.announced import FIRST_TIME, announced
    from bayesjpt.fitting.for_types import fit_for_types

    options = {key: value for key, value in learner.items() if key != "learner"}
    with announced(f"learning and sampling structures{FIRST_TIME}", not quiet):
        return fit_for_types(table, learner["learner"], n_rows=rows, progress=False, **options, **sampler)


def show(table: Table, post: Posterior, name: str, view: Shown, *, quiet: bool, draws: Callable[[], Posterior]) -> None:
    """Print the types of a table's columns; `draws` is called for the posterior that diagnostics describe."""
    from bayesjpt.announced import announced
    from bayesjpt.queries.type_evidence import compile_parts
    from bayesjpt.queries.type_shares import type_shares
    from bayesjpt.queries.types import types
    from bayesjpt.report.summary import shares_text, types_text, why_text, wrapped

    with announced("compiling what judges columns, once", not quiet):
        compile_parts(post)
    with announced("judging the columns", not quiet):
        result = types(post, table)
    if view.why:
        typer.echo("\n\n".join(why_text(result, column) for column in view.why))
        return
    if view.output is not None:
        from bayesjpt.queries.types import RECORD

        records = result.records()
        write_records(view.output, {name: [line[name] for line in records] for name in RECORD}, "columns")
        return
    if view.as_csv:
        typer.echo(_csv(result), nl=False)
        return
    n_fitted = int(post.settings.get("n_row", table.n_row))
    if view.full:
        with_draws = post if post.n_chain * post.n_draw > 1 else draws()
        shares = type_shares(with_draws)
        judged = with_draws.convergence(shares=shares)
    if view.as_json:
        record = _plain(result, name, n_fitted)
        if view.full:
            record |= _diagnostics(shares, judged)
        typer.echo(json.dumps(record, indent=2, ensure_ascii=False))
        return
    typer.echo(types_text(result, name, n_fitted))
    if view.full:
        for column in result.columns:
            typer.echo(f"\n{why_text(result, column.name)}")
        for column in result.left_out:
            typer.echo(f"\n{why_text(result, column.name)}")
        typer.echo(f"\n{shares_text(shares)}")
        typer.echo(f"\n{wrapped(with_options(judged.sentence()))}")


def _csv(result: Types) -> str:
    from bayesjpt.queries.types import RECORD

    text = io.StringIO()
    names: list[str] = list(RECORD)
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(result.records())
    return text.getvalue()


def _plain(result: Types, name: str, n_fitted: int) -> dict[str, Any]:
    columns = []
    for column in result.columns:
        record = column.record() | {"look_at": list(column.look_at), "probabilities": dict(column.probabilities)}
        columns.append(record | {"base": column.base, "because": column.because, "reason": column.reason})
    left_out = [
        {"column": column.name, "reason": column.reason, "missing": column.n_missing} for column in result.left_out
    ]
    head = {"table": name, "rows": result.n_row, "rows_fitted": n_fitted}
    return head | {"columns": columns, "left_out": left_out}


def _diagnostics(shares: TypeShares, judged: Convergence | Stability) -> dict[str, Any]:
    return {
        "shares": [
            {
                "column": column.name,
                "type": column.type,
                "share": column.share,
                "interval": [column.lo, column.hi],
                "ess": _number(column.ess),
                "rhat": _number(column.rhat),
                "types": column.types,
                "likelihoods": column.likelihoods,
                "reason": column.reason,
            }
            for column in shares.columns
        ],
        "convergence": {
            "converged": judged.converged,
            "sentence": judged.sentence(),
            "quantities": {
                str(quantity): {
                    str(key): _number(float(values.sel(quantity=quantity)))
                    for key, values in judged.table.data_vars.items()
                    if key != "n_entry"
                }
                for quantity in judged.table["quantity"].to_numpy()
            },
        },
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
