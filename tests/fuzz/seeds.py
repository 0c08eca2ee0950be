"""Valid files that the mutants of `tests.fuzz.files` are made of, small and made on the fly."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.table.document import write_document
from tests import examples as ex

N_ROW = 12
SETTINGS = {"draws": 2, "tune": 2, "chains": 2, "cores": 1, "progress": False, "seed": 3}
ONE = {"n_structures": 1}
SEVERAL = {"n_structures": 2, "weights": "stacking"}


def frame() -> pd.DataFrame:
    """Return rows with numbers, counts, labels that need quotes, dates and gaps."""
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "size": rng.normal(2.0, 1.0, N_ROW).round(2),
            "count": rng.poisson(3.0, N_ROW),
            "label": rng.choice(["red", "blue, pale", 'say "no"', None], N_ROW),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, N_ROW), "D"),
        }
    )


def table() -> bj.Table:
    """Return them as a table, without the dates."""
    return bj.as_table(frame().drop(columns="day"))


def make_seeds(folder: Path) -> list[Path]:
    """Write all seeds into a folder and return them; a checkpoint is a folder with the files of a fit."""
    rng = np.random.default_rng(4)
    fits = folder / "fits"
    fits.mkdir()
    every = ex.make_table(ex.COLUMNS, N_ROW, rng, missing=0.1)
    stats = {"log_likelihood": rng.normal(size=(2, 2)), "n_active_edges": rng.integers(0, 9, (2, 2))}
    post = ex.random_posterior(ex.two_level(every), every, rng, n_draw=2, sample_stats=stats)
    post.save(fits / "one.nc")
    post.condition("real > 0.5 and count < 4").save(fits / "given.nc")
    bj.fit(table(), **SETTINGS, n_structures=2).save(fits / "several.nc")
    for name, options in (("one", ONE), ("several", SEVERAL)):
        bj.fit(table(), checkpoint=folder / f"checkpoint_{name}", **SETTINGS, **options)
    write_document(table().schema, folder / "schema.toml")
    frame().to_csv(folder / "table.csv", index=False)
    frame().to_csv(folder / "table.tsv", index=False, sep="\t")
    (folder / "table.csv.gz").write_bytes(gzip.compress((folder / "table.csv").read_bytes(), mtime=0))
    frame().to_parquet(folder / "table.parquet")
    frame().to_feather(folder / "table.feather")
    found = [path for path in folder.iterdir() if path != fits]
    return sorted([*fits.iterdir(), *found])


def copy(seed: Path, folder: Path) -> Path:
    """Copy a seed into a folder that is emptied before."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    target = folder / seed.name
    if seed.is_dir():
        shutil.copytree(seed, target)
    else:
        shutil.copy(seed, target)
    return target
