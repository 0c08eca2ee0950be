"""Compiled code on disk: whatever befalls its files, a kernel answers."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import pytest

from bayesjpt.internals import FunctionCache
from tests.kernels.runs import needs_compiler

SOURCE = """
from bayesjpt.numerics.jit import kernel


@kernel
def half(x):
    return 0.5 * x
"""

pytestmark = needs_compiler
numbers = itertools.count()


@pytest.fixture
def source(tmp_path) -> Path:
    path = tmp_path / "halves.py"
    path.write_text(SOURCE)
    return path


def ask(source: Path) -> int:
    """Import the source as a new process would and call its kernel; return how often the cache knew the code."""
    spec = importlib.util.spec_from_file_location(f"halves_{next(numbers)}", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.half(3.0) == 1.5
    return sum(module.half.stats.cache_hits.values())


def test_code_is_kept_beside_its_source(source):
    assert [ask(source), ask(source)] == [0, 1]
    assert list((source.parent / "__pycache__").glob("halves.half*.nbc"))


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"\x80\x05", b"no pickle at all"], ids=["empty", "cut", "others"])
def test_a_damaged_file_is_made_anew(source, kind, content):
    ask(source)
    for path in (source.parent / "__pycache__").glob(f"*.{kind}"):
        path.write_bytes(content)
    assert [ask(source), ask(source)] == [0, 1]


def test_a_disk_without_room_costs_the_cache_alone(source, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    assert [ask(source), ask(source)] == [0, 0]


def test_a_function_without_a_source_file_is_compiled():
    space: dict = {}
    exec(compile(SOURCE, "<nowhere>", "exec"), space)
    assert space["half"](3.0) == 1.5


def test_where_no_folder_can_be_written_the_one_beside_the_source_is_read(source, monkeypatch):
    ask(source)

    def read_only(self):
        raise OSError(30, "Read-only file system")

    for place in FunctionCache._impl_class._locator_classes:
        monkeypatch.setattr(place, "ensure_cache_path", read_only)
    assert ask(source) == 1
