"""Which blocks a model holds, which of their variables a step may draw, and what would make those draws wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm
from pytensor.graph.traversal import ancestors

from bayesjpt.circuit.layout import LIKELIHOOD_WEIGHTS, make_layout
from bayesjpt.circuit.scales import scale_name
from bayesjpt.errors import ModelError
from bayesjpt.kernels.samplers import COLLAPSED
from bayesjpt.model.block_variables import BlockVariable
from bayesjpt.model.circuit_rows import CircuitRowsRV, FrozenCircuit
from bayesjpt.model.groups import GROUP, FrozenGroups, weights_of_groups
from bayesjpt.model.imputed import IMPUTED, ImputedCellsRV

TYPE_PRIOR = "type_prior"
"""Name, without the block's prefix, of the weights of types that divide the concentrations of dictionaries."""


def _above_parameters(rows) -> set[str]:
    """Return the names of a block's variables on which its other variables depend."""
    return {f"{rows.name}_{name}" for name in (TYPE_PRIOR, *scale_names(rows.owner.op.frozen).values())}


def find_blocks(model: pm.Model) -> dict:
    """Return {observed variable of a block: its free variables} of the blocks of a model that Gibbs sweeps may draw.

    A block made with ``transforms=True`` has none of their kind, nor has one whose variables ``pm.do`` replaced.
    """
    blocks = {}
    for rows in model.basic_RVs:
        if rows.owner is not None and isinstance(rows.owner.op, CircuitRowsRV):
            _, _, _, *parameters = rows.owner.inputs
            above = set(ancestors(parameters, blockers=model.basic_RVs))
            of_blocks = [rv for rv in model.free_RVs if isinstance(rv.owner.op, BlockVariable)]
            members = [rv for rv in of_blocks if rv in above]
            if members:
                blocks[rows] = [rv for rv in of_blocks if rv in above or rv.name in _above_parameters(rows)]
    return blocks


def check_name(model: pm.Model, name: Any) -> None:
    """Raise `ModelError` for a name that PyMC cannot use, or that the model has already."""
    if not isinstance(name, str) or not name or "/" in name:
        raise ModelError(f"block name {name!r}", "a non-empty string without /")
    if name in model:
        raise ModelError(f"a block or variable {name!r} in a model that has one of that name", "another name")


def imputed_cells(model: pm.Model, rows) -> Any:
    """Return the random variable of the missing cells of a block, or None where they are summed out."""
    name = f"{rows.name}{IMPUTED}"
    return next((rv for rv in model.basic_RVs if rv.name == name and isinstance(rv.owner.op, ImputedCellsRV)), None)


def variables_of(model: pm.Model, vars) -> list:
    """Return the random variables of some variables or value variables; all free ones of the model for None."""
    if vars is None:
        return list(model.free_RVs)
    return [model.values_to_rvs.get(v, v) for v in (vars if isinstance(vars, list | tuple) else [vars])]


def touched_blocks(model: pm.Model, rvs: list) -> dict:
    """Return {observed variable of a block: its free variables} of the blocks that hold some of the variables.

    Raises
    ------
    ModelError
        If there is none.
    """
    touched = {rows: members for rows, members in find_blocks(model).items() if set(members) & set(rvs)}
    if not touched:
        names = ", ".join(rv.name for rv in rvs) or "no variable"
        raise ModelError(
            f"{names} of no circuit block in the model",
            "the variables that bj.CircuitMixture made",
            "Where pm.do replaced a block's other variables, replace these, too",
        )
    return touched


def scale_names(frozen: FrozenCircuit) -> dict[int, str]:
    """Return {family: name, without the block's prefix, of the variable of its factors}."""
    return {family: scale_name(family) for family in np.unique(frozen.priors.scales.family).tolist()}


def drawn_jointly(frozen: FrozenCircuit, draws_type_prior: bool) -> list[tuple[str, ...]]:
    """Return the names, without the block's prefix, of what is drawn together: kinds of weights, and whole families.

    Weights of types are drawn with the weights of dictionaries integrated out, so these have to be drawn, too. Weights
    of dictionaries may be drawn while those of types are held.
    """
    layout = make_layout(frozen.circuit, frozen.schema)
    families = {family: [name] for family, name in scale_names(frozen).items()}
    for variable in layout.parameters:
        families.setdefault(variable.family, []).append(variable.name)
    more = {LIKELIHOOD_WEIGHTS: (TYPE_PRIOR,) if draws_type_prior else ()}
    weights = [(variable.name, *more.get(variable.name, ())) for variable in layout.weights]
    return [*weights, *(tuple(names) for names in families.values())]


def outside_factors(model: pm.Model, rows, variables: list) -> list[str]:
    """Return the names of factors outside the block that depend on its variables: they make its conditionals wrong."""
    mine = set(variables)
    basic = list(model.basic_RVs)
    block = {rows, *find_blocks(model).get(rows, []), imputed_cells(model, rows)}
    names = []
    for factor in [*basic, *model.potentials]:
        if factor in block:
            continue
        inputs = factor.owner.inputs if factor in set(basic) else [factor]
        if set(ancestors(list(inputs), blockers=basic)) & mine:
            names.append(factor.name)
    return names


def check_block(model: pm.Model, rows, members: list, drawn: list) -> None:
    """Raise unless conjugate draws of some of a block's variables, given all else, are right.

    Parameters
    ----------
    model : pm.Model
    rows : TensorVariable
        Observed variable of the block.
    members, drawn : list of TensorVariable
        Free variables of the block, and those that the step draws; the others are read from the point and held.

    Raises
    ------
    ModelError
        Naming the variables or factors and a remedy.
    """
    frozen = rows.owner.op.frozen
    block = repr(rows.name)
    grouped = isinstance(frozen, FrozenGroups)
    names = {*make_layout(frozen.circuit, frozen.schema).names(), *scale_names(frozen).values()}
    if grouped:
        names |= {
            f"{GROUP}_{variable.name}" for variable in weights_of_groups(make_layout(frozen.circuit, frozen.schema))
        }
    fixed = sorted({f"{rows.name}_{name}" for name in names} - {rv.name for rv in members})
    if fixed:
        raise ModelError(
            f"{', '.join(fixed)} of block {block} is no longer a free variable",
            "all variables of the block free",
            "Sample the model from before pm.do or pm.observe",
        )
    cells = imputed_cells(model, rows)
    if cells is not None and cells not in model.free_RVs:
        raise ModelError(
            f"{cells.name} of block {block} is no longer a free variable",
            "missing cells to be drawn",
            "Sample the model from before pm.do or pm.observe",
        )
    if rows not in model.observed_RVs:
        raise ModelError(f"block {block} is not observed", "an observed block", "Pass its rows as data")
    drawn_names = {rv.name for rv in drawn}
    left = [rv.name for rv in members if rv.name not in drawn_names]
    if left and (frozen.sampler == COLLAPSED or grouped):
        why = "its rows have groups" if grouped else f"its sampler is {COLLAPSED!r}"
        raise ModelError(
            f"{', '.join(left)} of block {block} is given to another step, and {why}",
            "all of the block's variables in one step: weights and parameters are integrated out together",
            "Leave the block out of step=" + ("" if grouped else ", or make it with sampler='blocked'"),
        )
    for names in drawn_jointly(frozen, f"{rows.name}_{TYPE_PRIOR}" in drawn_names):
        together = [f"{rows.name}_{name}" for name in names]
        held = [name for name in together if name not in drawn_names]
        if held and len(held) < len(together):
            raise ModelError(
                f"{', '.join(held)} of block {block} is given to another step",
                f"all of {', '.join(together)} in one step: they are drawn jointly",
                "Give that step all of them, or leave the block out of step=",
            )
    outside = outside_factors(model, rows, drawn)
    if outside:
        raise ModelError(
            f"{', '.join(outside)} depends on variables of block {block}: its conjugate updates would be wrong",
            "only Deterministics to depend on them",
            "Make it a function of data or of variables outside the block, make the block with transforms=True, or "
            "give what it depends on to a step of your own",
        )
