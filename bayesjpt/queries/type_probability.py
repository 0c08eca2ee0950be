"""The probability that a column is of a type, and the reason in nats: what people would say, given what the values say.

    log P(type) = sum over features of  weight x feature  -  tempering x log(1 + nats behind the best type)  + constant

A log evidence grows with the rows and becomes certain of the family that is least wrong; what people call a type is
wider than its families, and they do not become certain. So evidence counts by the logarithm of the nats that a type is
behind: e nats more than a few are as good as a few. The weights were fitted to columns with documented types.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.look_at import missing_codes
from bayesjpt.queries.type_evidence import NOTHING, Parts, TypeEvidence, type_evidence
from bayesjpt.queries.type_features import DISCRETE, NUMERIC, describe, n_values
from bayesjpt.table.schema import Column

EVIDENCE, OF_LABELS = "evidence of the values", "evidence of the values as labels"
"""Families of labels have free shares: how far they are behind counts by a weight of its own."""
ORDER, REPEATED = "order of the levels", "hardly repeated"

WEIGHTS: Mapping[str, float] = {
    "below zero": 0.05,
    "calendar": 0.08,
    "digits": 0.70,
    "evidence of the values": 0.24,
    "evidence of the values as labels": 0.44,
    "few codes": 0.48,
    "few values": 1.62,
    "from 0": 0.46,
    "from 1": 0.87,
    "hardly repeated": -0.54,
    "in steps": 0.83,
    "its name": 1.08,
    "labels on a scale": 1.09,
    "labels: ordinal": -0.79,
    "letters in a row": 0.90,
    "levels below zero": -0.42,
    "levels not whole": -0.08,
    "next to each other": 0.69,
    "numbers: count": 0.49,
    "numbers: nominal": -0.01,
    "numbers: ordinal": 0.06,
    "numbers: positive": 0.92,
    "numbers: real": -1.46,
    "order of the levels": 0.38,
    "scale": 0.48,
    "small numbers": 0.32,
    "thins out": 0.48,
    "two values: binary": 1.09,
    "two values: count": -0.70,
    "two values: nominal": -0.22,
    "two values: ordinal": -0.16,
    "years": 0.51,
}
"""Nats per feature. Penalised maximum likelihood, each with a normal prior of variance 1/2 (mean 0, but for what the
tables hardly hold: ``tests.papers.type_weights``), on the labels of 31 public tables (21 with documented types, 10 of a
benchmark with numeric or categorical), each table with the same weight: ``python -m tests.papers.type_scores --data DIR
--weights`` prints them, and scores with each table left out."""

_ORDER_RANGE = (-3.0, 6.0)
"""Standard deviations beyond which an order is no better or worse."""

LEAST_REPEATED = 2.0
"""Cells of a value, on average, below which the numbers of a column are no labels. The tables that the weights are
fitted to have hundreds of rows, so no weight says that thirty different ages in thirty rows are not labels."""

_OFTEN_REPEATED = 10.0
"""Cells of a value, on average, from which numbers repeat as labels do: in a fit's 200 reference rows, the rule of 20
different values. Chosen from 5, 6, 7, 8 and 10 on the tables that the weights are fitted to, each left out."""

_MENTIONED = 0.1
"""Nats from which a reason is mentioned."""


@dataclass(frozen=True)
class TypeProbability:
    """How probable each type of a column is, and why.

    Parameters
    ----------
    probabilities : dict of str to float
        Of each type that the column may have; they add up to one. Empty for dates, which are no statistical type, and
        of one type where it is declared.
    most_probable : str
        The most probable type; ``constant``, ``date`` and ``year`` by rule.
    because : str
        By how many nats it leads, and what they are made of.
    second : str
        The second most probable type; empty where there is none.
    rivals : tuple of str
        Types that lead by the sub-populations of one draw alone, other than the most probable one.
    is_declared : bool
        Whether the data or the user say which type it is.
    """

    probabilities: dict[str, float]
    most_probable: str
    because: str
    second: str = ""
    rivals: tuple[str, ...] = ()
    is_declared: bool = False


YEAR = "year"
"""Whole numbers that people call labels of periods, in an order, as often as counts: said to be what they are."""

AS_YEARS = ("count", *DISCRETE)
"""Types that years are alike."""

_DECLARED: Mapping[tuple[str, ...], str] = {("ordinal",): "ordinal", ("categorical",): "nominal"}
"""Types of labels whose only likelihood is named: who names it says what they are."""


def type_probability(
    post: Posterior, position: int, weights: Mapping[str, float] = WEIGHTS, parts: Parts | None = None
) -> TypeProbability:
    """Return the probability of each type of a column, by its position; `parts` are shared with other columns."""
    column = post.schema.columns[position]
    if column.dtype == "datetime":
        return TypeProbability({}, "date", "dates are set apart by rule")
    declared = _DECLARED.get(column.families)
    if declared is not None and column.base == "category" and column.n_distinct > 1:
        return TypeProbability({declared: 1.0}, declared, f"{declared}, as declared", is_declared=True)
    features, evidence = column_features(post, position, parts)
    found = judged(column, features, evidence, weights)
    if len(evidence.by_draw) < 2 or found.most_probable not in found.probabilities:
        return found
    leads = {
        judged(column, with_evidence(features, TypeEvidence(nats, order, 0, 0.0)), NOTHING, weights).most_probable
        for nats, order in evidence.by_draw
    }
    return replace(found, rivals=tuple(sorted(leads - {found.most_probable})))


def column_features(
    post: Posterior, position: int, parts: Parts | None = None
) -> tuple[dict[str, dict[str, float]], TypeEvidence]:
    """Return the features of each type that a column may have, those of its values among them, and their evidence."""
    column = _without_codes(post, position)
    cells_of_a_value = cells_of_values(post, position)
    is_number = column.base != "category" or column.dtype == "number"
    if is_number and n_values(column) == 2 and cells_of_a_value < LEAST_REPEATED:
        column = replace(column, n_distinct=3)  # two measurements of two rows make no column of two values
    described = describe(column)
    features = {name: dict(of_type) for name, of_type in described.features.items()}
    numbers = described.numbers
    if described.order is not None:
        numbers = described.order.places(column.labels)
    if n_values(column) <= 2 or (column.base == "category" and numbers is None):
        return (
            features,
            NOTHING,
        )  # any family of two values is one of labels; an unknown order has no evidence
    if not features.get("ordinal", {}).get("years"):
        _count_repetitions(features, column, cells_of_a_value)
    evidence = type_evidence(post, position, numbers, features, parts)
    return with_evidence(features, evidence), evidence


def _without_codes(post: Posterior, position: int) -> Column:
    """Return a column without values such as -999, which stand for missing ones and say nothing of its type."""
    column, rows = post.schema.columns[position], post.reference
    if rows is None or column.base == "category":
        return column
    seen = rows.values[position, rows.observed[position]]
    codes = missing_codes(column, seen)
    if not codes:
        return column
    rest = seen[~np.isin(seen, codes)]
    n_distinct = max(column.n_distinct - len(codes), 2)
    return replace(column, minimum=rest.min(), maximum=rest.max(), mean=rest.mean(), n_distinct=n_distinct)


def cells_of_values(post: Posterior, position: int) -> float:
    """Return how many of the reference rows' cells a value has, on average; infinity without such rows."""
    rows = post.reference
    if rows is None:
        return math.inf
    values = rows.values[position, rows.observed[position]]
    return values.size / max(np.unique(values).size, 1)


def _count_repetitions(features: dict[str, dict[str, float]], column: Column, cells_of_a_value: float) -> None:
    """Let numbers that hardly repeat be no labels, and those that repeat little the less so, in `features`."""
    for name in DISCRETE:
        if (column.base != "category" or column.dtype == "number") and cells_of_a_value < LEAST_REPEATED:
            features.pop(name, None)
        elif f"numbers: {name}" in features.get(name, {}):
            features[name][REPEATED] = math.log(_OFTEN_REPEATED / min(max(cells_of_a_value, 1.0), _OFTEN_REPEATED))


def with_evidence(features: Mapping[str, Mapping[str, float]], evidence: TypeEvidence) -> dict[str, dict[str, float]]:
    """Return features with those of the values in place of what they had of them."""
    made = {name: dict(of_type) for name, of_type in features.items()}
    for name, behind in _behind(evidence).items():
        made[name][OF_LABELS if name in DISCRETE else EVIDENCE] = -math.log1p(behind)
    if math.isfinite(evidence.order) and "nominal" in made:
        lo, hi = _ORDER_RANGE
        made["nominal"][ORDER] = -min(max(evidence.order, lo), hi) / 3.0
    return made


def _behind(evidence: TypeEvidence) -> dict[str, float]:
    """Return by how many nats the evidence of each type is behind the largest."""
    return {name: max(evidence.nats.values()) - value for name, value in evidence.nats.items()}


def judged(
    column: Column,
    features: Mapping[str, Mapping[str, float]],
    evidence: TypeEvidence,
    weights: Mapping[str, float] = WEIGHTS,
) -> TypeProbability:
    """Return what features with some weights say of a column."""
    nats = {
        name: {feature: weights.get(feature, 0.0) * value for feature, value in of_type.items()}
        for name, of_type in features.items()
    }
    scores = {name: sum(of_type.values()) for name, of_type in nats.items()}
    top = max(scores.values())
    total = sum(math.exp(score - top) for score in scores.values())
    probabilities = {name: math.exp(score - top) / total for name, score in scores.items()}
    ranked = sorted(scores, key=lambda name: -scores[name])
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else ranked[0]
    lead = scores[first] - scores[second]
    because = _because(nats, first, second, lead) + _behind_in_words(evidence, first, second)
    second = "" if first == second else second
    if column.n_distinct == 1:
        return TypeProbability(probabilities, "constant", f"a single value; {because}")
    if first in DISCRETE and column.base != "category" and features[first].get("years"):
        second = next((name for name in ranked if name not in AS_YEARS), "")
        return TypeProbability(probabilities, YEAR, f"whole numbers that are years; {because}", second)
    return TypeProbability(probabilities, first, because, second)


def numeric_probability(probabilities: Mapping[str, float]) -> float:
    """Return the probability that a column is numeric: real, positive, interval or count."""
    return sum(probability for name, probability in probabilities.items() if name in NUMERIC)


def _because(nats: Mapping[str, Mapping[str, float]], first: str, second: str, lead: float) -> str:
    """Return the nats by which a type leads another, and the largest of what they are made of."""
    if first == second:
        return f"{first}, the only type that its values allow"
    parts: dict[str, float] = {}
    for sign, name in ((1.0, first), (-1.0, second)):
        for feature, value in nats[name].items():
            said = "how common they are" if ":" in feature else feature
            parts[said] = parts.get(said, 0.0) + sign * value
    largest = sorted((item for item in parts.items() if abs(item[1]) >= _MENTIONED), key=lambda item: -abs(item[1]))
    listed = ", ".join(f"{feature} {value:+.1f}" for feature, value in largest)
    return f"{first} over {second} by {lead:.1f} nats" + f" ({listed})" * bool(listed)


def _behind_in_words(evidence: TypeEvidence, first: str, second: str) -> str:
    if not {first, second} <= set(evidence.nats):
        return ""
    difference = evidence.nats[first] - evidence.nats[second]
    parts = f"{evidence.n_cell} cells in {evidence.n_part:.0f} sub-population{'s' * (round(evidence.n_part) != 1)}"
    if abs(difference) < 0.5:
        return f"; {parts} speak for neither"
    return f"; {parts} speak {'for' if difference > 0.0 else 'against'} it by {abs(difference):.0f} nats"
