"""Work that is a function of its arguments, done here in turn or through an executor: `concurrent.futures`, Dask."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from typing import Any, Protocol

from bayesjpt.errors import SamplingError


class Future(Protocol):
    """What becomes a result."""

    def result(self) -> Any: ...

    def cancel(self) -> Any: ...


class Submits(Protocol):
    """An executor: `concurrent.futures.Executor`, or that of a Dask client (``client.get_executor()``)."""

    def submit(self, function: Any, /, *args: Any) -> Future: ...


Run = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Iterator[Any]]
"""From a function and the arguments of each call to the results, in their order."""


_OPEN = "one that is open until the fit is done"


def in_turn(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """Yield the result of each call, made when it is asked for."""
    for arguments in calls:
        yield function(*arguments)


def run_by(executor: Submits | None) -> Run:
    """Return what makes calls: tasks of an executor, or calls in turn where there is none.

    An error of one task is raised when its turn comes, and the others are cancelled.
    """
    if executor is None:
        return in_turn

    def run(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        with lost_processes_told():
            waiting = [executor.submit(function, *arguments) for arguments in calls]
            try:
                for future in waiting:
                    yield future.result()
            finally:
                for future in waiting:
                    future.cancel()

    return run


@contextlib.contextmanager
def lost_processes_told() -> Iterator[None]:
    """Make of an executor whose process ended, or that was closed, an error of ours."""
    try:
        yield
    except BrokenExecutor as error:
        raise SamplingError(
            f"a process of the executor ended: {error}",
            "processes that live as long as the fit",
            "A program that starts processes does so under: if __name__ == '__main__'.",
        ) from error
    except CancelledError as error:
        raise SamplingError(
            "the executor gave up a task: its processes, or the connection to them, were closed", _OPEN
        ) from error
    except RuntimeError as error:
        if "after shutdown" not in str(error):
            raise
        raise SamplingError(f"the executor takes no work: {error}", _OPEN) from error
    except Exception as error:
        # of Dask, which may not be installed
        if type(error).__name__ != "KilledWorker":
            raise
        raise SamplingError(
            "workers of Dask ended one after the other at the same task, as where it needs more memory than they have",
            "workers that live as long as the fit",
            "Give each more memory, or start fewer of them.",
        ) from error


def client_of(executor: Any) -> Any:
    """Return the client of Dask that an executor submits by, or is; None of other executors.

    Raises
    ------
    SamplingError
        For a client that is closed.
    """
    client = executor if hasattr(executor, "nthreads") else getattr(executor, "_client", None)
    if getattr(client, "status", None) in ("closing", "closed"):
        raise SamplingError("the executor takes no work: its client of Dask is closed", _OPEN)
    return client


def check_executor(executor: Any) -> None:
    """Raise `SamplingError` for what is no executor."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise SamplingError(
            f"executor of type {type(executor).__name__}",
            "an object with submit, such as those of concurrent.futures",
            "Of a Dask client take client.get_executor().",
        )
