"""Whether posteriors describe plausible columns: moments under each draw, sampled rows and bounds beside the table's.

    python -m tests.papers.plausible --data DIR [--tables NAME ...] [--learner mspn jpt]

Every table of DIR/uci and DIR/abda is fitted with defaults, and each numeric column of it judged:

    mean, sd        of the data
    E, sd of draws  mean and 5, 50, 95 % over draws of the expectation and of the standard deviation
    sampled         standard deviation of 20,000 sampled rows over the data's
    outside         share of sampled cells more than one range of the data beyond them
    bounds          share of finite 95 % bounds, given the other cells of some rows
    resampled       5 and 95 % of the standard deviation of the column under draws of the weights of its own values,
                    over the data's, and the share above 1.3

The last, Rubin's Bayesian bootstrap, is what a column itself says of its spread without any model: where a handful of
rows decide, no posterior can be surer. A column that misses an aim counts as *open* where more than 1 % of those draws
lie above 1.3 times the standard deviation.

A column misses an aim where a `*` stands behind the figure. Standard deviations of columns with heavy tails (leaving
out the ten largest values changes theirs by 5 % or more) may be off by a quarter, others by a tenth.

Reference: Rubin (1981), The Bayesian bootstrap, Annals of Statistics 9.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.errors import BayesjptError, TableError
from tests.papers.programs import run

N_SAMPLED = 20_000
N_BOUNDED = 20
"""Rows whose bounds are asked, given their other cells."""
MAX_ROWS = 10_000
"""Larger tables are cut to so many rows, drawn at random; the figures are then of these."""
N_LARGEST = 10
N_RESAMPLED = 4000
HEAVY = 0.05
AIM, HEAVY_AIM = (0.9, 1.1), (0.8, 1.25)
MAX_MEAN_ERROR, MAX_VARIANCE_ERROR = 0.1, 0.15
WIDE, MAX_WIDE = 1.3, 0.01
MAX_OUTSIDE = 0.001


@dataclass(frozen=True)
class Judged:
    """What a posterior says of one numeric column, beside the data."""

    name: str
    mean: float
    sd: float
    is_heavy: bool
    expectation: np.ndarray
    deviation: np.ndarray
    sampled: float
    outside: float
    bounded: float
    resampled: np.ndarray

    @property
    def is_open(self) -> bool:
        """Return whether the column's own values leave open how wide it is."""
        return bool((self.resampled > WIDE).mean() > MAX_WIDE)

    @property
    def misses(self) -> dict[str, bool]:
        """Return which aims are missed, by the name of the figure."""
        lo, hi = HEAVY_AIM if self.is_heavy else AIM
        return {
            "E": not abs(self.expectation.mean() - self.mean) <= MAX_MEAN_ERROR * self.sd,
            "sd": not abs(np.median(self.deviation**2) / self.sd**2 - 1.0) <= MAX_VARIANCE_ERROR,
            "wide": not (self.deviation > WIDE * self.sd).mean() <= MAX_WIDE,
            "sampled": not lo <= self.sampled <= hi,
            "outside": not self.outside <= MAX_OUTSIDE,
            "bounds": self.bounded < 1.0,
        }

    def row(self) -> str:
        """Return the figures as a line, those that miss an aim with a star."""
        star = {name: "*" if missed else " " for name, missed in self.misses.items()}
        e = " ".join(f"{q:.4g}" for q in (self.expectation.mean(), *np.quantile(self.expectation, (0.05, 0.5, 0.95))))
        sd = " ".join(f"{q:.4g}" for q in (self.deviation.mean(), *np.quantile(self.deviation, (0.05, 0.5, 0.95))))
        wide = (self.deviation > WIDE * self.sd).mean()
        return (
            f"{self.name[:24]:<24} {self.mean:.5g} {self.sd:.4g}{'~' if self.is_heavy else ' '} | {e}{star['E']} | "
            f"{sd}{star['sd']} {wide:.3f}{star['wide']} | {self.sampled:.3f}{star['sampled']} "
            f"{self.outside:.5f}{star['outside']} {self.bounded:.2f}{star['bounds']} | "
            f"{np.quantile(self.resampled, 0.05):.2f} {np.quantile(self.resampled, 0.95):.2f} "
            f"{(self.resampled > WIDE).mean():.3f}{'?' if self.is_open else ''}"
        )


def resampled_deviations(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return standard deviations of values under Dirichlet(1, ..., 1) weights, over their own: (N_RESAMPLED,)."""
    z, count = np.unique((x - x.mean()) / x.std(), return_counts=True)  # weights of equal values add up to a gamma
    found = np.empty(N_RESAMPLED)
    for k in range(N_RESAMPLED):
        weight = rng.standard_gamma(count)
        weight /= weight.sum()
        found[k] = np.sqrt(weight @ z**2 - (weight @ z) ** 2)
    return found


def judge(post: bj.Posterior, frame: pd.DataFrame, *, n_sampled: int = N_SAMPLED, seed: int = 0) -> list[Judged]:
    """Return the figures of every numeric column that the posterior has and that varies."""
    drawn = post.sample(n_sampled, rng=np.random.default_rng(seed)).to_frame()
    rows = frame.sample(min(N_BOUNDED, len(frame)), random_state=seed)
    found = []
    for column in post.schema.columns:
        if column.base == "category" or not pd.api.types.is_numeric_dtype(frame[column.name]):
            continue
        x = np.sort(frame[column.name].dropna().to_numpy(float))
        if x[0] == x[-1]:
            continue
        y = drawn[column.name].dropna().to_numpy(float)
        width, sd = x[-1] - x[0], x.std()
        others = rows.drop(columns=column.name)
        bounds = post.confidence_bounds(column.name, given=others, confidence=0.95) if others.shape[1] else None
        finite = 1.0 if bounds is None else float(np.isfinite(bounds.to_array().to_numpy()).mean())
        found.append(
            Judged(
                name=column.name,
                mean=float(x.mean()),
                sd=float(sd),
                is_heavy=abs(x[:-N_LARGEST].std() / sd - 1.0) >= HEAVY if x.size > 3 * N_LARGEST else True,
                expectation=post.expectation(column.name).to_numpy().ravel(),
                deviation=np.sqrt(post.variance(column.name).to_numpy().ravel()),
                sampled=float(y.std() / sd),
                outside=float(((y < x[0] - width) | (y > x[-1] + width)).mean()),
                bounded=finite,
                resampled=resampled_deviations(x, np.random.default_rng(seed)),
            )
        )
    return found


def _tables(data: Path, names: list[str] | None) -> Iterator[tuple[str, pd.DataFrame]]:
    from tests.papers.abda_data import as_frame, read_data

    known = [f"uci/{path.name.removesuffix('.csv.gz')}" for path in sorted((data / "uci").glob("*.csv.gz"))]
    known += [f"abda/{path.stem}" for path in sorted((data / "abda").glob("*.npz"))]
    if not known:
        raise TableError(f"no tables in {str(data)!r}", "uci/*.csv.gz or abda/*.npz")
    for asked in names or ():
        if not any(asked in (name, name.split("/")[1]) for name in known):
            raise TableError(f"no table {asked!r} in {str(data)!r}", f"one of {', '.join(known)}")
    for name in known:
        folder, stem = name.split("/")
        if names is None or name in names or stem in names:
            path = data / f"{name}.csv.gz"
            yield name, pd.read_csv(path) if folder == "uci" else as_frame(read_data(data, stem).train.astype(float))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder that holds uci/ and abda/")
    parser.add_argument("--tables", nargs="+", help="names of tables, such as wine_quality or abda/wine (all)")
    parser.add_argument("--learner", nargs="+", default=["mspn", "jpt"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=MAX_ROWS, help="larger tables are cut to so many rows")
    options = parser.parse_args()
    print(
        "column mean sd | E: mean 5 50 95 % | sd: mean 5 50 95 %, share above 1.3 | sampled outside bounds | "
        "resampled: 5 95 %, share above 1.3"
    )
    n_missed = n_column = n_open = 0
    for name, frame in _tables(options.data, options.tables):
        if len(frame) > options.rows:
            frame = frame.sample(options.rows, random_state=options.seed).reset_index(drop=True)
        for learner in options.learner:
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    post = bj.fit(bj.as_table(frame), learner, seed=options.seed, progress=False)
                except BayesjptError as error:
                    print(f"\n{name}, {learner}: {error}", flush=True)
                    continue
                judged = judge(post, frame)
            missed = [column for column in judged if any(column.misses.values())]
            n_missed, n_column = n_missed + len(missed), n_column + len(judged)
            still_open = sum(column.is_open for column in missed)
            n_open += still_open
            seconds = time.process_time() - began
            print(f"\n{name}, {learner}: {len(frame)} rows, {len(missed)} of {len(judged)} columns miss an aim, "
                  f"{still_open} of them open, {seconds:.0f} CPU s", flush=True)  # fmt: skip
            for column in judged:
                print(column.row(), flush=True)
    print(f"\n{n_missed} of {n_column} columns miss an aim, {n_open} of them open")


if __name__ == "__main__":
    run(main)
