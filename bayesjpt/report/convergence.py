"""Whether chains agree, judged on quantities that do not care how components are labelled.

Component parameters of a mixture have meaningless R-hat: two chains that swap two components agree about the density
and disagree about every parameter. So the battery follows total log-likelihood, the log density of fixed rows,
marginal CDFs at quartiles, the number of active edges, and the shares of types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.defaults import MAX_RHAT
from bayesjpt.posterior.answer import PlainAnswers, verb
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.invariants import marginal_cdf
from bayesjpt.queries.density import log_density
from bayesjpt.queries.types import UNDETERMINED, Types, types

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
    n_structure : int
        Structures, within each of which chains are compared.
    """

    table: xr.Dataset
    undetermined: tuple[str, ...]
    n_structure: int = 1

    @property
    def converged(self) -> bool:
        """Whether all types are determined and 95 % of each quantity's entries have R-hat up to `defaults.MAX_RHAT`."""
        values = self.table["rhat_q95"].to_numpy()
        known = values[~np.isnan(values)]  # infinite where chains stand still at different points
        return bool(known.size and (known <= MAX_RHAT).all() and not self.undetermined)

    def sentence(self) -> str:
        """Return one sentence for people."""
        rhat = self.table["rhat_q95"]
        if np.isnan(rhat.to_numpy()).all():
            return "Convergence cannot be judged: at least two chains of four draws are needed."
        worst = str(rhat["quantity"].to_numpy()[int(np.nanargmax(rhat.to_numpy()))])
        verdict = "Chains agree" if self.converged else "Chains do not agree yet"
        verdict += f" within each of {self.n_structure} structures" if self.n_structure > 1 else ""
        text = f"{verdict}: R-hat up to {float(rhat.max()):.2f} (95 % of entries; worst: {worst})."
        if self.undetermined:
            text += f" Type not determined: {', '.join(self.undetermined)}."
        return text

    def __repr__(self) -> str:
        lines = [f"{'quantity':<22}{'R-hat worst':>12}{'R-hat 95 %':>12}{'ESS least':>11}{'entries':>9}"]
        for name in self.table["quantity"].to_numpy():
            row = self.table.sel(quantity=name)
            lines.append(
                f"{name:<22}{float(row.rhat):>12.3f}{float(row.rhat_q95):>12.3f}{float(row.ess):>11.0f}"
                f"{int(row.n_entry):>9}"
            )
        return "\n".join([*lines, self.sentence()])


@verb
def convergence(post: Posterior, rows=None, *, column_types: Types | None = None) -> Convergence:
    """Return the label-invariant convergence battery.

    Parameters
    ----------
    post : Posterior
    rows : Table or data frame, optional
        Rows whose log density is followed, best ones that were not fitted; the fit's reference rows unless given.
    column_types : Types, optional
        What `post.types()` returned, if it is at hand.

    Returns
    -------
    Convergence

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021). Rank-normalization, folding, and localization: an improved
    R-hat. Bayesian Analysis 16(2).

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"grade": ["a", "b", "c"] * 20}))
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1))
    >>> bj.Posterior.from_circuit(circuit, table.schema).convergence().sentence()
    'Convergence cannot be judged: at least two chains of four draws are needed.'
    """
    column_types = types(post, probabilities=False) if column_types is None else column_types
    shares = post.split(column_types.draws["type_share"].to_numpy())
    batteries = [_battery(own, rows, share) for own, share in zip(post.by_structure(), shares, strict=True)]
    names = dict.fromkeys(name for battery in batteries for name in battery)
    summary = {name: _worst([battery[name] for battery in batteries if name in battery]) for name in names}
    table = PlainAnswers(
        {
            key: ("quantity", np.array([entry[position] for entry in summary.values()]))
            for position, key in enumerate(("rhat", "rhat_q95", "ess", "n_entry"))
        },
        coords={"quantity": list(summary)},
    ).to_xarray()
    undetermined = tuple(column.name for column in column_types.columns if column.type == UNDETERMINED)
    return Convergence(table, undetermined, len(batteries))


def _worst(found: list[tuple[float, float, float, int]]) -> tuple[float, float, float, int]:
    """Return what is said of several structures: the largest R-hat, the least effective sample size, all entries."""
    rhat, rhat_q95, ess, n_entry = np.array(found).T
    return float(np.fmax.reduce(rhat)), float(np.fmax.reduce(rhat_q95)), float(np.fmin.reduce(ess)), int(n_entry.sum())


def _battery(post: Posterior, rows, shares: np.ndarray) -> dict[str, tuple[float, float, float, int]]:
    """Return `_summary` of each quantity, of one structure whose type shares are given."""
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
    return {name: _summary(values) for name, values in quantities.items() if values.shape[-1]}


def _summary(values: np.ndarray) -> tuple[float, float, float, int]:
    """Return (worst R-hat, its 95 % quantile, smallest bulk ESS, entries) of a (chain, draw, entry) array.

    Entries that do not vary are left out.
    """
    from arviz_stats.base.array import array_stats

    varies = np.ptp(values, axis=(0, 1)) > 1e-9 * (1.0 + np.abs(values).max(axis=(0, 1)))
    values = values[..., varies]
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
