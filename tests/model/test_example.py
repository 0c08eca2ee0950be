"""The script of the README runs as it stands, however worker processes are started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINES = 15


def script(page: str = "README.md") -> str:
    """Return the first indented block of a page that has a guard."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.startswith("    ") or not line:
            blocks[-1].append(line[4:])
        elif blocks[-1]:
            blocks.append([])
    return next("\n".join(block).strip() for block in blocks if any("__main__" in line for line in block))


def test_example_is_short():
    assert len([line for line in script().splitlines() if line]) <= LINES


def test_page_on_the_block_shows_the_same_script():
    assert script("docs/explanation/block.md") == script()


@pytest.mark.parametrize("start", ["fork", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_example_runs_under_each_way_to_start_processes(start, tmp_path):
    few = f"pm.sample(draws=4, tune=4, chains=2, cores=2, mp_ctx={start!r}, compute_convergence_checks=False)"
    text = script()
    assert "pm.sample()" in text
    assert 'abalone.csv")' in text
    path = tmp_path / "example.py"
    shorter = text.replace('abalone.csv")', 'abalone.csv").rows(slice(400))').replace("pm.sample()", few)
    path.write_text(shorter, encoding="utf-8")
    flags = os.environ.get("PYTENSOR_FLAGS", "")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTENSOR_FLAGS": f"{flags},mode=FAST_COMPILE".strip(",")}
    done = subprocess.run(
        [sys.executable, str(path)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "ConcentrationGibbs: [alpha, x_sum_weights" in done.stderr
    assert "NUTS: [slope]" in done.stderr
    assert "alpha" in done.stdout
    assert "slope" in done.stdout
