"""Each fault of `tests.sampler.faults` leaves things as they have to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kernels.runs import needs_compiler
from tests.sampler.faults import FAULTS, many_threads

pytestmark = needs_compiler


@pytest.mark.slow
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault is not many_threads], ids=lambda f: f.__name__)
def test_a_fault_leaves_everything_whole(fault: Callable[[Path], str], tmp_path):
    assert fault(tmp_path)


def test_threads_that_ask_one_posterior_get_what_one_thread_gets(tmp_path):
    assert many_threads(tmp_path)
