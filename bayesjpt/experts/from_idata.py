"""A posterior of experts from the draws of a PyMC model that holds a `bayesjpt.ExpertTree`.

It looks at what the tree left with its variables, and imports no PyMC.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bayesjpt.errors import ModelError
from bayesjpt.experts.model import ExpertModel, as_real
from bayesjpt.experts.posterior import ExpertPosterior
from bayesjpt.experts.series import ExpertSeriesPosterior
from bayesjpt.kernels.expert_series import Memory
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, KIND_NAMES, Coefficients
from bayesjpt.table.covariates import Covariate, Covariates
from bayesjpt.table.schema import Column, Schema


def from_model(idata: Any, model: Any, name: str | None) -> ExpertPosterior:
    """Return the posterior of a tree of a model; see `ExpertPosterior.from_idata`."""
    trees = {str(rv.name): rv.tag.explained for rv in model.basic_RVs if hasattr(rv.tag, "explained")}
    if not trees:
        raise ModelError("a model without a tree of experts", "one with bj.ExpertTree")
    if name is None:
        if len(trees) > 1:
            raise ModelError(f"trees {', '.join(trees)} in one model", "name= one of them")
        name = next(iter(trees))
    if name not in trees:
        raise ModelError(f"no tree of experts {name!r}", f"one of {', '.join(trees)}")
    tree = trees[name]
    draws = _Draws(idata["posterior"], name)
    own = _model(tree)
    coefficients = _coefficients(own, tree, draws)
    settings = {"depth": own.depth, "branches": own.branches, "rows": int(tree.responses.seen.sum())}
    if not tree.transitions:
        return ExpertPosterior(own, coefficients, settings)
    memory = Memory(draws["offset"], draws["offset_precision"][..., None])
    return ExpertSeriesPosterior(
        own,
        coefficients,
        settings,
        memory=memory,
        transitions=tree.transitions,
        time=tree.time,
        series=tree.series or None,
    )


class _Draws:
    """The draws of a tree's variables by their names without the tree's, float64 (chain, draw, ...)."""

    def __init__(self, group: Any, name: str):
        self.group, self.name = group, name

    def __getitem__(self, own: str) -> np.ndarray:
        full = f"{self.name}_{own}"
        if full not in self.group:
            raise ModelError(f"the draws hold no {full!r}", "the draws of this very model")
        values = self.group[full].transpose("chain", "draw", ...).to_numpy()
        return np.ascontiguousarray(values, np.float64)


def _model(tree: Any) -> ExpertModel:
    """Return what is explained by what, in units under which the draws mean what they mean in the model."""
    targets, covariates = list(_targets(tree)), tree.covariates
    if covariates is None:
        columns = tuple(Column(name, "real", (-np.inf, np.inf)) for name in tree.names)
        covariates = Covariates(Schema(columns), tuple(Covariate(name, name, -1, 0.0, 1.0) for name in tree.names))
    names = tuple(response.name for response in tree.responses.each)
    both = sorted({*names} & {*covariates.schema.names})
    if both:
        raise ModelError(f"column {both[0]!r} is both response and covariate", "one or the other")
    schema = Schema((*covariates.schema.columns, *(column for column, _ in targets)), covariates.schema.set_aside)
    covariates = replace(covariates, schema=schema)
    depth, branches = tree.shape
    experts = tuple(KIND_NAMES[response.kind] for response in tree.responses.each)
    offset = np.array([offset for _, offset in targets])
    return ExpertModel(schema, names, covariates, covariates, depth, experts, offset, branches)


def _targets(tree: Any) -> Iterator[tuple[Column, float]]:
    """Yield each response's column, and the offset of its predictor in the family's units."""
    table = tree.responses.table
    for position, response in enumerate(tree.responses.each):
        column, offset = table.schema.columns[position], response.offset
        values = table.values[position, table.observed[position]]
        if response.kind == GAUSSIAN:
            column = as_real(column, values, (-np.inf, np.inf))
            # of the model: a predictor of 0 is the offset
            column, offset = replace(column, location=response.offset, scale=response.scale), 0.0
        elif response.kind == GAMMA:
            column = as_real(column, values, (0.0, np.inf))
            offset -= float(np.log(column.scale))
        yield column, offset


def _coefficients(model: ExpertModel, tree: Any, draws: _Draws) -> Coefficients:
    precision, node, dispersion, noise = [], [], [], []
    for response, kind in zip(tree.responses.each, model.kind, strict=True):
        precision.append(draws[f"precision{response.suffix}"])
        own = draws[f"coefficient{response.suffix}"]
        node.append(own if own.ndim == 5 else own[:, :, :, None])
        both, n_leaf = precision[-1].shape[:2], (model.n_leaf,)
        of_leaf = {GAUSSIAN: "variance", GAMMA: "shape"}.get(int(kind))
        dispersion.append(draws[f"{of_leaf}{response.suffix}"] if of_leaf else np.ones(both + n_leaf))
        noise.append(draws[f"noise{response.suffix}"] if kind == GAUSSIAN else np.ones(both))
    both = precision[0].shape[:2]
    return Coefficients(
        gate=draws["gate"] if model.depth else np.zeros((*both, 0, len(model.covariates.names))),
        node=np.concatenate(node, axis=3),
        dispersion=np.stack(dispersion, axis=-1),
        gate_precision=draws["gate_precision"][..., None] if model.depth else np.ones((*both, 1)),
        precision=np.stack(precision, axis=-1),
        noise=np.stack(noise, axis=-1),
    )
