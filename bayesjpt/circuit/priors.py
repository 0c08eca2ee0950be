"""Hyperparameters of every leaf and concentrations of every sum: what conditionals need to know of the priors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.bdeu import BDeu
from bayesjpt.circuit.layout import LIKELIHOOD_WEIGHTS, SPLIT_WEIGHTS, SUM_WEIGHTS, Layout, ParameterVariable
from bayesjpt.circuit.scales import Scales, make_scales
from bayesjpt.circuit.split_prior import imaginary_rows
from bayesjpt.circuit.type_prior import (
    MEMBERS,
    TYPES,
    ColumnTypes,
    check_type_prior,
    make_column_types,
    no_column_types,
)
from bayesjpt.defaults import ESS
from bayesjpt.errors import ModelError
from bayesjpt.families import registry
from bayesjpt.table.schema import Schema


class Priors(NamedTuple):
    """What the Gibbs step needs to know of the priors.

    Attributes
    ----------
    hyper : float64 (n_hyper,)
        Hyperparameters of all leaves, one leaf after the other.
    hyper_at : int32 (n_leaf + 1,)
    concentration : float64 (n_edge,)
        Dirichlet concentration of each edge, 0 at products. Where weights of types are drawn, that before they divide
        it; NaN where a PyMC model has an expression for it.
    scales : Scales
        Factors of the hyperparameters that leaves share, and that are drawn.
    column_types : ColumnTypes
        Weights of types that are drawn, and divide the concentrations: of ``type_prior="columns"``.
    """

    hyper: np.ndarray
    hyper_at: np.ndarray
    concentration: np.ndarray
    scales: Scales
    column_types: ColumnTypes

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all arrays by name."""
        fields = {name: value for name, value in self._asdict().items() if isinstance(value, np.ndarray)}
        return fields | self.scales._asdict() | self.column_types._asdict()


def make_priors(
    circuit: Circuit,
    schema: Schema,
    layout: Layout,
    *,
    gamma: float,
    alpha: float,
    prior: str,
    type_prior: str = MEMBERS,
    ess: float | BDeu = ESS,
) -> Priors:
    """Return the Priors of a circuit.

    Parameters
    ----------
    gamma, alpha : float
        Concentration per edge at latent sums and at dictionaries.
    prior : str
        Name of the priors of the families' parameters: ``default``, or ``abda`` for the paper's in raw units.
    type_prior : str
        One of `bayesjpt.circuit.type_prior.TYPE_PRIORS`; for ``columns`` concentrations are those of ``members``, and
        sweeps divide them by the weights of `Priors.column_types`.
    ess : float or BDeu
        Imaginary rows of each hard sum, divided evenly over its edges, or of all hard sums together.

    Raises
    ------
    ModelError
        For concentrations that are not positive numbers, a prior that some family does not have, or an unknown way to
        divide concentrations.
    """
    check_type_prior(type_prior)
    check_concentrations(gamma=gamma, alpha=alpha, ess=ess.rows if isinstance(ess, BDeu) else ess)
    hyper, hyper_at = _hyper_of_leaves(circuit, schema, prior)
    concentration = np.zeros(circuit.n_edge)
    unit = {SUM_WEIGHTS: float(gamma), LIKELIHOOD_WEIGHTS: float(alpha)}
    for variable in layout.weights:
        if variable.name == SPLIT_WEIGHTS:
            concentration[variable.edges] = imaginary_rows(circuit, ess)[variable.edges]
        else:
            concentration[variable.edges] = unit[variable.name]
    column_types = no_column_types() if type_prior == MEMBERS else make_column_types(circuit, schema)
    if type_prior == TYPES:
        concentration, column_types = column_types.divided(concentration, column_types.even()), no_column_types()
    scales = make_scales(circuit, schema, hyper_at, prior)
    return Priors(hyper, hyper_at, concentration, scales, column_types)


def _hyper_of_leaves(circuit: Circuit, schema: Schema, prior: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the hyperparameters of all leaves, and where each leaf's begin."""
    for number in np.unique(circuit.leaf_family):
        family = registry.FAMILIES[number]
        if prior not in family.priors:
            raise ModelError(f"family {family.name} has no prior {prior!r}", f"one of {', '.join(family.priors)}")
    columns = circuit.leaf_var.tolist()
    blocks = []
    for leaf, (number, column) in enumerate(zip(circuit.leaf_family.tolist(), columns, strict=True)):
        at = circuit.theta_at[leaf]
        start = circuit.start_theta[at : at + circuit.theta_len[leaf]]
        blocks.append(np.asarray(registry.FAMILIES[number].priors[prior](schema.columns[column], start), np.float64))
    hyper = np.concatenate(blocks)
    hyper_at = np.concatenate([[0], np.cumsum([block.size for block in blocks])]).astype(np.int32)
    if np.isnan(hyper).any():
        leaf = int(np.searchsorted(hyper_at, np.flatnonzero(np.isnan(hyper))[0], side="right")) - 1
        name, column = registry.FAMILIES[circuit.leaf_family[leaf]].name, schema.columns[columns[leaf]].name
        raise ModelError(f"prior {prior!r} of {name} is not a number on column {column!r}")
    return hyper, hyper_at


def check_concentrations(**values: object) -> None:
    """Raise `ModelError` for a concentration that is no positive number."""
    for name, value in values.items():
        if isinstance(value, bool) or not (
            isinstance(value, int | float | np.number) and np.isfinite(value) and value > 0
        ):
            raise ModelError(f"concentration {name} = {value!r}", "a positive number")


def hyper_by_name(priors: Priors, variable: ParameterVariable, scale: Any = None) -> dict[str, Any]:
    """Return the hyperparameters of a variable's leaves by name, one entry a leaf (a whole vector for a simplex).

    Parameters
    ----------
    priors : Priors
    variable : ParameterVariable
    scale : array or tensor (n_leaf_of_family,), optional
        The factor of each leaf, where the family shares one.
    """
    family = registry.FAMILIES[variable.family]
    names = family.hyper_names
    hyper: dict[str, Any]
    if variable.parameter.constraint == "simplex":
        blocks = [priors.hyper[priors.hyper_at[k] : priors.hyper_at[k + 1]] for k in variable.leaves]
        hyper = {names[0]: np.concatenate(blocks)}
        if scale is not None:
            scale = scale[np.repeat(np.arange(len(blocks)), [block.size for block in blocks])]
    else:
        at = priors.hyper_at[variable.leaves]
        hyper = {name: priors.hyper[at + i] for i, name in enumerate(names)}
    if scale is not None and family.shared_scale is not None:
        for name, power in family.shared_scale.exponents.items():
            hyper[name] = hyper[name] * scale**power
        for name, shift in family.shared_scale.shifts.items():
            hyper[name] = hyper[name] + shift * np.log(scale)
    return hyper
