"""No silence: a line when something that takes its time begins, and one when it ends, on standard error."""

from __future__ import annotations

import contextlib
import contextvars
import math
import os
import sys
import threading
import time
from collections.abc import Iterator


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return 2.0
    return seconds if seconds >= 0.0 else 2.0


ANNOUNCED_SECONDS = _seconds(os.environ.get("BAYESJPT_ANNOUNCED_SECONDS", ""))
"""Seconds after which a phase is long enough for a line when it begins, and one when it ends; ``inf`` for silence."""


FIRST_TIME = "; the first time compiles what it needs"
"""What is said of a phase that takes much longer once."""

_INSIDE = contextvars.ContextVar("_INSIDE", default=False)
"""Whether another phase speaks, or is silent, for those within it."""


@contextlib.contextmanager
def announced(text: str, wanted: bool, *, end: bool = True) -> Iterator[None]:
    """Say on standard error that a phase has begun, and that it has ended, where it takes its time: off a terminal too.

    Nothing is said of a phase that ends before `ANNOUNCED_SECONDS`, nor of one within another phase, nor of the end
    where `end` is False: somebody else says it.
    """
    outer = _INSIDE.set(True) if not _INSIDE.get() else None
    try:
        with _said(text, wanted and outer is not None, end):
            yield
    finally:
        if outer is not None:
            _INSIDE.reset(outer)


@contextlib.contextmanager
def _said(text: str, wanted: bool, end: bool) -> Iterator[None]:
    if not wanted or sys.stderr is None or math.isinf(ANNOUNCED_SECONDS):
        yield
        return
    began, said = time.perf_counter(), threading.Event()

    def say() -> None:
        said.set()
        sys.stderr.write(f"{text} ...\n")
        sys.stderr.flush()

    timer = threading.Timer(ANNOUNCED_SECONDS, say)
    timer.daemon = True
    if ANNOUNCED_SECONDS > 0.0:
        timer.start()
    else:
        say()
    try:
        yield
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()  # a line that is being written comes before the next
    if said.is_set() and end:
        sys.stderr.write(f"{text}: done in {time.perf_counter() - began:.1f} s\n")
        sys.stderr.flush()
