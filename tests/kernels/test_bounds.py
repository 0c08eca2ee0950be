"""Tests of kernels and families once more, with every index checked: compiled code reads no memory but its arrays."""

from __future__ import annotations

import pytest

from tests.kernels.runs import needs_compiler, run_python

BOUNDED = ("tests/kernels", "tests/families/test_contract.py", "tests/families/test_contract_extremes.py")
MANY_DRAWS = (
    "test_scales.py::test_a_leaf_that_is_counted_twice_is_caught",
    "test_leaf.py::test_moments_agree_with_quadrature",
    "test_type_prior.py::test_draws_have_the_conditional_distribution",
    "test_collapsed.py::test_a_scan_takes_the_paths_of_the_slow_twin",
)
"""They take a third of the time for draws and points of quadratures; others of their files read the same arrays."""
OUT_OF_BOUNDS = "import numpy as np; from bayesjpt.kernels import rows; rows.add(np.ones(2), np.ones(9))"


@needs_compiler
@pytest.mark.slow
def test_kernels_and_families_stay_within_bounds(tmp_path):
    # on a warm cache the flag checks nothing, hence the empty one; about two minutes
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    planted = run_python(["-c", OUT_OF_BOUNDS], **checked)
    assert "IndexError" in planted.stderr
    left_out = [f"--deselect=tests/kernels/{name}" for name in MANY_DRAWS]
    result = run_python(["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *left_out, *BOUNDED], **checked)
    assert result.returncode == 0, result.stdout[-5000:]
