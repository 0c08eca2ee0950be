"""Random generators that Python hands to compiled functions, taken apart by one function a module instead of in line.

numba takes a generator apart with some hundred instructions: it asks the generator for its bit generator, that for its
ctypes, and these for five addresses. It writes them out for each generator of a function, and PyTensor's functions have
one for each random variable: of a prior predictive of 25 variables that was a quarter of the time of compiling.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import NativeValue

from bayesjpt.internals import cgutils, unbox_generator, unboxers

_NAME = "bayesjpt_unbox_generator"


def take_apart(kind: types.Type, generator: Any, where: Any) -> NativeValue:
    """Write a call of the module's function that does what numba writes in line."""
    native = where.context.get_value_type(kind)
    signature = ir.FunctionType(ir.IntType(1), [native.as_pointer(), generator.type])
    function: Any = cgutils.get_or_insert_function(where.builder.module, signature, _NAME)
    if function.is_declaration:
        function.linkage = "internal"
        function.attributes.add("noinline")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        inside = where._replace(builder=builder, pyapi=where.context.get_python_api(builder))
        found = unbox_generator(kind, function.args[1], inside)
        builder.store(found.value, function.args[0])
        builder.ret(found.is_error)
    place = cgutils.alloca_once(where.builder, native)
    failed = where.builder.call(function, [place, generator])
    return NativeValue(where.builder.load(place), is_error=failed)


def register_generators() -> None:
    """Let numba take generators apart this way; once, however often it is called."""
    unboxers.functions[types.NumPyRandomGeneratorType] = take_apart
