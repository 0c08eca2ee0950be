"""Learners by name or as functions: their options checked, their structure learned, their kernels compiled."""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.errors import LearnerError
from bayesjpt.learners import LEARNERS
from bayesjpt.table.dataset import in_memory

if TYPE_CHECKING:
    from bayesjpt.circuit.arrays import Circuit
    from bayesjpt.table.dataset import Dataset
    from bayesjpt.table.table import Table

Learner = str | Callable[..., "Circuit"]
"""A name of `LEARNERS`, or a function (table, rng, **learner_options) -> Circuit."""

_ELSEWHERE = {
    "rng": "seed",
    "random_seed": "seed",
    "random_state": "seed",
    "warmup": "tune",
    "n_draws": "draws",
    "n_chains": "chains",
    "n_jobs": "cores",
    "progressbar": "progress",
}
"""Options of `fit` by the names that other functions and programs give them."""


def name_of(learner: Learner) -> str:
    """Return what settings call a learner."""
    return learner if isinstance(learner, str) else getattr(learner, "__name__", "callable")


def our_name(learner: Learner | LearnerFunction) -> str | None:
    """Return the name of a learner of ours, named or as function; None of a function of the user's, whatever its name.

    Examples
    --------
    >>> import bayesjpt as bj
    >>> def jpt(table, rng):
    ...     return bj.learn_mspn(table, rng)
    >>> our_name("jpt"), our_name(bj.learn_jpt), our_name(jpt)
    ('jpt', 'jpt', None)
    """
    import bayesjpt

    if isinstance(learner, LearnerFunction):
        learner = learner.learner
    name = name_of(learner).removeprefix("learn_")
    is_ours = isinstance(learner, str) or (name in LEARNERS and getattr(bayesjpt, f"learn_{name}") is learner)
    return name if is_ours else None


def parameters_of(learner: str) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a learner of ours."""
    import bayesjpt

    return inspect.signature(getattr(bayesjpt, f"learn_{learner}")).parameters


def smooths_splits(learner: Learner) -> bool:
    """Return whether a learner is one of ours that smooths by the imaginary rows of splits."""
    return isinstance(learner, str) and "ess" in parameters_of(learner)


def check_learners(learners: list[Learner], n_structures: int) -> None:
    """Raise for an unknown learner, or more of them than structures."""
    for learner in learners:
        if not callable(learner) and learner not in LEARNERS:
            raise LearnerError(
                f"no learner {learner!r}",
                f"one of {', '.join(LEARNERS)}",
                "Or give a function that learns.",
                command="Columns given others are learned by bayesjpt fit --learner experts.",
            )
    if not 1 <= len(learners) <= n_structures:
        found = f"{len(learners)} learners for {n_structures} structure{'s' if n_structures > 1 else ''}"
        least = max(len(learners), 1)
        raise LearnerError(
            found,
            "one for each at most",
            f"Ask for n_structures={least} or more",
            command=f"Ask for --structures {least} or more",
        )


def check_options(learner: Learner, table: Table | Dataset, options: dict[str, Any]) -> None:
    """Raise for an option of a learner of ours that makes no sense, before kernels are compiled."""
    if isinstance(learner, str) and learner in LEARNERS:
        from bayesjpt.structure import base
        from bayesjpt.table.schema import closest

        known = [name for name in parameters_of(learner) if name not in ("table", "rng", "progress")]
        for name in options:
            if name not in known:
                expected = repr(_ELSEWHERE[name]) if name in _ELSEWHERE else closest(name, known)
                raise LearnerError(f"learner {learner!r} has no option {name!r}", expected)
        if "min_rows" in options:
            base.rows_of("min_rows", options["min_rows"], table.n_row)
        # what only one learner has, it checks by itself
        check = getattr(importlib.import_module(f"bayesjpt.structure.{learner}"), "check_options", None)
        if check is not None:
            check(options)


def restricted(table: Any, families: Any) -> Any:
    """Return a Table or a Dataset under a schema that names the only families; learners build their circuit from it."""
    if families is None:
        return table
    from bayesjpt.circuit.restrict import restrict_families

    return table.with_schema(restrict_families(table.schema, families))


class StoppedError(Exception):
    """A learner was stopped: its structure is not needed any more."""


def learn(
    table: Table | Dataset, learner: Learner, rng: np.random.Generator, progress: bool, options: dict[str, Any]
) -> Circuit:
    """Return the structure of a table, behind a progress bar where the learner is one of ours."""
    table = in_memory(table)
    if not callable(learner):
        import bayesjpt
        from bayesjpt.sampler.progress import task_bar

        with task_bar("Learning the structure", progress) as callback:
            return getattr(bayesjpt, f"learn_{learner}")(table, rng, progress=callback, **options)
    return learner(table, rng, **options)


def _learn_unless_stopped(
    table: Table, learner: str, rng: np.random.Generator, stop: threading.Event, options: dict[str, Any]
) -> Circuit:
    """Return the structure that a learner of ours finds; it is stopped where it tells of its progress."""
    import bayesjpt

    def look_up(n_done: int, n_total: int) -> None:
        if stop.is_set():
            raise StoppedError

    return getattr(bayesjpt, f"learn_{learner}")(table, rng, progress=look_up, **options)


class LearnerFunction:
    """A learner as a function (table, rng, stop, **options) that keeps its name, for threads to call.

    A function of the user's is called by one thread at a time: it may change what its calls share. It cannot be
    stopped. Learners of ours, by name, go to other processes.
    """

    def __init__(self, learner: Learner):
        self.learner, self._gate = learner, threading.Lock()
        self.__name__ = name_of(learner)

    def __call__(self, table: Table, rng: np.random.Generator, stop: threading.Event, **options: Any) -> Circuit:
        if not callable(self.learner):
            return _learn_unless_stopped(table, self.learner, rng, stop, options)
        with self._gate:
            return learn(table, self.learner, rng, False, options)

    @property
    def is_ours(self) -> bool:
        """Whether it is named, and so known to any process."""
        return not callable(self.learner)

    def __reduce__(self) -> tuple[Any, ...]:
        return LearnerFunction, (self.learner,)


def compile_for(table: Table | Dataset, progress: bool, sampler: str) -> None:
    """Compile what learners and sweeps of a table will call, or load it from the disk cache."""
    from bayesjpt.sampler.progress import waiting
    from bayesjpt.sampler.warm_up import compile_families

    with waiting("Compiling (kept on disk for the next time)", progress):
        _compile_kernels(sampler)
        compile_families(table.schema, sampler)


@functools.cache
def _compile_kernels(sampler: str) -> None:
    """Compile the kernels of learner and sweeps, through a tiny table whose column may be of two types."""
    from bayesjpt.circuit.build import ColumnLeaf, build_circuit
    from bayesjpt.families import registry
    from bayesjpt.sampler.target import make_target
    from bayesjpt.sampler.warm_up import compile_sweeps
    from bayesjpt.table.schema import Column, Schema
    from bayesjpt.table.table import Table

    values = np.arange(1.0, 9.0)[None, :]
    table = Table(Schema((Column("x", "real", (0.0, np.inf), mean=4.5, maximum=8.0),)), values, np.ones((1, 8), bool))
    families = [registry.family(name) for name in ("normal", "exponential")]
    circuit = build_circuit(ColumnLeaf(0, np.arange(8)), table, lambda column: families)
    compile_sweeps(make_target(circuit, table, type_prior="columns", sampler=sampler))
