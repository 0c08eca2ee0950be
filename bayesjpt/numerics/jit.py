"""The one decorator of compiled functions, and the hash that tells when their sources changed.

numba's disk cache watches only the file of the compiled function itself: a callee edited in another file leaves a
stale cache that answers with the old numbers. So every function compiled here carries, in its cache index, the hash
of *all* kernel sources; any edit in these rooms makes every cached function recompile.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numba

_ROOMS = ("numerics", "families", "kernels")
_LAYOUT_FILES = ("arrays.py", "plan.py")
_PACKAGE = Path(__file__).resolve().parent.parent


@functools.cache
def source_hash() -> str:
    """Return the SHA-256 hex digest over the sources of all rooms that hold compiled functions.

    Two files beside them count too: kernels freeze the order of a Plan's fields and the codes of node kinds.
    """
    digest = hashlib.sha256()
    paths = [path for room in _ROOMS for path in sorted((_PACKAGE / room).glob("*.py"))]
    paths += [path for path in sorted((_PACKAGE / "circuit").glob("*.py")) if path.name in _LAYOUT_FILES]
    for path in paths:
        digest.update(f"{path.parent.name}/{path.name}".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def source_version() -> int:
    """Return the first seven bytes of `source_hash` as an integer, the cache version of our PyTensor Ops."""
    return int(source_hash()[:14], 16)


def stamp_cache(dispatcher) -> None:
    """Add `source_hash` to the stamp that numba compares before it trusts a cached function.

    numba has no public setting for this; where its private attributes are missing, the plain file stamp remains.
    """
    cache_file: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = (cache_file._source_stamp, source_hash())


def kernel[Function: Callable](function: Function) -> Function:
    """Compile a function of arrays and scalars with numba, cached on disk, without the interpreter lock.

    ``contract`` is the only relaxation of IEEE arithmetic: it allows fused multiply-add and keeps infinities and NaN.
    Division by zero gives infinity or NaN, as in NumPy; kernels raise nothing.
    """
    dispatcher = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})(function)
    stamp_cache(dispatcher)
    return cast("Function", dispatcher)


def inlined[Function: Callable](function: Function) -> Function:
    """Compile a part of one kernel that is copied into it at each call.

    A call that is not inlined passes every array of a NamedTuple and counts a reference to each; that costs more than
    the work of one node on one block of rows.
    """
    dispatcher = numba.njit(inline="always", nogil=True, error_model="numpy", fastmath={"contract"})(function)
    return cast("Function", dispatcher)
