"""Weights of structures by stacking: each is relearned without some of the rows, and asked how probable these are.

fold 0   [held][ learn and sample briefly ]      every structure is relearned without the rows of a fold, and says
fold 1   [    ][held][                    ]      how probable these are; the weights are those under which all
...                                              held-out rows together are most probable
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.defaults import FOLDS
from bayesjpt.errors import SamplingError
from bayesjpt.fitting.ensemble import Crew, Ensemble, derived_seed
from bayesjpt.fitting.sampling import interrupted_before

if TYPE_CHECKING:
    from bayesjpt.sampler.structures_folder import StructuresFolder
    from bayesjpt.table.table import Table

FOLD_TUNE = 30
FOLD_DRAWS = 5
FOLD_THIN = 6
"""Sweeps of the single chain of a structure without a fold, which begins at the learner's estimate: 30, and then 30 of
which every sixth is scored. Masses of the held-out rows under one draw take as long as six sweeps."""

MIN_STRUCTURE_WEIGHT = 0.01
"""Stacking weight below which a structure is left out: it would change no answer by more than its own hundredth. Of
more than fifty structures it is half of what each of them would have by uniform weights."""


_FOLD, _CHAIN = 2, 3
"""What a seed is for."""


def weights_by_held_out_rows(
    ensemble: Ensemble, table: Table, folder: StructuresFolder | None, *, progress: bool
) -> np.ndarray:
    """Return the weight of each structure; arguments and errors are those of `held_out_scores`."""
    from bayesjpt.sampler.progress import task_bar

    with task_bar("Weighing structures on held-out rows", progress) as tell:
        scores = held_out_scores(ensemble, table, folder=folder, tell=tell)
        n_learner = len(ensemble.learners)
        return weigh(scores) if n_learner == 1 else weigh_by_learner(scores, n_learner)


def held_out_scores(
    ensemble: Ensemble, table: Table, *, folder: StructuresFolder | None, tell: Callable[[int, int], None] | None
) -> np.ndarray:
    """Return the log mass of every row under each structure, relearned and sampled without it.

    Parameters
    ----------
    ensemble : Ensemble
    table : Table
        Under the schema from which learners build.
    folder : StructuresFolder, optional
        Where the scores of folds are kept.
    tell : callable, optional
        Told how many folds are done, of how many.

    Returns
    -------
    float64 (n_structure, n_row), nats

    Raises
    ------
    SamplingError
        For a table of a single row, and an interrupt.
    """
    n_fold = min(FOLDS, table.n_row)
    if n_fold < 2:
        raise SamplingError(f"a table of {table.n_row} row", "two rows at least, of which one can be held out")
    fold_of = np.random.default_rng(derived_seed(ensemble.seed, _FOLD)).permutation(np.arange(table.n_row) % n_fold)
    scores = np.empty((ensemble.n, table.n_row))
    for fold in range(n_fold):
        held = np.flatnonzero(fold_of == fold)
        found = None if folder is None else folder.scores(fold, (ensemble.n, held.size))
        if found is None:
            train, rest = table.take(np.flatnonzero(fold_of != fold)), table.take(held)
            found = _scores_of_fold(ensemble, train, rest, fold)
            if found is None:
                raise interrupted_before("the structures were weighed", folder)
            if folder is not None:
                folder.keep_scores(fold, found)
        scores[:, held] = found
        if tell is not None:
            tell(fold + 1, n_fold)
    return scores


def _scores_of_fold(ensemble: Ensemble, train: Table, held: Table, fold: int) -> np.ndarray | None:
    """Return the log masses of the held-out rows of a fold, float64 (n_structure, n_row); None after an interrupt."""
    from bayesjpt.fitting.sampling import to_posterior
    from bayesjpt.queries.density import log_mass
    from bayesjpt.queries.given import log_sum
    from bayesjpt.sampler.schedule import Schedule
    from bayesjpt.sampler.target import check_fits

    schedule = Schedule(1, FOLD_TUNE, FOLD_DRAWS, FOLD_THIN)

    def score(number: int, stop: threading.Event) -> np.ndarray | None:
        circuit = ensemble.learn(number, train, stop)
        check_fits(circuit, train)
        seed = np.random.SeedSequence(derived_seed(ensemble.seed, _CHAIN, number, fold))
        draws = ensemble.sample(circuit, train, schedule, seed, stop)
        if draws is None:
            return None
        return log_sum(log_mass(to_posterior(circuit, train, draws, {}), held).values[0], 0) - math.log(FOLD_DRAWS)

    crew = Crew(score, ensemble.n_thread)
    found = dict(crew.results(range(ensemble.n)))
    if crew.interrupted:
        return None
    return np.array([found[number] for number in range(ensemble.n)])


def weigh(log_score: np.ndarray) -> np.ndarray:
    """Return stacking weights from `held_out_scores`; structures that would get hardly a draw have none."""
    from bayesjpt.posterior.weights import stacking_weights, without_small

    least = min(MIN_STRUCTURE_WEIGHT, 0.5 / len(log_score))
    return without_small(stacking_weights(log_score), least)


def weigh_by_learner(log_score: np.ndarray, n_learner: int) -> np.ndarray:
    """Return stacking weights of the uniform averages of what each learner made, divided over its structures.

    Parameters
    ----------
    log_score : float64 (n_structure, n_row), nats
    n_learner : int
        Learners, which took turns.

    Notes
    -----
    Structures of one learner differ by chance alone, and weights of their own would follow chance.
    """
    learner = np.arange(len(log_score)) % n_learner
    n = np.bincount(learner, minlength=n_learner)
    averages = [np.logaddexp.reduce(log_score[learner == k], axis=0) - math.log(n[k]) for k in range(n_learner)]
    return weigh(np.array(averages))[learner] / n[learner]
