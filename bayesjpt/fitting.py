"""The facade: a table in, a Posterior out. Learn a structure, sample it, and go on after a kill."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.defaults import ALPHA, CHAINS, DRAWS, GAMMA, LARGE_MEMORY_BYTES, THIN, TUNE
from bayesjpt.errors import BayesjptWarning, CheckpointError, LearnerError, ModelError, SamplingError

if TYPE_CHECKING:
    from bayesjpt.circuit.arrays import Circuit
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.sampler.checkpoint import Checkpoint
    from bayesjpt.sampler.schedule import Draws, Schedule
    from bayesjpt.sampler.target import Target
    from bayesjpt.table.table import Table

LEARNERS = ("mspn", "jpt")


def fit(
    table: Table | Any,
    learner: str | Callable = "mspn",
    *,
    draws: int = DRAWS,
    tune: int = TUNE,
    thin: int = THIN,
    chains: int = CHAINS,
    cores: int | None = None,
    seed: int | None = None,
    gamma: float = GAMMA,
    alpha: float = ALPHA,
    prior: str = "default",
    families: Mapping[str, Iterable[str]] | Iterable[str] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
    on_phase: Callable[[str, float], None] | None = None,
    **learner_options,
) -> Posterior:
    """Return the posterior of a table: structure learned, chains sampled.

    Half of the chains begin at the learner's partition, half at random allocations, so that their agreement means
    something. One seed gives the same draws whatever the number of cores.

    Where the posterior is in closed form (a hard tree, no row without the cells that decide, conjugate leaves), draws
    are independent: nothing is tuned or thinned, and ``Posterior.settings["draws"]`` says so.

    Parameters
    ----------
    table : Table or data frame
        What `read_table` returned, or a frame that `as_table` can read.
    learner : str or callable
        ``mspn``, ``jpt`` (a joint probability tree), or a function ``(table, rng, **learner_options) -> Circuit``.
    draws, tune : int
        Kept sweeps and discarded first sweeps of each chain.
    thin : int
        After tuning, every so many sweeps are one kept draw. Saves memory; sweeps cost what they cost.
    chains : int
    cores : int, optional
        Threads; as many as chains and processors allow unless given, and never more.
    seed : int, optional
        Of everything random; a fresh one unless given, kept in ``Posterior.settings``.
    gamma, alpha : float
        Dirichlet concentrations per edge at structure sums and at likelihood dictionaries.
    prior : str
        ``default`` or ``abda``; see `CircuitMixture`.
    families : names, or mapping from column to names, optional
        The only likelihood families of all columns (each keeps those that fit it, or all of its own where none does),
        or of some columns.
    checkpoint : path, optional
        A folder that keeps the state behind every sweep, so that a fit that was killed at any moment goes on and loses
        at most one sweep of each chain. It stays when the fit is done: delete it once the posterior is saved.
    resume : bool
        Go on from what the checkpoint holds, with the draws that an undisturbed run would have had; start where it
        holds nothing. Table and options must be the same; `cores` may differ.
    progress : bool
        Show progress bars, where standard error is a terminal or in a notebook with ipywidgets.
    on_phase : callable, optional
        ``(phase, seconds)`` is called when ``compile``, ``learn`` (or ``resume``) and ``sample`` are done. The first
        fit after an installation compiles for most of a minute; later ones load the result from disk.
    **learner_options
        Passed to the learner: `learn_mspn`, `learn_jpt`.

    Returns
    -------
    Posterior

    Raises
    ------
    LearnerError
        For an unknown learner, an option that makes no sense, or a learner that does not return a circuit.
    SchemaError
        For families or columns that do not exist or do not fit.
    ModelError
        For an unknown prior, or concentrations that are not positive.
    SamplingError
        For numbers of draws, chains, cores or a seed that make no sense, draws that do not fit into memory, an
        interrupt before the first kept draw, or an impossible row.
    CheckpointError
        For a checkpoint of another table or fit, one that is damaged or in use, or one that exists where `resume` was
        not asked for.

    Notes
    -----
    An interrupt (Ctrl-C) after the first kept draw of every chain keeps the completed sweeps, warns, and says so in
    ``Posterior.settings``; with a checkpoint the fit can be resumed all the same.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> rng = np.random.default_rng(1)
    >>> table = bj.as_table(pd.DataFrame({"wait": rng.exponential(3.0, 200).round(1)}))
    >>> post = bj.fit(table, draws=50, tune=50, chains=2, cores=1, seed=1, progress=False)
    >>> post.types()["wait"].type
    'positive'
    """
    for name, value, least in (("draws", draws, 1), ("tune", tune, 0), ("thin", thin, 1), ("chains", chains, 1)):
        _check_number(name, value, least)
    for name, value, least in (("cores", cores, 1), ("seed", seed, 0)):
        if value is not None:
            _check_number(name, value, least)
    _check_names(learner, prior)
    if resume and checkpoint is None:
        raise CheckpointError("resume without a checkpoint", "the folder of the fit to go on with")
    from bayesjpt.sampler.chains import new_chains
    from bayesjpt.sampler.checkpoint import Checkpoint
    from bayesjpt.sampler.memory import check_memory, estimate_memory
    from bayesjpt.sampler.schedule import Schedule
    from bayesjpt.sampler.target import check_fits, make_target
    from bayesjpt.table.table import as_table

    table = as_table(table)
    _check_options(learner, table, learner_options)
    learnt_from = _restricted(table, families)
    schedule = Schedule(int(chains), int(tune), int(draws), int(thin))
    settings: dict[str, Any] = {
        "learner": learner if isinstance(learner, str) else getattr(learner, "__name__", "callable"),
        "seed": int(np.random.default_rng().integers(2**31)) if seed is None else int(seed),
        "tune": schedule.n_tune,
        "thin": schedule.thin,
        "gamma": float(gamma),
        "alpha": float(alpha),
        "prior": prior,
    }
    if families is not None:
        settings["families"] = "; ".join(f"{c.name}: {', '.join(c.families)}" for c in learnt_from.schema if c.families)
    settings |= {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in learner_options.items()
        if isinstance(value, int | float | str | np.generic)
    }
    report = on_phase or (lambda phase, seconds: None)
    clock = _Clock(report)

    with contextlib.ExitStack() as stack:
        folder = None if checkpoint is None else stack.enter_context(Checkpoint(Path(checkpoint)))
        resumed = folder is not None and _check_resumable(folder, table, schedule, settings, resume, seed)
        with _waiting("Compiling (kept on disk for the next time)", progress):
            _compile()
            _compile_families(learnt_from)
        clock.done("compile")

        learn_seed, chain_seed = np.random.SeedSequence(settings["seed"]).spawn(2)
        if folder is not None and resumed:
            circuit = _stored_circuit(folder)
        else:
            circuit = _learn(learnt_from, learner, np.random.default_rng(learn_seed), progress, learner_options)
        check_fits(circuit, table)
        clock.done("resume" if resumed else "learn")

        memory = estimate_memory(circuit, table, draws=schedule.n_draw, chains=schedule.n_chain, cores=cores)
        check_memory(memory)
        if memory.total > LARGE_MEMORY_BYTES:
            warnings.warn(f"sampling takes {memory} of memory", BayesjptWarning, stacklevel=2)
        target = make_target(circuit, table, gamma=gamma, alpha=alpha, prior=prior)
        if folder is not None:
            _settle(folder, table, target, schedule, settings)
        if target.is_closed_form:
            schedule = Schedule(schedule.n_chain, 0, schedule.n_draw, 1)
        run = _sample(target, schedule, new_chains(schedule.n_chain, chain_seed), folder, cores, progress)
        clock.done("sample")
    if run.theta.shape[1] < schedule.n_draw:
        kept = f"{schedule.n_chain} chains of {run.theta.shape[1]} draws"
        warnings.warn(
            f"interrupted: {kept} are kept, of {schedule.n_chain} chains of {schedule.n_draw} asked for",
            BayesjptWarning,
            stacklevel=2,
        )
        settings["interrupted"] = kept
    if target.is_closed_form:
        settings |= {"tune": 0, "thin": 1, "draws": "independent, from the posterior in closed form"}
    return _posterior(circuit, table, run, settings)


class _Clock:
    """Reports how long each phase took."""

    def __init__(self, report: Callable[[str, float], None]):
        self._report, self._began = report, time.perf_counter()

    def done(self, phase: str) -> None:
        now = time.perf_counter()
        self._report(phase, now - self._began)
        self._began = now


def _check_number(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SamplingError(f"{name} = {value!r}", f"a whole number of at least {least}")


def _check_names(learner: str | Callable, prior: str) -> None:
    """Raise for a name that nobody knows, before any time is spent."""
    from bayesjpt.families import registry

    if not callable(learner) and learner not in LEARNERS:
        raise LearnerError(f"no learner {learner!r}", f"one of {', '.join(LEARNERS)}, or a function")
    priors = [name for name in registry.FAMILIES[0].priors if all(name in f.priors for f in registry.FAMILIES)]
    if prior not in priors:
        raise ModelError(f"no prior {prior!r}", f"one of {', '.join(priors)}")


def _check_options(learner: str | Callable, table: Table, options: dict) -> None:
    """Raise for an option of a learner of ours that makes no sense, before kernels are compiled."""
    if learner in LEARNERS:
        from bayesjpt.structure import base

        if "min_rows" in options:
            base.rows_of("min_rows", options["min_rows"], table.n_row)
        if "threshold" in options:
            base.check_between("threshold", options["threshold"], 0.0, 1.0)


def _learn(table: Table, learner: str | Callable, rng: np.random.Generator, progress: bool, options: dict) -> Circuit:
    if not callable(learner):
        import bayesjpt

        with _learning_bar(progress) as callback:
            return getattr(bayesjpt, f"learn_{learner}")(table, rng, progress=callback, **options)
    return learner(table, rng, **options)


def _restricted(table: Table, families: Any) -> Table:
    """Return the table under a schema that names the only families; learners build their circuit from it."""
    if families is None:
        return table
    from bayesjpt.circuit.restrict import restrict_families
    from bayesjpt.table.table import Table

    return Table(restrict_families(table.schema, families), table.values, table.observed)


@functools.cache
def _compile() -> None:
    """Compile the kernels of learner and sweeps, or load them from the disk cache, through a tiny table."""
    from bayesjpt.circuit.build import ColumnLeaf, build_circuit
    from bayesjpt.families import registry
    from bayesjpt.sampler.target import make_target
    from bayesjpt.sampler.warm_up import compile_sweeps
    from bayesjpt.table.schema import Column, Schema
    from bayesjpt.table.table import Table

    values = np.arange(1.0, 9.0)[None, :]
    table = Table(Schema((Column("x", "real", (0.0, np.inf), mean=4.5, maximum=8.0),)), values, np.ones((1, 8), bool))
    circuit = build_circuit(ColumnLeaf(0, np.arange(8)), table, lambda column: [registry.family("exponential")])
    compile_sweeps(make_target(circuit, table))


def _compile_families(table: Table) -> None:
    from bayesjpt.sampler.warm_up import compile_families

    compile_families(table.schema)


# --- checkpoints


def _facts(table: Table, schedule: Schedule, settings: dict[str, Any]) -> dict[str, Any]:
    """Return everything on which draws depend, as `check_facts` compares it."""
    from bayesjpt.numerics.jit import source_hash

    cells = hashlib.sha256(json.dumps(table.schema.to_dict()).encode())
    cells.update(np.where(table.observed, table.values, 0.0).data)
    cells.update(table.observed.data)
    return {
        "options": {"draws": schedule.n_draw, "chains": schedule.n_chain, **settings},
        "table": {"rows": table.n_row, "columns": table.n_column, "digest": cells.hexdigest()},
        "versions": {
            "bayesjpt's kernels": source_hash(),
            "numpy": np.__version__,
            "numba": importlib.metadata.version("numba"),
            "the byte order": sys.byteorder,
        },
    }


def _check_resumable(
    folder: Checkpoint, table: Table, schedule: Schedule, settings: dict[str, Any], resume: bool, seed: int | None
) -> bool:
    """Return whether the folder holds this fit; raise where it holds another, or nobody asked to go on with it."""
    from bayesjpt.sampler.checkpoint import check_facts

    if not folder.begun:
        return False
    if not resume:
        raise CheckpointError(
            f"checkpoint {str(folder.path)!r} holds a fit already",
            "an empty folder or none",
            "Go on with it by resume=True (--resume on the command line), or delete it",
        )
    stored = folder.facts()
    if seed is None:
        settings["seed"] = stored["options"].get("seed")
    check_facts(folder.path, stored, _facts(table, schedule, settings))
    return True


def _settle(folder: Checkpoint, table: Table, target: Target, schedule: Schedule, settings: dict[str, Any]) -> None:
    """Begin a checkpoint, or make sure that the one that was begun had the same target."""
    from bayesjpt.posterior.draws import Posterior

    digest = target.digest()
    if not folder.begun:
        Posterior.from_circuit(target.circuit, table.schema).save(folder.structure)
        facts = _facts(table, schedule, settings) | {"target": digest}
        folder.begin(facts, schedule, target.circuit.n_edge, target.circuit.n_theta)
    elif folder.facts().get("target") != digest:
        raise CheckpointError(
            f"plan, priors or cells differ from those of checkpoint {str(folder.path)!r}",
            "the version of bayesjpt, and of families of your own, with which it was begun",
            "Start again in another folder",
        )


def _stored_circuit(folder: Checkpoint) -> Circuit:
    """Return the circuit of a checkpoint, checked as that of any saved fit."""
    from bayesjpt.posterior.store import load

    return load(folder.structure).circuit


# --- sampling


def _sample(
    target: Target, schedule: Schedule, chains: list, folder: Checkpoint | None, cores: int | None, progress: bool
) -> Draws:
    """Return the draws that all chains have: fewer than asked for after an interrupt."""
    from bayesjpt.sampler.chains import run_chains
    from bayesjpt.sampler.progress import sampling_bar
    from bayesjpt.sampler.schedule import empty_draws
    from bayesjpt.sampler.workers import n_worker

    sizes = (target.circuit.n_edge, target.circuit.n_theta)
    if folder is None:
        draws, records = empty_draws(schedule, *sizes), None
    else:
        draws, records = folder.open(schedule, *sizes)
        records.restore(chains, schedule)
    with sampling_bar(chains, schedule, progress) as watch:
        run_chains(
            target,
            schedule,
            chains,
            draws,
            n_thread=n_worker(cores, schedule.n_chain),
            record=records,
            watch=watch,
        )
    kept = min(schedule.n_kept(chain.sweep) for chain in chains)
    if not kept:
        remedy = "Nothing was kept; start again" if folder is None else f"Go on from {str(folder.path)!r} with resume"
        raise SamplingError("interrupted before the first kept draw", remedy=remedy)
    return draws if folder is None and kept == schedule.n_draw else draws.first(kept)


def _posterior(circuit: Circuit, table: Table, draws: Draws, settings: dict[str, Any]) -> Posterior:
    from bayesjpt.posterior.convert import reference_rows
    from bayesjpt.posterior.draws import Posterior

    stats = {"n_active_edges": draws.n_active_edges}
    if not np.isnan(draws.log_likelihood).any():
        stats["log_likelihood"] = draws.log_likelihood
    return Posterior(
        circuit=circuit,
        schema=table.schema,
        params=draws.params,
        sample_stats=stats,
        reference=table.take(reference_rows(table.n_row)),
        settings=settings,
    )


# --- what people see meanwhile


def _shown(progress: bool) -> bool:
    from bayesjpt.sampler.progress import visible

    return progress and visible()


@contextlib.contextmanager
def _waiting(text: str, progress: bool) -> Iterator[None]:
    if not _shown(progress):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextlib.contextmanager
def _learning_bar(progress: bool) -> Iterator[Callable[[int, int], None] | None]:
    if not _shown(progress):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Learning the structure", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
