"""The facade: a table in, a Posterior out."""

from __future__ import annotations

import contextlib
import functools
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.defaults import ALPHA, CHAINS, DRAWS, GAMMA, LARGE_MEMORY_BYTES, THIN, TUNE
from bayesjpt.errors import BayesjptWarning, CheckpointError, ModelError, SamplingError
from bayesjpt.fitting.learning import (
    Learner,
    as_function,
    check_learners,
    check_options,
    compile_for,
    learn,
    name_of,
    restricted,
)

if TYPE_CHECKING:
    from bayesjpt.fitting.stacking import Structures
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.posterior.stacked import StackedPosterior
    from bayesjpt.sampler.schedule import Schedule
    from bayesjpt.sampler.structures_folder import StructuresFolder
    from bayesjpt.table.table import Table


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
    check_learners(learners, n_structures)
    _check_priors(prior, type_prior)
    if draws < n_structures:
        raise SamplingError(f"{draws} draws a chain for {n_structures} structures", "one for each at least")
    if resume and checkpoint is None:
        raise CheckpointError("resume without a checkpoint", "the folder of the fit to go on with")
    from bayesjpt.fitting.stacking import Structures
    from bayesjpt.sampler.facts import check_resumable, facts_of
    from bayesjpt.sampler.schedule import Schedule
    from bayesjpt.sampler.structures_folder import StructuresFolder
    from bayesjpt.table.table import as_table

    table = as_table(table)
    for each in learners:
        check_options(each, table, learner_options)
    learnt_from = restricted(table, families)
    schedule = Schedule(int(chains), int(tune), int(draws), int(thin))
    priors = {"gamma": gamma, "alpha": alpha, "prior": prior, "type_prior": type_prior}
    settings: dict[str, Any] = {
        "learner": ", ".join(map(name_of, learners)),
        "seed": int(np.random.default_rng().integers(2**31)) if seed is None else int(seed),
        "tune": schedule.n_tune,
        "thin": schedule.thin,
        **priors,
        "gamma": float(gamma),
        "alpha": float(alpha),
    }
    if families is not None:
        settings["families"] = "; ".join(f"{c.name}: {', '.join(c.families)}" for c in learnt_from.schema if c.families)
    settings |= _settings_of(learner_options)
    clock = _Clock(on_phase or (lambda phase, seconds: None))
    running: dict[str, Any] = {"learnt_from": learnt_from, "clock": clock, "cores": cores, "progress": progress}
    if n_structures == 1:
        asked = {"seed": seed, "checkpoint": checkpoint, "resume": resume, "options": learner_options}
        return _fit_one(table, learners[0], schedule, settings, priors=priors, **asked, **running)
    settings["n_structures"] = int(n_structures)
    structures = Structures(
        learners=tuple(as_function(each, progress) for each in learners),
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
    return _fit_several(structures, table, schedule, settings, folder=folder, **running)


def _fit_one(
    table: Table,
    learner: Learner,
    schedule: Schedule,
    settings: dict[str, Any],
    *,
    priors: dict[str, Any],
    seed: int | None,
    checkpoint: str | Path | None,
    resume: bool,
    options: dict[str, Any],
    learnt_from: Table,
    clock: _Clock,
    cores: int | None,
    progress: bool,
) -> Posterior:
    """Return the posterior of one structure; arguments as in `fit`, `learnt_from` being what the learner sees."""
    from bayesjpt.fitting.sampling import sample, settle, stored_circuit, to_posterior
    from bayesjpt.sampler.chains import new_chains
    from bayesjpt.sampler.checkpoint import Checkpoint
    from bayesjpt.sampler.facts import check_resumable
    from bayesjpt.sampler.memory import check_memory, estimate_memory
    from bayesjpt.sampler.schedule import Schedule
    from bayesjpt.sampler.target import check_fits, make_target

    with contextlib.ExitStack() as stack:
        folder = None if checkpoint is None else stack.enter_context(Checkpoint(Path(checkpoint)))
        resumed = folder is not None and check_resumable(folder, table, schedule, settings, resume, seed)
        compile_for(learnt_from, progress)
        clock.done("compile")

        learn_seed, chain_seed = np.random.SeedSequence(settings["seed"]).spawn(2)
        if folder is not None and resumed:
            circuit = stored_circuit(folder)
        else:
            circuit = learn(learnt_from, learner, np.random.default_rng(learn_seed), progress, options)
        check_fits(circuit, table)
        clock.done("resume" if resumed else "learn")

        memory = estimate_memory(circuit, table, draws=schedule.n_draw, chains=schedule.n_chain, cores=cores)
        check_memory(memory)
        if memory.total > LARGE_MEMORY_BYTES:
            warnings.warn(f"sampling takes {memory} of memory", BayesjptWarning, stacklevel=3)
        target = make_target(circuit, table, **priors)
        if folder is not None:
            settle(folder, table, target, schedule, settings)
        if target.is_closed_form:
            schedule = Schedule(schedule.n_chain, 0, schedule.n_draw, 1)
        run = sample(target, schedule, new_chains(schedule.n_chain, chain_seed), folder, cores, progress)
        clock.done("sample")
    if run.theta.shape[1] < schedule.n_draw:
        kept = f"{schedule.n_chain} chains of {run.theta.shape[1]} draws"
        warnings.warn(
            f"interrupted: {kept} are kept, of {schedule.n_chain} chains of {schedule.n_draw} asked for",
            BayesjptWarning,
            stacklevel=3,
        )
        settings["interrupted"] = kept
    if target.is_closed_form:
        settings |= {"tune": 0, "thin": 1, "draws": "independent, from the posterior in closed form"}
    return to_posterior(circuit, table, run, settings)


def _fit_several(
    structures: Structures,
    table: Table,
    schedule: Schedule,
    settings: dict[str, Any],
    *,
    folder: StructuresFolder | None,
    learnt_from: Table,
    clock: _Clock,
    cores: int | None,
    progress: bool,
) -> StackedPosterior:
    """Return the posterior of several structures; arguments as in `fit`, `learnt_from` being what learners see."""
    from bayesjpt.fitting.stacking import fit_structures, held_out_scores, weigh
    from bayesjpt.posterior.stacked import StackedPosterior
    from bayesjpt.sampler.progress import task_bar
    from bayesjpt.sampler.workers import n_worker

    compile_for(learnt_from, progress)
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


def _check_priors(prior: str, type_prior: str) -> None:
    """Raise for a name that nobody knows, before any time is spent."""
    from bayesjpt.circuit.type_prior import check_type_prior
    from bayesjpt.families import registry

    priors = [name for name in registry.FAMILIES[0].priors if all(name in f.priors for f in registry.FAMILIES)]
    if prior not in priors:
        raise ModelError(f"no prior {prior!r}", f"one of {', '.join(priors)}")
    check_type_prior(type_prior)


def _settings_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return what `Posterior.settings` can hold of a learner's options: numbers, words, and lists of them as words."""
    single = {key: value for key, value in options.items() if isinstance(value, int | float | str | np.generic)}
    several = {key: value for key, value in options.items() if isinstance(value, list | tuple)}
    return {
        **{key: value.item() if isinstance(value, np.generic) else value for key, value in single.items()},
        **{key: ", ".join(map(str, value)) for key, value in several.items()},
    }
