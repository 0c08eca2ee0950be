"""Progress on a terminal: sweeps of all chains, log likelihoods, active edges, time left."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence

from bayesjpt.sampler.chains import Chain
from bayesjpt.sampler.schedule import Schedule


def visible() -> bool:
    """Return whether a bar can be drawn: on a terminal, or in a notebook that has widgets."""
    if "ipykernel" in sys.modules:
        return importlib.util.find_spec("ipywidgets") is not None
    return sys.stderr is not None and sys.stderr.isatty()


@contextlib.contextmanager
def waiting(text: str, wanted: bool) -> Iterator[None]:
    """Show a text while something takes its time."""
    if not (wanted and visible()):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextlib.contextmanager
def task_bar(text: str, wanted: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Give a function that takes how much is done, of how much; None without a terminal."""
    if not (wanted and visible()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def count_bar(text: str, done: int, total: int, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Give a function that takes how many things are done, of so many; it does nothing without a terminal."""
    if not (wanted and visible()):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(text, total=total, completed=done)
        yield lambda done: bar.update(task, completed=done)


@contextlib.contextmanager
def sampling_bar(chains: Sequence[Chain], schedule: Schedule, wanted: bool) -> Iterator[Callable[[], None] | None]:
    """Give a function that brings the bar up to date with the chains; None without a terminal."""
    if not (wanted and visible()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    begun = sum(chain.sweep for chain in chains)
    resumed = f", resumed at sweep {begun}" if begun else ""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("sweeps{task.fields[state]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), auto_refresh=False) as bar:
        task = bar.add_task(
            f"Sampling {schedule.n_chain} chains{resumed}",
            total=schedule.n_chain * schedule.n_sweep,
            completed=begun,
            state="",
        )

        def update() -> None:
            done = sum(chain.sweep for chain in chains)
            bar.update(task, completed=done, state=describe(chains), refresh=True)

        yield update
        update()


def describe(chains: Sequence[Chain]) -> str:
    """Return the range of the chains' log likelihoods and active edges in words, nothing before the first sweeps."""
    moving = [(chain.state.log_likelihood, chain.state.n_active) for chain in chains if chain.state is not None]
    if not moving:
        return ""
    likelihoods, active = zip(*moving, strict=True)
    return f", log likelihood {_range(likelihoods, '.1f')}, {_range(active, 'd')} active edges"


def _range(numbers: Sequence[float], form: str) -> str:
    lo, hi = (format(end(numbers), form) for end in (min, max))
    return lo if lo == hi else f"{lo} to {hi}"
