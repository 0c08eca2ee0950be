"""Arrays, and tuples of them, that kernels hand on for nothing.

A compiled function counts a reference to every array of a tuple that it is given, in one locked instruction each, and
numba spreads the tuple over seven arguments an array: for the hundred arrays of a plan, its cells and a workspace that
is a microsecond a call, and a second or two of compilation a function. Slices are counted too: those of a leaf's
parameters and constants cost as much as a cheap mass of it.

What is borrowed is not counted, nor are slices of it, and a named tuple that is borrowed is handed on as one address.
Generators are counted at each call too, two locked instructions a draw, and may be borrowed like arrays:

      caller's frame     | kind | child_ptr | child | ...       <- written once, by `borrowed`
                           ^
      callee's argument    |                                     plan.child is read there

The owner keeps what is borrowed until its kernels are done. So a function borrows what it was given; what it made
itself only with `keep(made)` behind the last use. Neither is returned.

A named tuple of a class under `by_address` is borrowed already when Python calls a kernel with it: it writes the struct
once, and the kernel is given the address. No kernel unpacks such a tuple, which took half a second of compilation each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba import config, typeof, types
from numba.extending import NativeValue, intrinsic, models, register_model, typeof_impl, unbox

from bayesjpt.internals import (
    AttributeTemplate,
    cgutils,
    impl_ret_borrowed,
    infer_getattr,
    lower_constant,
    lower_getattr_generic,
)


class Borrowed(types.Type):
    """The type of a named tuple that is read where it lies.

    Parameters
    ----------
    members : numba.types.BaseNamedTuple
    """

    def __init__(self, members: Any):
        self.members = members
        super().__init__(name=f"borrowed({members.name})")


register_model(Borrowed)(models.OpaqueModel)


class ByAddress:
    """What `by_address` makes of a named tuple."""

    @functools.cached_property
    def address(self) -> int:
        """Where its arrays are described as compiled code expects it; lasts as long as this object."""
        # of threads that ask at the same time the first one's words stay, whichever answer is kept
        return self.__dict__.setdefault("_words", np.array(_words(self), np.int64)).ctypes.data

    @functools.cached_property
    def compiled_type(self) -> Borrowed:
        """What it is for compiled code."""
        members: Any = tuple(_type_of(member) for member in self)  # type: ignore[attr-defined]
        return Borrowed(types.BaseTuple.from_types(members, type(self)))

    def __getstate__(self) -> None:
        """Leave the address out of copies; they have their own."""


def by_address[Arrays: tuple](cls: type[Arrays]) -> type[Arrays]:
    """Let Python hand named tuples of a class to kernels as one address each.

    They hold arrays, and named tuples of such classes. Kernels read them and write to their arrays; they return none.
    """
    named = {"__doc__": cls.__doc__, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return cast("type[Arrays]", type(cls.__name__, (ByAddress, cls), named))


def _type_of(member: Any) -> types.Type:
    if isinstance(member, ByAddress):
        return member.compiled_type
    assert isinstance(member, np.ndarray)
    # arrays that cannot be written to are read in the same way: no kernel is compiled for them besides
    return cast(Any, typeof(member)).copy(readonly=False)


def _words(arrays: Any) -> list[int]:
    """Return the struct of a tuple; of an array: owner, parent, size, item size, address, shape, strides."""
    words: list[int] = []
    for member in arrays:
        if isinstance(member, ByAddress):
            words.append(member.address)
        else:
            words += (0, 0, member.size, member.itemsize, member.__array_interface__["data"][0])
            words += member.shape
            words += member.strides
    return words


@typeof_impl.register(ByAddress)
def _typeof(arrays: ByAddress, _context: Any) -> Borrowed:
    return arrays.compiled_type


@unbox(Borrowed)
def _take_address(_kind: Borrowed, arrays: Any, where: Any) -> NativeValue:
    number = where.pyapi.object_getattr_string(arrays, "address")
    address = where.pyapi.long_as_voidptr(number)
    where.pyapi.decref(number)
    return NativeValue(address)


@lower_constant(Borrowed)
def _constant(context: Any, builder: Any, kind: Borrowed, arrays: Any) -> Any:
    """Hold the arrays in the code of a function that a program of PyTensor's made around one such tuple."""
    return _address_of(builder, context.get_constant_generic(builder, kind.members, arrays))


@infer_getattr
class _Fields(AttributeTemplate):
    key = Borrowed

    def generic_resolve(self, kind: Borrowed, name: str) -> Any:
        """Return the type of a field; None where there is none."""
        if name not in kind.members.fields:
            return None
        return kind.members.types[kind.members.fields.index(name)]


@lower_getattr_generic(Borrowed)
def _read(context: Any, builder: Any, kind: Borrowed, address: Any, name: str) -> Any:
    position = kind.members.fields.index(name)
    place = builder.bitcast(address, context.get_value_type(kind.members).as_pointer())
    member = builder.load(cgutils.gep_inbounds(builder, place, 0, position))
    return impl_ret_borrowed(context, builder, kind.members.types[position], member)


def _address_of(builder: Any, struct: Any) -> Any:
    return builder.bitcast(cgutils.alloca_once_value(builder, struct), cgutils.voidptr_t)


def _disowned(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = array.meminfo.type(None)
        return array._getvalue()
    if isinstance(kind, types.NumPyRandomGeneratorType):
        rng = cgutils.create_struct_proxy(kind)(context, builder, value=value)
        rng.meminfo = rng.meminfo.type(None)
        return rng._getvalue()
    if isinstance(kind, types.BaseTuple):
        members: Any = kind  # numba declares `types` in each of the subclasses
        # those of tuples inside too: what stayed counted would be given back once more than it was taken
        for position, member in enumerate(members.types):
            element = _disowned(context, builder, member, builder.extract_value(value, position))
            value = builder.insert_value(value, element, position)
    return value


def _borrowed(_typing_context: Any, arrays: Any) -> tuple[Any, Callable]:
    """Return the same array, generator or tuple, not reference counted at any depth; of a named tuple the address."""
    if isinstance(arrays, Borrowed):
        return arrays(arrays), lambda context, builder, signature, operands: operands[0]
    by_address = isinstance(arrays, types.BaseNamedTuple)

    def generate(context, builder, signature, operands):
        value = _disowned(context, builder, signature.args[0], operands[0])
        if not by_address:
            return value
        return _address_of(builder, value)

    return (Borrowed(arrays) if by_address else arrays)(arrays), generate


def _keep(_typing_context: Any, arrays: Any) -> tuple[Any, Callable]:
    """Do nothing; what was made in this function and borrowed lives up to here."""
    return types.void(arrays), lambda context, builder, signature, operands: context.get_dummy_value()


_plain = getattr(config, "DISABLE_JIT", False)
borrowed: Any = (lambda arrays: arrays) if _plain else intrinsic(_borrowed)
"""``plan = borrowed(plan)``, to be called in compiled code alone."""
keep: Any = (lambda arrays: None) if _plain else intrinsic(_keep)
"""``keep(made)`` behind the last use of ``borrowed(made)``, in compiled code alone."""
