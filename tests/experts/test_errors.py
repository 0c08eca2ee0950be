"""What errors and warnings of experts say: what is there, and a remedy that helps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pymc as pm
import pytest

import bayesjpt as bj
from bayesjpt.errors import BayesjptError, BayesjptWarning, FitFileError, LearnerError, ModelError, TableError
from bayesjpt.experts.gate_words import gate_in_words
from bayesjpt.experts.laplace import tell_no_optimum
from bayesjpt.table.covariates import make_covariates
from tests.test_cli import refused

SHORT = {"draws": 3, "tune": 3, "chains": 1, "rng": 1, "depth": 1}


def rows(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n), "k": rng.choice(["a", "b", "c"], n)})
    return frame.assign(y=frame["x"] + rng.normal(0.0, 0.1, n))


def holed(frame: pd.DataFrame, *numbers: int) -> pd.DataFrame:
    out = frame.copy()
    out.iloc[list(numbers), 0] = np.nan
    return out


@pytest.fixture(scope="module")
def post():
    return bj.fit_experts(rows(), target="y", **SHORT)


@pytest.mark.parametrize("asked", [{"target": "e"}, {"target": "y", "given": ["x", "e"]}])
def test_no_kind_is_advised_for_a_column_without_values(asked):
    with pytest.raises(BayesjptError, match=r"'e' is left out: empty: no value in 60 rows$"):
        bj.fit_experts(rows().assign(e=None), **asked, **SHORT)


def test_empty_cells_and_absent_columns_are_told_apart(post):
    three = rows().head(3)
    with pytest.raises(TableError, match=r"^no value of the covariate 'x' in any of 3 rows.*with_missing"):
        post.predict(three.assign(x=np.nan))
    for n in (1, 3):
        with pytest.raises(TableError, match=r"^no column 'z'; expected all covariates of the fit\. Add it"):
            post.predict(three.head(n)[["x", "k"]])
    with pytest.raises(TableError, match=r"^1 missing cell of the covariate 'x', the first in row 2;.*with_missing"):
        post.predict(holed(three, 1))


@pytest.mark.parametrize(
    "renamed",
    [
        pytest.param(pa.Table.from_pandas, id="pyarrow"),
        pytest.param(lambda frame: frame.set_axis(range(4), axis=1), id="numbers"),
        pytest.param(lambda frame: pd.concat({"m": frame}, axis=1), id="pairs"),
    ],
)
def test_columns_of_new_rows_are_known_by_the_names_that_fitting_gave_them(renamed):
    frame = renamed(rows())
    *_, target = bj.as_table(frame).names
    post = bj.fit_experts(frame, target=target, **SHORT)
    assert post.expectation(frame).sizes["obs_id"] == 60


def test_the_remedies_of_missing_cells_help(post):
    frame = rows()
    joint = bj.Posterior.from_circuit(
        bj.learn_mspn(bj.as_table(frame[["x", "z", "k"]]), np.random.default_rng(1)),
        bj.as_table(frame[["x", "z", "k"]]).schema,
    )
    assert np.isfinite(post.with_missing(joint).predict(holed(frame, 1, 4)).to_numpy()).all()
    with pytest.raises(TableError, match=r"^2 missing cells of the covariate 'x', the first in row 2;.*missing="):
        bj.fit_experts(holed(frame, 1, 4), target="y", **SHORT)
    bj.fit_experts(holed(frame, 1, 4), target="y", missing=joint, **SHORT)
    online = bj.OnlineExperts(frame, target="y", depth=1, rng=1)
    filled = joint.impute(holed(frame, 1, 4)[["x", "z", "k"]], 1, rng=1)[0].to_frame()
    online.partial_fit(filled.assign(y=frame["y"]))


def test_learners_without_missing_do_not_offer_it():
    frame = rows()
    online = bj.OnlineExperts(frame, target="y", depth=1, rng=1)
    with pytest.raises(TableError, match=r"'x', the first in row 2;.*impute") as told:
        online.partial_fit(holed(frame, 1))
    assert "missing=" not in str(told.value)
    assert "with_missing" not in str(told.value)
    with pm.Model(), pytest.raises(TableError, match=r"'x', the first in row 2;.*impute") as told:
        bj.ExpertTree("y", holed(frame, 1)[["x", "z"]], frame["y"])
    assert "missing=" not in str(told.value)


def test_a_missing_cell_of_an_array_is_named_by_row_and_column():
    matrix = rows()[["x", "z"]].to_numpy(copy=True)
    matrix[3, 1] = np.nan
    with pm.Model(), pytest.raises(ModelError, match="nan in row 4 of the covariate 'x1', column 2"):
        bj.ExpertTree("y", matrix, rows()["y"])


def test_a_tree_outside_a_model_is_refused():
    with pytest.raises(ModelError, match=r"outside a model.*with pm\.Model\(\)"):
        bj.ExpertTree("y", rows()[["x"]], rows()["y"])


def test_a_saved_joint_distribution_is_no_fit_of_experts(tmp_path):
    table = bj.as_table(rows()[["x", "z"]])
    joint = bj.Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1)), table.schema)
    joint.save(tmp_path / "joint.nc")
    with pytest.raises(FitFileError, match=r"a saved joint distribution; expected a mixture of experts.*bj\.load\."):
        bj.load_experts(tmp_path / "joint.nc")


def test_a_row_of_a_data_frame_is_a_row(post):
    frame = rows()
    one, other = post.at(frame.iloc[0]), post.at(frame.iloc[[0]])
    np.testing.assert_array_equal(one.probability("y > 0"), other.probability("y > 0"))


def test_two_rows_at_a_time_have_a_remedy_for_what_is_given(tmp_path, capfd):
    frame = rows().assign(t=np.arange(60), id=["u"] * 30 + ["v"] * 30)
    frame.loc[1, "t"] = 0
    with pytest.raises(TableError, match=r"of series 'u'.*Leave one of them out") as told:
        bj.fit_experts(frame, target="y", time="t", series="id", **SHORT)
    assert "series=" not in str(told.value)
    with pytest.raises(TableError, match="series=COLUMN"):
        bj.fit_experts(frame, target="y", time="t", **SHORT)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    line = ["fit", tmp_path / "rows.csv", "-o", tmp_path / "fit.nc", "--learner", "experts", "--target", "y", "--quiet"]
    assert "--series COLUMN" in refused(capfd, *line, "--step", "t")
    found = refused(capfd, *line, "--step", "nope")
    assert "--step 'nope'" in found
    assert "kinds" not in found
    assert "--series 'nope'" in refused(capfd, *line, "--step", "t", "--series", "nope")


def test_the_command_line_speaks_of_its_options(tmp_path, capfd):
    rows().to_csv(tmp_path / "rows.csv", index=False)
    fit = tmp_path / "fit.nc"
    line = ["fit", tmp_path / "rows.csv", "-o", fit, "--learner", "experts", "--target", "y", "--quiet"]
    for options, said in (
        (["--depth", "9"], "--depth 9"),
        (["--grow"], "--grow with --method gibbs; expected --grow with"),
        (["--draws", "0"], "--draws 0"),
        (["--method", "no"], "--method no"),
        (["--method", "em", "--ridge", "-1"], "--ridge -1.0"),
        (["--branches", "9", "--depth", "3"], "--branches 9 with --depth 3"),
    ):
        found = refused(capfd, *line, *options)
        assert said in found
        assert "=" not in found
    bj.fit_experts(rows(), target="y", **SHORT).save(fit)
    found = refused(capfd, "predict", fit, tmp_path / "rows.csv", "--draws", "0")
    assert "'--draws'" in found
    assert "max_draws" not in found
    rows().drop(columns="z").to_csv(tmp_path / "new.csv", index=False)
    assert "no column 'z'" in refused(capfd, "predict", fit, tmp_path / "new.csv")


def test_experts_that_labels_do_not_allow_are_told_by_the_number_of_labels():
    with pytest.raises(LearnerError, match="logistic experts for column 'k', which has 3 labels; expected multinomial"):
        bj.fit_experts(rows(), target="k", given=["x"], experts="logistic", **SHORT)
    with pytest.raises(LearnerError, match="poisson experts for column 'k', which has 3 labels"):
        bj.fit_experts(rows(), target="k", given=["x"], experts="poisson", **SHORT)


def test_numbers_and_their_nouns_agree():
    frame = rows()
    frame.loc[3, "y"] = np.nan
    with pytest.warns(BayesjptWarning, match="^1 row without a value of the target is left out"):
        bj.fit_experts(frame, target="y", **SHORT)
    with pytest.warns(BayesjptWarning, match=r"^1 direction in which .* Give more passes, or a larger ridge\.$"):
        tell_no_optimum([1, 0])


def test_a_gate_that_is_sure_at_every_label_is_told_so():
    table = bj.as_table({"size": np.linspace(0.0, 9.0, 30), "kind": ["a", "b", "c"] * 10}, kinds={"size": "real"})
    covariates = make_covariates(table, ["size", "kind"])
    gate = np.array([3.5, 1.6, 4.0, 3.0, 0.5])  # far from the mean size less than .95 would be possible
    sure = gate_in_words(gate, covariates)
    assert sure.text == "nearly always (probability at least 0.98 at average covariates)"
    assert gate_in_words(-gate, covariates).text == "nearly never (probability at most 0.018 at average covariates)"
