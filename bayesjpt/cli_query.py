"""The commands that question a saved fit: ``query``, ``dependence``, ``sample``, ``impute``, ``predict``, ``tree``, ...

None of them loads PyMC or ArviZ, xarray or pandas; each loads what it needs when it is called.
"""

from __future__ import annotations

import json
import math
import shlex
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesjpt import cli_experts, defaults
from bayesjpt.announced import FIRST_TIME, announced
from bayesjpt.cli_export import Output, check_output, write_records
from bayesjpt.cli_reading import TableReader, reads_table
from bayesjpt.cli_text import explained_text, names_of, of_saved_fit, outliers_text, pairs_text
from bayesjpt.errors import BayesjptError, FitFileError, QueryError, counted

if TYPE_CHECKING:
    import numpy as np

    from bayesjpt.posterior.answer import PlainAnswers
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.queries.explain import Explanation
    from bayesjpt.table.table import Table

FitPath = Annotated[Path, typer.Argument(metavar="FIT", help="Saved fit, netCDF: what `bayesjpt fit` wrote.")]
TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help="Table with the columns of the fit.")]
Event = Annotated[str, typer.Argument(help="Event: \"alcohol > 12 and color in ('red', 'white')\".")]
Given = Annotated[str | None, typer.Option(help="Evidence, also an event.")]
Interval = Annotated[float, typer.Option(help="Probability of the interval.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
MaxDraws = Annotated[int, typer.Option("--draws", min=1, help="Draws to look at, of all chains; fewer are faster.")]
Seed = Annotated[int | None, typer.Option(help="Same seed, same rows.")]

_N_SHOWN = 20


def query(
    fit: FitPath,
    event: Event,
    given: Given = None,
    interval: Interval = defaults.INTERVAL,
    as_json: Json = False,
    per_draw: Annotated[bool, typer.Option("--per-draw", help="Print the answer of every draw too.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Tell which sub-populations carry the answer.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the answer of every draw: csv, tsv, parquet, feather."),
    ] = None,
) -> None:
    """Tell the probability of an event, given evidence or not, with a credible interval."""
    _check_interval(interval)
    check_output(output)
    import numpy as np

    from bayesjpt.queries.grammar import with_or_in_words
    from bayesjpt.queries.probability import probability

    post = _load(fit)
    with _asking():
        answer = probability(post, event, given).values
        why = _explained(post, event, given) if explain else None
    lo, hi = np.quantile(answer, [0.5 * (1.0 - interval), 0.5 * (1.0 + interval)]).tolist()
    mean = float(answer.mean())
    _tell_zero(post, event, mean)
    _tell_rare(post, given)
    move = _move(post, answer[..., None])
    if output is not None:
        chain, draw = (axis.ravel().tolist() for axis in np.indices(answer.shape))
        write_records(output, {"chain": chain, "draw": draw, "probability": answer.ravel().tolist()}, "draws")
    if as_json:
        found: dict[str, Any] = {"event": event, "given": given, "probability": mean, "interval": [lo, hi]}
        found |= {"interval_probability": interval, "n_chain": answer.shape[0], "n_draw": answer.shape[1]}
        if per_draw:
            found["per_draw"] = answer.tolist()
        if why is not None:
            parts = [asdict(part) | {"facts": list(part.facts)} for part in why.parts]
            found["explanation"] = {"chain": why.chain, "draw": why.draw, "parts": parts}
        if move is not None:
            found["another_seed_moves"] = move
        typer.echo(json.dumps(found, indent=2))
        return
    of = with_or_in_words(event)
    if given is None and of != event and "||" not in event:
        typer.echo("bayesjpt: | stands for 'or' in an event; evidence is given by --given", err=True)
    of = of if given is None else f"{of} | {with_or_in_words(given)}"
    typer.echo(f"P({of}) = {mean:.4g}, {interval:.4g} interval {lo:.4g} to {hi:.4g} ({answer.size} draws)")
    if per_draw:
        typer.echo("chain,draw,probability")
        for chain, draw in np.ndindex(answer.shape):
            typer.echo(f"{chain},{draw},{float(answer[chain, draw])!r}")
    if why is not None:
        typer.echo(explained_text(why))
    _tell_stability(post, move, "this answer")


def dependence(
    fit: FitPath,
    columns: Annotated[str | None, typer.Option(help="Columns: a,b or '\"a, b\",c'; all unless given.")] = None,
    given: Given = None,
    normalised: Annotated[
        bool, typer.Option("--normalised", help="From 0 to 1, as a correlation, in place of nats.")
    ] = False,
    interval: Interval = defaults.INTERVAL,
    draws: MaxDraws = defaults.COMMAND_DRAWS,
    top: Annotated[int, typer.Option(min=1, help="Pairs to show, the most dependent first; a file has all.")] = 20,
    as_json: Json = False,
    output: Output = None,
) -> None:
    """Show which columns tell most about each other: mutual information, with credible intervals."""
    _check_interval(interval)
    check_output(output, json=as_json)
    from bayesjpt.queries.pair_support import ranked_pairs

    post = _load(fit)
    with _asking():
        found = ranked_pairs(post, names_of(columns, "--columns"), normalised, given, interval, draws, top)
    names, pairs, mean, lo, hi, shown = found.names, found.pairs, found.mean, found.lower, found.upper, found.shown
    if output is not None:
        numbers = {"mean": mean, "lower": lo, "upper": hi}
        written: dict[str, list[Any]] = {"first": [names[i] for i, _ in pairs], "second": [names[j] for _, j in pairs]}
        written |= {name: [float(array[pair]) for pair in pairs] for name, array in numbers.items()}
        written["shown_by_rows"] = shown
        write_records(output, written, "pairs of columns")
        return
    if as_json:
        lines = [
            {
                "columns": [names[i], names[j]],
                "mean": float(mean[i, j]),
                "interval": [float(lo[i, j]), float(hi[i, j])],
                "shown_by_rows": is_shown,
            }
            for (i, j), is_shown in zip(pairs, shown, strict=True)
        ]
        answer: dict[str, Any] = {"quantity": found.quantity, "given": given, "interval_probability": interval}
        typer.echo(json.dumps(answer | {"n_draw": found.n_draw, "pairs": lines}, indent=2))
        return
    unit = "correlation, 0 to 1" if normalised else "mutual information in nats"
    typer.echo(f"{unit}, {interval:.4g} interval ({found.n_draw} draws)")
    for line in pairs_text(names, pairs[:top], mean, lo, hi, shown):
        typer.echo(line)
    if False in shown:
        typer.echo("? no more than chance: noise pushes it up, the rows themselves do not show it")
    _tell_stability(post)


def sample(
    fit: FitPath,
    output: Output = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Rows.")] = 100,
    given: Given = None,
    seed: Seed = None,
    recorded: Annotated[
        bool, typer.Option("--recorded/--exact", help="Round numbers and dates as the table's were recorded.")
    ] = True,
    labels: Annotated[
        str,
        typer.Option(help="seen: labels of the table, numbers a column can be. all: also other, numbers beyond."),
    ] = "seen",
) -> None:
    """Print or write rows drawn from a fit, given an event or not."""
    from bayesjpt.queries.sample import sample
    from bayesjpt.table.write import delimited, spelled, with_all_digits, write_table

    check_output(output)
    post = _load(fit)
    with _asking():
        rows = sample(post, n, given, rng=_rng(seed), recorded=recorded, labels=labels)
    rows = rows if recorded else with_all_digits(rows)
    if output is None:
        typer.echo(delimited(*spelled(rows)), nl=False)
    else:
        write_table(rows, output)
        typer.echo(f"Wrote {output}: {rows.n_row} rows", err=True)
    _tell_stability(post)


@reads_table
def impute(
    fit: FitPath,
    table: TablePath,
    output: Output = None,
    seed: Seed = None,
    mean: Annotated[
        bool, typer.Option("--mean", help="Fill in expectations and the most probable labels in place of draws.")
    ] = False,
    draws: Annotated[
        int, typer.Option("--draws", min=1, help="With --mean: draws to average over, of all chains.")
    ] = defaults.COMMAND_DRAWS,
    *,
    reader: TableReader,
) -> None:
    """Print or write a table with its missing cells filled in, drawn jointly given the rest of their row."""
    from bayesjpt.queries.impute import impute, impute_mean
    from bayesjpt.queries.some_draws import some_draws

    check_output(output)
    post = _load(fit)
    rows = reader.rows(table, post.schema)
    with _asking():
        filled = impute_mean(some_draws(post, draws)[1], rows).table if mean else impute(post, rows, rng=_rng(seed))[0]
    _write_filled(reader, table, filled, rows.observed, output)
    if output is not None:
        typer.echo(f"Wrote {output}: {counted(rows.n_missing, 'cell')} filled in", err=True)
    _tell_stability(post)


def _write_filled(reader: TableReader, path: Path, filled: Table, observed: np.ndarray, output: Path | None) -> None:
    """Print or write the table of a file completed, its other cells and their types as they were."""
    from bayesjpt.table.stored import write_filled_stored
    from bayesjpt.table.write import delimited, is_typed, spelled_filled, write_filled

    stored = reader.stored(path) if output is not None and is_typed(output) else None
    if output is not None and stored is not None:
        write_filled_stored(stored, filled, observed, output)
        return
    cells, separator = reader.written(path, output)
    if output is None:
        typer.echo(delimited(*spelled_filled(cells, filled, observed), separator), nl=False)
    else:
        write_filled(cells, filled, observed, output, separator=separator)


@reads_table
def outliers(
    fit: FitPath,
    table: TablePath,
    top: Annotated[
        int | None, typer.Option(min=1, help=f"Rows to show, the most unusual first: {_N_SHOWN}, in a file all.")
    ] = None,
    training: Annotated[
        bool, typer.Option("--training", help="The rows were fitted: score each by the fit without it (all draws).")
    ] = False,
    draws: MaxDraws = defaults.OUTLIER_DRAWS,
    score: Annotated[
        str, typer.Option(help="tail: how far out cells are. log_mass: how improbable rows are.")
    ] = "tail",
    as_json: Json = False,
    output: Output = None,
    *,
    reader: TableReader,
) -> None:
    """Show the oddest rows of a table, each with the column that makes it so."""
    check_output(output, json=as_json)
    from bayesjpt.queries.outliers import outliers

    post = _load(fit)
    rows = reader.rows(table, post.schema)
    with _asking():
        found = outliers(post, rows, score=score, training=training, max_draws=draws)
    lines = []
    for row in _oddest(found)[: top if top is not None or output is not None else _N_SHOWN]:
        name = str(found["responsible"][row])
        column = post.schema.index(name) if name else -1
        lines.append(
            {
                "row": int(row) + 1,
                "score": _number(found["score"][row]),
                "log_mass": _number(found["log_mass"][row]),
                "quantile": _number(found["quantile"][row]),
                "column": name or None,
                "value": _as_written(rows, column, row) if name else None,
                "cell_score": _number(found["cell_score"][row, column]) if name else None,
                **({"pareto_k": _number(found["pareto_k"][row])} if training else {}),
            }
        )
    if output is not None:
        write_records(output, {name: [line[name] for line in lines] for name in lines[0]}, "rows")
        return
    if as_json:
        typer.echo(json.dumps({"rows": lines}, indent=2))
        return
    for line in outliers_text(lines, post.schema.names):
        typer.echo(line)
    _tell_stability(post)


@reads_table
def predict(
    fit: FitPath,
    table: TablePath,
    target: Annotated[
        str | None,
        typer.Option(
            help="Column to predict; its own cells are not looked at. May be left out for the target of experts."
        ),
    ] = None,
    output: Output = None,
    interval: Interval = defaults.INTERVAL,
    draws: Annotated[
        int | None,
        typer.Option(min=1, help=f"Draws to look at, of all chains: {defaults.COMMAND_DRAWS}, of experts all."),
    ] = None,
    *,
    reader: TableReader,
) -> None:
    """Predict a column of new rows: the probability of each label, or mean and interval of a number."""
    from bayesjpt.cli_predict import as_csv, write

    _check_interval(interval)
    from bayesjpt.queries.predict import prediction
    from bayesjpt.queries.resolve import position_of

    check_output(output)
    post = None
    if cli_experts.is_experts(fit):
        with _asking():
            found = cli_experts.predicted(
                fit, lambda post: cli_experts.rows(reader, table, post, targets=False), target, interval, draws
            )
    else:
        post = _load(fit)
        if target is None:
            raise QueryError("no --target", "the column to predict")
        position_of(target, post.schema)
        rows = reader.rows(table, post.schema)
        with _asking():
            max_draws = defaults.COMMAND_DRAWS if draws is None else draws
            found = prediction(post, target, rows, interval=interval, max_draws=max_draws)
    if output is None:
        typer.echo(as_csv(found), nl=False)
    else:
        write(found, output)
        typer.echo(f"Wrote {output}: {found.column.name} of {len(found.values)} rows", err=True)
    if post is not None:
        _tell_stability(post)


@reads_table
def tree(
    fit: FitPath,
    table: cli_experts.ShownRows = None,
    output: cli_experts.PictureOutput = None,
    columns: Annotated[str | None, typer.Option(help="Columns to show in the leaves, separated by commas.")] = None,
    leaves: Annotated[
        int, typer.Option(min=1, help="Leaves to show; where there are more, small sub-trees are shown as one.")
    ] = defaults.TREE_LEAVES,
    chain: cli_experts.Chain = None,
    draws: cli_experts.ShownDraws = None,
    *,
    reader: TableReader,
) -> None:
    """Show the tree of a fit with --learner jpt or cutset, or of experts for rows of a table: splits and leaves."""
    from bayesjpt.report.tree import check_picture, tree

    if output is not None:
        check_picture(output)
    if cli_experts.is_experts(fit):
        return cli_experts.show_tree(fit, table, reader, columns, (output, chain, draws))
    cli_experts.check_no_tree(table, chain)
    post = _load(fit)
    with _asking():
        max_draws = defaults.TREE_DRAWS if draws is None else draws
        view = tree(post, names_of(columns, "--columns"), max_leaves=leaves, max_draws=max_draws)
    cli_experts.show_picture(view, output, view.data.nodes[0].n_leaves)
    return _tell_stability(post)


COMMANDS = {
    query: 'bayesjpt query wine.nc "alcohol > 12 and quality >= 7" --given "color = \'red\'" --explain',
    dependence: "bayesjpt dependence wine.nc --columns alcohol,density,quality --given \"color = 'red'\"",
    sample: 'bayesjpt sample wine.nc -n 1000 -o rows.csv --given "quality >= 8" --seed 1 --recorded',
    impute: "bayesjpt impute wine.nc holes.csv -o filled.csv --seed 1",
    predict: "bayesjpt predict wine.nc new.csv --target quality -o predicted.csv",
    outliers: "bayesjpt outliers wine.nc wine.csv --top 10",
    tree: "bayesjpt tree wine.nc -o tree.svg --columns alcohol,quality,color",
}
"""Each command with an example of its use."""


def _check_interval(interval: float) -> None:
    if not 0.0 < interval < 1.0:
        raise BayesjptError(f"--interval {interval:g}", "a probability between 0 and 1")


def _move(post: Posterior, answers: np.ndarray) -> float | None:
    """Return by how much another seed moves answers, in widths of their intervals; None of a single structure.

    Answers are those of all draws, float64 (n_chain, n_draw, n_answer).
    """
    import numpy as np

    from bayesjpt.posterior.stacked import StackedPosterior
    from bayesjpt.queries.stability import learners_of, moves_of, usual_move

    if not isinstance(post, StackedPosterior) or len(post.by_structure()) == 1:  # stacking may have kept one
        return None
    moves = moves_of(post.split(answers), post.weights, learners_of(post))
    # rounding errors of an answer of 1 are no interval
    varies = moves.width > _LEAST_WIDTH * (1.0 + np.abs(moves.mean))
    scale = moves.take(varies).scale
    return usual_move(scale, moves.n_effective, defaults.STABLE_SHARE) if scale.size else 0.0


def _tell_stability(post: Posterior, move: float | None = None, what: str = "") -> None:
    """Print, beside the output, how far another seed moves this answer, or what was found of all answers at the fit."""
    if move == 0.0:
        return  # nothing to be said of an answer without an interval, such as an event that is impossible
    if move is not None:
        typer.echo(f"{len(post.by_structure())} structures; another seed moves {what} by less than "
                   f"{math.ceil(100.0 * move):d} % of its interval (95 %).", err=True)  # fmt: skip
    elif "stability" in post.settings:
        typer.echo(of_saved_fit(str(post.settings["stability"])), err=True)


def _explained(post: Posterior, event: str, given: str | None) -> Explanation:
    from bayesjpt.queries.explain import explain

    return explain(post, event, given)


def _as_written(rows: Table, column: int, row: int) -> str:
    """Return the text of a cell, a label that training did not show included."""
    from bayesjpt.table.write import texts

    unseen = rows.unseen.get(column)
    return texts(rows.schema.columns[column], rows.values[column, [row]], None if unseen is None else unseen[[row]])[0]


def _oddest(answers: PlainAnswers) -> np.ndarray:
    """Return the rows by rising quantile, those without one last; ties by the row's score."""
    import numpy as np

    quantile = answers["quantile"]
    return np.lexsort((-answers["score"], np.where(np.isnan(quantile), 2.0, quantile)))


def _asking() -> AbstractContextManager[None]:
    """Say that an answer takes its time, where it does."""
    return announced(f"asking the fit{FIRST_TIME}", True)


def _load(fit: Path) -> Posterior:
    from bayesjpt.posterior.store import load

    if fit.name.lower().endswith(_TABLES):
        raise FitFileError(
            f"{fit.name!r} is a table, not a fit",
            "what `bayesjpt fit` wrote",
            f"Fit it first: bayesjpt fit {shlex.quote(str(fit))} -o {shlex.quote(fit.name.split('.')[0] + '.nc')}.",
        )
    return load(fit)


_TABLES = (".csv", ".tsv", ".txt", ".gz", ".xlsx", ".xls", ".ods", ".jsonl", ".ndjson", ".json", ".parquet", ".feather")


_LEAST_WIDTH = 1e-9
"""Of an interval, in parts of the answer."""

_RARE = 1e-4
"""Probability of evidence of which a table of some thousand rows has hardly one."""


def _tell_zero(post: Posterior, event: str, mean: float) -> None:
    """Print, beside an answer of zero, that the event contradicts itself, where it does."""
    from bayesjpt.queries.boxes import boxes, why_null
    from bayesjpt.queries.grammar import as_event

    wanted = as_event(event)
    if mean == 0.0 and not (found := boxes(wanted, post.schema)):
        typer.echo(f"bayesjpt: {why_null(found, post.schema, wanted)}", err=True)


def _tell_rare(post: Posterior, given: str | None) -> None:
    """Print, beside an answer, that its evidence is so rare that hardly a row of the fit tells of it."""
    if given is None:
        return
    from bayesjpt.queries.probability import probability

    share = float(probability(post, given).values.mean())
    if share < _RARE:
        typer.echo(
            f"bayesjpt: P({given}) = {share:.1g}: hardly a row of the table tells of it, and the answer rests on the "
            "tails of the model",
            err=True,
        )


def _rng(seed: int | None) -> np.random.Generator:
    import numpy as np

    if seed is not None and seed < 0:
        raise BayesjptError(f"--seed {seed}", "a whole number from 0")
    return np.random.default_rng(seed)


def _number(value: Any) -> float | None:
    value = float(value)
    return value if math.isfinite(value) else None
