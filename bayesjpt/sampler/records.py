"""The state of every chain in a memory-mapped file, so that a process killed at any moment loses at most one sweep.

Each chain has two slots and writes them in turn. A slot ends with a hash of what is before it, so one whose writing was
cut short is known, and the other still holds the sweep before:

      chain 0   [ sweep 7 ... hash ]  [ sweep 6 ... hash ]     <- sweep 8 goes here
      chain 1   [ sweep 6 ... hash ]  [ sweep 7 ... hash ]

Draws lie in files of their own and are written before the record that counts them; it carries a checksum of them all.
What a process has written into a mapped file is in the hands of the system: killing the process does not take it back.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.errors import CheckpointError
from bayesjpt.kernels.chain import ChainState, draw_key
from bayesjpt.sampler.chains import Chain
from bayesjpt.sampler.files import map_file
from bayesjpt.sampler.schedule import Draws, Schedule

MAGIC = b"chain 02"
_HEAD = struct.Struct("<8s QQQ QQQQ II I4x d q")
_HASH_BYTES = 16
_HALF = 2**64


class _Head(NamedTuple):
    """What stands before the parameters: 128-bit numbers of the generator in halves."""

    magic: bytes
    sweep: int
    n_even: int
    key: int
    state_high: int
    state_low: int
    increment_high: int
    increment_low: int
    has_uint32: int
    uinteger: int
    checksum: int
    log_likelihood: float
    n_active: int

    @classmethod
    def of(cls, chain: Chain, at: ChainState, checksum: int) -> _Head:
        """Return the head of a chain's record."""
        state = chain.rng.bit_generator.state
        assert state["bit_generator"] == "PCG64"
        return cls(
            magic=MAGIC,
            sweep=at.sweep,
            n_even=at.n_even,
            key=at.key,
            state_high=state["state"]["state"] // _HALF,
            state_low=state["state"]["state"] % _HALF,
            increment_high=state["state"]["inc"] // _HALF,
            increment_low=state["state"]["inc"] % _HALF,
            has_uint32=state["has_uint32"],
            uinteger=state["uinteger"],
            checksum=checksum,
            log_likelihood=at.log_likelihood,
            n_active=at.n_active,
        )

    def generator_state(self) -> dict:
        """Return the state as NumPy's PCG64 takes it."""
        state = self.state_high * _HALF + self.state_low
        return {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": self.increment_high * _HALF + self.increment_low},
            "has_uint32": self.has_uint32,
            "uinteger": self.uinteger,
        }


def slot_bytes(n_number: int) -> int:
    """Return the bytes of one slot, for a chain that carries so many numbers."""
    return _HEAD.size + 8 * n_number + _HASH_BYTES


def file_bytes(n_chain: int, n_number: int) -> int:
    """Return the bytes of the file."""
    return 2 * n_chain * slot_bytes(n_number)


class Records:
    """Slots of all chains; a `Recorder` of `run_chains`. Chains may be recorded from several threads at once.

    Parameters
    ----------
    path : Path
        An existing file of `file_bytes`.
    draws : Draws
        The mapped draws that the records count.
    n_number : int
        What a chain carries: as many as a draw has, or more.
    """

    def __init__(self, path: Path, draws: Draws, n_number: int):
        n_chain, _, self._n_edge = draws.log_weight.shape
        self._name = path.name
        self._draws = draws
        self._slots = map_file(path, (n_chain, 2, slot_bytes(n_number)), np.dtype(np.uint8))
        self._checksum = [0] * n_chain

    def __call__(self, chain: Chain, draw: int | None) -> None:
        """Write the state of a chain behind a sweep, into the slot that does not hold the sweep before."""
        if draw is not None:
            self._checksum[chain.number] = self._extended(self._checksum[chain.number], chain.number, draw)
        self._slots[chain.number, chain.sweep % 2] = np.frombuffer(self._packed(chain), np.uint8)

    def restore(self, chains: list[Chain], schedule: Schedule) -> None:
        """Bring new chains to where the records say that they stood; those without a record stay new.

        Raises
        ------
        CheckpointError
            Where both slots of a chain are damaged, or the draws are not those that were recorded.
        """
        for chain in chains:
            slots = self._slots[chain.number]
            states = [state for slot in slots if (state := _read(slot.tobytes(), self._n_edge)) is not None]
            if not states:
                if slots.any(axis=1).all():  # a single torn slot is a first record that was cut short
                    raise CheckpointError(f"both records of chain {chain.number} in {self._name} are damaged")
                continue
            head, params = max(states, key=lambda state: state[0].sweep)
            if (
                not 0 < head.sweep <= schedule.n_sweep
                or head.key != draw_key(chain.rng)
                or not all(np.isfinite(array).all() for array in params)
            ):
                raise CheckpointError(f"the record of chain {chain.number} in {self._name} is of another run")
            found = 0
            for draw in range(schedule.n_kept(head.sweep)):
                found = self._extended(found, chain.number, draw)
            if found != head.checksum:
                raise CheckpointError(f"the draws of chain {chain.number} are not those that were recorded")
            chain.state = ChainState(params, head.key, head.sweep, head.n_even, head.log_likelihood, head.n_active)
            chain.rng.bit_generator.state = head.generator_state()
            self._checksum[chain.number] = head.checksum

    def _extended(self, checksum: int, chain: int, draw: int) -> int:
        for array in self._draws:
            checksum = zlib.crc32(np.ascontiguousarray(array[chain, draw]).data, checksum)
        return checksum

    def _packed(self, chain: Chain) -> bytes:
        assert chain.state is not None
        head = _Head.of(chain, chain.state, self._checksum[chain.number])
        content = _HEAD.pack(*head) + b"".join(array.tobytes() for array in chain.state.params)
        return content + _hash(content)


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_HASH_BYTES).digest()


def _read(slot: bytes, n_edge: int) -> tuple[_Head, Params] | None:
    """Return what a slot holds, or None unless it was written to its end."""
    content, stored = slot[:-_HASH_BYTES], slot[-_HASH_BYTES:]
    if _hash(content) != stored or not content.startswith(MAGIC):
        return None
    numbers = np.frombuffer(content, np.float64, offset=_HEAD.size)
    return _Head(*_HEAD.unpack_from(content)), Params(numbers[:n_edge].copy(), numbers[n_edge:].copy())


def read_sweeps(path: Path, n_chain: int, n_number: int) -> list[int]:
    """Return how many sweeps each chain has completed, from its records alone.

    Raises
    ------
    CheckpointError
        Where there is no such file, or it has another size.
    """
    size = slot_bytes(n_number)
    found = path.stat().st_size if path.is_file() else None
    if found != file_bytes(n_chain, n_number):
        what = "is missing" if found is None else f"has {found} bytes"
        raise CheckpointError(f"{path.name} of the checkpoint {str(path.parent)!r} {what}", "those of its run.json")
    content = path.read_bytes()
    slots = [_read(content[start : start + size], 0) for start in range(0, 2 * n_chain * size, size)]
    sweeps = [state[0].sweep if state is not None else 0 for state in slots]
    return [max(pair) for pair in zip(sweeps[::2], sweeps[1::2], strict=True)]
