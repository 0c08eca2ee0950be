"""Every query, asked of a fit of a generated table: the laws that any answer obeys, whatever the table."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bayesjpt as bj
from bayesjpt.errors import BayesjptError
from bayesjpt.queries.event import Event
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table

ROUNDING = 1e-9
N_SAMPLED = 20
CALENDAR = -719_162.0, 2_932_896.0
"""Days from 1970 to the first and the last date that a table may hold."""
SOME = 6
"""Rows that are asked about one by one."""


class Asked(NamedTuple):
    """What questions are about: some rows of the table, an event about a cell of it, and the event's column."""

    table: Table
    rows: Table
    event: Event
    name: str
    rng: np.random.Generator


def about(table: Table, rng: np.random.Generator) -> Asked:
    """Return an event about a random cell of a table, and its first rows."""
    names = [name for name, seen in zip(table.names, table.observed, strict=True) if seen.any()] or list(table.names)
    name = names[int(rng.integers(len(names)))]
    return Asked(table, table.rows(slice(0, SOME)), event_about(table, name, rng), name, rng)


def ask(post: bj.Posterior, question: str, asked: Asked) -> bool:
    """Check the laws of a question and return whether all was answered: it may be refused in a line of ours.

    An event may have no probability, a variance may not be finite; the whole is always described and saved.
    """
    try:
        QUESTIONS[question](post, asked)
    except BayesjptError:
        if question in ALWAYS_ANSWERED:
            raise
        return False
    return True


def event_about(table: Table, name: str, rng: np.random.Generator) -> Event:
    """Return an event about a cell of a column."""
    position = table.schema.index(name)
    column, seen = table.schema.columns[position], table.values[position, table.observed[position]]
    value = float(rng.choice(seen)) if seen.size else float(column.location)
    if column.base == "category":
        return bj.col(name).isin([column.labels[int(min(value, len(column.labels) - 1))]])
    bound = _external(column, value)
    return (bj.col(name) <= bound, bj.col(name) > bound)[int(rng.integers(2))]


def next_to(table: Table, rng: np.random.Generator) -> Table:
    """Return the rows of a table, and as many that training did not show, all inside the columns' supports."""
    others = table.values.copy()
    with np.errstate(over="ignore"):
        _scatter(others, table, rng)
    return Table(table.schema, np.hstack([table.values, others]), np.hstack([table.observed, table.observed]))


def _scatter(values: np.ndarray, table: Table, rng: np.random.Generator) -> None:
    for position, column in enumerate(table.schema):
        lo, hi = column.support
        if column.dtype == "datetime":
            lo, hi = max(lo, CALENDAR[0]), min(hi, CALENDAR[1])
        if column.base == "category":
            values[position] = rng.integers(0, column.n_label, table.n_row)
        elif column.base == "integer":
            values[position] = np.clip(values[position] + rng.integers(-20, 21, table.n_row), lo, hi)
        else:
            jump = column.scale * rng.standard_cauchy(table.n_row)
            far = column.location + np.clip(
                values[position] - column.location + jump, -1e8 * column.scale, 1e8 * column.scale
            )
            values[position] = np.clip(np.where(np.isfinite(far), far, column.location), lo, hi)


def _external(column: Column, value: float) -> Any:
    """Return a value of a column as an event may hold it."""
    if column.dtype == "datetime":
        return np.datetime64("1970-01-01", "us") + np.timedelta64(int(value * 86_400_000_000), "us")
    return int(value) if column.base == "integer" else value


def finite(what: str, answer: Any, *, may_be_infinite: bool = False) -> np.ndarray:
    values = np.asarray(getattr(answer, "values", answer))
    if values.dtype.kind not in "fc":
        return values
    assert not np.isnan(values).any(), f"{what} is NaN"
    assert may_be_infinite or np.isfinite(values).all(), f"{what} is infinite"
    return values


def inside(what: str, values: np.ndarray) -> None:
    outside = values[(values < -ROUNDING) | (values > 1.0 + ROUNDING)]
    assert not outside.size, f"{what} {outside[0]!r}"


def _probabilities(post: bj.Posterior, asked: Asked) -> None:
    is_so, is_not = (finite("probability", post.probability(each)) for each in (asked.event, ~asked.event))
    for values in (is_so, is_not):
        inside("probability", values)
    missing = float(np.abs(is_so + is_not - 1.0).max())
    assert missing <= ROUNDING, f"P(A) + P(not A) is off by {missing:.3g}"


def _numbers(post: bj.Posterior) -> list[Column]:
    return [column for column in post.schema.columns if column.base != "category"]


def _distribution(post: bj.Posterior, asked: Asked) -> None:
    table, rng = asked.table, asked.rng
    for column in _numbers(post):
        position = post.schema.index(column.name)
        seen = table.values[position, table.observed[position]]
        with np.errstate(over="ignore"):
            points = np.unique(np.append(seen[:SOME], column.location + column.scale * rng.standard_cauchy(SOME)))
        points = points[np.isfinite(points)]
        if column.base == "integer":
            points = np.unique(np.rint(points))
        found = finite("cdf", post.cdf(points, column.name))
        inside("cdf", found)
        steps = np.diff(found[..., 0], axis=-1)
        assert not steps.size or (steps >= -ROUNDING).all(), f"cdf falls by {-steps.min()}"
        # as wide as numbers go, an end of a heavy tail may be none
        quantiles = finite("quantile", post.quantile([0.05, 0.5, 0.95], [column.name]), may_be_infinite=True)
        assert (quantiles[..., 1:, 0] >= quantiles[..., :-1, 0]).all(), "quantiles fall"


def _moments(post: bj.Posterior, asked: Asked) -> None:
    names = [column.name for column in _numbers(post)]
    for given in (None, asked.event) if names else ():
        for name in names:
            with contextlib.suppress(BayesjptError):
                finite("expectation", post.expectation([name], given=given), may_be_infinite=True)
                spread = finite("variance", post.variance([name], given=given), may_be_infinite=True)
                assert spread.dtype.kind != "f" or (spread >= 0.0).all(), f"variance {spread.min()}"


def _conditioned(post: bj.Posterior, asked: Asked) -> None:
    event, rng = asked.event, asked.rng
    inside = post.condition(event)
    again = finite("probability given itself", inside.probability(event))
    assert np.abs(again - 1.0).max() <= ROUNDING, f"P(A | A) = {again.ravel()[0]!r}"
    rows = inside.sample(SOME, rng=rng)
    assert np.isfinite(rows.values).all(), "a sampled row of an event is not finite"
    drawn = post.sample(SOME, event, rng=rng, recorded=bool(rng.random() < 0.5))
    where = finite("probability given rows", post.probability(event, given=drawn))
    assert (where == 1.0).all(), "a sampled row lies outside the event"


def _samples(post: bj.Posterior, asked: Asked) -> None:
    rng = asked.rng
    rows = post.sample(N_SAMPLED, rng=rng, recorded=False)
    assert np.isfinite(rows.values).all(), "a sampled row is not finite"
    assert np.isfinite(finite("log mass of samples", post.log_mass(rows))).all()
    recorded = post.sample(N_SAMPLED, rng=rng)
    back = bj.as_table(recorded.to_frame(), schema=asked.table.schema)
    assert back.n_row == N_SAMPLED, "samples are not accepted back"


def _filled(post: bj.Posterior, asked: Asked) -> None:
    rows, rng = asked.rows, asked.rng
    empty = Table(rows.schema, rows.values, rows.observed & (rng.random(rows.observed.shape) < 0.5))
    for filled in (post.impute(empty, rng=rng)[0], bj.queries.impute.impute_mean(post, empty).table):
        assert filled.observed.all(), "an imputed cell is missing"
        finite("an imputed cell", filled.values)
        kept = filled.values[empty.observed]
        assert (kept == empty.values[empty.observed]).all(), "an observed cell was changed"


def _predicted(post: bj.Posterior, asked: Asked) -> None:
    found = bj.queries.predict.prediction(post, asked.name, asked.rows)
    values = finite("prediction", found.values, may_be_infinite=True)
    if post.schema.columns[post.schema.index(asked.name)].base == "category":
        inside("prediction", values)
        assert np.abs(values.sum(axis=1) - 1.0).max(initial=0.0) <= ROUNDING, "predicted shares do not add up to 1"


def _members(post: bj.Posterior, asked: Asked) -> None:
    for one in post.by_structure():
        inside("membership", finite("membership", one.membership(asked.rows)))
    inside("comembership", finite("comembership", post.comembership(asked.rows)))


def _outliers(post: bj.Posterior, asked: Asked) -> None:
    for score in ("tail", "log_mass"):
        found = post.outliers(asked.rows, score=score)
        finite(f"outliers by {score}", found["score"], may_be_infinite=True)


def _outliers_of_training(post: bj.Posterior, asked: Asked) -> None:
    found = post.outliers(asked.table, training=True)
    finite("outliers of training", found["score"], may_be_infinite=True)


def _dependence(post: bj.Posterior, _asked: Asked) -> None:
    pairs = np.asarray(post.dependence(normalised=True))[..., *np.triu_indices(len(post.schema), 1)]
    inside("dependence", finite("dependence", pairs))  # a column and itself have none


def _marginal(post: bj.Posterior, asked: Asked) -> None:
    inside("marginal", finite("marginal", post.marginal([asked.name]).probability(asked.event)))


def _saved(post: bj.Posterior, asked: Asked) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.nc"
        post.save(path)
        back = bj.load(path)
    again, before = (np.asarray(each.log_density(asked.rows)) for each in (back, post))
    assert np.array_equal(again, before), "a saved fit differs"


def _shares(post: bj.Posterior, _asked: Asked) -> None:
    types = post.types()
    for column in types.shares:
        assert np.isfinite([column.share, column.lo, column.hi]).all(), f"type shares of {column.name!r}"
    repr(types)


def _given_rows(post: bj.Posterior, asked: Asked) -> None:
    """Ask about a column given the other cells of some rows."""
    position = post.schema.index(asked.name)
    seen = asked.rows.observed.copy()
    seen[position] = False
    given = Table(asked.rows.schema, asked.rows.values, seen)
    inside("probability given rows", finite("probability given rows", post.probability(asked.event, given=given)))
    repr(post.most_probable(given))
    if post.schema.columns[position].base != "category":
        found = post.quantile([0.1, 0.9], [asked.name], given)
        finite("quantile given rows", found, may_be_infinite=True)
        assert (found.isel(quantile=1) >= found.isel(quantile=0)).all(), "quantiles given rows fall"
        finite("expectation given rows", post.expectation([asked.name], given=given), may_be_infinite=True)


def _bounds(post: bj.Posterior, asked: Asked) -> None:
    for given in (None, asked.event):
        found = post.confidence_bounds(given=given)
        for name in found:
            finite(f"confidence bounds ({name})", found[name], may_be_infinite=True)


def _idata(post: bj.Posterior, asked: Asked) -> None:
    back = bj.Posterior.from_idata(post.to_idata())
    again, before = (np.asarray(each.log_mass(asked.rows)) for each in (back, post))
    assert np.array_equal(again, before), "draws in a DataTree differ"


def _report(post: bj.Posterior, asked: Asked) -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = post.report(Path(folder) / "page.html", table=asked.table).read_text()
    assert "</html>" in page


def _tree(post: bj.Posterior, _asked: Asked) -> None:
    shown = post.tree()
    repr(shown)
    shown._repr_svg_()


def _compared(_post: bj.Posterior, asked: Asked) -> None:
    every = np.arange(asked.table.n_row)
    found = bj.compare(*(asked.table.take(every[k::2]) for k in (0, 1)))
    repr(found)
    found._repr_html_()


QUESTIONS: dict[str, Callable[[bj.Posterior, Asked], Any]] = {
    "probability": _probabilities,
    "distribution": _distribution,
    "moments": _moments,
    "condition": _conditioned,
    "sample": _samples,
    "impute": _filled,
    "predict": _predicted,
    "members": _members,
    "outliers": _outliers,
    "outliers of training": _outliers_of_training,
    "dependence": _dependence,
    "marginal": _marginal,
    "explain": lambda post, asked: repr(post.explain(asked.event)),
    "given rows": _given_rows,
    "most probable": lambda post, asked: repr(post.most_probable(asked.event, k=3)),
    "confidence bounds": _bounds,
    "idata": _idata,
    "report": _report,
    "tree": _tree,
    "compare": _compared,
    "components": lambda post, asked: repr(post.components(asked.name)),
    "patterns": lambda post, _: repr(post.patterns()),
    "mode": lambda post, _: finite("mode", post.mode().get("log_mass", np.zeros(1))),
    "types": _shares,
    "save": _saved,
}
"""A check of each query; what it raises beside errors of ours is a finding."""

ALWAYS_ANSWERED = {"components", "patterns", "mode", "types", "save", "idata", "report"}
"""Of the fit alone: nothing that is asked can be at fault."""
