"""Samples of cutset networks of digits beside their nearest training images, as in Figure 3 of the paper.

    python -m tests.papers.binary_samples --picture digits.png [--seed 1]

The paper has 10,000 images of 28 x 28 pixels (MNIST); here are the 1,797 of 8 x 8 that scikit-learn carries, a pixel
being ink where it has at least half of the largest value. Settings are the paper's: leaves of at most 50 rows, .01
imaginary rows a weight (.02 a split of two ways), no split of at most four columns. Printed are mean log likelihoods of
training images and of 297 that were held out, and how many pixels samples and held-out images lie from the nearest
training image, and how many of the samples are one.

Reference: Di Mauro, Vergari, Basile, Esposito (2017). Fast and Accurate Density Estimation with Extremely Randomized
Cutset Networks. ECML PKDD, section 5.1 and Figure 3.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import bayesjpt as bj

N_HELD_OUT = 297
N_SHOWN = 25
N_DISTANCE = 1000
OPTIONS = {"min_rows": 50, "min_columns": 4, "ess": 0.02}
MODELS = {"by likelihood (dCSN)": "likelihood", "at random (XCNet)": "random"}


def images(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (train, held out), each bool (n_image, 64)."""
    from sklearn.datasets import load_digits

    ink = load_digits().data >= 8.0
    order = np.random.default_rng(seed).permutation(len(ink))
    return ink[order[N_HELD_OUT:]], ink[order[:N_HELD_OUT]]


def frame_of(ink: np.ndarray) -> pd.DataFrame:
    """Return images as a table, a column a pixel."""
    names = [f"p{row}{column}" for row in range(8) for column in range(8)]
    columns = zip(names, ink.T.astype(np.int8), strict=True)
    return pd.DataFrame({name: pd.Categorical.from_codes(own, ["0", "1"]) for name, own in columns})


def nearest(some: np.ndarray, train: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest training image of each of some images, and in how many pixels it differs, (n_image,) each."""
    differing = (some[:, None, :] != train[None]).sum(axis=2)
    return train[differing.argmin(axis=1)], differing.min(axis=1)


def draw(panels: dict[str, np.ndarray], path: Path) -> None:
    """Write images, bool (25, 64) each, side by side to a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.2 * len(panels), 2.4), layout="constrained")
    for axes, (title, some) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        whole = np.full((5 * 9 + 1, 5 * 9 + 1), 0.5)
        for k, one in enumerate(some):
            top, left = 9 * (k // 5) + 1, 9 * (k % 5) + 1
            whole[top : top + 8, left : left + 8] = one.reshape(8, 8)
        axes.imshow(whole, cmap="gray_r", vmin=0.0, vmax=1.0, interpolation="nearest")
        axes.set_title(title, fontsize=7)
        axes.set_axis_off()
    figure.savefig(path, dpi=110, metadata={"Software": None} if path.suffix == ".png" else {"Date": None})


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--picture", type=Path, help="file for the images, .png or .svg")
    parser.add_argument("--seed", type=int, default=1, help="of the images held out, of networks and samples")
    told = parser.parse_args(arguments)
    train, rest = images(told.seed)
    frame = frame_of(train)
    table = bj.as_table(frame, kinds=dict.fromkeys(frame, "category"), other=False)
    away = nearest(rest, train)[1]
    print(f"{'network':22s} {'train':>7s} {'held out':>9s} {'samples: pixels to nearest':>27s} {'same as one':>12s}")
    print(f"{'held-out images':22s} {'':>7s} {'':>9s} {away.mean():27.2f} {100.0 * (away == 0).mean():10.1f} %")
    panels = {}
    for name, select in MODELS.items():
        circuit = bj.learn_cutset(table, np.random.default_rng(told.seed), select=select, **OPTIONS)
        post = bj.Posterior.from_circuit(circuit, table.schema)
        samples = post.sample(N_DISTANCE, rng=told.seed).values.T == 1.0
        near, away = nearest(samples, train)
        panels |= {name: samples[:N_SHOWN], f"nearest in train, {select}": near[:N_SHOWN]}
        of_train, of_rest = (float(post.log_density(frame_of(some)).mean()) for some in (train, rest))
        print(f"{name:22s} {of_train:7.2f} {of_rest:9.2f} {away.mean():27.2f} {100.0 * (away == 0).mean():10.1f} %")
    if told.picture is not None:
        draw(panels, told.picture)


if __name__ == "__main__":
    main()
