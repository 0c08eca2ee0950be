"""Columns of labels: their order, their shares, and what a schema document may say about them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bayesjpt import defaults
from bayesjpt.errors import SchemaError, TableError, warn
from bayesjpt.table import cells as cells_of
from bayesjpt.table.cells import Cells
from bayesjpt.table.ordered_labels import known_order
from bayesjpt.table.overrides import LABEL_KINDS, Override
from bayesjpt.table.schema import Column, closest
from bayesjpt.table.written_numbers import number_readings


def category(view: Cells, reason: str, override: Override) -> Column:
    """Return what a column of labels is.

    Raises
    ------
    SchemaError
        Where it has too many labels, or one that the override does not list.
    TableError
        Where a label cannot be stored.
    """
    if view.stored == "text":
        _check_storable(view)
    labels = cells_of.labels_of(view)
    counts = dict(zip(labels, view.counts().tolist(), strict=True))
    if override.labels is not None:
        _check_listed(view, labels, override)
        labels = list(override.labels)
    elif view.labels:
        labels = list(view.labels)
    elif view.stored == "boolean" and len(labels) == 2:
        labels = ["False", "True"]
    elif view.stored == "text":
        is_ordinal = override.families == LABEL_KINDS["ordinal"]
        labels = _ordered_labels(labels, view.name) if is_ordinal else _sorted_labels(labels)
    most = defaults.MAX_LABELS if override.base is None else defaults.MAX_FORCED_LABELS
    if len(labels) > most:
        raise SchemaError(
            f"column {view.name!r} has {len(labels)} labels in {view.n_observed} observed cells",
            f"at most {most} for a category",
            "Is it an identifier or a text? Group rare labels, or leave it out: "
            f"{override.remedy(view.name, 'excluded')}.",
            command="Is it an identifier or a text? Group rare labels, or leave it out: "
            f"{override.command(view.name, 'excluded')}.",
        )
    # an order that the data declare is asked for as one of `kinds` is, unless somebody asks for something else
    kept = override.families or (LABEL_KINDS["ordinal"] if view.is_ordered and override.base is None else ())
    return Column(
        view.name,
        "category",
        (0.0, float(len(labels) - 1 + override.other)),
        labels=tuple(labels),
        frequencies=smoothed([counts.get(label, 0) for label in labels] + [0] * override.other),
        families=kept if override.source or len(labels) > 2 else (),  # two labels are ordered either way
        other=override.other,
        n_missing=view.n_missing,
        n_distinct=view.n_distinct,
        dtype=view.stored,
        reason=reason,
    )


def _check_storable(view: Cells) -> None:
    bad = [label for label in (view.labels or view.distinct) if cells_of.unstorable(label)]
    if bad:
        used = [position for position, label in enumerate(view.distinct) if label in bad]
        row, label = view.first(used) if used else (None, bad[0])
        raise TableError(
            f"column {view.name!r} holds {label!r}, with a NUL or a lone surrogate, "
            + (f"in row {row}" if row else "among its declared labels"),
            "characters that can be stored",
            "Mend the text.",
        )


def _check_listed(view: Cells, labels: Sequence[str], override: Override) -> None:
    """Raise `SchemaError` where an override lists labels that the column cannot have, or omits one that it has."""
    assert override.labels is not None
    where = override.at("labels")
    for label in override.labels:
        if cells_of.label_as_stored(label, view.stored) != label:
            raise SchemaError(
                f"{where} lists the label {label!r} of column {view.name!r}",
                f"the label of a {view.stored}, as in {', '.join(map(repr, labels[:3]))}",
            )
    listed = set(override.labels)
    missing = [position for position, label in enumerate(labels) if label not in listed]
    if missing:
        row, _ = view.first(missing)
        label = labels[int(view.codes[row - 1])]
        raise SchemaError(
            f"column {view.name!r} holds {label!r} in row {row}, a label that {where} does not list",
            closest(label, override.labels),
            "Add it to the labels, or mend the cell.",
        )


def _ordered_labels(labels: Sequence[str], name: str) -> list[str]:
    """Return labels in the order that people know, or that of their numbers; warn of one that is only alphabetical."""
    known = known_order(labels)
    if known is not None or _numbers_of(labels) is not None or len(labels) < 3:
        return list(known.labels) if known is not None else _sorted_labels(labels)
    ordered = sorted(labels, key=_natural)
    more = " < ..." if len(ordered) > _N_SHOWN else ""
    warn(
        f"the order of the labels of column {name!r} is not known and taken from the alphabet: "
        f"{' < '.join(ordered[:_N_SHOWN])}{more} (write yours into the document of bayesjpt schema, and hand it back "
        f"with schema=, or --schema)"
    )
    return ordered


_N_SHOWN = 5
"""Labels that a warning shows."""


def _natural(label: str) -> tuple[list[str | tuple[int, str]], str]:
    """Return by what labels are ordered: their characters, and the numbers among them by size: 1.9.2, 1.10.0."""
    parts = re.split(r"(\d+)", label)  # texts and numbers in turn, so each meets its like
    sizes = [(len(part.lstrip("0")), part.lstrip("0")) if k % 2 else part for k, part in enumerate(parts)]
    return sizes, label


def _sorted_labels(labels: Sequence[str]) -> list[str]:
    """Return labels in numeric order where all are numbers, otherwise in the order of their characters."""
    numbers = _numbers_of(labels)
    return sorted(labels) if numbers is None else [label for _, label in sorted(zip(numbers, labels, strict=True))]


def _numbers_of(labels: Sequence[str]) -> Sequence[float] | None:
    """Return the numbers that labels spell; None where one spells none."""
    numbers = [number for label in labels if (number := cells_of.number_of_text(label)) is not None]
    if len(numbers) == len(labels):
        return numbers
    found = number_readings(labels)
    return None if found is None else found.values[0].tolist()


def smoothed(counts: Sequence[int]) -> tuple[float, ...]:
    """Return shares (count + 1/2) / (n + K/2) over K entries; for labels, the last entry is "other", count 0.

    Examples
    --------
    >>> smoothed([3, 1, 0])
    (0.6363636363636364, 0.2727272727272727, 0.09090909090909091)
    """
    total = sum(counts) + 0.5 * len(counts)
    return tuple((count + 0.5) / total for count in counts)
