"""Dates come back as dates: from expectations, quantiles and bounds, of one structure or several, and predictions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt import cli
from bayesjpt.posterior.draws import Posterior
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.queries import distribution, moments
from bayesjpt.table import cells

EPOCH = np.datetime64("1970-01-01", "us")
DAY = np.timedelta64(1, "D")


@pytest.fixture(scope="module")
def table() -> bj.Table:
    day = np.arange(200) % 100
    written = [f"{date:%d.%m.%Y}" for date in pd.Timestamp("2024-01-15") + pd.to_timedelta(day, "D")]
    return bj.as_table(pd.DataFrame({"day": written, "size": 0.25 * day + np.tile([0.0, 0.5], 100)}))


@pytest.fixture(scope="module")
def post(table) -> Posterior:
    return Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=100), table.schema)


@pytest.fixture(scope="module")
def several(post) -> StackedPosterior:
    return StackedPosterior([post, post], np.array([0.5, 0.5]))


@pytest.mark.parametrize("given", [None, "size > 12", {"size": 20.0}], ids=["nothing", "an event", "a value"])
def test_answers_in_units_of_dates_are_dates(post, several, given):
    days = moments.expectation(post, "day", given).values
    ends = distribution.quantile(post, [0.1, 0.9], "day", given).values
    for asked in (post, several):
        mean, found = asked.expectation("day", given), asked.quantile([0.1, 0.9], "day", given)
        assert mean.dtype == found.dtype == np.dtype("datetime64[us]")
        assert ((mean.values - EPOCH) / DAY)[0, 0, 0] == pytest.approx(days[0, 0, 0], abs=1e-9)
        assert ((found.values - EPOCH) / DAY)[0, 0, :, 0] == pytest.approx(ends[0, 0, :, 0], abs=1e-9)
        bounds = asked.confidence_bounds("day", given)
        assert (bounds["lower"] < bounds["expectation"]).all()
        assert bounds["upper"].dtype == mean.dtype


def test_means_and_intervals_over_draws_of_dates_are_dates(several):
    answer = several.expectation("day")
    assert np.datetime64("2024-02-15") < answer.mean().values < np.datetime64("2024-04-15")
    assert answer.quantile([0.05, 0.95]).dtype == answer.dtype


def test_dates_beside_numbers_and_other_quantities_of_dates_stay_numbers(post):
    assert post.expectation().dtype == post.expectation("size").dtype == float
    assert post.variance("day").dtype == post.cdf("2024-03-01", "day").dtype == float


def test_what_is_no_date_is_not_a_time(post):
    assert np.isnat(cells.dates(np.array([np.nan, np.inf, -np.inf, 1e300, 19737.5]))).tolist() == [True] * 4 + [False]
    assert cells.dates(np.array([19737.5]))[0] == np.datetime64("2024-01-15T12:00:00")


def test_predicted_dates_are_printed_as_the_table_has_them(post, tmp_path, capfd):
    post.save(tmp_path / "fit.nc")
    (tmp_path / "new.csv").write_text("size\n3\n20\n")
    assert cli.run(["predict", str(tmp_path / "fit.nc"), str(tmp_path / "new.csv"), "--target", "day"]) == 0
    header, *lines = capfd.readouterr().out.splitlines()
    assert header == "row,mean,lower,upper"
    for line in lines:
        for text in line.split(",")[1:]:
            pd.to_datetime(text, format="%d.%m.%Y")  # whole days: no time of the day
    where = ["predict", str(tmp_path / "fit.nc"), str(tmp_path / "new.csv"), "--target", "day", "-o"]
    assert cli.run([*where, str(tmp_path / "new.parquet")]) == 0
    written = pd.read_parquet(tmp_path / "new.parquet")
    assert [
        ",".join([str(row), *(value.strftime("%d.%m.%Y") for value in values)])
        for row, *values in written.itertuples(index=False)
    ] == lines
