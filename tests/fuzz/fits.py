"""One generated table through `fit`: the outcome in a few words, or an assertion."""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import bayesjpt as bj
from bayesjpt.errors import BayesjptError, BayesjptWarning, CircuitError, ModelError, SamplingError
from bayesjpt.table.table import Table
from tests.fuzz.experts import experts_outcome
from tests.fuzz.questions import QUESTIONS, about, ask, next_to

SETTINGS = {"tune": 2, "chains": 2, "cores": 1, "progress": False}
FEW = 2
"""Draws of each structure and chain."""
DRAWS = {"outliers of training": 15}
"""For questions that few do not answer."""
SLOW = ("report", "save", "outliers of training")
"""Questions that take as long as ten others: they are asked half as often."""
SHARES = np.array([0.5 if question in SLOW else 1.0 for question in QUESTIONS])
ROUNDING = 1e-9
LEARNERS = ("mspn", "jpt", "cutset", "wmispn", "tree_mixture", "hclt")
EXPERTS = "experts"
"""In place of a learner: mixtures of experts of one column given the others."""


def outcome(
    frame: Any,
    seed: int,
    learner: str = "mspn",
    *,
    every_question: bool = False,
    among: Sequence[str] = tuple(QUESTIONS),
) -> str:
    """Return what became of a table: ``asked`` about, ``not answered``, or the error and what it found.

    Every fit says how likely rows are; beside that it is asked one question, drawn from some, or every one.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", BayesjptWarning)
        try:
            table = bj.as_table(frame)
            questions, rng = list(QUESTIONS), np.random.default_rng(seed)
            if not every_question:
                # not by the seed alone: Hypothesis prefers some, and one question would be asked again and again
                rng = np.random.default_rng([seed, zlib.crc32(table.values.tobytes())])
                shares = SHARES * np.isin(questions, among)
                questions = [str(rng.choice(questions, p=shares / shares.sum()))]
            n_structures = int(rng.integers(1, 3))
            if learner == EXPERTS:
                return experts_outcome(table, rng)
            posts = {
                draws: bj.fit(table, learner=learner, seed=seed, n_structures=n_structures, draws=draws, **SETTINGS)
                for draws in sorted({DRAWS.get(question, FEW) for question in questions})
            }
        except (CircuitError, ModelError, SamplingError) as error:  # no table is to blame for it
            raise AssertionError(str(error)) from error
        except BayesjptError as error:
            return f"{type(error).__name__}: {_in_general(error.found)}"
        for post in posts.values():
            check_rows(post, next_to(table, rng))
        answered = [ask(posts[DRAWS.get(question, FEW)], question, about(table, rng)) for question in questions]
    return "asked" if all(answered) or every_question else f"not answered: {questions[0]}"


def check_rows(post: bj.Posterior, rows: Table) -> None:
    """Check that no row is impossible and no mass above 1."""
    for name, answer in (("density", post.log_density(rows)), ("mass", post.log_mass(rows))):
        values = answer.to_numpy()
        assert np.isfinite(values).all(), f"log {name} {values[~np.isfinite(values)][0]}"
        if name == "mass":
            assert (values <= ROUNDING).all(), f"log mass {values.max()}"


def _in_general(found: str) -> str:
    """Return a message without its names, values and numbers."""
    found = re.sub(r"<object object at .*?>", "an object", found)
    text = re.sub(r"'.*?'(?=\W|$)|\".*?\"", "_", found, flags=re.DOTALL)
    return re.sub(r"[-+]?\d[\d.,e+-]*|\binf\b|\bnan\b", "#", text)[:70].strip()
