"""The log density of rows in jax.numpy, and what PyTensor calls when it compiles a block for JAX.

The numba kernel walks nodes one by one; here nodes of one height, kind and number of children are one array operation,
and JAX differentiates it. Values are logarithms, (n_node, n_row). The structure is read while PyTensor compiles, from
the constants of the graph; rows, weights and parameters may be traced.
"""

from __future__ import annotations

from typing import NamedTuple

import jax  # pyright: ignore[reportMissingImports] - an extra
import jax.numpy as jnp  # pyright: ignore[reportMissingImports] - an extra
import numpy as np
from pytensor.graph.basic import Constant
from pytensor.link.jax.dispatch.basic import jax_funcify

from bayesjpt.circuit.plan import INTERVAL, POINT, Plan
from bayesjpt.errors import ModelError
from bayesjpt.families import registry
from bayesjpt.model.circuit_rows import CircuitLogDensity, RememberedLogDensity, no_gradient
from bayesjpt.model.jax_families import JAX_FAMILIES, JaxFamily
from bayesjpt.model.node_groups import node_groups

HIDDEN = 1.0
"""What stands in missing cells while densities are evaluated: any number at which these are finite or zero."""


class LeafGroup(NamedTuple):
    """Leaves of one family that have as many parameters and constants."""

    family: JaxFamily
    leaves: np.ndarray
    theta_at: np.ndarray  # (n_leaf, n_theta)
    constants: np.ndarray  # (n_leaf, n_constant)


class JaxCircuit:
    """A circuit's log density as a function that JAX traces.

    Parameters
    ----------
    plan : Plan

    Raises
    ------
    ModelError
        Where the circuit holds a family that has no form in JAX, or one on a cell of which JAX has no mass.
    """

    def __init__(self, plan: Plan):
        _check(plan)
        self._plan = plan
        self._leaf_groups = _leaf_groups(plan)
        order = np.concatenate([group.leaves for group in self._leaf_groups])
        self._leaf_column = plan.feature_column[plan.leaf_value[order]]
        self._node_groups = node_groups(plan, np.argsort(order))

    def __call__(self, values, missing, log_weight, theta):
        """Return float64 (n_row,): log density of rows, (n_row, n_column), in the user's units."""
        plan = self._plan
        hidden = jnp.asarray(missing).T
        rows = jnp.where(hidden, HIDDEN, jnp.asarray(values).T)
        features = _features(plan, rows)
        atoms = _at_atoms(plan, rows)
        leaves = [_leaf_values(plan, group, features, atoms, theta) for group in self._leaf_groups]
        value = jnp.concatenate(leaves)
        seen = ~hidden[self._leaf_column]
        value = jnp.where(seen, value, 0.0)
        for group in self._node_groups:
            terms = value[group.children]
            children_seen = seen[group.children].any(axis=1)
            if group.is_product:
                new = terms.sum(axis=1)
            else:
                new = jnp.where(children_seen, _log_sum_exp(terms + log_weight[group.edges][:, :, None]), 0.0)
            value, seen = jnp.concatenate([value, new]), jnp.concatenate([seen, children_seen])
        root = value[-1]
        jacobian = jnp.where(hidden, 0.0, plan.column_log_jacobian[:, None]).sum(axis=0)
        # rows of density 0 have no gradient
        return jnp.where(root > -jnp.inf, root, -jnp.inf) + jacobian


def _check(plan: Plan) -> None:
    names = np.array([family.name for family in registry.FAMILIES])[plan.leaf_family]
    whole = "Give the columns kinds or families with such a form, or use a sampler that compiles with numba"
    unknown = sorted({str(name) for name in names if name not in JAX_FAMILIES})
    if unknown:
        raise ModelError(
            f"a block compiled for JAX with the likelihood {', '.join(unknown)}, which is not written in JAX",
            f"the likelihoods {', '.join(JAX_FAMILIES)}",
            f"{whole}: pm.sample() or nuts_sampler='nutpie'",
        )
    cut = plan.leaf_cut == INTERVAL
    bounded = sorted({str(name) for name in names[cut] if JAX_FAMILIES[name].log_mass is None})
    if bounded:
        known = ", ".join(name for name, family in JAX_FAMILIES.items() if family.log_mass is not None)
        raise ModelError(
            f"a block compiled for JAX with the likelihood {', '.join(bounded)} below a split of its column",
            f"below splits the likelihoods {known}",
            f"{whole}: pm.sample() or nuts_sampler='nutpie'",
        )


def _leaf_groups(plan: Plan) -> list[LeafGroup]:
    kinds = np.stack([plan.leaf_family, plan.theta_len, plan.const_len])
    groups = []
    for family, n_theta, n_constant in np.unique(kinds, axis=1).T.tolist():
        leaves = np.flatnonzero((kinds == np.array([[family], [n_theta], [n_constant]])).all(axis=0))
        groups.append(
            LeafGroup(
                JAX_FAMILIES[registry.FAMILIES[family].name],
                leaves,
                plan.theta_at[leaves][:, None] + np.arange(n_theta),
                plan.const[plan.const_at[leaves][:, None] + np.arange(n_constant)],
            )
        )
    return groups


def _features(plan: Plan, rows):
    """Return (n_feature, n_row): columns in the units of families, and what these prepare of them."""
    out: list = []
    for feature, source in enumerate(plan.feature_source.tolist()):
        leaf = plan.feature_leaf[feature]
        if source < 0:
            z = (rows[plan.feature_column[feature]] - plan.feature_offset[feature]) / plan.feature_scale[feature]
            out.append(z)
            continue
        family = JAX_FAMILIES[registry.FAMILIES[plan.leaf_family[leaf]].name]
        constants = plan.const[plan.const_at[leaf] : plan.const_at[leaf] + plan.const_len[leaf]]
        out.append(out[source] if family.prepare is None else family.prepare(out[source], constants) + 0.0)
    return jnp.stack(out)


def _at_atoms(plan: Plan, rows):
    """Return bool (n_column, n_row): where the value is an atom of its column."""
    atoms = [plan.atom_value[lo:hi] for lo, hi in zip(plan.atom_ptr[:-1], plan.atom_ptr[1:], strict=True)]
    return jnp.stack(
        [(row[:, None] == column_atoms).any(axis=1) for row, column_atoms in zip(rows, atoms, strict=True)]
    )


def _leaf_values(plan: Plan, group: LeafGroup, features, atoms, theta):
    """Return (n_leaf, n_row): log densities of the leaves of a group."""
    leaves = group.leaves
    parameters = theta[group.theta_at]
    value = group.family.log_density(
        features[plan.leaf_value[leaves]], features[plan.leaf_aux[leaves]], parameters, group.constants
    )
    value = jnp.broadcast_to(value, (leaves.size, features.shape[1]))
    column = plan.feature_column[plan.leaf_value[leaves]]
    value = jnp.where(atoms[column] & ~plan.leaf_is_atom[leaves][:, None], -jnp.inf, value)
    cut = plan.leaf_cut[leaves][:, None]
    if not (cut > 0).any():
        return value
    raw = features[plan.leaf_raw[leaves]]
    lower, upper = plan.leaf_lower[leaves][:, None], plan.leaf_upper[leaves][:, None]
    if (cut == INTERVAL).any():
        part = np.flatnonzero(cut[:, 0] == INTERVAL)
        assert group.family.log_mass is not None  # checked beforehand
        mass = group.family.log_mass(
            plan.leaf_lo[leaves][part], plan.leaf_hi[leaves][part], parameters[part], group.constants[part]
        )
        inside = (raw[part] >= lower[part]) & (raw[part] <= upper[part]) & (mass > -jnp.inf)[:, None]
        within = jnp.where(inside, value[part] - jnp.where(mass > -jnp.inf, mass, 0.0)[:, None], -jnp.inf)
        value = value.at[part].set(within)
    # the log-Jacobian is added to every row later: at a known value there is none
    known = jnp.where(raw == lower, -plan.column_log_jacobian[column][:, None], -jnp.inf)
    return jnp.where(cut == POINT, known, value)


def _log_sum_exp(terms):
    """Return the log sum of exponentials along axis 1, -inf, with derivative 0, where all are 0."""
    largest = jax.lax.stop_gradient(terms.max(axis=1, keepdims=True))
    largest = jnp.where(largest > -jnp.inf, largest, 0.0)
    total = jnp.exp(terms - largest).sum(axis=1)
    positive = total > 0.0
    return jnp.where(positive, jnp.log(jnp.where(positive, total, 1.0)) + largest[:, 0], -jnp.inf)


@jax_funcify.register(CircuitLogDensity)
def _circuit_log_density_jax(op, node, **kwargs):
    arrays = node.inputs[4:]
    if not all(isinstance(array, Constant) for array in arrays):
        raise ModelError("a circuit whose arrays are not constants, compiled for JAX", "one that CircuitMixture made")
    circuit = JaxCircuit(Plan(*(array.data for array in arrays)))

    def circuit_log_density(values, missing, log_weight, theta, *_plan):
        return circuit(values, missing, log_weight, theta)

    return circuit_log_density


@jax_funcify.register(RememberedLogDensity)
def _remembered_log_density_jax(op, node, **kwargs):
    raise no_gradient()
