"""Names of PyMC, PyTensor and numba that are no promise of theirs, in one place: what a new version may move or rename.

`tests/model/test_internals.py` says of each what it is for, and which of our parts no longer works without it. A name
is looked up when it is asked for: kernels, which take those of numba, do not import PyMC.
"""

from __future__ import annotations

import importlib
from typing import Any

PLACES = {
    "CPUDispatcher": "numba.core.registry.CPUDispatcher",
    "Compiler": "numba.core.compiler.Compiler",
    "Environment": "numba.core.environment.Environment",
    "Flags": "numba.core.compiler.Flags",
    "JITCodeLibrary": "numba.core.codegen.JITCodeLibrary",
    "compile_result": "numba.core.compiler.compile_result",
    "global_compiler_lock": "numba.core.compiler_lock.global_compiler_lock",
    "AttributeTemplate": "numba.core.typing.templates.AttributeTemplate",
    "CompileResultCacheImpl": "numba.core.caching.CompileResultCacheImpl",
    "FunctionCache": "numba.core.caching.FunctionCache",
    "InTreeCacheLocator": "numba.core.caching.InTreeCacheLocator",
    "NumbaError": "numba.core.errors.NumbaError",
    "STEP_METHODS": "pymc.sampling.mcmc.STEP_METHODS",
    "cgutils": "numba.core.cgutils",
    "dataclass_state": "pymc.step_methods.state.dataclass_state",
    "default_transform": "pymc.distributions.transforms._default_transform",
    "funcify_and_cache_key": "pytensor.link.numba.dispatch.basic.numba_funcify_and_cache_key",
    "impl_ret_borrowed": "numba.core.imputils.impl_ret_borrowed",
    "infer_getattr": "numba.core.typing.templates.infer_getattr",
    "log_probability": "pymc.logprob.abstract._logprob",
    "log_probability_above": "pymc.logprob.abstract._logccdf",
    "log_probability_up_to": "pymc.logprob.abstract._logcdf",
    "lower_constant": "numba.core.imputils.lower_constant",
    "lower_getattr_generic": "numba.core.imputils.lower_getattr_generic",
    "make_concrete_template": "numba.core.typing.templates.make_concrete_template",
    "make_initial_point_fn": "pymc.initial_point.make_initial_point_fn",
    "numba_core_rv_funcify": "pytensor.link.numba.dispatch.random.numba_core_rv_funcify",
    "numba_njit": "pytensor.link.numba.dispatch.basic.numba_njit",
    "register_funcify_default_op_cache_key": (
        "pytensor.link.numba.dispatch.basic.register_funcify_default_op_cache_key"
    ),
    "rv_size_is_none": "pymc.distributions.shape_utils.rv_size_is_none",
    "support_point": "pymc.distributions.distribution._support_point",
    "unbox_generator": "numba.core.boxing.unbox_numpy_random_generator",
    "unboxers": "numba.core.pythonapi._unboxers",
}
"""Our name of each, and where it is."""


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, theirs = PLACES[name].rpartition(".")
    found = globals()[name] = getattr(importlib.import_module(module), theirs)
    return found
