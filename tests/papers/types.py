"""Column types, as `bayesjpt types` answers, against documented ones, with two simple rules beside them.

    python -m tests.papers.types --data DIR

Two parts: the raw tables of ``DIR/uci`` against the statistical types in ``DIR/columns.json``; and the tables of
``DIR/type_benchmark`` as numeric, categorical or other against its ``labels.json``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import bayesjpt as bj
from bayesjpt.defaults import TYPE_ROWS
from bayesjpt.errors import BayesjptError
from bayesjpt.fitting.for_types import estimate_for_types
from bayesjpt.queries.type_probability import numeric_probability
from bayesjpt.queries.types import UNSURE, ColumnType
from tests.papers.programs import run
from tests.papers.type_data import (
    LabelledTable,
    simple_rules,
    simple_types,
    type_benchmark_tables,
    uci_tables,
)

SEED = 1
MAX_ROWS = TYPE_ROWS
"""Rows of the fit, drawn without replacement where there are more; the schema is decided from all rows."""

SET_ASIDE, FAILED = "set aside", "failed"
RULES = ("dtype", "distinct")
HEADERS = {
    "strict": "type strict",
    "lenient": "type lenient",
    "rule_strict": "rule strict",
    "rule_lenient": "rule lenient",
    "kind": "kind",
    "dtype": "pandas dtype",
    "distinct": "> 20 distinct",
}


@dataclass(frozen=True)
class Settings:
    """How every fit is made; see `bayesjpt.fit`."""

    max_rows: int = MAX_ROWS
    seed: int = SEED


@dataclass(frozen=True)
class Answer:
    """What is said of one column and why.

    Parameters
    ----------
    type : str
        A statistical type, ``constant``, ``date``, ``set aside`` or ``failed``.
    kind : str
        ``numeric`` or ``categorical``, whichever is more probable; ``other`` where it is set
        aside, empty where the table failed.
    reason : str
    """

    type: str
    kind: str
    reason: str


@dataclass(frozen=True)
class Verdict:
    """One column: the documented answer, ours, and those of the simple rules.

    Parameters
    ----------
    right : dict of str to bool
        For each measure that applies to the table, whether the column is right under it.
    """

    table: str
    column: str
    expected: str
    answer: Answer
    right: dict[str, bool]


def answer_types(path: Path, settings: Settings) -> tuple[dict[str, Answer], str]:
    """Return the answer for each column of a file, and a note on the rows of the fit.

    Raises
    ------
    BayesjptError
        Where the table cannot be read or fitted.
    """
    table = bj.read_table(path)
    n_row = table.n_row
    post = estimate_for_types(table, n_rows=settings.max_rows, seed=settings.seed)
    result = post.types()
    answers = {column.name: Answer(_type(column), _kind(column), column.because) for column in result.columns}
    answers |= {column.name: Answer(SET_ASIDE, "other", column.reason) for column in result.left_out}
    note = f"{n_row} rows" if n_row <= settings.max_rows else f"{n_row} rows, {settings.max_rows} of them fitted"
    unsure = sum(column.certainty == UNSURE for column in result.columns)
    return answers, note + (f", {unsure} types unsure" if unsure else "")


def _type(column: ColumnType) -> str:
    """Return the type of a column; of years, which have a word of their own, the most probable one."""
    return max(column.probabilities, key=column.probabilities.__getitem__) if column.type == "year" else column.type


def _kind(column: ColumnType) -> str:
    """Return the more probable kind; dates are numeric."""
    numeric = not column.probabilities or numeric_probability(column.probabilities) > 0.5
    return "numeric" if numeric else "categorical"


def judge(table: LabelledTable, settings: Settings) -> tuple[list[Verdict], str]:
    """Return a verdict for each labelled column of a table, and a note; a table that fails has all columns wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # constant columns and the like: the reasons say so
            answers, note = answer_types(table.path, settings)
    except BayesjptError as error:
        answers, note = {}, f"failed: {error}"
    except Exception as error:  # a fault of ours: reported, and not the end of the run
        answers, note = {}, f"failed with {type(error).__name__}: {' '.join(str(error).split())}"
    rules, guesses = simple_rules(table), simple_types(table)
    verdicts = []
    for label in table.labels:
        answer = answers.get(label.column, Answer(FAILED, "", "not in the answer" if answers else note))
        right = {"kind": answer.kind == label.kind}
        if label.type is not None:
            guess, accepted = guesses.get(label.column), (label.type, *label.also)
            right |= {"strict": answer.type == label.type, "lenient": answer.type in accepted}
            right |= {"rule_strict": guess == label.type, "rule_lenient": guess in accepted}
        right |= {rule: kinds.get(label.column) == label.kind for rule, kinds in rules.items()}
        verdicts.append(Verdict(table.name, label.column, label.shown, answer, right))
    return verdicts, note


def accuracy(verdicts: Sequence[Verdict], measure: str) -> float:
    """Return the share of columns that are right under a measure."""
    return sum(one.right[measure] for one in verdicts) / max(len(verdicts), 1)


def macro(by_table: Sequence[Sequence[Verdict]], measure: str) -> float:
    """Return the mean over tables of the share of columns that are right."""
    return sum(accuracy(verdicts, measure) for verdicts in by_table) / max(len(by_table), 1)


def report(title: str, tables: Sequence[LabelledTable], settings: Settings, worst: int, show: Callable) -> None:
    """Judge the tables, show a line for each as it is done, then the averages and the columns that are wrong."""
    typed = any(label.type is not None for table in tables for label in table.labels)
    measures = ["strict", "lenient", "rule_strict", "rule_lenient"] if typed else []
    measures += ["kind", *RULES]
    show(f"\n{title}")
    show(f"{'table':<34}{'columns':>8}" + "".join(f"{HEADERS[measure]:>14}" for measure in measures) + "  note")
    by_table = []
    for table in tables:
        began = time.perf_counter()
        verdicts, note = judge(table, settings)
        by_table.append(verdicts)
        figures = [accuracy(verdicts, measure) for measure in measures]
        show(_line(table.name, len(verdicts), figures) + f"  {note}, {time.perf_counter() - began:.0f} s")
    _show_averages("", by_table, measures, show)
    if any(one.expected == "other" for verdicts in by_table for one in verdicts):
        kept = [[one for one in verdicts if one.expected != "other"] for verdicts in by_table]
        _show_averages(" without 'other'", kept, measures, show)
    judged = "lenient" if typed else "kind"
    wrong = [one for verdicts in by_table for one in verdicts if not one.right[judged]]
    wrong.sort(key=lambda one: one.right["kind"])
    show(
        f"\nWrong ({HEADERS[judged]}): {len(wrong)} columns, wrong kinds first"
        + f", {worst} shown" * (len(wrong) > worst)
    )
    for one in wrong[:worst]:
        kind = "" if one.right["kind"] else f" ({one.answer.kind})"
        show(f"  {one.table}, {one.column}: {one.expected}, answered {one.answer.type}{kind}. {one.answer.reason}")


def _show_averages(which: str, by_table: Sequence[Sequence[Verdict]], measures: Sequence[str], show: Callable) -> None:
    by_table = [verdicts for verdicts in by_table if verdicts]
    pooled = [one for verdicts in by_table for one in verdicts]
    show(_line(f"macro, tables{which}", len(by_table), [macro(by_table, measure) for measure in measures]))
    show(_line(f"micro, columns{which}", len(pooled), [accuracy(pooled, measure) for measure in measures]))


def _line(name: str, n: int, figures: Sequence[float]) -> str:
    return f"{name:<34}{n:>8}" + "".join(f"{figure:>14.3f}" for figure in figures)


UCI_TITLE = "Raw tables, against documented types; kind: numeric or categorical, that of the documented type"
BENCHMARK_TITLE = "Type benchmark, against numeric, categorical or other (set aside)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both parts and print them; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.types", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds columns.json, uci/ and type_benchmark/")
    parser.add_argument("--max-rows", type=int, default=MAX_ROWS, help="rows to learn from at most")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--worst", type=int, default=30, help="wrong columns shown")
    parser.add_argument("--only", default="", help="tables whose name holds this text")
    chosen = parser.parse_args(arguments)
    settings = Settings(chosen.max_rows, chosen.seed)
    parts = {UCI_TITLE: uci_tables(chosen.data), BENCHMARK_TITLE: type_benchmark_tables(chosen.data)}
    print(
        f"Learner's estimate; schema from all rows, structure from at most {settings.max_rows} of them, drawn without "
        "replacement"
    )
    began = time.perf_counter()
    for title, tables in parts.items():
        chosen_tables = [table for table in tables if chosen.only in table.name]
        if chosen_tables:
            report(title, chosen_tables, settings, chosen.worst, print)
    print(f"\n{time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    run(main)
