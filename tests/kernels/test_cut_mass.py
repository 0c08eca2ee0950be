"""Two parts of a leaf's cell add up to the cell, wherever it lies and however few floats it holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from bayesjpt.families import features, registry
from bayesjpt.kernels.events import cut_log_mass
from bayesjpt.table.schema import Column

FAR = (166_960.77715632773, 166_960.77715633396)
WHOLE = (-math.inf, math.inf)
NARROW = (8.962051474000740e-05, 8.962051474009999e-05)


@pytest.mark.parametrize(
    ("family", "theta", "cell", "units"),
    [
        ("normal", (2300.4140008789873, 214.67889122018565), FAR, (166_960.7772714789, 0.199392219336, 1.99392219e-4)),
        ("normal", (2.31327884830695e28, -539.981771737846), (2e-20, 1e-5), (1.9338774e-8, 200.483, 0.200483)),
        ("normal", (1.0, 40.0), (-math.inf, 1e-3), (0.0, 1.0, 1e-3)),
        ("normal", (252.5959629441, 68.8677238590539), NARROW, (8.962072754078279e-05, 3.548582e-07, 3.548582e-10)),
        ("gamma", (639.8145255781848, 3.118866643365028), NARROW, (0.0, 3.548582e-07, 3.548582e-10)),
        ("lognormal", (4.058855654561528e-03, 5.621676051191627), NARROW, (0.0, 3.548582e-07, 3.548582e-10)),
        ("lognormal", (1.4498949044683116e-10, -4.7292632809233421e35), (4e-13, 1.0), (0.0, 8.2, 8.2e-3)),
        ("lognormal", (3.9e-14, -3.3148372777855706e14), (-math.inf, 1e-24), (0.0, 2.19e-10, 2.19e-13)),
        ("gamma", (0.03516611326998655, 0.7397647095655052), WHOLE, (0.0, 5e-301, 5e-304)),
        ("gamma", (0.03516611326998655, 0.7397647095655052), (0.0, 1e-300), (0.0, 5e-301, 5e-304)),
    ],
    ids=["far", "wide", "tail", "few floats", "gamma", "lognormal", "lost", "below the first float", "near 0", "cut"],
)
def test_two_parts_of_a_cell_add_up_to_it(family, theta, cell, units):
    number, parameters, nothing = registry.number(family), np.array(theta), np.empty(0)
    lo, hi = max(cell[0], 0.0), cell[1]
    for last in (*(lo + part * (min(hi, 1.0) - lo) for part in (0.0, 1e-9, 0.1, 0.5, 0.9)), lo + 5e-324, lo + 1e-323):
        beyond = math.nextafter(last, math.inf)
        parts = [(-math.inf, last), (beyond, math.inf)]
        found = [math.exp(cut_log_mass(number, ends, cell, (*units, 0.0), parameters, nothing)) for ends in parts]
        assert min(found) >= 0.0
        assert sum(found) == pytest.approx(1.0, abs=1e-12)


def test_whole_numbers_far_from_their_mean_add_up_to_their_cell():
    column = Column("n", "integer", (0.0, math.inf), location=1.91903441622175e13, scale=499_118.25, maximum=2e13)
    family = registry.family("truncated_rounded_normal")
    units = *features.offset_and_scale(family.scaling, column), 0.0, 1.0
    for theta in ((0.0015152, -0.078866137), (8e-11, 1.6e9), (8e-11, 1.6e28), (8e-11, -1.6e200)):
        for cell in ((-math.inf, 19_190_343_653_999.0), (19_190_343_600_000.0, 19_190_343_653_999.0)):
            for last in (19_190_343_607_757.0, 19_190_343_650_000.0):
                found = [
                    math.exp(
                        cut_log_mass(
                            registry.number(family.name), ends, cell, units, np.array(theta), family.constants(column)
                        )
                    )
                    for ends in ((-math.inf, last), (last + 1.0, math.inf))
                ]
                assert sum(found) == pytest.approx(1.0, abs=1e-12)


def test_whole_numbers_between_ends_that_are_none():
    number, theta, cell = registry.number("poisson"), np.array([3.0]), (-math.inf, 9.0)
    found = [
        cut_log_mass(number, ends, cell, (0.0, 1.0, 0.0, 1.0), theta, np.empty(0)) for ends in ((2.5, 7.9), (3.0, 7.0))
    ]
    mass = scipy.stats.poisson(3.0)
    assert found == pytest.approx([math.log((mass.cdf(7) - mass.cdf(2)) / mass.cdf(9))] * 2, abs=1e-14)


def test_atoms_of_a_cell_add_up_to_it():
    atoms, theta = (1.0, 1.25, 1.5, 7.0), np.array([0.1, 0.2, 0.3, 0.4])
    family = registry.family("atom")
    constants = family.constants(Column("x", "real", (-math.inf, math.inf), atoms=atoms))
    found = [
        cut_log_mass(registry.number("atom"), ends, (0.0, 2.0), (0.0, 1.0, 0.0, 0.0), theta, constants)
        for ends in ((-math.inf, 1.2), (1.25, math.inf))
    ]
    assert np.exp(found) == pytest.approx([1 / 6, 5 / 6], abs=1e-15)
