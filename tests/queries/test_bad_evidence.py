"""Evidence and events that cannot be answered: the same error from every verb, and from the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import cli
from bayesjpt.errors import BayesjptError, EvidenceError, QueryError, SchemaError
from tests import examples as ex

VERBS = {
    "probability": lambda post, given: post.probability("rings > 3", given),
    "log_probability": lambda post, given: post.log_probability("rings > 3", given),
    "expectation": lambda post, given: post.expectation("rings", given),
    "variance": lambda post, given: post.variance("rings", given),
    "quantile": lambda post, given: post.quantile(0.5, "rings", given),
    "cdf": lambda post, given: post.cdf(3.0, "rings", given),
    "confidence_bounds": lambda post, given: post.confidence_bounds("rings", given),
    "sample": lambda post, given: post.sample(2, given, rng=np.random.default_rng(1)),
    "mode": lambda post, given: post.mode(given),
    "most_probable": lambda post, given: post.most_probable(given),
}
CONDITION = {"condition": lambda post, given: post.condition(given)}
CONSTRAIN = {"constrain": lambda post, given: post.constrain(given)}

BAD_EVENTS = [
    pytest.param("size > 6 and colour = 'red'", EvidenceError, "probability zero.*'size'", id="probability zero"),
    pytest.param("size < 1 and size > 2", EvidenceError, "contradicts itself on column 'size'", id="contradiction"),
    pytest.param("size = 1.5", EvidenceError, "'size' is continuous", id="value of a continuous column"),
    pytest.param("size between 5 and 1", QueryError, "'size'.*lower end is above the upper", id="lo above hi"),
    pytest.param("size > nan", QueryError, "'size'.*missing value", id="NaN bound"),
    pytest.param("sise > 2", QueryError, "no column 'sise'.*'size'", id="unknown column"),
    pytest.param("colour = 'rad'", QueryError, "no label 'rad'.*'red'", id="unknown label"),
]
BAD_VALUES = [
    pytest.param({"size": 6.0}, EvidenceError, "'size'", id="density zero"),
    pytest.param({"size": np.inf}, BayesjptError, "'size'", id="infinity"),
    pytest.param({"sise": 1.0}, QueryError, "no column 'sise'.*'size'", id="unknown column"),
    pytest.param({"colour": "rad"}, QueryError, "no label 'rad'.*'red'", id="unknown label"),
]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    colour = np.where(rng.random(80) < 0.5, "red", "white")
    return pd.DataFrame({"rings": rng.poisson(4.0, 80), "size": rng.gamma(3.0, 1.0, 80).round(2), "colour": colour})


@pytest.fixture(scope="module")
def post(frame) -> bj.Posterior:
    """Return a posterior of rows with a size below 5: larger ones are impossible."""
    table = bj.as_table(frame, kinds={"size": "real"})
    given = ex.random_posterior(ex.mixture(table), table, np.random.default_rng(3), n_chain=1, n_draw=3)
    return given.condition("size < 5")


@pytest.fixture(scope="module")
def fit(post, tmp_path_factory):
    path = tmp_path_factory.mktemp("fits") / "fit.nc"
    post.save(path)
    return path


@pytest.mark.parametrize(("given", "kind", "message"), BAD_EVENTS)
@pytest.mark.parametrize("verb", [*VERBS, *CONDITION])
def test_bad_event_given_as_evidence_is_refused_by_every_verb(post, verb, given, kind, message):
    with pytest.raises(kind, match=f"(?s){message}"):
        (VERBS | CONDITION)[verb](post, given)


@pytest.mark.parametrize(("given", "kind", "message"), BAD_VALUES)
@pytest.mark.parametrize("verb", [*VERBS, *CONSTRAIN])
def test_bad_values_given_as_evidence_are_refused_by_every_verb(post, verb, given, kind, message):
    with pytest.raises(kind, match=message):
        (VERBS | CONSTRAIN)[verb](post, given)


@pytest.mark.parametrize(("given", "kind", "message"), BAD_EVENTS)
def test_bad_event_given_on_the_command_line_is_an_error_that_names_it(fit, given, kind, message, capfd):
    assert cli.run(["query", str(fit), "rings > 3", "--given", given]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("bayesjpt: ")
    with pytest.raises(kind, match=f"(?s){message}"):
        raise kind(err)


@pytest.mark.parametrize(("event", "kind", "message"), BAD_EVENTS[3:])
def test_bad_event_that_is_asked_for_is_refused(post, fit, event, kind, message, capfd):
    with pytest.raises(kind, match=f"(?s){message}"):
        post.probability(event)
    assert cli.run(["query", str(fit), event]) == 2
    assert capfd.readouterr().err.startswith("bayesjpt: ")


@pytest.mark.parametrize("event", ["size > 6", "size < 1 and size > 2"])
def test_impossible_event_that_is_asked_for_has_probability_zero(post, event):
    assert (post.probability(event) == 0.0).all()


def test_first_impossible_column_is_named_whatever_comes_behind(post):
    with pytest.raises(EvidenceError, match="column 'size'"):
        post.probability("rings > 3", {"colour": "red", "size": 9.0, "rings": 2})


def test_remedies_name_an_option_where_the_verb_has_it(post):
    with pytest.raises(EvidenceError, match="on_zero"):
        post.probability("rings > 3", {"size": 9.0})
    with pytest.raises(EvidenceError, match=r"Leave column 'size' out\.$"):
        post.mode({"size": 9.0})


BY_ROW = {
    "probability": lambda post, rows, **how: post.probability("rings > 3", rows, **how),
    "expectation": lambda post, rows, **how: post.expectation("rings", rows, **how),
    "variance": lambda post, rows, **how: post.variance("rings", rows, **how),
    "quantile": lambda post, rows, **how: post.quantile(0.5, "rings", rows, **how),
    "cdf": lambda post, rows, **how: post.cdf(3.0, "rings", rows, **how),
    "confidence_bounds": lambda post, rows, **how: post.confidence_bounds("rings", rows, **how)["upper"],
}


@pytest.mark.parametrize("verb", list(BY_ROW))
def test_one_impossible_row_of_many_is_named_or_nan(post, verb):
    rows = pd.DataFrame({"size": [1.0, 6.0, 2.0]})
    with pytest.raises(EvidenceError, match=r"row 2 .*'size'"):
        BY_ROW[verb](post, rows)
    found = BY_ROW[verb](post, rows, on_zero="nan").transpose("obs_id", ...).to_numpy().reshape(3, -1)
    assert np.isnan(found[1]).all()
    assert not np.isnan(found[[0, 2]]).any()


@pytest.mark.parametrize("verb", ["probability", "expectation", "quantile", "cdf"])
def test_order_of_columns_in_rows_does_not_matter(post, frame, verb):
    rows = frame[frame["size"] < 5.0].head(5)[["size", "colour"]]
    turned = rows[["colour", "size"]]
    assert np.array_equal(VERBS[verb](post, rows), VERBS[verb](post, turned))


def test_order_of_columns_in_a_file_does_not_matter(fit, frame, tmp_path, capfd):
    rows = frame[frame["size"] < 5.0].head(9)
    found = []
    for names in (["rings", "size", "colour"], ["colour", "rings", "size"]):
        rows[names].to_csv(tmp_path / "rows.csv", index=False)
        assert cli.run(["outliers", str(fit), str(tmp_path / "rows.csv"), "--json"]) == 0
        found.append(capfd.readouterr().out)
    assert found[0] == found[1]


def test_unknown_columns_are_refused_in_frames_and_named_when_a_file_has_them(post, fit, frame, tmp_path, capfd):
    rows = frame.head(3).rename(columns={"size": "sise"})
    with pytest.raises(SchemaError, match=r"'sise'.*'size'"):
        post.expectation("rings", rows)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    assert cli.run(["outliers", str(fit), str(tmp_path / "rows.csv")]) == 0
    assert "columns that training did not show are ignored: 'sise'" in capfd.readouterr().err


# --- events that have an answer, and hardly the one that was meant


def test_probability_of_a_value_of_a_continuous_column_warns_at_the_callers_line(post):
    with pytest.warns(bj.BayesjptWarning, match="'size' is continuous.*ask for size between") as caught:
        answer = post.probability("size = 1.5")
    assert not answer.values.any()
    assert [warning.filename for warning in caught] == [__file__]


def test_a_row_that_holds_the_value_answers_yes_without_a_warning(post):
    assert (post.probability("size = 1.5", {"size": 1.5}).values == 1.0).all()


def test_probability_of_a_whole_number_does_not_warn(post):
    assert (post.probability("rings = 3").values > 0.0).all()
