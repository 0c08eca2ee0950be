"""Tuples of arrays that kernels hand on for nothing.

A compiled function counts a reference to every array of a tuple that it is given, in one locked instruction each: for
the hundred arrays of a plan, its cells and a workspace that is a microsecond a call, more than the work of many calls.
Arrays that are lent are not counted. The caller holds the tuple itself until its kernels are done, and returns no
array that came from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import config, types
from numba.extending import intrinsic


def _lent(_typing_context: Any, arrays: Any) -> tuple[Any, Callable]:
    """Return the same tuple, whose arrays belong to nobody."""

    def generate(context, builder, signature, operands):
        (packed,) = operands
        for position, kind in enumerate(signature.args[0].types):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, builder.extract_value(packed, position))
                array.meminfo = array.meminfo.type(None)
                packed = builder.insert_value(packed, array._getvalue(), position)
        return packed

    return arrays(arrays), generate


lent: Any = (lambda arrays: arrays) if getattr(config, "DISABLE_JIT", False) else intrinsic(_lent)
"""``plan = lent(plan)``, to be called in compiled code alone."""
