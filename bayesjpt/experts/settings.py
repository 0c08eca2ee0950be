"""What `bj.fit_experts` is asked for: one record, checked in one place, that everything below it is handed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt import defaults_experts
from bayesjpt.errors import LearnerError
from bayesjpt.experts.em import OPTIMISERS, Search, check_search
from bayesjpt.experts.model import LARGEST_DEPTH, LARGEST_TREE
from bayesjpt.experts.start import check_start
from bayesjpt.kernels.expert_series_start import TRANSITIONS
from bayesjpt.sampler.schedule import Schedule

if TYPE_CHECKING:
    from bayesjpt.experts.posterior import ExpertPosterior
    from bayesjpt.posterior.draws import Posterior

_SEARCHED = {"ridge", "passes", "grow"}
METHODS = {
    "gibbs": {"draws", "tune"},
    "em": _SEARCHED,
    "least_squares": _SEARCHED,
    "laplace": _SEARCHED | {"draws"},
    "mean_field": {"draws", "ridge", "passes"},
}
"""Methods, and the settings that belong to each alone."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpertSettings:
    """The arguments of `bayesjpt.fit_experts` but the table and `rng`, by their names there; raises as it does.

    What depends on the table's columns is checked where the table is read.
    """

    target: str | Sequence[str]
    given: Sequence[str] | None = None
    gates: Sequence[str] | None = None
    depth: int = defaults_experts.DEPTH
    branches: int = 2
    experts: str | Mapping[str, str] = "auto"
    method: str = "gibbs"
    draws: int | None = None
    tune: int | None = None
    chains: int | None = None
    start: str | ExpertPosterior = "cart"
    ridge: float | None = None
    passes: int | None = None
    grow: bool = False
    kinds: Mapping[str, str] | None = None
    missing: Posterior | None = None
    time: str | None = None
    series: str | None = None
    transitions: str = TRANSITIONS[0]
    cores: int | None = None

    def __post_init__(self):
        self._check_method()
        for name, least in (("depth", 0), ("branches", 2), ("draws", 1), ("tune", 0), ("chains", 1), ("cores", 1)):
            value = getattr(self, name)
            if value is None and name not in ("depth", "branches"):
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise LearnerError(f"{name}={value!r}", f"a whole number from {least}")
            object.__setattr__(self, name, int(value))  # a saved fit records plain numbers, not those of NumPy
        self._check_size()
        ridge = self.search.ridge
        check_start(self.start)
        if self.grow and (not isinstance(self.start, str) or self.start != "cart"):
            named = f"start={self.start!r}" if isinstance(self.start, str) else "a fit as start"
            raise LearnerError(f"grow=True with {named}", "start='cart': trees grow from one leaf")
        if ridge == 0.0 and self.method in ("laplace", "mean_field"):
            found = f"ridge={self.ridge!r} with method={self.method!r}"
            raise LearnerError(found, "a number above 0: it is the prior's precision")
        if self.time is None:
            self._check_without_time()
        else:
            self._check_time(self.time)

    def _check_method(self) -> None:
        """Raise for an unknown method, or for settings of another one."""
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise LearnerError(f"method={self.method!r}", f"one of {', '.join(METHODS)}")
        for name in ("draws", "tune", "ridge", "passes", "grow"):
            value = getattr(self, name)
            if value is None or (name == "grow" and not value) or name in METHODS[self.method]:
                continue
            using = ", ".join(known for known, names in METHODS.items() if name in names)
            raise LearnerError(f"{name}={value!r} with method={self.method!r}", f"{name} with {using} alone")

    def _check_size(self) -> None:
        """Raise for trees that are too large, and for gates of several ways where only two are there."""
        if self.depth > LARGEST_DEPTH:
            raise LearnerError(f"depth={self.depth}", f"at most {LARGEST_DEPTH}: a tree has 2^depth leaves")
        shape = f"branches={self.branches} with"
        if self.branches**self.depth > LARGEST_TREE:
            raise LearnerError(f"{shape} depth={self.depth}", f"branches^depth, the leaves, at most {LARGEST_TREE}")
        if self.branches > 2 and (self.method not in ("gibbs", "em") or self.grow or self.time is not None):
            other = f"method={self.method!r}" if self.time is None else f"time={self.time!r}"
            other = "grow=True" if self.grow else other
            raise LearnerError(f"{shape} {other}", "branches=2, or method gibbs or em without grow and time")

    def _check_without_time(self) -> None:
        if self.series is not None:
            raise LearnerError(
                f"series={self.series!r} without time",
                "the column of time, too",
                "Name it: time=COLUMN.",
                command="Name it: --step COLUMN.",
            )
        if self.transitions != TRANSITIONS[0]:
            raise LearnerError(f"transitions={self.transitions!r} without time", "the column of time, too")

    def _check_time(self, time: str) -> None:
        """Raise for settings that series do not have, and for columns of two roles."""
        by_time = f"with the column of time {time!r}"
        if self.method not in ("gibbs", "em"):
            raise LearnerError(
                f"method={self.method!r} {by_time}",
                "gibbs or em, the methods of series",
                command="Leave --step out, or choose one of these with --method.",
            )
        if not isinstance(self.start, str):
            raise LearnerError(f"a fit as start {by_time}", "a start by name: cart or random")
        if self.grow or self.search.ridge == 0.0:
            found = "grow=True" if self.grow else "ridge=0"
            raise LearnerError(f"{found} {by_time}", "grow=False and a ridge above 0")
        targets = self.targets
        for name, what in ((time, "time"), (self.series, "series")):
            if name is not None and not isinstance(name, str):
                raise LearnerError(f"{what}={name!r}", "the name of a column")
            if name in targets:
                raise LearnerError(f"column {name!r} is both target and {what}", "one or the other")
        if self.transitions not in TRANSITIONS:
            raise LearnerError(f"transitions={self.transitions!r}", f"one of {', '.join(TRANSITIONS)}")
        if time == self.series:
            raise LearnerError(f"column {time!r} is both time and series", "one or the other")

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """Names of targets; raises `LearnerError` for what is no name, and no names that all differ."""
        target = self.target
        names = (target,) if isinstance(target, str) else tuple(target) if isinstance(target, Iterable) else ()
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise LearnerError(
                f"target={target!r}",
                "one or several different columns, by name",
                "Name them: target='y' or target=['y', 'z'].",
                command="Name them: --target y or --target y,z.",
            )
        return names

    def covariates(self, names: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the covariates of experts and those of gates, given the names of all columns.

        Raises
        ------
        LearnerError
            For what is no list of names.
        """
        others = tuple(name for name in names if name not in self.targets)
        experts = others if self.given is None else _names_of(self.given)
        return experts, experts if self.gates is None else _names_of(self.gates)

    @cached_property
    def search(self) -> Search:
        """How coefficients are optimised, by methods that do."""
        return check_search(self.method, self.ridge, self.passes)

    @cached_property
    def schedule(self) -> Schedule:
        """Sweeps of each chain, with defaults for what was left open; a search for the optimum is one draw."""
        one = self.method in OPTIMISERS
        draws, chains = (1, 1) if one else (defaults_experts.DRAWS, defaults_experts.CHAINS)
        return Schedule(
            n_chain=chains if self.chains is None else self.chains,
            n_tune=defaults_experts.TUNE if self.tune is None else self.tune,
            n_draw=draws if self.draws is None else self.draws,
        )

    @property
    def n_thread(self) -> int:
        """How many chains run at once."""
        return min(self.schedule.n_chain, self.cores or os.cpu_count() or 1)


def _names_of(names: object) -> tuple[str, ...]:
    """Return the names of covariates, each once; raise `LearnerError` for what is no list of names."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise LearnerError(f"covariates {names!r}", "a list of names of columns")
    return tuple(dict.fromkeys(names))
