"""Draws of a tree of gated experts; each question takes rows of covariates and is answered under each draw.

Given a row, a draw is an ordinary circuit over the targets. So questions are those of `Posterior`, asked of a posterior
whose draws are the pairs of a draw and a row; what rows see of that is the last axis, ``obs_id``.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.defaults import CONFIDENCE, INTERVAL
from bayesjpt.defaults_experts import PAIR_BYTES
from bayesjpt.errors import QueryError, TableError, counted
from bayesjpt.experts import known_targets
from bayesjpt.experts.missing import check_columns, check_joint
from bayesjpt.experts.model import ExpertModel
from bayesjpt.experts.row_parts import RowPart, mixed, row_parts
from bayesjpt.families import features
from bayesjpt.kernels.expert_moments import fill_weights
from bayesjpt.kernels.expert_pairs import fill_params
from bayesjpt.kernels.expert_tree import Coefficients
from bayesjpt.posterior.answer import PlainAnswer, PlainAnswers, with_labels_of_rows
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries import complete, distribution, mode, probability
from bayesjpt.table.frames import with_lists
from bayesjpt.table.possible import seen_labels
from bayesjpt.table.table import Table, as_table

if TYPE_CHECKING:
    from bayesjpt.experts.tree_view import ExpertTreeView


@dataclass(frozen=True, eq=False)
class ExpertPosterior:
    """Draws of a hierarchical mixture of experts, from `bj.fit_experts`.

    Parameters
    ----------
    model : ExpertModel
    coefficients : Coefficients
        With leading axes (n_chain, n_draw).
    settings : mapping
        How the fit was made, for the record.
    missing : Posterior, optional
        A joint posterior of the covariates, from which missing ones are imputed; see `with_missing`.

    Notes
    -----
    Rows are data frames, Tables or dicts of columns, with all covariates. Targets are looked at by `log_density`,
    `log_mass` and `tree` alone, and columns that the fit does not use by nothing. Answers have the dims of those of
    `Posterior` given rows: (chain, draw, ..., obs_id).
    """

    model: ExpertModel
    coefficients: Coefficients
    settings: Mapping[str, str | int | float] = field(default_factory=dict)
    missing: Posterior | None = None

    @classmethod
    def from_idata(cls, idata: Any, model: Any, name: str | None = None) -> ExpertPosterior:
        """Return the posterior of a `bayesjpt.ExpertTree` from the draws of ``pm.sample``.

        Parameters
        ----------
        idata : xarray.DataTree
            With a ``posterior`` group.
        model : pm.Model
            The model that was sampled.
        name : str, optional
            Of the tree, where the model has several.

        Returns
        -------
        ExpertPosterior
            Of a tree over time an ExpertSeriesPosterior. Targets are the columns of y; of a y without columns the one
            that has the tree's name. Covariates are the columns of X; those of an array x0, x1 and so on.

        Raises
        ------
        ModelError
            For a model without a tree or one made of another (frozen, copied), no name where there are several, draws
            of another model as far as shapes, covariates, labels and values of y tell, and a column that is both
            response and covariate, time or series.
        """
        from bayesjpt.experts.from_idata import from_model

        return from_model(idata, model, name)

    @property
    def n_chain(self) -> int:
        return self.coefficients.gate.shape[0]

    @property
    def n_draw(self) -> int:
        return self.coefficients.gate.shape[1]

    @property
    def targets(self) -> tuple[str, ...]:
        return self.model.targets

    # --- rows ---------------------------------------------------------------------------------------------------------

    def read(self, rows: Any, *, targets: bool = True) -> Table:
        """Return rows as a Table of the fit's covariates, and with `targets` of those targets that are there."""
        schema = self.model.read_schema(targets=targets)
        if isinstance(rows, Table) and all(column in rows.schema.columns for column in schema):
            return rows
        frame = rows.to_frame() if isinstance(rows, Table) else with_lists(rows)
        table = as_table(frame, schema=schema, ignore_new=True)
        if self.missing is None:
            check_columns(self.model.covariate_columns, table, frame)
        return table

    def row_parts(self, table: Table) -> Iterable[RowPart]:
        """Return the rows that have all covariates, and those that lack some with imputations, in parts."""
        return row_parts(self.model, self.missing, table)

    def params(self, rows: Any) -> Params:
        """Return the weights and parameters of `circuit` for each pair, with axes (draw, row) in front.

        Draws are numbered over all chains, those of a chain side by side. A row that lacks covariates has one
        imputation a draw.

        Raises
        ------
        QueryError
            For a row that lacks covariates, with fewer draws than imputations.
        """
        table, circuit, n_draw = self.read(rows, targets=False), self.model.circuit, self.n_chain * self.n_draw
        log_weight = np.empty((n_draw, table.n_row, circuit.n_edge))
        theta = np.empty((n_draw, table.n_row, circuit.n_theta))
        for part in self.row_parts(table):
            if part.n_asked(n_draw) > 1:
                remedy = "Ask at(row), whose circuit holds several imputations."
                raise QueryError(f"a row that lacks covariates, with {counted(n_draw, 'draw')}", "all of them", remedy)
            log_weight[:, part.rows], theta[:, part.rows] = self.part_params(part, 1)
        return Params(log_weight, theta)

    def part_params(self, part: RowPart, n_version: int) -> Params:
        """Return the weights and parameters of `circuit`, with axes (draw * version, row), of so many versions a draw.

        Versions of a draw are side by side, and pairs take turns with those of the part.
        """
        circuit, flat = self.model.circuit, self.flat(n_version)
        log_weight = np.zeros((flat.gate.shape[0], part.rows.size, circuit.n_edge))
        theta = np.empty((flat.gate.shape[0], part.rows.size, circuit.n_theta))
        fill_params(self.model.leaves, part.x, part.gate_x, flat, log_weight, theta)
        return Params(log_weight, theta)

    def leaf_weights(self, part: RowPart, n_version: int) -> np.ndarray:
        """Return the probabilities of leaves, float64 (draw * version, row, leaf); pairs as in `part_params`."""
        out = np.empty((self.n_chain * self.n_draw * n_version, part.rows.size, self.model.n_leaf))
        fill_weights(self.model.n_node, part.gate_x, self.flat(n_version), out)
        return out

    def flat(self, n_version: int = 1) -> Coefficients:
        """Return the coefficients of all draws on one axis, those of a chain side by side, each so many times."""
        n_draw = self.n_chain * self.n_draw
        each = (array.reshape(n_draw, *array.shape[2:]) for array in self.coefficients)
        return Coefficients(*(each if n_version == 1 else (np.repeat(array, n_version, axis=0) for array in each)))

    def at(self, row: Any) -> Posterior:
        """Return the posterior of the targets given one row of covariates: an ordinary one, with all its queries.

        Examples
        --------
        >>> import numpy as np, bayesjpt as bj
        >>> x = np.linspace(-2.0, 2.0, 100)
        >>> post = bj.fit_experts({"x": x, "y": x**2}, target="y", depth=1, draws=5, tune=20, chains=2, rng=1)
        >>> post.at({"x": 1.0}).probability("y > 0").sizes
        Frozen({'chain': 2, 'draw': 5})
        """
        table = self.read(row, targets=False)
        if table.n_row != 1:
            raise QueryError(f"{table.n_row} rows", "one row of covariates")
        _, circuit, params = next(iter(self._parts(table)))
        shape = (self.n_chain, self.n_draw, -1)
        return Posterior(circuit, self.model.response, Params(*(array.reshape(shape) for array in params)))

    def some_draws(self, max_draws: int | None) -> ExpertPosterior:
        """Return the posterior of at most so many draws of all chains, evenly spaced; one of each chain at least."""
        kept = self._kept(max_draws)
        return replace(self, coefficients=Coefficients(*(array[:, kept] for array in self.coefficients)))

    def _kept(self, max_draws: int | None) -> np.ndarray | slice:
        """Return the draws of each chain that `some_draws` keeps."""
        n = self.n_draw if max_draws is None else max(complete.check_count(max_draws, "max_draws") // self.n_chain, 1)
        if n >= self.n_draw:
            return slice(None)
        return np.floor((np.arange(n) + 0.5) * (self.n_draw / n)).astype(np.int64)

    def of_chain(self, chain: int) -> ExpertPosterior:
        """Return the posterior of one chain alone."""
        self._check_chain(chain)
        return replace(self, coefficients=Coefficients(*(array[chain : chain + 1] for array in self.coefficients)))

    def with_missing(self, joint: Posterior) -> ExpertPosterior:
        """Return the same posterior, answering rows with missing covariates by averaging over imputations.

        Parameters
        ----------
        joint : Posterior
            Of the covariates, as `bj.fit` of a table with these columns makes it.

        Notes
        -----
        Each row with gaps has a hundred imputations. Each draw is asked under so many of them that all draws together
        see each: one where there are a hundred draws or more. The answer of a draw is that of the mixture over its own,
        so that one of a single draw is an average as well. Where targets are known (`log_density`, `log_mass`, leaves)
        each draw sees all of them. Imputations of all rows of a question are drawn together: the same rows get the same
        answers, but beside others that lack covariates a row's differ by the error of a hundred imputations.
        """
        check_joint(joint, self.model.covariate_columns)
        return replace(self, missing=joint)

    def _parts(self, table: Table) -> Iterator[tuple[np.ndarray, Circuit, Params]]:
        """Yield rows, a circuit and its Params for all draws, (draw, row), as many as a part of memory holds.

        Rows that lack covariates have the circuit of the mixture over the versions that a draw is asked under.
        """
        circuit, n_draw = self.model.circuit, self.n_chain * self.n_draw
        for part in self.row_parts(table):
            n_version = part.n_asked(n_draw)
            step = max(1, PAIR_BYTES // (8 * n_draw * n_version * (circuit.n_edge + circuit.n_theta)))
            for own in part.split(step):
                yield own.rows, *mixed(self.model, n_version, self.part_params(own, n_version))

    def _asked(self, rows: Any, ask: Callable[[Posterior], PlainAnswer | PlainAnswers]) -> Any:
        """Return the answer to a question of `Posterior` for every row, which becomes the last axis."""
        answers, places = [], []
        for place, circuit, params in self._parts(self.read(rows, targets=False)):
            pairs = Params(*(array.reshape(1, array.shape[0] * place.size, array.shape[2]) for array in params))
            answers.append((ask(Posterior(circuit, self.model.response, pairs)), place.size))
            places.append(place)
        order = np.argsort(np.concatenate(places))
        n_row = order.size
        coords = {"chain": np.arange(self.n_chain), "draw": np.arange(self.n_draw), "obs_id": np.arange(n_row)}
        first = answers[0][0]
        coords = {**first.coords, **coords}

        def joined(values_of: Callable[[Any], np.ndarray]) -> np.ndarray:
            return np.concatenate([self._rows_last(values_of(answer), n) for answer, n in answers], axis=-1)[..., order]

        if isinstance(first, PlainAnswer):
            dims = (*first.dims, "obs_id")
            whole = replace(first, dims=dims, values=joined(lambda answer: answer.values), coords=coords)
            return with_labels_of_rows(whole, (rows,)).to_xarray()
        data = {
            name: ((*dims, "obs_id"), joined(lambda answer, name=name: answer[name]))
            for name, (dims, _) in first.data.items()
        }
        return with_labels_of_rows(replace(first, data=data, coords=coords), (rows,)).to_xarray()

    def _rows_last(self, values: np.ndarray, n_row: int) -> np.ndarray:
        """Return (chain, draw, ..., row) of an answer over pairs, (1, chain * draw * row, ...)."""
        return np.moveaxis(values.reshape(self.n_chain, self.n_draw, n_row, *values.shape[2:]), 2, -1)

    def target_cells(self, table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return targets in the families' units, what densities need beside them, and the mask; (n_target, n_row)."""
        model, (values, seen) = self.model, self.model.target_cells(table)
        z = np.where(seen, model.units(np.where(seen, values, 1.0)), 1.0)
        constants = [family.constants(c) for family, c in zip(model.families, model.response, strict=True)]
        aux = [features.auxiliary(f, own, k) for f, own, k in zip(model.families, z, constants, strict=True)]
        return z, np.array(aux), seen

    def memory_log_odds(self, chain: int) -> np.ndarray | None:
        """Return what the leaf of the row before adds to gates' log odds, over time; None elsewhere."""
        del chain
        return None

    # --- questions ----------------------------------------------------------------------------------------------------

    def log_density(self, rows: Any) -> Any:
        """Return the log density of the targets given the covariates, in nats; dims (chain, draw, obs_id).

        Per user's unit of real targets; missing targets are marginalised. Those of all labels add up to 1 less the
        share of "other", unless the table was read with ``other=False``.
        """
        table = self.read(rows)
        if not table.n_row:
            raise TableError("no rows", "one at least")
        cells = self.target_cells(table)
        out = self._log_density(table, cells)
        out += self.model.response.log_jacobian() @ cells[2]
        return self._by_row("log_density", out, rows)

    def _log_density(self, table: Table, cells: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the log density of cells, those of `target_cells`, in the families' units, float64 (n_draw, n_row)."""
        return known_targets.log_density(self, table, cells)

    def leaf_shares(self, table: Table) -> np.ndarray:
        """Return the probability of each leaf given a row and its known targets, float64 (n_draw, n_row, n_leaf)."""
        return known_targets.leaf_shares(self, table, self.target_cells(table))

    def log_mass(self, rows: Any) -> Any:
        """Return the log probability of the targets' recorded cells given the rows; dims (chain, draw, obs_id)."""
        table = self.read(rows)
        values, seen = self.model.target_cells(table)
        lo, hi, log_share = self.model.recorded_ends(values)
        found = known_targets.log_masses(self, table, (lo, hi, seen))
        return self._by_row("log_mass", found + (log_share * seen).sum(axis=0), rows)

    def _by_row(self, name: str, values: np.ndarray, rows: Any) -> Any:
        coords = {
            "chain": np.arange(self.n_chain),
            "draw": np.arange(self.n_draw),
            "obs_id": np.arange(values.shape[1]),
        }
        by_draw = values.reshape(self.n_chain, self.n_draw, -1)
        return with_labels_of_rows(PlainAnswer(name, ("chain", "draw", "obs_id"), by_draw, coords), (rows,)).to_xarray()

    def probability(self, event: Any, rows: Any) -> Any:
        """Return the probability of an event of the targets given each row; dims (chain, draw, obs_id).

        Labels that training never showed, "other", have a small share, unless the table was read with ``other=False``.

        Parameters
        ----------
        event : Event or str
            Such as ``"y > 3"`` or ``bj.col("y").between(0, 1)``.
        rows : data frame, Table or dict of columns
        """
        return self._asked(rows, lambda post: probability.probability(post, event))

    def expectation(self, rows: Any) -> Any:
        """Return the expectation of targets of numbers given each row; dims (chain, draw, feature, obs_id)."""
        from bayesjpt.experts.leaf_moments import expectation

        return with_labels_of_rows(expectation(self, rows), (rows,)).to_xarray()

    def variance(self, rows: Any) -> Any:
        """Return the variance of targets of numbers given each row; dims (chain, draw, feature, obs_id)."""
        from bayesjpt.experts.leaf_moments import variance

        return with_labels_of_rows(variance(self, rows), (rows,)).to_xarray()

    def variance_parts(self, rows: Any) -> Any:
        """Return the variance of targets of numbers as that ``within`` experts and ``between`` their means.

        Returns
        -------
        Dataset, dims (chain, draw, feature, obs_id)
            Their sum is `variance`.
        """
        from bayesjpt.experts.leaf_moments import variance_parts

        return with_labels_of_rows(variance_parts(self, rows), (rows,)).to_xarray()

    def quantile(self, q: Any, rows: Any) -> Any:
        """Return quantiles of targets of numbers given each row; dims (chain, draw, quantile, feature, obs_id)."""
        return self._asked(rows, lambda post: distribution.quantile(post, q))

    def cdf(self, x: Any, rows: Any, target: str | None = None) -> Any:
        """Return the probability that a target is at most x given each row; dims (chain, draw, value, feature, obs_id).

        `target` may be left out where there is one.
        """
        return self._asked(rows, lambda post: distribution.cdf(post, x, self._target(target)))

    def confidence_bounds(self, rows: Any, *, confidence: float = CONFIDENCE) -> Any:
        """Return the expectation with confidence bounds for values given each row, as `Posterior.confidence_bounds`."""
        return self._asked(rows, lambda post: distribution.confidence_bounds(post, confidence=confidence))

    def mode(self, rows: Any, k: int = 1) -> Any:
        """Return the k most probable values of the targets given each row, as `Posterior.mode` does."""
        return self._asked(rows, lambda post: mode.mode(post, None, k))

    def sample(self, n: int, rows: Any, *, rng: int | np.random.Generator | None = None, recorded: bool = True) -> Any:
        """Return a data frame of n draws of the targets for each row, side by side, each from a draw of its own.

        Numbers in the user's units, rounded to the grid on which their column was recorded unless `recorded` is false;
        labels of the training table.
        """
        n, generator = complete.check_count(n, "n"), complete.as_rng(rng)
        found, places = [], []
        for place, circuit, params in self._parts(self.read(rows, targets=False)):
            n_part = place.size
            draw = np.concatenate(
                [complete.even_draws(n, self.n_chain * self.n_draw, generator) for _ in range(n_part)]
            )
            row = np.repeat(np.arange(n_part), n)
            chosen = Params(*(np.ascontiguousarray(array[draw, row])[None] for array in params))
            post = Posterior(circuit, self.model.response, chosen)
            limits = complete.limits_of(post.schema, bounds=seen_labels(post.schema), recorded=recorded)
            empty = complete.empty_rows(post.schema, draw.size)
            each = np.arange(draw.size)
            found.append(complete.complete(post, empty, each, generator, limits=limits, one_row=False))
            places.append(np.repeat(place, n))
        values = np.concatenate(found, axis=1)[:, np.argsort(np.concatenate(places), kind="stable")]
        return Table(self.model.response, values, np.ones(values.shape, bool)).to_frame()

    def predict(
        self,
        rows: Any,
        *,
        target: str | None = None,
        interval: float = INTERVAL,
        max_draws: int | None = None,
    ) -> Any:
        """Return a data frame of what a target is in some rows: probabilities of labels, or mean and interval.

        The interval is that of the mixture over draws, of all chains at most `max_draws` (all unless given): it holds
        what the posterior does not know and how far values scatter.
        """
        from bayesjpt.experts.predict import prediction
        from bayesjpt.queries.predict import as_frame

        table = self.read(rows, targets=False)
        return as_frame(prediction(self.some_draws(max_draws), table, self._target(target), interval), rows)

    def explain(self, chain: int = 0) -> str:
        """Return the tree of a chain in words: what each gate asks, and what each leaf's expert says."""
        from bayesjpt.experts.explain import explain

        self._check_chain(chain)
        return explain(self, chain)

    def tree(self, rows: Any, chain: int = 0, *, max_draws: int | None = None) -> ExpertTreeView:
        """Return the tree of a chain as text and pictures: how rows spread over its splits, what each is worth.

        Parameters
        ----------
        rows : data frame, Table or dict of columns
            With targets; those of the training table show what was fitted. Rows without are there by their covariates.
        chain : int
            Chains have trees of their own.
        max_draws : int, optional
            Of the chain, evenly spaced; 20 unless given.

        Returns
        -------
        ExpertTreeView
            ``print(view)``, ``view.to_svg()``, ``view.save("tree.svg")``; `view.data` holds the numbers.

        Raises
        ------
        QueryError
            Where no row has all targets, and for a chain that is not there.

        Notes
        -----
        With h the probability of a node given a row and its targets: a node's share is the mean of h; its histogram
        that of the parent's rows by h over the parent's; its deviance -2 sum h log p / sum h of one expert fitted to
        rows with weights h. What a split takes away is its deviance less that of its children, which see the targets
        twice: it says what the split does to these rows, not to new ones. Cost: draws x nodes x about five regressions.

        References
        ----------
        Jordan and Jacobs (1994), section 5: histogram trees, deviance trees.

        Examples
        --------
        >>> import numpy as np, bayesjpt as bj
        >>> x = np.linspace(-2.0, 2.0, 100)
        >>> table = {"x": x, "y": np.abs(x)}
        >>> post = bj.fit_experts(table, target="y", depth=1, method="em", rng=1)
        >>> [round(float(node.share.mean[0]), 1) for node in post.tree(table).data.nodes]
        [1.0, 0.5, 0.5]
        """
        from bayesjpt.experts.tree import shown_tree
        from bayesjpt.experts.tree_view import ExpertTreeView

        self._check_chain(chain)
        return ExpertTreeView(shown_tree(self, rows, chain, max_draws))

    def save(self, path: Any) -> None:
        """Write the fit to a netCDF file; read it back with `bayesjpt.load_experts`."""
        from bayesjpt.experts.store import save

        save(self, path)

    def _check_chain(self, chain: int) -> None:
        if chain not in range(self.n_chain):
            raise QueryError(f"chain={chain!r}", f"0 to {self.n_chain - 1}")

    def _target(self, target: str | None) -> str:
        if target is None and len(self.targets) == 1:
            return self.targets[0]
        if target not in self.targets:
            raise QueryError(f"target={target!r}", f"one of {', '.join(self.targets)}")
        return str(target)

    def __repr__(self) -> str:
        given = ", ".join(self.model.covariates.columns) or "nothing"
        kinds = ", ".join(f"{name} ({kind})" for name, kind in zip(self.targets, self.model.experts, strict=True))
        n_leaf = self.settings.get("leaves", self.model.n_leaf)  # of a tree that grew, those that are its own
        leaves = counted(int(n_leaf), "leaf", "leaves")
        return f"ExpertPosterior({kinds} given {given}; {leaves}, {self.n_chain} chains x {self.n_draw} draws)"

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(repr(self))}</b></p><pre>{html.escape(self.explain())}</pre>"
