"""`bj.OnlineExperts`: a tree of gated experts that learns from rows as they come, and forgets old ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bayesjpt import defaults_experts
from bayesjpt.errors import LearnerError, TableError
from bayesjpt.experts.em import expert_ridges
from bayesjpt.experts.fit import make_model, make_prior, tell_single_values
from bayesjpt.experts.model import LARGEST_DEPTH
from bayesjpt.experts.posterior import ExpertPosterior
from bayesjpt.experts.settings import ExpertSettings
from bayesjpt.experts.start import begin
from bayesjpt.kernels.expert_online import Memory, learn_rows
from bayesjpt.kernels.expert_tree import GAMMA, Coefficients
from bayesjpt.numerics.generator import as_generator


class OnlineExperts:
    """A hierarchical mixture of experts by recursive least squares: rows come in portions, and old ones are forgotten.

    Parameters
    ----------
    rows : Table or data frame
        The first rows. They say what columns are, their units, and where the gates begin (hard splits learned
        greedily from half of them); then they are learned, as by `partial_fit`.
    target, given, gates, depth, experts, kinds, rng
        As of `bj.fit_experts`.
    forgetting : float
        Above 0 and at most 1: t rows later a row counts forgetting^t. 1 forgets nothing.
    ridge : float
        Precision of coefficients around 0, before any row and where rows say nothing; more of Poisson and gamma
        experts, as of `bj.fit_experts`.

    Raises
    ------
    LearnerError
        For settings that make no sense.
    SchemaError, TableError
        For columns that are not there or cannot be used.

    Notes
    -----
    A row moves every gate and expert by its posterior share of them, and is not needed again. Cost: rows times
    predictors of all leaves times covariates squared. The order of rows matters. See
    ``docs/explanation/experts.md``.

    References
    ----------
    Jordan and Jacobs (1994). Hierarchical Mixtures of Experts and the EM Algorithm. Neural Computation 6(2),
    equations 28 to 34.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> x = np.random.default_rng(1).uniform(-2.0, 2.0, 1000)
    >>> frame = pd.DataFrame({"x": x, "y": np.abs(x)})
    >>> online = bj.OnlineExperts(frame.head(200), target="y", depth=1, forgetting=0.999, rng=1)
    >>> post = online.partial_fit(frame.tail(800)).posterior()
    >>> post.expectation({"x": [-1.5, 1.5]}).values.round(1).tolist()
    [[[[1.5, 1.5]]]]
    """

    def __init__(
        self,
        rows: Any,
        *,
        target: str | Sequence[str],
        given: Sequence[str] | None = None,
        gates: Sequence[str] | None = None,
        depth: int = defaults_experts.DEPTH,
        experts: str | Mapping[str, str] = "auto",
        forgetting: float = defaults_experts.FORGETTING,
        ridge: float = defaults_experts.RIDGE,
        kinds: Mapping[str, str] | None = None,
        rng: int | np.random.Generator | None = None,
    ):
        generator = as_generator(rng)
        if generator is None:
            raise LearnerError(f"rng = {rng!r}", "None, a seed from 0, or a generator of NumPy")
        if isinstance(depth, bool) or not isinstance(depth, int | np.integer) or not 0 <= depth <= LARGEST_DEPTH:
            raise LearnerError(f"depth={depth!r}", f"a whole number from 0 to {LARGEST_DEPTH}")
        number = isinstance(forgetting, int | float | np.number) and not isinstance(forgetting, bool)
        if not number or not 0.0 < forgetting <= 1.0:
            raise LearnerError(f"forgetting={forgetting!r}", "a number above 0 and at most 1")
        settings = ExpertSettings(
            target=target, given=given, gates=gates, depth=depth, experts=experts, kinds=kinds, method="em", ridge=ridge
        )
        self.ridge = settings.search.ridge
        if self.ridge == 0.0:
            raise LearnerError("ridge=0", "a number above 0, for the first rows do not say what all coefficients are")
        self.forgetting = float(forgetting)
        self.model, table = make_model(rows, settings)
        tell_single_values(self.model, rows, settings)
        prior = make_prior(self.model)
        self._floor = prior.floor
        expert_most = 1.0 / np.repeat(expert_ridges(self.model, self.ridge), np.diff(self.model.at))
        self._most = np.append(expert_most, 1.0 / self.ridge)
        self._state, _ = begin(self.model, self.model.task(table), prior, "cart", generator)
        shape, n_gate_covariate = self._state.node.shape, self._state.gate.shape[1]
        self._memory = Memory(
            np.tile(np.eye(shape[2]) * expert_most[:, None, None], (self.model.n_leaf, 1, 1, 1)),
            np.tile(np.eye(n_gate_covariate) / self.ridge, (self.model.n_gate, 1, 1)),
            np.full(self.model.n_leaf, defaults_experts.IMAGINARY_ROWS[0]),
        )
        self.n_row = 0
        self.partial_fit(table)

    def partial_fit(self, rows: Any) -> OnlineExperts:
        """Learn some rows, one after the other, and return the same object.

        Raises
        ------
        TableError
            For a missing cell of a target or covariate, a label that the first rows do not have, or a number that its
            experts cannot give; nothing is learned then.
        """
        table = self.posterior().read(rows)
        values, observed = self.model.target_cells(table)
        possible = np.ones(observed.shape, bool)
        for c, column in enumerate(self.model.response):
            if column.base == "category":
                possible[c] = values[c] < len(column.labels)
            elif self.model.kind[c] == GAMMA:
                possible[c] = values[c] > 0.0
        if not (observed & possible).all():
            c, row = (int(k) for k in np.argwhere(~(observed & possible))[0])
            of_labels = self.model.response.columns[c].base == "category"
            what = "a label that the first rows do not have" if of_labels else f"{values[c, row]:g}"
            what = what if observed[c, row] else "no value"
            right = "a known one in each" if of_labels or not observed[c, row] else "numbers above 0, of gamma experts"
            raise TableError(f"{what} of the target {self.model.targets[c]!r} in row {row + 1}", right)
        task = self.model.task(table)
        learn_rows(task, self._state, self._memory, self.forgetting, self._most, self._floor)
        self.n_row += table.n_row
        return self

    def posterior(self) -> ExpertPosterior:
        """Return what is known now, as a posterior of one draw, with all its queries."""
        n_gate = self.model.n_gate
        state = Coefficients(*(array[None, None].copy() for array in self._state))
        for gate in range(n_gate - 1, -1, -1):
            state.node[0, 0, gate] = state.node[0, 0, 2 * gate + 1 : 2 * gate + 3].mean(axis=0)
        settings = {"method": "online", "forgetting": self.forgetting, "ridge": self.ridge, "rows": self.n_row}
        return ExpertPosterior(self.model, state, settings | {"depth": self.model.depth})

    def __repr__(self) -> str:
        return f"OnlineExperts({', '.join(self.model.targets)}; {self.model.n_leaf} leaves, {self.n_row} rows)"
