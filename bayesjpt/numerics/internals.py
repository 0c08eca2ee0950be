"""Names of numba that are no promise of its, in one place: what a new version may move or rename.

`tests/model/test_internals.py` says of each what it is for, and which of our parts no longer works without it.
"""

from __future__ import annotations

from numba.core import cgutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator
from numba.core.errors import NumbaError
from numba.core.imputils import impl_ret_borrowed, lower_constant, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr

__all__ = [
    "AttributeTemplate",
    "CompileResultCacheImpl",
    "FunctionCache",
    "InTreeCacheLocator",
    "NumbaError",
    "cgutils",
    "impl_ret_borrowed",
    "infer_getattr",
    "lower_constant",
    "lower_getattr_generic",
]
