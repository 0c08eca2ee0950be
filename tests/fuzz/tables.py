"""Data frames as nobody would choose them: dtypes, scales, ties, constants, gaps, labels in any script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

Rng = np.random.Generator

MAX_ROWS = 40
MAX_COLUMNS = 4


def _scaled(rng: Rng, n: int) -> np.ndarray:
    """Return numbers of any magnitude, around any location, by any law."""
    law = rng.integers(5)
    raw = (
        rng.normal(size=n),
        rng.standard_cauchy(size=n),
        rng.exponential(size=n),
        rng.gamma(0.05, size=n),
        rng.uniform(-1.0, 1.0, n),
    )[law]
    scale = 10.0 ** rng.uniform(-300.0, 300.0) if rng.random() < 0.3 else 10.0 ** rng.uniform(-6.0, 9.0)
    with np.errstate(over="ignore", under="ignore"):
        return (raw + rng.choice([0.0, 0.0, 1.0, 1e3, 1e8, -1e6])) * scale


def _rounded(rng: Rng, n: int) -> np.ndarray:
    return np.round(_ordinary(rng, n), int(rng.integers(0, 4)))


def _ordinary(rng: Rng, n: int) -> np.ndarray:
    return rng.normal(rng.normal(0.0, 10.0), 10.0 ** rng.uniform(-2.0, 3.0), n)


def _inflated(rng: Rng, n: int) -> np.ndarray:
    """Return numbers of which many are one value: zeros, caps, sentinels."""
    x = np.abs(_ordinary(rng, n)) if rng.random() < 0.5 else _scaled(rng, n)
    x[rng.random(n) < rng.uniform(0.1, 0.95)] = rng.choice([0.0, -999.0, 99999.0, x.max()])
    return np.round(x) if rng.random() < 0.3 else x


def _constant(rng: Rng, n: int) -> np.ndarray:
    return np.full(n, rng.choice([0.0, 1.0, -3.5, 1e300, 1e-300, 7e15, 5e-324]))


def _integers(rng: Rng, n: int) -> np.ndarray:
    top = int(rng.choice([1, 2, 5, 30, 1000, 10**6, 2**52, 2**53, 2**60]))
    low = 0 if rng.random() < 0.6 else -top
    return rng.integers(low, top + 1, n)


def _numbered(rng: Rng, n: int) -> np.ndarray:
    return rng.permutation(n) if rng.random() < 0.5 else np.arange(n) * 10 + 7


def _infinite(rng: Rng, n: int) -> np.ndarray:
    x = _ordinary(rng, n)
    x[rng.integers(n)] = rng.choice([np.inf, -np.inf])
    return x


def _extremes(rng: Rng, n: int) -> np.ndarray:
    return rng.choice([0.0, -0.0, 5e-324, 1e-308, 1e-300, 1.0, 1e300, 1.7e308, -1e300], n)


def _decades(rng: Rng, n: int) -> np.ndarray:
    """Return numbers whose logarithms are uniform over ten to three hundred decades."""
    reach = rng.uniform(5.0, 150.0)
    x = 10.0 ** rng.uniform(-reach, reach, n)
    return x * rng.choice([-1.0, 1.0], n) if rng.random() < 0.5 else x


def _largest(rng: Rng, n: int) -> np.ndarray:
    """Return numbers next to the largest float64 and its negative, some of them far from it."""
    top = np.finfo(np.float64).max
    near = [top, np.nextafter(top, 0.0), top * 0.999, top / 2.0, 1.0, 0.0]
    return rng.choice(np.array([*near, *(-each for each in near)] if rng.random() < 0.5 else near), n)


def _subnormal(rng: Rng, n: int) -> np.ndarray:
    """Return numbers below the smallest normal float64, some of them among ordinary ones."""
    x = 5e-324 * rng.integers(0, 2 ** int(rng.integers(1, 53)), n)
    return np.where(rng.random(n) < 0.3, _ordinary(rng, n), x) if rng.random() < 0.3 else x


def _nanoseconds(rng: Rng, n: int) -> np.ndarray:
    """Return nanoseconds since 1970 of moments in one year, or seconds to milliseconds apart."""
    return 1_700_000_000_000_000_000 + rng.integers(0, 10 ** int(rng.integers(3, 17)), n)


NUMBERS: tuple[Callable[[Rng, int], np.ndarray], ...] = (
    _scaled,
    _rounded,
    _ordinary,
    _inflated,
    _constant,
    _integers,
    _integers,
    _numbered,
    _infinite,
    _extremes,
    _decades,
    _largest,
    _subnormal,
    _nanoseconds,
    _rounded,
    _ordinary,
    _integers,
)


@st.composite
def number_columns(draw, n: int) -> Any:
    """Draw a column of numbers under one of many dtypes, with gaps."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = draw(st.sampled_from(NUMBERS))(rng, n)
    dtype = draw(st.sampled_from(["plain", "plain", "float32", "nullable", "arrow", "object", "text"]))
    gaps = rng.random(n) < draw(st.sampled_from([0.0] * 6 + [0.2] * 6 + [0.9, 1.0]))
    whole = values.dtype.kind == "i"
    if dtype == "plain" and not gaps.any():
        return pd.Series(values)
    if dtype == "float32":
        with np.errstate(over="ignore"):
            return pd.Series(np.where(gaps, np.nan, values).astype(np.float32))
    cells = [None if gap else value for gap, value in zip(gaps, values.tolist(), strict=True)]
    match dtype:
        case "nullable":
            return pd.Series(pd.array(cells, dtype="Int64" if whole else "Float64"))
        case "arrow":
            return pd.Series(pd.array(cells, dtype="int64[pyarrow]" if whole else "double[pyarrow]"))
        case "object":
            return pd.Series(cells, dtype=object)
        case "text":
            return pd.Series([None if cell is None else str(cell) for cell in cells], dtype=object)
    return pd.Series(np.where(gaps, np.nan, values))


@st.composite
def label_columns(draw, n: int) -> Any:
    """Draw a column of labels in any script, few or many, under one of several dtypes."""
    pool = draw(st.lists(st.text(max_size=8), min_size=1, max_size=draw(st.sampled_from([1, 2, 5, 30]))))
    if draw(st.integers(0, 19)) == 0:
        pool = [*pool, "long " * 10_000, "long " * 10_000 + "too"]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.sampled_from([0.0] * 6 + [0.3] * 6 + [1.0]))
    cells = [None if rng.random() < share else pool[rng.integers(len(pool))] for _ in range(n)]
    match draw(st.sampled_from(["object", "object", "category", "string", "arrow"])):
        case "category":
            return pd.Series(pd.Categorical(cells, categories=sorted(set(pool))))
        case "string":
            return pd.Series(cells, dtype="string")
        case "arrow":
            return pd.Series(cells, dtype="string[pyarrow]")
    return pd.Series(cells, dtype=object)


_OTHERS = 3 * ("boolean", "nullable", "dates", "zoned", "centuries", "stamps") + ("mixed", "floats", "spans")


@st.composite
def other_columns(draw, n: int) -> Any:
    """Draw booleans, dates, columns that mix kinds, or short lists of arbitrary floats."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    match draw(st.sampled_from(_OTHERS)):
        case "boolean":
            return pd.Series(rng.random(n) < rng.random())
        case "nullable":
            return pd.Series(pd.array([None if u < 0.2 else u < 0.6 for u in rng.random(n)], dtype="boolean"))
        case "dates":
            unit = draw(st.sampled_from(["s", "h", "D"]))
            moments = np.datetime64("1970-01-01", unit) + rng.integers(-(10**6), 10**6, n).astype(
                f"timedelta64[{unit}]"
            )
            moments[rng.random(n) < 0.1] = np.datetime64("NaT", unit)
            return pd.Series(moments)
        case "centuries":
            days = rng.integers(-719_162, 2_932_897, n)  # of the years 1 to 9999
            return pd.Series(days.astype("datetime64[D]").astype("datetime64[s]"))
        case "stamps":
            return pd.Series(_nanoseconds(rng, n).astype("datetime64[ns]"))
        case "zoned":
            return pd.Series(pd.date_range("2001-01-01", periods=n, freq="7h", tz="Europe/Berlin"))
        case "mixed":
            return pd.Series(
                [rng.choice([1.5, "a", None, True]) if i % 3 else object() for i in range(n)], dtype=object
            )
        case "floats":
            return pd.Series(draw(st.lists(st.floats(), min_size=n, max_size=n)))
    return pd.Series(rng.integers(0, 10**9, n).astype("timedelta64[s]"))


@st.composite
def frames(draw) -> Any:
    """Draw a frame of pandas, polars or pyarrow."""
    n_row = draw(st.sampled_from([25, 5, MAX_ROWS, 2, 12, MAX_ROWS, 1, 25, MAX_ROWS, 0]))
    n_column = draw(st.sampled_from([1, 2, 3, 4, 2, 3, 4, MAX_COLUMNS, 0]))
    names = draw(
        st.lists(st.text(max_size=6) | st.sampled_from(["x", "id"]), min_size=n_column, max_size=n_column)
        if draw(st.integers(0, 9)) == 0
        else st.lists(st.text(min_size=1, max_size=6), min_size=n_column, max_size=n_column, unique=True)
    )
    n = max(n_row, 1)
    kinds = st.one_of(number_columns(n), number_columns(n), label_columns(n), other_columns(n))
    columns = [draw(kinds) for _ in names]
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(n_row))
    frame = frame.iloc[:n_row]
    frame.columns = names
    if draw(st.integers(0, 4)) == 0:
        return in_another_library(frame, draw(st.sampled_from(["polars", "pyarrow"])))
    return frame


def in_another_library(frame: pd.DataFrame, library: str) -> Any:
    """Return the frame as polars or pyarrow hold it, or as it is where they cannot."""
    import polars as pl
    import pyarrow as pa

    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
        return pl.from_arrow(table) if library == "polars" else table
    except (pa.ArrowException, pl.exceptions.PolarsError, ValueError, TypeError, OverflowError):
        # mixed kinds, doubled names, lone surrogates: what they refuse cannot reach us through them
        return frame
