"""Gates of a tree of experts in words: which rows go which way, and how probably.

What is told holds for the covariates of training rows: a gate that no row crosses is told by its probabilities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax

from bayesjpt.experts.model import ExpertModel
from bayesjpt.experts.words import chance, chances, linear, point
from bayesjpt.table.covariates import Covariate, Covariates, label_shares

_MAINLY = 0.9
"""Of the length of all slopes: where those of one column are longer, it speaks for the gate."""
_SELDOM = 0.05
_N_LABEL = 3
"""Labels of a column, up to which the probability of each is told."""
_N_AFTER = 4
"""Different answers by the leaf before, up to which each is told."""


class Way(NamedTuple):
    """Which rows take a way.

    Attributes
    ----------
    text : str
    is_condition : bool
        Whether ``if`` goes before it.
    """

    text: str
    is_condition: bool

    @property
    def sentence(self) -> str:
        return f"if {self.text}" if self.is_condition else self.text


def gate_in_words(gate: np.ndarray, covariates: Covariates) -> Way:
    """Return where the answer of a gate of two ways is yes.

    Parameters
    ----------
    gate : float64 (n_covariate,)
        Coefficients of the log odds of yes.
    covariates : Covariates

    Notes
    -----
    A gate that looks at one number mainly is told by its cut, with the others at their average; one that looks at the
    labels of one column by their probabilities; others by their log odds.

    Examples
    --------
    >>> import numpy as np, bayesjpt as bj
    >>> from bayesjpt.table.covariates import make_covariates
    >>> table = bj.as_table({"size": [1.5, 2.5, 3.5, 2.5], "kind": ["a", "b", "a", "b"]})
    >>> covariates = make_covariates(table, ["size", "kind"])
    >>> for gate in ([0.0, 9.0, 0.0], [1.0, 0.0, 1.0], [-90.0, 9.0, 0.0], [0.0, 1.0, 1.0]):
    ...     gate_in_words(np.array(gate), covariates).text
    'size > 2.5 (sharp)'
    'with probability 0.88 where kind=b, otherwise 0.5'
    'nearly never (probability <0.001)'
    '-4.54 + 1.41 size + 2 kind=b > 0 (soft)'
    """
    slopes = gate[1:]
    if not slopes.any():
        return Way(f"with probability {chance(expit(gate[0]))}", False)
    lo, hi = (float(expit(end)) for end in _ends(gate, covariates))
    if hi < _SELDOM:
        return Way(f"nearly never (probability {_bound(hi, 'at most')})", False)
    if lo > 1.0 - _SELDOM:
        return Way(f"nearly always (probability {_bound(lo, 'at least')})", False)
    largest = int(np.abs(slopes).argmax())
    member, more = covariates.members[largest], ""
    own = [k for k, other in enumerate(covariates.members, start=1) if other.column == member.column]
    if np.sqrt((gate[own] ** 2).sum()) > _MAINLY * np.sqrt((slopes**2).sum()):
        average = covariates.average()
        average[own] = 0.0
        rest = float(gate @ average)
        if member.code >= 0:
            return Way(_by_label(rest, gate[own], [covariates.members[k - 1] for k in own]), False)
        column, slope = covariates.column_of(member), slopes[largest]
        cut = member.centre - member.scale * rest / slope
        if not column.minimum < column.maximum or column.minimum <= cut <= column.maximum:
            sign = ">" if slope > 0 else "<"
            return Way(f"{member.name} {sign} {point(column, cut, member.scale)} ({_sharpness(gate)})", True)
        more = f", more where {member.name} is {'larger' if slope > 0 else 'smaller'}"
    if hi < 0.5 or lo > 0.5:
        return Way(f"with probability {chances(lo, hi)}{more if chance(lo) != chance(hi) else ''}", False)
    return Way(f"{linear(gate, covariates)} > 0 ({_sharpness(gate)})", True)


def ways_in_words(model: ExpertModel, gates: np.ndarray, gate: int, memory: np.ndarray | None = None) -> list[Way]:
    """Return which rows go to each child of a gate.

    Parameters
    ----------
    model : ExpertModel
    gates : float64 (n_leaf - 1, n_covariate)
        Coefficients of all gates.
    gate : int
    memory : float64 (n_gate, n_leaf), optional
        What each leaf of the row before adds to log odds.

    Notes
    -----
    Of several ways each is described by its log odds less the mean of all: the largest wins.
    """
    own, covariates = gates[model.gate_rows(gate)], model.gate_covariates
    if model.branches == 2:
        if memory is None:
            return [gate_in_words(sign * own[0], covariates) for sign in (-1.0, 1.0)]
        return [_after_leaves(sign * own[0], sign * memory[gate], covariates) for sign in (-1.0, 1.0)]
    scores = np.concatenate([np.zeros((1, own.shape[1])), own])
    if not own[:, 1:].any():
        return [Way(f"with probability {chance(share)}", False) for share in softmax(scores[:, 0])]
    scores -= scores.mean(axis=0)
    return [
        Way(f"way {way + 1} where {linear(score, covariates)} is largest ({_sharpness(score)})", False)
        for way, score in enumerate(scores)
    ]


def _after_leaves(gate: np.ndarray, added: np.ndarray, covariates: Covariates) -> Way:
    """Return where the answer is yes by the leaf of the row before, which adds float64 (n_leaf,) to the log odds."""
    leaves: dict[Way, list[str]] = {}
    for leaf, log_odds in enumerate(added):
        way = gate_in_words(np.r_[gate[0] + log_odds, gate[1:]], covariates)
        leaves.setdefault(way, []).append(str(leaf))
    if len(leaves) == 1:
        return next(iter(leaves))
    if len(leaves) <= _N_AFTER:
        each = (f"after {_listed(which)} {way.sentence}" for way, which in leaves.items())
        return Way("; ".join(each), False)
    p = expit(float(gate @ covariates.average()) + added)
    least, most = int(p.argmin()), int(p.argmax())
    ends = f"{chance(p[least])} after leaf {least} to {chance(p[most])} after leaf {most}"
    return Way(f"with probability {ends}{at_average(covariates)}", False)


def at_average(covariates: Covariates) -> str:
    """Return what point `Covariates.average` is, if any; of columns that are taken as they are no means are known."""
    if not covariates.members:
        return ""
    numbers = [covariates.column_of(member) for member in covariates.members if member.code < 0]
    known = all(column.minimum < column.maximum for column in numbers)
    return " at average covariates" if known else " at covariates of 0"


def _listed(leaves: list[str]) -> str:
    *before, last = leaves
    return f"leaves {', '.join(before)} and {last}" if before else f"leaf {last}"


def _bound(p: float, how: str) -> str:
    return chance(p) if chance(p)[0] in "<>" else f"{how} {chance(p)}"


def _by_label(rest: float, slopes: np.ndarray, members: list[Covariate]) -> str:
    """Return the probabilities of yes by the label of one column; `rest` is the log odds without it."""
    p = expit(rest + slopes) if len(members) > 1 else expit(rest + slopes * np.array([1.0, -1.0]))
    if p.max() < _SELDOM:
        return f"nearly never (probability {_bound(p.max(), 'at most')} at average covariates)"
    if p.min() > 1.0 - _SELDOM:
        return f"nearly always (probability {_bound(p.min(), 'at least')} at average covariates)"
    if len(members) == 1:  # of two labels, -1 and 1
        here, other = chance(p[0]), chance(p[1])
        return f"with probability {here} where {members[0].name}, otherwise {other}"
    is_likely = p > 0.5
    for alone in (is_likely, ~is_likely):
        if alone.sum() == 1:
            return _alone(p, int(alone.argmax()), members)
    if p.size <= _N_LABEL:
        each = [f"{chance(p[k])} where {members[k].name}" for k in np.argsort(-p, kind="stable")]
        return f"with probability {', '.join(each)}"
    return _alone(p, int(np.abs(slopes).argmax()), members)


def _alone(p: np.ndarray, label: int, members: list[Covariate]) -> str:
    """Return the probability of one label and the least and largest of the others."""
    others = np.delete(p, label)
    ends = chances(others.min(), others.max())
    return f"with probability {chance(p[label])} where {members[label].name}, otherwise {ends}"


def _ends(gate: np.ndarray, covariates: Covariates) -> tuple[float, float]:
    """Return the least and the largest log odds within the ranges of training rows' covariates."""
    lo = hi = float(gate[0])
    by_column: dict[str, list[float]] = {}
    for member, slope in zip(covariates.members, gate[1:], strict=True):
        column = covariates.column_of(member)
        ends = by_column.setdefault(member.column, [])
        if member.code < 0:
            known = column.minimum < column.maximum
            span = np.array([column.minimum, column.maximum] if known else [-np.inf, np.inf])
            ends += (slope * (span - member.centre) / member.scale).tolist() if slope else [0.0]
        elif len(column.labels) == 2:
            ends += [-slope, slope]
        elif label_shares(column)[member.code] > 0.0:
            ends.append(slope)
    for ends in by_column.values():
        lo, hi = lo + min(ends, default=0.0), hi + max(ends, default=0.0)
    return lo, hi


def _sharpness(gate: np.ndarray) -> str:
    size = float(np.sqrt((gate[1:] ** 2).sum()))
    return "sharp" if size > 5.0 else "soft" if size > 1.0 else "faint"
