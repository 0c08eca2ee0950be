"""Commands on files as people have them: each answers, or refuses in one short line of ours.

      sheet (tests.fuzz.sheets)  ->  types, schema, fit  ->  query, dependence, sample, impute, predict, outliers, tree,
                                                             report, compare  ->  what was written, read again

``python -m tests.fuzz --commands 1 --first NUMBER --keep FOLDER`` runs one case again and leaves its files.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import re
import shlex
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bayesjpt as bj
from bayesjpt import cli
from tests.fuzz.mistakes import mistakes, seldom, written
from tests.fuzz.sheets import Sheet, make_sheet

WIDTH = 80
LONGEST = 400
"""Characters of an error, the event below it aside."""
ROUNDING = 1e-9
FEW = ["--draws", "6", "--tune", "2", "--cores", "1", "--seed", "1"]
LEARNERS = ("mspn", "mspn", "mspn", "jpt", "cutset", "wmispn", "tree_mixture", "hclt")
_NO_NUMBER = re.compile(r"(?<![\w.'\"`])[-+]?(?:nan|inf|infinity)(?![\w'\"`])", re.IGNORECASE)


class Done(NamedTuple):
    """What became of a command."""

    arguments: list[str]
    status: int
    out: str
    err: str


class Finding(AssertionError):
    """Something that a user would be surprised by."""


class Case:
    """One file, and the commands that are run on it.

    Parameters
    ----------
    folder : Path
        Empty.
    rng : np.random.Generator
    """

    def __init__(self, folder: Path, rng: np.random.Generator):
        self.folder, self.rng = folder, rng
        self.sheet: Sheet = make_sheet(folder, rng)
        self.counts: Counter[str] = Counter()
        self.findings: list[str] = []
        self.log: list[Done] = []
        self.said_no_number = any(
            _NO_NUMBER.search(cell) for row in [self.sheet.names, *self.sheet.rows] for cell in row
        )

    def run(self, *arguments: Any, may_refuse: bool = True) -> Done:
        """Run a command and check what any of them promises."""
        done = call([str(argument) for argument in arguments])
        self.log.append(done)
        where = shlex.join(done.arguments)
        if done.status not in (0, 2):
            self.found(f"{where}: {done.err}")
            return done
        if "Traceback" in done.err or "Warning" in done.err:
            self.found(f"{where}: {done.err}")
        if done.status == 2:
            error = done.err.strip("\n")
            error = error if "^" in error else error.rpartition("\n")[2]
            n = len(error.partition("\n")[0])
            if done.out or not error.startswith("bayesjpt: ") or n > LONGEST:
                self.found(f"{where}: an error of {n} characters after {done.out!r}: {error}")
            self.counts[f"{done.arguments[0]} refused: {in_general(error)}"] += 1
            if not may_refuse:
                self.found(f"{where}: refused: {error}")
            return done
        self.counts[f"{done.arguments[0]} answered"] += 1
        # chains that stand still at different points have an infinite R-hat
        said = done.out.replace("R-hat up to inf", "") if done.arguments[0] != "schema" else ""  # supports may be
        asked_for = self.said_no_number or any(map(_NO_NUMBER.search, done.arguments))
        if not asked_for and (found := _NO_NUMBER.search(said)):
            self.found(f"{where}: {found[0]} in {said[max(0, found.start() - 60) : found.end() + 20]!r}")
        return done

    def found(self, what: str) -> None:
        self.findings.append(what)

    def wide(self, done: Done) -> None:
        """Check lines of a table; two long names that begin alike are told in full."""
        beginnings = [name[:20] for name in self.sheet.names]
        if len(set(beginnings)) < len(beginnings) and max(map(len, self.sheet.names)) > 20:
            return
        for line in done.out.splitlines():
            if len(line) > WIDTH:
                self.found(f"{shlex.join(done.arguments)}: a line of {len(line)} characters: {line}")
                return

    def again(self, done: Done) -> None:
        """Check that a command says the same again."""
        second = call(done.arguments)
        if (second.status, second.out) != (done.status, done.out):
            self.found(f"{shlex.join(done.arguments)}: another answer at the second time")

    def one_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]


def call(arguments: list[str]) -> Done:
    """Return what a command prints and its status; -1 for an exception, which is then all of its standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            status = cli.run(arguments)
        except BaseException:  # any is a finding
            if isinstance(sys.exc_info()[1], KeyboardInterrupt):
                raise
            return Done(arguments, -1, out.getvalue(), traceback.format_exc())
    return Done(arguments, status, out.getvalue(), err.getvalue())


def in_general(error: str) -> str:
    """Return an error without names, values and numbers."""
    text = re.sub(r"'.*?'(?=\W|$)|\".*?\"|`.*?`", "_", error.removeprefix("bayesjpt: "), flags=re.DOTALL)
    return re.sub(r"/\S+", "PATH", re.sub(r"[-+]?\d[\d.,e+-]*", "#", text))[:110].strip()


def as_json(case: Case, done: Done) -> Any:
    """Return what a command printed as JSON, in which no number is NaN."""

    def refuse(constant: str) -> float:
        case.found(f"{shlex.join(done.arguments)}: {constant} in JSON")
        return 0.0

    if done.status:
        return None
    try:
        return json.loads(done.out, parse_constant=refuse)
    except ValueError as error:
        case.found(f"{shlex.join(done.arguments)}: no JSON: {error}: {done.out[:200]}")


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def quoted(name: str) -> str:
    """Return a name as events take it."""
    return "`" + name.replace("`", "``") + "`"


# --- the commands


def types(case: Case) -> bool:
    """Tell types in every form; return whether the table can be used at all."""
    path = case.sheet.path
    told = case.run("types", path, "--seed", 1)
    case.wide(told)
    if told.status:
        return False
    found = as_json(case, case.run("types", path, "--seed", 1, "--json", "-q", may_refuse=False))
    lines = rows_of(case.run("types", path, "--seed", 1, "--csv", "-q", may_refuse=False).out)
    if found is not None and len(lines) - 1 != len(found["columns"]) + len(found["left_out"]):
        case.found(f"types: {len(lines) - 1} lines of csv, {len(found['columns'])} + {len(found['left_out'])} in JSON")
    for column in [] if found is None else found["columns"]:
        shares = list(column["probabilities"].values())
        if not all(0.0 <= share <= 1.0 for share in shares) or (shares and abs(sum(shares) - 1.0) > 1e-6):
            case.found(f"types: probabilities {column}")
    if found is not None and found["columns"] and case.rng.random() < 0.3:
        name = str(case.one_of(*found["columns"])["column"])
        case.wide(case.run("types", path, "--seed", 1, "-q", f"--why={name}", may_refuse=False))
    if case.rng.random() < 0.2:
        case.wide(case.run("types", path, "-q", "--full", "--structures", 1, *FEW))
    if case.rng.random() < 0.2:
        case.again(told)
    return True


def schema(case: Case) -> Path | None:
    """Write the schema, as a document that reads the same file."""
    path = case.folder / "schema.toml"
    if case.run("schema", case.sheet.path, "-o", path, "-q").status:
        return None
    plain = case.run("types", case.sheet.path, "--seed", 1, "-q").out
    under = case.run("types", case.sheet.path, "--seed", 1, "-q", "--schema", path, may_refuse=False)
    told, again = ([line.split("  look at")[0] for line in text.splitlines()] for text in (plain, under.out))
    if not under.status and told != again:
        other = next((pair for pair in zip(told, again, strict=False) if pair[0] != pair[1]), (len(told), len(again)))
        case.found(f"schema: the document reads the file otherwise: {other}")
    return path


def fit(case: Case, document: Path | None) -> Path | None:
    """Fit a few draws."""
    path = case.folder / "fit.nc"
    chains = [["--structures", "1", "--chains", "2"], ["--structures", "2", "--chains", "1"]]
    options = [*case.one_of(*chains), *FEW, "--learner", case.one_of(*LEARNERS)]
    if document is not None and case.rng.random() < 0.5:
        options += ["--schema", str(document)]
    return None if case.run("fit", case.sheet.path, "-o", path, *options).status else path


class Asked(NamedTuple):
    """An event about one column of a fit, its complement, and which values of the column it holds."""

    event: str
    rest: str
    column: int
    lo: float
    hi: float
    codes: tuple[float, ...] = ()

    def share(self, rows: Any) -> float:
        """Return the share of the rows with a value that the event holds; NaN of none."""
        values = rows.values[self.column, rows.observed[self.column]]
        held = np.isin(values, self.codes) if self.codes else (values >= self.lo) & (values <= self.hi)
        return float(held.mean()) if values.size else math.nan


def make_event(case: Case, post: Any) -> Asked:
    """Return an event about one column of a fit."""
    column = case.one_of(*post.schema)
    name, place = quoted(column.name), post.schema.index(column.name)
    if column.base == "category":
        codes = sorted({int(case.rng.integers(len(column.labels))) for _ in range(2)})
        chosen = [column.labels[code].replace("'", "''") for code in codes]
        listed = ", ".join(f"'{label}'" for label in chosen)
        told = (f"in ({listed})", f"not in ({listed})") if chosen[1:] else (f"= '{chosen[0]}'", f"!= '{chosen[0]}'")
        return Asked(f"{name} {told[0]}", f"{name} {told[1]}", place, 0.0, 0.0, tuple(map(float, codes)))
    from bayesjpt.table.write import texts

    reference = post.sample(5, rng=case.rng)
    cells = reference.values[place]
    is_plain = column.dtype != "datetime" and column.notation is None
    ends = np.sort(cells[:2])
    lo, hi = (text if is_plain else "'" + text.replace("'", "''") + "'" for text in texts(column, ends))
    if case.rng.random() < 0.3:
        return Asked(f"{name} between {lo} and {hi}", f"not {name} between {lo} and {hi}", place, *ends.tolist())
    return Asked(f"{name} <= {lo}", f"{name} > {lo}", place, -math.inf, float(ends[0]))


def query(case: Case, path: Path, post: Any) -> None:
    """Ask for the probability of an event and of its complement, given another event or nothing."""
    asked = make_event(case, post)
    event, rest = asked.event, asked.rest
    given = ["--given", make_event(case, post).event] if case.rng.random() < 0.4 else []
    case.run("query", path, event, *given, *(["--explain"] if case.rng.random() < 0.4 else []))
    both = [as_json(case, case.run("query", path, one, *given, "--json")) for one in (event, rest)]
    if None in both:
        return
    for answer in both:
        lo, hi = answer["interval"]
        if not (-ROUNDING <= lo <= hi <= 1.0 + ROUNDING and -ROUNDING <= answer["probability"] <= 1.0 + ROUNDING):
            case.found(f"query {event!r} {given}: {answer}")
    total = both[0]["probability"] + both[1]["probability"]
    if abs(total - 1.0) > 1e-6:
        case.found(f"query {event!r} {given}: with the complement {total}")
    rows = _rows(case, post)
    share = asked.share(rows)
    if not given and abs(both[0]["probability"] - share) > 0.25 + 1.5 / math.sqrt(rows.n_row):
        case.found(f"query {event!r}: {both[0]['probability']}, the share in {rows.n_row} rows is {share}")


def dependence(case: Case, path: Path, post: Any) -> None:
    options = ["--normalised"] if case.rng.random() < 0.5 else []
    told = case.run("dependence", path, *options)
    case.wide(told)
    found = as_json(case, case.run("dependence", path, *options, "--json"))
    for pair in [] if found is None else found["pairs"]:
        lo, hi = pair["interval"]
        if not -1e-6 <= lo <= hi or (options and hi > 1.0 + 1e-6):
            case.found(f"dependence: {pair}")


def sample(case: Case, path: Path, post: Any) -> None:
    """Draw rows, which the fit's own schema, and the table's, read again."""
    suffix = case.one_of(".csv", ".csv", ".csv", ".tsv", ".csv.gz", ".parquet", ".feather")
    drawn = case.folder / f"drawn{suffix}"
    asked = make_event(case, post) if case.rng.random() < 0.3 else None
    given = ["--given", asked.event] if asked else []
    if case.run("sample", path, "-n", 30, "--seed", 1, "-o", drawn, *given).status:
        return
    told = case.run("sample", path, "-n", 30, "--seed", 1, *given)
    case.again(told)
    if suffix == ".csv" and drawn.read_bytes().decode() != told.out:
        case.found("sample: a file holds other text than what is printed")
    rows = rows_of(told.out)
    if rows and (rows[0] != list(post.schema.names) or {len(row) for row in rows} != {len(post.schema)}):
        case.found(f"sample: columns {rows[0]} in place of {list(post.schema.names)}")
    read = case.run("outliers", path, drawn, "--json", may_refuse=False)
    if "bayesjpt: " in read.err:
        case.found(f"sample: rows are read with a warning: {read.err}")
    elif asked and asked.share(_read(drawn, post)) < 1.0:
        case.found(f"sample: given {asked.event!r}, {asked.share(_read(drawn, post)):.0%} of the rows are so")
    document = case.folder / "schema.toml"
    if document.exists():
        case.run("types", drawn, "-q", "--schema", document)
    case.run("compare", path, drawn, "-q")


def impute(case: Case, path: Path, post: Any) -> None:
    """Fill gaps; what was written stays, and is read again without gaps."""
    suffix = case.one_of(".csv", ".csv", ".tsv", ".parquet")
    filled = case.folder / f"filled{suffix}"
    options = ["--mean"] if case.rng.random() < 0.3 else ["--seed", 1]
    if case.run("impute", path, case.sheet.path, "-o", filled, *options).status:
        return
    read = case.run("outliers", path, filled, "--json", may_refuse=False)
    if read.status:
        return
    before, after = _rows(case, post), _read(filled, post)
    if not after.observed.all():
        column, row = np.argwhere(~after.observed.T if after.observed.shape[0] == after.n_row else ~after.observed)[0]
        case.found(f"impute: column {post.schema.names[column]!r} has a gap in row {row + 1} of the filled file")
    seen = before.observed
    if not np.array_equal(before.values[seen], after.values[seen]):
        place = np.argwhere(seen & (before.values != after.values))[0]
        case.found(
            f"impute: an observed cell changed: {place} {before.values[tuple(place)]} {after.values[tuple(place)]}"
        )


def predict(case: Case, path: Path, post: Any) -> None:
    """Predict a column: probabilities that sum to one, or numbers between their ends."""
    column = case.one_of(*post.schema)
    done = case.run("predict", path, case.sheet.path, f"--target={column.name}")
    if done.status:
        return
    rows = rows_of(done.out)
    if len(rows) - 1 != (n_row := _rows(case, post).n_row):
        case.found(f"predict: {len(rows) - 1} rows of {n_row}")
    for row in rows[1:]:
        if column.base == "category":
            numbers = [float(cell) for cell in row[1:]]
            if min(numbers) < 0.0 or abs(sum(numbers) - 1.0) > 1e-6:
                case.found(f"predict: probabilities {row}")
                return
        elif any(cell in ("", "nan", "inf") for cell in row):
            case.found(f"predict: {rows[0]} {row}")
            return
    if case.rng.random() < 0.5:
        case.run("predict", path, case.sheet.path, f"--target={column.name}", "-o", case.folder / "predicted.parquet")


def _read(path: Path, post: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bj.read_table(path, schema=post.schema, ignore_new=True)


def _rows(case: Case, post: Any) -> Any:
    """Return the rows of the file, as the fit reads them."""
    return _read(case.sheet.path, post)


def read_again(case: Case, post: Any) -> None:
    """Check that the rows of a fit are the same under its schema as they were when it was decided."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trained = bj.read_table(case.sheet.path)
    again = _rows(case, post)
    if not np.array_equal(trained.observed, again.observed) or not np.array_equal(trained.values, again.values):
        place = np.argwhere((trained.observed != again.observed) | (trained.values != again.values))[0]
        case.found(f"column {post.schema.names[place[0]]!r}, row {place[1] + 1}: read otherwise under the fit's schema")


def outliers(case: Case, path: Path, post: Any) -> None:
    options = ["--training"] if case.rng.random() < 0.1 else []
    told = case.run("outliers", path, case.sheet.path, *options)
    case.wide(told)
    case.again(told)
    for row in (as_json(case, case.run("outliers", path, case.sheet.path, *options, "--json")) or {"rows": []})["rows"]:
        quantile = row["quantile"]
        if quantile is not None and not 0.0 <= quantile <= 1.0:
            case.found(f"outliers: {row}")
            return


def report(case: Case, path: Path, post: Any) -> None:
    page = case.folder / "page.html"
    table = ["--table", case.sheet.path] if case.rng.random() < 0.5 else []
    if case.run("report", path, "-o", page, *table).status:
        return
    if any(f"<{mark}>" in name and f"<{mark}>" in page.read_text() for name in case.sheet.names for mark in ("b",)):
        case.found("report: a name is markup")
    text = re.sub(r"<(style|script|svg).*?</\1>|<[^>]*>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = text.replace("R-hat up to inf", "")
    if not case.said_no_number and (found := _NO_NUMBER.search(text)):
        case.found(f"report: {text[max(0, found.start() - 80) : found.end() + 40]!r}")


def tree(case: Case, path: Path, post: Any) -> None:
    case.run("tree", path)


def compare(case: Case, path: Path, post: Any) -> None:
    """Compare a table with itself, and with a fit of it."""
    told = case.run("compare", case.sheet.path, case.sheet.path)
    case.wide(told)
    if "differs:" in told.out:
        case.found(f"compare: a table differs from itself: {told.out}")
    found = as_json(case, case.run("compare", path, case.sheet.path, "--json", "-q"))
    for column in [] if found is None else found["columns"]:
        share = column["probability"]
        if share is not None and not (math.isfinite(share) and 0.0 <= share <= 1.0):
            case.found(f"compare: {column}")


QUESTIONS: tuple[Callable[[Case, Path, Any], None], ...] = (
    *(query, query, dependence, sample, impute, predict, outliers, report, tree, compare, seldom, written, mistakes),
)


def experts(case: Case, post: Any) -> None:
    """Fit experts of one column, and predict it."""
    target, path = case.one_of(*post.schema).name, case.folder / "experts.nc"
    if "," in target:
        return
    few = ["--draws", 4, "--tune", 4, "--chains", 1, "--cores", 1, "--seed", 1, "--depth", 1]
    if case.run("fit", case.sheet.path, "-o", path, "--learner", "experts", f"--target={target}", *few).status:
        return
    case.run("predict", path, case.sheet.path)  # rows without a target may lack covariates, too
    case.run("tree", path, case.sheet.path)


def run_case(folder: Path, seed: int, number: int) -> Case:
    """Run the commands on one file."""
    rng = np.random.default_rng([seed, number])
    case = Case(folder, rng)
    try:
        if not types(case):
            return case
        path = fit(case, schema(case))
        if path is None:
            return case
        post = bj.load(path)
        read_again(case, post)
        for question in QUESTIONS:
            question(case, path, post)
        if rng.random() < 0.25:
            experts(case, post)
    except Exception:  # of the checks, or of what they call
        case.found(traceback.format_exc())
    return case


def run(n: int, *, seed: int, first: int = 0, keep: Path | None = None, show: bool = False) -> tuple[Counter[str], int]:
    """Run cases; return how often each outcome was met, and how many cases had findings, which are printed."""
    counts: Counter[str] = Counter()
    failed, began = 0, time.perf_counter()
    for number in range(first, first + n):
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) if keep is None else keep / str(number)
            folder.mkdir(parents=True, exist_ok=True)
            case = run_case(folder, seed, number)
        counts.update(case.counts)
        failed += bool(case.findings)
        for finding in case.findings:
            print(f"case {number} ({case.sheet.path.name}, {case.sheet.about}): {finding}"[:3000], flush=True)
        if show:
            print(*transcript(case.log), sep="\n", flush=True)
        if (number + 1 - first) % 20 == 0:
            print(f"... {number + 1 - first} cases in {time.perf_counter() - began:.0f} s", flush=True)
    return counts, failed


def transcript(log: Sequence[Done]) -> list[str]:
    """Return what commands printed, as a terminal would show it."""
    return [f"$ bayesjpt {shlex.join(done.arguments)}   [{done.status}]\n{done.err}{done.out[:2500]}" for done in log]
