"""How many threads."""

from __future__ import annotations

import os


def n_processor() -> int:
    """Return the number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def n_worker(cores: int | None, n_chain: int) -> int:
    """Return how many threads sample: at most `cores`, one a chain and one a processor.

    More threads than processors would take turns; the draws are the same for any number.
    """
    return max(1, min(n_chain, n_processor(), n_processor() if cores is None else cores))


def n_helper(cores: int | None, n_chain: int) -> int:
    """Return how many threads share the sweeps of one chain: processors that have no chain of their own help others.

    Only tables of more rows than a unit (`bayesjpt.kernels.units.UNIT_ROWS`) are shared.
    """
    return max(1, n_worker(cores, n_processor()) // n_worker(cores, n_chain))
