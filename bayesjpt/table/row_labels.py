"""Labels of rows and of their groups, which answers keep."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np


def row_labels(frame: Any) -> np.ndarray | None:
    """Return the index of a frame of pandas as a coordinate has it; None for what is none.

    Levels are joined by commas, moments in a zone are told in UTC, and what netCDF has no type for is text.
    """
    if not any(base.__module__.split(".")[0] == "pandas" for base in type(frame).__mro__):
        return None
    index = frame.index
    if getattr(index, "tz", None) is not None:
        index = index.tz_convert("UTC").tz_localize(None)
    labels = index.to_numpy()
    if labels.dtype != object or all(type(label) is str for label in labels):
        return labels
    joined = [", ".join(map(str, label)) if isinstance(label, tuple | list) else str(label) for label in labels]
    return np.array(joined, object)


def written_label(label: Any) -> Any:
    """Return a label as a coordinate of draws has it: what netCDF has no type for is text, such as months and days."""
    kept = str | bytes | int | float | np.generic | datetime.datetime | datetime.timedelta
    return label if isinstance(label, kept) and getattr(label, "tzinfo", None) is None else str(label)
