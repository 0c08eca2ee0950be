"""Delimited text, in UTF-8, to cells. Small files by the standard library, large ones by Arrow, to the same cells."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import os
import re
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bayesjpt import defaults
from bayesjpt.errors import BayesjptWarning, TableError, warn
from bayesjpt.table import cells as cells_of
from bayesjpt.table import header as header_of
from bayesjpt.table import preamble
from bayesjpt.table.cells import Cells
from bayesjpt.table.reading import Reading

_EDGE, _WIDE_GAP = re.compile(rb"(?m)^ +| +(?=\r?$)"), re.compile(rb" {2,}")
_SEPARATORS = (",", ";", "\t", "|")
_N_ROW_CHUNK = 65_536
_LARGE_BYTES = 2**21
"""From here on loading Arrow takes less time than it saves."""
_LARGEST_FIELD = 2**31 - 1
"""A C long holds it on every system."""
_N_HEAD_LINES = 256
"""Lines in which separator and header are looked for; quoted cells may hold line ends."""


class Layout(NamedTuple):
    """Where the cells of a text are.

    Attributes
    ----------
    start : int
        Byte at which the records begin, header included.
    separator : str
    names : list of str
        Distinct names of all columns.
    header : list of str
        What the header row holds; what the columns are called where there is none.
    has_header : bool
    n_below : int
        Rows of units, or of more names, below the header.
    """

    start: int
    separator: str
    names: list[str]
    header: list[str]
    has_header: bool
    n_below: int = 0


def read_text(content: bytes, name: str, reading: Reading, *, as_written: bool) -> tuple[list[Cells], str]:
    """Return the cells of each column of a text, and the separator.

    Parameters
    ----------
    content : bytes
        In UTF-8.
    name : str
        Of the file.
    reading : Reading
    as_written : bool
        Whether cells are texts whatever they say, so that they can be written again as they were read.

    Raises
    ------
    TableError
        Where the text is empty or ragged, or its quotes do not close.
    """
    # the library's own bound is for the whole process; lines were measured when the file was read
    csv.field_size_limit(max(csv.field_size_limit(), min(len(content), _LARGEST_FIELD)))
    try:
        if reading.sep is None and reading.header is None and _is_apart_by_spaces(content):
            content, reading = _WIDE_GAP.sub(b" ", _EDGE.sub(b"", content)), replace(reading, sep=" ")
            warn(f"cells of {name!r} are read as apart by spaces")
        layout = _layout(content, name, reading)
    except csv.Error as error:
        raise TableError(f"file {name!r} cannot be read: {error}") from None
    if reading.sep is not None and layout.has_header and len(layout.names) == 1:
        _tell_of_another_separator(content, layout, name)
    if len(content) >= _LARGE_BYTES:
        table = _by_arrow(content, layout, name, as_written)
        if table is not None:
            return _without_empty_end(table, layout, name), layout.separator
    table = _by_csv(content, layout, name, reading.header is None)
    return _without_empty_end(table, layout, name), layout.separator


def _tell_of_another_separator(content: bytes, layout: Layout, name: str) -> None:
    """Warn of a table of one column by the separator given, whose lines another one cuts into as many cells each."""
    head = list(itertools.islice(_lines(content, layout.start), _N_HEAD_LINES))
    other = separator_of(name, head)
    n_cell = {len(record) for record in _Head.of(head, other).records}
    if len(head) > 1 and other != layout.separator and len(n_cell) == 1 and max(n_cell) > 1:
        warn(f"{name!r} has one column by the separator {layout.separator!r}, and {max(n_cell)} by {other!r}")


def strict_records(lines: Iterable[str], separator: str, name: str, n_above: int) -> Iterator[list[str]]:
    """Yield the records of a text, of whose lines some above are left out.

    Raises
    ------
    TableError
        Where quotes do not close, or a cell goes on behind them, by its line.
    """
    reader = csv.reader(lines, delimiter=separator, strict=True)
    line = n_above + 1
    try:
        for record in reader:
            line = n_above + reader.line_num + 1
            yield record
    except csv.Error as error:
        failed, found = f"file {name!r} cannot be read", str(error)
        if _OPEN in found:
            raise TableError(
                f"{failed}: quotes that open in line {line} are not closed", "quotes around whole cells"
            ) from None
        if _BEHIND in found:
            raise TableError(
                f"{failed}: a cell of line {line} goes on behind its quotes",
                f"{separator!r} between cells, and quotes doubled within them",
                "Where another separator is meant, name it by sep=.",
                command="Where another separator is meant, name it by --sep.",
            ) from None
        raise TableError(f"{failed}, from line {line} on: {found}") from None


_OPEN, _BEHIND = "unexpected end of data", "expected after"
"""What the standard library says of quotes that are not closed, and of what stands right behind closed ones."""


def _is_apart_by_spaces(content: bytes) -> bool:
    """Return whether lines without a separator are names above values, as many in each, with spaces between them."""
    head = [line for line in itertools.islice(_lines(content), _N_HEAD_LINES) if line.strip()]
    if len(head) < 3 or any(separator in head[0] for separator in _SEPARATORS) or any('"' in line for line in head):
        return False
    if header_of.is_value([line.strip() for line in head[1:]]):
        return False  # 1 234 567, or 2 January 2024
    records = [line.split() for line in head]
    return len({len(record) for record in records}) == 1 < len(records[0]) - 1 and header_of.names_values(
        records[0], records[1:]
    )


def _lines(content: bytes, start: int = 0) -> Iterator[str]:
    file = io.BytesIO(content)
    file.seek(start)
    return io.TextIOWrapper(file, encoding="utf-8", errors="surrogatepass", newline="")


def _layout(content: bytes, name: str, reading: Reading) -> Layout:
    head = list(itertools.islice(_lines(content), _N_HEAD_LINES))
    start = 0
    separator = named_separator(head)
    if separator is not None:
        start = len(head[0].encode("utf-8", "surrogatepass"))
        head = head[1:]
    plain = list(itertools.dropwhile(lambda line: line.startswith("#"), head)) or head
    separator = reading.sep or separator or separator_of(name, plain)
    head_of = _Head.of(head, separator)
    n_above = 0
    if reading.header is None:
        others = () if reading.sep or start else _SEPARATORS
        head_of, n_above = _below_titles(head_of, head, others)
        separator = head_of.separator
    if n_above:
        preamble.tell(name, head_of.lines[n_above], head_of.records[0])
        start += sum(len(line.encode("utf-8", "surrogatepass")) for line in head[: head_of.lines[n_above]])
    records = head_of.records[n_above:]
    first = records[0] if records else []
    if not any(first):
        raise TableError(f"file {name!r} is empty", "a header line with the names of the columns")
    has_header = reading.header
    if has_header is None:
        has_header = header_of.holds_names(first, records[1:])
    if has_header:
        alike = [record for record in records[1:] if len(record) == len(first)]
        found, n_below = preamble.names_of(first, alike if reading.header is None else [], name)
        return Layout(start, separator, found, first, True, n_below)
    names = header_of.numbered(len(first), first, name, is_stated=reading.header is False)
    return Layout(start, separator, names, names, False)


class _Head(NamedTuple):
    """The first records of a text, stripped, and the number of lines before each."""

    separator: str
    records: list[list[str]]
    lines: list[int]

    @classmethod
    def of(cls, head: Sequence[str], separator: str) -> _Head:
        # not strict: the last record may be cut where the head ends within its quotes
        reader = csv.reader(head, delimiter=separator)
        records, lines, n_line = [], [], 0
        for record in reader:
            if record:
                records.append([text.strip() for text in record])
                lines.append(n_line)
            n_line = reader.line_num
        return cls(separator, records, lines)

    def n_above(self) -> int:
        """Return the number of records above the table."""
        filled = [k for k, record in enumerate(self.records) if any(record)]
        if not filled or filled[0]:
            return 0
        is_apart = [
            k > 0 and (filled[k - 1] != at - 1 or self.lines[at] - self.lines[at - 1] > 1 + self._n_break(at - 1))
            for k, at in enumerate(filled)
        ]
        found = preamble.n_above([self.records[k] for k in filled], is_apart)
        return filled[found] if found else 0

    def _n_break(self, k: int) -> int:
        """Return the number of line ends within the cells of a record."""
        return sum(len(cell.splitlines()) - 1 for cell in self.records[k] if cell)


def _below_titles(first_head: _Head, head: Sequence[str], separators: Sequence[str]) -> tuple[_Head, int]:
    """Return the records by the separator under which a table has rows above it, and their number; else what was found.

    Other separators are tried where the second record, or most, have another number of cells than the first, or one.
    """
    n_above = first_head.n_above()
    first = len(first_head.records[0]) if first_head.records else 0
    n_alike = sum(len(record) == first for record in first_head.records)
    if n_above or (first > 1 and 2 * n_alike > len(first_head.records) and len(first_head.records[:2][-1]) == first):
        return first_head, n_above
    for separator in separators:
        other = _Head.of(head, separator)
        n_above = other.n_above()
        if n_above:
            return other, n_above
    return first_head, 0


def named_separator(head: Sequence[str]) -> str | None:
    """Return the separator that a first line ``sep=;`` names, as Excel writes and reads it, or None."""
    found = re.fullmatch(r'"?sep=([^\r\n"])"?[\r\n]*', head[0], re.IGNORECASE) if head else None
    return found[1] if found else None


def around_names(head: bytes, name: str) -> str:
    """Return in words what the first bytes of a text hold beside names and the table's rows; empty for nothing."""
    lines = head[: head.rfind(b"\n") + 1].removeprefix(codecs.BOM_UTF8)
    if not lines.strip():
        return ""
    text = lines.decode("utf-8", "replace")
    separator = named_separator(text.splitlines(keepends=True)[:1])
    if separator is not None:
        text = text.partition("\n")[2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BayesjptWarning)
        layout = _layout(text.encode(), name, Reading(sep=separator))
    if layout.start:
        return "rows above the names of its columns"
    if not layout.has_header:
        return "a first row that looks like the others"
    return "a row of units, or more names, below the names of its columns" if layout.n_below else ""


def separator_of(name: str, head: Sequence[str]) -> str:
    """Return the tab of a .tsv file, otherwise one of comma, semicolon, tab and bar.

    The first of them that header and first record hold equally often, or else the first that the header holds. Commas
    below a name that holds none are those of numbers.
    """
    if name.lower().endswith((".tsv", ".tsv.gz")):
        return "\t"
    n_line = _n_record_lines(head)
    rest = [line for line in head[n_line:] if line.strip("\r\n")]
    header, record = _unquoted(head[:n_line]), _unquoted(rest[: _n_record_lines(rest)])
    held = [separator for separator in _SEPARATORS if separator in header]
    if not held and "," in record and header_of.is_value([line.strip() for line in rest]):
        return "\t"
    return next((one for one in held if header.count(one) == record.count(one)), held[0] if held else ",")


def _n_record_lines(lines: Sequence[str]) -> int:
    """Return the number of lines of the first record, which ends where its quotes are balanced."""
    n_quote = 0
    for position, line in enumerate(lines, start=1):
        n_quote += line.count('"')
        if n_quote % 2 == 0:
            return position
    return len(lines)


def _unquoted(lines: Sequence[str]) -> str:
    return re.sub(r'"[^"]*"', "", "".join(lines))


def _records(content: bytes, layout: Layout, name: str) -> Iterator[list[str]]:
    n_above = content[: layout.start].count(b"\n")
    return strict_records(_lines(content, layout.start), layout.separator, name, n_above)


def _by_csv(content: bytes, layout: Layout, name: str, may_end: bool) -> list[Cells]:
    """Return the cells of a text, row by row; without totals and remarks below the table, where it may end before."""
    names = layout.names
    records = filter(None, _records(content, layout, name))
    for _ in range(layout.has_header + layout.n_below):
        next(records)
    # each column numbers its distinct texts as they come: one string is kept for each, whatever the number of rows
    numbers: list[defaultdict[str, int]] = [defaultdict() for _ in names]
    for number in numbers:
        number.default_factory = number.__len__
    codes: list[list[np.ndarray]] = [[] for _ in names]
    n_row = 0
    while rows := list(itertools.islice(records, _N_ROW_CHUNK)):
        for offset, row in enumerate(rows):
            if len(row) != len(names):
                rest = [*rows[offset:], *itertools.islice(records, _N_ROW_CHUNK)]
                if n_row + offset and preamble.is_below(rest, len(names)):
                    preamble.tell_below(name, rest, is_kept_by_option=False)
                    rows = rows[:offset]
                    break
                raise ragged(name, n_row + offset + 1, row, len(names), has_header=layout.has_header)
        is_whole = may_end and not n_row and len(rows) < _N_ROW_CHUNK
        n_below = preamble.n_below(rows) if is_whole else 0
        if is_whole and not n_below:
            preamble.tell_of_total(name, rows)
        if n_below:
            preamble.tell_below(name, rows[-n_below:], is_kept_by_option=True)
            rows = rows[:-n_below]
        for number, parts, column in zip(numbers, codes, zip(*rows, strict=True), strict=True):
            parts.append(np.fromiter(map(number.__getitem__, column), np.int64, len(rows)))
        n_row += len(rows)
    return [
        cells_of.from_text(name, list(number), np.concatenate([*parts, np.empty(0, np.int64)]))
        for name, number, parts in zip(names, numbers, codes, strict=True)
    ]


def ragged(name: str, number: int, record: Sequence[str], n_cell: int, *, has_header: bool = True) -> TableError:
    """Return what is said of a row, numbered from 1, with another number of cells than its file's first."""
    return TableError(
        f"data row {number} of {name!r} has {len(record)} cell{'s' * (len(record) != 1)}",
        f"{n_cell} as in the {'header line' if has_header else 'first one'}",
        "Put quotes around cells that hold the separator.",
    )


def _without_empty_end(table: list[Cells], layout: Layout, name: str) -> list[Cells]:
    """Return columns but for those without name and cells.

    A separator at the beginning or end of each line makes such a column; of others a warning tells.
    """
    n_row = table[0].codes.size
    return preamble.without_empty(table, layout.header, name) if n_row else table


def holds_line_end(column: Any) -> bool:
    """Return whether a cell of Arrow's texts holds a line end.

    So does one whose quotes do not close: Arrow reads on to the next quotes, or to the end of the file.
    """
    import pyarrow.compute

    compute: Any = pyarrow.compute  # its functions are made when it is imported
    return any(compute.any(compute.match_substring(column, end)).as_py() for end in "\n\r")


def _by_arrow(content: bytes, layout: Layout, name: str, as_written: bool) -> list[Cells] | None:
    """Return the cells of a large text; None where Arrow refuses it, for the other way to say why.

    Raises
    ------
    TableError
        Where quotes do not close.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    try:
        table = arrow_csv.read_csv(
            pa.BufferReader(memoryview(content)[layout.start :]),
            arrow_csv.ReadOptions(column_names=layout.names, skip_rows_after_names=layout.has_header + layout.n_below),
            arrow_csv.ParseOptions(delimiter=layout.separator, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(layout.names, pa.string()), strings_can_be_null=False, check_utf8=False
            ),
        )
    except (pa.ArrowException, UnicodeError):
        return None
    if any(map(holds_line_end, table.columns)):
        for _ in _records(content, layout, name):
            pass
    with ThreadPoolExecutor(min(len(layout.names), os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda name: _arrow_cells(name, table.column(name), as_written), layout.names))


def _arrow_cells(name: str, column: Any, as_written: bool) -> Cells:
    """Return the cells of a column of texts; those of plain numbers at once, without a text for each."""
    import pyarrow as pa
    from pyarrow import compute

    if not as_written:
        values = _plain_numbers(column, pa, compute)
        if values is not None:
            return cells_of.from_floats(name, values)
    coded = column.dictionary_encode().unify_dictionaries()
    distinct = coded.chunk(0).dictionary.to_pylist() if coded.num_chunks else []
    codes = np.concatenate([np.empty(0, np.int64), *(chunk.indices.to_numpy() for chunk in coded.chunks)])
    return cells_of.from_text(name, distinct, codes.astype(np.int64))


def _plain_numbers(column: Any, pa: Any, compute: Any) -> np.ndarray | None:
    """Return the numbers of a column of texts, NaN where missing; None where not every text is a plain number.

    That is one without leading zeros, which make a code, finite, and of no more digits than float64 tells apart.
    """
    try:
        found = compute.cast(column, pa.float64())
    except pa.ArrowInvalid:
        texts = compute.utf8_trim_whitespace(column)
        is_missing = compute.is_in(texts, value_set=pa.array(sorted(cells_of.MISSING_TOKENS)))
        column = compute.if_else(is_missing, pa.scalar(None, pa.string()), texts)
        try:
            found = compute.cast(column, pa.float64())
        except pa.ArrowInvalid:
            return None
    known = found.drop_null().to_numpy()
    if not known.size or not (np.abs(known) < defaults.LARGEST_INTEGER).all():  # neither NaN nor an infinity is
        return None
    if compute.any(compute.match_substring_regex(column, "^[+-]?0[0-9]")).as_py():
        return None
    return found.to_numpy()
