"""A new file is found, or a test says where its name is missing: queries, learners, families."""

from __future__ import annotations

import re
from pathlib import Path

import bayesjpt
from bayesjpt.cli_learners import OPTIONS
from bayesjpt.families import registry
from bayesjpt.fitting.learning import parameters_of
from bayesjpt.learners import LEARNERS

PACKAGE = Path(bayesjpt.__file__).parent


def files_with(pattern: str, folder: str) -> list[str]:
    """Return the names of files in a folder of the package with a line that begins so."""
    paths = sorted((PACKAGE / folder).glob("*.py"))
    return [path.stem for path in paths if re.search(rf"^{pattern}", path.read_text(encoding="utf-8"), re.MULTILINE)]


def test_a_new_file_among_the_queries_becomes_a_method(tmp_path, run_python):
    (tmp_path / "shout.py").write_text(
        "from bayesjpt.posterior.answer import query_method\n\n\n"
        "@query_method\ndef shout(post) -> str:\n    return 'heard'\n",
        encoding="utf-8",
    )
    program = (
        f"import bayesjpt.queries; bayesjpt.queries.__path__.append({str(tmp_path)!r})\n"
        "import bayesjpt; print(bayesjpt.Posterior.shout(None))"
    )
    assert run_python(program).strip() == "heard"


def test_every_file_with_a_learner_is_listed_and_public():
    assert sorted(LEARNERS) == files_with("def learn_", "structure")
    for name in LEARNERS:
        assert getattr(bayesjpt, f"learn_{name}").__module__ == f"bayesjpt.structure.{name}"


def test_every_option_of_learners_at_the_command_line_is_a_parameter_of_one():
    assert OPTIONS.keys() <= {option for name in LEARNERS for option in parameters_of(name)}


def test_every_file_with_a_family_is_listed():
    assert sorted(registry.BUILT_IN) == files_with("FAMILY = ", "families")
