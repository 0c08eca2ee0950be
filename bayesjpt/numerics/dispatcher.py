"""Kernels compiled for whoever asks: other kernels take their code in, or call an address; Python calls a wrapper.

numba gives every compiled function machine code and a wrapper for Python, which takes the function's code in and is
optimised with it once more. Most kernels are called by kernels alone, whose code takes theirs in: for them both are for
nothing, a third of the time of compiling. So each is made when somebody first asks for it:

      a kernel calls it     optimised code, to be taken in      `KernelDispatcher.compile`
      by address            machine code of it                  `KernelDispatcher.address`
      Python calls it       machine code with a wrapper         `KernelDispatcher._compile_for_args`

The disk cache keeps what was made last.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import signal
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from numba import types

from bayesjpt.internals import (
    Compiler,
    CPUDispatcher,
    Environment,
    Flags,
    JITCodeLibrary,
    compile_result,
    global_compiler_lock,
    make_concrete_template,
)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let an interrupt wait until machine code is there.

    LLVM hands it over by calling Python, where an interrupt of the main thread would be dropped, and the code with it.
    """
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield
        return
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


class _Library(JITCodeLibrary):
    """The code of a kernel, whose machine code is made as a whole."""

    def _finalize_final_module(self) -> None:
        with _interrupts_held():
            super()._finalize_final_module()


class KernelLibrary(_Library):
    """The code of a kernel, of which machine code is made when an address in it is asked for."""

    has_code = False
    """Whether there is machine code of it, or will be without compiling: from a cache."""
    is_linked = False
    """Whether the machine code stands in memory."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function; 0 where the library has none of this name."""
        self._ensure_finalized()
        if not self.is_linked:
            self.has_code = self.is_linked = True
            super()._finalize_final_module()
        return super().get_pointer_to_function(name)

    def serialize_using_object_code(self) -> tuple:
        """Return what a cache keeps: machine code where there is any."""
        return super().serialize_using_object_code() if self.has_code else self.serialize_using_bitcode()

    @classmethod
    def restored(cls, codegen: Any, state: tuple) -> KernelLibrary:
        """Return the library that a cache kept."""
        library = cls._unserialize(SimpleNamespace(create_library=functools.partial(cls, codegen)), state)
        library.has_code = state[1] == "object"
        if not library.has_code:
            library.enable_object_caching()
        return library

    def defines(self, name: str) -> bool:
        """Whether a function is part of it, with its code."""
        functions = self._get_module_for_linking().functions
        return any(found.name == name and not found.is_declaration for found in functions)

    def copy_with(self, name: str) -> KernelLibrary:
        """Return an unfinished copy; the function `name`, which copies may leave out once it is taken in, is kept."""
        copied = KernelLibrary(self._codegen, self.name)
        copied.enable_object_caching()
        module = self._get_module_for_linking().clone()
        module.get_function(name).linkage = "external"
        copied._final_module.link_in(module)
        return copied


def restored(target_context: Any, payload: tuple) -> Any:
    """Return the compiled function that a cache kept, without machine code as long as nobody asks for it."""
    code, described, environment, signature, objectmode, lifted, annotation, reload_init, environments = payload
    for function in reload_init:
        function()
    return compile_result(
        typing_context=target_context.typing_context,
        target_context=target_context,
        entry_point=_Uncalled(),
        typing_error=None,
        type_annotation=annotation,
        signature=signature,
        library=KernelLibrary.restored(target_context.codegen(), code),
        objectmode=objectmode,
        lifted=lifted,
        fndesc=described,
        environment=environment,
        call_helper=None,
        metadata=None,
        reload_init=reload_init,
        referenced_envs=environments,
    )


class _Uncalled:
    """Stands for a compiled function where numba looks its code up; Python cannot call it."""


class _Flags(Flags):
    """Options of a kernel's compilation, all equal: numba looks up under them which parts of its own it has compiled.

    Kernels differ in nothing but in what is made of their code, and hashing two dozen options took a tenth of the time.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(_Flags)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags)


class _ForPython(Compiler):
    """Compiles what Python calls."""

    library: type[_Library] = _Library

    def _compile_bytecode(self) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super()._compile_bytecode()


class _ForKernels(_ForPython):
    """Compiles what other kernels take in."""

    library = KernelLibrary

    def __init__(self, typing_context, target_context, library, args, return_type, flags, names):
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        super().__init__(typing_context, target_context, library, args, return_type, flags, names)


class KernelDispatcher(CPUDispatcher):
    """A kernel: its code for each combination of types that it was asked for."""

    def __init__(self, py_func, locals=None, targetoptions=None, pipeline_class=_ForKernels):
        super().__init__(py_func, locals, targetoptions, pipeline_class)
        self._compiler._customize_flags = _Flags
        self._called: list[Any] = []  # numba's table of what Python calls holds no references
        self.returns: types.Type | None = None  # where it is said, callers do not compile it

    def get_call_template(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        """Let callers share the code for arguments that differ in nothing that it depends on.

        numba types the first pass of ``lo = 0``, or an argument ``-1``, as that very number, and would compile for it
        besides; for an ``int32`` read from an array and a loop's ``int64``; and for arrays that cannot be written to,
        such as those of a frozen circuit, and arrays that can. Of the kernels that `types` needs, two fifths of the
        time went there, and a third of that of all tests. What Python calls a kernel with keeps its own type.
        """
        named = {name: _common_type(kind) for name, kind in kws.items()}
        args = tuple(map(_common_type, args))
        if self.returns is None:
            return super().get_call_template(args, named)
        signature, args = self.fold_argument_types(args, named)
        name = self.py_func.__name__
        return make_concrete_template(name, name, [self.returns(*args)]), signature, args, {}

    def add_overload(self, cres: Any) -> None:
        """Add the code for some types."""
        if cres.entry_point is None:
            cres = cres._replace(entry_point=_Uncalled())
            self.targetctx.insert_user_function(cres.entry_point, cres.fndesc, [cres.library])
        if isinstance(cres.entry_point, _Uncalled):
            self.overloads[tuple(cres.signature.args)] = cres
        else:
            super().add_overload(cres)

    def address(self, arguments: tuple[types.Type, ...]) -> int:
        """Return the address of the machine code for some types of arguments, compiled if it was not."""
        with global_compiler_lock:
            self.compile(arguments)
            cres = self.overloads[arguments]
            library = cres.library
            is_new = isinstance(library, KernelLibrary) and not library.has_code
            address = library.get_pointer_to_function(cres.fndesc.llvm_func_name)
            if is_new:
                self._cache.save_overload(arguments, cres)
            return address

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        with global_compiler_lock:
            self._compiler.pipeline_class = _ForPython
            try:
                found = super()._compile_for_args(*args, **kws)
            finally:
                self._compiler.pipeline_class = _ForKernels
            if not isinstance(found, _Uncalled):
                return found
            return self._for_python(next(cres for cres in self.overloads.values() if cres.entry_point is found))

    def _for_python(self, cres: Any) -> Any:
        """Return what Python calls, and know it from now on."""
        target, library, described, environment = cres.target_context, cres.library, cres.fndesc, cres.environment
        arguments = tuple(cres.signature.args)
        wrapped = library.defines(described.llvm_cpython_wrapper_name)
        if not wrapped:
            library = library.copy_with(described.llvm_func_name)
            # what it makes results of: not in the environment that callers know from the cache, where it is empty
            described = copy.copy(described)
            described.env_name += "_wrapper"
            environment = Environment.from_fndesc(described)
            counting = target.subtarget(enable_nrt=True)  # references: arrays become Python's
            counting.create_cpython_wrapper(library, described, environment, None, release_gil=True)
        called = target.get_executable(library, described, environment)
        for other in cres.referenced_envs or ():
            library.codegen.set_env(other.env_name, other)
        self._called.append(called)
        self._insert([kind._code for kind in arguments], called, cres.objectmode)
        if not wrapped:
            made = cres._replace(library=library, fndesc=described, environment=environment)
            self._cache.save_overload(arguments, made)
        return called


def _common_type(kind: Any) -> Any:
    kind = types.unliteral(kind)
    if kind in types.signed_domain:
        return types.int64
    if isinstance(kind, types.Array) and not kind.mutable:
        return kind.copy(readonly=False)
    return kind
