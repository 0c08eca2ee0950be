"""Cached kernels are compiled anew when any kernel source changes, and loaded when none does."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import shutil
import subprocess
import sys
import typing
from pathlib import Path

import numba
import pytest

from bayesjpt.families import gamma
from bayesjpt.numerics import jit

_CALLEE = "from toy.numerics.jit import kernel\n\n\n@kernel\ndef double(x):\n    return {factor} * x\n"
_CALLER = """
from toy.numerics.callee import double
from toy.numerics.jit import kernel


@kernel
def shifted(x):
    return double(x) + 1.0
"""
_RUN = "from toy.families.caller import shifted; print(shifted(3.0), sum(shifted.stats.cache_hits.values()))"
_GAMMA = """
import numpy as np
from bayesjpt.families import gamma
stats, hyper = np.array([3.0, 4.0, 0.5, 1.0]), np.array([0.7, 1.5, 100.0, 2.0, 2.0, 1.0, 0.0])
theta = np.ones(2)
status = gamma.FAMILY.draw_posterior(stats, hyper, np.array([0.01]), theta, np.random.default_rng(1))
print(status, sum(gamma.FAMILY.draw_posterior.stats.cache_hits.values()))
"""

needs_compiler = pytest.mark.skipif(
    not hasattr(gamma.FAMILY.draw_posterior, "stats"), reason="numba's JIT is switched off"
)


def _python(code: str, **environment: str) -> list[str]:
    result = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return result.stdout.split()


@pytest.fixture
def toy(tmp_path) -> Path:
    """Return the folder of a package of two rooms whose caller and callee live in different files."""
    root = tmp_path / "toy"
    for room in ("numerics", "families"):
        (root / room).mkdir(parents=True)
        (root / room / "__init__.py").write_text("")
    (root / "__init__.py").write_text("")
    shutil.copy(jit.__file__, root / "numerics" / "jit.py")
    (root / "numerics" / "callee.py").write_text(_CALLEE.format(factor="2.0"))
    (root / "families" / "caller.py").write_text(_CALLER)
    return root


@needs_compiler
def test_edited_callee_in_another_file_is_noticed(toy):
    environment = {"PYTHONPATH": str(toy.parent), "NUMBA_CACHE_DIR": str(toy.parent / "cache")}
    assert _python(_RUN, **environment) == ["7.0", "0"]
    assert _python(_RUN, **environment) == ["7.0", "1"]
    (toy / "numerics" / "callee.py").write_text(_CALLEE.format(factor="5.0"))
    assert _python(_RUN, **environment) == ["16.0", "0"]


@needs_compiler
def test_gamma_update_is_loaded_from_the_cache_by_the_next_process():
    project = str(Path(jit.__file__).resolve().parents[2])
    _python(_GAMMA, PYTHONPATH=project)
    assert _python(_GAMMA, PYTHONPATH=project) == ["0", "1"]


def test_source_version_changes_with_a_source_and_with_its_name(toy, monkeypatch):
    monkeypatch.setattr(jit, "_PACKAGE", toy)
    monkeypatch.setattr(jit, "source_hash", jit.source_hash.__wrapped__)
    before = jit.source_version()
    assert jit.source_version() == before
    callee = toy / "numerics" / "callee.py"
    callee.write_text(_CALLEE.format(factor="5.0"))
    edited = jit.source_version()
    callee.rename(toy / "numerics" / "renamed.py")
    assert len({before, edited, jit.source_version()}) == 3


_TAKEN_APART = {"Priors", "Edit", "Network"}
"""NamedTuples of which compiled functions are given single fields: arrays, or NamedTuples within."""


def _given(name: str, thing: object) -> list[type]:
    """Return the NamedTuples that compiled functions are given of a name that a kernel's file imports."""
    if not (isinstance(thing, type) and hasattr(thing, "_fields")):
        return []
    if name in _TAKEN_APART:
        return [each for field in typing.get_type_hints(thing).values() for each in _given("", field)]
    return [thing]


def test_hash_covers_the_files_of_all_named_tuples_that_kernels_are_given():
    root = Path(jit.__file__).resolve().parents[1]
    hashed = {path for pattern in jit._SOURCES["kernels"] for path in root.glob(pattern)}
    found = set()
    for file in (root / "kernels").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayesjpt.circuit"):
                for name in (alias.name for alias in node.names):
                    thing = getattr(importlib.import_module(node.module), name, None)
                    found |= {Path(inspect.getfile(each)) for each in _given(name, thing)}
    assert {path.name for path in found} >= {"plan.py", "scales.py", "type_prior.py"}
    assert found <= hashed
    assert hashed <= {path for pattern in jit._EVERYTHING for path in root.glob(pattern)}


def test_source_version_is_below_two_to_the_56():
    assert 0 <= jit.source_version() < 2**56


@jit.kernel
def _twice(x):
    return 2 * x


@jit.kernel
def _some_calls(n):
    at, total = 0, 0
    while at < n:
        total += _twice(at) + _twice(-1)
        at += 1
    return total


def test_numbers_in_the_source_of_callers_compile_nothing_of_their_own():
    assert numba.njit(_some_calls.py_func)(3) == 0  # from a cache it would not ask for what it calls
    assert len(_twice.signatures) == 1
