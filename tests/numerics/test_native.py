"""Functions called by address: the right one, with its types, in any process, and an error where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from numba import float64

from bayesjpt.numerics import native
from bayesjpt.numerics.jit import kernel

ROW = native.N_ROW - 1
SIGNATURE = float64(float64, float64[::1])
_call = native.caller(SIGNATURE)


@kernel
def weighted(x, weights):
    return x * weights.sum()


@kernel
def shifted(x, weights):
    return x + weights[0]


@kernel
def whole(x, weights):
    return 7


@kernel
def by_address(slot, x, weights):
    return _call(native.address(ROW * native.N_SLOT + slot), (x, weights))


WEIGHTS = np.array([2.0, 3.0])


def test_slot_calls_the_function_that_stands_there():
    native.put(ROW, 0, weighted, SIGNATURE)
    native.put(ROW, 1, shifted, SIGNATURE)
    assert by_address(0, 4.0, WEIGHTS) == 20.0
    assert by_address(1, 4.0, WEIGHTS) == 6.0


def test_function_put_in_the_place_of_another_is_called_from_then_on():
    native.put(ROW, 2, weighted, SIGNATURE)
    assert by_address(2, 4.0, WEIGHTS) == 20.0
    native.put(ROW, 2, shifted, SIGNATURE)
    assert by_address(2, 4.0, WEIGHTS) == 6.0


def test_empty_slot_raises_and_tells_why():
    with (
        pytest.warns(RuntimeWarning, match="TypeError: no function"),
        pytest.raises(RuntimeError, match="cannot be compiled"),
    ):
        by_address(9, 4.0, WEIGHTS)


def test_interrupt_while_a_slot_is_compiled_is_an_interrupt_and_the_next_call_compiles_it(monkeypatch):
    def interrupted(row, slot):
        raise KeyboardInterrupt

    native.put(ROW, 4, weighted, SIGNATURE)
    with monkeypatch.context() as patched:
        patched.setattr(native, "resolve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            by_address(4, 4.0, WEIGHTS)
    assert by_address(4, 4.0, WEIGHTS) == 20.0


def test_result_of_another_type_is_refused():
    native.put(ROW, 3, whole, SIGNATURE)
    with pytest.raises(TypeError, match="whole returns int64, not float64"):
        native.resolve(ROW, 3)
