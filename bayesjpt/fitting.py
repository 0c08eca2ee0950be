"""The facade: a table in, a Posterior out. Learn a structure, sample it, and go on after a kill."""

from __future__ import annotations

import contextlib
import functools
import inspect
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.defaults import ALPHA, CHAINS, DRAWS, GAMMA, LARGE_MEMORY_BYTES, THIN, TUNE
from bayesjpt.errors import BayesjptWarning, CheckpointError, LearnerError, ModelError, SamplingError

if TYPE_CHECKING:
    from bayesjpt.circuit.arrays import Circuit
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.posterior.stacked import StackedPosterior
    from bayesjpt.sampler.checkpoint import Checkpoint
    from bayesjpt.sampler.schedule import Draws, Schedule
    from bayesjpt.sampler.structures_folder import StructuresFolder
    from bayesjpt.sampler.target import Target
    from bayesjpt.stacking import Structures
    from bayesjpt.table.table import Table

LEARNERS = ("mspn", "jpt")

_COMPILING = "Compiling (kept on disk for the next time)"


def fit(
    table: Table | Any,
    learner: str | Callable | Sequence[str | Callable] = "mspn",
    *,
    n_structures: int = 1,
    draws: int = DRAWS,
    tune: int = TUNE,
    thin: int = THIN,
    chains: int = CHAINS,
    cores: int | None = None,
    seed: int | None = None,
    gamma: float = GAMMA,
    alpha: float = ALPHA,
    prior: str = "default",
    type_prior: str = "members",
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
    learner : str or callable, or a sequence of them
        ``mspn``, ``jpt`` (a joint probability tree), or a function ``(table, rng, **learner_options) -> Circuit``.
        Several take turns in the structures.
    n_structures : int
        From 2, as many structures are learned, all but the first (of each learner) from half of the rows, drawn anew.
        They are weighed by stacking on held-out rows and averaged by every query. Takes as many times as long, and for
        the weights some two fifths more; the kept draws take the memory of one structure's, and the draws of one more
        while they are sampled.
    draws, tune : int
        Kept sweeps and discarded first sweeps of each chain. Of several structures each runs as long, and keeps its
        share of the draws, evenly thinned: the whole has `draws` a chain.
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
    type_prior : str
        How alpha is divided within dictionaries: evenly over ``members``, over ``types`` first, or by weights of each
        column's types that its leaves share (``columns``); see `CircuitMixture`.
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
        ``(phase, seconds)`` is called when ``compile``, ``learn`` (or ``resume``) and ``sample`` are done; of several
        structures, ``compile``, ``weigh`` and ``sample``. The first fit after an installation compiles for most of a
        minute; later ones load the result from disk.
    **learner_options
        Passed to the learner: `learn_mspn`, `learn_jpt`.

    Returns
    -------
    Posterior
        For several structures a `StackedPosterior`, whose ``by_structure()`` gives each of them.

    Raises
    ------
    LearnerError
        For an unknown learner, more of them than structures, an option that makes no sense, or a learner that does not
        return a circuit.
    SchemaError
        For families or columns that do not exist or do not fit.
    ModelError
        For an unknown prior or way to divide alpha, or concentrations that are not positive.
    SamplingError
        For numbers of draws, chains, cores or a seed that make no sense, draws that do not fit into memory, an
        interrupt before the first kept draw, or an impossible row.
    CheckpointError
        For a checkpoint of another table or fit, one that is damaged or in use, or one that exists where `resume` was
        not asked for.

    Notes
    -----
    An interrupt (Ctrl-C) after the first kept draw of every chain keeps the completed sweeps, warns, and says so in
    ``Posterior.settings``; with a checkpoint the fit can be resumed all the same. Of several structures it keeps those
    that have draws; before the first has, it loses the fold at hand.

    References
    ----------
    Yao, Vehtari, Simpson, Gelman (2018). Using Stacking to Average Bayesian Predictive Distributions. Bayesian
    Analysis 13(3).

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> rng = np.random.default_rng(1)
    >>> table = bj.as_table(pd.DataFrame({"wait": rng.exponential(3.0, 200).round(1)}))
    >>> post = bj.fit(table, draws=50, tune=50, chains=2, cores=1, seed=1, progress=False)
    >>> post.types()["wait"].type
    'positive'
    """
    numbers = {"n_structures": (n_structures, 1), "draws": (draws, 1), "tune": (tune, 0), "thin": (thin, 1)}
    for name, (value, least) in {**numbers, "chains": (chains, 1)}.items():
        _check_number(name, value, least)
    for name, value, least in (("cores", cores, 1), ("seed", seed, 0)):
        if value is not None:
            _check_number(name, value, least)
    learners = [learner] if isinstance(learner, str) or callable(learner) else list(learner)
    _check_names(learners, n_structures, prior, type_prior)
    if draws < n_structures:
        raise SamplingError(f"{draws} draws a chain for {n_structures} structures", "one for each at least")
    if resume and checkpoint is None:
        raise CheckpointError("resume without a checkpoint", "the folder of the fit to go on with")
    from bayesjpt.sampler.chains import new_chains
    from bayesjpt.sampler.checkpoint import Checkpoint
    from bayesjpt.sampler.facts import check_resumable, facts_of
    from bayesjpt.sampler.memory import check_memory, estimate_memory
    from bayesjpt.sampler.progress import waiting
    from bayesjpt.sampler.schedule import Schedule
    from bayesjpt.sampler.structures_folder import StructuresFolder
    from bayesjpt.sampler.target import check_fits, make_target
    from bayesjpt.stacking import Structures
    from bayesjpt.table.table import as_table

    table = as_table(table)
    for each in learners:
        _check_options(each, table, learner_options)
    learnt_from = _restricted(table, families)
    schedule = Schedule(int(chains), int(tune), int(draws), int(thin))
    priors = {"gamma": gamma, "alpha": alpha, "prior": prior, "type_prior": type_prior}
    settings: dict[str, Any] = {
        "learner": ", ".join(
            each if isinstance(each, str) else getattr(each, "__name__", "callable") for each in learners
        ),
        "seed": int(np.random.default_rng().integers(2**31)) if seed is None else int(seed),
        "tune": schedule.n_tune,
        "thin": schedule.thin,
        **priors,
        "gamma": float(gamma),
        "alpha": float(alpha),
    }
    if families is not None:
        settings["families"] = "; ".join(f"{c.name}: {', '.join(c.families)}" for c in learnt_from.schema if c.families)
    settings |= {
        key: value.item() if isinstance(value, np.generic) else value
        for key, value in learner_options.items()
        if isinstance(value, int | float | str | np.generic)
    }
    settings |= {
        key: ", ".join(map(str, value)) for key, value in learner_options.items() if isinstance(value, list | tuple)
    }
    report = on_phase or (lambda phase, seconds: None)
    clock = _Clock(report)
    if n_structures > 1:
        settings["n_structures"] = int(n_structures)
        structures = Structures(
            learners=tuple(_as_function(each, progress) for each in learners),
            n=int(n_structures),
            seed=settings["seed"],
            options=learner_options,
            fit_one=functools.partial(fit, **priors, families=families, **learner_options),
        )
        folder = None if checkpoint is None else StructuresFolder(Path(checkpoint))
        if folder is not None and check_resumable(folder, table, schedule, settings, resume, seed):
            structures = replace(structures, seed=settings["seed"])
        elif folder is not None:
            folder.begin(facts_of(table, schedule, settings))
        running = {"cores": cores, "progress": progress}
        return _fit_several(
            structures, table, schedule, settings, learnt_from=learnt_from, folder=folder, clock=clock, **running
        )
    (learner,) = learners

    with contextlib.ExitStack() as stack:
        folder = None if checkpoint is None else stack.enter_context(Checkpoint(Path(checkpoint)))
        resumed = folder is not None and check_resumable(folder, table, schedule, settings, resume, seed)
        with waiting(_COMPILING, progress):
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
        target = make_target(circuit, table, **priors)
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
    parameters = np.ascontiguousarray(run.theta[..., : circuit.n_theta])  # weights of types have had their effect
    return _posterior(circuit, table, run._replace(theta=parameters), settings)


def _fit_several(
    structures: Structures,
    table: Table,
    schedule: Schedule,
    settings: dict[str, Any],
    *,
    learnt_from: Table,
    folder: StructuresFolder | None,
    clock: _Clock,
    cores: int | None,
    progress: bool,
) -> StackedPosterior:
    """Return the posterior of several structures; arguments as in `fit`, `learnt_from` being what learners see."""
    from bayesjpt.posterior.stacked import StackedPosterior
    from bayesjpt.sampler.progress import task_bar, waiting
    from bayesjpt.sampler.workers import n_worker
    from bayesjpt.stacking import fit_structures, held_out_scores, weigh

    with waiting(_COMPILING, progress):
        _compile()
        _compile_families(learnt_from)
    clock.done("compile")
    with task_bar("Weighing structures on held-out rows", progress) as tell:
        n_thread = n_worker(cores, structures.n)
        log_score = held_out_scores(structures, learnt_from, folder=folder, n_thread=n_thread, tell=tell)
    weights = weigh(log_score, schedule.n_draw)
    clock.done("weigh")
    sampling = {"draws": schedule.n_draw, "tune": schedule.n_tune, "thin": schedule.thin, "chains": schedule.n_chain}
    post = fit_structures(structures, table, weights, folder=folder, cores=cores, progress=progress, **sampling)
    clock.done("sample")
    settings["structure_weights"] = ", ".join(f"{weight:.4g}" for weight in weights)
    interrupted = post.by_structure()[-1].settings.get("interrupted")
    if interrupted:
        kept = f"{len(post.by_structure())} of {np.count_nonzero(weights)} structures"
        settings["interrupted"] = f"{kept}, of the last {interrupted}"
    return StackedPosterior(post.by_structure(), post.weights, settings)


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


def _check_names(learners: list, n_structures: int, prior: str, type_prior: str) -> None:
    """Raise for a name that nobody knows, before any time is spent."""
    from bayesjpt.circuit.type_prior import check_type_prior
    from bayesjpt.families import registry

    for learner in learners:
        if not callable(learner) and learner not in LEARNERS:
            raise LearnerError(f"no learner {learner!r}", f"one of {', '.join(LEARNERS)}, or a function")
    if not 1 <= len(learners) <= n_structures:
        found = f"{len(learners)} learners for {n_structures} structure{'s' if n_structures > 1 else ''}"
        raise LearnerError(found, "one for each at most", f"Ask for n_structures={max(len(learners), 1)} or more")
    priors = [name for name in registry.FAMILIES[0].priors if all(name in f.priors for f in registry.FAMILIES)]
    if prior not in priors:
        raise ModelError(f"no prior {prior!r}", f"one of {', '.join(priors)}")
    check_type_prior(type_prior)


def _check_options(learner: str | Callable, table: Table, options: dict) -> None:
    """Raise for an option of a learner of ours that makes no sense, before kernels are compiled."""
    if learner in LEARNERS:
        import bayesjpt
        from bayesjpt.structure import base
        from bayesjpt.table.schema import closest

        parameters = inspect.signature(getattr(bayesjpt, f"learn_{learner}")).parameters
        known = [name for name in parameters if name not in ("table", "rng", "progress")]
        for name in options:
            if name not in known:
                raise LearnerError(f"learner {learner!r} has no option {name!r}", closest(name, known))
        if "min_rows" in options:
            base.rows_of("min_rows", options["min_rows"], table.n_row)
        if "threshold" in options:
            base.check_between("threshold", options["threshold"], 0.0, 1.0)


def _learn(table: Table, learner: str | Callable, rng: np.random.Generator, progress: bool, options: dict) -> Circuit:
    if not callable(learner):
        import bayesjpt
        from bayesjpt.sampler.progress import task_bar

        with task_bar("Learning the structure", progress) as callback:
            return getattr(bayesjpt, f"learn_{learner}")(table, rng, progress=callback, **options)
    return learner(table, rng, **options)


def _as_function(learner: str | Callable, progress: bool) -> Callable[..., Circuit]:
    """Return a learner as a function (table, rng, **options) that keeps its name."""

    def learn(table: Table, rng: np.random.Generator, **options: Any) -> Circuit:
        return _learn(table, learner, rng, progress, options)

    learn.__name__ = learner if isinstance(learner, str) else getattr(learner, "__name__", "callable")
    return learn


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


def _settle(folder: Checkpoint, table: Table, target: Target, schedule: Schedule, settings: dict[str, Any]) -> None:
    """Begin a checkpoint, or make sure that the one that was begun had the same target."""
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.sampler.facts import facts_of

    digest = target.digest()
    if not folder.begun:
        Posterior.from_circuit(target.circuit, table.schema).save(folder.structure)
        facts = facts_of(table, schedule, settings) | {"target": digest}
        folder.begin(facts, schedule, target.circuit.n_edge, target.n_theta)
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

    sizes = (target.circuit.n_edge, target.n_theta)
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
