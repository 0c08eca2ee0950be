"""The chains of one structure: from its circuit, or from a checkpoint, to a posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.errors import CheckpointError, FitFileError, SamplingError

if TYPE_CHECKING:
    from bayesjpt.circuit.arrays import Circuit
    from bayesjpt.fitting.settings import FitSettings
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.sampler.chains import Chain
    from bayesjpt.sampler.checkpoint import Checkpoint
    from bayesjpt.sampler.schedule import Draws, Schedule
    from bayesjpt.sampler.target import Target
    from bayesjpt.table.dataset import Dataset
    from bayesjpt.table.table import Table


def settle(
    folder: Checkpoint, table: Table | Dataset, target: Target, schedule: Schedule, facts: dict[str, Any]
) -> None:
    """Begin a checkpoint, or make sure that the one that was begun had the same target.

    Its facts are those of `FitSettings.facts`.
    """
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.sampler.checkpoint import STRUCTURE
    from bayesjpt.sampler.saves import begin_saves

    digest = target.digest()
    if not folder.begun:
        facts = facts | {"target": digest}
        begin_saves(folder.path, facts, schedule, target.sizes)
        try:
            Posterior.from_circuit(target.circuit, table.schema).save(folder.path / STRUCTURE)
        except FitFileError as error:
            raise CheckpointError(
                f"the structure of checkpoint {str(folder.path)!r} is not written: {error}"
            ) from error
        folder.begin(facts)
    elif folder.facts().get("target") != digest:
        raise CheckpointError(
            f"plan, priors or cells differ from those of checkpoint {str(folder.path)!r}",
            "the version of bayesjpt, and of modules of your own, with which it was begun",
            "Start again in another folder",
        )


def stored_circuit(folder: Checkpoint) -> Circuit:
    """Return the circuit of a checkpoint, checked as that of any saved fit."""
    from bayesjpt.posterior.store import load
    from bayesjpt.sampler.checkpoint import STRUCTURE

    return load(folder.path / STRUCTURE).circuit


def sample(
    target: Target, schedule: Schedule, chains: list[Chain], folder: Checkpoint | None, fit_settings: FitSettings
) -> Draws:
    """Return the draws that all chains have: fewer than asked for after an interrupt."""
    from bayesjpt.sampler.chains import run_chains
    from bayesjpt.sampler.progress import sampling_bar
    from bayesjpt.sampler.saves import Saves
    from bayesjpt.sampler.schedule import empty_draws
    from bayesjpt.sampler.workers import n_worker

    sizes = target.sizes
    draws = empty_draws(schedule, sizes.n_edge, sizes.n_theta)
    saves = None if folder is None else Saves(folder.path, folder.facts(), schedule, sizes, draws)
    if saves is not None:
        saves.restore(chains)
    with sampling_bar(chains, schedule, fit_settings.progress) as show:
        watches = [watch for watch in (show, saves and saves.watch) if watch is not None]
        n_thread = n_worker(fit_settings.cores, schedule.n_chain)
        run_chains(target, schedule, chains, draws, n_thread=n_thread, record=saves, watches=watches)
    if saves is not None:
        saves.save()
    kept = min(schedule.n_kept(chain.sweep) for chain in chains)
    if not kept:
        raise interrupted_before("the first kept draw", folder)
    return draws if kept == schedule.n_draw else draws.first(kept)


def interrupted_before(what: str, folder: Checkpoint | None) -> SamplingError:
    """Return the error of an interrupt that came before anything could be answered."""
    found = f"interrupted before {what}"
    if folder is None:
        return SamplingError(found, remedy="Nothing was kept; start again")
    kept = f"Go on from {str(folder.path)!r}"  # a fit that starts again is refused there
    return SamplingError(found, remedy=f"{kept} with resume", command=f"{kept} by --resume")


def to_posterior(circuit: Circuit, table: Table | Dataset, draws: Draws, settings: dict[str, Any]) -> Posterior:
    """Return the posterior that draws of a table make."""
    from bayesjpt.posterior.convert import reference_of
    from bayesjpt.posterior.draws import Posterior

    stats = {"n_active_edges": draws.n_active_edges}
    if not np.isnan(draws.log_likelihood).any():
        stats["log_likelihood"] = draws.log_likelihood
    return Posterior(
        circuit=circuit,
        schema=table.schema,
        params=draws.params,
        sample_stats=stats,
        reference=reference_of(table),
        settings=settings,
    )
