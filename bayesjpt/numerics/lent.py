"""Arrays, and tuples of them, that kernels hand on for nothing.

A compiled function counts a reference to every array of a tuple that it is given, in one locked instruction each: for
the hundred arrays of a plan, its cells and a workspace that is a microsecond a call, more than the work of many calls.
So does every slice: those of a leaf's parameters and constants cost as much as a cheap mass of it. Arrays that are lent
are not counted, nor are slices of them. The caller holds what it lent until its kernels are done, so a function lends
what it was given, never what it made; and it returns no array that came from there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import config, types
from numba.extending import intrinsic


def _disowned(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = array.meminfo.type(None)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        members: Any = kind  # numba declares `types` in each of the subclasses
        # those of tuples inside too: what stayed counted would be given back once more than it was taken
        for position, member in enumerate(members.types):
            own = _disowned(context, builder, member, builder.extract_value(value, position))
            value = builder.insert_value(value, own, position)
    return value


def _lent(_typing_context: Any, arrays: Any) -> tuple[Any, Callable]:
    """Return the same array, or the same tuple, whose arrays, at any depth, belong to nobody."""

    def generate(context, builder, signature, operands):
        return _disowned(context, builder, signature.args[0], operands[0])

    return arrays(arrays), generate


lent: Any = (lambda arrays: arrays) if getattr(config, "DISABLE_JIT", False) else intrinsic(_lent)
"""``plan = lent(plan)``, to be called in compiled code alone."""
