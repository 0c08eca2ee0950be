"""Which columns are evaluated by distinct value, and what the tables of codes hold."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.circuit.plan import make_plan
from bayesjpt.families import registry
from bayesjpt.kernels.cells import make_cells
from bayesjpt.kernels.gibbs import CHUNK
from bayesjpt.kernels.upward import fill_tables, prepare_coefficients, root_log_value, upward
from bayesjpt.kernels.work import block_rows, make_work
from tests import examples as ex
from tests.kernels import runs


@pytest.fixture
def table(rng):
    """Return 400 rows: reals of a hundred distinct values, positive reals all distinct, counts; some missing."""
    rounded = ex.make_table((ex.REAL, ex.COUNT), 400, rng, missing=0.1)
    distinct = ex.make_table((ex.POSITIVE,), 400, rng, missing=0.1, continuous=True)
    return ex.joined(rounded, distinct)


def coded_columns(table, max_distinct_share, max_table_bytes=runs.PLENTY, **options):
    plan = make_plan(ex.mixture(table, 2), table.schema)
    cells = make_cells(
        plan,
        table.values,
        table.observed,
        max_distinct_share=max_distinct_share,
        max_table_bytes=max_table_bytes,
        **options,
    )
    return np.flatnonzero(cells.code_row >= 0).tolist()


def test_counts_are_coded_whatever_their_share_of_distinct_values(table):
    assert coded_columns(table, 0.0) == [1]


def test_reals_are_coded_up_to_the_share_of_distinct_values(table):
    share = np.unique(table.values[0, table.observed[0]]).size / table.n_row
    assert coded_columns(table, share) == [0, 1]
    assert coded_columns(table, share - 1e-9) == [1]


def test_reals_all_distinct_are_coded_only_when_every_share_is_allowed(table):
    assert coded_columns(table, 1.0) == [0, 1, 2]


def test_no_budget_codes_nothing(table):
    assert coded_columns(table, 1.0, max_table_bytes=0) == []


def test_budget_goes_to_the_columns_with_fewest_distinct_values(table):
    n_distinct = np.unique(table.values[1, table.observed[1]]).size
    n_slot, n_edge = 2, len(registry.dictionary(ex.COUNT))  # two components, all count families
    cost = 8 * (n_distinct + 1) * n_slot * (1 + n_edge)
    assert coded_columns(table, 1.0, max_table_bytes=cost) == [1]
    assert coded_columns(table, 1.0, max_table_bytes=cost - 1) == []


def test_tables_from_which_nothing_is_drawn_hold_one_number_a_value(table):
    n_distinct = np.unique(table.values[1, table.observed[1]]).size
    cost = 8 * (n_distinct + 1) * 2
    assert coded_columns(table, 1.0, max_table_bytes=cost, keep_terms=False) == [1]
    assert coded_columns(table, 1.0, max_table_bytes=cost - 1, keep_terms=False) == []


def test_densities_are_the_same_whether_terms_are_kept_or_not(table, rng):
    circuit = ex.mixture(table, 3)
    plan, params = make_plan(circuit, table.schema), ex.random_params(circuit, table.schema, rng)
    found = []
    for keep_terms in (True, False):
        cells = make_cells(
            plan, table.values, table.observed, max_distinct_share=1.0, max_table_bytes=runs.PLENTY,
            keep_terms=keep_terms,
        )  # fmt: skip
        work, out = make_work(plan, cells, table.n_row), np.empty(table.n_row)
        prepare_coefficients(plan, cells, params.theta, work)
        fill_tables(plan, cells, params.log_weight, work)
        upward(plan, cells, params.log_weight, work, 0, table.n_row)
        root_log_value(plan, work, table.n_row, out)
        found.append((out, work.table_term.size))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[1][1] < found[0][1] / 3


def test_codes_point_at_the_distinct_values_and_past_them_where_missing(table):
    run = runs.prepare(ex.mixture(table, 2), table, "coded")
    for column in range(table.n_column):
        observed = table.observed[column]
        code = run.cells.code[run.cells.code_row[column]]
        distinct = np.unique(table.values[column, observed])
        assert run.cells.n_distinct[column] == distinct.size
        assert distinct[code[observed]].tolist() == table.values[column, observed].tolist()
        assert (code[~observed] == distinct.size).all()


def test_features_of_coded_columns_have_one_entry_a_distinct_value(table):
    run = runs.prepare(ex.mixture(table, 2), table, "coded")
    assert run.cells.feature_len.tolist() == run.cells.n_distinct[run.plan.feature_column].tolist()


def test_features_are_values_in_the_families_units(table):
    run = runs.prepare(ex.independent(table), table, "by row")
    for feature in np.flatnonzero(run.plan.feature_source < 0):
        at, column = run.cells.feature_at[feature], run.plan.feature_column[feature]
        found = run.cells.feature[at : at + table.n_row]
        expected = (table.values[column] - run.plan.feature_offset[feature]) / run.plan.feature_scale[feature]
        np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-15)


def test_mask_is_empty_when_nothing_is_missing(rng):
    complete = ex.make_table((ex.REAL, ex.COUNT), 10, rng)
    assert runs.prepare(ex.independent(complete), complete).cells.missing.shape == (2, 0)


def test_mask_marks_what_is_missing(table):
    assert np.array_equal(runs.prepare(ex.independent(table), table).cells.missing, ~table.observed)


@pytest.mark.parametrize("max_bytes", [0, 10**4, 10**5, 10**6, runs.PLENTY])
def test_chunks_are_multiples_of_blocks_whatever_the_budget(table, max_bytes):
    plan = make_plan(ex.mixture(table, 8), table.schema)
    assert 64 <= block_rows(plan, max_bytes) <= 1024
    assert CHUNK % block_rows(plan, max_bytes) == 0


def test_blocks_are_smaller_where_nodes_are_many(table):
    few, many = (make_plan(ex.mixture(table, n), table.schema) for n in (1, 40))
    assert block_rows(few, 10**6) > block_rows(many, 10**6)
