"""What a checkpoint keeps of the chains of one structure, written every few seconds.

      draws_0 <--- draws_1 <--- draws_2 <--- state        each names the digest of the one before, the first the fit's

A save writes the draws that are new into a part of their own, once and for all, and then replaces `state`: parameters,
generator and sweep of every chain, and how many parts it counts. A kill between the two leaves a part that nothing
counts and the next save replaces. Nothing can be put together from two fits, or with a part left out.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.errors import CheckpointError
from bayesjpt.kernels.chain import ChainState
from bayesjpt.sampler.chains import Chain
from bayesjpt.sampler.checkpoint import RUN, STATE, read_run
from bayesjpt.sampler.files import read_sealed, write_sealed
from bayesjpt.sampler.memory import in_words
from bayesjpt.sampler.schedule import Draws, Schedule, StateSizes, draw_arrays

SAVE_SECONDS = 5.0
"""Between saves: a kill loses that, the time of a save, and the sweeps at hand. On the wines with 4 chains a save takes
.04 seconds of a processor, beside the chains."""


def fit_digest(facts: Mapping[str, Any]) -> str:
    """Return a hash of what is fitted, which the files of one fit share."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def begin_saves(path: Path, facts: Mapping[str, Any], schedule: Schedule, sizes: StateSizes) -> None:
    """Write the state in which no chain has begun.

    Raises
    ------
    CheckpointError
        Where the disk has no room for all draws: better said now than at some later save.
    """
    forms = draw_arrays(schedule, sizes.n_edge, sizes.n_theta).values()
    n_byte = sum(int(np.prod(shape, dtype=float)) * dtype.itemsize for shape, dtype in forms)
    if n_byte > shutil.disk_usage(path).free:
        raise CheckpointError(
            f"no room for {in_words(n_byte)} of draws in {str(path)!r}",
            remedy="Choose a folder on another disk, or keep fewer draws with thin=10 and a tenth of the draws",
            command="Choose a folder on another disk, or keep fewer draws with --thin 10 and a tenth of the draws",
        )
    _write_state(path, schedule, [None] * schedule.n_chain, 0, fit_digest(facts))


class Saves:
    """Keeps chains and draws of a fit that `begin_saves` began; a `Recorder` of `run_chains`.

    Parameters
    ----------
    path : Path
        The folder.
    facts : mapping
        Of the fit.
    schedule : Schedule
    sizes : StateSizes
    draws : Draws
        Those that `run_chains` writes.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any], schedule: Schedule, sizes: StateSizes, draws: Draws):
        self._path, self._schedule, self._sizes, self._draws = path, schedule, sizes, draws
        self._standing: list[_Standing | None] = [None] * schedule.n_chain
        self._n_part, self._last = 0, fit_digest(facts)
        self._n_kept = [0] * schedule.n_chain
        self._due = perf_counter() + SAVE_SECONDS

    def __call__(self, chain: Chain) -> None:
        """Take note of a chain behind a sweep; called by the chain's thread."""
        assert chain.state is not None
        # one store, so that a concurrent save sees a state and the generator that belongs to it
        self._standing[chain.number] = chain.state, chain.rng.bit_generator.state

    def watch(self) -> None:
        """Save if it is time."""
        if perf_counter() >= self._due:
            self.save()
            self._due = perf_counter() + SAVE_SECONDS

    def save(self) -> None:
        """Write what is new since the last save.

        Raises
        ------
        CheckpointError
            Where it cannot be written; what was saved before is whole.
        """
        # a copy: chains go on meanwhile, and replace what stands here
        standing, n_part, last = list(self._standing), self._n_part, self._last
        n_kept = [0 if at is None else self._schedule.n_kept(at[0].sweep) for at in standing]
        if n_kept != self._n_kept:
            head = {"after": last, "first": self._n_kept, "last": n_kept}
            last = write_sealed(_part(self._path, n_part), head, _between(self._draws, self._n_kept, n_kept))
            n_part += 1
            # at once: an interrupt behind the state that counts this part must not lead to another of its name
            self._n_part, self._last, self._n_kept = n_part, last, n_kept
        # last: a state counts only draws that are written
        _write_state(self._path, self._schedule, standing, n_part, last)

    def restore(self, chains: Sequence[Chain]) -> None:
        """Bring new chains and the draws to where they were saved; chains that had not begun stay new.

        Raises
        ------
        CheckpointError
            For a file that is missing, damaged or of another fit.
        """
        head, numbers, _ = read_sealed(self._path / STATE)
        try:
            saved = _chains_from(head)
            n_part, last = _whole(head["n_part"], 10**9), head["last"]
            rows = np.frombuffer(numbers, np.float64).reshape(len(saved), sum(self._sizes) + 1)
            if len(head["chains"]) != len(chains) or not np.isfinite(rows[:, 1:]).all():
                raise ValueError
            n_edge = self._sizes.n_edge
            for (number, (counts, generator)), row in zip(saved.items(), rows, strict=True):
                params = Params(row[1 : n_edge + 1].copy(), row[n_edge + 1 :].copy())
                state = ChainState(params, **counts, log_likelihood=float(row[0]))
                if not 0 < state.sweep <= self._schedule.n_sweep:
                    raise ValueError
                chains[number].state, chains[number].rng.bit_generator.state = state, generator
                self(chains[number])
        except (LookupError, TypeError, ValueError, OverflowError):
            raise self._foreign(STATE) from None
        for number in range(n_part):
            self._read_part(number)
        expected = [self._schedule.n_kept(chain.sweep) for chain in chains]
        if self._last != last or self._n_kept != expected:
            raise self._foreign(STATE)

    def _read_part(self, number: int) -> None:
        """Take the draws of the next part."""
        path = _part(self._path, number)
        head, content, digest = read_sealed(path)
        try:
            last = [_whole(n, self._schedule.n_draw) for n in head["last"]]
            going_on = head["after"] == self._last and head["first"] == self._n_kept
            if not going_on or len(last) != len(self._n_kept) or any(np.less(last, self._n_kept)):
                raise ValueError
            at = 0
            for array in _between(self._draws, self._n_kept, last):
                array[...] = np.frombuffer(content, array.dtype, array.size, at).reshape(array.shape)
                at += array.nbytes
            if at != len(content):
                raise ValueError
        except (LookupError, TypeError, ValueError):
            raise self._foreign(path.name) from None
        self._n_part, self._last, self._n_kept = number + 1, digest, last

    def _foreign(self, name: str) -> CheckpointError:
        return CheckpointError(f"{name} of checkpoint {str(self._path)!r} is of another run", "those of its run.json")


_Standing = tuple[ChainState, Mapping[str, Any]]
"""State of a chain, and that of its generator."""


def _part(path: Path, number: int) -> Path:
    return path / f"draws_{number}"


def _between(draws: Draws, first: Sequence[int], last: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield the draws of each chain from the first to before the last, array by array."""
    for chain, (lo, hi) in enumerate(zip(first, last, strict=True)):
        yield from (array[chain, lo:hi] for array in draws if hi > lo)


def _write_state(path: Path, schedule: Schedule, standing: Sequence[_Standing | None], n_part: int, last: str) -> None:
    begun = [at[0] for at in standing if at is not None]
    chains = [None if at is None else _about(*at) for at in standing]
    head = {"n_sweep": schedule.n_sweep, "n_part": n_part, "last": last, "chains": chains}
    numbers = [np.concatenate([[state.log_likelihood], *state.params]) for state in begun]
    write_sealed(path / STATE, head, numbers)


_COUNTS = ("key", "sweep", "n_even", "n_active")


def _about(state: ChainState, generator: Mapping[str, Any]) -> dict[str, Any]:
    """Return what JSON holds of a chain."""
    return {**{name: getattr(state, name) for name in _COUNTS}, "generator": generator}


def _chains_from(head: Mapping[str, Any]) -> dict[int, tuple[dict[str, int], dict[str, Any]]]:
    """Return the counts of each chain that had begun, checked, and the state of its generator, which NumPy checks."""
    begun = {number: about for number, about in enumerate(head["chains"]) if about is not None}
    return {
        number: ({name: _whole(about[name], 2**63 - 1) for name in _COUNTS}, about["generator"])
        for number, about in begun.items()
    }


def _whole(number: Any, most: int) -> int:
    # the type itself: bool is an int to isinstance()
    if type(number) is not int or not 0 <= number <= most:
        raise ValueError
    return number


def read_progress(path: Path) -> tuple[list[int], int] | None:
    """Return the saved sweeps of each chain and how many there will be, or None where nothing has begun.

    The folder may be in use.

    Raises
    ------
    CheckpointError
        For a file that is missing or damaged.
    """
    if not (path / RUN).is_file():
        return None
    read_run(path)
    head, _, _ = read_sealed(path / STATE)
    try:
        sweeps = {number: counts["sweep"] for number, (counts, _) in _chains_from(head).items()}
        return [sweeps.get(number, 0) for number in range(len(head["chains"]))], _whole(head["n_sweep"], 2**63 - 1)
    except (LookupError, TypeError, ValueError):
        raise CheckpointError(f"{STATE} of checkpoint {str(path)!r} is damaged") from None
