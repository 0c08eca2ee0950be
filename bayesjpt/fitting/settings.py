"""What a fit is asked for: one record, checked in one place, that everything below `bayesjpt.fit` is handed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.circuit.bdeu import BDeu
from bayesjpt.code_hash import hash_of, without_address
from bayesjpt.defaults import (
    ALPHA,
    CHAINS,
    DRAWN_ESS,
    DRAWS,
    ESS,
    GAMMA,
    STRUCTURE_CHAINS,
    STRUCTURE_DRAWS,
    STRUCTURE_TUNE,
    STRUCTURES,
    THIN,
    TUNE,
)
from bayesjpt.errors import CheckpointError, LearnerError, ModelError, SamplingError, counted, warn
from bayesjpt.executors import check_executor
from bayesjpt.fitting.learning import Learner, check_learners, check_options, name_of, smooths_splits
from bayesjpt.user_paths import as_path

if TYPE_CHECKING:
    from bayesjpt.sampler.schedule import Schedule
    from bayesjpt.table.dataset import Dataset
    from bayesjpt.table.schema import Schema
    from bayesjpt.table.table import Table

BOOSTING = "boosting"
"""Weights that only cutset networks have: see `bayesjpt.fitting.boosting`."""

ROWS_PER_WORKER = 100_000
"""Below, sending a sweep and adding up its answers takes longer than the sweep (docs/explanation/scale.md)."""

SHORT_ROWS, FEWEST_SWEEPS = 100_000, 5
"""Rows above which sweeps of a structure become fewer, unless their number is given, by the root of the rows over
these, down to so many discarded and as many kept: weights and parameters spread by the inverse root of the rows, so
beside the differences between structures that of draws fades."""

_CLOSED_FORM_DRAWS = 2
"""Draws of each of some networks of labels, whose posterior is known."""

WEIGHTS = ("even", "stacking", BOOSTING)


@dataclass(frozen=True, eq=False, kw_only=True)
class FitSettings:
    """The arguments of `bayesjpt.fit` beside the table, by their names there; raises as it does.

    Parameters
    ----------
    options : dict
        Of the learner, as given; `learner_options` is what it is called with.
    in_closed_form : bool
        Whether structures keep counts in place of draws, so that few draws will do: known of a table (`of_rows`).
    """

    learner: Learner | Sequence[Learner] = "mspn"
    n_structures: int = STRUCTURES
    weights: str = "even"
    draws: int | None = None
    tune: int | None = None
    thin: int = THIN
    chains: int | None = None
    cores: int | None = None
    executor: Any = None
    seed: int | None = None
    gamma: float = GAMMA
    alpha: float = ALPHA
    prior: str = "default"
    type_prior: str = "members"
    sampler: str = "blocked"
    ess: float | str | BDeu = ESS
    families: Mapping[str, Iterable[str]] | Iterable[str] | None = None
    checkpoint: str | Path | None = None
    resume: bool = False
    time: float | None = None
    in_closed_form: bool = False
    progress: bool = True
    options: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        _check_number("n_structures", self.n_structures, 1)
        for name, least in (("draws", 1), ("tune", 0), ("thin", 1), ("chains", 1), ("cores", 1), ("seed", 0)):
            if getattr(self, name) is not None:
                _check_number(name, getattr(self, name), least)
        if self.time is not None:
            _check_time(self.time, self.several and self.weights == "even")
        check_executor(self.executor)
        if self.weights not in WEIGHTS:
            raise LearnerError(f"weights = {self.weights!r}", f"one of {', '.join(WEIGHTS)}")
        check_learners(self.learners, self.n_structures)
        if self.weights == BOOSTING:
            self._check_boosting()
        if self.weights == "stacking" and not self.several:
            raise LearnerError("weights = 'stacking' of one structure", "several structures, or even weights")
        _check_priors(self)
        if isinstance(self.ess, str) and (self.ess != DRAWN_ESS or self.learners != ["cutset"] or not self.several):
            raise ModelError(f"ess = {self.ess!r}", f"a positive number, or {DRAWN_ESS!r} for several cutset networks")
        if self.checkpoint is not None:
            as_path(self.checkpoint, CheckpointError)
        if self.resume and self.checkpoint is None:
            raise CheckpointError("resume without a checkpoint", "the folder of the fit to go on with")

    def _check_boosting(self) -> None:
        if self.learners != ["cutset"] or not self.several:
            found = f"weights = {BOOSTING!r} of {self.n_structures} by {', '.join(map(name_of, self.learners))}"
            raise LearnerError(found, "several structures by cutset")
        if self.checkpoint is not None:
            raise LearnerError(f"weights = {BOOSTING!r} with a checkpoint", "none: each network waits for those before")
        if self.options.get("leaf") == "dictionary":
            raise LearnerError(
                f"weights = {BOOSTING!r} of networks with leaf = 'dictionary'", "leaves that are counts of labels",
                "Ask for leaf='chow_liu' or leaf='bernoulli', or for even weights",
                command="Ask for --leaf chow_liu or --leaf bernoulli, or for --weights even",
            )  # fmt: skip

    def of_rows(self, table: Table | Dataset) -> FitSettings:
        """Return the settings for a table: few draws of networks of labels, fewer sweeps of many rows.

        What was given stays.

        Raises
        ------
        LearnerError, ModelError
            For what rows in files cannot have.
        """
        from bayesjpt.table.dataset import Dataset

        if isinstance(table, Dataset) and self.weights != "even":
            found = f"weights = {self.weights!r} of rows in files"
            raise LearnerError(found, "even weights", "Take a Table of some rows.")
        if isinstance(table, Dataset) and self.sampler != "blocked":
            raise ModelError(f"sampler = {self.sampler!r} of rows in files", "blocked", "Take a Table of some rows.")
        if self.executor is not None:
            _warn_of_few_rows(table.n_row, self.executor)
        settings = replace(self, in_closed_form=self._has_closed_form(table))
        if table.n_row <= SHORT_ROWS or not self.several:
            return settings
        schedule, share = settings.schedule, math.sqrt(SHORT_ROWS / table.n_row)
        tune, draws = (max(FEWEST_SWEEPS, round(share * n)) for n in (schedule.n_tune, schedule.n_draw))
        return replace(
            settings, tune=tune if self.tune is None else self.tune, draws=draws if self.draws is None else self.draws
        )

    def _has_closed_form(self, table: Table | Dataset) -> bool:
        """Return whether all structures will be networks of labels of complete rows."""
        from bayesjpt.table.table import Table

        has_counts = self.learners == ["cutset"] and self.options.get("leaf") != "dictionary"
        if not has_counts or not isinstance(table, Table) or not table.observed.all():
            return False
        return all(column.base == "category" for column in table.schema.columns)

    def check_options(self, table: Table | Dataset) -> None:
        """Raise for options of learners that make no sense for a table."""
        for learner in self.learners:
            check_options(learner, table, self.options)

    @property
    def several(self) -> bool:
        """Whether more than one structure is learned."""
        return self.n_structures > 1

    @cached_property
    def learners(self) -> list[Learner]:
        """Learners that take turns."""
        if isinstance(self.learner, Iterable) and not isinstance(self.learner, str):
            return list(self.learner)
        return [self.learner]

    @cached_property
    def schedule(self) -> Schedule:
        """Sweeps of each chain, with defaults for what was left open."""
        from bayesjpt.sampler.schedule import Schedule

        few = _CLOSED_FORM_DRAWS if self.in_closed_form else STRUCTURE_DRAWS
        chains, tune, draws = (STRUCTURE_CHAINS, STRUCTURE_TUNE, few) if self.several else (CHAINS, TUNE, DRAWS)
        return Schedule(
            n_chain=int(chains if self.chains is None else self.chains),
            n_tune=int(tune if self.tune is None else self.tune),
            n_draw=int(draws if self.draws is None else self.draws),
            thin=int(self.thin),
        )

    @property
    def priors(self) -> dict[str, Any]:
        """What `bayesjpt.sampler.target.make_target` takes."""
        return {name: getattr(self, name) for name in ("gamma", "alpha", "ess", "prior", "type_prior", "sampler")}

    @property
    def learner_options(self) -> dict[str, Any]:
        """What learners are called with: those of splits smooth by the imaginary rows that the sweeps have."""
        is_number = not isinstance(self.ess, str | BDeu)
        smoothing = {"ess": self.ess} if is_number and all(map(smooths_splits, self.learners)) else {}
        return smoothing | self.options

    def recorded(self, learnt_from: Schema) -> dict[str, Any]:
        """Return what `Posterior.settings` holds of them, given the schema from which learners build."""
        recorded: dict[str, Any] = {
            "learner": ", ".join(map(name_of, self.learners)),
            "seed": None if self.seed is None else int(self.seed),
            "tune": self.schedule.n_tune,
            "thin": self.schedule.thin,
            **self.priors,
            "gamma": float(self.gamma),
            "alpha": float(self.alpha),
            "ess": str(self.ess) if isinstance(self.ess, str | BDeu) else float(self.ess),
        }
        if self.families is not None:
            restricted = [column for column in learnt_from if column.families]
            recorded["families"] = "; ".join(f"{c.name}: {', '.join(c.families)}" for c in restricted)
        recorded |= _in_words(self.learner_options)
        if self.several:
            recorded |= {"n_structures": int(self.n_structures), "weights": self.weights}
        return recorded

    def facts(self, table: Table | Dataset, learnt_from: Schema) -> dict[str, Any]:
        """Return everything on which draws depend, for a checkpoint, given the schema from which learners build."""
        from bayesjpt.sampler.facts import facts_of, family_versions

        # functions and arrays, whose words do not tell one from another
        options = {name: value for name, value in self.learner_options.items() if not isinstance(value, _IN_WORDS)}
        versions = {f"the option {name}": hash_of(value) for name, value in options.items() if value is not None}
        of_name: dict[str, list[Learner]] = {}
        for learner in self.learners:
            if callable(learner):
                of_name.setdefault(name_of(learner), []).append(learner)
        versions |= {f"the learner {name!r}": hash_of(learners) for name, learners in of_name.items()}
        return facts_of(table, self.schedule, self.recorded(learnt_from), versions | family_versions(learnt_from))


def _warn_of_few_rows(n_row: int, executor: Any) -> None:
    from bayesjpt.kernels.remote import workers_of

    n_worker = workers_of(executor)
    if n_row < ROWS_PER_WORKER * n_worker:
        workers = counted(n_worker, "worker")
        warn(f"{n_row} rows for {workers}: below {ROWS_PER_WORKER} rows a worker one machine is faster")


def _check_time(time: object, can_end_early: bool) -> None:
    if isinstance(time, bool) or not isinstance(time, int | float | np.number) or not 0.0 < time < np.inf:
        raise SamplingError(f"time = {time!r}", "a number of seconds above 0")
    if not can_end_early:
        raise SamplingError(
            "a limit of time for one structure, or for weights that are not even",
            "several structures with even weights",
            "Ask for fewer draws instead.",
        )


def _check_number(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SamplingError(f"{name} = {value!r}", f"a whole number of at least {least}")


def _check_priors(settings: FitSettings) -> None:
    """Raise for an unknown name or no number, before any time is spent."""
    from bayesjpt.circuit.priors import check_concentrations
    from bayesjpt.circuit.type_prior import check_type_prior
    from bayesjpt.families import registry
    from bayesjpt.kernels.samplers import check_sampler

    priors = [name for name in registry.FAMILIES[0].priors if all(name in f.priors for f in registry.FAMILIES)]
    if settings.prior not in priors:
        raise ModelError(f"no prior {settings.prior!r}", f"one of {', '.join(priors)}")
    check_type_prior(settings.type_prior)
    check_sampler(settings.sampler)
    check_concentrations(gamma=settings.gamma, alpha=settings.alpha)


_IN_WORDS = (int, float, str, np.generic)
"""What words for options tell apart."""


def _in_words(options: dict[str, Any]) -> dict[str, Any]:
    """Return what `Posterior.settings` can hold of a learner's options: numbers, and all else as words."""
    return {key: _in_word(value) for key, value in options.items() if value is not None}


def _in_word(value: Any) -> int | float | str:
    if isinstance(value, _IN_WORDS):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_in_word(entry)}" for key, entry in value.items())
    return getattr(value, "__qualname__", None) or without_address(value)
