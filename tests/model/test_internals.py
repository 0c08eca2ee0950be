"""What we use of PyMC, PyTensor and numba beyond their promises: a test each, which says what broke."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pymc as pm
import pytest
from pymc.step_methods.compound import BlockedStep

from bayesjpt import internals
from bayesjpt.circuit.packed import pack
from tests import examples as ex

PACKAGE = Path(internals.__file__).parent

NAMES = {
    ("pymc.distributions.distribution", "_support_point"): "where chains begin: all distributions of a block",
    ("pymc.distributions.shape_utils", "rv_size_is_none"): "support points of batches of a block's parameters",
    ("pymc.distributions.transforms", "_default_transform"): "transforms=True",
    ("pymc.initial_point", "make_initial_point_fn"): "telling a user's initial values from PyMC's (CircuitGibbs)",
    ("pymc.initial_point", "convert_str_to_rv_dict"): "errors of one line for starting values (starts)",
    ("pymc.logprob.abstract", "_logprob"): "densities of all distributions of a block",
    ("pymc.logprob.abstract", "_logcdf"): "pm.Censored of a CircuitPrior",
    ("pymc.logprob.abstract", "_logccdf"): "pm.Censored and pm.Truncated of a CircuitPrior, in its upper tail",
    ("pymc.sampling.mcmc", "STEP_METHODS"): "pm.sample() finding our steps; without it NUTS gets the block",
    ("pymc.step_methods.state", "dataclass_state"): "states of our steps, which PyMC copies",
    ("pymc.step_methods.compound", "StepMethodState"): "the same",
    ("pymc.step_methods.compound", "CompoundStepState"): "the state of ConcentrationGibbs",
    ("pymc.distributions.dist_math", "check_parameters"): "densities of a block's parameters outside their range",
    ("pytensor.link.numba.dispatch.basic", "numba_njit"): "compiled densities and generators",
    ("pytensor.link.numba.dispatch.basic", "register_funcify_default_op_cache_key"): "compiled densities",
    ("pytensor.link.numba.dispatch.basic", "numba_funcify_and_cache_key"): "refusing pm.sample_smc of a block",
    ("pytensor.link.numba.dispatch.random", "numba_core_rv_funcify"): "compiled generators: predictive draws",
    ("pytensor.compile", "optdb"): "blocks compiled for JAX, and for numba in seconds",
    ("pytensor.graph.rewriting.basic", "dfs_rewriter"): "blocks compiled for numba in seconds (compiled_draws)",
    ("pytensor.link.utils", "compile_function_src"): "compiled blocks (flat_vectors)",
    ("pytensor.tensor.basic", "MakeVector"): "blocks compiled for numba in seconds (compiled_draws)",
    ("pytensor.tensor.elemwise", "DimShuffle"): "the same",
    ("pytensor.gradient", "disconnected_type"): "gradients of transforms=True",
    ("pytensor.gradient", "grad_not_implemented"): "gradients of transforms=True",
    ("pytensor.graph.traversal", "graph_inputs"): "functions of the point: concentrations, factors of missing cells",
    ("pytensor.graph.traversal", "io_toposort"): "missing cells of all rows accepted at once (row_axis)",
    ("pytensor.raise_op", "CheckAndRaise"): "the same",
    ("pytensor.tensor.blockwise", "Blockwise"): "the same",
    ("pytensor.tensor.elemwise", "CAReduce"): "the same",
    ("pytensor.tensor.math", "Dot"): "the same",
    ("pytensor.tensor.subtensor", "AdvancedSubtensor"): "the same",
    (
        "numba.core.codegen",
        "JITCodeLibrary",
    ): "kernels without machine code until asked for: every kernel",
    ("numba.core.compiler", "Compiler"): "the same",
    ("numba.core.compiler", "Flags"): "the same, and its time",
    ("numba.core.compiler", "compile_result"): "kernels from the cache: every kernel",
    ("numba.core.environment", "Environment"): "kernels that Python calls after kernels did",
    ("numba.core.compiler_lock", "global_compiler_lock"): "kernels compiled by threads",
    ("numba.core.registry", "CPUDispatcher"): "every kernel",
    ("numba.core", "cgutils"): "borrowed plans and native functions: every kernel",
    ("numba.core.caching", "CompileResultCacheImpl"): "caches that cannot be written: importing anything (KernelCache)",
    ("numba.core.caching", "FunctionCache"): "the same",
    ("numba.core.caching", "InTreeCacheLocator"): "the same",
    ("numba.core.errors", "NumbaError"): "the message where a family of the user's does not compile",
    ("numba.core.imputils", "impl_ret_borrowed"): "borrowed plans: every kernel",
    ("numba.core.imputils", "lower_constant"): "plans inside PyTensor's functions: rows drawn from a block",
    ("numba.core.imputils", "lower_getattr_generic"): "borrowed plans: every kernel",
    ("numba.core.boxing", "unbox_numpy_random_generator"): "the next one",
    ("numba.core.pythonapi", "_unboxers"): "prior predictive draws compiled in seconds (unboxed_generators)",
    ("numba.core.typing.templates", "AttributeTemplate"): "borrowed plans: every kernel",
    ("numba.core.typing.templates", "make_concrete_template"): "kernels compiled when they are first called",
    ("numba.core.typing.templates", "infer_getattr"): "borrowed plans: every kernel",
}


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[name for _, name in NAMES])
def test_the_name_is_where_it_was(module, name):
    found = getattr(importlib.import_module(module), name, None)
    assert found is not None, f"{module}.{name} has moved, which breaks: {NAMES[module, name]}"


def private_imports(path: Path) -> list[str]:
    """Return the private names of PyMC, PyTensor and numba that a file imports or reaches."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            root, *rest = node.module.split(".")
            if root in ("pymc", "pytensor", "numba"):
                hidden = any(part.startswith("_") for part in rest) or node.module.startswith("numba.core")
                found += [f"{node.module}.{a.name}" for a in node.names if hidden or a.name.startswith("_")]
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            at = node.value
            while isinstance(at, ast.Attribute):
                at = at.value
            if isinstance(at, ast.Name) and at.id in ("pm", "pt", "pymc", "pytensor", "numba"):
                found.append(ast.unparse(node))
    return found


def test_private_names_stand_in_one_place():
    others = {path: private_imports(path) for path in PACKAGE.rglob("*.py")}
    assert not {str(path): names for path, names in others.items() if names}
    listed = {f"{module}.{name}" for module, name in NAMES}
    assert set(internals.PLACES.values()) <= listed
    unused = [name for name in internals.PLACES if not any(f"{name}" in text for text in sources_that_import_them())]
    assert not unused


def sources_that_import_them() -> list[str]:
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    return [source for source in sources if "from bayesjpt.internals import" in source]


@pytest.mark.parametrize("name", internals.PLACES)
def test_our_name_is_theirs(name):
    module, _, theirs = internals.PLACES[name].rpartition(".")
    assert getattr(internals, name) is getattr(importlib.import_module(module), theirs)


def test_kernels_do_not_import_pymc():
    code = "import sys, bayesjpt.kernels.density; sys.exit('pymc' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- habits of PyMC that no name shows


def test_chains_are_set_up_and_stop_tuning_through_the_step():
    assert hasattr(BlockedStep, "setup_chain"), "CircuitGibbs resets each chain in setup_chain(rng, tune, draws)"
    assert list(inspect.signature(BlockedStep.setup_chain).parameters)[1:4] == ["rng", "tune", "draws"]
    assert hasattr(BlockedStep, "stop_tuning"), "steps keep their widths from there on"


@pytest.mark.parametrize("hook", ["_progressbar_config", "_make_progressbar_update_functions"])
def test_progress_bars_ask_steps_for_their_columns(hook):
    assert hasattr(BlockedStep, hook), f"{hook} has moved: progress bars lose the columns of our steps"


def test_data_keep_nan_that_was_set_and_64_bits_of_packed_circuits(rng):
    table = ex.make_table((ex.REAL,), 4, rng)
    words = pack(ex.independent(table), table.schema)
    with pm.Model():
        assert pm.Data("circuit", words).get_value().dtype == words.dtype, "PyMC narrows packed circuits: load() breaks"
        rows = pm.Data("rows", np.zeros(2))
        rows.set_value(np.array([0.0, np.nan]))
        assert np.isnan(rows.get_value()[1]), "observed_data cannot hold NaN in missing cells any more"
