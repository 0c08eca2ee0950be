"""Imputed cells follow their conditional given the row; observed cells stay to the last bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
import bayesjpt.queries.methods  # queries become methods
from bayesjpt.errors import BayesjptWarning, EvidenceError, QueryError, SchemaError
from bayesjpt.families import registry
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries import impute
from bayesjpt.table.table import Table
from bayesjpt.table.write import write_table
from tests import examples as ex
from tests.statistics import LARGEST_Z, cdf_deviation, dkw_bound

N_IMPUTED = 4000
CLOSE = 1e-9


@pytest.fixture(scope="module")
def case() -> tuple[Table, Posterior]:
    """Return a table with missing cells and unrelated draws of a circuit over it."""
    rng = np.random.default_rng(6)
    table = ex.make_table(ex.COLUMNS, 40, rng, missing=0.3, continuous=True)
    return table, ex.random_posterior(ex.two_level(table), table, rng, n_draw=3)


def test_observed_cells_stay_to_the_last_bit_and_none_is_missing(case, rng):
    table, post = case
    for filled in post.impute(table, 3, rng=rng):
        assert filled.n_missing == 0
        assert (filled.values[table.observed] == table.values[table.observed]).all()


def test_drawn_cells_lie_on_the_recorded_grid(case, rng):
    table, post = case
    (filled,) = post.impute(table, rng=rng)
    tenths = filled.values[:2][~table.observed[:2]] * 10.0
    assert np.abs(tenths - np.round(tenths)).max() < CLOSE
    (raw,) = post.impute(table, rng=rng, recorded=False)
    tenths = raw.values[:2][~table.observed[:2]] * 10.0
    assert np.abs(tenths - np.round(tenths)).min() > 0.0


def test_imputations_differ(case, rng):
    table, post = case
    first, second = post.impute(table, 2, rng=rng)
    assert (first.values != second.values)[~table.observed].any()


def test_imputed_cells_follow_the_conditional_cdf_of_one_draw(case, rng):
    table, post = case
    one = ex.random_posterior(post.circuit, table, rng, n_chain=1, n_draw=1)
    row = table.take(np.repeat(7, N_IMPUTED))
    observed = np.zeros_like(row.observed)
    observed[[2, 4]] = True
    row = Table(row.schema, row.values, observed)
    (filled,) = one.impute(row, rng=rng, recorded=False)
    for column in (0, 1, 3):
        name = table.names[column]

        def cdf(points, name=name):
            return one.cdf(points, name, row.take([0]))[0, 0, :, 0, 0].to_numpy()

        assert cdf_deviation(filled.values[column], cdf) < dkw_bound(N_IMPUTED)


def test_each_imputation_comes_from_one_draw(rng):
    """Two draws whose labels differ for certain: within an imputation all rows agree."""
    table = ex.make_table((ex.LABEL, ex.COUNT), 30, rng)
    circuit = ex.independent(table, ex.only("poisson"))
    post = ex.random_posterior(circuit, table, rng, n_chain=1, n_draw=2)
    at = circuit.theta_at[0]
    post.params.theta[0, :, at : at + 4] = 1e-12
    post.params.theta[0, 0, at] = post.params.theta[0, 1, at + 2] = 1.0
    observed = table.observed.copy()
    observed[0] = False
    seen = {tuple(set(t.values[0])) for t in post.impute(Table(table.schema, table.values, observed), 4, rng=rng)}
    assert seen == {(0.0,), (2.0,)}


def test_labels_that_training_never_showed_are_not_imputed(rng):
    table = ex.make_table((ex.LABEL,), 2000, rng, missing=1.0)
    circuit = ex.independent(table)
    post = ex.random_posterior(circuit, table, rng, n_chain=1, n_draw=1)
    post.params.theta[:] = [0.1, 0.2, 0.1, 0.6]
    (filled,) = post.impute(table, rng=rng)
    assert filled.values[0].max() == 2.0
    share = (filled.values[0] == 1.0).mean()
    assert abs(share - 0.5) < LARGEST_Z * np.sqrt(0.25 / table.n_row)


@pytest.mark.filterwarnings("ignore:labels not seen")
@pytest.mark.parametrize("how", ["draws", "means"])
@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_observed_cells_of_a_frame_come_back_as_they_were(how, backend, rng):
    """Labels that training never showed among them: of texts, codes, booleans and dates."""
    n = 60
    frame = pd.DataFrame(
        {
            "kind": rng.choice(["a", "b"], n),
            "code": rng.choice([3, 7], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 2, n), "D"),
            "size": rng.normal(size=n).round(3),
            "count": rng.poisson(4.0, n),
        }
    )
    table = bj.as_table(frame, kinds={"code": "category", "day": "category", "count": "integer"})
    post = Posterior.from_circuit(ex.mixture(table), table.schema)
    new = pd.DataFrame(
        {
            "kind": ["other", "Zoë", "a", None],
            "code": [5.0, 3.0, None, 8.0],
            "day": pd.to_datetime(["2025-05-05", None, "2024-01-01", "1999-12-31"]),
            "size": [0.1 + 0.2, -0.25, None, 1e6],
            "count": [None, 2.0, 77.0, 0.0],
        }
    )
    (filled,) = post.impute(new, rng=rng) if how == "draws" else (post.impute_mean(new).table,)
    found = filled.to_frame(backend)
    assert filled.n_missing == 0
    for name in new:
        for row in np.flatnonzero(new[name].notna()):
            assert found[name][int(row)] == new[name][row]
    again = bj.as_table(filled.to_frame(), schema=table.schema)
    assert (again.values == filled.values).all()


def test_unseen_labels_follow_their_rows_and_are_written_as_they_were_read(tmp_path, rng):
    table = bj.as_table(pd.DataFrame({"kind": ["a", "b"] * 20, "n": rng.poisson(3.0, 40)}))
    with pytest.warns(bj.BayesjptWarning, match="labels not seen"):
        new = bj.as_table(pd.DataFrame({"kind": ["a", "new", None, "b"]}), schema=table.schema)
    assert new.take([3, 1, 0]).to_frame()["kind"].tolist() == ["b", "new", "a"]
    assert new.rows(slice(1, 2)).to_frame()["kind"].tolist() == ["new"]
    write_table(new, tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().split() == ["kind,n", "a,", "new,", ",", "b,"]


def test_limits_are_kept_where_drawing_anew_would_take_too_long(rng, monkeypatch):
    """All but a trillionth of the column lies below its support: the conditional is that of the tail."""
    monkeypatch.setattr("bayesjpt.queries.complete.MAX_REDRAWS", 3)
    table = ex.make_table((ex.POSITIVE, ex.LABEL), 500, rng, missing=1.0)
    post = ex.random_posterior(ex.independent(table, ex.only("normal", "categorical")), table, rng, n_draw=1)
    at = post.circuit.theta_at[0]
    post.params.theta[..., at : at + 2] = [1.0, -7.0 - ex.POSITIVE.location / ex.POSITIVE.scale]
    (filled,) = post.impute(table, rng=rng, recorded=False)
    x = filled.values[0]
    assert (x >= 0.0).all()
    event = post.condition("positive >= 0")
    assert cdf_deviation(x, lambda points: event.cdf(points, "positive")[0, 0, :, 0].to_numpy()) < dkw_bound(500)


def test_drawn_numbers_keep_to_the_support_of_their_column(rng):
    table = ex.make_table((ex.POSITIVE,), 400, rng, missing=1.0)
    circuit = ex.independent(table, ex.only("normal"))
    post = ex.random_posterior(circuit, table, rng, n_chain=1, n_draw=1)
    post.params.theta[0, 0] = [1.0, 0.0]  # half of it below zero
    (filled,) = post.impute(table, rng=rng)
    assert filled.values.min() >= 0.0
    assert post.sample(400, rng=rng, labels="all").values.min() < 0.0


def expectation_near_training(post: Posterior, table: Table, number: int) -> np.ndarray:
    """Return float64 (n_draw, n_row): expectations given the support, and one range beyond the training values."""
    column = table.schema.columns[number]
    reach = column.maximum - column.minimum
    lo, hi = max(column.minimum - reach, column.support[0]), min(column.maximum + reach, column.support[1])
    near = post.condition(bj.col(column.name).between(lo, hi))
    return near.expectation(column.name, table).to_numpy().reshape(-1, table.n_row)


def test_mean_imputation_holds_the_rounded_expectation(case):
    table, post = case
    filled = post.impute_mean(table)
    n_missing = int((~table.observed).sum())
    assert repr(filled).startswith(f"MeanImputation({table.n_row} rows x {table.n_column} columns, {n_missing} cells")
    hidden = ~table.observed
    for column in (0, 1, 2):
        expected = expectation_near_training(post, table, column).mean(axis=0)
        found = filled.cells["expectation"][:, column].to_numpy()
        assert np.abs(found - expected)[hidden[column]].max() < CLOSE
        assert np.isnan(found[~hidden[column]]).all()
        step = 1.0 if column == 2 else 0.1
        assert np.abs(filled.table.values[column] - expected)[hidden[column]].max() < 0.5 * step + CLOSE
    assert filled.table.n_missing == 0
    assert (filled.table.values[table.observed] == table.values[table.observed]).all()


def test_mean_imputation_in_parts_of_the_rows_is_the_same(case, monkeypatch):
    table, post = case
    whole = post.impute_mean(table).table.values
    monkeypatch.setattr("bayesjpt.queries.impute._N_EXPECTATION", 1)
    monkeypatch.setattr("bayesjpt.queries.impute._N_ROW", 7)
    assert np.abs(post.impute_mean(table).table.values - whole).max() < CLOSE


def test_columns_without_missing_cells_are_not_asked_for(case, monkeypatch):
    table, post = case
    observed = np.ones_like(table.observed)
    observed[1, :3] = False
    asked = []
    ask = impute.ask
    monkeypatch.setattr(
        impute, "ask", lambda post, names, *given: asked.append(list(names)) or ask(post, names, *given)
    )
    filled = post.impute_mean(Table(table.schema, np.where(observed, table.values, np.nan), observed))
    assert asked == [[table.schema.names[1]]]
    assert (~np.isnan(filled.cells["expectation"])).sum() == 3


def test_mean_imputation_takes_the_most_probable_label(case):
    table, post = case
    filled = post.impute_mean(table)
    holes = np.flatnonzero(~table.observed[4])
    given = table.take(holes)
    by_label = np.array([post.probability(f"label = '{x}'", given).mean(("chain", "draw")) for x in "abc"])
    assert (filled.table.values[4, holes] == by_label.argmax(axis=0)).all()
    assert np.abs(filled.cells["expectation"][holes, 4] - by_label.max(axis=0)).max() < CLOSE


def test_intervals_of_mean_imputation_hold_the_expectation_between_the_draws_extremes(case):
    table, post = case
    cells = post.impute_mean(table, interval=0.5).cells
    hidden = ~table.observed.T
    by_draw = expectation_near_training(post, table, 0)
    at = hidden[:, 0]
    assert np.allclose(cells["lower"][at, 0], np.quantile(by_draw, 0.25, axis=0)[at])
    assert np.allclose(cells["upper"][at, 0], np.quantile(by_draw, 0.75, axis=0)[at])


def test_mean_imputation_stays_near_training_values_where_there_is_no_mean(rng):
    table = ex.make_table((ex.REAL,), 5, rng, missing=1.0)
    post = ex.random_posterior(
        ex.independent(table, lambda _: [registry.family("student_t")]), table, rng, n_chain=1, n_draw=1
    )
    post.params.theta[0, 0, 2] = 0.9
    assert not np.isfinite(post.expectation("real")).all()
    filled = post.impute_mean(table, recorded=False)
    assert np.abs(filled.table.values[0] - expectation_near_training(post, table, 0)[0]).max() < CLOSE


def test_likelihood_of_little_weight_and_a_distant_mean_does_not_take_over(rng):
    table = ex.make_table((ex.POSITIVE,), 5, rng, missing=1.0)
    circuit = ex.independent(table, ex.only("normal", "exponential"))
    post = ex.random_posterior(circuit, table, rng, n_chain=1, n_draw=1)
    post.params.log_weight[0, 0] = np.log([1.0 - 1e-6, 1e-6])
    post.params.theta[0, 0] = [0.04, 0.5, 1e-30]
    assert float(post.expectation("positive")[0, 0, 0]) > 1e20
    filled = post.impute_mean(table, recorded=False)
    assert filled.table.values[0] == pytest.approx(ex.POSITIVE.location + 0.5 * ex.POSITIVE.scale, rel=1e-4)


def test_mean_imputation_of_a_conditional_far_from_training_rows_is_its_expectation(case):
    table, post = case
    far = post.condition(f"real > {ex.REAL.maximum + 10.0 * ex.REAL.scale}")
    row = table.take([0])
    row = Table(row.schema, row.values, np.zeros_like(row.observed))
    filled = far.impute_mean(row, recorded=False)
    assert filled.table.values[0, 0] == pytest.approx(float(far.expectation("real").mean()), rel=1e-9)


def test_impossible_rows_are_refused(case, rng):
    table, post = case
    given = post.condition("real < 3")
    rows = table.take([0, 1])
    values, observed = rows.values.copy(), np.zeros_like(rows.observed)
    values[0, 1], observed[0, 1] = 1e6, True
    rows = Table(rows.schema, values, observed)
    with pytest.raises(EvidenceError, match=r"row 2 .* column 'real'"):
        given.impute(rows, rng=rng)
    with pytest.raises(QueryError, match="'real'"):
        given.impute_mean(rows)


def test_rows_of_another_schema_are_refused(case, rng):
    other = ex.make_table((ex.COUNT,), 3, rng)
    with pytest.raises(SchemaError, match="another schema"):
        case[1].impute(other, rng=rng)


def test_numbers_are_imputed_within_what_ends_their_column(rng):
    n = 300
    debt = -np.exp(rng.normal(3.0, 1.0, n))
    share = np.clip(rng.normal(60.0, 40.0, n), 0.0, 100.0)
    table = bj.as_table(pd.DataFrame({"debt": debt, "share": share, "free": rng.normal(0.0, 1.0, n)}))
    assert table.schema.columns[1].atoms == (0.0, 100.0)
    post = Posterior.from_circuit(bj.learn_mspn(table, rng), table.schema)
    assert post.sample(3000, rng=rng, labels="all").values[0].max() > 0.0  # a normal likelihood reaches there
    holes = pd.DataFrame({name: np.full(2000, np.nan) for name in table.names})
    (filled,) = post.impute(holes, rng=rng)
    assert filled.values[0].max() <= 0.0
    assert filled.values[1].min() == 0.0
    assert filled.values[1].max() == 100.0
    assert abs(filled.values[2]).max() > 2.5


def test_dates_before_1970_are_imputed_on_either_side_of_it(rng):
    days = np.datetime64("1969-12-31") - rng.integers(0, 40, 200).astype("timedelta64[D]")
    table = bj.as_table(pd.DataFrame({"day": days, "x": rng.normal(size=200)}))
    post = Posterior.from_circuit(bj.learn_mspn(table, rng), table.schema)
    (filled,) = post.impute(pd.DataFrame({"day": [None] * 3000, "x": [0.0] * 3000}), rng=rng)
    assert filled.values[0].max() > 0.0


def test_blanks_beside_a_cross_are_filled_with_a_word():
    frame = pd.DataFrame({"locked": ["X", None, None, None] * 10, "size": np.arange(40.0) / 7.0})
    with pytest.warns(BayesjptWarning, match="constant"):
        table = bj.as_table(frame)
    post = Posterior.from_circuit(bj.learn_mspn(table, np.random.default_rng(1), min_rows=20), table.schema)
    told = r"only value that training showed: 'X' in column 'locked' \(30 cells\); where a blank cell says \"none\""
    with pytest.warns(BayesjptWarning, match=told):
        post.impute(table, rng=1)
    with pytest.warns(BayesjptWarning, match=told):
        post.impute_mean(table)
    post.impute(table.take(range(0, 40, 4)), rng=1)  # nothing is filled in
