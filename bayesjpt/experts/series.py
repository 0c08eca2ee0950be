"""Draws of a hidden Markov decision tree: what they say of rows that follow each other.

Given the history of its series, a row is a mixture over leaves as any row is, with weights from the forward pass. So
every question of `ExpertPosterior` is answered one step ahead; what is new is about leaves, and about whole series.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.defaults import INTERVAL
from bayesjpt.errors import QueryError
from bayesjpt.experts.gate_words import at_average
from bayesjpt.experts.missing import check_columns
from bayesjpt.experts.posterior import ExpertPosterior
from bayesjpt.experts.row_parts import RowPart, one_version
from bayesjpt.experts.series_passes import Forward, forward_passes, parts_of, weights_ahead, with_history
from bayesjpt.kernels.expert_pairs import fill_params
from bayesjpt.kernels.expert_series import Memory, fill_base_odds, fill_memory_odds
from bayesjpt.kernels.expert_series_gaps import fill_transitions
from bayesjpt.kernels.expert_series_start import slots
from bayesjpt.kernels.expert_tree import Coefficients
from bayesjpt.posterior.answer import PlainAnswer, with_labels_of_rows
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries import complete
from bayesjpt.table.frames import build_frame
from bayesjpt.table.possible import seen_labels
from bayesjpt.table.steps import Order, read_order
from bayesjpt.table.table import Table, as_table


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OrderedTable(Table):
    """Rows that know which of them follow each other."""

    order: Order


@dataclass(frozen=True, eq=False, kw_only=True)
class ExpertSeriesPosterior(ExpertPosterior):
    """Draws of a hidden Markov decision tree, from ``bj.fit_experts(..., time=)``.

    Parameters
    ----------
    memory : Memory
        What gates make of the leaf before; with leading axes (n_chain, n_draw).
    transitions : str
        ``leaf`` or ``decision``; see `bayesjpt.fit_experts`.
    time, series : str
        The columns that say which rows follow each other; `series` may be None.

    Notes
    -----
    Rows hold whole series from their beginning, in any order, with covariates in each row; a missing target says
    nothing, and its row is a step all the same. All that `ExpertPosterior` answers (`predict`, `expectation`,
    `probability`, `quantile`, `log_density`, ...) is about a row given the targets of the rows before it in its series.
    So rows behind the last known target are forecasts, each given all that is known.

    Leaves are numbered by chain: average probabilities of leaves over the draws of a chain, not over chains.

    Cost of a question: a forward pass for each draw, rows times leaves squared, and 8 bytes a draw, row and leaf;
    `some_draws` makes both less.

    References
    ----------
    Jordan, Ghahramani and Saul (1997). Hidden Markov Decision Trees. Advances in Neural Information Processing
    Systems 9.

    Examples
    --------
    >>> import numpy as np, bayesjpt as bj
    >>> t = np.arange(120)
    >>> level = np.where(t // 30 % 2, 4.0, 0.0)
    >>> table = {"t": t, "y": level + 0.5 * np.sin(7.0 * t)}
    >>> post = bj.fit_experts(table, target="y", time="t", depth=1, draws=20, tune=50, chains=2, rng=1)
    >>> post
    ExpertSeriesPosterior(y (gaussian) given nothing and the leaf before; 2 leaves, 2 chains x 20 draws)
    >>> ahead = {"t": np.arange(122), "y": [*table["y"], None, None]}
    >>> post.predict(ahead)["mean"].tail(2).round(0).tolist()
    [4.0, 4.0]
    >>> post.smooth(table).sel(chain=0).mean("draw").sizes
    Frozen({'leaf': 2, 'obs_id': 120})
    """

    memory: Memory
    transitions: str
    time: str
    series: str | None

    # --- rows ---------------------------------------------------------------------------------------------------------

    def read(self, rows: Any, *, targets: bool = True) -> OrderedTable:
        """Return rows of whole series, with their order, as a Table of the fit's covariates and targets.

        Targets are looked at whatever `targets` says, since those of the rows before count in all questions.
        """
        schema = self.model.read_schema(targets=True)
        if isinstance(rows, OrderedTable) and all(column in rows.schema.columns for column in schema):
            return rows
        frame, order = read_order(rows, self.time, self.series, self.model.covariate_columns)
        if frame is None:  # times alone: all targets are missing
            table = complete.empty_rows(schema, order.rows.size)
        else:
            frame = frame.to_frame() if isinstance(frame, Table) else frame
            table = as_table(frame, schema=schema, ignore_new=True)
            if self.missing is None:
                check_columns(self.model.covariate_columns, table, frame)
        return OrderedTable(table.schema, table.values, table.observed, table.unseen, order=order)

    def some_draws(self, max_draws: int | None) -> ExpertSeriesPosterior:
        """Return the posterior of at most so many draws of all chains, evenly spaced; one of each chain at least."""
        kept = self._kept(max_draws)
        coefficients = Coefficients(*(array[:, kept] for array in self.coefficients))
        return replace(self, coefficients=coefficients, memory=Memory(*(array[:, kept] for array in self.memory)))

    def of_chain(self, chain: int) -> ExpertSeriesPosterior:
        """Return the posterior of one chain alone."""
        self._check_chain(chain)
        own = slice(chain, chain + 1)
        coefficients = Coefficients(*(array[own] for array in self.coefficients))
        return replace(self, coefficients=coefficients, memory=Memory(*(array[own] for array in self.memory)))

    def leaf_shares(self, table: Table) -> np.ndarray:
        """Return the probability of each leaf given all targets of the series, float64 (n_draw, n_row, n_leaf)."""
        assert isinstance(table, OrderedTable)
        return self._leaves(table, smoothed=True)

    def row_parts(self, table: Table) -> list[RowPart]:
        """Return rows in parts, with what the targets before each say."""
        assert isinstance(table, OrderedTable)
        return with_history(self, table, parts_of(self, table))

    def part_params(self, part: RowPart, n_version: int) -> Params:
        """Return weights and parameters of pairs as for other trees, given the targets before each row."""
        made = super().part_params(part, n_version)
        if self.model.n_leaf > 1:
            made.log_weight[..., self.model.leaves.edge] = np.log(self.leaf_weights(part, n_version))
        return made

    def leaf_weights(self, part: RowPart, n_version: int) -> np.ndarray:
        """Return the probabilities of leaves of pairs given the targets before each row."""
        return weights_ahead(self, part, n_version)

    # --- passes -------------------------------------------------------------------------------------------------------

    def _forward(self, table: OrderedTable) -> Iterator[Forward]:
        """Yield the forward pass of each draw, those of a chain side by side."""
        return forward_passes(self, table, parts_of(self, table))

    def flat_offset(self) -> np.ndarray:
        """Return the offsets of all draws, float64 (n_draw, n_gate, n_slot)."""
        offset = self.memory.offset
        return offset.reshape(self.n_chain * self.n_draw, *offset.shape[2:])

    def memory_log_odds(self, chain: int) -> np.ndarray:
        """Return what each leaf before adds to gates' log odds, float64 (n_gate, n_leaf): posterior mean of a chain."""
        slot, sign, _ = slots(self.model.depth, self.transitions)
        offset = self.memory.offset[chain].mean(axis=0)
        level = [int(np.log2(gate + 1)) for gate in range(self.model.n_gate)]
        own = np.array([sign[k] * offset[gate, slot[k]] for gate, k in enumerate(level)])
        return own.reshape(self.model.n_gate, self.model.n_leaf)

    def _log_density(self, table: Table, cells: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the log density of each row given those before it, float64 (n_draw, n_row): the forward pass's."""
        assert isinstance(table, OrderedTable)
        out = np.empty((self.n_chain * self.n_draw, table.n_row))
        for d, forward in enumerate(self._forward(table)):
            out[d, table.order.rows] = forward.log_density
        return out

    def _by_leaf(self, name: str, rows: Any, values: np.ndarray) -> Any:
        """Return probabilities of leaves, (n_draw, n_row, n_leaf), as a DataArray."""
        shape = (self.n_chain, self.n_draw, *values.shape[1:])
        coords = {
            "chain": np.arange(self.n_chain),
            "draw": np.arange(self.n_draw),
            "leaf": np.arange(self.model.n_leaf),
            "obs_id": np.arange(values.shape[1]),
        }
        answer = PlainAnswer(name, tuple(coords), np.swapaxes(values.reshape(shape), 2, 3), coords)
        return with_labels_of_rows(answer, (rows,)).to_xarray()

    # --- questions ----------------------------------------------------------------------------------------------------

    def filter(self, rows: Any) -> Any:
        """Return the probability of each leaf given a row's targets and those before; (chain, draw, leaf, obs_id)."""
        table = self.read(rows)
        return self._by_leaf("filter", rows, self._leaves(table, smoothed=False))

    def smooth(self, rows: Any) -> Any:
        """Return the probability of each leaf given all targets of the series; dims (chain, draw, leaf, obs_id)."""
        table = self.read(rows)
        return self._by_leaf("smooth", rows, self._leaves(table, smoothed=True))

    def _leaves(self, table: OrderedTable, *, smoothed: bool) -> np.ndarray:
        out = np.empty((self.n_chain * self.n_draw, table.n_row, self.model.n_leaf))
        for d, forward in enumerate(self._forward(table)):
            out[d, table.order.rows] = forward.smoothed() if smoothed else forward.filtered
        return out

    def leaves(self, rows: Any, *, chain: int = 0, known: str = "all", interval: float = INTERVAL) -> Any:
        """Return a data frame of the leaves of some rows in one chain, with intervals over its draws.

        Parameters
        ----------
        rows : data frame, Table or dict of columns
        chain : int
            Leaves are numbered by chain.
        known : str
            ``all`` targets of the series, as `smooth`; or ``past``, those up to each row, as `filter`.
        interval : float
            Share of the draws between the ends, with equal tails.

        Returns
        -------
        data frame
            ``leaf``, the most probable one by the mean over draws, and for each leaf l ``p_l``, that mean, ``lower_l``
            and ``upper_l``.
        """
        own = self.of_chain(chain)
        if known not in ("all", "past"):
            raise QueryError(f"known={known!r}", "all or past")
        if not isinstance(interval, float | int) or not 0.0 < interval < 1.0:
            raise QueryError(f"interval = {interval!r}", "a probability strictly between 0 and 1")
        found = own._leaves(own.read(rows), smoothed=known == "all")
        mean, tail = found.mean(axis=0), 0.5 * (1.0 - interval)
        lower, upper = np.quantile(found, [tail, 1.0 - tail], axis=0)
        columns: dict[str, tuple[str, list[Any]]] = {"leaf": ("integer", mean.argmax(axis=1).tolist())}
        for leaf in range(self.model.n_leaf):
            for name, values in (("p", mean), ("lower", lower), ("upper", upper)):
                columns[f"{name}_{leaf}"] = ("number", values[:, leaf].tolist())
        frame = build_frame(columns, "pandas")
        return frame.set_axis(rows.index, axis=0) if type(rows).__module__.split(".")[0] == "pandas" else frame

    def series_log_density(self, rows: Any) -> Any:
        """Return the joint log density of the targets of each series given its covariates; (chain, draw, series).

        Nats, per user's unit of real targets; missing targets are marginalised.
        """
        table = self.read(rows)
        each = self.log_density(table).values
        out = np.zeros((*each.shape[:2], table.order.n_series))
        for row, series in enumerate(table.order.numbers()):
            out[:, :, series] += each[:, :, row]
        coords = {
            "chain": np.arange(self.n_chain),
            "draw": np.arange(self.n_draw),
            "series": list(table.order.names),
        }
        return PlainAnswer("series_log_density", tuple(coords), out, coords).to_xarray()

    def transition_probabilities(self, rows: Any = None) -> Any:
        """Return the probability of each leaf given the leaf before; dims (chain, draw, leaf_before, leaf).

        At average covariates, which are the means of numbers and the shares of labels, or with `rows` at their
        covariates, with obs_id last. ``leaf_before`` -1 is the beginning of a series.
        """
        average = self.model.gate_covariates.average()[None, None]
        parts, n_row = [RowPart(np.arange(1), average, average)], 1
        if rows is not None:
            table = self.read(rows)
            parts, n_row = parts_of(self, table), table.n_row
        flat, n_leaf, n_gate = self.flat(), self.model.n_leaf, self.model.n_gate
        slot, sign, _ = slots(self.model.depth, self.transitions)
        offset, memory_odds = self.flat_offset(), np.empty((n_gate, n_leaf))
        out = np.empty((flat.gate.shape[0], n_row, n_leaf + 1, n_leaf))
        for part in parts:
            gate_x = part.spread().gate_x[0]
            base, own = np.empty((gate_x.shape[0], n_gate)), np.empty((part.rows.size, n_leaf + 1, n_leaf))
            for d in range(out.shape[0]):
                fill_base_odds(gate_x, flat.gate[d], base)
                fill_memory_odds(slot, sign, offset[d], memory_odds)
                fill_transitions(base.reshape(part.n_version, -1, n_gate), memory_odds, own)
                out[d, part.rows] = own
        coords = {
            "chain": np.arange(self.n_chain),
            "draw": np.arange(self.n_draw),
            "leaf_before": np.arange(-1, n_leaf),
            "leaf": np.arange(n_leaf),
            "obs_id": np.arange(n_row),
        }
        values = np.moveaxis(out.reshape(self.n_chain, self.n_draw, *out.shape[1:]), 2, -1)
        if rows is None:
            values = values[..., 0]
            del coords["obs_id"]
        answer = PlainAnswer("transition_probabilities", tuple(coords), values, coords)
        return (answer if rows is None else with_labels_of_rows(answer, (rows,))).to_xarray()

    def sample_series(
        self, n: int, rows: Any, *, rng: int | np.random.Generator | None = None, recorded: bool = True
    ) -> Any:
        """Return a data frame of n joint draws of the missing targets given all known ones of their series.

        Parameters
        ----------
        n : int
            Each from a draw of the posterior of its own.
        rows : data frame, Table or dict of columns
            With rows whose targets are missing: steps behind the end, or gaps.
        rng : int, numpy.random.Generator or None
        recorded : bool
            Round drawn numbers to the grid on which their column was recorded.

        Returns
        -------
        data frame
            ``sample``, ``row`` (position in `rows`), ``leaf``, and the targets, drawn ones and known ones; sample by
            sample. Leaves are numbered by chain.
        """
        n, generator = complete.check_count(n, "n"), complete.as_rng(rng)
        for name in self.targets:
            if name in ("sample", "row", "leaf"):
                raise QueryError(f"the target {name!r}", "another name: the answer has a column of it", "Rename it.")
        table = self.read(rows)
        order, model, n_row = table.order, self.model, table.n_row
        values, seen = model.target_cells(table)
        draw = np.sort(complete.even_draws(n, self.n_chain * self.n_draw, generator))
        parts, in_order = parts_of(self, table), np.argsort(order.rows)
        paths, versions, number = [], [], 0
        for d, forward in enumerate(forward_passes(self, table, parts)):
            while number < n and draw[number] == d:
                path, version = forward.drawn(np.uint64(generator.integers(2**62)))
                paths.append(path[in_order])
                versions.append(version[in_order])
                number += 1
        limits = complete.limits_of(model.response, bounds=seen_labels(model.response), recorded=recorded)
        x, gate_x = one_version(parts, n_row)
        flat, drawn, each = self.flat(), [], np.arange(n_row)
        for own, leaf, version in zip(draw, paths, versions, strict=True):
            for part in parts:
                x[part.rows] = part.x[version[part.rows], np.arange(part.rows.size)]
            log_weight, theta = np.zeros((1, n_row, model.circuit.n_edge)), np.empty((1, n_row, model.circuit.n_theta))
            coefficients = Coefficients(*(array[own : own + 1] for array in flat))
            fill_params(model.leaves, x[None], gate_x[None], coefficients, log_weight, theta)
            if model.n_leaf > 1:
                log_weight[...] = 0.0
                log_weight[0][:, model.leaves.edge] = np.where(leaf[:, None] == np.arange(model.n_leaf), 0.0, -np.inf)
            post = Posterior(model.circuit, model.response, Params(log_weight, theta))
            empty = complete.empty_rows(model.response, n_row)
            made = complete.complete(post, empty, each, generator, limits=limits, one_row=False)
            drawn.append(np.where(seen, values, made))
        together = np.concatenate(drawn, axis=1)
        frame = Table(model.response, together, np.ones(together.shape, bool)).to_frame()
        frame.insert(0, "leaf", np.concatenate(paths))
        frame.insert(0, "row", np.tile(np.arange(n_row), n))
        frame.insert(0, "sample", np.repeat(np.arange(n), n_row))
        return frame

    # --- words and files ----------------------------------------------------------------------------------------------

    def explain(self, chain: int = 0) -> str:
        """Return the tree of a chain in words, and how often each leaf follows itself at average covariates."""
        words = super().explain(chain)
        stays = self.transition_probabilities().values[chain].mean(axis=0)[1:].diagonal()
        lines = [f"leaf {leaf}: {p:.2f}" for leaf, p in enumerate(stays)]
        where = at_average(self.model.gate_covariates)
        title = f"probability that a leaf follows itself{where} (leaf 0 answers no throughout)"
        return "\n".join([words, title, *lines])

    def save(self, path: Any) -> None:
        """Write the fit to a netCDF file; read it back with `bayesjpt.load_experts`."""
        from bayesjpt.experts.store import save_series

        save_series(self, path)

    def __repr__(self) -> str:
        start, _, rest = super().__repr__().partition("; ")
        start = start.replace("ExpertPosterior", "ExpertSeriesPosterior", 1)
        return f"{start} and the {self.transitions} before; {rest}"
