"""The block: a circuit's weights, parameters and rows as random variables inside any PyMC model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymc as pm

from bayesjpt.circuit.arrays import Circuit, start_params
from bayesjpt.circuit.check import check_circuit, check_leaves_fit, check_samplable
from bayesjpt.circuit.layout import Layout, make_layout
from bayesjpt.circuit.packed import PACKED, pack
from bayesjpt.circuit.priors import Priors, hyper_by_name
from bayesjpt.circuit.scales import scale_name
from bayesjpt.circuit.type_prior import COLUMNS, MEMBERS, ColumnTypes, column_type_labels
from bayesjpt.defaults import ALPHA, ESS, GAMMA
from bayesjpt.errors import CircuitError, ModelError
from bayesjpt.families import registry
from bayesjpt.kernels.samplers import BLOCKED, check_sampler
from bayesjpt.model.blocks import TYPE_PRIOR, check_name
from bayesjpt.model.circuit_rows import CircuitRows, FrozenCircuit, families_without_gradient
from bayesjpt.model.concentration import block_priors, divide_by, mark_hyperparameters
from bayesjpt.model.flat_vectors import placed, type_weights
from bayesjpt.model.groups import (
    GROUP,
    KAPPA,
    FrozenGroups,
    GroupedRows,
    Groups,
    checked_kappa,
    flat_weights,
    group_weights,
    weights_of_groups,
)
from bayesjpt.model.imputed import GAP, IMPUTED, CompletedRows, ImputedCells, gap_labels
from bayesjpt.model.priors import parameter_variable, scale_variable, type_prior_variable, weight_variable
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table

_OWN_VARIABLES = ("data", "missing", "type_weights", TYPE_PRIOR, PACKED.strip("_"), IMPUTED.strip("_"))
_OWN_DIMS = ("obs_id", "feature", "likelihood", "column_type", GROUP, GAP.strip("_"))
"""Behind a block's name and an underscore; beside those of its layout and of the factors of its priors."""


class CircuitMixture:
    """A circuit as one more distribution of a PyMC model: ``bj.CircuitMixture("x", circuit, table)``.

    Registers, all prefixed by the block's name: the weights of structure sums (``x_sum_weights``) and of likelihood
    dictionaries (``x_likelihood_weights``), one variable for each parameter of each family (``x_normal_mu``, ...), the
    factors of their priors that leaves of a column share (``x_normal_scale``, ... ; see `SharedScale`), the
    data (``x_data``, with NaN in missing cells, and ``x_missing``), circuit and schema in a form that travels with the
    draws (``x_circuit``), and the share of each likelihood in each column (``x_type_weights``); with
    ``type_prior="columns"`` also the weights of the columns' types (``x_type_prior``).
    ``pm.sample()`` samples all of them by Gibbs sweeps, next to any step of the model's other variables.

    Parameters
    ----------
    name : str
        Name of the observed variable, and prefix of all others.
    circuit : Circuit
        What a learner such as `bayesjpt.learn_mspn` returned.
    data : Table
        Rows to condition on. Missing cells are marginalised exactly, unless `impute`.
    gamma : float, vector or tensor, default 0.1
        Dirichlet concentration per edge at structure sums: one number, one an edge, or an expression of the model's
        random variables of either form. The sweeps draw the continuous variables of such an expression, too, with the
        weights integrated out.
    alpha : float, vector or tensor, default 0.1
        Dirichlet concentration per member of a likelihood dictionary; likewise.
    prior : str, default "default"
        Priors of the families' parameters: ``default`` (parts of a column lie where the column lies and are narrower;
        how narrow is a factor that is drawn) or ``abda`` (the paper's, in raw units).
    type_prior : str, default "members"
        How the concentration of a dictionary, alpha for each member, is divided: evenly over its ``members``; over its
        ``types`` first and then over the families of each; or, ``columns``, by weights of types that all leaves of a
        column share, ``x_type_prior``, with a flat Dirichlet prior. Dictionaries of a single type have nothing to
        divide; atoms and backgrounds, which have no type, keep alpha.
    sampler : str, default "blocked"
        How Gibbs sweeps draw the allocations of rows: ``blocked``, all at once given weights and parameters; or
        ``collapsed``, then also one after the other given all others, weights and conjugate parameters integrated out,
        which takes many times as long. One step then has to draw the whole block.
    ess : float, vector, tensor or BDeu, default 1
        Imaginary rows of the prior of each split, divided evenly over its ways; of all splits together (`BDeu`). Or one
        number an edge, its Dirichlet concentration.
    transforms : bool, default False
        Make the block for samplers that follow gradients (NUTS, ``pm.fit``, ``pm.find_MAP``) instead of Gibbs sweeps:
        its variables then live on the whole line, begin at the learner's estimate, and other factors may depend on
        them.
    impute : bool, default False
        Make the missing cells random variables of the model, ``x_imputed``, drawn by a step of their own, so that other
        factors may depend on whole rows. A missing cell has a label of the training table, or a number in the support
        of its column.

    group : sequence (n_row,), optional
        The group of each row: parameters are shared, and each group has weights of its own at the sums of the
        structure, ``x_group_sum_weights`` with the dim ``x_group``, drawn towards the shared ones, ``x_sum_weights``:
        Dirichlet(kappa pi) at each sum. Gibbs sweeps draw them where `gamma`, `alpha` and `ess` are numbers.
    kappa : float or scalar tensor, default 10
        Imaginary rows of a sum by which a group's weights are drawn towards the shared ones: a number, or an expression
        of the model's random variables.

    Returns
    -------
    TensorVariable
        The observed variable, (row, column), in the user's units; labels are codes in the order of the schema. With
        `impute` the rows with their missing cells filled by ``x_imputed``.

    Raises
    ------
    ModelError
        For data that are not a Table or do not fit the circuit, a name that PyMC cannot use, invalid concentrations, an
        unknown prior, sampler or way to divide alpha, one alpha an edge that is to be divided, transforms of a block
        with a likelihood that has no gradient, or transforms and a sampler of sweeps, or `impute` and the
        collapsed one; for groups of another number of rows, or of a circuit without sums, in sweeps also with
        concentrations that are expressions, ``type_prior="columns"`` or the collapsed sampler; for a `kappa` that is
        no positive number or scalar expression, or without groups. The model is left as it was.

    Notes
    -----
    Another random variable or potential that depends on the block's variables makes conjugate updates wrong; the step
    refuses such a model when it is built, and names the factor. Parameters are in standardised units: a family sees
    (x - location) / scale, or x / scale where it is positive; densities are in the user's units.

    References
    ----------
    Vergari, Molina, Peharz, Ghahramani, Kersting, Valera (2019). Automatic Bayesian Density Analysis. AAAI, section 4.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pymc as pm, bayesjpt as bj
    >>> rng = np.random.default_rng(1)
    >>> table = bj.as_table(pd.DataFrame({"height": rng.normal(size=50), "count": rng.poisson(3.0, size=50)}))
    >>> circuit = bj.learn_mspn(table, rng)
    >>> with pm.Model() as model:
    ...     rows = bj.CircuitMixture("x", circuit, table)
    >>> rows.name, "x_normal_variance" in [rv.name for rv in model.free_RVs]
    ('x', True)

    A regression on a covariate with missing cells:

    >>> frame = pd.DataFrame({"height": rng.normal(size=50), "count": rng.poisson(3.0, size=50)})
    >>> gaps = bj.as_table(frame.mask(rng.random(frame.shape) < 0.2))
    >>> with pm.Model() as model:
    ...     rows = bj.CircuitMixture("x", circuit, bj.as_table(gaps.to_frame(), schema=table.schema), impute=True)
    ...     y = pm.Normal("y", pm.Normal("slope") * rows[:, 0], 1.0, observed=rng.normal(size=50))
    >>> "x_imputed" in [rv.name for rv in model.free_RVs]
    True
    """

    def __new__(
        cls,
        name: str,
        circuit: Circuit,
        data: Table,
        *,
        gamma: Any = GAMMA,
        alpha: Any = ALPHA,
        prior: str = "default",
        type_prior: str = MEMBERS,
        sampler: str = BLOCKED,
        ess: Any = ESS,
        transforms: bool = False,
        impute: bool = False,
        group: Any = None,
        kappa: Any = KAPPA,
    ):
        model = pm.modelcontext(None)
        _check(model, name, circuit, data)
        _check_flags(transforms=transforms, impute=impute)
        groups = None if group is None else Groups(group, data.n_row)
        layout = make_layout(circuit, data.schema)
        priors, expressions = block_priors(
            circuit, data.schema, layout, gamma=gamma, alpha=alpha, prior=prior, type_prior=type_prior, ess=ess
        )
        check_sampler(sampler)
        if transforms:
            _check_gradients(name, circuit)
            _check_swept(name, sampler)
        if impute and sampler != BLOCKED:
            raise ModelError(f"block {name!r} with impute=True and sampler={sampler!r}", f"sampler={BLOCKED!r}")
        kappa = _check_grouped(name, layout, kappa, group is not None, impute)
        if group is not None and not transforms:
            _check_grouped_sweeps(name, expressions, type_prior, sampler)
        full = model.name_for(name)  # of a named submodel: PyMC gives its prefix to variables, and not to dims
        _check_free(model, name, full, layout, priors)
        _add_coords(model, full, layout, data)
        types = priors.column_types
        if types.n_weight:
            weight_of_types = _type_prior(name, types, column_type_labels(circuit, data.schema), transforms)
            priors, expressions = divide_by(weight_of_types, types, layout, priors, expressions)
        if not transforms:
            mark_hyperparameters(model, list(expressions.values()))
        values, missing = _rows(name, data)
        pm.Data(f"{name}{PACKED}", pack(circuit, data.schema))  # travels with the draws, so that they need no model
        concentrations = {w.name: priors.concentration[w.edges] for w in layout.weights} | expressions
        starts = layout.split(start_params(circuit)) if transforms else {}
        weights = _weights(name, layout, concentrations, starts)
        by_group = {} if groups is None else group_weights(name, layout, weights, groups, kappa, starts)
        variables = weights | _parameters(name, layout, priors, data.schema, starts)
        weight, theta = _flat(circuit, layout, variables)
        _type_weights(name, circuit, data.schema, weight)
        dims = (f"{full}_obs_id", f"{full}_feature")
        if groups is not None:
            of_groups = FrozenGroups(circuit, data.schema, priors, groups=groups, swept=not transforms)
            matrix = flat_weights(layout, weight, by_group, groups.labels.size)
            return GroupedRows(name, of_groups, missing, matrix, theta, observed=values, dims=dims)
        frozen = FrozenCircuit(circuit, data.schema, priors, swept=not transforms, sampler=sampler)
        rows = CircuitRows(name, frozen, missing, weight, theta, observed=values, dims=dims)
        return _imputed(name, frozen, data, (values, missing, weight, theta)) if impute else rows


def _imputed(name: str, frozen: FrozenCircuit, data: Table, given: tuple) -> Any:
    """Register the missing cells, and return the rows with these filled in."""
    model = pm.modelcontext(None)
    dim = f"{model.name_for(name)}{GAP}"
    model.add_coord(dim, gap_labels(data.names, ~data.observed.T))
    values, missing, weight, theta = given
    cells = ImputedCells(f"{name}{IMPUTED}", frozen, values, missing, weight, theta, dims=dim, default_transform=None)
    return CompletedRows(cells.name)(values, missing, cells)


def _check(model: pm.Model, name: str, circuit: Circuit, data: Table) -> None:
    check_name(model, name)
    if not isinstance(data, Table):
        raise ModelError(
            f"data of type {type(data).__name__}",
            "a bayesjpt Table",
            "Make one with bj.as_table(frame) or bj.read_table",
        )
    if not isinstance(circuit, Circuit):
        raise ModelError(f"circuit of type {type(circuit).__name__}", "what a learner such as bj.learn_mspn returned")
    check_circuit(circuit, data.n_column)
    try:
        check_leaves_fit(circuit, data.schema)
    except CircuitError as error:
        raise ModelError(error.found, error.expected, error.remedy) from None
    check_samplable(circuit, data.schema)


def _check_flags(**flags: Any) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_):  # "no" would be taken for yes
            raise ModelError(f"{name}={value!r}", "True or False")


def _check_free(model: pm.Model, name: str, full: str, layout: Layout, priors: Priors) -> None:
    """Raise where the model has a variable or a coordinate already that the block would make: before it makes any."""
    scales = map(scale_name, np.unique(priors.scales.family).tolist())
    own = (*_OWN_VARIABLES, *layout.names(), *scales, *(f"{GROUP}_{weight.name}" for weight in layout.weights))
    taken = [f"{name}_{suffix}" for suffix in own if f"{name}_{suffix}" in model]
    dims = (*_OWN_DIMS, *layout.dims())
    taken += [f"{full}_{suffix}" for suffix in dims if f"{full}_{suffix}" in model.coords]
    if taken:
        raise ModelError(f"block {name!r} in a model that has {taken[0]!r} already", "another name")


def _rows(name: str, data: Table) -> tuple[Any, Any]:
    """Register the rows, (row, column), with NaN in missing cells, and the mask of these."""
    full = pm.modelcontext(None).name_for(name)
    dims = (f"{full}_obs_id", f"{full}_feature")
    values = pm.Data(f"{name}_data", np.ascontiguousarray(data.values.T), dims=dims)
    missing = np.ascontiguousarray(~data.observed.T)
    values.set_value(np.where(missing, np.nan, data.values.T))  # pm.Data itself refuses NaN
    return values, pm.Data(f"{name}_missing", missing, dims=dims)


def _type_prior(name: str, types: ColumnTypes, labels: list[str], transforms: bool):
    """Return the random variable of the weights of the columns' types."""
    model = pm.modelcontext(None)
    dim = f"{model.name_for(name)}_column_type"
    model.add_coord(dim, labels)
    return type_prior_variable(f"{name}_{TYPE_PRIOR}", dim, types, start=types.even() if transforms else None)


def _add_coords(model: pm.Model, name: str, layout: Layout, data: Table) -> None:
    model.add_coord(f"{name}_obs_id", np.arange(data.n_row))
    model.add_coord(f"{name}_feature", list(data.schema.names))
    model.add_coord(f"{name}_likelihood", [family.name for family in registry.FAMILIES])
    for dim, labels in layout.dims().items():
        model.add_coord(f"{name}_{dim}", list(labels))


def _check_gradients(name: str, circuit: Circuit) -> None:
    without = families_without_gradient(circuit.leaf_family)
    if without:
        raise ModelError(
            f"block {name!r} with transforms=True and the likelihood {', '.join(without)}, which has no gradient",
            "likelihoods with accumulate_gradient",
            "Leave transforms out: the Gibbs step samples every likelihood",
        )


def _check_swept(name: str, sampler: str) -> None:
    if sampler != BLOCKED:
        raise ModelError(
            f"block {name!r} with transforms=True and sampler={sampler!r}, which is one of Gibbs sweeps",
            "one of the two: no sweep draws the variables of a block with transforms",
            "Leave transforms out, or sampler",
        )


def _check_grouped(name: str, layout: Layout, kappa: Any, grouped: bool, impute: bool) -> Any:
    """Return kappa, checked; raise where a block cannot have groups."""
    if not grouped:
        if kappa is not KAPPA:
            raise ModelError(f"kappa={kappa!r} of block {name!r}, whose rows have no groups", "group=, or no kappa")
        return kappa
    if impute:
        raise ModelError(f"block {name!r} with group= and impute=True", "one of the two")
    if not weights_of_groups(layout):
        raise ModelError(f"groups of block {name!r}, whose circuit has no sum but dictionaries", "a mixture, or splits")
    return checked_kappa(kappa)


def _check_grouped_sweeps(name: str, expressions: dict, type_prior: str, sampler: str) -> None:
    """Raise where sweeps over groups cannot draw a block."""
    remedy = "Leave it out, or make the block with transforms=True for NUTS"
    if expressions:
        raise ModelError(f"block {name!r} with group= and concentrations that are expressions", "numbers", remedy)
    if type_prior == COLUMNS:
        raise ModelError(f"block {name!r} with group= and type_prior={type_prior!r}", f"{MEMBERS!r} or 'types'", remedy)
    if sampler != BLOCKED:
        raise ModelError(f"block {name!r} with group= and sampler={sampler!r}", f"sampler={BLOCKED!r}", remedy)


def _weights(name: str, layout: Layout, concentrations: dict, starts: dict) -> dict:
    full = pm.modelcontext(None).name_for(name)
    return {
        variable.name: weight_variable(
            f"{name}_{variable.name}",
            f"{full}_{variable.dim}",
            variable,
            concentrations[variable.name],
            start=starts.get(variable.name),
        )
        for variable in layout.weights
    }


def _scales(name: str, priors: Priors, schema: Schema, transforms: bool) -> dict:
    """Return {family: random variable of its factors, one a column} and register their dims."""
    model = pm.modelcontext(None)
    out: dict = {}
    for family in np.unique(priors.scales.family).tolist():
        dim = f"{model.name_for(name)}_{registry.FAMILIES[family].name}_column"
        mine = np.flatnonzero(priors.scales.family == family)
        model.add_coord(dim, [schema.columns[column].name for column in priors.scales.column[mine]])
        out[family] = scale_variable(f"{name}_{scale_name(family)}", dim, priors.scales.shape[mine], transforms)
    return out


def _parameters(name: str, layout: Layout, priors: Priors, schema: Schema, starts: dict) -> dict:
    out: dict = {}
    scales = _scales(name, priors, schema, transforms=bool(starts))
    entry = priors.scales.entry_of_leaf()
    full = pm.modelcontext(None).name_for(name)
    for variable in layout.parameters:
        earlier = {
            other.parameter.name: out[other.name]
            for other in layout.parameters
            if other.family == variable.family and other.name in out
        }
        shared = scales.get(variable.family)
        scale = None if shared is None else shared[entry[variable.leaves]]
        arguments = variable.parameter.arguments(hyper_by_name(priors, variable, scale), earlier)
        out[variable.name] = parameter_variable(
            f"{name}_{variable.name}", f"{full}_{variable.dim}", variable, arguments, start=starts.get(variable.name)
        )
    return out


def _flat(circuit: Circuit, layout: Layout, variables: dict):
    """Return the symbolic flat vectors: weight (n_edge,), 1 at products, and theta (n_theta,)."""
    weights = [(variable.edges, variables[variable.name]) for variable in layout.weights]
    params = [(variable.positions, variables[variable.name]) for variable in layout.parameters]
    return placed(circuit.n_edge, weights, 1.0), placed(circuit.n_theta, params, 0.0)


def _type_weights(name: str, circuit: Circuit, schema: Schema, weight):
    """Register the share of each likelihood function in each column (ABDA, equation 3)."""
    shares = type_weights(circuit, len(schema), len(registry.FAMILIES), weight)
    full = pm.modelcontext(None).name_for(name)
    pm.Deterministic(f"{name}_type_weights", shares, dims=(f"{full}_feature", f"{full}_likelihood"))
