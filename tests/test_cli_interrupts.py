"""The command line, interrupted: while it loads its modules, at work, while it answers, and at its end."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bayesjpt as bj
from bayesjpt import __main__, cli

WINES = Path(__file__).parents[1] / "notebooks" / "data" / "wine_quality.csv"


def test_interrupt_ends_with_one_line_and_status_130(capfd, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayesjpt.fitting.facade.learn", interrupted)
    assert cli.run(["types", str(WINES), "-q", "--structures", "1"]) == 130
    assert capfd.readouterr() == ("", "bayesjpt: interrupted\n")


INTERRUPTED_AT_ITS_END = """
import atexit, os, signal, sys
from bayesjpt.__main__ import main

atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.argv = ["bayesjpt", "--version"]
main()
"""

INTERRUPTED_AT_ITS_BEGINNING = """
import importlib.abc, os, signal, sys

class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "bayesjpt.cli_query":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that runs tests behind it has it ignored
sys.meta_path.insert(0, Interrupting())
from bayesjpt.__main__ import main

sys.argv = ["bayesjpt", "--version"]
main()
"""


def test_interrupt_of_the_interpreters_own_end_prints_no_traceback():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_AT_ITS_END], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, f"bayesjpt {bj.__version__}\n", "")


def test_interrupt_while_modules_are_loaded_ends_with_one_line_and_status_130():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_AT_ITS_BEGINNING], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (cli.INTERRUPTED, "", "bayesjpt: interrupted\n")


def test_second_interrupt_while_the_first_is_answered_has_status_130(monkeypatch):
    def answering():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "run", answering)
    monkeypatch.setattr(__main__.gc, "disable", lambda: None)
    monkeypatch.setattr(__main__.gc, "freeze", lambda: None)
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as ended:
            __main__.main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code == cli.INTERRUPTED
