"""Benchmarks: ``python -m pytest tests/benchmarks --benchmark-only -n0``. They print ratios; no test times anything.

The machine's noise is divided out: every figure of a sweep is the ratio to one scalar ``exp`` per (row, likelihood
leaf), measured in the same run just before and after.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_FIGURES: list[tuple[str, str]] = []


def pytest_collection_modifyitems(config, items):
    if config.getoption("benchmark_only"):
        return
    skip = pytest.mark.skip(reason="benchmarks run with --benchmark-only -n0")
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(skip)


@pytest.fixture(scope="session")
def figure():
    """Return a function ``(name, text)`` whose lines are printed after the run."""
    return lambda name, text: _FIGURES.append((name, text))


def pytest_terminal_summary(terminalreporter):
    if _FIGURES:
        terminalreporter.section("figures of this run")
        width = max(len(name) for name, _ in _FIGURES)
        for name, text in _FIGURES:
            terminalreporter.write_line(f"{name:<{width}}  {text}")
