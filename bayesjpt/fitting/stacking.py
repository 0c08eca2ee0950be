"""Several structures of one table: learned from different rows and seeds, weighed on held-out rows, sampled each.

      fold 0   [held][ learn and sample briefly ]      every structure is relearned without the rows of a fold, and says
      fold 1   [    ][held][                    ]      how probable these are; the weights are those under which all
      ...                                              held-out rows together are most probable

Each structure is an ordinary fit of its own; the first is the one that `bayesjpt.fit` makes of a single structure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.defaults import FOLD_DRAWS, FOLD_THIN, FOLD_TUNE, FOLDS, MIN_STRUCTURE_WEIGHT, STRUCTURE_ROWS
from bayesjpt.errors import SamplingError

if TYPE_CHECKING:
    from bayesjpt.circuit.arrays import Circuit
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.posterior.stacked import StackedPosterior
    from bayesjpt.sampler.structures_folder import StructuresFolder
    from bayesjpt.table.table import Table

Learn = Callable[..., "Circuit"]
"""A function (table, rng, **learner_options) that returns a circuit."""

_STRUCTURE, _FOLD, _CHAIN = 1, 2, 3
"""What a seed is for."""


@dataclass(frozen=True, eq=False)
class Structures:
    """What several structures have in common, and how each is made.

    Parameters
    ----------
    learners : tuple of functions
        Structure k has the k-th, beginning anew behind the last. The first of each learner sees all rows, others see
        a part of them, drawn anew.
    n : int
    seed : int
    options : dict
        Of the learners.
    fit_one : callable
        `bayesjpt.fit` of a single structure, with all that is the same for each.
    """

    learners: tuple[Learn, ...]
    n: int
    seed: int
    options: dict[str, Any]
    fit_one: Callable[..., Posterior]

    def learner(self, number: int) -> Learn:
        """Return the learner of a structure."""
        learn = self.learners[number % len(self.learners)]
        return learn if number < len(self.learners) else _from_some_rows(learn)

    def own_seed(self, number: int) -> int:
        """Return the seed of a structure's fit; that of the first is the seed of the whole."""
        return self.seed if number == 0 else _seed(self.seed, _STRUCTURE, number)

    def relearn(self, number: int, table: Table) -> Circuit:
        """Return a structure as it is learned from other rows."""
        learn_seed, _ = np.random.SeedSequence(self.own_seed(number)).spawn(2)  # as fit does
        return self.learner(number)(table, np.random.default_rng(learn_seed), **self.options)

    def fit(self, number: int, table: Table, **options: Any) -> Posterior:
        """Return the posterior of one structure."""
        return self.fit_one(table, self.learner(number), seed=self.own_seed(number), **options)


def held_out_scores(
    structures: Structures,
    table: Table,
    *,
    folder: StructuresFolder | None,
    n_thread: int,
    tell: Callable[[int, int], None] | None,
) -> np.ndarray:
    """Return the log mass of every row under each structure, relearned and sampled without it.

    Parameters
    ----------
    structures : Structures
    table : Table
        Under the schema from which learners build.
    folder : StructuresFolder, optional
        Where the scores of folds are kept.
    n_thread : int
        Threads that sample; no effect on any score.
    tell : callable, optional
        Told how many folds are done, of how many.

    Returns
    -------
    float64 (n_structure, n_row), nats

    Raises
    ------
    SamplingError
        For a table of a single row, and a structure that cannot be sampled on rows from which it was not learned.
    """
    n_fold = min(FOLDS, table.n_row)
    if n_fold < 2:
        raise SamplingError(f"a table of {table.n_row} row", "two rows at least, of which one can be held out")
    fold_of = np.random.default_rng(_seed(structures.seed, _FOLD)).permutation(np.arange(table.n_row) % n_fold)
    scores = np.empty((structures.n, table.n_row))
    for fold in range(n_fold):
        held = np.flatnonzero(fold_of == fold)
        found = None if folder is None else folder.scores(fold, (structures.n, held.size))
        if found is None:
            train, rest = table.take(np.flatnonzero(fold_of != fold)), table.take(held)
            found = _scores_of_fold(structures, train, rest, fold=fold, n_thread=n_thread)
            if folder is not None:
                folder.keep_scores(fold, found)
        scores[:, held] = found
        if tell is not None:
            tell(fold + 1, n_fold)
    return scores


def _scores_of_fold(structures: Structures, train: Table, held: Table, *, fold: int, n_thread: int) -> np.ndarray:
    from bayesjpt.queries.density import log_mass
    from bayesjpt.queries.given import log_sum

    def score(number: int, circuit: Circuit) -> np.ndarray:
        try:
            post = structures.fit_one(
                train,
                lambda table, rng, **options: circuit,
                seed=_seed(structures.seed, _CHAIN, number, fold),
                draws=FOLD_DRAWS,
                tune=FOLD_TUNE,
                thin=FOLD_THIN,
                chains=1,
                cores=1,
                progress=False,
            )
        except SamplingError as error:
            raise SamplingError(
                f"structure {number}, relearned from a part of the rows: {error.found}",
                error.expected,
                "Likelihoods that end where their rows end, such as quantile, need all rows: ask for n_structures=1, "
                "or for other families",
            ) from None
        return log_sum(log_mass(post, held).values[0], 0) - math.log(FOLD_DRAWS)

    numbers = range(structures.n)
    circuits = [structures.relearn(number, train) for number in numbers]  # learners may use what threads share
    pool = ThreadPoolExecutor(n_thread)
    try:
        return np.array(list(pool.map(score, numbers, circuits)))
    finally:
        pool.shutdown(cancel_futures=True)


def fit_structures(
    structures: Structures, table: Table, weights: np.ndarray, *, folder: StructuresFolder | None, **options: Any
) -> StackedPosterior:
    """Return the posterior of all structures with weight, each with draws in proportion to it.

    Parameters
    ----------
    structures : Structures
    table : Table
    weights : float64 (n_structure,)
    folder : StructuresFolder, optional
        Where the chains of each are kept.
    **options
        Of the fits: draws, tune, thin, chains, cores, progress.

    Notes
    -----
    After an interrupt, those that have draws are kept.
    """
    from bayesjpt.posterior.stacked import StackedPosterior
    from bayesjpt.posterior.weights import draws_for
    from bayesjpt.queries.some_draws import some_draws

    kept: dict[int, Posterior] = {}
    for number, n_draw in enumerate(draws_for(weights, options["draws"]).tolist()):
        if not n_draw:
            continue
        where = {} if folder is None else {"checkpoint": folder.structure(number), "resume": True}
        post = structures.fit(number, table, **options, **where)
        kept[number] = some_draws(post, n_draw * post.n_chain)[1]
        if "interrupted" in post.settings:
            break
    found = weights[list(kept)] / weights[list(kept)].sum()
    return StackedPosterior(list(kept.values()), found)


def weigh(log_score: np.ndarray, n_draw: int) -> np.ndarray:
    """Return stacking weights from `held_out_scores`; structures that would get hardly a draw have none."""
    from bayesjpt.posterior.weights import stacking_weights, without_small

    return without_small(stacking_weights(log_score), max(MIN_STRUCTURE_WEIGHT, 0.5 / n_draw))


def _from_some_rows(learn: Learn) -> Learn:
    """Return a learner that sees a part of the rows, drawn without replacement."""

    def learn_from_some(table: Table, rng: np.random.Generator, **options: Any) -> Circuit:
        n = max(1, math.ceil(STRUCTURE_ROWS * table.n_row))
        rows = np.sort(rng.choice(table.n_row, n, replace=False))
        return learn(table.take(rows), rng, **options)

    learn_from_some.__name__ = getattr(learn, "__name__", "callable")
    return learn_from_some


def _seed(seed: int, *what: int) -> int:
    """Return a seed for a part of the work, unlike any that the parts of a fit have."""
    return int(np.random.SeedSequence(seed, spawn_key=(2, *what)).generate_state(1)[0])
