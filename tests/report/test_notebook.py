"""What notebooks show of posteriors and answers: small, and nothing of a table is markup."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj

EVIL = "<b onload='x'>&"


@pytest.fixture(scope="module")
def post() -> bj.Posterior:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({EVIL: rng.choice([EVIL, "plain"], 80), "size": rng.normal(size=80).round(1)})
    return bj.fit(frame, n_structures=3, draws=4, tune=2, seed=1, cores=1, progress=False)


def test_posterior_shows_its_columns_escaped(post):
    shown = post.noted(stability=EVIL)._repr_html_()
    assert EVIL not in shown
    assert "&lt;b onload=&#x27;x&#x27;&gt;&amp;" in shown
    assert "3 structures, 12 draws, 2 columns" in shown
    assert len(shown) < 3000


def test_given_is_told(post):
    assert "given size &gt; 0" in post.condition("size > 0")._repr_html_()


def test_stability_and_convergence_show_their_sentence(post):
    found = post.convergence()
    shown = found._repr_html_()
    assert "3 structures; another seed moves" in shown
    assert all(str(name) in shown for name in found.table["quantity"].to_numpy())
    one = post.by_structure()[0].convergence()
    assert "R-hat" in one._repr_html_()
    assert "Convergence cannot be judged" in one._repr_html_()


def test_answer_shows_mean_and_interval_of_what_was_asked(post):
    answer = post.probability("size > 0")
    shown = answer._repr_html_()
    assert f"<td>{float(answer.mean()):.4g}</td>" in shown
    lo, hi = np.quantile(answer, [0.05, 0.95])
    assert f"<td>{lo:.4g} to {hi:.4g}</td>" in shown
    assert shown.index("</table>") < shown.index("<details>")


def test_answer_about_columns_names_them_escaped_and_leaves_out_what_is_no_answer(post):
    shown = post.dependence()._repr_html_()
    table = shown[: shown.index("</table>")]
    assert table.count("<tr>") == 3  # the heading and both orders of the pair: a column with itself has no answer
    assert EVIL not in shown
    assert "nats" in table


def test_many_answers_are_cut_short_and_other_arrays_are_shown_as_ever(post):
    rows = pd.DataFrame({"size": np.linspace(-1.0, 1.0, 50)})
    shown = post.log_density(rows)._repr_html_()
    assert shown[: shown.index("</table>")].count("<tr>") == 21
    assert "30 more" in shown
    assert "<details><summary>all draws" not in post.log_density(rows).mean(("chain", "draw"))._repr_html_()
