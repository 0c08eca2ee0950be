"""Boosted cutset networks: each is learned from the rows that those before it find improbable, and mixed in.

    f_1 = network of all rows
    f_k = (1 - s_k) f_(k-1) + s_k c_k      c_k: network of rows drawn in proportion to 1 / f_(k-1)
                                           s_k: share under which the table's rows are most probable

Shares and samples are chosen, not drawn: what comes out is an optimum, to be compared with averages of posteriors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bayesjpt.circuit.bdeu import BDeu
from bayesjpt.defaults import DRAWN_ESS, ESS, LEARN_ROWS
from bayesjpt.errors import LearnerError
from bayesjpt.fitting.ensemble import Ensemble, derived_seed
from bayesjpt.fitting.stacking import MIN_STRUCTURE_WEIGHT
from bayesjpt.kernels.networks import fill_scores, mean_log_weights
from bayesjpt.posterior.draws import INDEPENDENT
from bayesjpt.posterior.networks import NetworkDraws, network_draws, rows_of
from bayesjpt.posterior.weights import without_small
from bayesjpt.table.evidence import chosen_rows
from bayesjpt.table.table import Table

_ROWS = 4
"""What a seed is for."""


def boost(
    ensemble: Ensemble, table: Table, learnt_from: Table, *, n_chain: int, tell: Callable[[int, int], None] | None
) -> tuple[list[NetworkDraws], np.ndarray]:
    """Return networks of one draw a chain, each given the rows that it drew, and their shares, float64 (n_structure,).

    Parameters
    ----------
    ensemble : Ensemble
        Of the learner ``cutset``.
    table, learnt_from : Table
        Rows, and the same under the schema that learners see.
    n_chain : int
    tell : callable, optional
        Told how many networks are learned, of how many.

    Raises
    ------
    LearnerError
        Where a network is not one of labels, or cells are missing.

    Notes
    -----
    The first network sees all rows; of more than `bayesjpt.defaults.LEARN_ROWS` each is learned from so many, chosen by
    a hash of their numbers. Rows are judged by the posterior mean of each network's density. A network that would make
    the table's rows less probable at any share gets none, nor does one whose share is hardly a draw.
    Cost: that of learning networks one by one.

    References
    ----------
    Rosset and Segal (2002). Boosting Density Estimation. NIPS 15. Rahman and Gogate (2016). Learning Ensembles of
    Cutset Networks. AAAI (there BDE).
    """
    networks: list[NetworkDraws] = []
    shares, log_density = np.empty(ensemble.n), np.empty(table.n_row)
    for number in range(ensemble.n):
        rows = np.arange(table.n_row) if number == 0 else drawn_rows(log_density, ensemble.seed_of(number))
        # never the first of the rows: a table may be sorted
        few = learnt_from.take(rows[chosen_rows(rows.size, LEARN_ROWS, number)])
        network = _network(ensemble, number, table.take(rows), few, n_chain)
        found = _mean_log_density(network, table)
        shares[number] = 1.0 if number == 0 else best_share(log_density, found)
        log_density = found if number == 0 else mixed(shares[number], log_density, found)
        networks.append(network)
        if tell is not None:
            tell(number + 1, ensemble.n)
    left = np.append(np.cumprod(1.0 - shares[:0:-1])[::-1], 1.0)  # what later networks leave of each
    return networks, without_small(shares * left, min(MIN_STRUCTURE_WEIGHT, 0.5 / ensemble.n))


def drawn_rows(log_density: np.ndarray, seed: int) -> np.ndarray:
    """Return as many rows as there are, drawn with replacement in inverse proportion to their density."""
    weight = np.exp(log_density.min() - log_density)
    rng = np.random.default_rng(derived_seed(seed, _ROWS))
    return rng.choice(log_density.size, log_density.size, p=weight / weight.sum())


def best_share(old: np.ndarray, new: np.ndarray) -> float:
    """Return the share s in [0, 1] of a new density under which the mean log of (1 - s) old + s new is largest.

    Parameters
    ----------
    old, new : float64 (n_row,), nats
        Logarithms of both densities.

    Notes
    -----
    The mean is concave in s; its slope is the mean of (new - old) / ((1 - s) old + s new).

    Examples
    --------
    >>> old, new = np.log([0.2, 0.6]), np.log([0.6, 0.2])
    >>> round(best_share(old, new), 6)
    0.5
    """
    from scipy.optimize import brentq

    top = np.maximum(old, new)
    before, after = np.exp(old - top), np.exp(new - top)

    def slope(share: float) -> float:
        return float(np.mean((after - before) / ((1.0 - share) * before + share * after)))

    with np.errstate(divide="ignore", over="ignore"):
        if slope(0.0) <= 0.0:
            return 0.0
        if slope(1.0) >= 0.0:
            return 1.0
        return float(brentq(slope, 0.0, 1.0, xtol=1e-9))  # type: ignore[arg-type]


def mixed(share: float, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the log of (1 - share) old + share new, given the logarithms of both."""
    with np.errstate(divide="ignore"):
        return np.logaddexp(np.log1p(-share) + old, np.log(share) + new)


def _network(ensemble: Ensemble, number: int, rows: Table, learnt_from: Table, n_chain: int) -> NetworkDraws:
    """Return a network learned from some rows and given others."""
    learn_seed, _ = np.random.SeedSequence(ensemble.seed_of(number)).spawn(2)
    learner, rng = ensemble.learner(number), np.random.default_rng(learn_seed)
    circuit = learner(learnt_from, rng, threading.Event(), **ensemble.options)
    ess = ensemble.priors.get("ess", ESS)
    fixed_ess = None if ess == DRAWN_ESS else ess if isinstance(ess, BDeu) else float(ess)
    found = network_draws(circuit, rows, fixed_ess, ensemble.seed_of(number), n_chain=n_chain, n_draw=1)
    if found is None:
        raise LearnerError(
            f"boosting of {_what_has_no_counts(rows)}", "complete rows of labels",
            "Ask for even weights", command="Ask for --weights even",
        )  # fmt: skip
    settings = {"learner": learner.__name__, "seed": ensemble.seed_of(number), "draws": INDEPENDENT}
    return replace(found, settings=settings)


def _what_has_no_counts(table: Table) -> str:
    """Return in words why a network of a table is not in closed form."""
    for column, observed in zip(table.schema, table.observed, strict=True):
        if column.base != "category":
            return f"column {column.name!r} of numbers"
        if not observed.all():
            return f"column {column.name!r} with missing cells"
    return "a network whose leaves are no counts of labels"


def _mean_log_density(network: NetworkDraws, table: Table) -> np.ndarray:
    """Return the log of the posterior mean of each row's density, float64 (n_row,)."""
    out = np.empty((1, table.n_row))
    log_weight = mean_log_weights(network.network, *network.usual_prior)
    fill_scores(network.network, log_weight[None], rows_of(table), out)
    return out[0]
