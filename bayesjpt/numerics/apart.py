"""Kernels whose callers hold their address, not their code.

numba copies the code of every callee into its caller and optimises the whole anew: what evaluates a block of rows was
optimised again in each of the kernels that use it, and in each layer between. A kernel that is *apart* is compiled
once, for itself. Its callers ask for it by name when they first come to the call, and remember the answer:

      caller --- place: 0 ---> "bayesjpt.kernels.upward", "upward_by", types --- Python: compiled, or read from disk
             --- place: address, from then on

The name stands in the caller's code, so a caller from the disk cache finds what it needs in any process. The price is
that of a call; what is apart works on whole blocks. A caller has to know what it gets: a kernel that says so is not
even compiled before it is called, for what most tables do not come to.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import json
from collections.abc import Callable
from typing import Any, cast

import llvmlite.binding as llvm
from llvmlite import ir
from numba import config, types

from bayesjpt.internals import cgutils
from bayesjpt.numerics.borrowed import Borrowed
from bayesjpt.numerics.native import failed, is_absent, raise_absent

_SYMBOL = "bayesjpt_apart"
_NAMED = {kind.name: kind for kind in (types.boolean, types.npy_rng)}
"""Types that numba does not keep under their own name."""


def apart[Function: Callable](function: Function) -> Function:
    """Let other kernels call a kernel by its address; above `bayesjpt.numerics.jit.kernel`."""
    return apart_until_called(None)(function)


def apart_until_called(result: types.Type | None) -> Callable:
    """Let other kernels call a kernel by its address, and compile it when it is first called, not with its callers.

    Parameters
    ----------
    result : numba.types.Type, optional
        What the kernel returns; None: what it is compiled to return, so that it is compiled with its callers.
    """
    return functools.partial(_set_apart, result)


def _set_apart[Function: Callable](returns: types.Type | None, function: Function) -> Function:
    if getattr(config, "DISABLE_JIT", False):
        return function
    dispatcher = cast("Any", function)
    dispatcher.returns = returns
    keys: dict[tuple[types.Type, ...], object] = {}

    def key_of(arguments: tuple[types.Type, ...]) -> object:
        """Return what numba looks up the code of a call by."""
        if arguments not in keys:
            result = returns or dispatcher.overloads[arguments].signature.return_type
            keys[arguments] = object()
            call = _call(dispatcher.py_func, result, arguments)
            dispatcher.targetctx.insert_func_defn([(call, keys[arguments], arguments)])
        return keys[arguments]

    dispatcher.get_overload = key_of
    return function


def _call(function: Callable, result: types.Type, arguments: tuple[types.Type, ...]) -> Callable:
    """Return what writes the call of a function into its caller."""
    text = json.dumps([function.__module__, function.__name__, [_to_text(kind) for kind in arguments]])

    def generate(context: Any, builder: Any, _signature: Any, operands: Any) -> Any:
        word, module = ir.IntType(64), builder.module
        place: Any = cgutils.add_global_variable(module, word, f"{_SYMBOL}.{function.__name__}")
        place.initializer = ir.Constant(word, 0)
        place.linkage = "internal"
        address = cgutils.alloca_once_value(builder, builder.load(place))
        # the place may hold the answer to a call that was interrupted, which is no address
        with cgutils.if_unlikely(builder, is_absent(builder, builder.load(address))):
            ask = cgutils.get_or_insert_function(module, ir.FunctionType(word, [cgutils.voidptr_t]), _SYMBOL)
            found = builder.call(ask, [context.insert_const_string(module, text)])
            builder.store(found, place)
            builder.store(found, address)
            raise_absent(context, builder, found, f"{function.__name__} cannot be compiled")
        kind = context.call_conv.get_function_type(result, arguments)
        pointer = builder.inttoptr(builder.load(address), kind.as_pointer())
        status, value = context.call_conv.call_function(builder, pointer, result, arguments, operands)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return value

    return generate


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)
def _find(text: bytes) -> int:
    try:
        return _address_of(text)
    except BaseException as error:  # an exception cannot cross native frames; the call raises in its place
        return failed(error)


llvm.add_symbol(_SYMBOL, ctypes.cast(_find, ctypes.c_void_p).value)


@functools.cache
def _address_of(text: bytes) -> int:
    module, name, of = json.loads(text)
    kernel, arguments = getattr(importlib.import_module(module), name), tuple(map(_to_type, of))
    address = kernel.address(arguments)
    result = types.unliteral(kernel.overloads[arguments].signature.return_type)
    if kernel.returns not in (None, result):
        raise TypeError(f"{module}.{name} returns {result}, not {kernel.returns}")
    return address


def _to_text(kind: Any) -> Any:
    """Return a type as what JSON can hold."""
    if isinstance(kind, Borrowed):
        of = kind.members
        cls = of.instance_class
        return ["borrowed", cls.__module__, cls.__qualname__, [_to_text(member) for member in of.types]]
    if isinstance(kind, types.Array):
        return ["array", kind.dtype.name, kind.ndim, kind.layout, not kind.mutable]
    if isinstance(kind, types.BaseTuple):
        assert not isinstance(kind, types.BaseNamedTuple), "to be borrowed"
        return ["tuple", [_to_text(member) for member in cast("Any", kind).types]]
    assert kind == _to_type(kind.name), kind
    return kind.name


def _to_type(text: Any) -> Any:
    if isinstance(text, str):
        return _NAMED[text] if text in _NAMED else getattr(types, text)
    if text[0] == "borrowed":
        cls = getattr(importlib.import_module(text[1]), text[2])
        return Borrowed(types.BaseTuple.from_types(tuple(map(_to_type, text[3])), cls))
    if text[0] == "tuple":
        return types.BaseTuple.from_types(tuple(map(_to_type, text[1])))
    return types.Array(_to_type(text[1]), text[2], text[3], readonly=text[4])
