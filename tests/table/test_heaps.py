"""Heaped values: cells of favourites are wider, as the definition says, and all cells tile the line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import gammaln

from bayesjpt.errors import FitFileError, SchemaError
from bayesjpt.posterior.check import check_columns
from bayesjpt.table.heaps import (
    HEAP_EVEN,
    HEAP_LEAST_CONCENTRATION,
    HEAP_LEAST_SLOPE,
    HEAP_N_CONCENTRATION,
    HEAP_NEIGHBOURS,
    find_heaps,
    recorded_cells,
)
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import as_table

N = 2_000
ROUNDING = 1e-9


def favouring(rng, values, width, favourite, share):
    """Return values on a grid, of which a share is rounded to a multiple of the grid that people favour."""
    rounded = np.where(rng.random(values.size) < share, np.round(values / favourite) * favourite, values)
    return np.round(rounded / width) * width


@pytest.fixture
def heaped(rng):
    return favouring(rng, rng.normal(10.0, 1.0, N), 0.1, 0.5, 0.6)


def heaps_of(values, width, atoms=()):
    return find_heaps(*np.unique(values, return_counts=True), width, atoms)


def column_of(values):
    return as_table(pd.DataFrame({"x": values, "plain": np.resize([0.5, 1.0, 1.5], len(values))})).schema.columns[0]


def widths_at(values, points, width):
    ends, shifts = heaps_of(values, width)
    lower, upper = (np.interp(points + side, ends, shifts, 0.0, 0.0) for side in (-width / 2, width / 2))
    return width + upper - lower


# --- what is found


def test_favourites_have_wider_cells_than_their_neighbours(heaped):
    at = widths_at(heaped, np.array([9.5, 9.6, 10.0, 10.1, 10.5]), 0.1)
    assert at[[0, 2, 4]].min() > 0.2 > 0.1 > at[[1, 3]].max()


@pytest.mark.parametrize("width", [0.5, 0.1, 0.01, 0.001])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.normal(size=N),
        lambda rng: rng.exponential(size=N),
        lambda rng: rng.lognormal(0.0, 1.0, N),
        lambda rng: rng.uniform(size=N) * 5.0,
        lambda rng: np.append(rng.normal(-3.0, 0.5, N // 2), rng.normal(3.0, 0.5, N // 2)),
        lambda rng: rng.standard_t(3, N),
    ],
    ids=["normal", "exponential", "lognormal", "uniform", "two modes", "heavy tails"],
)
def test_rounding_alone_makes_no_favourites(rng, draw, width):
    ends, shifts = heaps_of(np.round(draw(rng) / width) * width, width)
    assert (ends.size, shifts.size) == (0, 0)


@pytest.mark.parametrize("values", [np.arange(5.0), np.arange(3_000.0) / 7.0, np.full(50, 0.5)])
def test_few_or_distinct_values_have_none(values):
    assert heaps_of(values, 0.1)[0].size == 0


@pytest.mark.parametrize("values", [1e300 + np.arange(40.0) * 1e285, np.resize([1e12, 1e12 + 0.25], 50)])
def test_values_beyond_what_a_grid_can_tell_apart_have_none(values):
    assert heaps_of(values, 1e-3)[0].size == 0


def test_units_do_not_matter(heaped):
    ends, shifts = heaps_of(heaped, 0.1)
    large = heaps_of(heaped * 1000.0, 100.0)
    np.testing.assert_allclose(large, [1000.0 * ends, 1000.0 * shifts], rtol=ROUNDING, atol=ROUNDING)


# --- the definition


def slow_ends(values, width, a):
    """Return what recorded ends are by definition, for a column of one run: by sums over all values and bisection."""
    step, count = np.unique(np.rint(values / width), return_counts=True)
    lo, hi, n = step[0] - 0.5, step[-1] + 0.5, count.sum()
    reach = []
    for centre in step:
        window = 1.0
        while True:
            inside = np.abs(step - centre) <= window
            if inside.all() or count[inside].sum() ** 2 / (count[inside] ** 2).sum() >= HEAP_NEIGHBOURS:
                break
            window *= np.sqrt(2.0)
        reach.append(min(window, hi - lo))

    def spread(x):
        total = 0.0
        for centre, c, w in zip(step, count, reach, strict=True):
            for image in (centre, 2 * lo - centre, 2 * hi - centre):
                t = np.clip((np.array([x, lo]) - image) / w, -1.0, 1.0)
                total += c * -np.diff(0.5 + 0.75 * (t - t**3 / 3.0))[0]
        return total

    whole = spread(hi)

    def smooth(x):
        return (n * spread(x) / whole + (x - lo) / (hi - lo)) / (n + 1.0)

    ends = np.unique([step - 0.5, step + 0.5])
    grid = np.array([smooth(end) for end in ends])
    moved = []
    for end, share in zip(ends, grid, strict=True):
        wanted = (count[step < end].sum() + a * share) / (n + a)
        moved.append(brentq(lambda x, y=wanted: np.interp(x, ends, grid) - y, lo, hi, xtol=1e-13))
    moved[0], moved[-1] = lo, hi
    return ends * width, (1.0 - HEAP_LEAST_SLOPE) * (np.array(moved) - ends) * width, grid


def slow_evidence(values, width, grid, a):
    """Return the log probability of the counts: a Dirichlet process around the smooth shares, less these alone."""
    step, count = np.unique(np.rint(values / width), return_counts=True)
    ends = np.unique([step - 0.5, step + 0.5])
    share = np.array([grid[ends == s + 0.5][0] - grid[ends == s - 0.5][0] for s in step])
    log_process = sum(np.log(a * q + np.arange(c)).sum() for q, c in zip(share, count, strict=True))
    return log_process + gammaln(a) - gammaln(a + count.sum()) - count @ np.log(share)


def test_ends_are_those_of_the_definition(rng):
    values = favouring(rng, rng.gamma(4.0, 1.0, 300), 0.1, 1.0, 0.5)
    ends, shifts = heaps_of(values, 0.1)
    n = values.size
    tried = np.geomspace(HEAP_LEAST_CONCENTRATION, HEAP_EVEN * n, HEAP_N_CONCENTRATION)
    grid = slow_ends(values, 0.1, 1.0)[2]
    best = tried[np.argmax([slow_evidence(values, 0.1, grid, a) for a in tried])]
    slow = slow_ends(values, 0.1, best)
    np.testing.assert_allclose(ends, slow[0], rtol=ROUNDING)
    np.testing.assert_allclose(shifts, slow[1], atol=ROUNDING)


# --- cells


def test_cells_of_neighbouring_grid_points_share_their_ends(heaped):
    column = column_of(heaped)
    grid = np.arange(50, 150) * 0.1
    centre, half = (part[0] for part in recorded_cells(Schema((column,)), grid[None]))
    np.testing.assert_allclose((centre + half)[:-1], (centre - half)[1:], atol=ROUNDING)
    assert half.min() > 0.0
    assert [half[0], half[-1]] == pytest.approx([0.05, 0.05], rel=ROUNDING)  # beyond all values


def test_even_cells_are_half_a_resolution_to_either_side_of_the_grid_point():
    schema = as_table(pd.DataFrame({"x": np.arange(100) / 10.0, "n": np.arange(100) % 30})).schema
    centre, half = recorded_cells(schema, np.array([[0.14, 0.16, -0.04], [1.0, 2.0, 3.0]]))
    np.testing.assert_allclose(centre, [[0.1, 0.2, 0.0], [1.0, 2.0, 3.0]], atol=1e-15)
    np.testing.assert_allclose(half, [[0.05] * 3, [0.0] * 3])


def test_cells_are_even_on_request(heaped):
    schema = Schema((column_of(heaped),))
    assert np.ptp(recorded_cells(schema, heaped[None])[1]) > 0.1
    assert np.ptp(recorded_cells(schema, heaped[None], even=True)[1]) == 0.0


def test_atoms_and_empty_stretches_keep_even_cells(rng):
    near = favouring(rng, rng.normal(10.0, 1.0, N), 0.1, 0.5, 0.6)
    far = favouring(rng, rng.normal(900.0, 1.0, N), 0.1, 0.5, 0.6)
    ends, shifts = heaps_of(np.concatenate([near, far, np.full(400, 10.2)]), 0.1, atoms=(10.2,))
    moved = np.interp([10.15, 10.25, 399.95, 400.05], ends, shifts)
    np.testing.assert_allclose(moved, 0.0, atol=ROUNDING)
    assert np.abs(shifts).max() > 0.05


def test_schema_keeps_them(heaped):
    schema = Schema((column_of(heaped),))
    assert schema.columns[0].cell_ends
    assert Schema.from_dict(schema.to_dict()) == schema


def test_schemas_of_before_are_read_with_even_cells(heaped):
    plain = Schema((column_of(heaped),)).to_dict() | {"format": 2}
    for entry in plain["columns"]:
        del entry["cell_ends"], entry["cell_shifts"]
    assert Schema.from_dict(plain).columns[0].cell_ends == ()


def test_schema_of_before_must_hold_what_its_own_format_did(heaped):
    plain = Schema((column_of(heaped),)).to_dict() | {"format": 2}
    del plain["columns"][0]["minimum"]
    with pytest.raises(SchemaError, match="minimum"):
        Schema.from_dict(plain)


@pytest.mark.parametrize(
    ("ends", "shifts"),
    [
        ((0.0, 1.0), (0.0,)),
        ((1.0, 0.0), (0.0, 0.0)),
        ((0.0, 1.0), (0.0, -2.0)),
        ((0.0, 1.0), (0.0, -1.0)),
        ((0.0, np.nan), (0.0, 0.0)),
    ],
    ids=["too few", "descending", "crossing", "without width", "not a number"],
)
def test_broken_ends_in_a_file_are_refused(heaped, ends, shifts):
    with pytest.raises(FitFileError, match="cells"):
        check_columns(Schema((replace(column_of(heaped), cell_ends=ends, cell_shifts=shifts),)))
