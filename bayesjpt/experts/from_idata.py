"""A posterior of experts from the draws of a PyMC model that holds a `bayesjpt.ExpertTree`.

It looks at what the tree left with its variables, and imports no PyMC.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bayesjpt.errors import ModelError, warn
from bayesjpt.experts.model import ExpertModel, as_real
from bayesjpt.experts.posterior import ExpertPosterior
from bayesjpt.experts.series import ExpertSeriesPosterior
from bayesjpt.kernels.expert_series import Memory
from bayesjpt.kernels.expert_series_start import slots
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, KIND_NAMES, MULTINOMIAL, Coefficients
from bayesjpt.table.covariates import INTERCEPT, Covariate, Covariates
from bayesjpt.table.schema import Column, Schema


def from_model(idata: Any, model: Any, name: str | None) -> ExpertPosterior:
    """Return the posterior of a tree of a model; see `ExpertPosterior.from_idata`."""
    if not hasattr(model, "basic_RVs"):
        raise ModelError(f"a {type(model).__name__} in place of a model", "the pm.Model that was sampled")
    trees = {str(rv.name): rv.tag.explained for rv in model.basic_RVs if hasattr(rv.tag, "explained")}
    if not trees:
        raise ModelError(
            "a model without a tree of experts",
            "one with bj.ExpertTree",
            "Pass the model that bj.ExpertTree was built in, not one made of it.",
        )
    if name is None:
        if len(trees) > 1:
            raise ModelError(f"trees {', '.join(trees)} in one model", "name= one of them")
        name = next(iter(trees))
    if name not in trees:
        raise ModelError(f"no tree of experts {name!r}", f"one of {', '.join(trees)}")
    tree = trees[name]
    try:
        group = idata["posterior"]
    except (KeyError, TypeError, AttributeError):
        raise ModelError(f"a {type(idata).__name__} without a group posterior", "the draws of pm.sample") from None
    draws, experts = _Draws(group, name), _model(tree)
    coefficients = _coefficients(experts, tree, draws)
    settings = {"depth": experts.depth, "branches": experts.branches, "rows": int(tree.responses.seen.sum())}
    _check_values(idata, model, name, tree.responses)
    if not tree.transitions:
        return ExpertPosterior(experts, coefficients, settings)
    n_slot = slots(experts.depth, tree.transitions)[2]
    memory = Memory(draws.read("offset", experts.n_gate, n_slot), draws.read("offset_precision")[..., None])
    return ExpertSeriesPosterior(
        experts,
        coefficients,
        settings,
        memory=memory,
        transitions=tree.transitions,
        time=tree.time,
        series=tree.series or None,
    )


class _Draws:
    """The draws of a tree's variables by their names without the tree's."""

    def __init__(self, group: Any, name: str):
        self.group, self.name = group, name

    def read(self, variable: str, *axes: int | Sequence[str]) -> np.ndarray:
        """Return the draws of a variable, float64 (chain, draw, ...).

        Parameters
        ----------
        variable : str
        axes : int or sequence of str
            Of the tree's model: how long each other axis is, or what stands along it.

        Raises
        ------
        ModelError
            Where the draws are of another model, of whose shapes kernels would read past the end.
        """
        full = f"{self.name}_{variable}"
        if full not in self.group:
            raise ModelError(f"the draws hold no {full!r}", _THIS_MODEL)
        values = self.group[full].transpose("chain", "draw", ...)
        shape = tuple(axis if isinstance(axis, int) else len(axis) for axis in axes)
        if values.shape[2:] != shape:
            raise ModelError(f"draws of {full!r} of shape {values.shape[2:]}", f"{shape}, {_THIS_MODEL}")
        for dim, axis in zip(values.dims[2:], axes, strict=True):
            if isinstance(axis, int) or dim not in values.coords:
                continue
            found = [str(each) for each in values.coords[dim].to_numpy().tolist()]
            if found != list(axis):
                raise ModelError(f"draws of {full!r} along {', '.join(found)}", f"{', '.join(axis)}, {_THIS_MODEL}")
        return np.ascontiguousarray(values.to_numpy(), np.float64)


_THIS_MODEL = "the draws of this very model"


def _check_values(idata: Any, model: Any, name: str, responses: Any) -> None:
    """Raise `ModelError` where draws are of as many other values of y; warn where the model's have been set since.

    Of values that were set, sampled and set again the model knows nothing, so draws of them may be its own.
    """
    try:
        given = idata["observed_data"][name].to_numpy()
    except (KeyError, TypeError, AttributeError):
        return
    first = responses.values
    first = np.where(responses.seen if first.ndim == 1 else responses.seen[:, None], first, np.nan)
    if given.shape != first.shape or _alike(given, first):
        return
    now = model.rvs_to_values[model[name]].eval()
    if _alike(given, now):
        return
    what = f"draws given other values of {name!r} than the model's"
    if _alike(first, np.where(np.isnan(first), np.nan, now) if now.shape == first.shape else now):
        raise ModelError(what, _THIS_MODEL)
    warn(f"{what}, which have been set since it was made; are they {_THIS_MODEL}?")


def _alike(these: np.ndarray, those: np.ndarray) -> bool:
    return these.shape == those.shape and np.allclose(these, those, rtol=1e-6, atol=0.0, equal_nan=True)


def _model(tree: Any) -> ExpertModel:
    """Return what is explained by what, in units under which the draws mean what they mean in the model."""
    targets, covariates = list(_targets(tree)), tree.covariates
    if covariates is None:
        columns = tuple(Column(name, "real", (-np.inf, np.inf)) for name in tree.names)
        covariates = Covariates(Schema(columns), tuple(Covariate(name, name, -1, 0.0, 1.0) for name in tree.names))
    names = tuple(response.name for response in tree.responses.each)
    for what, columns in (("covariate", covariates.schema.names), ("time", [tree.time]), ("series", [tree.series])):
        both = sorted({*names} & {*columns})
        if both:
            raise ModelError(f"column {both[0]!r} is both response and {what}", "one or the other")
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
    names = (INTERCEPT, *tree.names)
    precision, node, dispersion, noise = [], [], [], []
    for response, kind in zip(tree.responses.each, model.kind, strict=True):
        suffix = response.suffix
        precision.append(draws.read(f"precision{suffix}", model.depth + 1))
        labels = (response.labels,) if kind == MULTINOMIAL else ()
        coefficient = draws.read(f"coefficient{suffix}", model.n_node, *labels, names)
        node.append(coefficient if labels else coefficient[:, :, :, None])
        both = precision[-1].shape[:2]
        of_leaf = {GAUSSIAN: "variance", GAMMA: "shape"}.get(int(kind))
        dispersion.append(draws.read(f"{of_leaf}{suffix}", model.n_leaf) if of_leaf else np.ones((*both, model.n_leaf)))
        noise.append(draws.read(f"noise{suffix}") if kind == GAUSSIAN else np.ones(both))
    both = precision[0].shape[:2]
    gated = model.depth > 0
    return Coefficients(
        gate=draws.read("gate", model.n_leaf - 1, names) if gated else np.zeros((*both, 0, len(names))),
        node=np.concatenate(node, axis=3),
        dispersion=np.stack(dispersion, axis=-1),
        gate_precision=draws.read("gate_precision")[..., None] if gated else np.ones((*both, 1)),
        precision=np.stack(precision, axis=-1),
        noise=np.stack(noise, axis=-1),
    )
