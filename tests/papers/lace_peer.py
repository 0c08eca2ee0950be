"""lace (Bayesian CrossCat) as a peer: fitted by another interpreter, scored here from the mixtures that it found.

Each of its states divides the columns into views, and each view is a mixture of products, so masses of cells are sums
over components of products of cell probabilities: the integral of the fitted density over the cell, which is its mean
over the cell times the width.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from scipy.special import gammaln, log_ndtr, pdtr

from bayesjpt.errors import BayesjptError
from tests.papers import measures

WORKER = Path(__file__).with_name("lace_worker.py")

MAX_RECOVERY_ERROR = 1e-3
"""Nats per row by which log likelihoods of training rows may differ between lace and the mixture that was read."""


NARROW = 1e-6
"""Relative difference of the probabilities below both ends of a cell, up to which its middle stands for it: the rule's
relative error is the square of that, the rounding error of the difference 1e-10."""


class PeerError(BayesjptError):
    """The other program failed, or said something that does not fit together."""


@dataclass(frozen=True)
class View:
    """A mixture of products over some columns.

    Parameters
    ----------
    columns : tuple of int
    weights : float64 (n_component,)
    parameters : tuple of float64 (n_component, n_parameter)
        For each column: mean and standard deviation, rate, or probabilities of the codes from 0.
    """

    columns: tuple[int, ...]
    weights: np.ndarray
    parameters: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Lace:
    """What a fit by lace found.

    Parameters
    ----------
    kinds : mapping from int to str
        ``Continuous``, ``Count`` or ``Categorical`` by column, as lace chose.
    states : tuple of tuples of View
    processor_seconds : float
        Of the fit.
    """

    kinds: Mapping[int, str]
    states: tuple[tuple[View, ...], ...]
    processor_seconds: float

    @property
    def columns(self) -> list[int]:
        """The columns that it was given."""
        return [column for view in self.states[0] for column in view.columns]

    def score(self, values: np.ndarray, resolution: np.ndarray | None) -> measures.Score:
        """Return the log mass of the cells of these values, or the log density where no resolution is given.

        Parameters
        ----------
        values : float64 (n_column, n_row)
            NaN where missing.
        resolution : float64 (n_column,) or None
        """
        terms = {
            (state, column): self._terms(column, parameters, values[column], resolution)
            for state, views in enumerate(self.states)
            for view in views
            for column, parameters in zip(view.columns, view.parameters, strict=True)
        }

        def score(which: np.ndarray) -> np.ndarray:
            rows = np.zeros((1, len(self.states), values.shape[1]))
            for state, views in enumerate(self.states):
                for view in views:
                    of_view = np.log(np.maximum(view.weights, 1e-300))[:, None] + np.zeros(values.shape[1])
                    for column in view.columns:
                        of_view += np.where(which[column], terms[state, column], 0.0)
                    rows[0, state] += np.logaddexp.reduce(of_view, axis=0)
            return rows

        return score

    def complete(self, values: np.ndarray) -> np.ndarray:
        """Return values with missing cells filled in: expectations given the rest of the row, the most probable label.

        Chains count alike. Cells of columns that lace does not know stay missing.

        Parameters
        ----------
        values : float64 (n_column, n_row)
            NaN where missing.
        """
        filled = values.copy()
        shares: dict[int, np.ndarray] = {}
        for views in self.states:
            for view in views:
                parts = [
                    self._terms(*own, values[own[0]], None) for own in zip(view.columns, view.parameters, strict=True)
                ]
                log_share = np.log(np.maximum(view.weights, 1e-300))[:, None] + sum(parts)
                share = np.exp(log_share - np.logaddexp.reduce(log_share, axis=0))
                for column, parameters in zip(view.columns, view.parameters, strict=True):
                    says = parameters if self.kinds[column] == "Categorical" else parameters[:, :1]
                    shares[column] = shares.get(column, 0.0) + says.T @ share / len(self.states)
        for column, says in shares.items():
            found = np.argmax(says, axis=0) if self.kinds[column] == "Categorical" else says[0]
            filled[column] = np.where(np.isnan(values[column]), found, values[column])
        return filled

    def unknown_cells(self, values: np.ndarray) -> np.ndarray:
        """Return bool, shape of `values`: cells that lace would stop at.

        Those are labels above the ones of training, and columns that are constant there. They count as certain in its
        scores, mass 1, so to its advantage.
        """
        unknown = ~np.isnan(values) & ~np.isin(np.arange(len(values)), self.columns)[:, None]
        for view in self.states[0]:
            for column, parameters in zip(view.columns, view.parameters, strict=True):
                if self.kinds[column] == "Categorical":
                    unknown[column] = values[column] >= parameters.shape[1]
        return unknown

    def _terms(self, column: int, parameters: np.ndarray, values: np.ndarray, resolution: np.ndarray | None):
        """Return float64 (n_component, n_row), log masses or densities; 0 where missing or unknown."""
        known = ~np.isnan(values)
        x = np.where(known, values, 0.0)
        kind = self.kinds[column]
        if kind == "Categorical":
            known &= x < parameters.shape[1]
            with np.errstate(divide="ignore"):
                log_terms = np.log(parameters[:, np.where(known, x, 0.0).astype(int)])
        elif kind == "Count":
            log_terms = _log_count(x, parameters, 1.0 if resolution is None else resolution[column])
        elif resolution is None:
            mean, spread = parameters[:, :1], parameters[:, 1:]
            log_terms = -0.5 * ((x - mean) / spread) ** 2 - np.log(spread) - 0.5 * np.log(2.0 * np.pi)
        else:
            log_terms = log_normal_mass(*measures.cells(x, resolution[column]), parameters)
        return np.where(known, log_terms, 0.0)


def _log_count(x: np.ndarray, parameters: np.ndarray, width: float) -> np.ndarray:
    """Return the log probability of the whole numbers in the cells of values: of the value, for a width up to 1."""
    if width <= 1.0:
        return x * np.log(parameters) - parameters - gammaln(x + 1.0)
    lo, hi = (np.ceil(end) - 1.0 for end in measures.cells(x, width))
    with np.errstate(divide="ignore"):
        return np.log(pdtr(hi, parameters) - np.where(lo < 0.0, 0.0, pdtr(np.maximum(lo, 0.0), parameters)))


def log_normal_mass(lo: np.ndarray, hi: np.ndarray, parameters: np.ndarray) -> np.ndarray:
    """Return float64 (n_component, n_row): log probabilities of intervals under normals (mean, standard deviation).

    A cell so narrow that its ends have nearly the same probability below them has the density at its middle times its
    width.
    """
    mean, spread = parameters[:, :1], parameters[:, 1:]
    z_lo, z_hi = (lo - mean) / spread, (hi - mean) / spread
    mirrored = z_lo > 0.0
    z_lo, z_hi = np.where(mirrored, -z_hi, z_lo), np.where(mirrored, -z_lo, z_hi)
    log_hi = log_ndtr(z_hi)
    step = log_ndtr(z_lo) - log_hi
    by_middle = -0.125 * (z_lo + z_hi) ** 2 - 0.5 * np.log(2.0 * np.pi) + np.log(z_hi - z_lo)
    narrow = step > -NARROW
    return np.where(narrow, by_middle, log_hi + np.log(-np.expm1(np.where(narrow, -1.0, step))))


@dataclass(frozen=True)
class Settings:
    """How lace is run: its interpreter, chains, iterations of the `sams` kernel."""

    python: Path
    n_state: int = 4
    n_iteration: int = 100


class Rows(Protocol):
    """What a fit needs of a table: its name, float64 (n_row, n_column) with NaN where missing, bool (n_column,)."""

    @property
    def name(self) -> str: ...
    @property
    def train(self) -> np.ndarray: ...
    @property
    def discrete(self) -> np.ndarray: ...


def fit_lace(data: Rows, settings: Settings, seed: int) -> Lace:
    """Return lace's fit of the training rows; it is told which columns are discrete, and given whole numbers there.

    Raises
    ------
    PeerError
        Where its interpreter fails, or weights were not found that give its own log likelihoods.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.json")
        np.savez(
            source,
            train=data.train,
            discrete=data.discrete,
            n_state=settings.n_state,
            n_iteration=settings.n_iteration,
            seed=seed,
        )
        command = [str(settings.python), "-I", str(WORKER), str(source), str(target)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise PeerError(
                f"no interpreter {str(settings.python)!r} ({error.strerror})", "one that has lace"
            ) from None
        if done.returncode or not target.is_file():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise PeerError(f"lace stopped on {data.name!r}: {last}", "a fit")
        answer = json.loads(target.read_text())
    if not answer["recovery_error"] <= MAX_RECOVERY_ERROR:
        raise PeerError(
            f"log likelihoods of training rows that are {answer['recovery_error']:.2g} nats from lace's own",
            f"at most {MAX_RECOVERY_ERROR:g}",
        )
    return read_lace(answer)


def read_lace(answer: dict) -> Lace:
    """Return the fit that the worker wrote."""
    states = tuple(
        tuple(
            View(
                tuple(view["columns"]),
                np.array(view["weights"]),
                tuple(np.array(part, float).reshape(len(part), -1) for part in view["parameters"]),
            )
            for view in views
        )
        for views in answer["states"]
    )
    kinds = {int(column): kind for column, kind in answer["kinds"].items()}
    return Lace(kinds, states, answer["processor_seconds"])
