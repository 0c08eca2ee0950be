"""Draws of a tree of gated experts; each question takes rows of covariates and is answered under each draw.

Given a row, a draw is an ordinary circuit over the targets. So questions are those of `Posterior`, asked of a posterior
whose draws are the pairs of a draw and a row; what rows see of that is the last axis, ``obs_id``.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.circuit.arrays import Params
from bayesjpt.defaults import CONFIDENCE, INTERVAL
from bayesjpt.defaults_experts import PAIR_BYTES
from bayesjpt.errors import QueryError, TableError, counted
from bayesjpt.experts.missing import AVERAGE_GAPS, N_IMPUTATION, check_columns, check_joint, imputed
from bayesjpt.experts.model import ExpertModel
from bayesjpt.families import features
from bayesjpt.kernels.expert_evidence import fill_leaf_shares, fill_log_density
from bayesjpt.kernels.expert_moments import fill_weights
from bayesjpt.kernels.expert_pairs import fill_log_mass, fill_params
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
        if self.missing is None:
            check_columns(self.model.covariate_columns, frame)
        return as_table(frame, schema=schema, ignore_new=True)

    def matrices(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the covariates of experts and gates, float64 (n_version, n_row, n_covariate) each."""
        versions = [table]
        if self.missing is not None:  # the same imputations for all questions about the same rows
            rng = np.random.default_rng(0)
            versions = imputed(self.missing, table, self.model.covariate_columns, N_IMPUTATION, rng)
        experts, gates = self.model.covariates, self.model.gate_covariates
        x = np.stack([experts.matrix(each, AVERAGE_GAPS) for each in versions])
        return x, np.stack([gates.matrix(each, AVERAGE_GAPS) for each in versions])

    def params(self, rows: Any) -> Params:
        """Return the weights and parameters of `circuit` for each pair, with axes (draw, row) in front.

        Draws are numbered over all chains, those of a chain side by side.
        """
        x, gate_x = self.matrices(self.read(rows, targets=False))
        return self._params(x, gate_x)

    def _params(self, x: np.ndarray, gate_x: np.ndarray) -> Params:
        circuit, n_row = self.model.circuit, x.shape[1]
        flat = self.flat()
        log_weight = np.zeros((flat.gate.shape[0], n_row, circuit.n_edge))
        theta = np.empty((flat.gate.shape[0], n_row, circuit.n_theta))
        fill_params(self.model.leaves, x, gate_x, flat, log_weight, theta)
        return Params(log_weight, theta)

    def weight_parts(self, table: Table, gate_x: np.ndarray, step: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield so many rows at a time, and the probabilities of leaves of their pairs, (n_draw, n_row, n_leaf)."""
        for lo in range(0, table.n_row, step):
            which = slice(lo, min(lo + step, table.n_row))
            out = np.empty((self.n_chain * self.n_draw, which.stop - lo, self.model.n_leaf))
            fill_weights(self.model.n_node, np.ascontiguousarray(gate_x[:, which]), self.flat(), out)
            yield which, out

    def flat(self) -> Coefficients:
        """Return the coefficients of all draws on one axis, those of a chain side by side."""
        return Coefficients(
            *(array.reshape(self.n_chain * self.n_draw, *array.shape[2:]) for array in self.coefficients)
        )

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
        log_weight, theta = self.params(table)
        shape = (self.n_chain, self.n_draw, -1)
        n_edge = self.model.circuit.n_edge
        params = Params(log_weight.reshape(*shape[:2], n_edge), theta.reshape(shape))
        return Posterior(self.model.circuit, self.model.response, params)

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
            Of the covariates, as `bj.fit` of a table with these columns makes it. Draws of the experts take turns
            with ten imputations of every row. Those of all rows of a question are drawn together: the same rows get
            the same answers, but beside others that lack covariates a row's differ by the error of ten draws.
        """
        check_joint(joint, self.model.covariate_columns)
        return replace(self, missing=joint)

    def _parts(self, table: Table) -> Iterator[tuple[slice, Params]]:
        """Yield parts of the rows with their pairs, as many as a part of memory holds."""
        if not table.n_row:
            raise TableError("no rows", "one at least")
        x, gate_x = self.matrices(table)
        circuit = self.model.circuit
        each = 8 * self.n_chain * self.n_draw * (circuit.n_edge + circuit.n_theta)
        step = max(1, PAIR_BYTES // each)
        for lo in range(0, table.n_row, step):
            which = slice(lo, min(lo + step, table.n_row))
            part = (np.ascontiguousarray(x[:, which]), np.ascontiguousarray(gate_x[:, which]))
            yield which, self._params(*part)

    def _asked(self, rows: Any, ask: Callable[[Posterior], PlainAnswer | PlainAnswers]) -> Any:
        """Return the answer to a question of `Posterior` for every row, which becomes the last axis."""
        answers, n_row = [], 0
        for _, params in self._parts(self.read(rows, targets=False)):
            n_part = params.theta.shape[1]
            pairs = Params(*(array.reshape(1, array.shape[0] * n_part, array.shape[2]) for array in params))
            answers.append((ask(Posterior(self.model.circuit, self.model.response, pairs)), n_part))
            n_row += n_part
        coords = {"chain": np.arange(self.n_chain), "draw": np.arange(self.n_draw), "obs_id": np.arange(n_row)}
        first = answers[0][0]
        coords = {**first.coords, **coords}

        def joined(values_of: Callable[[Any], np.ndarray]) -> np.ndarray:
            return np.concatenate([self._rows_last(values_of(answer), n) for answer, n in answers], axis=-1)

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

    def _cells(self, table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
        cells = self._cells(table)
        out = self._log_density(table, cells)
        out += self.model.response.log_jacobian() @ cells[2]
        return self._by_row("log_density", out, rows)

    def _log_density(self, table: Table, cells: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the log density of cells, those of `_cells`, in the families' units, float64 (n_draw, n_row)."""
        out = np.empty((self.n_chain * self.n_draw, table.n_row))
        fill_log_density(self.model.leaves, *self.matrices(table), cells, self.flat(), out)
        return out

    def leaf_shares(self, table: Table) -> np.ndarray:
        """Return the probability of each leaf given a row and its known targets, float64 (n_draw, n_row, n_leaf)."""
        out = np.empty((self.n_chain * self.n_draw, table.n_row, self.model.n_leaf))
        fill_leaf_shares(self.model.leaves, *self.matrices(table), self._cells(table), self.flat(), out)
        return out

    def log_mass(self, rows: Any) -> Any:
        """Return the log probability of the targets' recorded cells given the rows; dims (chain, draw, obs_id)."""
        table = self.read(rows)
        values, seen = self.model.target_cells(table)
        lo, hi, log_share = self.model.recorded_ends(values)
        return self._by_row("log_mass", self._log_masses(table, lo, hi, seen) + (log_share * seen).sum(axis=0), rows)

    def _log_masses(self, table: Table, lo: np.ndarray, hi: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Return the log probability of each row's own intervals, float64 (n_draw, n_row)."""
        out = np.empty((self.n_chain * self.n_draw, table.n_row))
        for which, params in self._parts(table):
            part = np.empty((out.shape[0], params.theta.shape[1]))
            own_lo, own_hi, own_seen = (np.ascontiguousarray(array[:, which]) for array in (lo, hi, seen))
            fill_log_mass(self.model.leaves, own_lo, own_hi, own_seen, params.log_weight, params.theta, part)
            out[:, which] = part
        return out

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
        found = []
        for _, params in self._parts(self.read(rows, targets=False)):
            n_part = params.theta.shape[1]
            draw = np.concatenate(
                [complete.even_draws(n, self.n_chain * self.n_draw, generator) for _ in range(n_part)]
            )
            row = np.repeat(np.arange(n_part), n)
            chosen = Params(*(np.ascontiguousarray(array[draw, row])[None] for array in params))
            post = Posterior(self.model.circuit, self.model.response, chosen)
            limits = complete.limits_of(post.schema, bounds=seen_labels(post.schema), recorded=recorded)
            empty = complete.empty_rows(post.schema, draw.size)
            each = np.arange(draw.size)
            found.append(complete.complete(post, empty, each, generator, limits=limits, one_row=False))
        values = np.concatenate(found, axis=1)
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
