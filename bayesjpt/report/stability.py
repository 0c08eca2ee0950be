"""Whether an ensemble's answers are stable: how far another seed would move them, in parts of their own intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.defaults import MAX_RHAT, STABLE_SHARE
from bayesjpt.posterior.answer import PlainAnswers
from bayesjpt.posterior.draws import INDEPENDENT
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.queries.stability import TYPE, answers_of, learners_of, moves_of, usual_move
from bayesjpt.queries.type_shares import UNDETERMINED, TypeShares

if TYPE_CHECKING:
    import xarray as xr

MAX_SEED_MOVE = 0.25
"""Part of its interval by which another seed may move an answer for a fit to count as stable: three quarters of a
standard deviation of a normal posterior."""

KNOWN_MOVE = 10.0
"""Widths from which a move says that nothing is known of it: Student's t of a structure or so, which has no bounds."""

INDEPENDENT_DRAWS = "Draws are independent, from the posterior in closed form: no chain has to converge."

MIN_WARM_UP_T = 3.0
"""Standard errors by which the log likelihood of later kept sweeps lies above or below that of earlier ones from which
the warm-up counts as unfinished: by chance once in a hundred fits of 16 structures."""


@dataclass(frozen=True, eq=False)
class Stability:
    """How far another seed would move the answers of an ensemble of structures.

    Parameters
    ----------
    answers : Dataset, dim ``answer``
        ``mean``, ``error`` (Monte Carlo standard error, from the spread of the structures' means), ``width`` (of the
        credible interval), ``move`` (standard deviation of the difference to a fit with another seed, in widths);
        coordinates ``kind`` and ``name``.
    table : Dataset, dim ``quantity``
        For each kind of answer: ``move`` (by how much 95 % of them move at most, in widths), ``rhat_halves`` (R-hat of
        the first against the second half of each chain's draws, pooled over structures; 95 % of them), ``n_entry``.
    undetermined : tuple of str
        Columns whose type another seed could change.
    n_structure : int
    move : float
        By how much 95 % of all answers move at most when the fit is repeated with another seed, in widths.
    independent : bool
        Whether draws come from posteriors in closed form, so that no chain has to converge.
    warm_up : bool
        Whether sweeps were kept too early: the log likelihood drifts over them, in all structures alike, and so do
        answers. (The likelihood alone drifts for a hundred sweeps while answers, but for shares of types, stand still.)
    """

    answers: xr.Dataset
    table: xr.Dataset
    undetermined: tuple[str, ...]
    n_structure: int
    move: float
    warm_up: bool
    independent: bool = False

    @property
    def converged(self) -> bool:
        """Whether answers move by `MAX_SEED_MOVE` at most, types are determined, the warm-up was finished."""
        return bool(self.move <= MAX_SEED_MOVE) and not self.undetermined and not self.warm_up

    def sentence(self) -> str:
        """Return one sentence for people."""
        if np.isnan(self.move):
            text = f"{self.n_structure} structures; no answer varies."
        elif self.move > KNOWN_MOVE:
            text = f"{self.n_structure} structures; too few carry weight to tell how far another seed moves answers."
            text += " Ask for more structures."
        else:
            moved = (
                f"moves {_percent(STABLE_SHARE)} of the answers by less than {_percent(self.move)} of their intervals"
            )
            text = f"{self.n_structure} structures; another seed {moved}."
            if self.move > MAX_SEED_MOVE:
                text += " Ask for more structures."
        if self.independent:
            text += f" {INDEPENDENT_DRAWS}"
        if self.warm_up:
            text += " The warm-up was too short: ask for a larger tune."
        if self.undetermined:
            text += f" Type not determined: {', '.join(self.undetermined)}."
        return text

    def __repr__(self) -> str:
        lines = [f"{'quantity':<22}{'another seed moves':>20}{'R-hat of halves':>17}{'entries':>9}"]
        unknown = "independent" if self.independent else "too few draws"
        for name in self.table["quantity"].to_numpy():
            row = self.table.sel(quantity=name)
            moved = "" if np.isnan(float(row.move)) else _percent(float(row.move))
            rhat = float(row.rhat_halves)
            rhat_text = unknown if np.isnan(rhat) else f"{rhat:.3f}"
            lines.append(f"{name:<22}{moved:>20}{rhat_text:>17}{int(row.n_entry):>9}")
        return "\n".join([*lines, self.sentence()])


def _percent(share: float) -> str:
    """Return a share in percent, rounded up, "less than" which stays true; words for one that nobody knows."""
    return "not known" if share > KNOWN_MOVE else f"{np.ceil(100.0 * share - 1e-9):.0f} %"


def stability(post: StackedPosterior, shares: TypeShares) -> Stability:
    """Return how far another seed would move the answers of two structures or more.

    Parameters
    ----------
    post : StackedPosterior
    shares : TypeShares
        What `post.types().shares` holds.
    """
    found = answers_of(post, shares.draws["type_share"].to_numpy())
    parts = post.split(found.values)
    moves = moves_of(parts, post.weights, learners_of(post))
    kinds = np.array(found.kind)
    scale = moves.scale
    halves = rhat_of_halves(parts)
    table: dict[str, tuple[float, float, int]] = {}
    for kind in dict.fromkeys(found.kind):
        is_kind = kinds == kind
        move = usual_move(scale[is_kind], moves.n_effective, STABLE_SHARE)
        table[kind] = move, float(np.quantile(halves[is_kind], 0.95, method="higher")), int(is_kind.sum())
    warm_up = False
    if "log_likelihood" in post.sample_stats:
        series = post.split(np.asarray(post.sample_stats["log_likelihood"], float)[..., None])
        rhat = float(rhat_of_halves(series)[0])
        table["log_likelihood"] = float("nan"), rhat, 1
        others = halves[kinds != TYPE]
        drifts = bool(others.size) and float(np.quantile(others, STABLE_SHARE, method="higher")) > MAX_RHAT
        warm_up = drifts and abs(drift(series)) > MIN_WARM_UP_T
    return Stability(
        answers=PlainAnswers(
            {
                name: ("answer", values)
                for name, values in (*zip(("mean", "error", "width"), moves[:3], strict=True), ("move", scale))
            },
            coords={"kind": ("answer", kinds), "name": ("answer", np.array(found.name))},
        ).to_xarray(),
        table=PlainAnswers(
            {
                name: ("quantity", np.array([entry[k] for entry in table.values()]))
                for k, name in enumerate(("move", "rhat_halves", "n_entry"))
            },
            coords={"quantity": list(table)},
        ).to_xarray(),
        undetermined=tuple(column.name for column in shares.columns if column.type == UNDETERMINED),
        n_structure=len(parts),
        move=usual_move(scale, moves.n_effective, STABLE_SHARE) if scale.size else float("nan"),
        warm_up=warm_up,
        independent=post.settings.get("draws") == INDEPENDENT,
    )


def rhat_of_halves(parts: list[np.ndarray]) -> np.ndarray:
    """Return split R-hat within chains, variances pooled over all chains of all structures, float64 (n_answer,).

    Parameters
    ----------
    parts : list of float64 (n_chain, n_draw, n_answer)

    Notes
    -----
    Short chains alone tell little; pooled over 16 they tell whether earlier and later draws differ by more than draws
    do. NaN of fewer than four draws a chain.
    """
    total, within = [], []
    for part in parts:
        n = part.shape[1] // 2
        if n < 2:
            continue
        halves = np.stack([part[:, :n], part[:, -n:]])
        within.append(halves.var(axis=2, ddof=1).mean(axis=0))
        total.append((n - 1.0) / n * within[-1] + halves.mean(axis=2).var(axis=0, ddof=1))
    if not within:
        return np.full(parts[0].shape[2], np.nan)
    pooled_total, pooled_within = (np.concatenate(values).mean(axis=0) for values in (total, within))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt(pooled_total / pooled_within)


def drift(parts: list[np.ndarray]) -> float:
    """Return how far later draws of a single answer lie above earlier ones, in standard errors over all chains."""
    steps = [
        (part[:, -(part.shape[1] // 2) :].mean(axis=1) - part[:, : part.shape[1] // 2].mean(axis=1))[:, 0]
        for part in parts
        if part.shape[1] >= 4
    ]
    together = np.concatenate(steps) if steps else np.empty(0)
    if together.size < 4 or np.ptp(together) == 0.0:
        return 0.0
    return float(together.mean() / (together.std(ddof=1) / np.sqrt(together.size)))
