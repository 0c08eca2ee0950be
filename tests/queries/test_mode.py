"""Modes: the best completion of small discrete circuits by enumeration, and at least as likely as samples."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.errors import EvidenceError, QueryError
from bayesjpt.families import registry
from bayesjpt.queries.mode import is_deterministic
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import naive
from tests.papers.jpt import bare

EXACT = 1e-9
N_PATH = 4  # of a circuit of two levels, two children each: no row has more than this many times its best path's mass
N_SAMPLE = 1000
LABEL = replace(ex.LABEL, dtype="text")
FLAG = replace(ex.FLAG, dtype="text")
COLUMNS = (*ex.COLUMNS[:4], LABEL)


def all_rows(*columns) -> Table:
    """Return every combination of the labels and levels of some columns, "other" left out."""
    values = [column.levels or range(len(column.labels)) for column in columns]
    cells = np.array(list(itertools.product(*values)), float).T
    return Table(Schema(columns), np.ascontiguousarray(cells), np.ones(cells.shape, bool))


def as_rows(schema: Schema, values: np.ndarray) -> Table:
    """Return the table of answers, objects with the axis of columns last."""
    frame = pd.DataFrame(values.reshape(-1, len(schema)), columns=list(schema.names)).infer_objects()
    return bj.as_table(frame, schema=schema)


def enumerated(post, table, draw: int) -> np.ndarray:
    """Return the log probability of each row under a draw of the first chain, by recursion from the definition."""
    params = type(post.params)(post.params.log_weight[0, draw], post.params.theta[0, draw])
    return naive.log_values(post.circuit, params, table)


def tree(table, rng):
    """Return the posterior of a mixture of products of labels, sometimes of inner mixtures."""
    return ex.random_posterior(ex.two_level(table, ex.only("categorical")), table, rng, n_chain=1, n_draw=8)


def test_modes_of_independent_labels_are_those_of_enumeration(rng):
    rows = all_rows(LABEL, FLAG, ex.LEVELS)
    circuit = ex.independent(rows, ex.only("categorical"))
    post = ex.random_posterior(circuit, rows, rng, n_chain=1, n_draw=4)
    found = post.mode(k=5)
    assert found.attrs["method"] == "exact"
    for draw in range(4):
        expected = enumerated(post, rows, draw)
        best = np.argsort(-expected)[:5]
        assert np.abs(found["log_mass"][0, draw].to_numpy() - expected[best]).max() < EXACT
        assert (as_rows(rows.schema, found["value"][0, draw].to_numpy()).values == rows.values[:, best]).all()


def test_modes_of_mixtures_are_scored_exactly_and_within_the_number_of_paths_of_the_best(rng):
    rows = all_rows(LABEL, FLAG, ex.LEVELS)
    post = tree(rows, rng)
    found = post.mode(k=3)
    assert found.attrs["method"] == "max-product"
    for draw in range(post.n_draw):
        expected = enumerated(post, rows, draw)
        for rank in range(3):
            row = as_rows(rows.schema, found["value"][0, draw, rank].to_numpy())
            at = int(np.flatnonzero((row.values == rows.values).all(axis=0))[0])
            assert abs(float(found["log_mass"][0, draw, rank]) - expected[at]) < EXACT
        assert float(found["log_mass"][0, draw, 0]) > expected.max() - np.log(N_PATH)


def test_modes_are_different_and_fall_in_mass(rng):
    rows = all_rows(LABEL, FLAG, ex.LEVELS)
    found = tree(rows, rng).mode(k=6)
    assert (np.diff(found["log_mass"].to_numpy(), axis=-1) <= 0.0).all()
    for completions in found["value"].to_numpy()[0]:
        assert len(set(map(tuple, completions))) == 6


def test_there_are_no_more_modes_than_rows(rng):
    rows = all_rows(FLAG)
    found = ex.random_posterior(ex.mixture(rows), rows, rng, n_chain=1, n_draw=1).mode(k=4)
    assert np.isfinite(found["log_mass"][0, 0]).to_numpy().tolist() == [True, True, False, False]
    assert pd.isna(found["value"][0, 0, 2:].to_numpy()).all()


@pytest.mark.parametrize(
    "given", [None, {"label": "b"}, "label = 'a' and real > 1.02"], ids=["none", "values", "event"]
)
def test_no_recorded_sample_of_independent_columns_is_more_likely(given, rng):
    table = ex.make_table(COLUMNS, 40, rng)
    circuit = ex.independent(table, lambda column: registry.dictionary(column)[:1])
    post = ex.random_posterior(circuit, table, rng, n_chain=1, n_draw=1)
    found = post.mode(given)
    assert found.attrs["method"] == "exact"
    rows = post.sample(N_SAMPLE, given, rng=rng)
    if given is None or isinstance(given, str):
        under = post if given is None else post.condition(given)
    else:
        under = post.constrain(given)
    assert under.log_mass(rows).max() <= float(found["log_mass"][0, 0, 0]) + EXACT
    mode = as_rows(table.schema, found["value"][0, 0].to_numpy())
    assert under.log_mass(mode)[0, 0, 0] == pytest.approx(float(found["log_mass"][0, 0, 0]), abs=EXACT)


def test_no_recorded_sample_of_a_mixture_is_more_likely_than_by_the_number_of_paths(rng):
    table = ex.make_table(COLUMNS, 40, rng)
    post = ex.random_posterior(ex.two_level(table), table, rng, n_chain=1, n_draw=3)
    found = post.mode()
    rows = post.sample(N_SAMPLE, rng=rng)
    for draw in range(3):
        assert post.log_mass(rows)[0, draw].max() <= float(found["log_mass"][0, draw, 0]) + np.log(N_PATH)


def test_modes_of_whole_numbers_have_their_own_mass_whatever_the_units_inside():
    rng = np.random.default_rng(2)  # which meets a mode that is whole up to the last digit alone, at a knot
    change = replace(ex.CHANGE, location=1.0, scale=35.0, minimum=-57.0, maximum=57.0)
    values = rng.integers(-57, 58, (1, 60)).astype(np.float64)
    table = Table(Schema((change,)), values, np.ones((1, 60), bool))
    circuit = ex.independent(table, ex.only("rounded_normal", "quantile"))
    post = ex.random_posterior(circuit, table, rng, n_chain=1, n_draw=300)
    found = post.mode(k=3)
    value = found["value"].to_numpy()[0].reshape(1, -1).astype(np.float64)
    masses = post.log_mass(Table(table.schema, value, np.ones(value.shape, bool))).to_numpy()[0].reshape(300, 300, 3)
    own = masses[np.arange(300), np.arange(300)]
    assert np.abs(found["log_mass"].to_numpy()[0] - own).max() < EXACT


@pytest.mark.parametrize("given", [None, "label = 'b'", "label = 'a' and tenths > 1"])
def test_modes_of_trees_of_histograms_and_atoms_are_those_of_enumeration(given):
    rng = np.random.default_rng(1)  # with an atom
    tenths = np.where(rng.random(400) < 0.3, 1.5, rng.normal(rng.choice([-2.0, 2.0], 400), 0.8).round(1))
    frame = pd.DataFrame({"tenths": tenths, "label": np.where(tenths + rng.normal(size=400) > 0.0, "a", "b")})
    table = bj.as_table(frame, kinds={"tenths": "real"})
    assert table.schema.columns[0].atoms
    post = ex.random_posterior(bj.learn_jpt(table, rng, min_rows=50, dictionary=bare), table, rng, n_draw=5)
    x, label = np.array(list(itertools.product(np.arange(-60, 61) / 10.0, (0.0, 1.0)))).T
    rows = Table(table.schema, np.array([x, label]), np.ones((2, x.size), bool))
    inside = {None: label < 2.0, "label = 'b'": label == 1.0}.get(given, (label == 0.0) & (x > 1.0))
    under = post if given is None else post.condition(given)
    expected = np.sort(np.exp(under.log_mass(rows).to_numpy())[..., inside])[..., ::-1]
    found = post.mode(given, k=6)
    assert found.attrs["method"] == "exact"
    assert np.abs(np.exp(found["log_mass"].to_numpy()) - expected[..., :6]).max() < EXACT


def test_modes_lie_in_the_event(rng):
    table = ex.make_table(COLUMNS, 40, rng)
    post = ex.random_posterior(ex.two_level(table), table, rng)
    value = post.mode("real > 7.03 and count >= 9", k=3)["value"]
    assert (value.sel(feature="real") > 7.03).all()
    assert (value.sel(feature="count") >= 9).all()


def test_completions_of_rows_keep_their_cells_and_have_the_conditional_mass(rng):
    rows = all_rows(LABEL, FLAG, ex.LEVELS)
    post = tree(rows, rng)
    frame = pd.DataFrame({"label": ["a", None], "flag": [None, "yes"]})
    found = post.mode(frame)
    assert found["value"].dims == ("chain", "draw", "obs_id", "rank", "feature")
    assert (found["value"].sel(feature="label")[:, :, 0] == "a").all()
    assert (found["value"].sel(feature="flag")[:, :, 1] == "yes").all()
    for draw in range(post.n_draw):
        for at, name in enumerate(("label = 'a'", "flag = 'yes'")):
            row = as_rows(rows.schema, found["value"][0, draw, at].to_numpy())
            expected = enumerated(post, row, draw)[0] - np.log(float(post.probability(name)[0, draw]))
            assert abs(float(found["log_mass"][0, draw, at, 0]) - expected) < EXACT


def test_most_probable_row_has_the_largest_mean_probability_of_all_modes(rng):
    rows = all_rows(LABEL, FLAG, ex.LEVELS)
    post = tree(rows, rng)
    best = post.most_probable(k=2)
    table = as_rows(rows.schema, post.mode()["value"].to_numpy())
    together = np.log(np.exp(post.log_mass(table).to_numpy()).mean(axis=(0, 1)))
    assert float(best["log_mass"][0]) >= together.max() - EXACT
    assert 0.0 <= float(best["share"][0]) <= 1.0
    known = post.most_probable({"label": "c"})
    assert known["value"].sel(feature="label")[0] == "c"


def test_no_change_of_one_cell_makes_the_most_probable_row_more_probable(rng):
    rows = all_rows(*[ex.named(column, f"{column.name}_{i}") for i in range(3) for column in (LABEL, FLAG)])
    circuit, n_better = ex.independent(rows, ex.only("categorical")), 0
    for _ in range(6):
        post = ex.random_posterior(circuit, rows, rng, n_chain=1, n_draw=6)
        together = np.log(np.exp(post.log_mass(rows).to_numpy()).mean(axis=(0, 1)))
        best = post.most_probable()
        row = as_rows(rows.schema, best["value"].to_numpy()).values
        neighbours = (rows.values != row).sum(axis=0) <= 1
        assert abs(float(best["log_mass"][0]) - together[neighbours].max()) < EXACT
        # modes of single draws alone are often worse: the search is what this tests
        n_better += float(best["share"][0]) == 0.0
    assert n_better > 0


def test_most_probable_completions_of_a_table_are_those_of_its_rows_alone(rng):
    rows = all_rows(LABEL, FLAG, ex.LEVELS)
    post = tree(rows, rng)
    frame = pd.DataFrame({"label": ["a", None, "c"], "flag": [None, "yes", "no"], "levels": [None, None, 2]})
    found = post.most_probable(frame, k=3)
    assert found["value"].dims == ("obs_id", "rank", "feature")
    for at, evidence in enumerate(({"label": "a"}, {"flag": "yes"}, {"label": "c", "flag": "no", "levels": 2})):
        alone = post.most_probable(evidence, k=3)
        n = alone.sizes["rank"]
        assert found["value"][at, :n].to_numpy().tolist() == alone["value"].to_numpy().tolist()
        assert np.allclose(found["log_mass"][at, :n], alone["log_mass"], rtol=0.0, atol=EXACT)
        assert np.allclose(found["share"][at, :n], alone["share"])
        given = post.condition(evidence)  # an independent witness: all rows, enumerated under the conditional
        expected = np.exp(given.log_mass(rows).to_numpy()).mean(axis=(0, 1))
        assert abs(float(np.exp(found["log_mass"][at, 0])) - expected.max()) < EXACT
    assert np.isneginf(found["log_mass"][2, 1:]).all()
    assert pd.isna(found["value"][2, 1:].to_numpy()).all()


@pytest.mark.filterwarnings("ignore:labels not seen")
def test_modes_are_in_the_words_of_the_table(rng):
    n = 60
    frame = pd.DataFrame(
        {
            "code": rng.choice([3, 7], n),
            "flag": rng.random(n) < 0.5,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 2, n), "D"),
            "size": rng.normal(size=n).round(2),
            "count": rng.poisson(4.0, n),
        }
    )
    table = bj.as_table(frame, kinds={"code": "category", "day": "category", "count": "integer"})
    post = bj.Posterior.from_circuit(ex.mixture(table), table.schema)
    new = pd.DataFrame({"code": [5, 7], "size": [0.25, -1.5]})
    for value in (post.mode(new)["value"][0, 0, :, 0], post.most_probable(new)["value"][:, 0]):
        assert value.sel(feature="code").to_numpy().tolist() == [5, 7]
        assert value.sel(feature="size").to_numpy().tolist() == [0.25, -1.5]
        first = dict(zip(table.names, value[0].to_numpy(), strict=True))
        assert first["flag"] in (True, False)
        assert pd.Timestamp(first["day"]) in set(frame["day"])
        assert isinstance(first["count"], int)


def test_circuits_whose_cells_are_apart_are_deterministic(rng):
    table = ex.make_table((ex.REAL, ex.COUNT), 20, rng)
    post = ex.random_posterior(ex.independent(table, ex.only("normal", "poisson")), table, rng)
    assert is_deterministic(post.circuit)
    assert is_deterministic(post.condition("real > 2 or (real < 1 and count > 3)").circuit)
    mixed = build_circuit(
        Sum(tuple(Product((ColumnLeaf(0, np.arange(20)), ColumnLeaf(1, np.arange(20)))) for _ in range(2)), (10, 10)),
        table,
    )
    assert not is_deterministic(mixed)


def test_impossible_and_misplaced_evidence_is_refused(rng):
    table = ex.make_table(COLUMNS, 20, rng)
    post = ex.random_posterior(ex.independent(table), table, rng)
    with pytest.raises(EvidenceError):
        post.mode("count < 0")
    with pytest.raises(QueryError, match="k=0"):
        post.mode(k=0)


def test_modes_of_most_small_mixtures_are_the_best_rows(rng):
    rows = all_rows(LABEL, FLAG, ex.LEVELS)
    circuit = ex.two_level(rows, ex.only("categorical"))
    post = ex.random_posterior(circuit, rows, rng, n_chain=1, n_draw=60)
    found = post.mode()["log_mass"][0, :, 0].to_numpy()
    best = post.log_mass(rows)[0].max("obs_id").to_numpy()
    assert (found <= best + EXACT).all()
    assert np.mean(found > best - EXACT) > 0.5


def test_rows_without_any_completion_have_no_rank(rng):
    rows = all_rows(LABEL, FLAG)
    post = tree(rows, rng)
    outside = " and ".join(f"label != '{label}'" for label in LABEL.labels)
    assert np.isneginf(post.mode(outside)["log_mass"]).all()
    assert post.most_probable(outside).sizes["rank"] == 0


def test_modes_keep_the_steps_of_their_columns(rng):
    price, salary = rng.integers(1, 80, 300) + 0.99, rng.integers(30, 150, 300) * 1000
    arrival = pd.Timestamp("2024-01-01 00:50") + pd.to_timedelta(rng.integers(0, 2000, 300), "h")
    table = bj.as_table({"price": price, "salary": salary, "arrival": arrival})
    post = bj.Posterior.from_circuit(ex.independent(table), table.schema)
    for found in (post.mode(k=4), post.most_probable(k=4)):
        values = found["value"].values.reshape(4, 3)
        assert [round(x % 1.0, 6) for x in values[:, 0]] == [0.99] * 4
        assert [x % 1000 for x in values[:, 1]] == [0] * 4
        assert [x.minute for x in values[:, 2]] == [50] * 4
    assert {*post.mode("price > 10 and price < 11.2", k=2)["value"].values[..., 0].ravel().tolist()} == {10.99}
    assert 10.2 < post.mode("price > 10.2 and price < 10.7")["value"].values.ravel()[0] < 10.7
