"""One column as a shallow mixture: which likelihoods describe it, where, with what weight, in which sub-populations."""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.defaults import COMPONENTS, INTERVAL
from bayesjpt.kernels.boxes import make_boxes
from bayesjpt.kernels.components import fill_leaf_modes, fill_leaf_quantiles
from bayesjpt.kernels.mixture import make_components
from bayesjpt.posterior.answer import PlainAnswers, query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.complete import check_count
from bayesjpt.queries.differences import percent, rounded
from bayesjpt.queries.membership import names_of_sub_populations
from bayesjpt.queries.representative import enough_draws_of, representative, whose
from bayesjpt.queries.resolve import position_of, value_name
from bayesjpt.queries.shallow import leaf_masses, shallow
from bayesjpt.table.schema import Column
from bayesjpt.table.table import restored

if TYPE_CHECKING:
    import xarray as xr

_ENDS = np.array([0.5 - 0.5 * INTERVAL, 0.5 + 0.5 * INTERVAL])
_HEADERS = ("weight", "likelihood", "mode", f"{INTERVAL:.0%} of it", "sub-populations")
_N_NAMED = 3
_WIDTH = 40
"""Characters of sub-populations' names in a line: paths of a cutset network are longer, and are counted alone."""


@dataclass(frozen=True)
class Component:
    """One likelihood of a column in one place of the structure.

    Parameters
    ----------
    family, statistical_type : str
        Name of the likelihood, and what cells that it describes are.
    weight : float
        Share of the column that it describes, the mean over draws; all components' add up to 1.
    weight_interval : (float, float)
        Credible interval.
    mode : number, label, boolean or date
        Its most probable value.
    interval : (float, float)
        Quantiles between which its numbers lie; NaN for labels.
    share : float
        Of a label, its probability within the component; NaN for numbers.
    sub_populations : tuple of int
        Numbers of those whose rows it describes, as in `membership`.
    words : tuple of str
        Weight, likelihood, mode, interval and sub-populations as they are printed.
    """

    family: str
    statistical_type: str
    weight: float
    weight_interval: tuple[float, float]
    mode: Any
    interval: tuple[float, float]
    share: float
    sub_populations: tuple[int, ...]
    words: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Components:
    """A column as a shallow mixture, the largest weight first; prints as a table.

    Parameters
    ----------
    column : str
    structure, chain : int or None
        Whose components these are; None where there is one structure, and where all chains have the same.
    parts : tuple of Component
    rest : float
        Weight of all other components together.
    n_rest : int
        How many these are.
    """

    column: str
    structure: int | None
    chain: int | None
    parts: tuple[Component, ...]
    rest: float
    n_rest: int

    @cached_property
    def table(self) -> xr.Dataset:
        """The same as data, dim component: ``family``, ``statistical_type``, ``weight``, ``mode``, ``share`` and ends.

        ``weight_lower`` and ``weight_upper`` are those of its credible interval, ``lower`` and ``upper`` those of the
        component; ``member``, dims (component, sub_population), says whether it describes rows of a sub-population.
        """
        parts = self.parts
        n_group = 1 + max(k for part in parts for k in part.sub_populations)
        mode = np.empty(len(parts), object)
        mode[:] = [part.mode for part in parts]
        columns = {
            name: [getattr(part, name) for part in parts] for name in ("family", "statistical_type", "weight", "share")
        }
        columns |= {
            f"weight_{end}": [part.weight_interval[k] for part in parts] for k, end in enumerate(("lower", "upper"))
        }
        columns |= {end: [part.interval[k] for part in parts] for k, end in enumerate(("lower", "upper"))}
        member = np.array([[k in part.sub_populations for k in range(n_group)] for part in parts])
        data: dict[str, tuple[Any, Any]] = {name: ("component", values) for name, values in columns.items()}
        data |= {"mode": ("component", mode), "member": (("component", "sub_population"), member)}
        coords = {"component": np.arange(len(parts)), "sub_population": np.arange(n_group)}
        return PlainAnswers(data, coords=coords).to_xarray()

    def headline(self) -> str:
        """Return what is shown, and whose it is."""
        return f"{self.column}, components{whose(self.structure, self.chain)}:"

    def rows(self) -> list[tuple[str, ...]]:
        """Return what is printed of each component, and of all others together."""
        lines = [part.words for part in self.parts]
        if self.n_rest:
            others = "another one" if self.n_rest == 1 else f"{self.n_rest} others together"
            lines.append((percent(self.rest), others, "", "", ""))
        return lines

    def __repr__(self) -> str:
        lines = [_HEADERS, *self.rows()]
        widths = [max(len(line[k]) for line in lines) for k in range(len(_HEADERS))]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([self.headline(), *text])

    def _repr_html_(self) -> str:
        def row(cells: tuple[str, ...], tag: str) -> str:
            return f"<tr>{''.join(f"<{tag} style='text-align:left'>{html.escape(c)}</{tag}>" for c in cells)}</tr>"

        body = "".join(row(cells, "td") for cells in self.rows())
        table = f"<table><thead>{row(_HEADERS, 'th')}</thead><tbody>{body}</tbody></table>"
        return f"<p>{html.escape(self.headline())}</p>{table}"


@query_method
def components(post: Posterior, column: str, *, k: int = COMPONENTS) -> Components:
    """Return a column as a shallow mixture: the likelihoods that describe it, the largest weight first.

    The deep mixture that a circuit makes of a column is, exactly, a mixture of the leaves over that column, each with
    the probability that a row's path runs through it. So it can be said which likelihoods a column consists of, where
    each of them lies, and whose rows it describes.

    Leaves of two structures have nothing in common, and what a leaf describes differs between chains of a mixture. So
    shown is the chain whose probabilities are nearest to those of all draws, and which it is; of a tree, all chains.

    Parameters
    ----------
    post : Posterior
    column : str
    k : int
        Components to describe.

    Returns
    -------
    Components

    Raises
    ------
    QueryError
        For a column that the schema does not have, and k below 1.

    Notes
    -----
    Mode and interval of a component are medians over draws weighted by its weight: in draws in which it describes no
    rows its parameters are those of the prior.

    References
    ----------
    Vergari et al. (2019). Automatic Bayesian Density Analysis. AAAI. Question 3, figure 4.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_jpt(table, np.random.default_rng(0), features=["kind"], max_leaves=2)
    >>> found = bj.Posterior.from_circuit(circuit, table.schema).components("kind")
    >>> [(part.family, part.mode, part.sub_populations) for part in found.parts]
    [('categorical', 'a', (0,)), ('categorical', 'b', (1,))]
    """
    check_count(k, "k")
    position = position_of(column, post.schema)
    source = representative(post, [position])
    one, facts = enough_draws_of(post, source), post.schema.columns[position]
    mixture = shallow(one, position)
    order = np.argsort(-mixture.weight.mean(axis=0), kind="stable")[:k]
    weight = mixture.weight[:, order]
    if facts.base == "category":
        mode, share = _labels(one, position, weight, order)
        ends = np.full((2, order.size), np.nan)
    else:
        mode, ends = _numbers(one, position, weight, mixture.leaf, order)
        share = np.full(order.size, np.nan)
    names = names_of_sub_populations(one)
    parts = []
    for j, leaf in enumerate(order.tolist()):
        lo, hi = (float(end) for end in np.quantile(weight[:, j], _ENDS))
        family, groups = mixture.families[leaf], mixture.groups[leaf]
        estimates = float(weight[:, j].mean()), (lo, hi), restored(facts, mode[j : j + 1])[1][0]
        several = one.n_chain * one.n_draw > 1
        words = (
            f"{percent(estimates[0])}{f' ({percent(lo)} to {percent(hi)})' if several else ''}",
            family.name,
            value_name(facts, mode[j]) if facts.base == "category" else _rendered(facts, mode[j], ends[:, j])[0],
            f"{share[j]:.0%}" if facts.base == "category" else " to ".join(_rendered(facts, mode[j], ends[:, j])[1:]),
            _groups_in_words(groups, names),
        )
        interval = float(ends[0, j]), float(ends[1, j])
        kind = facts.type_of_cells(family.statistical_type)
        parts.append(Component(family.name, kind, *estimates, interval, float(share[j]), groups, words))
    rest = float(max(1.0 - weight.mean(axis=0).sum(), 0.0))
    return Components(column, source.structure, source.chain, tuple(parts), rest, mixture.leaf.size - order.size)


def _rendered(column: Column, mode: float, ends: np.ndarray) -> list[str]:
    """Return mode and ends without more digits than they need."""
    return [column.text(x) for x in rounded(column, [mode, *ends.tolist()])]


def _groups_in_words(groups: tuple[int, ...], names: list[str]) -> str:
    if len(groups) == len(names):
        return "all"
    named = [names[k] for k in groups[:_N_NAMED]]
    while len(named) > 1 and sum(map(len, named)) > _WIDTH:
        named.pop()
    if len(named[0]) > _WIDTH:
        return f"{len(groups)} of {len(names)} parts"
    more = len(groups) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _labels(post: Posterior, position: int, weight: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the most probable code of some leaves of a column of labels, and its probability there, (n_leaf,) each."""
    code = np.arange(float(post.schema.columns[position].n_label))
    masses = leaf_masses(post, position, np.column_stack([code, code]))[..., order]
    mean = (masses * weight[:, None]).sum(axis=0) / np.maximum(weight.sum(axis=0), np.finfo(float).tiny)
    return mean.argmax(axis=0).astype(np.float64), mean.max(axis=0)


def _numbers(
    post: Posterior, position: int, weight: np.ndarray, leaf: np.ndarray, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the modes of some leaves of a column of numbers, (n_leaf,), and the ends of their intervals, (2, n_leaf).

    `order` says which of the column's leaves, `leaf`.
    """
    plan, thetas, column = post.plan(), post.flat().theta, post.schema.columns[position]
    modes = np.empty((thetas.shape[0], order.size))
    fill_leaf_modes(plan, leaf[order], thetas, modes)
    boxes = make_boxes(plan, [{}], also=[position])
    column_leaves = boxes.leaf[boxes.leaf_ptr[position] : boxes.leaf_ptr[position + 1]]
    of_column = make_components(plan, boxes, [position], np.array([[column.location, column.scale]]))
    chosen = np.array([int(np.flatnonzero(column_leaves == k)[0]) for k in leaf[order]], np.int64)
    ends = np.empty((thetas.shape[0], 2, order.size))
    fill_leaf_quantiles(plan, of_column, chosen, thetas, _ENDS, ends)
    found = [_weighted_median(values, weight) for values in (modes, ends[:, 0], ends[:, 1])]
    if column.base == "integer":
        found = [np.rint(values) + 0.0 for values in found]
    return found[0], np.array(found[1:])


def _weighted_median(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weighted median over draws of each column of values, (n_draw, n)."""
    order = np.argsort(values, axis=0, kind="stable")
    below = np.cumsum(np.take_along_axis(weight, order, axis=0), axis=0)
    at = (below < 0.5 * below[-1]).sum(axis=0)
    return np.take_along_axis(values, np.take_along_axis(order, at[None], axis=0), axis=0)[0]
