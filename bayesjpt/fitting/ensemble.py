"""An ensemble of structures: replicates, learned and sampled apart from each other, and averaged by every query.

      structure 0   [ learn from all rows  ][ sweeps ]      a thread takes the next structure, learns it and samples it;
      structure 1   [ learn from half      ][ sweeps ]      one that is done is kept, whatever becomes of the others
      ...

Structures share the table, the learners and the seed from which theirs are derived, and nothing else: so the draws do
not depend on the number of threads, and the spread between structures measures how far another seed moves an answer.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.circuit.bdeu import BDeu
from bayesjpt.circuit.priors import check_concentrations
from bayesjpt.defaults import DRAWN_ESS, ESS, HALVED_ROWS, LEARN_ROWS, QUICK_ROWS, WATCH_SECONDS
from bayesjpt.errors import BayesjptError, LearnerError, ModelError
from bayesjpt.executors import Future, lost_processes_told
from bayesjpt.fitting.learning import LearnerFunction, StoppedError, our_name
from bayesjpt.kernels.remote import SameCode
from bayesjpt.structure.cutset_limits import divides
from bayesjpt.table.dataset import Dataset, in_memory
from bayesjpt.table.evidence import chosen_rows
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    from bayesjpt.circuit.arrays import Circuit
    from bayesjpt.posterior.draws import Posterior
    from bayesjpt.posterior.networks import NetworkDraws
    from bayesjpt.sampler.schedule import Draws, Schedule

STRUCTURE_ROWS = 0.5
"""Share of the rows that a further structure is learned from: half of them without replacement differ as much as a
bootstrap sample (Friedman and Hall, 2007, On bagging and nonlinear estimation)."""


_STRUCTURE = 1
"""What a seed is for."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """What several structures have in common, and how each is made.

    Parameters
    ----------
    learners : tuple of LearnerFunction
        Structure k has the k-th, beginning anew behind the last.
    n : int
        Structures.
    seed : int
    options : dict
        Of the learners.
    priors : dict
        Of `bayesjpt.sampler.target.make_target`.
    resampling : str
        What all structures but the first of each learner are learned from: ``half`` of the rows, a ``bootstrap`` sample
        of them, or ``none``: all rows. A learner that draws at random sees all rows instead of a bootstrap sample. Of
        those of ours it is known; a function of the user's does if it has drawn from its generator.
    n_thread : int
        Structures that are learned and sampled at the same time; no effect on any draw.
    n_helper : int
        Threads that share the sweeps of each; no effect either.
    executor : optional
        Processes that share them in place of threads, and learn.
    learned : dict from int to future
        Structures that processes learn, or have learned.
    """

    learners: tuple[LearnerFunction, ...]
    n: int
    seed: int
    options: dict[str, Any]
    priors: dict[str, Any]
    resampling: str
    n_thread: int
    n_helper: int = 1
    executor: Any = None
    learned: Mapping[int, Future] = field(default_factory=dict)

    def learner(self, number: int) -> LearnerFunction:
        """Return the learner of a structure."""
        return self.learners[number % len(self.learners)]

    def seed_of(self, number: int) -> int:
        """Return the seed of a structure; that of the first is the seed of the whole."""
        return self.seed if number == 0 else derived_seed(self.seed, _STRUCTURE, number)

    def rows(self, number: int, table: Table | Dataset, rng: np.random.Generator) -> Table:
        """Return the rows that a structure is learned from."""
        chosen = learnt_rows(table, number, self.resampling)
        if chosen.n_row < table.n_row:
            return chosen
        table = chosen
        if number < len(self.learners) or self._chooses_at_random(number, table):
            return table
        if self.resampling == "half":
            n = math.ceil(STRUCTURE_ROWS * table.n_row)
            return table.take(np.sort(rng.choice(table.n_row, n, replace=False)))
        if self.resampling == "bootstrap" and not self._draws_at_random(number, table):
            return _bootstrap_sample(table, rng)
        return table

    def _draws_at_random(self, number: int, table: Table) -> bool:
        """Return whether a structure's learner may find another one with another seed: ours without chance are known.

        Also a mixture of one component, and hidden variables of one state: what is drawn has one outcome.
        """
        name = our_name(self.learner(number))
        if name == "cutset" and not divides(table, self.options):
            return False
        if name in _HELD_OUT:
            return bool(self.options.get(_HELD_OUT[name]))
        return name not in _OUTCOMES or self.options.get(_OUTCOMES[name]) != 1

    def _chooses_at_random(self, number: int, table: Table) -> bool:
        """Return whether chance alone decides on a structure, so that rows need not differ for structures to do so."""
        is_random = self.options.get("select", "random") == "random"
        return our_name(self.learner(number)) == "cutset" and is_random and divides(table, self.options)

    def learn(self, number: int, table: Table | Dataset, stop: threading.Event) -> Circuit:
        """Return a structure; the first is that of a fit of one structure with the same seed.

        Raises
        ------
        StoppedError
            Where it was stopped before its end: learners of ours look up at every cluster of rows.
        """
        if number in self.learned:
            with lost_processes_told():
                return self.learned[number].result()
        learn_seed, _ = np.random.SeedSequence(self.seed_of(number)).spawn(2)
        rng, learner = np.random.default_rng(learn_seed), self.learner(number)
        unused = rng.bit_generator.state
        rows = self.rows(number, table, rng)
        circuit = learner(rows, rng, stop, **self.options)
        has_drawn = rng.bit_generator.state != unused or learn_seed.n_children_spawned > 0
        if has_drawn or self.resampling != "bootstrap" or number < len(self.learners):
            return circuit
        # neither rows nor learner took anything from the seed: it would be the learner's first structure once more
        return learner(_bootstrap_sample(rows, rng), rng, stop, **self.options)

    def learning_elsewhere(self, numbers: Sequence[int], table: Table | Dataset) -> Ensemble:
        """Return an ensemble whose executor has begun to learn structures: a task each, which reads its own rows.

        That are those of rows in files; a function of the user's stays in this process.
        """
        ours = [number for number in numbers if self.learner(number).is_ours]
        if self.executor is None or not isinstance(table, Dataset):
            return self
        plain, there = replace(self, executor=None), SameCode(learn_there)
        with lost_processes_told():
            return replace(self, learned={k: self.executor.submit(there, plain, k, table) for k in ours})

    def sample(
        self,
        circuit: Circuit,
        table: Table | Dataset,
        schedule: Schedule,
        seed: np.random.SeedSequence,
        stop: threading.Event,
    ) -> Draws | None:
        """Return the draws of the chains of a checked structure; None where it was stopped before their end."""
        from bayesjpt.sampler.chains import new_chains, run_chains_here
        from bayesjpt.sampler.memory import check_memory, memory_of
        from bayesjpt.sampler.schedule import empty_draws
        from bayesjpt.sampler.target import make_target

        target = make_target(
            circuit, table, n_thread=self.n_helper, executor=self.executor, is_checked=True, **self.priors
        )
        if target.is_closed_form:
            schedule = schedule.of_independent_draws()
        n_kept = self.n * schedule.n_draw  # the other structures are about as large
        sizes = {"draws": n_kept, "chains": schedule.n_chain, "cores": self.n_thread, "sampler": target.sampler}
        check_memory(memory_of(target.plan, circuit, table, **sizes))
        draws = empty_draws(schedule, target.sizes.n_edge, target.sizes.n_theta)
        done = run_chains_here(target, schedule, new_chains(schedule.n_chain, seed), draws, stop)
        return draws if done else None

    def fit(
        self,
        number: int,
        table: Table | Dataset,
        learnt_from: Table | Dataset,
        schedule: Schedule,
        stop: threading.Event,
    ) -> Posterior | NetworkDraws | None:
        """Return the posterior of a structure, learned and sampled in this thread; None where it was stopped.

        Of a network of labels, whose posterior is in closed form, what is drawn from is kept in place of draws.
        """
        from bayesjpt.fitting.sampling import to_posterior
        from bayesjpt.posterior.draws import INDEPENDENT
        from bayesjpt.posterior.networks import network_draws
        from bayesjpt.sampler.target import check_fits

        circuit = self.learn(number, learnt_from, stop)
        settings = {"learner": self.learner(number).__name__, "seed": self.seed_of(number)}
        check_fits(circuit, table)
        ess = self.priors.get("ess", ESS)
        known = {name: self.priors[name] for name in ("gamma", "alpha") if name in self.priors}
        if ess != DRAWN_ESS:
            known["ess"] = ess.rows if isinstance(ess, BDeu) else ess
        check_concentrations(**known)
        if isinstance(table, Table):
            sizes = {"n_chain": schedule.n_chain, "n_draw": schedule.n_draw}
            fixed_ess = None if ess == DRAWN_ESS else ess if isinstance(ess, BDeu) else float(ess)
            kept = network_draws(circuit, table, fixed_ess, self.seed_of(number), **sizes)
            if kept is not None:
                return replace(kept, settings=settings | {"draws": INDEPENDENT})
        if ess == DRAWN_ESS:
            raise ModelError(
                f"ess = {DRAWN_ESS!r} of a network that has no closed form",
                "columns of labels without missing cells",
                "Give a number, or in a model of your own an expression of its random variables.",
            )
        _, chain_seed = np.random.SeedSequence(self.seed_of(number)).spawn(2)
        draws = self.sample(circuit, table, schedule, chain_seed, stop)
        if draws is None:
            return None
        return to_posterior(circuit, table, draws, settings)

    def draft(
        self,
        n: int,
        number: int,
        table: Table | Dataset,
        learnt_from: Table | Dataset,
        schedule: Schedule,
        stop: threading.Event,
    ) -> Posterior | NetworkDraws | None:
        """Return the posterior of a structure that is learned from n of the rows and knows no others, as `fit` does."""
        chosen = chosen_rows(table.n_row, n, number)
        few, learnt_from_few = table.take(chosen), learnt_from.take(chosen)
        here = replace(self, executor=None, resampling=resampling_of(learnt_from_few, self.learners))
        post = here.fit(number, few, learnt_from_few, schedule, stop)
        if post is None:
            return None
        return replace(post, settings={**post.settings, "draft": f"{n} of {table.n_row} rows"})


DRAFT_SHARE, FEWEST_DRAFT_ROWS = 0.25, 100
"""Share of the rows that a draft is fitted to, and the rows below which there is none: `QUICK_ROWS` at most, so that
it takes a second or two where a structure takes minutes."""


def draft_rows(n_row: int) -> int:
    """Return how many rows the draft of a fit has that is short of time; 0 where a structure comes soon enough."""
    n = min(QUICK_ROWS, int(DRAFT_SHARE * n_row))
    return n if n >= FEWEST_DRAFT_ROWS else 0


def learn_there(ensemble: Ensemble, number: int, table: Dataset) -> Circuit:
    """Return a structure, learned in this process for another one: a function of its arguments."""
    return ensemble.learn(number, table, threading.Event())


def _bootstrap_sample(table: Table, rng: np.random.Generator) -> Table:
    """Return as many rows as there are, drawn with replacement, in their order."""
    return table.take(np.sort(rng.integers(table.n_row, size=table.n_row)))


_HELD_OUT = {"jpt": "validation", "cutset": "prune"}
"""Learners of ours that draw the rows they hold out, and else hardly anything that makes structures differ."""

_OUTCOMES = {"tree_mixture": "n_components", "hclt": "n_states"}
"""Learners of ours that draw which of so many each row belongs to."""

_SPLITTING = ("jpt", "cutset")
"""Learners of ours whose leaves are cut at the conditions of their path."""


def resampling_of(table: Table | Dataset, learners: Sequence[Any]) -> str:
    """Return what structures of a table are learned from, given the schema that learners see.

    Half of a large table; half of few rows make a coarser structure. All rows where a column has likelihoods alone that
    end where the rows of their leaf end: other rows would be impossible. Where a learner splits columns, such a
    likelihood stands for those that cannot be drawn on a part of one, too.
    """
    from bayesjpt.circuit.plan import ATOM
    from bayesjpt.families import registry

    splits = any(our_name(each) in _SPLITTING for each in learners)
    for column in table.schema:
        families = [family for family in registry.dictionary(column) if family.name != ATOM]
        ends = [family.leaf_constants is not None or (splits and not family.samplable_on_cell) for family in families]
        if ends and all(ends) and column.minimum != column.maximum:
            return "none"
    return "half" if table.n_row >= HALVED_ROWS else "bootstrap"


def learnt_rows(table: Table | Dataset, number: int, resampling: str) -> Table:
    """Return the rows among which a structure is learned: of many `LEARN_ROWS`, chosen by a hash under its number.

    Raises
    ------
    LearnerError
        For many rows in files of which all would have to be learned from, see `resampling_of`.
    """
    if table.n_row <= LEARN_ROWS:
        return in_memory(table)
    if resampling != "none":
        return table.take(chosen_rows(table.n_row, LEARN_ROWS, number))
    if isinstance(table, Dataset):
        raise LearnerError(
            f"likelihoods that end where {LEARN_ROWS} of {table.n_row} rows end, of which a column has no other",
            "a likelihood without such ends for each column",
            "Ask for more families, or take a Table of some rows.",
        )
    return table


DRAFT = -1
"""Number of the draft among the structures."""


def derived_seed(seed: int, *what: int) -> int:
    """Return a seed for a part of the work, unlike any that the parts of a fit have."""
    return int(np.random.SeedSequence(seed, spawn_key=(2, *what)).generate_state(1)[0])


# --- threads ---------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Crew:
    """Threads that do numbered pieces of work, and what became of them.

    Parameters
    ----------
    work : callable
        (number, stop) to a result; None where it stopped because the event was set.
    n_thread : int
    deadline : float, optional
        Time of `time.perf_counter` at which the work ends, but not before the first piece is done.

    Attributes
    ----------
    interrupted, is_late : bool
        Whether an interrupt, or the deadline, ended the work before all was done.
    """

    work: Callable[[int, threading.Event], Any]
    n_thread: int
    deadline: float | None = None
    interrupted: bool = False
    is_late: bool = False
    _any_done: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)
    _found: SimpleQueue = field(default_factory=SimpleQueue)

    def results(self, numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
        """Yield (number, result) of each piece of work as it is done, in this thread.

        After an interrupt, what was done before; the work at hand stops. An error of the work stops it, too, and is
        raised here.
        """
        waiting = deque(numbers)
        threads = [
            threading.Thread(target=self._serve, args=(waiting,), name=f"structures-{k}", daemon=True)
            for k in range(min(self.n_thread, len(waiting)))
        ]
        try:
            for thread in threads:
                thread.start()
            for _ in numbers:
                number, result = self._next()
                if number is None:
                    break
                self._any_done |= result is not None
                yield number, result
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self._stop.set()
            for thread in threads:
                if thread.ident is not None:  # an interrupt came before it was started
                    thread.join()
        while (self.interrupted or self.is_late) and not self._found.empty():
            number, result = self._found.get()
            if result is not None and not isinstance(result, BaseException):
                yield number, result

    def _next(self) -> tuple[int | None, Any]:
        """Return the next result; (None, None) behind an interrupt or the deadline; raise the error of the work."""
        while True:
            if self._any_done and self._is_over():
                self.is_late = True
                return None, None
            try:
                number, result = self._found.get(timeout=WATCH_SECONDS)  # without one, no interrupt gets through
            except Empty:
                continue
            if isinstance(result, KeyboardInterrupt):
                self.interrupted = True
                return None, None
            if isinstance(result, BaseException):
                raise result
            return number, result

    def _is_over(self) -> bool:
        return self.deadline is not None and perf_counter() >= self.deadline

    def _serve(self, waiting: deque[int]) -> None:
        """Do the work that waits, until none is left or it is to stop."""
        while not self._stop.is_set():
            try:
                number = waiting.popleft()
            except IndexError:
                return
            try:
                result = self.work(number, self._stop)
            except StoppedError:
                return
            except BaseException as error:  # an exception ends with its thread: `results` raises it
                result = error
                self._stop.set()
            self._found.put((number, result))
            if result is not None and self._is_over():
                return


def fit_structures(
    ensemble: Ensemble,
    table: Table | Dataset,
    learnt_from: Table | Dataset,
    schedules: dict[int, Schedule],
    *,
    done: dict[int, Posterior | NetworkDraws],
    keep: Callable[[int, Posterior | NetworkDraws], None],
    deadline: float | None = None,
) -> str | None:
    """Fit structures, put each into `done` as it is finished; return what ended this before all were, in words.

    Parameters
    ----------
    ensemble : Ensemble
    table, learnt_from : Table
        Rows to sample, and the same under the schema that learners see.
    schedules : dict from int to Schedule
        Of each structure that is wanted.
    done : dict from int to Posterior
        Structures that are done are not done again. Empty where an interrupt comes before the first one is.
    keep : callable
        Told each number and posterior, in this thread, when they are in `done`.
    deadline : float, optional
        Time of `time.perf_counter` from which no more structures are waited for. A draft is fitted beside them, to
        few of the rows; where no structure is done by then, it takes the place of the first, and
        ``settings["draft"]`` says of how many rows. Without one the first structure is waited for.

    Raises
    ------
    BayesjptError
        As `bayesjpt.fit`.
    """
    wanted = [number for number in schedules if number not in done]
    # where other rows would be impossible, all of them are needed, however long it takes
    n_draft = 0 if deadline is None or done or ensemble.resampling == "none" else draft_rows(table.n_row)
    elsewhere, drafts = ensemble.learning_elsewhere(wanted, learnt_from), []

    def work(number: int, stop: threading.Event) -> Posterior | NetworkDraws | None:
        if number == DRAFT:
            try:
                return ensemble.draft(n_draft, wanted[0], table, learnt_from, schedules[wanted[0]], stop)
            except BayesjptError:  # few rows may be too few for what is asked; all of them will tell
                return None
        return elsewhere.fit(number, table, learnt_from, schedules[number], stop)

    crew = Crew(work, ensemble.n_thread, deadline, _any_done=bool(done))
    try:
        for number, post in crew.results([*([DRAFT] if n_draft else []), *wanted]):
            if number == DRAFT:
                drafts += [] if post is None else [post]
            else:
                done[number] = post
                keep(number, post)
    finally:
        for future in elsewhere.learned.values():
            future.cancel()
    if not done and drafts:
        done[wanted[0]] = drafts[0]
    return "interrupted" if crew.interrupted else "the time is up" if crew.is_late else None
