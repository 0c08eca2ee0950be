"""Two parts of a leaf's cell add up to the cell, wherever it lies and however few floats it holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bayesjpt.families import registry
from bayesjpt.kernels.events import cut_log_mass

FAR = (166_960.77715632773, 166_960.77715633396)
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
    ],
    ids=["far", "wide", "tail", "few floats", "gamma", "lognormal", "lost", "below the first float"],
)
def test_two_parts_of_a_cell_add_up_to_it(family, theta, cell, units):
    number, parameters, nothing = registry.number(family), np.array(theta), np.empty(0)
    lo, hi = max(cell[0], 0.0), cell[1]
    for part in (0.0, 1e-9, 0.1, 0.5, 0.9):
        last = lo + part * (hi - lo)
        beyond = math.nextafter(last, math.inf)
        parts = [(-math.inf, last), (beyond, math.inf)]
        found = [math.exp(cut_log_mass(number, ends, cell, units, parameters, nothing)) for ends in parts]
        assert min(found) >= 0.0
        assert sum(found) == pytest.approx(1.0, abs=1e-12)
