"""The command that shows a tree, and questions to fits of trees: what they print and write, and what they load."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import cli

HEAVY = ("pymc", "pytensor", "arviz", "sklearn", "matplotlib")


@pytest.fixture(scope="module")
def post() -> bj.Posterior:
    rng = np.random.default_rng(1)
    colour = np.where(rng.random(160) < 0.5, "red", "white")
    size = (rng.gamma(3.0, 1.0, 160) + 6.0 * (colour == "red")).round(1)
    table = bj.as_table(pd.DataFrame({"size": size, "rings": rng.poisson(30.0, 160), "colour": colour}))
    return bj.Posterior.from_circuit(bj.learn_jpt(table, rng, max_leaves=4), table.schema)


@pytest.fixture(scope="module")
def fit(post, tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("fits") / "tree.nc"
    post.save(path)
    return str(path)


def test_text_is_printed(fit, post, capfd):
    assert cli.run(["tree", fit]) == 0
    assert capfd.readouterr().out == f"{post.tree()}\n"


def test_options_choose_columns_and_leaves(fit, post, capfd):
    assert cli.run(["tree", fit, "--columns", "rings, colour", "--leaves", "2"]) == 0
    assert capfd.readouterr().out == f"{post.tree(['rings', 'colour'], max_leaves=2)}\n"


def test_a_picture_is_written_without_pymc_or_arviz(fit, tmp_path, run_python):
    commands = [["tree", fit, "-o", str(tmp_path / "tree.svg")], ["query", fit, "size > 2", "--explain"]]
    program = f"""
import sys
from bayesjpt import cli
print([cli.run(command) for command in {commands!r}], sorted(set({HEAVY!r}) & set(sys.modules)))
"""
    assert run_python(program).splitlines()[-1] == "[0, 0] []"
    assert ET.parse(tmp_path / "tree.svg").getroot().tag.endswith("svg")


def test_explanations_name_leaves(fit, post, capfd):
    assert cli.run(["query", fit, "size > 5", "--explain", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)["explanation"]
    assert told["chain"] is None
    assert [part["conditions"] for part in told["parts"]] == [
        part.conditions for part in post.explain("size > 5").parts
    ]
    assert cli.run(["query", fit, "size > 5", "--explain"]) == 0
    assert "\nLeaves of the tree:\n" in capfd.readouterr().out
