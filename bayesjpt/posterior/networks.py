"""Draws of cutset networks that are not kept: counts, from which each draw is made again when it is asked for.

      kept      a network as arrays, the rows of each of its ways and table entries, a seed       .3 MB
      made      a Posterior: circuit, draws, plan                                                 10 MB

The posterior of a network is in closed form, so draw d of a chain is a function of the seed, the chain and d. Where the
imaginary rows of splits are to be drawn, too, each draw takes their number from its posterior first: with the weights
integrated out, the counts say how probable each number is. Complete
rows are scored by the tables; whatever else is asked is asked of the Posterior.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import overload
from weakref import WeakKeyDictionary

import numpy as np

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.bdeu import BDeu
from bayesjpt.circuit.networks import Network, expand
from bayesjpt.circuit.recognised import recognise
from bayesjpt.circuit.split_prior import shares_of_entries
from bayesjpt.circuit.trees import group_rows
from bayesjpt.kernels.networks import count_rows, draw_log_weights, log_evidence
from bayesjpt.posterior.convert import reference_of
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table

DRAWN_ESS = 2.0 ** np.arange(-5.0, 7.0)
"""Imaginary rows of a split where they are drawn: from hardly any to as many as a small part has."""

MAX_KEPT_BYTES = 2**28
"""Of posteriors that were made again, kept for the next question."""

_BYTES_OF_EDGE = 64
"""Of a circuit and its plan, beside 8 a draw."""

_ROWS: WeakKeyDictionary[Table, np.ndarray] = WeakKeyDictionary()

_DRAWS = 1
"""What a seed is for; 0 is learning (`bayesjpt.fitting.ensemble.Ensemble.learn`)."""


@dataclass(frozen=True, eq=False)
class NetworkDraws:
    """The posterior of a network of labels given complete rows.

    Parameters
    ----------
    network : Network
    count : unsigned integers (n_entry,)
        Rows of each way and table entry, in as few bytes as hold the largest of them.
    ess : float, BDeu or None
        Imaginary rows of each sum, or of all together; None where each draw has a number of its own, one of
        `DRAWN_ESS`.
    schema : Schema
    seed : int
    n_chain : int
    draws : int64 (n_draw,)
        Numbers of the draws that each chain keeps.
    reference, settings : as in Posterior
    """

    network: Network
    count: np.ndarray
    ess: float | BDeu | None
    schema: Schema
    seed: int
    n_chain: int
    draws: np.ndarray
    reference: Table | None = None
    settings: Mapping[str, str | int | float] = field(default_factory=dict)

    @property
    def n_draw(self) -> int:
        return self.draws.size

    @cached_property
    def sample_stats(self) -> dict[str, np.ndarray]:
        """What the sampler would have recorded: edges that some row took."""
        active = int((self.count > 0).sum() - self._is_single.sum())
        return {"n_active_edges": np.full((self.n_chain, self.n_draw), active)}

    @property
    def _is_single(self) -> np.ndarray:
        """Counted entries of columns of a single group, which need no sum, bool (n_entry,)."""
        single = np.repeat(self.network.n_group[self.network.column] == 1, np.diff(self.network.table_ptr))
        return np.concatenate([np.zeros(self.network.way.size, bool), single]) & (self.count > 0)

    @property
    def n_bytes(self) -> int:
        """Bytes of the Posterior, about."""
        return (_BYTES_OF_EDGE + 8 * self.n_chain * self.n_draw) * self.network.n_entry

    def table_weights(self, numbers: np.ndarray) -> np.ndarray:
        """Return draws as `Posterior.table_weights` does, made again."""
        out = np.empty((numbers.size, self.network.n_entry))
        for draw_weights, number in zip(out, numbers.tolist(), strict=True):
            chain, place = divmod(number, self.n_draw)
            key = np.random.SeedSequence(self.seed, spawn_key=(_DRAWS, chain, int(self.draws[place])))
            rng = np.random.Generator(np.random.PCG64(key))
            count, ess = self.usual_prior
            if self.ess is None:
                ess = rng.choice(DRAWN_ESS, p=self.ess_weights)
            draw_weights[:] = draw_log_weights(self.network, count, ess, rng)
        return out

    @cached_property
    def ess_weights(self) -> np.ndarray:
        """Posterior probabilities of `DRAWN_ESS`, which are all as probable before, float64 (n,)."""
        log_weight = log_evidence(self.network, self.count, DRAWN_ESS)
        weight = np.exp(log_weight - log_weight.max())
        return weight / weight.sum()

    @cached_property
    def usual_prior(self) -> tuple[np.ndarray, float]:
        """Counts (n_entry,), and imaginary rows that each sum has beside them: as given, or the posterior mean.

        One imaginary sample of all sums is among the counts.
        """
        if isinstance(self.ess, BDeu):
            return self.count + self.ess.rows * shares_of_entries(self.network), 0.0
        return self.count, float(self.ess_weights @ DRAWN_ESS) if self.ess is None else self.ess

    def take_draws(self, kept: np.ndarray) -> NetworkDraws:
        """Return the posterior of some draws of every chain, as `Posterior.take_draws`."""
        return replace(self, draws=self.draws[kept])

    def with_draws(self, n_draw: int) -> NetworkDraws:
        """Return the same posterior with the first draws of each chain, however many are kept."""
        return replace(self, draws=np.arange(n_draw))

    def posterior(self) -> Posterior:
        """Return the Posterior, with its circuit and all draws."""
        circuit, edge_of = expand(self.network, self.schema, *self.usual_prior)
        has_edge = edge_of >= 0
        log_weight = np.zeros((self.n_chain * self.n_draw, circuit.n_edge))
        log_weight[:, edge_of[has_edge]] = self.table_weights(np.arange(len(log_weight)))[:, has_edge]
        shape = self.n_chain, self.n_draw
        params = Params(log_weight.reshape(*shape, -1), np.empty((*shape, 0)))
        return Posterior(circuit, self.schema, params, self.sample_stats, self.reference, self.settings)


def network_draws(
    circuit: Circuit, table: Table, ess: float | BDeu | None, seed: int, *, n_chain: int, n_draw: int
) -> NetworkDraws | None:
    """Return the posterior of a circuit given a table; None where it is no network of labels, or cells are missing.

    `ess` as in `NetworkDraws`.
    """
    if not table.observed.all():
        return None
    found = recognise(circuit, table.schema)
    if found is None:
        return None
    count = in_few_bytes(count_rows(found.network, rows_of(table)))
    draws = np.arange(n_draw)
    return NetworkDraws(found.network, count, ess, table.schema, seed, n_chain, draws, reference_of(table))


def in_few_bytes(count: np.ndarray) -> np.ndarray:
    """Return counts as the smallest unsigned integers that hold them: hundreds of networks are mostly counts."""
    return count.astype(np.min_scalar_type(count.max(initial=0)))


def rows_of(table: Table) -> np.ndarray:
    """Return the groups of labels of complete rows, integers (n_row, n_column), read-only, made once."""
    if table not in _ROWS:
        rows = group_rows(table.schema, table.values)
        rows.flags.writeable = False
        _ROWS[table] = rows
    return _ROWS[table]


class Structures(Sequence[Posterior]):
    """The posteriors of several structures, of which those of networks are made when they are read.

    They are kept as far as there is room; those that are not are made for each question.
    """

    def __init__(self, members: Sequence[Posterior | NetworkDraws]):
        self._members = tuple(members)
        self._kept: dict[int, Posterior] = {}
        self._n_bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._members)

    @overload
    def __getitem__(self, index: int) -> Posterior: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Posterior]: ...

    def __getitem__(self, index: int | slice) -> Posterior | Sequence[Posterior]:
        if isinstance(index, slice):
            return Structures(self._members[index])
        number = range(len(self))[index]
        member = self._members[number]
        if isinstance(member, Posterior):
            return member
        if number not in self._kept:
            made = member.posterior()
            with self._lock:
                if number in self._kept or self._n_bytes + member.n_bytes > MAX_KEPT_BYTES:
                    return self._kept.get(number, made)
                self._kept[number] = made
                self._n_bytes += member.n_bytes
        return self._kept[number]

    def __iter__(self) -> Iterator[Posterior]:
        return (self[number] for number in range(len(self)))

    def __getstate__(self) -> tuple[Posterior | NetworkDraws, ...]:
        return self._members

    def __setstate__(self, members: tuple[Posterior | NetworkDraws, ...]) -> None:
        self.__init__(members)
