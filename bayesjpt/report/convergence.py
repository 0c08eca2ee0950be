"""Whether chains of one structure agree, judged on quantities that do not care how components are labelled.

Component parameters of a mixture have meaningless R-hat: two chains that swap two components agree about the density
and disagree about every parameter. So the battery follows total log-likelihood, the log density of fixed rows,
marginal CDFs at quartiles, the number of active edges, and the shares of types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.defaults import MAX_RHAT
from bayesjpt.errors import QueryError
from bayesjpt.posterior.answer import PlainAnswers, query_method
from bayesjpt.posterior.draws import INDEPENDENT, Posterior
from bayesjpt.posterior.invariants import marginal_cdf
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.queries.density import log_density
from bayesjpt.queries.type_shares import UNDETERMINED, TypeShares, type_shares
from bayesjpt.report.stability import INDEPENDENT_DRAWS, Stability, stability

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False)
class Convergence:
    """R-hat and effective sample size of the battery.

    Parameters
    ----------
    table : Dataset, dim ``quantity``
        ``rhat``, ``rhat_q95`` (worst and 95 % quantile over a quantity's entries), ``ess`` (smallest), ``n_entry``.
    undetermined : tuple of str
        Columns whose type is not determined because chains disagree.
    nested : bool
        Whether R-hat is that of superchains; ``ess`` is NaN then.
    independent : bool
        Whether draws come from the posterior in closed form, so that no chain has to converge.
    """

    table: xr.Dataset
    undetermined: tuple[str, ...]
    nested: bool = False
    independent: bool = False

    @property
    def converged(self) -> bool:
        """Whether all types are determined and 95 % of each quantity's entries have R-hat up to `defaults.MAX_RHAT`.

        Of independent draws types alone count.
        """
        if self.independent:
            return not self.undetermined
        values = self.table["rhat_q95"].to_numpy()
        known = values[~np.isnan(values)]  # infinite where chains stand still at different points
        return bool(known.size and (known <= MAX_RHAT).all() and not self.undetermined)

    def sentence(self) -> str:
        """Return one sentence for people."""
        rhat = self.table["rhat_q95"]
        if self.independent:
            return INDEPENDENT_DRAWS + self._types()
        if np.isnan(rhat.to_numpy()).all():
            return "Convergence cannot be judged: at least two chains of four draws are needed."
        worst = str(rhat["quantity"].to_numpy()[int(np.nanargmax(rhat.to_numpy()))])
        chains, rhat_name = ("Superchains", "nested R-hat") if self.nested else ("Chains", "R-hat")
        verdict = f"{chains} agree" if self.converged else f"{chains} do not agree yet"
        text = f"{verdict}: {rhat_name} up to {float(rhat.max()):.2f} (95 % of entries; worst: {worst})."
        return text + self._types()

    def _types(self) -> str:
        return f" Type not determined: {', '.join(self.undetermined)}." if self.undetermined else ""

    def __repr__(self) -> str:
        lines = [f"{'quantity':<22}{'R-hat worst':>12}{'R-hat 95 %':>12}{'ESS least':>11}{'entries':>9}"]
        for name in self.table["quantity"].to_numpy():
            row = self.table.sel(quantity=name)
            if int(row.n_entry) == 0:
                lines.append(f"{name:<22}{'does not vary':>25}")
                continue
            lines.append(
                f"{name:<22}{float(row.rhat):>12.3f}{float(row.rhat_q95):>12.3f}{float(row.ess):>11.0f}"
                f"{int(row.n_entry):>9}"
            )
        return "\n".join([*lines, self.sentence()])


@query_method
def convergence(
    post: Posterior, rows=None, *, shares: TypeShares | None = None, superchains: Sequence[int] | None = None
) -> Convergence | Stability:
    """Return how far answers can be relied on: another seed's effect on an ensemble, R-hat of one structure's chains.

    Of several structures, how far a fit with another seed would move the answers that are asked of any table, in parts
    of their own intervals (`Stability`). Of one structure, whether its chains agree about quantities that do not care
    how components are labelled.

    Parameters
    ----------
    post : Posterior
    rows : Table or data frame, optional
        Of one structure: rows whose log density is followed, best ones that were not fitted; the fit's reference rows
        unless given.
    shares : TypeShares, optional
        What `post.types().shares` holds, if it is at hand.
    superchains : sequence of int (n_chain,), optional
        Of one structure: the group of each chain, for nested R-hat. Chains of a group begin at one point, groups at
        different ones: where starts are mixed within groups, groups agree by construction. Of a fit with
        ``n_structures=1`` even chains begin at the learner's estimate and odd ones at random allocations:
        ``superchains=[0, 1, 0, 1]``.

    Returns
    -------
    Stability
        Of several structures.
    Convergence
        Of one.

    Raises
    ------
    QueryError
        For superchains of an ensemble, of other numbers than the chains, fewer than two, or with mixed starts.

    Notes
    -----
    Stability: with m_k the mean of an answer in structure k of K, its Monte Carlo error is sd(m_k) / sqrt(K), and its
    difference to an independent fit has sqrt(2) times that. The sentence gives the x within which at least 95 % of
    the answers move on average over seeds, from Student's t with K - 1 degrees of freedom. Weights by stacking are
    taken as given.

    Nested R-hat of a quantity is the root of 1 + B / W, with B the variance of the superchains' means and W the mean
    over superchains of the variance between their chains and within them. It suits many short chains.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021). Rank-normalization, folding, and localization: an improved
    R-hat. Bayesian Analysis 16(2).
    Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari, Gelman (2024). Nested R-hat: assessing the convergence of
    Markov chain Monte Carlo when running many short chains. Bayesian Analysis 19(4).

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"grade": ["a", "b", "c"] * 20}))
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1))
    >>> bj.Posterior.from_circuit(circuit, table.schema).convergence().sentence()
    'Convergence cannot be judged: at least two chains of four draws are needed.'
    >>> post = bj.fit(table, n_structures=4, seed=1, cores=1, progress=False)
    >>> post.convergence().n_structure
    4
    """
    shares = type_shares(post) if shares is None else shares
    structures = post.by_structure()
    if len(structures) > 1:
        assert isinstance(post, StackedPosterior)
        if superchains is not None:
            raise QueryError(
                f"superchains of {len(structures)} structures", "one structure", "Take one of post.by_structure()"
            )
        return stability(post, shares)
    one = post.by_structure()[0]
    quantities = _battery(one, rows, shares.draws["type_share"].to_numpy())
    if superchains is None:
        summary = {name: _summary(values) for name, values in quantities.items()}
    else:
        groups = _groups(one, superchains)
        summary = {name: _nested_summary(values, groups) for name, values in quantities.items()}
    table = PlainAnswers(
        {
            key: ("quantity", np.array([entry[position] for entry in summary.values()]))
            for position, key in enumerate(("rhat", "rhat_q95", "ess", "n_entry"))
        },
        coords={"quantity": list(summary)},
    ).to_xarray()
    undetermined = tuple(column.name for column in shares.columns if column.type == UNDETERMINED)
    independent = one.settings.get("draws") == INDEPENDENT
    return Convergence(table, undetermined, superchains is not None, independent)


def _groups(post: Posterior, superchains: Sequence[int]) -> np.ndarray:
    """Return the group of each chain, int64 (n_chain,)."""
    groups = np.asarray(superchains)
    if groups.shape != (post.n_chain,) or groups.dtype.kind not in "iu":
        raise QueryError(f"superchains = {superchains!r}", f"a whole number for each of {post.n_chain} chains")
    if np.unique(groups).size < 2:
        raise QueryError("one superchain", "two at least")
    parity = np.arange(post.n_chain) % 2
    ours = "seed" in post.settings  # of a fit, whose even chains begin at the learner's estimate
    mixed = [group for group in np.unique(groups).tolist() if ours and np.ptp(parity[groups == group])]
    if mixed:
        raise QueryError(
            f"superchain {mixed[0]} with chains from the learner's estimate and from random allocations",
            "one kind of start in each",
            "Even chains of a fit begin at the estimate, odd ones at random allocations.",
        )
    return groups


def _battery(post: Posterior, rows, shares: np.ndarray) -> dict[str, np.ndarray]:
    """Return what is followed of one structure whose type shares are given, float64 (n_chain, n_draw, n_entry) each.

    Entries that do not vary are left out.
    """
    rows = post.reference if rows is None else rows
    quantities: dict[str, np.ndarray] = {}
    if "log_likelihood" in post.sample_stats:
        quantities["log_likelihood"] = np.asarray(post.sample_stats["log_likelihood"], float)[..., None]
    if rows is not None:
        density = log_density(post, rows)
        quantities["log_density_of_rows"] = density.values
        quantities["marginal_cdf"] = marginal_cdf(post)
    if "n_active_edges" in post.sample_stats:
        quantities["n_active_edges"] = np.asarray(post.sample_stats["n_active_edges"], float)[..., None]
    quantities["type_share"] = shares.reshape(*shares.shape[:2], -1)
    return {name: _varying(values) for name, values in quantities.items() if values.shape[-1]}


def _varying(values: np.ndarray) -> np.ndarray:
    varies = np.ptp(values, axis=(0, 1)) > 1e-9 * (1.0 + np.abs(values).max(axis=(0, 1)))
    return values[..., varies]


def _summary(values: np.ndarray) -> tuple[float, float, float, int]:
    """Return (worst R-hat, its 95 % quantile, smallest bulk ESS, entries) of a (chain, draw, entry) array."""
    from arviz_stats.base.array import array_stats

    n = int(values.shape[-1])
    if n == 0 or values.shape[0] < 2 or values.shape[1] < 4:
        return float("nan"), float("nan"), float("nan"), n
    with np.errstate(invalid="ignore", divide="ignore"):
        rhat = np.atleast_1d(array_stats.rhat(values, chain_axis=0, draw_axis=1))
        ess = np.atleast_1d(array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk"))
    rhat = np.sort(rhat[~np.isnan(rhat)])
    if not rhat.size:
        return float("nan"), float("nan"), float("nan"), n
    high = int(np.ceil(0.95 * (rhat.size - 1)))  # no interpolation: between infinite entries it would give NaN
    return float(rhat[-1]), float(rhat[high]), float(np.nanmin(ess)), n


def nested_rhat(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return nested R-hat, float64 (n_entry,).

    Parameters
    ----------
    values : float64 (n_chain, n_draw, n_entry)
    groups : int64 (n_chain,)
        The superchain of each chain.

    References
    ----------
    Margossian et al. (2024), equations 6 to 9.
    """
    parts = [values[groups == group] for group in np.unique(groups)]
    between = np.array([part.mean(axis=(0, 1)) for part in parts]).var(axis=0, ddof=1)
    none = np.zeros(values.shape[2])
    inside = np.mean(
        [
            (part.mean(axis=1).var(axis=0, ddof=1) if part.shape[0] > 1 else none)
            + (part.var(axis=1, ddof=1).mean(axis=0) if part.shape[1] > 1 else none)
            for part in parts
        ],
        axis=0,
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(1.0 + between / inside)


def _nested_summary(values: np.ndarray, groups: np.ndarray) -> tuple[float, float, float, int]:
    """Return `_summary` with nested R-hat, and no effective sample size."""
    rhat = np.sort(nested_rhat(values, groups))
    if not rhat.size:
        return float("nan"), float("nan"), float("nan"), 0
    return float(rhat[-1]), float(rhat[int(np.ceil(0.95 * (rhat.size - 1)))]), float("nan"), int(rhat.size)
