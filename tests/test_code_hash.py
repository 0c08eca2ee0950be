"""Hashes tell apart what draws differently, and nothing else, in any process."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

from bayesjpt import code_hash
from bayesjpt.code_hash import hash_of, package_hash, without_address
from bayesjpt.families import registry

_PROGRAM = """
from bayesjpt.code_hash import hash_of
LIMIT = {limit}
calls = []
def helper(x):
    return x {sign} 1
def learner(table, rng, size={size}):
    calls.append(1)
    if helper(table) in {{"a", "b", "c"}}:
        helper(LIMIT)
    return size
learner(1, 2){call}
print(hash_of(learner))
# {comment}
"""


@pytest.fixture(scope="module")
def hash_in_program(run_python):
    def run(**change):
        words = {"limit": 1, "sign": "+", "size": 3, "call": "", "comment": ""}
        return run_python(_PROGRAM.format(**words | change))

    return functools.cache(run)


@pytest.mark.parametrize("change", [{"limit": 2}, {"sign": "-"}, {"size": 4}])
def test_functions_of_a_program_differ_by_what_they_use(hash_in_program, change):
    assert hash_in_program(**change) != hash_in_program()


@pytest.mark.parametrize("change", [{"comment": "resume=True"}, {"call": "; learner(2, 3)"}])
def test_functions_of_a_program_do_not_differ_by_its_other_lines(hash_in_program, change):
    assert hash_in_program(**change) == hash_in_program()


@pytest.mark.parametrize("edited", ["helper = 2", "def helper():\n    return 2"])
def test_functions_of_a_file_differ_by_the_file(tmp_path, run_python, edited):
    found = []
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import own, bayesjpt.code_hash as c"
    for text in ("helper = 1", edited, "helper = 1"):
        (tmp_path / "own.py").write_text(f"{text}\ndef learner(table, rng):\n    return helper\n")
        found.append(run_python(f"{program}; sys.dont_write_bytecode = True; print(c.hash_of(own.learner))"))
    assert found[0] != found[1]
    assert found[0] == found[2]


def long(change=0.0):
    values = np.zeros(5_000)
    values[2_500] = change
    return values


def enclosing(value):
    def learner():
        return value

    return learner


def counting():
    n = 0

    def learner():
        nonlocal n
        n += 1

    return learner


class Callable:
    def __init__(self, value):
        self.value = value

    def __call__(self):
        return self.value


DIFFERENT = [
    (lambda: 1, lambda: 2),
    (long(), long(1.0)),
    (long(), long().astype(np.float32)),
    (np.array(["a", 1], object), np.array(["a", 2], object)),
    ([long()], [long(1.0)]),
    (["a, b"], ["a", "b"]),
    ({"a": long()}, {"a": long(1.0)}),
    ({1, 2}, {1, 3}),
    (enclosing(1), enclosing(2)),
    (enclosing(long()), enclosing(long(1.0))),
    (enclosing(lambda: 1), enclosing(lambda: 2)),
    (functools.partial(enclosing, 1), functools.partial(enclosing, 2)),
    (Callable(1), Callable(2)),
    (Callable(1).__call__, Callable(2).__call__),
    (max, min),
    (np.exp, np.log),
    (registry.family("normal"), registry.family("gamma")),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_values_that_differ_have_other_hashes(one, other):
    assert hash_of(one) != hash_of(other)


@pytest.mark.parametrize(
    "make",
    [
        lambda: (1, "a", None, 2.5),
        long,
        lambda: {"a": long(), "b": {1, 2}},
        lambda: enclosing(long()),
        lambda: functools.partial(enclosing, long()),
        lambda: Callable(object()),
    ],
)
def test_values_that_are_alike_have_one_hash(make):
    assert hash_of(make()) == hash_of(make())


def test_what_a_function_changes_is_no_part_of_it():
    function, calls = counting(), []
    watched = enclosing(calls)
    before = hash_of(function), hash_of(watched)
    function()
    calls.append(1)
    assert (hash_of(function), hash_of(watched)) == before


def test_values_may_hold_themselves():
    loop: list[object] = [1]
    loop.append(loop)
    assert hash_of(loop) != hash_of([1])


def test_hashes_are_those_of_another_process(run_python):
    program = (
        "import json, numpy as np; from bayesjpt.code_hash import hash_of, package_hash\n"
        "from bayesjpt.families import registry\n"
        "values = [{'a', 'b', 'c'}, ['a', 1.5], np.arange(9), registry.family('spline'), registry.register_family]\n"
        "print(json.dumps([package_hash(), *map(hash_of, values)]))"
    )
    values = [{"a", "b", "c"}, ["a", 1.5], np.arange(9), registry.family("spline"), registry.register_family]
    assert json.loads(run_python(program)) == [package_hash(), *map(hash_of, values)]


def test_the_hash_of_the_package_changes_with_any_file_and_its_name(tmp_path, monkeypatch):
    (tmp_path / "structure" / "__pycache__").mkdir(parents=True)
    file = tmp_path / "structure" / "learner.py"
    file.write_text("a")
    monkeypatch.setattr(code_hash, "__file__", str(tmp_path / "code_hash.py"))
    found = [package_hash.__wrapped__()]
    (tmp_path / "structure" / "__pycache__" / "learner.py").write_text("a")
    assert package_hash.__wrapped__() == found[0]
    file.write_text("b")
    found.append(package_hash.__wrapped__())
    file.rename(file.with_name("other.py"))
    found.append(package_hash.__wrapped__())
    assert len(set(found)) == len(found)


def test_words_hold_no_addresses():
    assert without_address(object()) == "<object object>"
