"""Compiled code on disk, of which nothing depends: what cannot be read is compiled, what cannot be kept is not.

numba's own cache ends an import where no folder can be written (a container without a home, a package that root
installed), and a call where the disk is full or a file of the cache was cut by a crash. Here such a cache is slow:

      folder of NUMBA_CACHE_DIR, or __pycache__ beside the source, or the user's cache, the first that can be written
      none of them: __pycache__ is read, and what it lacks is compiled in each process anew
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from bayesjpt.internals import CompileResultCacheImpl, FunctionCache, InTreeCacheLocator
from bayesjpt.numerics.dispatcher import restored


class _Readable(InTreeCacheLocator):
    """The folder beside the source, whether or not it can be written."""

    def ensure_cache_path(self) -> None:
        """Ask nothing of it."""


class _Places(CompileResultCacheImpl):
    _locator_classes = (*CompileResultCacheImpl._locator_classes, _Readable)

    def rebuild(self, target_context: Any, payload: tuple) -> Any:
        """Return the code without making machine code of it."""
        return restored(target_context, payload)


class KernelCache(FunctionCache):
    """The compiled code of one function on disk; no method raises an error of the disk's.

    Raises
    ------
    RuntimeError
        Of a function without a source file, when it is made.
    """

    _impl_class = _Places

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature; None where there is none, or none that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None
        except Exception:  # whatever a pickle raises that was cut off or written over
            try:
                self.flush()
            except OSError:
                self.disable()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for a signature where there is room for it."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


def enable_cache(dispatcher: Any, function: Callable) -> None:
    """Give a compiled function its cache, if it has a source file."""
    with contextlib.suppress(RuntimeError):
        dispatcher._cache = KernelCache(function)
