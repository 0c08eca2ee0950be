"""Which settings of `bj.fit_experts` go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bayesjpt.errors import LearnerError
from bayesjpt.experts.model import LARGEST_TREE
from bayesjpt.kernels.expert_series_start import TRANSITIONS

if TYPE_CHECKING:
    from bayesjpt.experts.posterior import ExpertPosterior

_SEARCHED = {"ridge", "passes", "grow"}
METHODS = {
    "gibbs": {"draws", "tune"},
    "em": _SEARCHED,
    "least_squares": _SEARCHED,
    "laplace": _SEARCHED | {"draws"},
    "mean_field": {"draws", "ridge", "passes"},
}
"""Methods, and the settings that belong to each alone."""


def check_method(method: str, **chosen: Any) -> None:
    """Raise `LearnerError` for an unknown method, or for settings of another one."""
    if not isinstance(method, str) or method not in METHODS:
        raise LearnerError(f"method={method!r}", f"one of {', '.join(METHODS)}")
    others = {name: value for name, value in chosen.items() if value is not None and name not in METHODS[method]}
    for name, value in others.items():
        using = ", ".join(known for known, names in METHODS.items() if name in names)
        raise LearnerError(f"{name}={value!r} with method={method!r}", f"{name} with {using} alone")


def check_branches(branches: int, depth: int, *, method: str, grow: bool, time: str | None) -> None:
    """Raise `LearnerError` for trees that are too large, and for gates of several ways where only two are there."""
    if branches**depth > LARGEST_TREE:
        raise LearnerError(
            f"branches={branches} with depth={depth}", f"branches^depth, the leaves, at most {LARGEST_TREE}"
        )
    if branches > 2 and (method not in ("gibbs", "em") or grow or time is not None):
        other = "grow=True" if grow else f"time={time!r}" if time is not None else f"method={method!r}"
        raise LearnerError(
            f"branches={branches} with {other}", "branches=2, or method gibbs or em without grow and time"
        )


def check_order(
    time: str | None, series: str | None, transitions: str, method: str, start: str | ExpertPosterior
) -> None:
    """Raise `LearnerError` for settings of series without time, and for those that series do not have."""
    if time is None and series is not None:
        raise LearnerError(
            f"series={series!r} without time",
            "the column of time, too",
            "Name it: time=COLUMN.",
            command="Name it: --step COLUMN.",
        )
    if time is None and transitions != TRANSITIONS[0]:
        raise LearnerError(f"transitions={transitions!r} without time", "the column of time, too")
    if time is not None and method not in ("gibbs", "em"):
        raise LearnerError(
            f"method={method!r} with the column of time {time!r}",
            "gibbs or em, the methods of series",
            command="Leave --step out, or choose one of these with --method.",
        )
    if time is not None and not isinstance(start, str):
        raise LearnerError(f"a fit as start with the column of time {time!r}", "a start by name: cart or random")
