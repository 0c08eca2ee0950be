"""Compiled functions called by address, through one table of the process.

A kernel that called families by name would hold the machine code of all of them: one more family, and everything is
compiled anew. So kernels look up an address and call it with the exact types of a signature; the price is a few
nanoseconds a call, against loops over hundreds of rows behind it.

      kernel --- address(row, slot) ---> table[row, slot]        0: ask `resolve` in Python, once a process
             --- call(address, (z, aux, ...)) ---> machine code of the slot

No address is ever stored in arrays that outlive the process: saved files, pickled steps and cached kernels hold row
numbers alone. The lookup is a few native instructions under a fixed symbol, which cached kernels find at load time.
"""

from __future__ import annotations

import contextlib
import ctypes
import warnings
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import config, types
from numba.extending import intrinsic

from bayesjpt.internals import cgutils

N_ROW = 256
N_SLOT = 32
ABSENT, INTERRUPTED = 0, 1
"""What is answered in place of an address where there is none; no function stands there."""
_SYMBOL = "bayesjpt_address"

_table = np.zeros((N_ROW, N_SLOT), np.int64)
_source: dict[tuple[int, int], tuple[Any, Any]] = {}


def put(row: int, slot: int, function: Any, signature: Any) -> None:
    """Let (row, slot) stand for a compiled function; it is compiled for the signature when it is first called."""
    assert 0 <= row < N_ROW
    assert 0 <= slot < N_SLOT
    _table[row, slot] = 0
    _source[row, slot] = (function, signature)


def resolve(row: int, slot: int) -> int:
    """Return the address of (row, slot), compiled if it was not.

    Raises
    ------
    TypeError
        Where nothing stands there, or its result is not of the signature's type.
    """
    if (row, slot) not in _source:
        raise TypeError(f"no function at row {row}, slot {slot}")
    function, signature = _source[row, slot]
    address = function.address(tuple(signature.args))
    returned = types.unliteral(function.overloads[tuple(signature.args)].signature.return_type)
    if returned != signature.return_type:
        name = f"{function.py_func.__module__}.{function.py_func.__name__}"
        raise TypeError(f"{name} returns {returned}, not {signature.return_type}")
    _table[row, slot] = address
    return address


@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
def _resolve(index: int) -> int:
    try:
        return resolve(index // N_SLOT, index % N_SLOT)
    except BaseException as error:  # an exception cannot cross native frames; `call` raises in its place
        return failed(error)


def failed(error: BaseException) -> int:
    """Tell what went wrong in Python beneath a kernel, which raises what `raise_absent` makes of the answer."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    with contextlib.suppress(Warning):
        warnings.warn(f"beneath a kernel: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)
    return ABSENT


def is_absent(builder: Any, address: Any) -> Any:
    """Return the condition, in code that is being written, that an answer is no address."""
    return builder.icmp_unsigned("<=", address, address.type(INTERRUPTED))


def raise_absent(context: Any, builder: Any, answer: Any, message: str) -> None:
    """Write code that raises where an answer is no address: an interrupt as one, all else with a message."""
    with cgutils.if_unlikely(builder, is_absent(builder, answer)):
        with builder.if_then(builder.icmp_unsigned("==", answer, answer.type(INTERRUPTED))):
            context.call_conv.return_user_exc(builder, KeyboardInterrupt)
        context.call_conv.return_user_exc(builder, RuntimeError, (message,))


def _install_lookup() -> Any:
    """Compile the lookup under its symbol: read the table, or ask Python where it holds 0."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    callback = ctypes.cast(_resolve, ctypes.c_void_p).value
    engine = llvm.create_mcjit_compiler(
        llvm.parse_assembly(f"""
        define i64 @{_SYMBOL}(i64 %index) {{
        entry:
          %table = inttoptr i64 {_table.ctypes.data} to ptr
          %place = getelementptr i64, ptr %table, i64 %index
          %known = load i64, ptr %place
          %absent = icmp eq i64 %known, 0
          br i1 %absent, label %ask, label %done
        ask:
          %resolve = inttoptr i64 {callback} to ptr
          %answer = call i64 %resolve(i64 %index)
          ret i64 %answer
        done:
          ret i64 %known
        }}"""),
        llvm.Target.from_default_triple().create_target_machine(),
    )
    engine.finalize_object()
    llvm.add_symbol(_SYMBOL, engine.get_function_address(_SYMBOL))
    return engine


_engine = _install_lookup()

address: Any = (
    (lambda index: index)  # coverage runs: an index stands for itself
    if getattr(config, "DISABLE_JIT", False)
    else types.ExternalFunction(_SYMBOL, types.int64(types.int64))
)
"""``address(row * N_SLOT + slot)``, to be called in compiled code alone."""


def caller(signature: Any) -> Callable:
    """Return what calls an address with the types of a signature: ``call(address, (first, second, ...))``."""
    if getattr(config, "DISABLE_JIT", False):
        return lambda index, values: _source[divmod(index, N_SLOT)][0](*values)
    result, arguments = signature.return_type, tuple(signature.args)

    @intrinsic
    def call(typing_context, where, values):
        def generate(context, builder, _signature, operands):
            pointer, packed = operands
            raise_absent(context, builder, pointer, "a slot of a likelihood family cannot be compiled")
            kind = context.call_conv.get_function_type(result, arguments)
            function = builder.inttoptr(pointer, kind.as_pointer())
            unpacked = cgutils.unpack_tuple(builder, packed, len(arguments))
            status, value = context.call_conv.call_function(builder, function, result, arguments, unpacked)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return value

        return result(types.int64, types.Tuple(arguments)), generate

    return call
