"""The comparison on binary tables, on a set in miniature."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import bayesjpt as bj
from tests.papers import binary, binary_members


@pytest.fixture
def data(tmp_path, rng, monkeypatch):
    """Return a folder with a set of coins, the last of them constant in train, as columns of real sets are."""
    monkeypatch.setattr(binary, "MIN_ROWS", (60,))
    monkeypatch.setattr(binary, "ESS", (1.0, 4.0))
    monkeypatch.setattr(binary, "BEST_MIN_ROWS", (60,))
    monkeypatch.setattr(binary_members, "HIDDEN_SWEEPS", (4, 6))
    folder = tmp_path / "binary20"
    folder.mkdir()
    x = rng.integers(2, size=(300, 6))
    x[:, 5] = 0
    for part, rows in zip(binary_members.PARTS, np.split(x, [200, 250]), strict=True):
        with gzip.open(folder / f"tiny.{part}.data.gz", "wt") as file:
            np.savetxt(file, rows, fmt="%d", delimiter=",")
    return tmp_path


def test_a_set_in_miniature_is_scored_beside_no_figures(data, capsys):
    binary.main(["--data", str(data), "--structures", "2"])
    header, line = capsys.readouterr().out.splitlines()
    assert header.startswith("set")
    words = line.split()
    assert words[:3] == ["tiny", "2", "cutset"]
    assert words[3].startswith("random,60,")
    assert abs(float(words[5]) + 5 * np.log(2.0)) < 0.3


def test_figures_stand_below_their_names_whatever_the_setting(data, capsys):
    asked = "--structures 2 --select likelihood --min-rows 60 --ess 0.2 --subspace 0.5 --leaf bernoulli"
    binary.main(["--data", str(data), *asked.split()])
    header, line = capsys.readouterr().out.splitlines()
    assert line.split()[3] == "likelihood,60,0.2,0.5,bernoulli"
    for name in ("valid", "test", "se"):
        end = header.index(f" {name} ") + len(name) + 1
        assert line[end - 1].isdigit()
        assert line[end] == " "


def test_groups_of_learners_are_stacked(data, capsys):
    chain = "--states 2 --components 2 --chains 1 --sweeps 4 --structures 2 --seeds 2 --learner best"
    binary.main(["--data", str(data), *chain.split()])
    _, *lines = (line.split() for line in capsys.readouterr().out.splitlines())
    assert [line[2] for line in lines] == ["cutset", "by", "trees", "trees", "hclt", "best"]
    weights = [float(weight) for weight in lines[-1][3].split(",")]
    assert abs(sum(weights) - 1.0) < 0.03
    valid = [float(line[5 if line[2] in ("by", "trees") else 4]) for line in lines]
    assert valid[-1] >= max(valid[:-1]) - 0.01


def test_a_network_of_arrays_scores_as_the_circuit_of_its_learner(data):
    found = binary_members.read_set(data / "binary20", "tiny")
    setting = binary_members.Setting("cutset", {"select": "random", "min_rows": 60, "ess": 0.5})
    one = binary_members.score(found, setting, [3], "even", 0)
    circuit = bj.learn_cutset(found.train, np.random.default_rng(3), min_rows=60, ess=0.5)
    expected = bj.Posterior.from_circuit(circuit, found.train.schema).log_density(found.test)
    np.testing.assert_allclose(one.test, expected.values.ravel(), rtol=1e-12)
