"""From the cells of a table to what each column is, with the reason of each decision.

Looks at training rows only, one column at a time. Rules run from what was asked for (`kinds`, or a schema document),
over columns that say nothing about a population (`aside`), to what the values allow (`labels`, `numeric`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bayesjpt import defaults
from bayesjpt.errors import SchemaError, TableError, warn
from bayesjpt.table import atoms as atoms_of
from bayesjpt.table import cells as cells_of
from bayesjpt.table import labels, numeric
from bayesjpt.table.cells import Cells
from bayesjpt.table.excluded import ON_REQUEST, kind_to_suggest, nearly_read, set_aside_reason
from bayesjpt.table.interpret import NO_HINTS, Hints, interpret, tokens_text, without_tokens
from bayesjpt.table.iso_dates import is_iso
from bayesjpt.table.overrides import FORMER_KINDS, KINDS, LABEL_KINDS, NOTHING, Override
from bayesjpt.table.schema import NO_VALUE, Column, Schema, SetAside, closest
from bayesjpt.table.unreadable import Unreadable, unreadable_text, without_unreadable
from bayesjpt.table.written_numbers import plain_notation


def overrides_of_kinds(kinds: Mapping[str, str] | None, names: Sequence[str]) -> dict[str, Override]:
    """Return what `kinds` asks of each column that it names.

    Raises
    ------
    SchemaError
        Where it is no mapping, or names an unknown column or kind.
    """
    if kinds is not None and not isinstance(kinds, Mapping):
        raise SchemaError(f"kinds is a {type(kinds).__name__}", "a mapping from column names to kinds")
    kinds = {
        name: FORMER_KINDS.get(kind, kind) if isinstance(kind, str) else kind for name, kind in (kinds or {}).items()
    }
    for name, kind in kinds.items():
        if name not in names:
            raise SchemaError(f"a kind for column {name!r}, which the table does not have", closest(str(name), names))
        if kind not in (*KINDS, *LABEL_KINDS):
            expected = f"one of {', '.join((*KINDS, *LABEL_KINDS))}"
            raise SchemaError(f"kind {kind!r} of column {name!r} is unknown", expected)
    return {name: _override_of_kind(kind) for name, kind in kinds.items()}


def _override_of_kind(kind: str) -> Override:
    """Return what a kind asks for: ordered and unordered labels are a category with one likelihood."""
    return Override(base="category", families=LABEL_KINDS[kind]) if kind in LABEL_KINDS else Override(base=kind)


@dataclass
class _Decided:
    """What a pass over the columns gathers."""

    hints: Hints = NO_HINTS
    columns: list[Column] = field(default_factory=list)
    read: list[Cells] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)
    constant: list[str] = field(default_factory=list)
    tokens: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    words: list[tuple[Cells, Column]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    remedies: dict[str, str] = field(default_factory=dict)


def decide_schema(
    table: Sequence[Cells], overrides: Mapping[str, Override], hints: Hints = NO_HINTS
) -> tuple[Schema, list[Cells]]:
    """Return the schema of a training table, and its modelled columns' cells as the schema reads them.

    Raises
    ------
    SchemaError
        Where an override contradicts the values, a column has too many labels, or nothing is left to model.
    TableError
        Where a column holds infinities or whole numbers beyond 2^53, or a name or label cannot be stored.
    """
    _check_names(table)
    made = _Decided(hints)
    for cells in table:
        _decide_next(cells, overrides.get(cells.name, NOTHING), made)
    if not made.columns:
        reasons = "; ".join(f"{column.name!r}: {column.reason}" for column in made.set_aside)
        command = remedy = "Add columns that describe the rows, or group rare labels."
        for name, kind in list(made.remedies.items())[:1]:
            remedy = f"Ask for one, for example {overrides.get(name, NOTHING).remedy(name, kind)}."
            command = f"Ask for one, for example {overrides.get(name, NOTHING).command(name, kind)}."
        raise SchemaError(f"no column is left to model ({reasons})", None, remedy, command=command)
    notes = [*made.notes, *_notes_on_words(made.words)]
    if notes:
        _tell(notes)
    if made.tokens:
        warn(f"read as missing among numbers: {tokens_text(made.tokens)}")
    if made.unreadable:
        warn(unreadable_text(made.unreadable))
    if made.constant:
        warn(f"constant columns, which say nothing about others: {', '.join(made.constant)}")
    return Schema(tuple(made.columns), tuple(made.set_aside)), made.read


def _decide_next(cells: Cells, override: Override, decided: _Decided) -> None:
    """Decide one column and note what came of it."""
    if override.base != "category" or override.labels is not None:
        cells, dropped = _without_tokens(cells, override)
        decided.tokens += dropped if override.base != "excluded" else []
    if cells.excluded or not (cells.n_distinct or override.base in ("real", "integer", "date", "category")):
        _exclude(cells, override, decided)
        return
    view, unreadable = interpret(cells, decided.hints), None
    if view.stored == "text" and override.base not in ("category", "excluded"):
        cells, unreadable = without_unreadable(cells, decided.hints)
        view = interpret(cells, decided.hints) if unreadable else view
    found = set_aside_reason(cells, view) if override.base is None or override.source else None
    if override.base == "excluded":
        found = found or ON_REQUEST
    elif override.base is not None:
        found = None
    if found is not None:
        decided.set_aside.append(SetAside(cells.name, found, view.n_missing))
        kind = kind_to_suggest(cells, view)
        if kind:
            decided.remedies[cells.name] = kind
        return
    column, view = decide(cells, view, override, hints=decided.hints)
    decided.notes += [note for note in dict.fromkeys((cells.note, view.note)) if note]
    decided.unreadable += [unreadable] if unreadable else []
    decided.columns.append(column)
    decided.read.append(view)
    decided.words += [(cells, column)] if cells.tokens else []
    if column.n_distinct == 1 and override.base is None:
        decided.constant.append(repr(cells.name))


def _notes_on_words(words: Sequence[tuple[Cells, Column]]) -> list[str]:
    """Return notes on columns of labels many of whose cells say "not applicable", which is read as missing.

    Where columns of numbers hold the same word, it is how the file writes a missing cell.
    """
    usual = {word for cells, column in words if column.base != "category" for word in cells.tokens}
    notes = []
    for cells, column in words:
        if column.base != "category" or cells.token_codes is None or column.n_distinct < 2:
            continue
        # among codes of three letters NAN may be one: an airport, where others write a missing cell
        codes = _CODES.intersection(cells.tokens) if all(map(_IS_CODE.fullmatch, column.labels)) else frozenset[str]()
        for word in sorted((_MAY_BE_ANSWERS.intersection(cells.tokens) | codes) - usual):
            n_cell, n_row = int((cells.token_codes == cells.tokens.index(word)).sum()), cells.codes.size
            option = f"{cells.name}={word}"
            if n_cell >= max(_LEAST_WORDS, _WORD_SHARE * n_row) or word in codes:
                notes.append(
                    f"{word!r} in column {cells.name!r} is read as missing, in {n_cell:,} of {n_row:,} rows (if it is "
                    f"an answer, keep_na={option!r}, or --keep-na {shlex.quote(option)}, keeps it)"
                )
    return notes


_MAY_BE_ANSWERS = frozenset({"N/A", "n/a"})
_CODES, _IS_CODE = frozenset({"NAN"}), re.compile(r"[A-Z]{3}")
_LEAST_WORDS, _WORD_SHARE = 10, 0.1
"""Cells that hold such a word, and their share, from which it may be an answer as others are."""


def _exclude(cells: Cells, override: Override, decided: _Decided) -> None:
    """Note a column that has no values that could be modelled."""
    if override.base is not None and override.base != "excluded":
        raise SchemaError(
            f"{override.at('base')} asks for {override.base!r} but column {cells.name!r} is {cells.excluded}",
            "numbers, texts, booleans or dates",
            "Convert it.",
        )
    n_row = cells.codes.size
    reason, n_missing = (cells.excluded, 0) if cells.excluded else (f"{NO_VALUE} in {n_row} rows", n_row)
    decided.set_aside.append(SetAside(cells.name, reason, n_missing))


def _tell(notes: Sequence[str]) -> None:
    """Warn of how columns were read; what is said of several of them is said once."""
    columns: dict[str, list[str]] = {}
    for note in notes:
        found = _IS_READ.fullmatch(note)
        columns.setdefault(found[2] if found else note, []).append(found[1] if found else "")
    parts, n_column = [], 0
    for remark, heads in columns.items():
        room = max(_N_NOTES - n_column, 0)
        n_column += len(heads)
        if room and heads[0]:
            first, *others = heads[:room]
            others = [head.replace(" is read as ", " as ") for head in others]
            parts.append(
                ", ".join([first, *others]) + (remark.replace(" reads it ", " reads them ") if others else remark)
            )
        elif room:
            parts.append(remark)
    more = f"; and {n_column - _N_NOTES} columns more" if n_column > _N_NOTES else ""
    warn(f"{'; '.join(parts)}{more}")


_IS_READ = re.compile(r"('.*' in column .* is read as [^\s,]+)(.*)")
"""A note on an ambiguous column: what was read, and why and how to read it otherwise."""

_N_NOTES = 4


def _check_names(table: Sequence[Cells]) -> None:
    for position, cells in enumerate(table, start=1):
        if cells_of.unstorable(cells.name):
            raise TableError(
                f"the name {cells.name!r} of column {position}, in the header row, holds a NUL or a lone surrogate",
                "characters that can be stored",
                "Rename it.",
            )


def _without_tokens(cells: Cells, override: Override) -> tuple[Cells, list[tuple[str, str]]]:
    """Return cells without the tokens for missing numbers, and the (token, column) that there were.

    A token that the override lists as a label is one.
    """
    kept, tokens = without_tokens(cells)
    if not tokens or not set(tokens).isdisjoint(override.labels or ()):
        return cells, []
    if override.base is None and cells_of.zero_padded(kept):  # codes with leading zeros are labels
        return cells, []
    return kept, [(token, cells.name) for token in tokens]


def decide(cells: Cells, view: Cells, override: Override = NOTHING, *, hints: Hints = NO_HINTS) -> tuple[Column, Cells]:
    """Return what one column, as stored and as interpreted, is, and its cells as the decision reads them.

    Raises
    ------
    SchemaError
        Where the column has no observed cell, or the override contradicts its values.
    TableError
        Where it holds infinities or whole numbers beyond 2^53.
    """
    if not cells.n_distinct:
        raise SchemaError(
            f"column {cells.name!r} has no observed cell in {cells.codes.size} rows",
            None,
            f"Drop it, or leave it out with {override.remedy(cells.name, 'excluded')}.",
            command=f"Drop it, or leave it out with {override.command(cells.name, 'excluded')}.",
        )
    if override.base in ("integer", "real"):
        view = numeric.on_request(cells, override, hints)
    elif override.base == "date":
        view, override = numeric.dates_on_request(cells, override, hints), replace(override, base="real")
    if view.stored in ("number", "datetime"):
        numeric.check_finite(view)
        if override.base == "category" and cells_of.inexact(cells):
            view = cells  # as texts no digit is lost
        elif view.stored == "number":
            numeric.check_exact(cells, override)
    if view.stored == "number":
        plain = plain_notation(cells.distinct.tolist()) if view.notation is None and cells.stored == "text" else None
        is_coded = _is_coded(view, override)
        if plain is not None and (not is_coded or plain.negative != "-"):
            view = replace(view, notation=plain)
        if is_coded and (view.notation is not None or view.note):
            view = cells  # labels are shown as they are written
    column = replace(_column(view, override), notation=view.notation, is_yes_no=view.is_yes_no)
    if view.notation is not None and not is_iso(column):
        column = replace(column, reason="; ".join(filter(None, (column.reason, view.notation.in_words()))))
    if override.families and (override.source or column.families):
        _check_families(column, override)
    return column, view


def _is_coded(view: Cells, override: Override) -> bool:
    """Return whether numbers are labels all the same."""
    return override.base == "category" or (override.base is None and rule(view)[0] == "category")


def _column(view: Cells, override: Override) -> Column:
    """Return what a column is: what was asked for, or what the rules say."""
    base, reason = rule(view)
    if override.base is not None and override.base != base:
        base, reason = override.base, f"{override.author} asks for {_WORDS[override.base]}"
    if base == "category":
        return labels.category(view, reason, override)
    if base == "integer":
        return numeric.integer(view, reason, override)
    if view.n_distinct == 1:
        return numeric.constant(view, reason, override)
    return numeric.real(view, reason, override)


_OPEN = "The place of other labels is part of an order: leave out other = false, or other=False, or --closed."
_WORDS = {"category": "a category", "integer": "an integer column", "real": "a real column"}


def rule(view: Cells) -> tuple[str, str]:
    """Return (base, reason) of a column's values, whatever was asked for."""
    if view.stored == "boolean":
        return "category", "true or false" if view.n_distinct > 1 else _only_value(view)
    if view.stored == "text":
        if view.n_distinct == 1:
            return "category", _only_value(view)
        if view.is_yes_no:
            return "category", "yes or no"
        stored = "stored as an ordered category" if view.is_ordered else "stored as a category"
        return "category", stored if view.labels else f"text with few labels{nearly_read(view)}"
    if view.n_distinct == 1:
        return "real", _only_value(view)
    if view.stored == "datetime":
        return "real", "dates, in days since 1970-01-01"
    if cells_of.is_whole(view.distinct):
        return _rule_of_whole_numbers(view)
    if numeric.few_and_apart(view):
        return "category", f"only {view.n_distinct} different numbers, far apart on their grid: a code"
    large = abs(view.distinct).max() > defaults.LARGEST_INTEGER
    return "real", "numbers, some beyond 2^53" if large else "numbers, not all whole"


def _only_value(view: Cells) -> str:
    return f"constant: the only value is {cells_of.labels_of(view)[0]!r}"


def _rule_of_whole_numbers(view: Cells) -> tuple[str, str]:
    least, largest = view.distinct[0], view.distinct[-1]
    if view.n_distinct == 2:
        return "category", f"binary: the only values are {least:.0f} and {largest:.0f}"
    span = f"whole numbers from {least:.0f} to {largest:.0f}, {'none' if least >= 0.0 else 'some'} negative"
    found = atoms_of.find(view.distinct, view.counts())
    if found.any() and numeric.is_amount(view, found):
        return "real", f"{span}, that range widely beside an atom"
    return "integer", span


def _check_families(column: Column, override: Override) -> None:
    """Raise `SchemaError` where an override names a likelihood that does not exist or does not fit."""
    from bayesjpt.families import registry

    known = [member.name for member in registry.FAMILIES]
    if set(override.families) == {"atom"}:
        raise SchemaError(
            f"{override.at('families')} leaves column {column.name!r} its atoms alone",
            "a likelihood for the other values as well",
        )
    for name in override.families:
        where = f"{override.at('families')} names the likelihood {name!r} for column {column.name!r}"
        if name not in known:
            raise SchemaError(
                where, closest(name, known), "Import the module that registers a family of your own before."
            )
        if not registry.fits(registry.family(name), column):
            offered = [member.name for member in registry.fitting(column)]
            lo, hi = column.support
            raise SchemaError(
                f"{where}, which does not fit its base {column.base!r} and support {lo:g} to {hi:g}",
                f"one of {', '.join(offered)}" if offered else None,
                _OPEN if name == "ordinal" and column.base == "category" and not column.other else None,
            )
