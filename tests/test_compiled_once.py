"""What a fit, its queries and a saved fit compile, they compile once: for frozen arrays and others, int32 and int64."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.numerics.jit import kernel, read_only

PROGRAM = """
import pathlib, sys, tempfile
import numpy as np, pandas as pd
from numba import types
from numba.core.dispatcher import Dispatcher
{before}
import bayesjpt as bj

def common(kind):
    kind = types.unliteral(kind)
    if isinstance(kind, types.Integer) and kind.signed:
        return "int64"
    if isinstance(kind, types.Array):
        return str(kind.copy(readonly=False))
    return tuple(map(common, kind.types)) if isinstance(kind, types.BaseTuple) else str(kind)

rng, folder = np.random.default_rng(1), pathlib.Path(tempfile.mkdtemp())
frame = pd.DataFrame({{"a": rng.normal(size=120).round(2), "n": rng.poisson(3, 120)}})
frame["b"], frame["c"] = rng.choice(list("xyz"), 120), rng.choice(["u", "v"], 120)
frame.loc[::9, "a"] = None
labels = frame[["b", "c"]].assign(d=frame["b"])
for learner in ("mspn", "jpt"):
    bj.fit(frame, learner, seed=1, n_structures=2, draws=2, tune=2, progress=False).save(folder / "fit.nc")
    post = bj.fit(frame, learner, seed=1, n_structures=2, draws=2, tune=2, progress=False)
    for each in (post, bj.load(folder / "fit.nc")):
        each.log_density(frame), each.probability("a > 0 and b = 'x'"), each.types(), each.mode(), each.dependence()
        each.probability("a > 0", frame.head(3)[["b"]]), each.expectation(given=frame.head(3)[["b"]])
        each.sample(3, rng=1), each.impute_mean(frame.head(20))
network = bj.fit(labels, "cutset", n_structures=2, seed=1, progress=False)
network.save(folder / "network.nc")
for each in (network, bj.load(folder / "network.nc")):
    each.log_density(labels), each.probability("b = 'x'")
for name, module in list(sys.modules.items()):
    for kernel in vars(module).values() if name.startswith("bayesjpt") else ():
        if isinstance(kernel, Dispatcher) and kernel.py_func.__module__ == name:
            kinds = [tuple(map(common, signature)) for signature in kernel.signatures]
            if len(set(kinds)) < len(kinds):
                print(f"{{name}}.{{kernel.__name__}}")
"""


def test_no_kernel_is_compiled_twice(run_python):
    assert run_python(PROGRAM.format(before="")) == ""


@pytest.mark.slow
def test_without_views_that_cannot_be_written_to_some_would_be(run_python):
    planted = "import bayesjpt.numerics.jit\nbayesjpt.numerics.jit.read_only = lambda array: array"
    assert "bayesjpt.circuit.scope._scope_sizes" in run_python(PROGRAM.format(before=planted)).split()


@kernel
def _value(x, at):
    return x[at]


@kernel
def _values(x, at):
    total = 0.0
    for k in range(at.size):
        total += _value(x, at[k]) + _value(x, k) + _value(x, 0)
    return total


def test_callers_share_the_code_for_frozen_arrays_and_for_integers_of_any_width():
    x = np.arange(4.0)
    for array in (x, read_only(x)):
        for kind in (np.int32, np.int64):
            assert _values(array, np.array([1, 2], kind)) == 4.0
    assert len(_value.signatures) == 1


def test_views_cannot_be_written_to_and_what_they_are_of_can():
    x = np.zeros(2)
    view = read_only(x)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0
    x[0] = 1.0
    assert view[0] == 1.0
