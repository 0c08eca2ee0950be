"""Ends of intervals: neighbours share one, to the last bit, wherever the space between them is not nothing."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bayesjpt.numerics.ends import lower_end, upper_end
from tests.strategies import law

NOTHING = 1e-10
"""Resolutions, or parts of the number that is nearer to 0."""
numbers = st.floats(-1e300, 1e300)
widths = st.floats(1e-200, 1e200)


@law(300)
@given(x=numbers, offset=numbers, scale=widths, resolution=widths)
@example(x=2.0**60, offset=2.0**60, scale=3.0, resolution=1.0)
@example(x=0.0, offset=0.0, scale=1e-200, resolution=1e-203)
@example(x=5e-324, offset=0.0, scale=1e-300, resolution=1e-303)
@example(x=-5e-324, offset=0.0, scale=1e-300, resolution=1e-303)
@example(x=-1e-323, offset=0.0, scale=1e-300, resolution=1e-303)
@example(x=4.94e-314, offset=0.0, scale=1e-300, resolution=1e-303)
@example(x=5e-314, offset=0.0, scale=1e-300, resolution=1e-303)
@example(x=-(2.0**60), offset=2.0**59 + 1e3, scale=7.0, resolution=1e3)
@example(x=math.nextafter(2.0**60, 0.0), offset=0.0, scale=1e-3, resolution=1e-3)
def test_nothing_lies_between_two_neighbouring_floats(x, offset, scale, resolution):
    assume(abs(x) < 1e16 * 1e200 and abs(x - offset) / scale < 1e300)
    beyond = math.nextafter(x, math.inf)
    units = offset, scale, resolution
    above, below = upper_end(x, units), lower_end(beyond, units)
    z, z_beyond = (x - offset) / scale, (beyond - offset) / scale
    assert z <= above <= below <= z_beyond
    if beyond - x > NOTHING * min(resolution, abs(x), abs(beyond)):
        assert above == below
    else:
        assert (above, below) == (z, z_beyond)


@law(100)
@given(x=numbers, offset=numbers, scale=widths)
def test_points_end_where_they_are(x, offset, scale):
    with np.errstate(over="ignore"):
        z = (x - offset) / scale
        assert upper_end(x, (offset, scale, 0.0)) == lower_end(x, (offset, scale, 0.0)) == z


def test_infinite_ends_stay():
    for end in (-math.inf, math.inf):
        assert upper_end(end, (5.0, 2.0, 1.0)) == lower_end(end, (5.0, 2.0, 1.0)) == end
