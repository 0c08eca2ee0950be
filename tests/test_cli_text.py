"""Answers of commands as text: no line is wider than a terminal, and no two columns are called the same."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.cli_text import explained_text, names_within, outliers_text, pairs_text, warning_shower
from bayesjpt.errors import BayesjptWarning

LONG = "How satisfied are you with our service, all things considered?"
NAMES = ["age", LONG, f"{LONG[:20]} the product?"]


class Why:
    """An explanation with one sub-population."""

    def whose(self):
        return "sub-populations of chain 0, draw 3 (structure 4 of 16, the nearest to the mean), whose answer is 0.1"

    def rows(self):
        yield "62%", "13%", "0.75", "; ".join(f"`{name}` = 'Very satisfied' 40% (whole table 6%)" for name in NAMES)


def test_no_line_is_wider_than_eighty():
    numbers = np.full((3, 3), 0.25)
    lines = [*explained_text(Why()).splitlines(), *pairs_text(NAMES, [(0, 1), (1, 2)], numbers, numbers, numbers)]
    told = {"row": 7, "score": 5.0, "quantile": 0.01, "cell_score": 3.0, "column": LONG, "value": "Very dissatisfied"}
    lines += [*outliers_text([told], NAMES), *outliers_text([told | {"pareto_k": 0.9}], NAMES)]
    assert max(map(len, lines)) <= 80
    assert lines[-1].endswith("  (k > 0.7)")
    assert " ".join(explained_text(Why()).split()).count("Very satisfied") == 3


@pytest.mark.parametrize("width", [5, 10, 26, 80])
def test_names_stay_apart(width):
    short = names_within(NAMES, width)
    assert len(set(short)) == 3
    assert short == NAMES or max(map(len, short)) <= width


def test_a_warning_is_said_once(capfd):
    show = warning_shower()
    for text in ("a", "b", "a"):
        show(BayesjptWarning(text), BayesjptWarning, "", 1)
    show(UserWarning("c"), UserWarning, "", 1)
    assert capfd.readouterr().err.splitlines() == ["bayesjpt: a", "bayesjpt: b"]
