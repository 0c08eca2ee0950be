"""The comparison on binary tables, on a set in miniature."""

from __future__ import annotations

import gzip

import numpy as np

from tests.papers import binary


def test_a_set_in_miniature_is_scored_beside_no_figures(tmp_path, rng, capsys, monkeypatch):
    monkeypatch.setattr(binary, "MIN_ROWS", (60,))
    folder = tmp_path / "binary20"
    folder.mkdir()
    x = rng.integers(2, size=(300, 6))
    x[:, 5] = 0  # constant in train, as columns of real sets are
    for part, rows in zip(binary.PARTS, np.split(x, [200, 250]), strict=True):
        with gzip.open(folder / f"tiny.{part}.data.gz", "wt") as file:
            np.savetxt(file, rows, fmt="%d", delimiter=",")
    binary.main(["--data", str(tmp_path), "--structures", "2"])
    header, line = capsys.readouterr().out.splitlines()
    assert header.startswith("set")
    words = line.split()
    assert words[:3] == ["tiny", "2", "random"]
    assert abs(float(words[6]) + 5 * np.log(2.0)) < 0.3
