"""The randomised dependence coefficient, slowly, from its definition: one pair at a time, ranks by counting."""

from __future__ import annotations

import numpy as np

from bayesjpt.structure.features import RandomFeatures
from bayesjpt.table.table import Table


def copula(x: np.ndarray) -> np.ndarray:
    """Return the average rank of every value, over the number of values."""
    below = np.array([(x < value).sum() for value in x])
    equal = np.array([(x == value).sum() for value in x])
    return (below + (equal + 1) / 2) / x.size


def features(x: np.ndarray, is_category: bool, settings: RandomFeatures, rng: np.random.Generator) -> np.ndarray:
    """Return sin(u w + b) for one column without missing cells; draws as `column_features` does."""
    k = settings.n_features
    if is_category:
        inputs = np.column_stack([copula((x == label).astype(float)) for label in np.unique(x)])
        shift = settings.scale * rng.standard_normal(k)
        weights = settings.scale * rng.standard_normal((inputs.shape[1], k))
    else:
        inputs = copula(x)[:, None]
        weights = settings.scale * rng.standard_normal((1, k))
        shift = settings.scale * rng.standard_normal(k)
    return np.sin(inputs @ weights + shift)


def basis(block: np.ndarray, tolerance: float) -> np.ndarray:
    """Return as many orthogonal directions of the centred columns as reach a share of the largest."""
    centred = block - block.mean(axis=0)
    _, singular, directions = np.linalg.svd(centred)
    kept = [j for j in range(singular.size) if singular[j] > tolerance * singular[0]]
    return np.column_stack([centred @ directions[j] / singular[j] for j in kept])


def largest_canonical_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest correlation between linear combinations of the columns of a and b."""
    orthonormal_a, _ = np.linalg.qr(a - a.mean(axis=0))
    orthonormal_b, _ = np.linalg.qr(b - b.mean(axis=0))
    return float(np.linalg.norm(orthonormal_a.T @ orthonormal_b, 2))


def dependence(table: Table, settings: RandomFeatures, tolerance: float, rng: np.random.Generator) -> np.ndarray:
    """Return the matrix of coefficients; no column may be constant."""
    blocks = []
    for column, facts in enumerate(table.schema):
        seen = table.observed[column]
        block = features(table.values[column, seen], facts.base == "category", settings, rng)
        block = basis(block, tolerance)
        whole = np.full((table.n_row, block.shape[1]), np.nan)
        whole[seen] = block
        blocks.append(whole)
    out = np.eye(table.n_column)
    for a in range(table.n_column):
        for b in range(table.n_column):
            if a != b:
                both = table.observed[a] & table.observed[b]
                out[a, b] = largest_canonical_correlation(blocks[a][both], blocks[b][both])
    return out
