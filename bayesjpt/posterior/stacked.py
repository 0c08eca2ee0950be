"""Posteriors of several structures: each a Posterior of its own, with draws in proportion to its weight.

      structure 0   draws 0 1 2 3 4 5        the draws of a chain of the whole: first those of structure 0,
      structure 1   draws 6 7 8              then those of structure 1, and so on; a coordinate tells which

So all draws together, none weighted, are the average over structures, and their spread is that between structures too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.errors import EvidenceError, QueryError
from bayesjpt.posterior.answer import PlainAnswer, PlainAnswers
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.networks import NetworkDraws, Structures


class StackedPosterior(Posterior):
    """Draws of several structures of one table; whatever is asked is answered by all of them.

    Parameters
    ----------
    structures : sequence of Posterior or NetworkDraws
        With the same columns and number of chains. Each has draws in proportion to its weight. Posteriors of those that
        keep no draws are made when they are asked.
    weights : sequence of float
        Even, or by stacking: positive, with sum 1. They are a record: what is averaged are the draws.
    settings : mapping, optional
        How the whole was made.

    Attributes
    ----------
    weights : float64 (n_structure,)
    """

    _structures: tuple[Posterior | NetworkDraws, ...]
    _made: Sequence[Posterior]
    weights: np.ndarray

    def __init__(
        self,
        structures: Sequence[Posterior | NetworkDraws],
        weights: Sequence[float] | np.ndarray,
        settings: Mapping[str, str | int | float] | None = None,
    ):
        first = structures[0]
        assert len(structures) == len(weights)
        assert all(post.schema == first.schema and post.n_chain == first.n_chain for post in structures)
        keep_none = any(isinstance(post, NetworkDraws) for post in structures)
        made = Structures(structures) if keep_none else tuple(structures)
        attributes = {
            "_structures": tuple(structures),
            "_made": made,
            "weights": np.array(weights, np.float64),
            "schema": first.schema,
            "reference": first.reference,
            "sample_stats": _stats_together(structures),
            "settings": dict(settings or {}),
        }
        for name, value in attributes.items():
            object.__setattr__(self, name, value)  # as in every frozen dataclass

    @property
    def n_chain(self) -> int:
        return self._structures[0].n_chain

    @property
    def n_draw(self) -> int:
        return sum(post.n_draw for post in self._structures)

    @property
    def circuit(self) -> Circuit:
        return self._only("a circuit").circuit

    @property
    def params(self) -> Params:
        return self._only("parameters").params

    def _only(self, what: str) -> Posterior:
        if len(self._structures) != 1:
            raise QueryError(
                f"a posterior of {len(self._structures)} structures, each with {what} of its own",
                "one structure",
                "Take one of post.by_structure()",
                command="Fit one: bayesjpt fit TABLE --structures 1",
            )
        return self._made[0]

    def by_structure(self) -> Sequence[Posterior]:
        return self._made

    def members(self) -> tuple[Posterior | NetworkDraws, ...]:
        """Return the structures as they are kept."""
        return self._structures

    def coords(self) -> dict[str, Any]:
        structure = np.repeat(np.arange(len(self._structures)), [post.n_draw for post in self._structures])
        return {**super().coords(), "structure": ("draw", structure)}

    def noted(self, **settings: str | float) -> StackedPosterior:
        return StackedPosterior(self._structures, self.weights, {**self.settings, **settings})

    def take_draws(self, kept: np.ndarray) -> StackedPosterior:
        parts = np.split(kept, np.searchsorted(kept, self._starts()[1:]))
        left = [number for number, part in enumerate(parts) if part.size]
        starts = self._starts()
        structures = [self._structures[number].take_draws(parts[number] - starts[number]) for number in left]
        weights = self.weights[left] / self.weights[left].sum()
        return StackedPosterior(structures, weights, self.settings)

    def locate(self, draw: np.ndarray) -> Iterator[tuple[Posterior, np.ndarray, np.ndarray]]:
        chain, position = np.divmod(draw, self.n_draw)
        starts = self._starts()
        number = np.searchsorted(starts, position, side="right") - 1
        for structure in np.unique(number).tolist():
            which = np.flatnonzero(number == structure)
            n_draw = self._structures[structure].n_draw
            yield self._made[structure], which, chain[which] * n_draw + position[which] - starts[structure]

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        return np.split(values, self._starts()[1:], axis=1)

    def _starts(self) -> np.ndarray:
        """Return the first draw of each structure, int64 (n_structure,)."""
        return np.cumsum([0, *(post.n_draw for post in self._structures[:-1])])

    def __repr__(self) -> str:
        even = np.ptp(self.weights) < 1e-9  # rounding errors of 1 / n
        weights = "" if even else f" with weights {', '.join(f'{weight:.2f}' for weight in self.weights)}"
        return (
            f"StackedPosterior({len(self._structures)} structures{weights}; {self.n_chain} chains x {self.n_draw} "
            f"draws, {len(self.schema)} columns"
            f"{f'; given {self.settings["given"]}' if 'given' in self.settings else ''})"
        )


def _stats_together(structures: Sequence[Posterior | NetworkDraws]) -> dict[str, np.ndarray]:
    """Return the sampler's statistics that all structures have, (n_chain, n_draw) of the whole."""
    # in one order: a structure that a checkpoint kept has them in another one, and files would differ
    names = sorted(name for name in structures[0].sample_stats if all(name in post.sample_stats for post in structures))
    return {name: np.concatenate([post.sample_stats[name] for post in structures], axis=1) for name in names}


def pooled[Asked: Callable](function: Asked) -> Asked:
    """Return a function f(post, ...) that is asked of each structure on its own, the answers put together.

    Answers are plain ones with the axes chain and draw, arrays that begin with one axis of all chains' draws (as
    `Posterior.flat` has them), tuples of these, or posteriors. A single structure is asked directly.
    """

    @functools.wraps(function)
    def over_structures(post, *args, **kwargs):
        if not isinstance(post, StackedPosterior):
            return function(post, *args, **kwargs)
        parts = []
        for number, structure in enumerate(post.by_structure()):
            try:
                parts.append(function(structure, *args, **kwargs))
            except EvidenceError as error:
                found = f"{error.found}, in structure {number}"
                raise EvidenceError(found, error.expected, error.remedy, command=error.command) from None
        return _together(post, parts)

    return over_structures  # type: ignore[return-value]


def _together(post: StackedPosterior, parts: Sequence[Any]) -> Any:
    """Return the answer of the whole, from those of the structures."""
    first = parts[0]
    if isinstance(first, tuple):
        return tuple(_together(post, part) for part in zip(*parts, strict=True))
    if isinstance(first, np.ndarray):
        by_chain = [part.reshape(post.n_chain, -1, *part.shape[1:]) for part in parts]
        return np.concatenate(by_chain, axis=1).reshape(-1, *first.shape[1:])
    if isinstance(first, PlainAnswer):
        values = np.concatenate([part.values for part in parts], axis=first.dims.index("draw"))
        return replace(first, values=values, coords={**first.coords, **post.coords()})
    if isinstance(first, PlainAnswers):
        data = {
            name: (dims, np.concatenate([part[name] for part in parts], axis=dims.index("draw")))
            for name, (dims, _) in first.data.items()
        }
        return replace(first, data=data, coords={**first.coords, **post.coords()})
    assert isinstance(first, Posterior)
    given = {"given": first.settings["given"]} if "given" in first.settings else {}
    return StackedPosterior(parts, post.weights, {**post.settings, **given})
