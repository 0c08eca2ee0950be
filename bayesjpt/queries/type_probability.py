"""The probability that a column is of a type, and the reason in nats: what people would say, given what the values say.

    log P(type) = sum over features of  weight x feature  -  tempering x log(1 + nats behind the best type)  + constant

A log evidence grows with the rows and becomes certain of the family that is least wrong; what people call a type is
wider than its families, and they do not become certain. So evidence counts by the logarithm of the nats that a type is
behind: e nats more than a few are as good as a few. The weights were fitted to columns with documented types.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.type_evidence import NOTHING, TypeEvidence, type_evidence
from bayesjpt.queries.type_features import NUMERIC, describe
from bayesjpt.table.schema import Column

EVIDENCE, ORDER = "evidence of the values", "order of the levels"

WEIGHTS: Mapping[str, float] = {
    "below zero": 0.55,
    "evidence of the values": 0.33,
    "few values": 2.05,
    "from 0": 0.97,
    "from 1": 1.11,
    "labels: ordinal": -0.08,
    "numbers: count": 1.05,
    "numbers: nominal": -0.32,
    "numbers: ordinal": -0.36,
    "numbers: positive": 0.91,
    "numbers: real": -1.28,
    "order of the levels": 0.77,
    "small numbers": 0.58,
    "two values: binary": 1.31,
    "two values: count": -0.78,
    "two values: nominal": -0.20,
    "two values: ordinal": -0.33,
    "words of a scale": 1.32,
    "years": 0.77,
}
"""Nats per feature. Penalised maximum likelihood, each with a normal prior of mean 0 and variance 1/2, on the labels of
31 public tables (21 with documented types, 10 of a benchmark with numeric or categorical), each table with the same
weight: ``python -m tests.papers.type_scores --data DIR --weights`` prints them, and scores with each table left out."""

_ORDER_RANGE = (-3.0, 6.0)
"""Standard deviations beyond which an order is no better or worse."""

CLOSE = 1.0
"""Nats within which nominal and ordinal are not told apart."""

_MENTIONED = 0.1
"""Nats from which a reason is mentioned."""


@dataclass(frozen=True)
class TypeProbability:
    """How probable each type of a column is, and why.

    Parameters
    ----------
    probabilities : dict of str to float
        Of each type that the column may have; they add up to one. Empty for dates, which are no statistical type.
    most_probable : str
        The most probable type; ``nominal or ordinal`` where these two lead and nothing tells them apart; ``constant``
        and ``date`` by rule.
    because : str
        By how many nats it leads, and what they are made of.
    """

    probabilities: dict[str, float]
    most_probable: str
    because: str


def type_probability(post: Posterior, position: int, weights: Mapping[str, float] = WEIGHTS) -> TypeProbability:
    """Return the probability of each type of a column, by its position."""
    column = post.schema.columns[position]
    if column.dtype == "datetime":
        return TypeProbability({}, "date", "dates are set apart by rule")
    features, evidence = column_features(post, position)
    return judged(column, features, evidence, weights)


def column_features(post: Posterior, position: int) -> tuple[dict[str, dict[str, float]], TypeEvidence]:
    """Return the features of each type that a column may have, those of its values among them, and their evidence."""
    column = post.schema.columns[position]
    described = describe(column)
    features = {name: dict(own) for name, own in described.features.items()}
    is_label = column.base == "category" and described.numbers is None
    if column.n_distinct <= 2 or is_label:
        return features, NOTHING  # any family of two values is one of labels, and the order of labels is not known
    evidence = type_evidence(post, position, described.numbers, features)
    for name, behind in _behind(evidence).items():
        features[name][EVIDENCE] = -math.log1p(behind)
    if math.isfinite(evidence.order) and "nominal" in features:
        lo, hi = _ORDER_RANGE
        features["nominal"][ORDER] = -min(max(evidence.order, lo), hi) / 3.0
    return features, evidence


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
        name: {feature: weights.get(feature, 0.0) * value for feature, value in own.items()}
        for name, own in features.items()
    }
    scores = {name: sum(own.values()) for name, own in nats.items()}
    top = max(scores.values())
    total = sum(math.exp(score - top) for score in scores.values())
    probabilities = {name: math.exp(score - top) / total for name, score in scores.items()}
    ranked = sorted(scores, key=lambda name: -scores[name])
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else ranked[0]
    lead = scores[first] - scores[second]
    because = _because(nats, first, second, lead) + _behind_in_words(evidence, first, second)
    if column.n_distinct == 1:
        return TypeProbability(probabilities, "constant", f"a single value; {because}")
    if {first, second} == {"nominal", "ordinal"} and lead < CLOSE:
        return TypeProbability(probabilities, "nominal or ordinal", f"{because}; {_why_no_order(evidence)}")
    return TypeProbability(probabilities, first, because)


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
    told = sorted((item for item in parts.items() if abs(item[1]) >= _MENTIONED), key=lambda item: -abs(item[1]))
    listed = ", ".join(f"{feature} {value:+.1f}" for feature, value in told)
    return f"{first} over {second} by {lead:.1f} nats" + f" ({listed})" * bool(listed)


def _behind_in_words(evidence: TypeEvidence, first: str, second: str) -> str:
    if not {first, second} <= set(evidence.nats):
        return ""
    difference = evidence.nats[first] - evidence.nats[second]
    parts = f"{evidence.n_cell} cells in {evidence.n_part:.0f} sub-populations"
    if abs(difference) < 0.5:
        return f"; {parts} speak for neither"
    return f"; {parts} speak {'for' if difference > 0.0 else 'against'} it by {abs(difference):.0f} nats"


def _why_no_order(evidence: TypeEvidence) -> str:
    if not math.isfinite(evidence.order):
        return "nothing tells whether it has an order"
    return f"other columns follow its order by {evidence.order:.1f} standard deviations more than a random one"
