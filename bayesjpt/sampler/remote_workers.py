"""Processes for `bj.fit(executor=)`: of this machine, or of a Dask cluster that somebody runs."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from bayesjpt.errors import SamplingError
from bayesjpt.executors import Submits

_QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "500ms"}
"""Of Dask's processes that are started here: they share the processors with the sweeps, and neither take samples of
their own stack a hundred times a second nor look fifty times whether their event loop is late."""


_NO_INTERRUPTS = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
"""What processes that are started here run first: a terminal interrupts them, too, and the fit would wait for tasks of
processes that have ended. They end with the fit."""

_LOGGERS = "distributed", "distributed.client"
"""Of Dask, with handlers of their own that write on standard error."""


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    """Keep what Dask logs in this process from standard error: what ends a fit is raised, and told in words of ours."""
    handlers = [handler for name in _LOGGERS for handler in logging.getLogger(name).handlers]
    levels = [handler.level for handler in handlers]
    for handler in handlers:
        handler.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for handler, level in zip(handlers, levels, strict=True):
            handler.setLevel(level)


@contextlib.contextmanager
def workers(where: str | int) -> Iterator[Submits]:
    """Give an executor.

    Parameters
    ----------
    where : str or int
        How many processes of one thread each are started here; or the address of a Dask scheduler, such as
        ``tcp://10.0.0.1:8786``.

    Raises
    ------
    SamplingError
        Where Dask is not installed, there is no such scheduler, or the number makes no sense.
    """
    text = str(where)
    if "://" not in text and (not text.isdigit() or int(text) < 1):
        raise SamplingError(f"workers = {where!r}", "a number from 1, or the address of a scheduler")
    try:
        import dask.config  # pyright: ignore[reportMissingImports] - an extra
        from distributed import Client, LocalCluster  # pyright: ignore[reportMissingImports] - an extra
    except ImportError as error:
        raise SamplingError(
            "Dask is not installed", "dask[distributed]", "Install it by pip install 'bayesjpt[dask]'."
        ) from error
    with contextlib.ExitStack() as stack:
        stack.enter_context(_quiet_logs())
        if "://" in text:
            address = text
        else:
            with dask.config.set(_QUIET):
                cluster = LocalCluster(
                    n_workers=int(text),
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=":0",
                    preload=[_NO_INTERRUPTS],
                )
            address = stack.enter_context(cluster)
        try:
            # results come from the workers themselves: through the scheduler, which is in this process if workers are
            # started here, each byte would be received, sent and received once more
            client = stack.enter_context(Client(address, timeout="10s", direct_to_workers="://" not in text))
        except (OSError, TimeoutError, ValueError) as error:
            raise SamplingError(f"no Dask scheduler at {text!r}: {error}") from error
        yield stack.enter_context(client.get_executor(pure=False, retries=3))
