"""The picture of the README, from a fit of notebooks/data/wine_quality.csv: python docs/images/wine.py WINE.nc."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import bayesjpt as bj

HERE = Path(__file__).resolve().parent
CELL = 0.25


def main(fit: str) -> None:
    """Draw the picture beside this file."""
    post = bj.load(fit)
    table = bj.read_table(HERE.parents[1] / "notebooks" / "data" / "wine_quality.csv", schema=post.schema)
    mpl.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.2), layout="constrained")
    post.plot_marginal("total_sulfur_dioxide", table=table, ax=left)
    left.set_title("a column: its rows, the model, 90 % band")

    edges = np.arange(8.0, 15.01, CELL)
    for given, label in (("quality >= 7", "good wines"), ("quality <= 5", "poor wines")):
        below = post.cdf(edges, "alcohol", given=given).squeeze("feature")
        density = below.diff("value") / CELL
        axis = (edges[1:] + edges[:-1]) / 2
        middle.plot(axis, density.mean(("chain", "draw")), label=f"given {given} ({label})")
        middle.fill_between(axis, *density.quantile([0.05, 0.95], ("chain", "draw")), alpha=0.3, linewidth=0)
    middle.set(title="a column given an event, 90 % band", xlabel="alcohol", yticks=[])
    middle.set_ylim(bottom=0.0)
    middle.legend(frameon=False, loc="upper right", fontsize=7)

    names = post.schema.names
    shown = post.dependence(normalised=True, max_draws=24).mean(("chain", "draw")).values
    image = right.imshow(
        np.where(np.eye(len(names), dtype=bool), np.nan, shown), vmin=0.0, vmax=1.0, cmap="Blues", aspect="auto"
    )
    right.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
    right.set_yticks(range(len(names)), names, fontsize=6)
    right.set_title("which columns tell about each other")
    figure.colorbar(image, ax=right, shrink=0.8)
    figure.savefig(HERE / "wine.png", dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
