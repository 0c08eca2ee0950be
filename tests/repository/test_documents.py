"""What people read is true: docstrings run, the README prints what it shows, dependencies have reasons."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import bayesjpt
from bayesjpt.posterior.draws import Posterior
from tests.repository.test_imports import IN_JAX

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "bayesjpt"
LONGEST = 500
LONGEST_README = 150
LONGEST_DECISION = 40
MOST_DECISIONS = 15
N_METHOD = 4
"""The least number of verbs that queries and report register."""

MODULES = sorted(
    module.name for module in pkgutil.walk_packages([str(PACKAGE)], "bayesjpt.") if not module.name.endswith("__main__")
)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def documented_methods() -> list[str]:
    """Return the methods that queries and report register on Posterior."""
    assert bayesjpt.Posterior is Posterior
    homes = ("bayesjpt.queries", "bayesjpt.report", "bayesjpt.fitting")
    return [
        name
        for name, member in vars(Posterior).items()
        if inspect.isfunction(member) and not name.startswith("_") and member.__module__.startswith(homes)
    ]


@pytest.mark.parametrize("package", sorted({name.split(".")[1] for name in MODULES}))
def test_examples_in_docstrings_run(package):
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    output: list[str] = []
    for name in MODULES:
        if name.split(".")[1] == package and (name.split(".")[-1] not in IN_JAX or find_spec("jax")):
            module = importlib.import_module(name)
            for test in finder.find(module, name, globs={**vars(module)}):
                runner.run(test, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)


def test_public_names_resolve_and_their_docstrings_have_a_first_sentence():
    for name in bayesjpt.__all__:
        assert name in dir(bayesjpt)
        first = inspect.getdoc(getattr(bayesjpt, name)).split("\n\n")[0]
        assert first.rstrip().endswith((".", ".``")), name


def test_public_functions_show_an_example():
    for name in ("as_table", "learn_mspn", "build_model", "CircuitMixture", "fit", "load"):
        assert ">>> " in inspect.getdoc(getattr(bayesjpt, name)), name


def test_every_verb_shows_an_example_and_is_known_to_type_checkers():
    verbs = documented_methods()
    assert len(verbs) >= N_METHOD
    source = inspect.getsource(Posterior)
    for name in verbs:
        assert ">>> " in inspect.getdoc(getattr(Posterior, name)), name
        assert re.search(rf"import .*\b{name}\b|^ +{name} = ", source, re.MULTILINE), name


def test_lazy_names_are_those_that_type_checkers_see():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    seen = [alias.asname for node in ast.walk(guarded) if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(seen) == sorted(bayesjpt.__all__)


def test_files_are_short_enough_to_read():
    sources = [path for folder in ("bayesjpt", "tests") for path in (ROOT / folder).rglob("*.py")]
    assert len(sources) > 100
    assert [relative(path) for path in sources if len(path.read_text(encoding="utf-8").splitlines()) > LONGEST] == []


def test_every_public_name_has_a_row_of_the_reference():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    first_cells = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| ")]
    missing = [name for name in bayesjpt.__all__ if not any(re.search(rf"`{name}[(`]", cell) for cell in first_cells)]
    assert missing == []


# --- README, changelog, decisions, dependencies


def indented_blocks(text: str) -> list[str]:
    """Return the blocks of lines indented by four spaces, without the indentation."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("    ") or (not line.strip() and blocks[-1]):
            blocks[-1].append(line[4:])
        elif blocks[-1]:
            blocks.append([])
    return ["\n".join(block).strip("\n") for block in blocks if "".join(block).strip()]


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_example_of_the_readme_prints_what_it_shows(monkeypatch):
    monkeypatch.chdir(ROOT)
    examples = [block for block in indented_blocks(README) if block.startswith(">>> ")]
    assert examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    output: list[str] = []
    globs: dict = {}
    for number, block in enumerate(examples):
        test = doctest.DocTestParser().get_doctest(block + "\n", globs, f"README example {number}", "README.md", 0)
        runner.run(test, out=output.append, clear_globs=False)
        globs = test.globs
    assert runner.summarize(verbose=False).failed == 0, "".join(output)


def test_readme_names_the_two_commands():
    commands = [block for block in indented_blocks(README) if not block.startswith(">>> ")]
    assert any("bayesjpt types" in block for block in commands)
    lines = [line for line in README.splitlines() if line.startswith("    ") and "pytest" in line]
    assert lines, "the test command is the first indented line with pytest"
    assert ".[test]" in lines[0]


def test_readme_is_short_and_has_one_picture():
    assert len(README.splitlines()) <= LONGEST_README
    assert len(re.findall(r"^!\[[^\]]+\]\(", README, re.MULTILINE)) == 1


def test_every_link_of_the_documents_leads_to_a_file():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "notebooks").rglob("*.md"))]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http://", "https://")):
                assert (page.parent / target).exists(), f"{relative(page)}: {target}"


def test_changelog_begins_with_this_version():
    text = (ROOT / "docs" / "changelog.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", text, re.MULTILINE)[1] == bayesjpt.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == bayesjpt.__version__


def test_decisions_are_few_fit_on_a_page_and_are_listed():
    paths = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert 0 < len(paths) <= MOST_DECISIONS
    listed = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for path in paths:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_DECISION, relative(path)
        assert f"(decisions/{path.name})" in listed, relative(path)


def dependency_lines() -> list[str]:
    """Return the lines of pyproject.toml that name a requirement."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return [
        line for line in text.splitlines() if re.match(r'\s*((sklearn|plot|browser|dask) = \[)?"[\w-]+[><=]=', line)
    ]


def test_every_dependency_has_a_floor_and_a_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    lines = dependency_lines()
    assert len(lines) == len(named)
    for line in lines:
        assert ">=" in line
        assert re.search(r"#\s+\S", line), line


def test_every_third_party_that_the_package_imports_is_a_dependency():
    from tests.repository.test_imports import ALLOWED

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {
        re.match(r"[\w-]+", r)[0] for r in [*project["dependencies"], *project["optional-dependencies"]["sklearn"]]
    }
    names = {"sklearn": "scikit-learn", "arviz_stats": "arviz-stats", "python_calamine": "python-calamine"}
    # of plots, of samplers that run on JAX, of other machines (distributed requires dask): extras
    reserved = {"matplotlib", "jax", "distributed", "dask"}
    needed = {names.get(name, name) for room in ALLOWED.values() for name in room} - reserved
    assert needed <= declared
