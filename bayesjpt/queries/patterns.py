"""Where sub-populations are densest, as conjunctions of conditions: what many rows have that sets them apart."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.circuit.paths import Interval
from bayesjpt.circuit.sub_populations import sub_populations
from bayesjpt.defaults import EXPLAINED_DIFFERENCE, EXPLAINED_FACTS
from bayesjpt.errors import QueryError
from bayesjpt.kernels.flow import node_probabilities
from bayesjpt.posterior.answer import PlainAnswers, query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.boxes import Box
from bayesjpt.queries.differences import percent, rounded_outwards
from bayesjpt.queries.distribution import quantile
from bayesjpt.queries.grammar import as_event
from bayesjpt.queries.marginals import Masses, summarised
from bayesjpt.queries.paths import condition
from bayesjpt.queries.probability import probability
from bayesjpt.queries.representative import compared, enough_draws_of, mean_probabilities, representative, whose
from bayesjpt.queries.route import below
from bayesjpt.queries.some_draws import some_draws
from bayesjpt.table import cells as cells_of
from bayesjpt.table.schema import Column

if TYPE_CHECKING:
    import xarray as xr

PATTERN_COVERAGE = 0.8
"""Share of a sub-population that lies between the ends of a column in its pattern: as between first and last decile."""

PATTERN_SUPPORT = 0.05
"""Least share of all rows that a pattern holds: that of a leaf of a tree by default (`JPT_MIN_ROWS`)."""


_N_STEP = 20
"""Places where an interval of a given probability may begin."""

_N_DRAW = 16
"""Draws whose quantiles are averaged into the ends of an interval; probabilities are those of all draws."""

_HEADERS = ("of all rows", "of the sub-population", "weight", "pattern")


@dataclass(frozen=True)
class Pattern:
    """A conjunction of conditions, and how it relates to the sub-population whose densest part it is.

    Parameters
    ----------
    event : str
        The conditions, as an event that `probability`, `condition` and the command line read.
    support : Masses
        P(conditions), over all draws of all structures: mean and credible interval.
    probability : Masses
        P(conditions given the sub-population).
    weight : Masses
        P(sub-population), the share of all rows.
    sub_population : int
        Its number, as in `membership`.
    """

    event: str
    support: Masses
    probability: Masses
    weight: Masses
    sub_population: int

    def words(self) -> tuple[str, ...]:
        """Return support, probability, weight and conditions as they are printed."""
        support, within, weight = (_in_words(numbers) for numbers in (self.support, self.probability, self.weight))
        return support, within, weight, self.event


@dataclass(frozen=True, eq=False)
class Patterns:
    """Patterns of a table, the largest support first; prints as a table.

    Parameters
    ----------
    parts : tuple of Pattern
    structure, chain : int or None
        Whose sub-populations these are; None where there is one structure, and where all chains have the same.
    min_support : float
        What was asked for.
    largest_support : float
        The largest mean support of all that were looked at; 0 where no column sets a sub-population apart.
    """

    parts: tuple[Pattern, ...]
    structure: int | None
    chain: int | None
    min_support: float
    largest_support: float

    @cached_property
    def table(self) -> xr.Dataset:
        """The same as data, dim pattern: ``event``, ``sub_population``, and three probabilities with their ends.

        ``support``, ``probability`` and ``weight``, and of each ``_lower`` and ``_upper``.
        """
        parts = self.parts
        data = {"event": ("pattern", np.array([part.event for part in parts], object))}
        data |= {"sub_population": ("pattern", np.array([part.sub_population for part in parts], np.int64))}
        for name in ("support", "probability", "weight"):
            numbers = [getattr(part, name) for part in parts]
            for end, key in (("", "mean"), ("_lower", "lo"), ("_upper", "hi")):
                data[f"{name}{end}"] = "pattern", np.array([getattr(each, key)[0] for each in numbers], np.float64)
        return PlainAnswers(data, coords={"pattern": np.arange(len(parts))}).to_xarray()

    def headline(self) -> str:
        """Return how many there are, and whose sub-populations they describe."""
        n = len(self.parts)
        if not n:
            return f"No pattern, of sub-populations{whose(self.structure, self.chain)}: {self._why_none()}"
        return f"{n} pattern{'s' if n != 1 else ''}, of sub-populations{whose(self.structure, self.chain)}:"

    def _why_none(self) -> str:
        if not self.largest_support:
            return "no column sets one of them apart"
        largest = percent(self.largest_support)
        return f"the largest holds {largest} of the rows, less than {percent(self.min_support)} (see min_support=)"

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        if not self.parts:
            return self.headline()
        lines = [_HEADERS, *(part.words() for part in self.parts)]
        widths = [max(len(line[k]) for line in lines) for k in range(len(_HEADERS))]
        text = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
        ]
        return "\n".join([self.headline(), *text])

    def _repr_html_(self) -> str:
        def row(cells: tuple[str, ...], tag: str) -> str:
            return f"<tr>{''.join(f"<{tag} style='text-align:left'>{html.escape(c)}</{tag}>" for c in cells)}</tr>"

        if not self.parts:
            return f"<p>{html.escape(self.headline())}</p>"
        body = "".join(row(part.words(), "td") for part in self.parts)
        table = f"<table><thead>{row(_HEADERS, 'th')}</thead><tbody>{body}</tbody></table>"
        return f"<p>{html.escape(self.headline())}</p>{table}"


@query_method
def patterns(post: Posterior, *, min_support: float = PATTERN_SUPPORT, coverage: float = PATTERN_COVERAGE) -> Patterns:
    """Return where sub-populations are densest: conjunctions of conditions, with their probabilities.

    For each sub-population, the conditions are on the columns that set it most apart from the whole table: of numbers
    the shortest interval, of labels the fewest labels, that hold `coverage` of its rows. Sub-populations are those of
    `membership`, of one chain of one structure (`components` says which and why).

    Parameters
    ----------
    post : Posterior
    min_support : float
        Least posterior mean of P(conditions), in [0, 1).
    coverage : float
        Share of the sub-population within the condition on each column, in (0, 1).

    Returns
    -------
    Patterns
        Each ``.event`` is a text that queries read. None where no column sets any sub-population apart.

    Raises
    ------
    QueryError
        For shares outside of their ranges.

    Notes
    -----
    Conditions end at round numbers; ``support`` and ``probability`` are those of the conditions as they are written,
    exact under every draw. Support is that of all draws of all structures, in which the sub-population may not exist.

    References
    ----------
    Vergari et al. (2019). Automatic Bayesian Density Analysis. AAAI. Question 4: mining patterns.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame, kinds={"size": "real"})
    >>> circuit = bj.learn_jpt(table, np.random.default_rng(0), max_leaves=2)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> sorted(part.event.split(" and ")[0] for part in post.patterns().parts)
    ["kind = 'a'", "kind = 'b'"]
    """
    if not isinstance(min_support, Real) or isinstance(min_support, bool) or not 0.0 <= min_support < 1.0:
        raise QueryError(f"min_support={min_support!r}", "a share from 0 to below 1")
    if not isinstance(coverage, Real) or isinstance(coverage, bool) or not 0.0 < coverage < 1.0:
        raise QueryError(f"coverage={coverage!r}", "a share strictly between 0 and 1")
    source = representative(post, range(len(post.schema)))
    one = source.post
    nodes = sub_populations(one.circuit, len(one.schema))
    many = enough_draws_of(post, source)
    weight = node_probabilities(many.plan(), many.flat().log_weight, nodes)
    boxes = compared(one, range(len(one.schema)))
    whole = mean_probabilities(one, boxes)
    found: dict[str, Pattern | None] = {}
    largest = 0.0
    for number, node in enumerate(nodes):
        group = below(one, node, range(len(one.schema)), {})
        assert group is not None
        apart = _columns_apart(group, boxes, np.abs(mean_probabilities(group, boxes) - whole))
        event = " and ".join(filter(None, _densest(group, apart, coverage)))
        # two sub-populations may have one densest part
        if not event or event in found or weight[:, number].mean() == 0.0:
            continue
        asked = as_event(event)
        support = summarised(probability(post, asked).values.reshape(-1, 1))
        found[event], largest = None, max(largest, float(support.mean[0]))
        if support.mean[0] >= min_support:
            # of the same circuit, so nodes have the same numbers; the event is about these columns alone
            group = below(many, node, apart, {})
            assert group is not None
            within = summarised(probability(group, asked).values.reshape(-1, 1))
            found[event] = Pattern(event, support, within, summarised(weight[:, [number]]), number)
    parts = sorted((part for part in found.values() if part is not None), key=lambda part: -part.support.mean[0])
    return Patterns(tuple(parts), source.structure, source.chain, float(min_support), largest)


def _in_words(numbers: Masses) -> str:
    mean, lo, hi = (percent(float(values[0])) for values in (numbers.mean, numbers.lo, numbers.hi))
    return mean if lo == hi else f"{mean} ({lo} to {hi})"


def _columns_apart(group: Posterior, boxes: Sequence[Box], gap: np.ndarray) -> list[int]:
    """Return the columns that set a sub-population apart, in the order of the schema; none of those beside it.

    `gap` is the size of its difference from the whole table in the probability of each box, as in `explain`: the
    largest of a column of numbers, half the sum of a column of labels.
    """
    parts: dict[int, list[float]] = {}
    for box, column_gap in zip(boxes, gap.tolist(), strict=True):
        parts.setdefault(next(iter(box.columns)), []).append(column_gap)
    group_columns = set(group.circuit.leaf_var.tolist())
    labels = {c for box in boxes for c, ends in box.intervals.items() if ends[0, 0] == ends[0, 1]}
    size = {c: 0.5 * sum(gaps) if c in labels else max(gaps) for c, gaps in parts.items() if c in group_columns}
    first = sorted(size, key=lambda c: -size[c])[:EXPLAINED_FACTS]
    return sorted(c for c in first if size[c] >= EXPLAINED_DIFFERENCE)


def _densest(group: Posterior, positions: Sequence[int], coverage: float) -> list[str]:
    """Return the shortest interval or the fewest labels of each column that hold `coverage`, as conditions."""
    columns = [group.schema.columns[position] for position in positions]
    numbers = [column.name for column in columns if column.base != "category"]
    begin = (np.arange(_N_STEP) + 0.5) / _N_STEP * (1.0 - coverage)
    levels = np.concatenate([begin, begin + coverage])
    few = some_draws(group, _N_DRAW)[1]
    ends = dict(zip(numbers, np.moveaxis(quantile(few, levels, numbers).values, -1, 0), strict=True)) if numbers else {}
    return [
        _shortest(column, ends[column.name]) if column.name in ends else _fewest(group, position, coverage)
        for position, column in zip(positions, columns, strict=True)
    ]


def _fewest(group: Posterior, position: int, coverage: float) -> str:
    """Return the fewest labels of at least some probability as a condition; nothing where it is all of them."""
    column = group.schema.columns[position]
    # "other", where the list of labels is open, is no label to be looked for
    share = mean_probabilities(group, compared(group, [position]))[: len(column.labels)]
    order = np.argsort(-share, kind="stable")
    n = min(int((np.cumsum(share[order]) < coverage).sum()) + 1, share.size)
    return condition(column, tuple(sorted(order[:n].tolist()))) if n < share.size else ""


def _shortest(column: Column, found: np.ndarray) -> str:
    """Return the shortest of some intervals as a condition; nothing where it ends with the numbers there are.

    `found`, float64 (n_chain, n_draw, 2 n_interval), holds the lower ends of all and then the upper ones.
    """
    # where numbers span all decades, a tail may go beyond them
    ended = np.isfinite(found).all(axis=(0, 1)).reshape(2, -1).all(axis=0)
    if not ended.any():
        return ""
    lo, hi = found[..., np.tile(ended, 2)].mean(axis=(0, 1)).reshape(2, -1)
    best = int(np.argmin(hi - lo))
    ends = rounded_outwards(column, float(lo[best]), float(hi[best]))
    # a bound at the end of the support says nothing; without it the condition also holds what a normal gives beyond
    first, last = column.support
    if column.dtype == "datetime":  # a day that no calendar has cannot be written
        first, last = max(first, cells_of.LEAST_DAY), min(last, cells_of.LARGEST_DAY)
    ends = ends[0] if ends[0] > first else -np.inf, ends[1] if ends[1] < last else np.inf
    if np.isinf(ends).all() or ends[0] > last or ends[1] < first:
        return ""
    if ends[0] == ends[1] and column.base == "real" and ends[0] not in column.atoms:
        ends = ends[0] - 0.5 * column.resolution, ends[1] + 0.5 * column.resolution
    return condition(column, Interval(*ends))
