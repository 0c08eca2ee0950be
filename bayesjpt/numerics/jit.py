"""The one decorator of compiled functions, and the hash that tells when their sources changed.

numba's disk cache watches only the file of the compiled function itself: a callee edited in another file leaves a
stale cache that answers with the old numbers. So every function compiled here carries, in its cache index, the hash
of all sources whose code it may hold; an edit among these makes it recompile.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numba
import numpy as np
from numba import config

from bayesjpt.numerics.dispatcher import KernelDispatcher
from bayesjpt.numerics.kernel_cache import enable_cache

_PACKAGE = Path(__file__).resolve().parent.parent
_SOURCES = {
    "numerics": ("numerics/*.py",),
    "families": ("numerics/*.py", "families/*.py"),
    # kernels call families by address, so they do not hold their code; they freeze the codes of node kinds, and the
    # order of the fields of a Plan, of Scales and of ColumnTypes
    "kernels": (
        "numerics/*.py",
        "families/dispatch.py",
        "families/record.py",
        "kernels/*.py",
        "circuit/arrays.py",
        "circuit/plan.py",
        "circuit/scales.py",
        "circuit/type_prior.py",
    ),
}
_EVERYTHING = tuple(dict.fromkeys(pattern for patterns in _SOURCES.values() for pattern in patterns))


@functools.cache
def source_hash(package: str = "") -> str:
    """Return the SHA-256 hex digest over the sources that compiled functions of a package may hold.

    Parameters
    ----------
    package : str
        ``numerics``, ``families`` or ``kernels``; any other name stands for code outside, which may hold all of them.
    """
    digest = hashlib.sha256()
    for pattern in _SOURCES.get(package, _EVERYTHING):
        for path in sorted(_PACKAGE.glob(pattern)):
            digest.update(f"{path.parent.name}/{path.name}".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def source_version() -> int:
    """Return the first seven bytes of the kernels' `source_hash` as an integer, the cache version of our Ops."""
    return int(source_hash("kernels")[:14], 16)


def stamp_cache(dispatcher) -> None:
    """Add `source_hash` to the stamp that numba compares before it trusts a cached function.

    numba has no public setting for this; where its private attributes are missing, the plain file stamp remains.
    """
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        _, _, rest = dispatcher.py_func.__module__.partition("bayesjpt.")
        cache_file._source_stamp = (cache_file._source_stamp, source_hash(rest.partition(".")[0]))


def kernel[Function: Callable](function: Function) -> Function:
    """Compile a function of arrays and scalars with numba, cached on disk, without the interpreter lock.

    ``contract`` is the only relaxation of IEEE arithmetic: it allows fused multiply-add and keeps infinities and NaN.
    Division by zero gives infinity or NaN, as in NumPy; kernels raise nothing.
    """
    if getattr(config, "DISABLE_JIT", False):
        return function
    # without an entry for C: nothing calls it (`native` takes the code's own address), and it takes a while to compile
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": {"contract"},
        "no_cfunc_wrapper": True,
    }
    dispatcher = KernelDispatcher(function, targetoptions={**options, "nopython": True, "boundscheck": None})
    enable_cache(dispatcher, function)
    stamp_cache(dispatcher)
    return cast("Function", dispatcher)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to.

    A kernel that Python calls with frozen arrays and with others is compiled for both, unless it is handed such views.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def inlined[Function: Callable](function: Function) -> Function:
    """Compile a part of one kernel that is copied into it at each call.

    A call that is not inlined passes every array of a NamedTuple and counts a reference to each; that costs more than
    the work of one node on one block of rows.
    """
    dispatcher = numba.njit(inline="always", nogil=True, error_model="numpy", fastmath={"contract"})(function)
    return cast("Function", dispatcher)
