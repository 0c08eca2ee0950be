"""What ``rng`` may be at the package's entry points: a seed, a generator, or nothing."""

from __future__ import annotations

import numpy as np


def as_generator(rng: object) -> np.random.Generator | None:
    """Return a generator of NumPy: itself, that of a seed from 0, or a fresh one for None; None for anything else.

    Examples
    --------
    >>> as_generator(7).integers(100) == np.random.default_rng(7).integers(100)
    np.True_
    >>> as_generator(-1) is None, as_generator(True) is None, as_generator("7") is None
    (True, True, True)
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        return np.random.default_rng()
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    return None
