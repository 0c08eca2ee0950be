"""Slow twin of hidden Markov decision trees: sums over all paths of a series, from the definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import scipy.special

from tests.experts import naive


def transition(gate: np.ndarray, offset: np.ndarray, gate_x: np.ndarray, before: int, transitions: str) -> np.ndarray:
    """Return the probability of each leaf given the leaf before, -1 for none."""
    n_leaf = gate.shape[0] + 1
    depth = round(math.log2(n_leaf))
    out = np.ones(n_leaf)
    for leaf in range(n_leaf):
        node = 0
        for level in range(depth):
            log_odds = gate[node] @ gate_x
            if before >= 0 and transitions == "leaf":
                log_odds += offset[node, before]
            if before >= 0 and transitions == "decision":
                went_right = f"{before:0{depth}b}"[level] == "1"
                log_odds += offset[node, 0] if went_right else -offset[node, 0]
            right = f"{leaf:0{depth}b}"[level] == "1"
            out[leaf] *= scipy.special.expit(log_odds if right else -log_odds)
            node = 2 * node + (2 if right else 1)
    return out


def evidence(post, table, draw: tuple[int, int]) -> np.ndarray:
    """Return the density of each row's seen targets at each leaf, float64 (n_row, n_leaf)."""
    model, x = post.model, post.model.covariates.matrix(table)
    out = np.ones((table.n_row, model.n_leaf))
    for row in range(table.n_row):
        for leaf in range(model.n_leaf):
            for c, name in enumerate(model.targets):
                position = table.schema.index(name)
                if not table.observed[position, row]:
                    continue
                y, found = table.values[position, row], naive.leaf_distribution(post, c, draw, leaf, x[row])
                if isinstance(found, np.ndarray):
                    out[row, leaf] *= found[int(y)]
                else:
                    out[row, leaf] *= found.pmf(y) if model.experts[c] == "poisson" else found.pdf(y)
    return out


def paths(post, table, rows: np.ndarray, draw: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return all paths of one series, (n_path, n_step), and the joint density of each and the targets.

    `rows` are the positions of the series' rows in the table, in the order of time.
    """
    model = post.model
    gate, offset = post.coefficients.gate[draw], post.memory.offset[draw]
    gate_x, density = model.gate_covariates.matrix(table), evidence(post, table, draw)
    all_paths = np.array(list(itertools.product(range(model.n_leaf), repeat=rows.size)))
    joint = np.ones(len(all_paths))
    for t, row in enumerate(rows):
        own = np.array([transition(gate, offset, gate_x[row], k, post.transitions) for k in range(-1, model.n_leaf)])
        before = all_paths[:, t - 1] if t else np.full(len(all_paths), -1)
        joint *= own[before + 1, all_paths[:, t]] * density[row, all_paths[:, t]]
    return all_paths, joint


def marginals(all_paths: np.ndarray, joint: np.ndarray, n_leaf: int) -> np.ndarray:
    """Return the probability of each leaf at each step, (n_step, n_leaf)."""
    weight = joint / joint.sum()
    return np.array([np.bincount(all_paths[:, t], weights=weight, minlength=n_leaf) for t in range(all_paths.shape[1])])
