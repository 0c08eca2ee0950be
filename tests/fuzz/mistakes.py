"""Commands with options that people get wrong, or use seldom: each answers, or is refused in a line of ours."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fuzz.commands import Case

KINDS = ("real", "integer", "date", "category", "ordinal", "nominal", "excluded", "text")
BROKEN = (
    "{n} >",
    "> 3",
    "{n} = ",
    "{n} = 'no such label'",
    "{n} = 3 and",
    "({n} = 1",
    "{n} ~ 3",
    "",
    "nan > 1",
    "{n} > nan",
)
BROKEN += (
    "{n} > 1,5",
    "{n} > 50 %",
    "{n} is null",
    "{n} like 'a%'",
    "{n} between 1",
    "{n} in ()",
    "{n} > '1' '2'",
    "x",
)
BROKEN += (
    "{n} > 1 | {n} < 0",
    "not not {n} > 0",
    "{n} = {n}",
    "{n} > 1e999",
    "{n} > -inf",
    "1 < {n} < 0",
    "{n} = '2020-13-45'",
)
PAIRS = (
    ("1", "--interval", "2"),
    ("1", "--interval", "0"),
    ("1", "--given", ""),
    ("1", "--explain"),
    ("1", "--per-draw"),
)


def options(case: Case) -> list[str]:
    """Return options of reading, most of which suit no file at hand."""
    return case.one_of(
        *([], [], ["--no-header"], ["--header"], ["--sep", ";"], ["--sep", ","], ["--decimal", ","], ["--day-first"]),
        *(["--na", "-999"], ["--na", "c0=NA,unknown"], ["--keep-na", "NA"], ["--encoding", "utf-8"], ["--sheet", "2"]),
        *(["--encoding", "klingon"], ["--sep", ""], ["--decimal", "x"], ["--line-bytes", "5"], ["--month-first"]),
    )


def seldom(case: Case, path: Path, post: Any) -> None:
    """Read the file otherwise, and ask for kinds."""
    sheet, name = case.sheet.path, case.one_of(*post.schema.names, *(c.name for c in post.schema.set_aside))
    case.wide(case.run("types", sheet, "--seed", 1, *options(case)))
    case.wide(case.run("types", sheet, "--seed", 1, "-q", "--kind", f"{name}={case.one_of(*KINDS)}"))
    case.run("schema", sheet, "-q", "--kind", f"{name}={case.one_of(*KINDS)}", *options(case))
    case.run("outliers", path, sheet, *options(case))
    case.run("predict", path, sheet, f"--target={name}", *options(case))


def written(case: Case, path: Path, post: Any) -> None:
    """Write what commands print to files."""
    suffix = case.one_of("csv", "tsv", "csv.gz", "parquet", "feather", "xlsx", "")
    output = case.folder / f"written.{suffix}"
    sheet, n = case.sheet.path, len(post.schema)
    for command in (
        ("types", sheet, "--seed", 1, "-q"),
        ("outliers", path, sheet),
        ("compare", path, sheet, "-q"),
        *((("dependence", path),) if n > 1 else ()),
    ):
        case.run(*command, "-o", output, may_refuse=suffix in ("xlsx", ""))


def mistakes(case: Case, path: Path, post: Any) -> None:
    """Ask for what cannot be."""
    sheet = case.sheet.path
    column = case.one_of(*post.schema)
    name = "`" + column.name.replace("`", "``") + "`"
    for text in (case.one_of(*BROKEN), case.one_of(*BROKEN)):
        case.run("query", path, text.replace("{n}", name))
        case.run("sample", path, "-n", 2, "--given", text.replace("{n}", name))
    _, *more = case.one_of(*PAIRS)
    case.run("query", path, f"{name} != 'zzz'", *more)
    for arguments in (
        ("types", path),
        ("query", sheet, "x > 1"),
        ("types", case.folder / "no such file.csv"),
        ("types", case.folder),
        ("sample", path, "-n", case.one_of(0, -1, "x")),
        ("sample", path, "-n", 2, "--seed", -1),
        ("predict", path, sheet, "--target", case.one_of("nothing", "", column.name.upper() + " ", column.name[:-1])),
        ("predict", path, sheet),
        ("dependence", path, "--columns", case.one_of("", ",", "nothing,x", column.name, f'"{column.name}"')),
        ("dependence", path, "--top", case.one_of("0", "99"), "--draws", case.one_of("0", "1", "1000")),
        ("outliers", path, sheet, "--score", case.one_of("tail", "log_mass", "x"), "--top", case.one_of("1", "0")),
        ("impute", path, sheet, "-o", case.one_of("/nowhere/x.csv", case.folder, case.folder / "x.pdf")),
        ("types", sheet, "--rows", case.one_of("0", "1", "all", "x", "5"), "-q"),
        ("types", sheet, "--kind", case.one_of("=", "x", "nothing=real", f"{column.name}=", "=real")),
        ("types", sheet, "--schema", case.one_of(sheet, path, case.folder / "nothing.toml")),
        ("fit", sheet, "-o", case.one_of("/nowhere/x.nc", case.folder), "--draws", 2),
        (
            "fit",
            sheet,
            "-o",
            case.folder / "y.nc",
            "--draws",
            case.one_of("0", "-1"),
            "--tune",
            "1",
            "--structures",
            "1",
        ),
        ("fit", sheet, "-o", case.folder / "y.nc", "--learner", case.one_of("magic", "experts"), "--draws", "2"),
        ("report", path, "-o", case.folder / case.one_of("page.pdf", "page"), "-q"),
        ("compare", sheet, case.one_of(case.folder / "nothing.csv", "nothing.nc")),
        ("tree", path, "--columns", case.one_of("", "nothing", column.name)),
    ):
        if case.rng.random() < 0.3:
            case.run(*arguments)
