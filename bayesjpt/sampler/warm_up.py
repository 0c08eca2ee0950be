"""Compiling what a fit will call before it is timed: once an installation, then loaded from disk once a process."""

from __future__ import annotations

import functools

import numpy as np

from bayesjpt.families import dispatch, registry
from bayesjpt.kernels.samplers import BLOCKED, COLLAPSED
from bayesjpt.numerics.native import resolve
from bayesjpt.sampler.target import Target
from bayesjpt.table.schema import Schema

_SLOTS = (
    "prepare",
    "coefficients",
    "fill_log_density",
    "accumulate",
    "initial",
    "draw_posterior",
    "draw_from_values",
    "log_evidence",
    "draw_afresh",
)
"""Of a family: what learners and sweeps call."""

_MORE_SLOTS = {COLLAPSED: ("predictive", "fill_log_predictive", "log_mass")}
"""What sweeps of a sampler call beside."""


def compile_families(schema: Schema, sampler: str = BLOCKED) -> None:
    """Compile what sweeps of a sampler call of the families that the columns of a schema are offered."""
    for member in {member.name for column in schema for member in registry.dictionary(column)}:
        _compile_family(registry.number(member), sampler)


@functools.cache
def _compile_family(number: int, sampler: str) -> None:
    for slot, name in enumerate(dispatch.SIGNATURES):
        if name in (*_SLOTS, *_MORE_SLOTS.get(sampler, ())) and getattr(registry.FAMILIES[number], name) is not None:
            resolve(number, slot)


def compile_sweeps(target: Target) -> None:
    """Compile the kernels of a sweep, through one over a target that may be tiny."""
    sweeper = target.sweeper()
    sweeper.sweep(sweeper.at_random(np.random.default_rng(0)), np.random.default_rng(0), 0, 0)
    _ = sweeper.n_active
