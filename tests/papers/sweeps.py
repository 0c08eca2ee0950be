"""Fits by the defaults, of as many rows and with as many sweeps as a script is asked for."""

from __future__ import annotations

import argparse
from typing import Any, Protocol

import numpy as np

import bayesjpt as bj
from bayesjpt.circuit.type_prior import TYPE_PRIORS
from bayesjpt.defaults import CHAINS
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.table import Table


class Sweeps(Protocol):
    """What settings of every script hold; see `bayesjpt.fit`."""

    @property
    def draws(self) -> int | None: ...
    @property
    def tune(self) -> int | None: ...
    @property
    def chains(self) -> int | None: ...
    @property
    def seed(self) -> int: ...


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `Sweeps`, of short fits unless more is asked for, and how alpha is divided."""
    parser.add_argument("--draws", type=int, default=20, help="kept sweeps a chain")
    parser.add_argument("--tune", type=int, default=60, help="burn-in sweeps a chain")
    parser.add_argument("--chains", type=int, default=CHAINS, help="half begin at the learner's estimate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--type-prior", choices=TYPE_PRIORS, default=TYPE_PRIORS[0], help="as in `bayesjpt.fit`")


def some_rows(table: Table, n: int, seed: int) -> Table:
    """Return at most so many rows, drawn without replacement, in their order; the schema is that of all."""
    if table.n_row <= n:
        return table
    return table.take(np.sort(np.random.default_rng(seed).choice(table.n_row, n, replace=False)))


def fit(table: Table, settings: Sweeps, **chosen: Any) -> Posterior:
    """Return the posterior of a table on one core, of one structure unless `chosen`, other options, say more."""
    sweeps = {"draws": settings.draws, "tune": settings.tune, "chains": settings.chains, "seed": settings.seed}
    return bj.fit(table, cores=1, progress=False, **{"n_structures": 1} | sweeps | chosen)
