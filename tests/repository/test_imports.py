"""What is loaded when, and from where: a light package, and third parties only where the table of packages has them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "bayesjpt"

HEAVY = (
    "numba",
    "llvmlite",
    "scipy",
    "pandas",
    "polars",
    "pyarrow",
    "xarray",
    "pymc",
    "pytensor",
    "arviz",
    "arviz_stats",
    "sklearn",
    "matplotlib",
    "rich",
    "typer",
    "narwhals",
    "h5netcdf",
    "h5py",
    "jax",
    "jinja2",
    "lark",
)

ALLOWED = {
    "__init__": set(),
    "__main__": set(),
    "announced": set(),
    "errors": set(),
    "code_hash": {"numpy"},
    "internals": set(),  # looked up by name when asked for
    "executors": set(),
    "learners": set(),
    "defaults": set(),
    "defaults_experts": set(),
    "replace_file": set(),
    "user_paths": set(),
    "listed_names": set(),
    "numerics": {"numpy", "numba", "llvmlite"},  # calls by address: docs/decisions/compiled_code.md
    "families": {"numpy", "numba", "scipy"},  # starts of splines: spline_start.py
    "table": {"numpy", "narwhals", "pyarrow", "python_calamine", "scipy"},  # tails of favourite values: heaps.py
    "circuit": {"numpy"},
    "kernels": {"numpy", "numba"},
    "sampler": {"numpy", "rich", "distributed", "dask"},  # where workers are asked for: remote_workers.py
    "structure": {"numpy", "scipy", "threadpoolctl"},
    "model": {"numpy", "pymc", "pytensor", "rich", "jax"},  # JAX where PyTensor compiles for it: jax_mode.py
    "posterior": {"numpy", "xarray", "h5py"},
    "queries": {"numpy", "xarray", "scipy", "arviz_stats", "lark"},
    "report": {"numpy", "xarray", "arviz", "arviz_stats", "matplotlib", "jinja2", "rich"},
    "fitting": {"numpy", "scipy"},
    "experts": {"numpy", "xarray", "scipy"},
    "cli": {"typer", "rich"},
    "cli_query": {"typer", "numpy"},
    "cli_experts": {"typer"},
    "cli_predict": {"pyarrow"},
    "cli_export": {"typer", "pyarrow"},
    "cli_reading": {"typer"},
    "cli_compare": {"typer"},
    "cli_report": {"typer"},
    "cli_schema": {"typer"},
    "cli_learners": {"typer"},
    "cli_types": {"typer"},
    "cli_text": {"typer"},
    "sklearn": {"numpy", "sklearn"},
    "sklearn_pool": {"numpy", "sklearn"},
    "sklearn_inputs": {"numpy", "sklearn"},
}
"""Third parties of each room, wherever in the file they are imported."""

AT_IMPORT = {
    "table": {"numpy", "narwhals"},
    "sampler": {"numpy"},
    "structure": {"numpy", "scipy"},
    "model": {"numpy", "pymc", "pytensor"},
    "posterior": {"numpy", "xarray"},
    "queries": {"numpy"},
    "experts": {"numpy", "scipy"},
    "report": {"numpy"},
    "fitting": {"numpy"},
    "cli": {"typer"},
    "cli_query": {"typer"},
}
"""Where it is less than `ALLOWED`: what may stand outside functions."""

IN_JAX = ("jax_density", "jax_families")
"""Modules that PyTensor's JAX mode imports, and nothing else: see `bayesjpt.model.jax_mode`."""

SOURCES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(tree: ast.AST, *, at_import: bool) -> Iterator[str]:
    """Yield the third parties that a module imports, in functions too unless `at_import`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if at_import and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            names = []
        for name in names:
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names and top != "bayesjpt":
                yield top
        yield from imported(node, at_import=at_import)


def test_files_import_only_the_third_parties_of_their_package():
    for path in SOURCES:
        tree, room, name = ast.parse(path.read_text(encoding="utf-8")), room_of(path), path.relative_to(PACKAGE)
        assert set(imported(tree, at_import=False)) <= ALLOWED[room], name
        first = ALLOWED[room] if path.stem in IN_JAX else AT_IMPORT.get(room, ALLOWED[room])
        assert set(imported(tree, at_import=True)) <= first, name


def test_families_do_not_import_each_other():
    from bayesjpt.families.registry import FAMILIES

    names = {family.name for family in FAMILIES}
    for name in names:
        tree = ast.parse((PACKAGE / "families" / f"{name}.py").read_text(encoding="utf-8"))
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not modules & {f"bayesjpt.families.{other}" for other in names - {name}}, name


@pytest.mark.parametrize(
    ("statement", "light"),
    [
        ("import bayesjpt", HEAVY),
        ("import bayesjpt; dir(bayesjpt); bayesjpt.__version__; bayesjpt.BayesjptError", HEAVY),
        ("import bayesjpt.cli", tuple(name for name in HEAVY if name not in ("typer", "rich"))),
        ("import bayesjpt.fitting.facade", HEAVY),
        ("import bayesjpt; bayesjpt.read_table", ("pymc", "pytensor", "arviz", "sklearn", "xarray", "scipy", "pandas")),
        (
            "import bayesjpt; bayesjpt.load",
            ("pymc", "pytensor", "arviz", "arviz_stats", "sklearn", "matplotlib", "lark", "xarray", "pandas"),
        ),
        ("import bayesjpt; bayesjpt.learn_mspn", ("pymc", "pytensor", "arviz", "xarray")),
    ],
)
def test_statement_loads_nothing_heavier_than_it_must(run_python, statement, light):
    loaded = run_python(f"import sys; {statement}; print([name for name in {light!r} if name in sys.modules])")
    assert loaded.strip() == "[]"


def test_unknown_public_name_is_an_attribute_error():
    import bayesjpt

    with pytest.raises(AttributeError, match="no attribute 'learn_magic'"):
        _ = bayesjpt.learn_magic
