"""Slow twins: trees of experts by their definition, row by row, in NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import scipy.special
import scipy.stats


def path_probabilities(gate: np.ndarray, gate_x: np.ndarray, n_way: int = 2) -> np.ndarray:
    """Return the probability of each leaf: the product of the answers on its path from the root."""
    n_leaf = gate.shape[0] + 1
    out = np.ones(n_leaf)
    for leaf in range(n_leaf):
        node = gate.shape[0] // (n_way - 1) + leaf
        while node > 0:
            parent, way = (node - 1) // n_way, (node - 1) % n_way
            odds = gate[parent * (n_way - 1) : (parent + 1) * (n_way - 1)] @ gate_x
            out[leaf] *= scipy.special.softmax(np.concatenate([[0.0], odds]))[way]
            node = parent
    return out


def leaf_distribution(post, c: int, draw: tuple[int, int], leaf: int, x: np.ndarray):
    """Return the distribution of a target of numbers at one leaf, in the user's units, as SciPy has it.

    Of labels, their probabilities.
    """
    model = post.model
    chain, number = draw
    node = post.coefficients.node[chain, number, model.n_gate + leaf, model.at[c] : model.at[c + 1]]
    dispersion = post.coefficients.dispersion[chain, number, leaf, c]
    eta = node @ x + model.offset[c]
    column, kind = model.response.columns[c], model.experts[c]
    if kind == "gaussian":
        return scipy.stats.norm(column.location + column.scale * eta[0], column.scale * np.sqrt(dispersion))
    if kind == "poisson":
        return scipy.stats.poisson(np.exp(eta[0]))
    if kind == "gamma":
        return scipy.stats.gamma(dispersion, scale=column.scale * np.exp(eta[0]) / dispersion)
    rest = 1.0 - column.frequencies[-1] if column.other else 1.0
    if kind == "logistic":
        p = scipy.special.expit(eta[0])
        return rest * np.array([1.0 - p, p])
    return rest * scipy.special.softmax(eta)


def log_density(post, table, draw: tuple[int, int]) -> np.ndarray:
    """Return the log density of each row under one draw."""
    model = post.model
    x, gate_x = model.covariates.matrix(table), model.gate_covariates.matrix(table)
    out = np.empty(table.n_row)
    for row in range(table.n_row):
        weight = path_probabilities(post.coefficients.gate[draw], gate_x[row], model.branches)
        total = 0.0
        for leaf in range(model.n_leaf):
            value = weight[leaf]
            for c, name in enumerate(model.targets):
                y = table.values[table.schema.index(name), row]
                found = leaf_distribution(post, c, draw, leaf, x[row])
                if isinstance(found, np.ndarray):
                    value *= found[int(y)]
                elif model.experts[c] == "poisson":
                    value *= found.pmf(y)
                else:
                    value *= found.pdf(y)
            total += value
        out[row] = np.log(total)
    return out
