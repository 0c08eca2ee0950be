"""One column under a mixture of normals, a histogram and splines, with bands from draws: a picture for the docs."""

from __future__ import annotations

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.circuit.build import ColumnLeaf, build_circuit
from bayesjpt.families import registry
from bayesjpt.table.table import Table

KINDS = {
    "truncated_rounded_normal": ("a mixture of three normals", 3),
    "quantile": ("a histogram (CDF-LEARN)", 1),
    "spline": ("splines, order and breaks by BIC", 1),
}
"""Families, their titles, and how many of each describe the column together."""
N_POINT = 400


def one_leaf(table: Table, family: str, n: int) -> bj.Posterior:
    """Return the posterior of the first column as a mixture of n leaves of one family."""

    def learner(rows: Table, _rng: np.random.Generator):
        return build_circuit(ColumnLeaf(0, np.arange(rows.n_row)), rows, lambda _: [registry.family(family)] * n)

    options = {"n_structures": 1, "chains": 2, "tune": 100, "draws": 200, "seed": 1, "progress": False}
    return bj.fit(table, learner, **options)


def draw(table: Table, column: str, path: str) -> None:
    """Write the picture of a column to a file; its ending says in which format."""
    from matplotlib.figure import Figure

    frame = table.to_frame()[[column]]
    alone = bj.as_table(frame, kinds={column: "integer"})
    values = frame[column].dropna().to_numpy(float)
    grid = np.unique(np.rint(np.linspace(values.min() - 15.0, values.max() + 25.0, N_POINT)))
    grid = grid[grid >= 0.0]
    figure = Figure(figsize=(7.5, 6.0), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True, sharey=True)
    for ax, (family, (title, n)) in zip(axes, KINDS.items(), strict=True):
        mass = np.exp(one_leaf(alone, family, n).log_mass(pd.DataFrame({column: grid})).to_numpy())
        mass = mass.reshape(-1, grid.size)
        lo, hi = np.quantile(mass, (0.05, 0.95), axis=0)
        ax.hist(values, bins=np.arange(-0.5, values.max() + 6.0, 5.0), density=True, color="0.88")
        ax.fill_between(grid, lo, hi, color="C0", alpha=0.3, linewidth=0.0)
        ax.plot(grid, mass.mean(axis=0), color="C0", linewidth=1.2)
        ax.set_title(title, loc="left", fontsize=9)
        ax.set_yticks([])
        ax.spines[["top", "left", "right"]].set_visible(False)
    axes[-1].set_xlabel("plasma glucose, diabetes; rows in bins of 5, mean and 90 % band of draws", fontsize=9)
    figure.savefig(path, metadata={"Date": None})
