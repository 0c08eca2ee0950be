"""The facade: a table in, a Posterior out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.circuit.bdeu import BDeu
from bayesjpt.defaults import ALPHA, ESS, GAMMA, STRUCTURES, THIN
from bayesjpt.errors import CheckpointError, FitFileError, warn
from bayesjpt.fitting.learning import LearnerFunction, compile_for, learn, restricted
from bayesjpt.fitting.settings import BOOSTING, FitSettings
from bayesjpt.user_paths import as_path

if TYPE_CHECKING:
    from bayesjpt.fitting.ensemble import Ensemble
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.posterior.networks import NetworkDraws
    from bayesjpt.posterior.stacked import StackedPosterior
    from bayesjpt.sampler.checkpoint import Checkpoint
    from bayesjpt.sampler.schedule import Schedule
    from bayesjpt.sampler.structures_folder import StructuresFolder
    from bayesjpt.table.dataset import Dataset
    from bayesjpt.table.table import Table

LARGE_MEMORY_BYTES = 2**30
"""From here on a fit says how much memory it will take: 1 GiB is an eighth of a small laptop's."""


def fit(
    table: Table | Dataset | Any,
    learner: str | Callable | Sequence[str | Callable] = "mspn",
    *,
    n_structures: int = STRUCTURES,
    weights: str = "even",
    draws: int | None = None,
    tune: int | None = None,
    thin: int = THIN,
    chains: int | None = None,
    cores: int | None = None,
    executor: Any = None,
    seed: int | None = None,
    gamma: float = GAMMA,
    alpha: float = ALPHA,
    prior: str = "default",
    type_prior: str = "members",
    sampler: str = "blocked",
    ess: float | str | BDeu = ESS,
    families: Mapping[str, Iterable[str]] | Iterable[str] | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    time: float | None = None,
    progress: bool = True,
    on_phase: Callable[[str, float], None] | None = None,
    on_structure: Callable[[Posterior], None] | None = None,
    **learner_options,
) -> Posterior:
    """Return the posterior of a table: several structures learned, each sampled by a short chain, all averaged.

    The posterior of a mixture has very many modes, and no chain travels between them. So a fit is an ensemble of
    replicates: each learns a structure of its own and is sampled from there. Their spread is part of every interval,
    and tells how far another seed would move an answer (`Posterior.convergence`). One seed gives the same draws
    whatever the number of cores.

    Where the posterior is in closed form (a hard tree, no row without the cells that decide, conjugate leaves), draws
    are independent, and nothing is tuned or thinned.

    Parameters
    ----------
    table : Table, Dataset or data frame
        What `read_table` or `dataset` returned, or a frame that `as_table` can read. A structure is learned from
        100,000 rows at most; sweeps go over all.
    learner : str or callable, or a sequence of them
        ``mspn``, ``jpt`` (a joint probability tree), ``wmispn`` (a network over intervals), ``cutset`` (a cutset
        network), ``tree_mixture`` (a mixture of Chow-Liu trees), ``hclt`` (a hidden Chow-Liu tree), or a function
        ``(table, rng, **learner_options) -> Circuit``. Several take turns in the structures.
    n_structures : int
        Structures that are learned and averaged. All but the first (of each learner) are learned from half of the rows,
        drawn anew, where the table has `defaults.HALVED_ROWS` or more; from all rows with a seed of their own, where it
        has fewer. All are sampled on all rows. One structure is what those study who want to know a single posterior:
        it gets long chains, half of which begin at random allocations, so that their agreement means something.
    weights : str
        ``even``; ``stacking``: weights under which rows that are held out are most probable, of each structure, or of
        each of several learners, divided evenly over its structures, for the price of learning and sampling each
        structure four times more; or ``boosting``, of cutset networks of labels alone: each
        is learned from, and given, rows that those before it find improbable, and gets the share under which the
        table's rows are most probable. That is an optimum for comparisons, and intervals are those of its parts; even
        weights of random networks predict better.
    draws : int, optional
        Kept sweeps of each chain of each structure; 20 unless given, 2 of cutset networks of labels without missing
        cells, 150 of a single structure.
        Of several structures of more than 100,000 rows fewer, by the root of the rows, down to 5; and so are `tune`.
        The whole has `n_structures` times as many a chain, divided over the structures by their weights.
    tune : int, optional
        Discarded first sweeps of each chain; 30 unless given, 150 of a single structure.
    thin : int
        After tuning, every so many sweeps are one kept draw. Saves memory; sweeps cost what they cost.
    chains : int, optional
        Chains of each structure; 1 unless given, 4 of a single structure. Those of even number begin at the learner's
        partition, the others at random allocations.
    cores : int, optional
        Threads; as many as processors unless given. A structure (a chain, of a single structure) is learned and sampled
        by one thread; where there are fewer of them than threads, the others share the sweeps of tables of more than
        65,536 rows. Learners of your own are called by one at a time.
    executor : optional
        Processes, here or elsewhere, that count in place of threads: a `concurrent.futures.Executor`, a Dask client, or
        its ``client.get_executor(pure=False)``. The draws are the same. Rows should be a `Dataset` in a folder that all
        of them can read; below 100,000 rows a worker one machine is faster.
    seed : int, optional
        Of everything random; a fresh one unless given, kept in ``Posterior.settings``.
    gamma, alpha : float
        Dirichlet concentrations per edge at latent sums and at likelihood dictionaries.
    prior : str
        ``default`` or ``abda``; see `CircuitMixture`.
    type_prior : str
        How alpha is divided within dictionaries: evenly over ``members``, over ``types`` first, or by weights of each
        column's types that its leaves share (``columns``); see `CircuitMixture`.
    sampler : str
        How a sweep draws the allocations of rows: ``blocked``, all at once given weights and parameters; or
        ``collapsed``, then also one after the other given all others, weights and conjugate parameters integrated out,
        which takes many times as long: for small tables.
    ess : float, str or BDeu
        Imaginary rows of the prior of each split, divided evenly over its ways. ``cutset`` and ``tree_mixture`` judge
        by them how columns depend on each other, too. ``drawn``: of several cutset networks of labels without missing
        cells, each draw has a number of its own, from its posterior (powers of two from 1/32 to 64, all as probable
        before); trees are judged by 1, and under `BDeu`, one imaginary sample for the whole circuit, too.
    families : names, or mapping from column to names, optional
        The only likelihood families of all columns (each keeps those that fit it, or all of its own where none does),
        or of some columns.
    checkpoint : path, optional
        A folder that keeps each structure that is done, or every few seconds the chains of a single structure, so that
        a fit that was killed at any moment goes on and loses at most the structures, or the ten seconds of sampling,
        that were at hand. It stays when the fit is done: delete it once the posterior is saved.
    resume : bool
        Go on from what the checkpoint holds, with the draws that an undisturbed run would have had; start where it
        holds nothing. Table and options must be the same; `cores` may differ.
    time : float, optional
        Seconds after which the structures that are done are the fit, which are what they would have been without a
        limit; how many they are depends on the machine. Where none is done by then, the fit is a draft, learned from
        1,000 of the rows or a quarter of fewer, with a warning; of under 400 rows one structure is waited for.
    progress : bool
        Show progress bars, where standard error is a terminal or in a notebook with ipywidgets; elsewhere a line when a
        phase of more than two seconds begins, and one when it ends.
    on_phase : callable, optional
        ``(phase, seconds)`` is called when ``compile``, ``weigh`` (unless evenly) and ``structures`` are done; of a
        single structure ``compile``, ``learn`` (or ``resume``) and ``sample``. The first fit after an installation
        compiles for most of a minute; later ones load the result from disk.
    on_structure : callable, optional
        ``(posterior)`` is called with the posterior of all structures that are done, each time that one is. Answers
        can be had from it while the others are at work.
    **learner_options
        Passed to the learner: `learn_mspn`, `learn_jpt`, `learn_wmispn`, `learn_cutset`,
        `learn_tree_mixture`, `learn_hclt`.

    Returns
    -------
    Posterior
        For several structures a `StackedPosterior`, whose ``by_structure()`` gives each of them.

    Raises
    ------
    LearnerError
        For an unknown learner or way to weigh structures, more learners than structures, an option that makes no
        sense, or a learner that does not return a circuit.
    SchemaError
        For families or columns that do not exist or do not fit.
    ModelError
        For an unknown prior, sampler or way to divide alpha, or concentrations that are not positive.
    SamplingError
        For numbers of draws, chains, cores or a seed that make no sense, draws that do not fit into memory, an
        interrupt before the first structure is done (before the first kept draw, of a single one), or an impossible
        row.
    CheckpointError
        For a checkpoint of another table or fit, one that is damaged or in use, or one that exists where `resume` was
        not asked for.

    Notes
    -----
    An interrupt (Ctrl-C) keeps the structures that are done, warns, and says so in ``Posterior.settings``; of a single
    structure it keeps the sweeps that all chains have completed. With a checkpoint the fit can be resumed all the same.

    References
    ----------
    Yao, Vehtari, Simpson, Gelman (2018). Using Stacking to Average Bayesian Predictive Distributions. Bayesian
    Analysis 13(3). Rosset and Segal (2002). Boosting Density Estimation. NIPS 15.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> rng = np.random.default_rng(1)
    >>> table = bj.as_table(pd.DataFrame({"wait": rng.exponential(3.0, 200).round(1)}))
    >>> post = bj.fit(table, n_structures=4, cores=1, seed=1, progress=False)
    >>> post.types()["wait"].type
    'positive'
    """
    fit_settings = FitSettings(
        learner=learner,
        n_structures=n_structures,
        weights=weights,
        draws=draws,
        tune=tune,
        thin=thin,
        chains=chains,
        cores=cores,
        executor=executor,
        seed=seed,
        gamma=gamma,
        alpha=alpha,
        prior=prior,
        type_prior=type_prior,
        sampler=sampler,
        ess=ess,
        families=families,
        checkpoint=checkpoint,
        resume=resume,
        time=time,
        progress=progress,
        options=learner_options,
    )
    from bayesjpt.table.dataset import Dataset
    from bayesjpt.table.table import as_table

    if not isinstance(table, Dataset):
        table = as_table(table)
    fit_settings = fit_settings.of_rows(table)
    fit_settings.check_options(table)
    learnt_from = restricted(table, families)
    clock = _Clock(on_phase, progress, time)
    kept = None if checkpoint is None else as_path(checkpoint, CheckpointError)
    if fit_settings.several:
        from bayesjpt.sampler.structures_folder import StructuresFolder

        with contextlib.nullcontext() if kept is None else StructuresFolder(kept) as folder:
            return _fit_several(fit_settings, table, learnt_from, clock, folder, on_structure)
    from bayesjpt.sampler.checkpoint import Checkpoint

    with contextlib.nullcontext() if kept is None else Checkpoint(kept) as folder:
        return _fit_one(fit_settings, table, learnt_from, clock, folder)


def _fit_one(
    fit_settings: FitSettings,
    table: Table | Dataset,
    learnt_from: Table | Dataset,
    clock: _Clock,
    folder: Checkpoint | None,
) -> Posterior:
    """Return the posterior of one structure, `learnt_from` being the table as the learner sees it."""
    from bayesjpt.fitting.ensemble import learnt_rows, resampling_of
    from bayesjpt.fitting.sampling import sample, settle, stored_circuit, to_posterior
    from bayesjpt.posterior.draws import INDEPENDENT
    from bayesjpt.sampler.chains import new_chains
    from bayesjpt.sampler.memory import check_memory, estimate_memory
    from bayesjpt.sampler.target import check_fits, make_target
    from bayesjpt.sampler.workers import n_helper

    fit_settings, resumed = _seeded(fit_settings, folder, table, learnt_from)
    settings = fit_settings.recorded(learnt_from.schema)
    with clock.phase("compile"):
        compile_for(learnt_from, fit_settings.progress, fit_settings.sampler)

    learn_seed, chain_seed = np.random.SeedSequence(settings["seed"]).spawn(2)
    with clock.phase("resume" if resumed else "learn"):
        if folder is not None and resumed:
            circuit = stored_circuit(folder)
        else:
            rng = np.random.default_rng(learn_seed)
            rows = learnt_rows(learnt_from, 0, resampling_of(learnt_from, fit_settings.learners))
            circuit = learn(rows, fit_settings.learners[0], rng, fit_settings.progress, fit_settings.learner_options)
        check_fits(circuit, table)

    schedule = fit_settings.schedule
    sizes = {
        "draws": schedule.n_draw,
        "chains": schedule.n_chain,
        "cores": fit_settings.cores,
        "sampler": fit_settings.sampler,
    }
    memory = estimate_memory(circuit, table, **sizes)
    check_memory(memory)
    if memory.total > LARGE_MEMORY_BYTES:
        warn(f"sampling takes {memory} of memory")
    target = make_target(
        circuit,
        table,
        n_thread=n_helper(fit_settings.cores, schedule.n_chain),
        executor=fit_settings.executor,
        **fit_settings.priors,
    )
    if target.is_closed_form:
        schedule = schedule.of_independent_draws()
    if folder is not None:
        settle(folder, table, target, schedule, fit_settings.facts(table, learnt_from.schema))
    with clock.phase("sample"):
        run = sample(target, schedule, new_chains(schedule.n_chain, chain_seed), folder, fit_settings)
    if run.theta.shape[1] < schedule.n_draw:
        kept = f"{schedule.n_chain} chains of {run.theta.shape[1]} draws"
        warn(f"interrupted: {kept} are kept, of {schedule.n_chain} chains of {schedule.n_draw} asked for")
        settings["interrupted"] = kept
    if target.is_closed_form:
        settings |= {"tune": 0, "thin": 1, "draws": INDEPENDENT}
    return to_posterior(circuit, table, run, settings)


def _fit_several(
    fit_settings: FitSettings,
    table: Table | Dataset,
    learnt_from: Table | Dataset,
    clock: _Clock,
    folder: StructuresFolder | None,
    on_structure: Callable[[Posterior], None] | None,
) -> StackedPosterior:
    """Return the posterior of several structures, `learnt_from` being the table as learners see it."""
    from bayesjpt.fitting.ensemble import Ensemble, fit_structures, resampling_of
    from bayesjpt.fitting.sampling import interrupted_before
    from bayesjpt.fitting.stacking import weights_by_held_out_rows
    from bayesjpt.posterior.draws import INDEPENDENT
    from bayesjpt.posterior.stacked import StackedPosterior
    from bayesjpt.posterior.weights import draws_for
    from bayesjpt.sampler.progress import count_bar
    from bayesjpt.sampler.workers import n_helper, n_worker
    from bayesjpt.table.dataset import Dataset

    fit_settings, resumed = _seeded(fit_settings, folder, table, learnt_from)
    settings, schedule = fit_settings.recorded(learnt_from.schema), fit_settings.schedule
    if folder is not None and not resumed:
        folder.begin(fit_settings.facts(table, learnt_from.schema))
    ensemble = Ensemble(
        learners=tuple(map(LearnerFunction, fit_settings.learners)),
        n=fit_settings.n_structures,
        seed=settings["seed"],
        options=fit_settings.learner_options,
        priors=fit_settings.priors,
        resampling=resampling_of(learnt_from, fit_settings.learners),
        n_thread=1 if fit_settings.executor is not None else n_worker(fit_settings.cores, fit_settings.n_structures),
        n_helper=n_helper(fit_settings.cores, fit_settings.n_structures),
        executor=fit_settings.executor,
    )
    with clock.phase("compile"):
        compile_for(learnt_from, fit_settings.progress, fit_settings.sampler)
    weights, boosted = np.full(ensemble.n, 1.0 / ensemble.n), []
    if fit_settings.weights != "even":
        with clock.phase("weigh"):
            if fit_settings.weights == BOOSTING:
                boosted, weights = _boosted(fit_settings, ensemble, table, learnt_from)
            else:
                assert not isinstance(learnt_from, Dataset), "refused before"
                weights = weights_by_held_out_rows(ensemble, learnt_from, folder, progress=fit_settings.progress)
        settings["structure_weights"] = ", ".join(f"{weight:.4g}" for weight in weights)
    n_draws = draws_for(weights, ensemble.n * schedule.n_draw)
    schedules = {k: replace(schedule, n_draw=int(n_draws[k])) for k in np.flatnonzero(n_draws).tolist()}
    done: dict[int, Posterior | NetworkDraws] = {}
    done |= {} if folder is None else _structures_of(folder, table, schedules)
    done |= {k: replace(boosted[k], draws=np.arange(plan.n_draw)) for k, plan in schedules.items() if boosted}

    def whole() -> StackedPosterior:
        numbers = sorted(done)
        is_independent = all(done[k].settings.get("draws") == INDEPENDENT for k in numbers)
        stacked_settings = {**settings, "tune": 0, "thin": 1, "draws": INDEPENDENT} if is_independent else settings
        return StackedPosterior([done[k] for k in numbers], weights[numbers] / weights[numbers].sum(), stacked_settings)

    def keep(number: int, post: Posterior | NetworkDraws) -> None:
        tell_done(len(done))
        if folder is not None:
            StackedPosterior([post], [1.0]).save(folder.structure(number))
        if on_structure is not None:
            on_structure(whole())

    with (
        clock.phase("structures"),
        count_bar("Structures", len(done), len(schedules), fit_settings.progress) as tell_done,
    ):
        ended = fit_structures(ensemble, table, learnt_from, schedules, done=done, keep=keep, deadline=clock.deadline)
    if not done:
        raise interrupted_before("the first structure was done", folder)
    if boosted and on_structure is not None:
        on_structure(whole())
    if ended is not None and len(done) < len(schedules):
        drafted = next((post.settings["draft"] for post in done.values() if "draft" in post.settings), None)
        kept = f"{len(done)} of {len(schedules)} structures" if drafted is None else f"a draft from {drafted}"
        warn(f"{ended}: {kept} {'are' if drafted is None else 'is'} kept")
        settings |= {"interrupted": kept} | ({} if drafted is None else {"draft": drafted})
    return whole()


def _boosted(
    fit_settings: FitSettings, ensemble: Ensemble, table: Table | Dataset, learnt_from: Table | Dataset
) -> tuple[list[NetworkDraws], np.ndarray]:
    """Return networks of which each is learned from what those before it predict badly, and their weights."""
    from bayesjpt.fitting.boosting import boost
    from bayesjpt.sampler.progress import task_bar
    from bayesjpt.table.dataset import Dataset

    assert not isinstance(table, Dataset), "refused before"
    assert not isinstance(learnt_from, Dataset), "refused before"
    with task_bar("Boosting networks", fit_settings.progress) as tell:
        return boost(ensemble, table, learnt_from, n_chain=fit_settings.schedule.n_chain, tell=tell)


def _seeded(
    fit_settings: FitSettings, folder: Checkpoint | None, table: Table | Dataset, learnt_from: Table | Dataset
) -> tuple[FitSettings, bool]:
    """Return settings with a seed, of the fit that is resumed or a fresh one, and whether a fit is resumed."""
    from bayesjpt.sampler.facts import resumed_seed

    seed, resumed = fit_settings.seed, False
    if folder is not None and folder.begun:
        facts = fit_settings.facts(table, learnt_from.schema)
        seed, resumed = resumed_seed(folder, facts, resume=fit_settings.resume), True
    if seed is None:
        seed = int(np.random.default_rng().integers(2**31))
    return replace(fit_settings, seed=int(seed)), resumed


def _structures_of(
    folder: StructuresFolder, table: Table | Dataset, schedules: Mapping[int, Schedule]
) -> dict[int, Posterior | NetworkDraws]:
    """Return the structures of a checkpoint that are done.

    Raises
    ------
    CheckpointError
        For a file of another run, or a damaged one.
    """
    from bayesjpt.posterior.store import load

    done = {}
    for k in folder.done:
        try:
            done[k] = _one_of(load(folder.structure(k)))
        except FitFileError as error:
            raise CheckpointError(
                f"in checkpoint {str(folder.path)!r}, {error.found}", error.expected, "Delete this file, and go on"
            ) from None
    for k, post in done.items():
        expected = (schedules[k].n_chain, schedules[k].n_draw) if k in schedules else None
        if post.schema != table.schema or (post.n_chain, post.n_draw) != expected:
            raise CheckpointError(
                f"{folder.structure(k).name} of checkpoint {str(folder.path)!r} is of another run",
                remedy="Delete this file, and go on",
            )
    return done


def _one_of(post: Posterior) -> Posterior | NetworkDraws:
    """Return the single structure of a file, which may keep no draws."""
    from bayesjpt.posterior.stacked import StackedPosterior

    return post.members()[0] if isinstance(post, StackedPosterior) else post


_PHASES = {
    "compile": "compiling (kept on disk for the next time)",
    "learn": "learning the structure",
    "resume": "reading the checkpoint",
    "weigh": "weighing structures",
    "structures": "learning and sampling structures",
    "sample": "sampling chains",
}


class _Clock:
    """Says which phase a fit is in, how long each took, and when its time is up.

    Parameters
    ----------
    report : callable, optional
        ``(phase, seconds)``, called at the end of each; a line is printed where there is none.
    progress : bool
        Whether anything is printed.
    time : float, optional
        Seconds.
    """

    def __init__(self, report: Callable[[str, float], None] | None, progress: bool, time: float | None):
        self._report, self._progress = report, progress
        self.deadline = None if time is None else perf_counter() + time

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        from bayesjpt.announced import announced
        from bayesjpt.sampler.progress import visible

        began = perf_counter()
        with announced(_PHASES[name], self._progress and not visible(), end=self._report is None):
            yield
        if self._report is not None:
            self._report(name, perf_counter() - began)
