"""Column types against documented ones, with two simple rules beside them in the same run.

    python -m tests.papers.types --data DIR

Two parts: the raw tables of ``DIR/uci`` against the statistical types in ``DIR/columns.json``; and the tables of
``DIR/type_benchmark`` as numeric, categorical or other against its ``labels.json``.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import bayesjpt as bj
from bayesjpt.errors import BayesjptError
from tests.papers.type_data import LabelledTable, kind_of_type, simple_rules, type_benchmark_tables, uci_tables

DRAWS, TUNE, CHAINS, SEED = 50, 50, 2, 1
MAX_ROWS = 5000
"""Rows of the fit, drawn without replacement where there are more; the schema is decided from all rows."""

SET_ASIDE, FAILED = "set aside", "failed"


@dataclass(frozen=True)
class Settings:
    """How every fit is made; see `bayesjpt.fit`."""

    draws: int = DRAWS
    tune: int = TUNE
    chains: int = CHAINS
    max_rows: int = MAX_ROWS
    seed: int = SEED


@dataclass(frozen=True)
class Answer:
    """What is said of one column and why.

    Parameters
    ----------
    type : str
        A statistical type, ``not determined``, ``set aside`` or ``failed``.
    reason : str
    """

    type: str
    reason: str

    @property
    def kind(self) -> str:
        """Numeric, categorical, or other for a column that is set aside; empty where nothing is said."""
        return "other" if self.type == SET_ASIDE else kind_of_type(self.type)


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
    import numpy as np

    table = bj.read_table(path)
    n_row = table.n_row
    if n_row > settings.max_rows:
        rng = np.random.default_rng(settings.seed)
        table = table.take(np.sort(rng.choice(n_row, settings.max_rows, replace=False)))
    post = bj.fit(
        table,
        draws=settings.draws,
        tune=settings.tune,
        chains=settings.chains,
        cores=1,
        seed=settings.seed,
        progress=False,
    )
    result = post.types()
    answers = {column.name: Answer(column.type, column.reason) for column in result.columns}
    answers |= {column.name: Answer(SET_ASIDE, column.reason) for column in result.set_aside}
    note = f"{n_row} rows" if table.n_row == n_row else f"{n_row} rows, {table.n_row} of them fitted"
    return answers, note


def judge(table: LabelledTable, settings: Settings) -> tuple[list[Verdict], str]:
    """Return a verdict for each labelled column of a table, and a note; a table that fails has all columns wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # constant columns and the like: the reasons say so
            answers, note = answer_types(table.path, settings)
    except BayesjptError as error:
        answers, note = {}, f"failed: {error}"
    except Exception as error:  # any other failure is a fault of ours, to be reported and not to end the run
        answers, note = {}, f"failed with {type(error).__name__}: {str(error).splitlines()[:1]}"
    rules = simple_rules(table)
    verdicts = []
    for label in table.labels:
        answer = answers.get(label.column, Answer(FAILED, note if not answers else "the column is not in the answer"))
        right = {"kind": answer.kind == label.kind}
        if label.type is not None:
            right |= {"strict": answer.type == label.type, "lenient": answer.type in (label.type, *label.also)}
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
    measures = (["strict", "lenient"] if typed else []) + ["kind", *RULES]
    show(f"\n{title}")
    show(f"{'table':<24}{'columns':>8}" + "".join(f"{HEADERS[measure]:>15}" for measure in measures) + "  note")
    by_table = []
    for table in tables:
        began = time.perf_counter()
        verdicts, note = judge(table, settings)
        by_table.append(verdicts)
        figures = [accuracy(verdicts, measure) for measure in measures]
        show(_line(table.name, len(verdicts), figures) + f"  {note}, {time.perf_counter() - began:.0f} s")
    pooled = [one for verdicts in by_table for one in verdicts]
    show(_line("macro (over tables)", len(by_table), [macro(by_table, measure) for measure in measures]))
    show(_line("micro (over columns)", len(pooled), [accuracy(pooled, measure) for measure in measures]))
    judged = "lenient" if typed else "kind"
    wrong = [one for one in pooled if not one.right[judged]]
    wrong.sort(key=lambda one: one.right["kind"])
    show(
        f"\nWrong ({HEADERS[judged].strip()}): {len(wrong)} columns"
        + (f", {worst} shown" if len(wrong) > worst else "")
    )
    for one in wrong[:worst]:
        show(f"  {one.table}, {one.column}: {one.expected}, answered {one.answer.type}. {one.answer.reason}")


RULES = ("dtype", "distinct")
HEADERS = {
    "strict": "type strict",
    "lenient": "type lenient",
    "kind": "kind",
    "dtype": "pandas dtype",
    "distinct": "> 20 distinct",
}


def _line(name: str, n: int, figures: Sequence[float]) -> str:
    return f"{name:<24}{n:>8}" + "".join(f"{figure:>15.3f}" for figure in figures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both parts and print them; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.papers.types", description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True, help="folder that holds columns.json, uci/ and type_benchmark/")
    parser.add_argument("--draws", type=int, default=DRAWS, help="kept sweeps a chain")
    parser.add_argument("--tune", type=int, default=TUNE, help="burn-in sweeps a chain")
    parser.add_argument("--chains", type=int, default=CHAINS)
    parser.add_argument("--max-rows", type=int, default=MAX_ROWS, help="rows of each fit at most")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--worst", type=int, default=30, help="wrong columns shown")
    parser.add_argument("--only", default="", help="tables whose name holds this text")
    chosen = parser.parse_args(arguments)
    settings = Settings(chosen.draws, chosen.tune, chosen.chains, chosen.max_rows, chosen.seed)
    try:
        parts = {
            "Raw tables, against documented types (numeric or categorical: the kind of the documented type)": uci_tables(
                chosen.data
            ),
            "Type benchmark, against numeric, categorical or other (set aside)": type_benchmark_tables(chosen.data),
        }
    except BayesjptError as error:
        print(error, file=sys.stderr)
        return 2
    print(
        f"{settings.chains} chains of {settings.tune} burn-in and {settings.draws} kept sweeps; "
        f"schema from all rows, fit on at most {settings.max_rows} of them, drawn without replacement"
    )
    began = time.perf_counter()
    for title, tables in parts.items():
        chosen_tables = [table for table in tables if chosen.only in table.name]
        if chosen_tables:
            report(title, chosen_tables, settings, chosen.worst, print)
    print(f"\n{time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
