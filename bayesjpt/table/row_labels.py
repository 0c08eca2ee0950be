"""Labels of the rows of frames of pandas, which answers about rows keep."""

from __future__ import annotations

from typing import Any

import numpy as np


def row_labels(frame: Any) -> np.ndarray | None:
    """Return the index of a frame of pandas as a coordinate has it; None for what is none.

    Levels are joined by commas, and what is of several types is text.
    """
    if type(frame).__module__.split(".")[0] != "pandas":
        return None
    index = frame.index.to_numpy()
    if index.dtype != object or not index.size:
        return index
    if len(set(map(type, index))) == 1 and not isinstance(index[0], tuple | list):
        return index
    joined = [", ".join(map(str, label)) if isinstance(label, tuple | list) else str(label) for label in index]
    return np.array(joined, object)
