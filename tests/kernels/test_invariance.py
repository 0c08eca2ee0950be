"""What must not change a bit: the size of blocks, where a table is cut, the order of columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.kernels.gibbs import CHUNK
from bayesjpt.numerics import counter_rng
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table
from tests import examples as ex
from tests import strategies
from tests.kernels import runs

N_ROW = 2 * CHUNK + 800
KEY = 12345678901234567890
SUMS = 1e-12  # relative, where a density differs in its last bit
MODES = list(runs.MODES)


@pytest.fixture
def case(rng) -> strategies.Case:
    """Return three chunks of rows of every base, with missing cells, under a circuit of two levels."""
    table = ex.make_table(ex.COLUMNS, N_ROW, rng, missing=0.1)
    circuit = ex.two_level(table)
    return strategies.Case(table, circuit, ex.random_params(circuit, table.schema, rng))


def assert_bitwise(found, expected):
    assert found.edge_count.tolist() == expected.edge_count.tolist()
    assert found.stats.tolist() == expected.stats.tolist()
    assert found.log_likelihood == expected.log_likelihood


# --- blocks


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n_block", [1, 37, 64, 128, 1024, 5000])
def test_size_of_blocks_changes_no_bit_of_an_allocation(case, n_block, mode):
    run = runs.prepare(case.circuit, case.table, mode)
    assert_bitwise(
        runs.allocate(run, case.params, KEY, n_block=n_block), runs.allocate(run, case.params, KEY, n_block=256)
    )


@pytest.mark.parametrize("n_block", [1, 37, 1024])
def test_size_of_blocks_changes_no_bit_of_a_log_density(case, n_block):
    run = runs.prepare(case.circuit, case.table, "by row")
    assert np.array_equal(
        runs.log_scores(run, case.params, n_block=n_block), runs.log_scores(run, case.params, n_block=256)
    )


# --- distinct values


@pytest.mark.parametrize("mode", ["coded", "mixed"])
def test_evaluation_by_distinct_value_gives_the_counts_of_evaluation_by_row(case, mode):
    by_row = runs.allocate(runs.prepare(case.circuit, case.table, "by row"), case.params, KEY)
    other = runs.allocate(runs.prepare(case.circuit, case.table, mode), case.params, KEY)
    assert other.edge_count.tolist() == by_row.edge_count.tolist()
    np.testing.assert_allclose(other.stats, by_row.stats, rtol=SUMS, atol=SUMS)
    assert other.log_likelihood == pytest.approx(by_row.log_likelihood, rel=SUMS)


# --- partitions


def part_key(first_row):
    """Return the key under which a part that begins at a row draws what the whole table draws there."""
    return (KEY + first_row * int(counter_rng._ROW)) % 2**64


@pytest.mark.parametrize("mode", MODES)
def test_table_cut_between_chunks_changes_no_bit(case, mode):
    whole = runs.allocate(runs.prepare(case.circuit, case.table, mode), case.params, KEY)
    stats, edge_count, log_likelihood = np.zeros_like(whole.stats), np.zeros_like(whole.edge_count), 0.0
    for first in range(0, N_ROW, CHUNK):
        part = runs.prepare(case.circuit, case.table.rows(slice(first, first + CHUNK)), mode)
        found = runs.allocate(part, case.params, part_key(first))
        stats += found.stats
        edge_count += found.edge_count
        log_likelihood += found.log_likelihood
    assert_bitwise(whole, whole._replace(log_likelihood=log_likelihood, stats=stats, edge_count=edge_count))


def test_statistics_are_summed_chunk_by_chunk(case):
    # a running sum over all rows would differ in the last bits, and so would parts of a table
    table = ex.part(case.table, 0)
    circuit = ex.independent(table, ex.only("normal"))
    found = runs.allocate(runs.prepare(circuit, table), ex.start(circuit), KEY).stats[1]
    z = (table.values[0] - ex.REAL.location) / ex.REAL.scale
    chunks = [z[lo : lo + CHUNK][table.observed[0, lo : lo + CHUNK]] for lo in range(0, N_ROW, CHUNK)]
    total = 0.0
    for chunk in chunks:
        total += np.cumsum(chunk)[-1]
    assert found == total


# --- columns and children


def tree(columns, rows, order=(0, 1, 2)):
    """Return a mixture of a product and a deeper one over three columns; `order` permutes children of products."""

    def product(*children):
        return Product(tuple(children[i] for i in order if i < len(children)))

    def leaves():
        return tuple(ColumnLeaf(column, rows) for column in columns)

    a, b, c = leaves()
    inner = Sum((product(*leaves()[1:]), product(*leaves()[1:])), (1, 2))
    return Sum((product(a, b, c), product(leaves()[0], inner)), (3, 4))


@pytest.mark.parametrize("mode", MODES)
def test_order_of_columns_changes_no_bit(mode, rng):
    table = ex.make_table((ex.REAL, ex.POSITIVE, ex.COUNT), 500, rng, missing=0.2)
    order = np.array([2, 0, 1])  # column j of the permuted table is column order[j]
    permuted = ex.part(table, *order)
    rows = np.arange(table.n_row)
    circuit = build_circuit(tree((0, 1, 2), rows), table)
    moved = build_circuit(tree(np.argsort(order).tolist(), rows), permuted)
    params = ex.random_params(circuit, table.schema, rng)
    assert_bitwise(
        runs.allocate(runs.prepare(moved, permuted, mode), params, KEY),
        runs.allocate(runs.prepare(circuit, table, mode), params, KEY),
    )


@pytest.mark.parametrize("mode", MODES)
def test_order_of_a_products_children_does_not_change_log_density(mode, rng):
    table = ex.make_table((ex.REAL, ex.COUNT, ex.LABEL), 200, rng, missing=0.2)
    rows = np.arange(table.n_row)
    circuit, turned = (build_circuit(tree((0, 1, 2), rows, order), table) for order in ((0, 1, 2), (2, 1, 0)))
    np.testing.assert_allclose(
        runs.log_density(turned, ex.start(turned), table, mode),
        runs.log_density(circuit, ex.start(circuit), table, mode),
        rtol=SUMS,
        atol=SUMS,
    )


def test_order_of_a_sums_children_does_not_change_log_density(rng):
    table = ex.make_table((ex.REAL,), 200, rng)
    narrow, wide = np.flatnonzero(table.values[0] < 0.0), np.flatnonzero(table.values[0] >= 0.0)

    def mixture(*parts):
        leaves = tuple(ColumnLeaf(0, rows) for rows in parts)
        return build_circuit(Sum(leaves, tuple(rows.size for rows in parts)), table)

    one, other = mixture(narrow, wide), mixture(wide, narrow)
    np.testing.assert_allclose(
        runs.log_density(one, ex.start(one), table), runs.log_density(other, ex.start(other), table), rtol=SUMS
    )


def test_shift_and_scale_of_a_column_shift_log_density_by_the_log_scale(rng):
    # the same values in other units, with the schema's location and scale in those units
    table = ex.make_table((ex.REAL,), 50, rng)
    factor = 4.0  # a power of two, so that units inside are equal to the last bit
    column = replace(ex.REAL, location=factor * ex.REAL.location, scale=factor * ex.REAL.scale, resolution=factor * 0.1)
    scaled = Table(Schema((column,)), factor * table.values, table.observed)
    circuit = ex.mixture(table, 2)
    params = ex.random_params(circuit, table.schema, rng)
    np.testing.assert_allclose(
        runs.log_density(circuit, params, scaled),
        runs.log_density(circuit, params, table) - np.log(factor),
        rtol=SUMS,
        atol=SUMS,
    )
