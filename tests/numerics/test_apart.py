"""Kernels that are called by address: the same answers, from any caller in any process."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import types
from numba.core.runtime import _nrt_python as _nrt
from numba.core.runtime import rtsys

from bayesjpt.numerics import apart as module
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.borrowed import Borrowed, borrowed, by_address
from bayesjpt.numerics.jit import kernel


@by_address
class Numbers(NamedTuple):
    """One array."""

    values: np.ndarray


@apart
@kernel
def _scaled(numbers, factor, table, flag, pair, rng):
    """Return a new array, made of everything that it is given."""
    if not flag:
        return numbers.values.copy()
    return numbers.values * factor + table[1] * pair[0] + pair[1] + rng.random()


@kernel
def _caller(numbers, factor, table, flag, rng):
    total = 0.0
    for _ in range(100):
        total += _scaled(borrowed(numbers), factor, table, flag, (2.0, 3), rng).sum()
    return total


def test_a_call_by_address_takes_and_returns_what_a_call_does():
    numbers, table = Numbers(np.arange(3.0)), np.arange(6.0).reshape(2, 3)
    twin = np.random.default_rng(5)
    expected = sum((np.arange(3.0) * 1.5 + table[1] * 2.0 + 3 + twin.random()).sum() for _ in range(100))
    assert _caller(numbers, 1.5, table, True, np.random.default_rng(5)) == pytest.approx(expected, rel=1e-12)
    assert _caller(numbers, 1.5, table, False, np.random.default_rng(5)) == 300.0


@pytest.fixture
def counted():
    """Return what tells how many arrays compiled code has made and given back since."""
    _nrt.memsys_enable_stats()
    first = rtsys.get_allocation_stats()
    yield lambda: tuple(now - then for now, then in zip(rtsys.get_allocation_stats()[:2], first[:2], strict=True))
    _nrt.memsys_disable_stats()


def test_every_array_that_a_callee_returns_is_given_back(counted):
    _caller(Numbers(np.arange(3.0)), 1.5, np.zeros((2, 3)), True, np.random.default_rng(5))
    made, given_back = counted()
    assert made == given_back >= 100


def test_the_caller_holds_no_code_of_the_callee():
    numbers, table = Numbers(np.arange(3.0)), np.zeros((2, 3))
    compiled = numba.njit(_caller.py_func)  # code from a cache cannot be looked at
    compiled(numbers, 1.5, table, True, np.random.default_rng(5))
    (code,) = compiled.inspect_llvm().values()
    assert "_scaled" in code  # by name, in a string
    assert not [line for line in code.splitlines() if line.startswith("define") and "_scaled" in line]


def test_a_type_is_found_again_from_its_text():
    members = types.BaseTuple.from_types((types.Array(types.float64, 1, "C"),), Numbers)
    kinds = (
        types.int64, types.int32, types.uint64, types.float64, types.boolean, types.npy_rng,
        types.Array(types.boolean, 2, "C"), types.Array(types.int32, 1, "A"),
        types.Array(types.float64, 3, "F", readonly=True),
        types.UniTuple(types.float64, 2), types.Tuple((types.int64, types.Array(types.float64, 1, "C"))),
        Borrowed(members),
    )  # fmt: skip
    for kind in kinds:
        assert module._to_type(module._to_text(kind)) == kind


PROGRAM = """
import sys
import numpy as np
from numba.core import event
from {name} import outer

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
print(outer(np.arange(4.0)), compiled)
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "called_apart.py").write_text(
        "from bayesjpt.numerics.apart import apart\n"
        "from bayesjpt.numerics.jit import kernel\n\n"
        "@apart\n@kernel\ndef inner(x):\n    return x.sum()\n\n"
        "@kernel\ndef outer(x):\n    return inner(x) + 1.0\n"
    )
    (tmp_path / "called_late.py").write_text(
        "from numba import types\n"
        "from bayesjpt.numerics.apart import apart_until_called\n"
        "from bayesjpt.numerics.jit import kernel\n\n"
        "@apart_until_called(types.float64)\n@kernel\ndef inner(x):\n    return 10.0 * x[0]\n\n"
        "@apart_until_called(types.int64)\n@kernel\ndef wrong(x):\n    return x[0]\n\n"
        "@kernel\ndef outer(x):\n"
        "    if x[0] < 0.0:\n        return float(wrong(x))\n"
        "    return inner(x) + 1.0 if x[0] > 0.0 else 0.0\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join(
        [str(tmp_path), *sys.path])}  # fmt: skip

    def run(program: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    return run


def test_a_caller_from_disk_finds_what_it_calls_in_a_fresh_process(run):
    program = PROGRAM.format(name="called_apart")
    first, second = run(program), run(program)
    assert "7.0" in first.stdout, first.stderr
    assert "outer" in first.stdout
    assert second.stdout.strip() == "7.0 []", second.stderr


def test_a_callee_that_is_gone_is_an_error_and_no_crash(run):
    program = PROGRAM.format(name="called_apart")
    run(program)
    found = run("import called_apart\ndel called_apart.inner\n" + program)
    assert found.returncode == 1
    assert "RuntimeError: inner cannot be compiled" in found.stderr


def test_an_interrupt_while_a_callee_is_found_is_one_and_the_next_call_finds_it(run):
    program = """
import contextlib
import numpy as np
from bayesjpt.numerics import apart
from called_apart import outer

def interrupted(text):
    raise KeyboardInterrupt

find, apart._address_of = apart._address_of, interrupted
for _ in range(2):
    with contextlib.suppress(KeyboardInterrupt):
        outer(np.arange(4.0))
        print("not interrupted")
apart._address_of = find
print(outer(np.arange(4.0)))
"""
    found = run(program)
    assert (found.returncode, found.stdout, found.stderr) == (0, "7.0\n", "")


def test_a_kernel_that_says_what_it_returns_is_compiled_when_it_is_called(run):
    program = PROGRAM.format(name="called_late") + "print(outer(1.0 + np.arange(4.0)), compiled)\n"
    first, second = run(program), run(program)
    assert first.stdout.splitlines() == ["0.0 ['outer']", "11.0 ['outer', 'inner']"], first.stderr
    assert second.stdout.splitlines() == ["0.0 []", "11.0 []"], second.stderr


def test_a_kernel_that_returns_something_else_than_it_says_is_an_error(run):
    found = run(PROGRAM.format(name="called_late") + "outer(-np.ones(4))\n")
    assert found.returncode == 1
    assert "called_late.wrong returns float64, not int64" in found.stderr
    assert "RuntimeError: wrong cannot be compiled" in found.stderr
