"""Hashes of what decides on draws beside rows and numbers: files of the package, functions and options of the user's.

They are the same in every process that runs the same code under the same version of Python, and tell when it was
edited. What they do not follow: modules that a module of the user's imports whole, unless it takes a function by name.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

_MAIN = ("__main__", "__mp_main__")
"""Names of the program itself, the second in processes that it starts. Its text is no part of a hash: whoever goes on
with a fit writes ``resume=True`` into it."""

_VERSIONED = ("bayesjpt", "numpy", "numba", "builtins")
"""Packages whose versions are compared as a whole (`bayesjpt.sampler.facts`)."""

_PLAIN = (int, float, complex, str, bytes, type(None), type(Ellipsis))
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@functools.cache
def package_hash() -> str:
    """Return the SHA-256 hex digest over all Python files of this package."""
    root, total = Path(__file__).resolve().parent, hashlib.sha256()
    for folder, folders, files in root.walk():
        # in their order; caches of compiled functions hold thousands of files
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for path in sorted(folder / name for name in files if name.endswith(".py")):
            total.update(path.relative_to(root).as_posix().encode())
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def hash_of(value: Any) -> str:
    """Return a SHA-256 hex digest of a value: of arrays by their bytes, of functions by their code, of objects by both.

    Of a function it covers the file of its module, its code as it was loaded, its defaults, and numbers, text, arrays
    and functions that it encloses; not lists and other things that calls may change. Of a function of the program
    itself (``__main__``) it covers functions and numbers of the program that it uses in place of the file.
    """
    hasher = _Hasher()
    hasher.add(value)
    return hasher.total.hexdigest()


def without_address(value: Any) -> str:
    """Return the words for an object, the same in all processes."""
    return _ADDRESS.sub("", repr(value))


class _Hasher:
    def __init__(self):
        self.total = hashlib.sha256()
        self._seen: dict[int, Any] = {}  # the values are kept, so no other one gets their addresses
        self._modules: set[str] = set()

    def _note(self, *words: object) -> None:
        self.total.update(f"{words!r};".encode())

    def add(self, value: Any) -> None:
        value = getattr(value, "py_func", value)  # what numba compiles
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, _PLAIN):
            self._note(type(value).__name__, value)
            return
        # tuples and arrays cannot hold themselves, and whether two that are alike are one object is chance
        if not isinstance(value, tuple | frozenset | np.ndarray):
            if id(value) in self._seen:
                self._note("again")
                return
            self._seen[id(value)] = value
        if isinstance(value, FunctionType):
            self._add_function(value)
        elif isinstance(value, MethodType):
            self._add_all("method", (value.__func__, value.__self__))
        elif isinstance(value, functools.partial):
            self._add_all("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, BuiltinFunctionType | ModuleType | np.ufunc):
            self._note(getattr(value, "__module__", None), value.__name__)
        elif isinstance(value, list | tuple):
            self._add_all("sequence", value)
        elif isinstance(value, set | frozenset):
            self._add_all("set", sorted(map(hash_of, value)))
        elif isinstance(value, Mapping):
            self._add_all("mapping", [each for pair in value.items() for each in pair])
        elif isinstance(value, type):
            self._add_class(value)
        elif hasattr(value, "__array__"):
            self._add_array(np.asarray(value))
        else:
            self.add(type(value))
            self.add(vars(value) if hasattr(value, "__dict__") else without_address(value))

    def _add_all(self, kind: str, values: Any) -> None:
        self._note(kind, len(values))
        for each in values:
            self.add(each)

    def _add_array(self, array: np.ndarray) -> None:
        if array.dtype.hasobject:  # whose bytes are addresses
            self._note("array", array.shape)
            self._add_all("objects", array.ravel().tolist())
        else:
            self._note("array", array.dtype.str, array.shape)
            self.total.update(np.ascontiguousarray(array).tobytes())

    def _add_class(self, kind: type) -> None:
        self._note("class", kind.__qualname__)
        if not _is_versioned(kind.__module__) and not self._has_text(kind.__module__):
            self._add_all("methods", [each for each in vars(kind).values() if isinstance(each, FunctionType)])

    def _add_function(self, function: FunctionType) -> None:
        enclosed = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        changed = _names_set_by(function.__code__)
        self._note("function", sorted(enclosed))
        for name, cell in enclosed.items():
            try:
                content = cell.cell_contents
            except ValueError:  # not set yet
                continue
            if name not in changed and _stays(content):
                self.add(content)
        for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            if _stays(default):
                self.add(default)
        if _is_versioned(function.__module__):
            self._note(function.__module__, function.__qualname__)
            return
        has_text = self._has_text(function.__module__)
        self._add_code(function.__code__)
        for name in _names_in(function.__code__):
            used = function.__globals__.get(name)
            used = getattr(used, "py_func", used)
            if isinstance(used, FunctionType):
                if used.__module__ == function.__module__:
                    self.add(used)
                elif not _is_versioned(used.__module__):
                    self._has_text(used.__module__)
            elif not has_text and name not in changed and _stays(used):
                self.add(used)

    def _add_code(self, code: CodeType) -> None:
        self._note(code.co_code, code.co_names, code.co_varnames)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._add_code(constant)
            else:
                self.add(constant)

    def _has_text(self, module: str) -> bool:
        """Return whether a module is a file that is no program, and add its text the first time."""
        if module in self._modules:
            return True
        try:
            text = None if module in _MAIN else inspect.getsource(sys.modules[module])
        except (KeyError, OSError, TypeError):  # typed in, or compiled from another language
            text = None
        if text is not None:
            self._modules.add(module)
            self._note(module, text)
        return text is not None


def _is_versioned(module: str | None) -> bool:
    return (module or "builtins").partition(".")[0] in _VERSIONED


def _stays(value: Any) -> bool:
    """Return whether calls leave a value as it is, as far as can be known."""
    if isinstance(value, tuple | frozenset):
        return all(map(_stays, value))
    value = getattr(value, "py_func", value)
    return isinstance(value, (*_PLAIN, np.generic, np.ndarray, FunctionType, functools.partial, type))


def _codes(code: CodeType) -> list[CodeType]:
    """Return the code of a function and of all functions inside it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return [code, *(each for one in inner for each in _codes(one))]


def _names_in(code: CodeType) -> list[str]:
    return list(dict.fromkeys(name for each in _codes(code) for name in each.co_names))


def _names_set_by(code: CodeType) -> set[str]:
    """Return the names outside that a function sets, such as a count of its calls."""
    steps = (step for each in _codes(code) for step in dis.get_instructions(each))
    return {step.argval for step in steps if step.opname in ("STORE_GLOBAL", "STORE_DEREF")}
