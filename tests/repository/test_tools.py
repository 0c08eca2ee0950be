"""Format, lint, static types and the contracts between rooms, run as tests so that nobody has to remember them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(sysconfig.get_path("scripts"))


def run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_ruff_finds_nothing():
    done = run(sys.executable, "-m", "ruff", "check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout


def test_every_file_is_formatted():
    done = run(sys.executable, "-m", "ruff", "format", "--check", "--no-cache", ".")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow  # more than a minute of processor time, a tenth of all others
def test_pyright_finds_no_error():
    done = run(sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson")
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError:  # its engine comes from the npm registry at the first run
        pytest.skip(f"pyright could not start: {done.stderr.strip().splitlines()[-1:]}")
    found = [
        f"{Path(entry['file']).relative_to(ROOT)}:{entry['range']['start']['line'] + 1}: {entry['message']}"
        for entry in answer["generalDiagnostics"]
        if entry["severity"] in ("error", "warning")
    ]
    assert answer["summary"]["filesAnalyzed"] > 50
    assert not found, "\n".join(found)


def test_every_contract_between_rooms_holds():
    done = run(str(SCRIPTS / "lint-imports"), "--no-cache")
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout
