"""Tests of kernels and families once more, with every index checked: compiled code reads no memory but its arrays."""

from __future__ import annotations

import pytest

from tests.kernels.runs import needs_compiler, run_python

BOUNDED = ("tests/kernels", "tests/families/test_contract.py", "tests/families/test_contract_extremes.py")
OUT_OF_BOUNDS = "import numpy as np; from bayesjpt.kernels import rows; rows.add(np.ones(2), np.ones(9))"


@needs_compiler
@pytest.mark.slow
def test_kernels_and_families_stay_within_bounds(tmp_path):
    # on a warm cache the flag checks nothing, hence the empty one; about two minutes
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    planted = run_python(["-c", OUT_OF_BOUNDS], **checked)
    assert "IndexError" in planted.stderr
    result = run_python(["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *BOUNDED], **checked)
    assert result.returncode == 0, result.stdout[-5000:]
