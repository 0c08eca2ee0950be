"""One generated table through `fit`: the outcome in a few words, or an assertion."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

import bayesjpt as bj
from bayesjpt.errors import BayesjptError, BayesjptWarning, CircuitError, SamplingError
from bayesjpt.table.table import Table
from tests.fuzz.experts import experts_outcome
from tests.fuzz.questions import ask, next_to

SETTINGS = {"n_structures": 2, "draws": 2, "tune": 2, "chains": 2, "cores": 1, "progress": False}
ROUNDING = 1e-9
LEARNERS = ("mspn", "jpt", "cutset", "wmispn", "tree_mixture", "hclt")
EXPERTS = "experts"
"""In place of a learner: mixtures of experts of one column given the others."""
ASKED_SHARE = 5
"""About one of so many fits is asked all queries, which takes longer than the fit."""


def outcome(frame: Any, seed: int, learner: str = "mspn", *, every_query: bool = False) -> str:
    """Return what became of a table: ``fitted``, ``asked`` every query too, or the error and what it found."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", BayesjptWarning)
        try:
            table = bj.as_table(frame)
            if learner == EXPERTS:
                return experts_outcome(table, np.random.default_rng(seed))
            post = bj.fit(table, learner=learner, seed=seed, **SETTINGS)
        except (CircuitError, SamplingError) as error:  # no table is to blame for it
            raise AssertionError(str(error)) from error
        except BayesjptError as error:
            return f"{type(error).__name__}: {_in_general(error.found)}"
        check_rows(post, next_to(table, np.random.default_rng(seed)))
        check_shares(post)
        if not every_query and seed % ASKED_SHARE != ASKED_SHARE - 1:  # 0, which is drawn most often, is not asked
            return "fitted"
        ask(post, table, np.random.default_rng(seed))
        return "asked"


def check_rows(post: bj.Posterior, rows: Table) -> None:
    """Check that no row is impossible and no mass above 1."""
    for name, answer in (("density", post.log_density(rows)), ("mass", post.log_mass(rows))):
        values = answer.to_numpy()
        assert np.isfinite(values).all(), f"log {name} {values[~np.isfinite(values)][0]}"
        if name == "mass":
            assert (values <= ROUNDING).all(), f"log mass {values.max()}"


def check_shares(post: bj.Posterior) -> None:
    """Check that no share of a type is NaN."""
    for column in post.types().shares:
        assert np.isfinite([column.share, column.lo, column.hi]).all(), f"type shares of {column.name!r}"


def _in_general(found: str) -> str:
    """Return a message without its names, values and numbers."""
    found = re.sub(r"<object object at .*?>", "an object", found)
    text = re.sub(r"'.*?'(?=\W|$)|\".*?\"", "_", found, flags=re.DOTALL)
    return re.sub(r"[-+]?\d[\d.,e+-]*|\binf\b|\bnan\b", "#", text)[:70].strip()
