"""What sets groups of rows apart from all rows: column by column, as numbers and in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.defaults import EXPLAINED_DIFFERENCE, EXPLAINED_FACTS
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.boxes import Box
from bayesjpt.queries.distribution import quantile
from bayesjpt.queries.event import rendered_name
from bayesjpt.queries.given import box_log_probability
from bayesjpt.queries.resolve import value_name
from bayesjpt.table.schema import Column

_MOSTLY = (0.1, 0.9)
"""Between which quantiles most values lie."""

_DECILES = np.arange(0.1, 0.95, 0.1)


def features_of(group: Posterior) -> dict[str, np.ndarray]:
    """Return (n_group, n_column) arrays of what each group's columns are like; the first group is the whole table."""
    n_group, schema = group.n_draw, group.schema
    out = {name: np.full((n_group, len(schema)), np.nan) for name in ("difference", "lower", "upper")}
    out |= {name: np.full((n_group, len(schema)), np.nan) for name in ("label_probability", "label_whole")}
    out["label"] = np.full((n_group, len(schema)), "", object)
    numbers = [c for c, column in enumerate(schema) if column.base != "category"]
    points = {}
    if numbers:
        names = [schema.names[c] for c in numbers]
        ends = quantile(group, list(_MOSTLY), names).values[0]
        out["lower"][:, numbers], out["upper"][:, numbers] = ends[:, 0], ends[:, 1]
        whole = replace(group, params=Params(*(array[:, :1] for array in group.params)))
        deciles = quantile(whole, list(_DECILES), names).values[0, 0]
        points = {c: [[-np.inf, x] for x in deciles[:, j]] for j, c in enumerate(numbers)}
    for c, column in enumerate(schema):
        if column.base == "category":
            points[c] = [[code, code] for code in range(column.n_label)]
    boxes = [Box({c: np.array([ends])}) for c, intervals in points.items() for ends in intervals]
    found = np.exp(box_log_probability(group, group.plan(), boxes))
    first = 0
    for c, intervals in points.items():
        probability = found[:, first : first + len(intervals)]
        first += len(intervals)
        gap = probability - probability[0]
        if schema.columns[c].base != "category":
            out["difference"][:, c] = np.abs(gap).max(axis=1)
            continue
        out["difference"][:, c] = 0.5 * np.abs(gap).sum(axis=1)
        label = np.argmax(gap, axis=1)
        label[0] = np.argmax(probability[0])
        out["label"][:, c] = [schema.columns[c].code_names[code] for code in label]
        out["label_probability"][:, c] = probability[np.arange(n_group), label]
        out["label_whole"][:, c] = probability[0, label]
    out["label"] = out["label"].astype(str)
    return out


def facts_of(
    post: Posterior, features: Mapping[str, np.ndarray], row: int, *, known: Collection[int] = ()
) -> tuple[str, ...]:
    """Return what sets a group apart, in words, the most different column first, but for columns that are `known`."""
    difference = features["difference"][row].copy()
    difference[sorted(known)] = -np.inf
    order = np.argsort(-difference, kind="stable")[:EXPLAINED_FACTS]
    return tuple(
        _fact(post.schema.columns[c], features, row, int(c)) for c in order if difference[c] >= EXPLAINED_DIFFERENCE
    )


def _fact(column: Column, features: Mapping[str, np.ndarray], row: int, c: int) -> str:
    name = rendered_name(column.name)
    if column.base == "category":
        label, p = str(features["label"][row, c]), features["label_probability"][row, c]
        label_text = value_name(column, column.code_names.index(label))
        return f"{name} = {label_text} {p:.0%} (whole table {features['label_whole'][row, c]:.0%})"
    ends = [features[end][g, c] for g in (row, 0) for end in ("lower", "upper")]
    lo, hi, whole_lo, whole_hi = (value_name(column, x) for x in rounded(column, ends))
    interval = f"mostly {lo} to {hi}" if lo != hi else f"mostly {lo}"
    return f"{name} {interval} (whole table {whole_lo} to {whole_hi})"


def percent(share: float) -> str:
    """Return a share in words."""
    return "<1%" if 0.0 < share < 0.01 else f"{share:.0%}"


def rounded(column: Column, ends: Sequence[float]) -> list[float]:
    """Return numbers without more digits than their differences need; infinite ones as they are."""
    step = _step(column, [x for x in ends if math.isfinite(x)] or [0.0])
    return [_multiple(round, x, step) for x in ends]


def rounded_outwards(column: Column, lo: float, hi: float) -> tuple[float, float]:
    """Return the ends of an interval that holds another one, without more digits than its length needs."""
    step = _step(column, [lo, hi])
    slack = 1e-9  # so that a number that has these digits already stays
    down, up = lambda n: math.floor(n + slack), lambda n: math.ceil(n - slack)
    return _multiple(down, lo, step), _multiple(up, hi, step)


def _step(column: Column, ends: Sequence[float]) -> float:
    part = max(ends) / 20.0 - min(ends) / 20.0  # apart, since a difference of numbers may be infinite
    step = 10.0 ** math.floor(math.log10(part)) if part >= np.finfo(float).tiny else column.resolution
    return max(step, 1.0) if column.base == "integer" or (column.dtype == "datetime" and part > 1.0) else step


def _multiple(to_whole: Callable[[float], int], x: float, step: float) -> float:
    """Return x to a multiple of the step; as it is where it has no digits as fine, infinite among others."""
    n = x / step
    if not abs(n) < 1.0 / np.finfo(float).eps:
        return x
    _, _, exponent = Decimal(repr(step)).as_tuple()  # a step of .25 has two digits, one of .1 has one
    return round(to_whole(n) * step, max(0, -int(exponent))) + 0.0
