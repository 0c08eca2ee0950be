"""The stable order of keys, against NumPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesjpt.numerics.ordering import n_below, n_up_to, stable_order


@pytest.mark.parametrize("dtype", [np.float64, np.uint64])
@given(keys=st.lists(st.integers(0, 6), max_size=40))
def test_equal_keys_keep_their_order(dtype, keys):
    keys = np.array(keys, dtype)
    assert np.array_equal(stable_order(keys), np.argsort(keys, kind="stable"))


@given(ascending=st.lists(st.integers(0, 6), max_size=12).map(sorted), x=st.integers(-1, 7) | st.just(np.nan))
def test_counts_below_and_up_to_are_where_numpy_would_insert(ascending, x):
    ascending = np.array(ascending, np.float64)
    assert n_below(ascending, float(x)) == np.searchsorted(ascending, x)
    assert n_up_to(ascending, float(x)) == np.searchsorted(ascending, x, side="right")
