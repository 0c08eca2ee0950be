"""The facade: a table in, a Posterior out. Learn a structure, build its model, sample it."""

from __future__ import annotations

import contextlib
import logging
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.defaults import ALPHA, CHAINS, DRAWS, GAMMA, TUNE
from bayesjpt.errors import BayesjptError, BayesjptWarning, LearnerError, ModelError, SamplingError

if TYPE_CHECKING:
    from bayesjpt.circuit.arrays import Circuit
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.table.table import Table

LEARNERS = ("mspn",)


def fit(
    table: Table | Any,
    learner: str | Callable = "mspn",
    *,
    draws: int = DRAWS,
    tune: int = TUNE,
    chains: int = CHAINS,
    cores: int | None = None,
    seed: int | None = None,
    gamma: float = GAMMA,
    alpha: float = ALPHA,
    prior: str = "default",
    progress: bool = True,
    on_phase: Callable[[str, float], None] | None = None,
    **learner_options,
) -> Posterior:
    """Return the posterior of a table: structure learned, model built, chains sampled.

    Half of the chains begin at the learner's partition, half at random allocations, so that their agreement means
    something. One seed gives the same draws whatever the number of cores.

    Parameters
    ----------
    table : Table or data frame
        What `read_table` returned, or a frame that `as_table` can read.
    learner : str or callable
        ``mspn``, or a function ``(table, rng, **learner_options) -> Circuit``.
    draws, tune : int
        Kept sweeps and discarded first sweeps of each chain.
    chains : int
    cores : int, optional
        Processes; as many as chains and processors allow unless given.
    seed : int, optional
        Of everything random; a fresh one unless given, kept in ``Posterior.settings``.
    gamma, alpha : float
        Dirichlet concentrations per edge at structure sums and at likelihood dictionaries.
    prior : str
        ``default`` or ``abda``; see `CircuitMixture`.
    progress : bool
        Show progress bars.
    on_phase : callable, optional
        ``(phase, seconds)`` is called when ``compile``, ``learn`` and ``sample`` are done. The first fit after an
        installation compiles for most of a minute; later ones load the result from disk.
    **learner_options
        Passed to the learner, such as ``min_rows`` and ``threshold``.

    Returns
    -------
    Posterior

    Raises
    ------
    LearnerError
        For an unknown learner or an option that makes no sense.
    ModelError
        For an unknown prior, or concentrations that are not positive.
    SamplingError
        For numbers of draws, chains, cores or a seed that make no sense, an interrupt before the first kept draw, or
        an impossible row.

    Notes
    -----
    An interrupt after the first kept draw keeps the completed sweeps, warns, and says so in ``Posterior.settings``.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> rng = np.random.default_rng(1)
    >>> table = bj.as_table(pd.DataFrame({"wait": rng.exponential(3.0, 200).round(1)}))
    >>> post = bj.fit(table, draws=50, tune=50, chains=2, cores=1, seed=1, progress=False)
    >>> post.types()["wait"].type
    'positive'
    """
    for name, value, least in (("draws", draws, 1), ("tune", tune, 0), ("chains", chains, 1)):
        _check_number(name, value, least)
    for name, value, least in (("cores", cores, 1), ("seed", seed, 0)):
        if value is not None:
            _check_number(name, value, least)
    _check_names(learner, prior)
    from bayesjpt.table.table import as_table

    table = as_table(table)
    _check_options(learner, table, learner_options)
    entropy = int(np.random.default_rng().integers(2**31)) if seed is None else int(seed)
    learn_seed, start_seed, sample_seed = np.random.SeedSequence(entropy).spawn(3)
    report = on_phase or (lambda phase, seconds: None)

    began = time.perf_counter()
    import pymc as pm

    from bayesjpt.model.build import build_model
    from bayesjpt.model.gibbs_step import CircuitGibbs
    from bayesjpt.posterior.convert import from_idata

    with _waiting("Compiling (kept on disk for the next time)", progress):
        _compile()
    report("compile", time.perf_counter() - began)

    began = time.perf_counter()
    circuit = _learn(table, learner, np.random.default_rng(learn_seed), progress, learner_options)
    report("learn", time.perf_counter() - began)

    began = time.perf_counter()
    model = build_model(circuit, table, gamma=gamma, alpha=alpha, prior=prior)
    step = CircuitGibbs(model=model, random_start=0.0)
    starts = _starts(step, chains, np.random.default_rng(start_seed))
    with model, _quiet_logs(), _explained_errors():
        idata = pm.sample(
            draws=draws,
            tune=tune,
            chains=chains,
            cores=cores,
            step=step,
            initvals=starts,
            random_seed=int(sample_seed.generate_state(1)[0]),
            progressbar=progress,
            compute_convergence_checks=False,
        )
    report("sample", time.perf_counter() - began)
    settings = {
        "learner": learner if isinstance(learner, str) else getattr(learner, "__name__", "callable"),
        "seed": entropy,
        "gamma": float(gamma),
        "alpha": float(alpha),
        "prior": prior,
        **{
            key: value.item() if isinstance(value, np.generic) else value
            for key, value in learner_options.items()
            if isinstance(value, int | float | str | np.generic)
        },
    }
    post = from_idata(idata, model)
    if (post.n_chain, post.n_draw) != (chains, draws):
        kept = f"{post.n_chain} chains of {post.n_draw} draws"
        warnings.warn(
            f"interrupted: {kept} are kept, of {chains} chains of {draws} asked for", BayesjptWarning, stacklevel=2
        )
        settings["interrupted"] = kept
    return replace(post, settings=settings)


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
    if learner == "mspn":
        from bayesjpt.structure import base

        if "min_rows" in options:
            base.rows_of("min_rows", options["min_rows"], table.n_row)
        if "threshold" in options:
            base.check_between("threshold", options["threshold"], 0.0, 1.0)


def _learn(table: Table, learner: str | Callable, rng: np.random.Generator, progress: bool, options: dict) -> Circuit:
    if not callable(learner):
        from bayesjpt.structure.mspn import learn_mspn

        with _learning_bar(progress) as callback:
            return learn_mspn(table, rng, progress=callback, **options)
    return learner(table, rng, **options)


def _compile() -> None:
    """Compile every kernel that a fit and its types need, or load it from the disk cache: once through a tiny table."""
    from bayesjpt.circuit.build import ColumnLeaf, build_circuit
    from bayesjpt.model.build import build_model
    from bayesjpt.model.gibbs_step import CircuitGibbs
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.posterior.invariants import marginal_cdf
    from bayesjpt.queries.density import log_density
    from bayesjpt.queries.types import types
    from bayesjpt.table.schema import Column, Schema
    from bayesjpt.table.table import Table

    values = np.arange(1.0, 9.0)[None, :]
    table = Table(Schema((Column("x", "real", (0.0, np.inf), mean=4.5, maximum=8.0),)), values, np.ones((1, 8), bool))
    circuit = build_circuit(ColumnLeaf(0, np.arange(8)), table)
    CircuitGibbs(model=build_model(circuit, table))
    post = replace(Posterior.from_circuit(circuit, table.schema), reference=table)
    types(post)
    log_density(post, table)
    marginal_cdf(post)


def _starts(step, chains: int, rng: np.random.Generator) -> list[dict]:
    """Return initial values per chain: the learner's estimate for even chains, random allocations for odd ones."""
    return [step.random_point(rng) if chain % 2 else step.learned_point() for chain in range(chains)]


@contextlib.contextmanager
def _waiting(text: str, progress: bool) -> Iterator[None]:
    if not progress:
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextlib.contextmanager
def _learning_bar(progress: bool) -> Iterator[Callable[[int, int], None] | None]:
    if not progress:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), transient=True) as bar:
        task = bar.add_task("Learning the structure", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep PyMC from logging which step it chose: fit chose it."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _explained_errors() -> Iterator[None]:
    """Turn PyMC's words for an interrupt before the first draw, and for an error of ours in a worker, into ours."""
    from pymc.sampling.parallel import ParallelSamplingError

    try:
        yield
    except ValueError as error:
        if "Not enough samples" in str(error):
            raise SamplingError(
                "interrupted before the first kept draw", remedy="Nothing was kept; start again"
            ) from None
        raise
    except ParallelSamplingError as error:
        if isinstance(error.__cause__, BayesjptError):
            raise error.__cause__ from None
        raise
