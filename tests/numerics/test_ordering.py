"""The stable order of keys, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.numerics.ordering import stable_order


@pytest.mark.parametrize("dtype", [np.float64, np.uint64])
@given(keys=st.lists(st.integers(0, 6), max_size=40))
def test_equal_keys_keep_their_order(dtype, keys):
    keys = np.array(keys, dtype)
    assert np.array_equal(stable_order(keys), np.argsort(keys, kind="stable"))
