"""Every notebook runs from top to bottom, and is stored with what it printed."""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import pymc as pm
import pytensor
import pytest
from nbclient import NotebookClient
from pytensor.compile.mode import get_mode

import bayesjpt as bj

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SHOWN = "value of the last expression"
IN_PYTHON = get_mode("FAST_COMPILE").excluding("local_add_canonizer")  # it joins more terms than NumPy adds in one call


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def test_there_is_a_notebook():
    assert NOTEBOOKS


def fewer(function: Callable, **most: int) -> Callable:
    """Return the function with options that are these numbers at most, and these where they are not given."""

    @functools.wraps(function)
    def with_fewer(*given: Any, **options: Any) -> Any:
        return function(*given, **options | {name: min(n, options.get(name, n)) for name, n in most.items()})

    return with_fewer


def run_cell(source: str, names: dict[str, Any]) -> None:
    """Run a cell as a notebook does: the value of a last expression is shown."""
    cell = ast.parse(source)
    if isinstance(cell.body[-1], ast.Expr):
        cell.body[-1] = ast.Assign([ast.Name(SHOWN, ast.Store())], cell.body[-1].value)
    exec(compile(ast.fix_missing_locations(cell), "cell", "exec"), names)
    if SHOWN in names:
        shown = names.pop(SHOWN)
        assert repr(shown)
        getattr(shown, "_repr_html_", str)()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs_on_fewer_structures_and_draws(path, monkeypatch, capfd):
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(bj, "fit", fewer(bj.fit, n_structures=2, draws=20, tune=5))
    monkeypatch.setattr(bj, "fit_experts", fewer(bj.fit_experts, draws=50, tune=20))
    monkeypatch.setattr(pm, "sample", fewer(pm.sample, draws=30, tune=10, chains=2, cores=1))
    names: dict[str, Any] = {"__name__": "__main__"}
    # PyTensor's own graphs in Python: they are compiled in the full run, and a third of this one would go there
    with plt.rc_context({"backend": "agg"}), pytensor.config.change_flags(mode=IN_PYTHON):
        for cell in read(path).cells:
            if cell.cell_type == "code":
                run_cell(cell.source, names)
        plt.close("all")
    assert not capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs_without_error_or_warning(path, monkeypatch):
    search = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(search))
    notebook = read(path)
    NotebookClient(
        notebook, timeout=None, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    printed = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert printed
    assert not [output["text"] for output in printed if output.get("name") == "stderr"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_is_stored_as_it_ran(path):
    notebook = read(path)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert not re.search(r"/(home|root|tmp|work)/", nbformat.writes(notebook))
