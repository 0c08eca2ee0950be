"""Why an answer is what it is: the sub-populations that carry it, and what sets them apart."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.scope import scopes
from bayesjpt.defaults import INTERVAL
from bayesjpt.errors import QueryError
from bayesjpt.posterior.answer import PlainAnswer, PlainAnswers, query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.boxes import boxes
from bayesjpt.queries.complete import check_count, one_draw
from bayesjpt.queries.density import log_density
from bayesjpt.queries.differences import facts_of, features_of
from bayesjpt.queries.event import Event, rendered_name
from bayesjpt.queries.evidence import Evidence, as_evidence
from bayesjpt.queries.explain_tree import Leaves, is_tree, leaves_of_answer
from bayesjpt.queries.grammar import as_event
from bayesjpt.queries.marginals import summarised
from bayesjpt.queries.paths import conditions
from bayesjpt.queries.probability import log_probability, probability
from bayesjpt.queries.resolve import value_name
from bayesjpt.queries.some_draws import enough_draws
from bayesjpt.table.schema import Schema

if TYPE_CHECKING:
    import xarray as xr


_N_PARTS = 5
"""Sub-populations that are told apart: as many lines as are read at a glance."""


@dataclass(frozen=True)
class SubPopulation:
    """A part of all rows, and what it has to do with an answer.

    Parameters
    ----------
    share : float
        Of the answer that comes from it: P(part given event and evidence). All parts' add up to 1.
    weight : float
        Share of all rows.
    weight_given : float
        P(part given the evidence); the weight where there is none.
    probability : float
        P(event given the part and the evidence). Weighted by `weight_given` they add up to the answer.
    facts : tuple of str
        What sets it apart from the whole table, the most different column first, but for the columns that event and
        evidence are about; none where there are conditions.
    conditions : str
        What its rows have in common, as an event, where a tree tells sub-populations apart; else empty.
    intervals : mapping from str to (float, float)
        Credible intervals of the four numbers, which are posterior means then; empty where the part is one draw's.
    """

    share: float
    weight: float
    weight_given: float
    probability: float
    facts: tuple[str, ...] = ()
    conditions: str = ""
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def name(self) -> str:
        """Return which rows these are, in words."""
        return self.conditions or "; ".join(self.facts) or "like the whole table"

    def shown(self) -> tuple[str, str, str, str]:
        """Return share of the answer, share of the rows given, probability of the event there, and name."""
        numbers = {"share": _percent, "weight_given": _percent, "probability": "{:.2g}".format}
        cells = []
        for number, write in numbers.items():
            ends = [write(end) for end in self.intervals.get(number, ())]
            cells.append(" ".join([write(getattr(self, number)), *([f"({' to '.join(ends)})"] if ends else [])]))
        return cells[0], cells[1], cells[2], self.name()


@dataclass(frozen=True, eq=False)
class Explanation:
    """The answer to a question, and the sub-populations that carry it, the largest share first.

    Parameters
    ----------
    event, given : str
        The question; `given` is empty where nothing is.
    chain, draw : int or None
        The draw that is explained, and whose sub-populations these are; None where all draws have the same.
    structure : int or None
        Of several structures, the one that is explained.
    parts : tuple of SubPopulation
    n_shown : int
        Parts that are printed.
    plain_answer, plain_table
        What `answer` and `table` are made of.
    """

    event: str
    given: str
    chain: int | None
    draw: int | None
    structure: int | None
    parts: tuple[SubPopulation, ...]
    n_shown: int
    plain_answer: PlainAnswer
    plain_table: PlainAnswers

    @cached_property
    def answer(self) -> xr.DataArray:
        """The answer under every draw, dims (chain, draw)."""
        return self.plain_answer.to_xarray()

    @cached_property
    def table(self) -> xr.Dataset:
        """The same as data.

        Where all draws have the same sub-populations: ``share``, ``weight``, ``weight_given`` and ``probability`` by
        chain, draw and part, and ``conditions`` by part.
        Else, by part: ``share``, ``weight``, ``weight_given``, ``probability``. By part and feature, with part -1 for
        the whole table: ``difference`` from the whole table (the largest difference of cumulative probabilities at its
        deciles, or of the probabilities of sets of labels), ``lower`` and ``upper`` (tenth and ninth decile; NaN for
        labels), ``label`` (the one that is more frequent here by most; empty for numbers) its probability here and in
        the whole table, ``label_probability`` and ``label_whole``.
        """
        return self.plain_table.to_xarray()

    def headline(self) -> str:
        """Return the answer in one line."""
        of = f"{self.event} | {self.given}" if self.given else self.event
        values = self.plain_answer.values
        lo, hi = np.quantile(values, [0.5 - 0.5 * INTERVAL, 0.5 + 0.5 * INTERVAL])
        mean = float(values.mean())
        return f"P({of}) = {mean:.3g}, {INTERVAL:g} interval {lo:.3g} to {hi:.3g}; {self.whose()}:"

    def whose(self) -> str:
        """Return whose sub-populations these are."""
        of, which = "", ""
        if self.structure is not None:
            structures = self.plain_answer.coords["structure"][1]
            mean = float(self.plain_answer.values[:, structures == self.structure].mean())
            which = f"structure {self.structure} of {structures.max() + 1}"
            of = f" of {which}, whose mean of {mean:.3g} is nearest to that of all"
        if self.chain is None:
            return f"leaves of the tree{of}"
        explained = float(self.plain_answer.values[self.chain, self.draw])
        where = f"chain {self.chain}, draw {self.draw}" + (f" ({which}, the nearest to the mean)" if which else "")
        return f"sub-populations of {where}, whose answer is {explained:.3g}"

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return what is shown of each part: its share of the answer and of the rows given, P(event) there, name."""
        lines = [part.shown() for part in self.parts[: self.n_shown]]
        rest = self.parts[self.n_shown :]
        if rest:
            share, given = sum(p.share for p in rest), sum(p.weight_given for p in rest)
            within = sum(p.weight_given * p.probability for p in rest) / given if given else 0.0
            others = "another one" if len(rest) == 1 else f"{len(rest)} others together"
            lines.append((_percent(share), _percent(given), f"{within:.2g}", others))
        return lines

    def __repr__(self) -> str:
        lines = [_HEADERS, *self.rows()]
        widths = [max(len(line[k]) for line in lines) for k in range(3)]
        text = [
            "  ".join([*(cell.rjust(width) for cell, width in zip(line, widths, strict=False)), line[3]])
            for line in lines
        ]
        return "\n".join([self.headline(), *text])

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align:left'>{header}</th>" for header in _HEADERS)
        body = "".join(
            f"<tr>{''.join(f"<td style='text-align:left'>{html.escape(cell)}</td>" for cell in row)}</tr>"
            for row in self.rows()
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<p>{html.escape(self.headline())}</p>{table}"


def _percent(share: float) -> str:
    return "<1%" if 0.0 < share < 0.01 else f"{share:.0%}"


_HEADERS = ("of the answer", "of the rows", "P(event) there", "sub-population")


@query_method
def explain(post: Posterior, event: Event | str, given=None, *, k: int = _N_PARTS) -> Explanation:
    """Return which sub-populations carry the probability of an event, and what sets them apart.

    Sub-populations are choices at the sums near the root of the circuit: the part that carries most of the answer is
    split until there are `k` or none can be split further. What component 3 is differs from draw to draw, so they are
    those of one draw: the one whose answer is the median. The answer itself is that of all draws. Of several
    structures one is explained, whose mean answer is nearest to that of all: `Explanation.structure` says which.

    A tree (`learn_jpt`) says itself which rows belong together, and says the same in every draw: its sub-populations
    are its leaves, called by the conditions of their paths, with posterior means and credible intervals. Under each
    draw their shares add up, and so do the products of `weight_given` and `probability`. Where the posterior of the
    explained structure is in closed form and few draws of it are kept, 200 are drawn for this.

    Parameters
    ----------
    post : Posterior
    event : Event or str
    given : optional
        An event, or a mapping from columns to values, as in `probability`.
    k : int
        Sub-populations to tell apart at least, where the circuit has them, and to print. Of a tree all are told apart.

    Returns
    -------
    Explanation
        Prints as a table; "of the rows" is of those given. "alcohol mostly 11.2 to 13.1" are the tenth and ninth decile
        of the sub-population itself, whatever was asked.

    Raises
    ------
    QueryError
        As `probability`; for rows as evidence; for an event of probability zero.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> frame = pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)})
    >>> table = bj.as_table(frame)
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> found = bj.Posterior.from_circuit(circuit, table.schema).explain("size > 8")
    >>> found.parts[0].facts[0]
    "kind = 'b' 97% (whole table 50%)"
    >>> round(sum(part.weight_given * part.probability for part in found.parts) / found.answer.item(), 6)
    1.0
    """
    check_count(k, "k")
    event = as_event(event, post.schema)
    evidence = as_evidence(given, post.schema)
    if evidence.rows is not None and not evidence.one_row:
        raise QueryError("rows as evidence", "an event, or a mapping from columns to values")
    answer = probability(post, event, given)
    text = repr(event), _text(given, post.schema, evidence)
    structure = _nearest(post, answer)
    chosen = post.by_structure()[structure or 0]
    of_structure = post.split(answer.values)[structure or 0]
    flat = of_structure.ravel()
    number = int(np.argsort(flat, kind="stable")[flat.size // 2])
    if flat[number] == 0.0:
        raise QueryError("an event of probability zero", "one that happens", "There is nothing to explain.")
    if is_tree(chosen):
        shown = enough_draws(post, structure)
        leaves = leaves_of_answer(shown, event, given, evidence, _columns_of(shown, event, evidence))
        parts, table = _by_leaf(shown, leaves)
        return Explanation(*text, None, None, structure, parts, k, answer, table)
    one = one_draw(chosen, number)
    choices = _split(one, event, given, evidence, k)
    weight, within, conditional = _weights(one, choices, event, given, evidence)
    share = within * conditional / (within * conditional).sum()
    order = np.argsort(-share, kind="stable")
    group = _restricted(one, [{}, *(choices[j] for j in order)])
    features = features_of(group)
    table = PlainAnswers(
        {
            name: ("part", np.append(first, values[order]))
            for name, first, values in (
                ("share", 1.0, share),
                ("weight", 1.0, weight),
                ("weight_given", 1.0, within),
                ("probability", float(flat[number]), conditional),
            )
        }
        | {name: (("part", "feature"), values) for name, values in features.items()},
        coords={"part": np.arange(-1, order.size), "feature": list(post.schema.names)},
    )
    columns = _columns_of(one, event, evidence)
    parts = tuple(
        SubPopulation(
            float(share[j]),
            float(weight[j]),
            float(within[j]),
            float(conditional[j]),
            facts_of(post, features, i + 1, known=columns),
        )
        for i, j in enumerate(order)
    )
    chain, draw = divmod(number, chosen.n_draw)
    draw += sum(each.n_draw for each in post.by_structure()[: structure or 0])
    return Explanation(*text, chain, draw, structure, parts, k, answer, table)


def _nearest(post: Posterior, answer: PlainAnswer) -> int | None:
    """Return which of several structures has the mean answer nearest to that of all draws; None of a single one."""
    parts = post.split(answer.values)
    if len(parts) == 1:
        return None
    return int(np.argmin([abs(part.mean() - answer.values.mean()) for part in parts]))


def _by_leaf(post: Posterior, leaves: Leaves) -> tuple[tuple[SubPopulation, ...], PlainAnswers]:
    """Return the leaves of a tree, the largest share first, and the same as data."""
    order = np.argsort(-leaves.share.mean(axis=0), kind="stable")
    values = {name: getattr(leaves, name)[:, order] for name in ("share", "weight", "weight_given", "probability")}
    names = [conditions(leaves.nodes[j].region, post.schema) for j in order]
    numbers = {name: summarised(array) for name, array in values.items()}
    several = post.n_chain * post.n_draw > 1

    def part(j: int) -> SubPopulation:
        share, weight, weight_given, event_probability = (float(found.mean[j]) for found in numbers.values())
        ends = {name: (float(found.lo[j]), float(found.hi[j])) for name, found in numbers.items()} if several else {}
        return SubPopulation(share, weight, weight_given, event_probability, conditions=names[j], intervals=ends)

    shape = (post.n_chain, post.n_draw, order.size)
    data = {name: (("chain", "draw", "part"), array.reshape(shape)) for name, array in values.items()}
    data |= {"conditions": ("part", np.array(names))}
    parts = tuple(part(j) for j in range(order.size))
    return parts, PlainAnswers(data, coords=post.coords() | {"part": np.arange(order.size)})


def _columns_of(post: Posterior, event: Event, evidence: Evidence) -> set[int]:
    """Return the columns that event and evidence are about."""
    return evidence.columns.union(*(box.columns for box in boxes(event, post.schema)))


# --- sub-populations -------------------------------------------------------------------------------------------------

Choice = dict[int, int]
"""Sums, and the edge that is chosen at each."""


def _split(one: Posterior, event: Event, given, evidence: Evidence, k: int) -> list[Choice]:
    """Return disjoint choices that exhaust all rows: the part that carries most is split until there are k."""
    scope = scopes(one.circuit, len(one.schema))
    meets = scope[:, sorted(_columns_of(one, event, evidence))].any(axis=1)
    choices: list[Choice] = [{}]
    while len(choices) < k:
        _, within, conditional = _weights(one, choices, event, given, evidence)
        for j in np.argsort(-within * conditional, kind="stable").tolist():
            found = [node for node in _open_sums(one.circuit, choices[j]) if meets[node]]
            if found:
                break
        else:
            break
        node = max(found, key=lambda n: int(scope[n].sum()))
        edges = range(one.circuit.child_ptr[node], one.circuit.child_ptr[node + 1])
        choices[j : j + 1] = [choices[j] | {node: edge} for edge in edges]
    return choices


def _open_sums(circuit: Circuit, choice: Choice) -> list[int]:
    """Return the sums that rows with a choice come to next, dictionaries left out."""
    found = []
    pending = [circuit.n_node - 1]
    while pending:
        node = pending.pop()
        edges = range(circuit.child_ptr[node], circuit.child_ptr[node + 1])
        if circuit.kind[node] == arrays.PRODUCT:
            pending += circuit.child[edges.start : edges.stop].tolist()
        elif node in choice or (circuit.kind[node] != arrays.LEAF and len(edges) == 1):
            pending.append(int(circuit.child[choice.get(node, edges.start)]))
        elif circuit.kind[node] in arrays.SUM_KINDS and circuit.kind[node] != arrays.LIKELIHOOD:
            found.append(node)
    return found


def _restricted(one: Posterior, choices: Sequence[Choice]) -> Posterior:
    """Return the sub-populations as draws of one chain."""
    circuit = one.circuit
    log_weight = np.repeat(one.params.log_weight[0], len(choices), axis=0)
    for row, choice in zip(log_weight, choices, strict=True):
        for node, edge in choice.items():
            row[circuit.child_ptr[node] : circuit.child_ptr[node + 1]] = -np.inf
            row[edge] = 0.0
    theta = np.repeat(one.params.theta[0], len(choices), axis=0)
    return replace(one, params=Params(log_weight[None], theta[None]))


def _weights(
    one: Posterior, choices: Sequence[Choice], event: Event, given, evidence: Evidence
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return P(part), P(part | given) and P(event | part, given), float64 (n_part,) each; the last 0 without mass."""
    log_weight = one.params.log_weight[0, 0]
    prior = np.array([sum(log_weight[edge] for edge in choice.values()) for choice in choices], np.float64)
    group = _restricted(one, choices)
    conditional = np.exp(log_probability(group, event, given, on_zero="nan").values[0])
    if evidence.rows is not None:
        below = log_density(group, evidence.rows).values[0, :, 0]
    elif evidence.is_certain:
        below = np.zeros(len(choices))
    else:
        assert evidence.event is not None
        below = log_probability(group, evidence.event).values[0]
    log_within = prior + below
    within = np.exp(log_within - log_within.max())
    return np.exp(prior), within / within.sum(), np.nan_to_num(conditional)


def _text(given, schema: Schema, evidence: Evidence) -> str:
    if evidence.rows is None:
        return "" if evidence.event is None else repr(evidence.event)
    values, observed = evidence.rows.values[:, 0], evidence.rows.observed[:, 0]
    return " and ".join(
        f"{rendered_name(column.name)} = {value_name(column, value)}"
        for column, value, seen in zip(schema, values, observed, strict=True)
        if seen
    )
