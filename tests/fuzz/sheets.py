"""Files of tables as people have them: separators, encodings, decimal commas, units, dates, codes, gaps, odd names."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

Rng = np.random.Generator

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NAMES = (
    *("age", "Name", "total (EUR)", "fixed acidity", "größe", "%", "a=b", "x,y", "it's", 'the "other"', "order", "and"),
    *("größe, in cm", "not", "1", "2.5", "a`b", "#", "col;1", "température", "名前", "line\nbreak", "Q1: How often?"),
    *("unit price", "date", "Datum", "id", "e.g. this", "between", "other", "in", "row", "probability", "--seed", "-o"),
    *("column", "inf", "nan", "true", "lower", "mean", "a" * 60, "Gesamtbetrag der Rechnung ohne Steuer und Versand"),
    *(
        " padded ",
        "=SUM(A1)",
        "$",
        "<b>bold</b>",
        "tab\there",
        "back\\slash",
        "&amp;",
        "a.b",
        "[x]",
        "😀",
        "x y",
        "x_y",
    ),
)
GAPS = ("", "NA", "n/a", "?", "-", "NULL", "None", "-999", ".", " ", "unknown", "#N/A", "k. A.")
BOOLEANS = (
    *(("yes", "no"), ("Ja", "Nein"), ("oui", "non"), ("sí", "no"), ("true", "false"), ("TRUE", "FALSE"), ("Y", "N")),
    *(("1", "0"), ("да", "нет"), ("wahr", "falsch"), ("t", "f"), ("on", "off"), ("x", ""), ("vrai", "faux")),
)
LABELS = (
    *(
        ("low", "medium", "high"),
        ("red", "white", "rosé"),
        ("S", "M", "L", "XL"),
        ("Berlin", "São Paulo", "Zürich", ""),
    ),
    *(("A, B", 'C "D"', "E\nF"), ("never", "sometimes", "always"), ("1", "2", "3", "x"), ("0-17", "18-64", "65+")),
    *(
        ("other", "seen", "nan"),
        ("it's", "isn't", "'"),
        ("<5", "5-10", ">10"),
        ("Mon", "Tue", "Wed", "Sun"),
        ("a", "A"),
    ),
    *(
        ("NA", "EU", "AS"),
        ("01", "02", "10"),
        ("True story", "False alarm"),
        ("100 %", "50 %", "0 %"),
        ("=1+1", "+", "@"),
    ),
)
WORDS = (
    "the",
    "quick",
    "fox,",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog;",
    "it's",
    '"raining"',
    "cats",
    "and\ndogs",
    "again.",
)


class Sheet(NamedTuple):
    """A file, and what it holds: names (empty without a header) and the texts of each row."""

    path: Path
    names: list[str]
    rows: list[list[str]]
    about: str


def _number(value: float, digits: int, comma: bool, thousands: bool) -> str:
    text = f"{value:,.{digits}f}" if thousands else f"{value:.{digits}f}"
    return text.translate(str.maketrans(",.", ".,")) if comma else text


def _amounts(z: np.ndarray, rng: Rng, comma: bool) -> list[str]:
    """Return numbers of some law: with units, signs, currencies, percent, zeros, caps."""
    scale = 10.0 ** rng.integers(-2, 6)
    law = rng.integers(4)
    x = (scale * z, scale * np.exp(z), np.round(scale * (3.0 + z)), scale * rng.gamma(2.0, size=z.size))[law]
    if rng.random() < 0.3:
        x = np.where(rng.random(z.size) < 0.4, 0.0, x)
    digits = 0 if law == 2 else int(rng.integers(0, 4))
    before, after = (("", ""), ("", ""), ("", ""), ("$", ""), ("", " €"), ("", "%"), ("", " kg"), ("EUR ", ""))[
        rng.integers(8)
    ]
    thousands = rng.random() < 0.3
    return [f"{before}{_number(value, digits, comma, thousands)}{after}" for value in x.tolist()]


def _whole(z: np.ndarray, rng: Rng, comma: bool) -> list[str]:
    top = int(rng.choice([1, 3, 9, 40, 2000, 10**9]))
    x = np.clip(np.round(top * (0.5 + 0.25 * z)), 0 if rng.random() < 0.7 else -top, top).astype(int)
    return [f"{value:04d}" if rng.random() < 0.02 and top == 2000 else str(value) for value in x.tolist()]


def _labels(z: np.ndarray, rng: Rng, comma: bool) -> list[str]:
    pool = LABELS[rng.integers(len(LABELS))]
    place = np.clip(np.round((0.5 + 0.3 * z) * (len(pool) - 1)), 0, len(pool) - 1).astype(int)
    return [pool[k] for k in place.tolist()]


def _booleans(z: np.ndarray, rng: Rng, comma: bool) -> list[str]:
    yes, no = BOOLEANS[rng.integers(len(BOOLEANS))]
    return [yes if value > 0.0 else no for value in z.tolist()]


def _dates(z: np.ndarray, rng: Rng, comma: bool) -> list[str]:
    form = rng.integers(10)
    days = np.datetime64("2019-03-05") + np.round(200.0 * z).astype("timedelta64[D]")
    texts = []
    for day, minute in zip(days.tolist(), rng.integers(0, 1440, z.size).tolist(), strict=True):
        hour, month = f"{minute // 60:02d}:{minute % 60:02d}", MONTHS[day.month - 1]
        texts.append(
            (
                f"{day:%Y-%m-%d}",
                f"{day:%d.%m.%Y}",
                f"{day:%m/%d/%Y}",
                f"{day:%d/%m/%y}",
                f"{day:%Y-%m-%d}T{hour}:00Z",
                f"{day:%Y-%m-%d} {hour}",
                f"{day.day} {month} {day.year}",
                f"{day:%Y%m%d}",
                f"{day:%Y-%m}",
                f"{month}-{day:%y}",
            )[form]
        )
    return texts


def _times(z: np.ndarray, rng: Rng, comma: bool) -> list[str]:
    form = rng.integers(5)
    seconds = np.clip(np.round(4000.0 + 1500.0 * z), 1, 86_399).astype(int).tolist()
    forms: tuple[Callable[[int], str], ...] = (
        lambda s: f"{s // 3600:02d}:{s // 60 % 60:02d}",
        lambda s: f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}",
        lambda s: f"{s // 3600}h {s // 60 % 60}m",
        lambda s: f"{s // 60}:{s % 60:02d}",
        lambda s: f"{s // 3600 % 12 + 1}:{s // 60 % 60:02d} {'AM' if s < 43200 else 'PM'}",
    )
    return [forms[form](s) for s in seconds]


def _ids(z: np.ndarray, rng: Rng, comma: bool) -> list[str]:
    first = int(rng.choice([0, 1, 1000]))
    prefix = str(rng.choice(["", "", "K-", "user_"]))
    return [f"{prefix}{first + k}" for k in range(z.size)]


def _texts(z: np.ndarray, rng: Rng, comma: bool) -> list[str]:
    most = int(rng.choice([3, 30, 120]))
    return [" ".join(rng.choice(WORDS, int(rng.integers(1, most)))) for _ in range(z.size)]


def _constant(z: np.ndarray, rng: Rng, comma: bool) -> list[str]:
    return [str(rng.choice(["", "7", "0", "same", "2020-01-01", "3,5" if comma else "3.5", "-999"]))] * z.size


def _mixed(z: np.ndarray, rng: Rng, comma: bool) -> list[str]:
    """Return numbers among which some are none."""
    odd = str(rng.choice(["call us", "<5", "1e5", "12abc", "1/2", "5-10", "(3)", "1 200", "∞", "0x1F", "TRUE"]))
    cells = [_number(value, 1, comma, False) for value in (10.0 * z).tolist()]
    return [odd if rng.random() < 0.08 else cell for cell in cells]


KINDS = (
    *(3 * (_amounts, _amounts, _whole, _labels, _labels, _booleans, _dates)),
    *(_times, _times, _ids, _texts, _constant, _mixed),
)


def make_rows(rng: Rng) -> tuple[list[str], list[list[str]]]:
    """Return the names and rows of a table, all texts."""
    n_row = int(rng.choice([1, 2, 5, 20, 40, 60, 90, 120], p=[0.03, 0.03, 0.04, 0.15, 0.2, 0.2, 0.2, 0.15]))
    n_column = int(rng.choice([1, 2, 3, 4, 5, 6, 8, 40], p=[0.06, 0.1, 0.2, 0.22, 0.2, 0.12, 0.07, 0.03]))
    comma, shared = rng.random() < 0.3, rng.normal(size=n_row)
    columns = []
    for _ in range(n_column):
        z = 0.7 * shared + 0.7 * rng.normal(size=n_row)
        cells = KINDS[rng.integers(len(KINDS))](z, rng, comma)
        if rng.random() < 0.35:
            gap, share = str(rng.choice(GAPS)), float(rng.choice([0.05, 0.3, 0.9]))
            cells = [gap if rng.random() < share else cell for cell in cells]
        columns.append(cells)
    names = [str(name) for name in rng.choice(NAMES, n_column)]  # which may repeat
    plain = rng.random() < 0.5
    names = [f"c{k}" if plain or n_column > 8 else name for k, name in enumerate(names)]
    if rng.random() < 0.05:
        names[int(rng.integers(n_column))] = ""
    return names, [list(row) for row in zip(*columns, strict=True)]


def _delimited(names: Sequence[str], rows: Sequence[Sequence[str]], sep: str, rng: Rng) -> str:
    text = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if rng.random() < 0.2 else csv.QUOTE_MINIMAL
    end = "\r\n" if rng.random() < 0.3 else "\n"
    writer = csv.writer(text, delimiter=sep, quoting=quoting, lineterminator=end)
    writer.writerows([names, *rows] if names else rows)
    return text.getvalue().removesuffix(end if rng.random() < 0.2 else "\0")


def _write_text(folder: Path, names: list[str], rows: list[list[str]], rng: Rng) -> tuple[Path, str]:
    sep = (",", ",", ",", ";", "\t", "|")[rng.integers(6)]
    suffix = ".tsv" if sep == "\t" else (".csv", ".csv", ".txt")[rng.integers(3)]
    encoding = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1")[rng.integers(6)]
    text = _delimited(names, rows, sep, rng)
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError:
        encoding, data = "utf-8", text.encode()
    zipped = rng.random() < 0.12
    path = folder / f"table{suffix}{'.gz' if zipped else ''}"
    path.write_bytes(gzip.compress(data, 1) if zipped else data)
    return path, f"{sep!r} {encoding}"


def _write_json(folder: Path, names: list[str], rows: list[list[str]], rng: Rng) -> tuple[Path, str]:
    path = folder / "table.jsonl"
    lines = []
    for row in rows:
        cells = {name: json.loads(cell) if _is_number(cell) else cell for name, cell in zip(names, row, strict=False)}
        lines.append(json.dumps({name: cell or None if cell == "" else cell for name, cell in cells.items()}))
    path.write_text("\n".join(lines))
    return path, "json lines"


def _is_number(text: str) -> bool:
    try:
        return type(json.loads(text)) in (int, float)
    except ValueError:
        return False


def _write_frame(folder: Path, names: list[str], rows: list[list[str]], rng: Rng) -> tuple[Path, str]:
    import pandas as pd

    frame = pd.DataFrame([[cell or None for cell in row] for row in rows], columns=names, dtype=object)
    for k, name in enumerate(names):
        cells = frame[name]
        if all(cell is None or _is_number(cell) for cell in cells):
            frame = frame.assign(**{name: pd.to_numeric(cells)})
        elif k % 2 and all(cell is None or (len(cell) == 10 and cell[4::3] == "--") for cell in cells):
            frame = frame.assign(**{name: pd.to_datetime(cells, errors="coerce")})
    if rng.random() < 0.5:
        path = folder / "table.parquet"
        frame.to_parquet(path, index=False)
    else:
        path = folder / "table.xlsx"
        frame.to_excel(path, index=False)
    return path, "frame"


def make_sheet(folder: Path, rng: Rng) -> Sheet:
    """Write a file into a folder."""
    names, rows = make_rows(rng)
    typed = rng.random() < 0.15 and len(set(names)) == len(names) and all(names)
    if typed and rng.random() < 0.4:
        path, about = _write_json(folder, names, rows, rng)
        return Sheet(path, names, rows, about)
    if typed:
        path, about = _write_frame(folder, names, rows, rng)
        return Sheet(path, names, rows, about)
    if rng.random() < 0.12:
        names = []
    if rng.random() < 0.06 and len(rows) > 2:  # ragged: a cell too few, or too many
        row = rows[int(rng.integers(len(rows)))]
        if rng.random() < 0.5 and len(row) > 1:
            row.pop()
        else:
            row.append("extra")
    path, about = _write_text(folder, names, rows, rng)
    return Sheet(path, names, rows, about)
