"""Every query, asked of a fit of a generated table: the laws that any answer obeys, whatever the table."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import bayesjpt as bj
from bayesjpt.errors import BayesjptError
from bayesjpt.queries.event import Event
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table

ROUNDING = 1e-9
N_SAMPLED = 20
SOME = 6
"""Rows that are asked about one by one."""


def ask(post: bj.Posterior, table: Table, rng: np.random.Generator) -> None:
    """Check the laws of all query methods; an answer may be refused by an error of ours, never be absurd."""
    rows = table.rows(slice(0, SOME))
    event, name = _event(table, rng)
    for question in (
        lambda: _probabilities(post, event),
        lambda: _distribution(post, table, rng),
        lambda: _moments(post, event),
        lambda: _conditioned(post, event, rng),
        lambda: _samples(post, table, rng),
        lambda: _filled(post, rows, rng),
        lambda: _predicted(post, rows, name),
        lambda: _rows_apart(post, table, rows),
        lambda: _structure(post, name, event),
    ):
        # null events, variances that are not finite: refused in a line; what is answered has to hold
        with contextlib.suppress(BayesjptError):
            question()
    _saved(post, rows)


def _event(table: Table, rng: np.random.Generator) -> tuple[Event, str]:
    """Return an event about a cell of the table, and the column's name."""
    names = [name for name, seen in zip(table.names, table.observed, strict=True) if seen.any()] or list(table.names)
    name = names[int(rng.integers(len(names)))]
    position = table.schema.index(name)
    column, seen = table.schema.columns[position], table.values[position, table.observed[position]]
    value = float(rng.choice(seen)) if seen.size else float(column.location)
    if column.base == "category":
        return bj.col(name).isin([column.labels[int(min(value, len(column.labels) - 1))]]), name
    bound = _external(column, value)
    return (bj.col(name) <= bound, bj.col(name) > bound)[int(rng.integers(2))], name


def _external(column: Column, value: float) -> Any:
    """Return a value of a column as an event may hold it."""
    if column.dtype == "datetime":
        return np.datetime64("1970-01-01", "us") + np.timedelta64(int(value * 86_400_000_000), "us")
    return int(value) if column.base == "integer" else value


def _finite(what: str, answer: Any, *, may_be_infinite: bool = False) -> np.ndarray:
    values = np.asarray(getattr(answer, "values", answer))
    if values.dtype.kind not in "fc":
        return values
    assert not np.isnan(values).any(), f"{what} is NaN"
    assert may_be_infinite or np.isfinite(values).all(), f"{what} is infinite"
    return values


def _inside(what: str, values: np.ndarray) -> None:
    outside = values[(values < -ROUNDING) | (values > 1.0 + ROUNDING)]
    assert not outside.size, f"{what} {outside[0]!r}"


def _probabilities(post: bj.Posterior, event: Event) -> None:
    is_so, is_not = (_finite("probability", post.probability(each)) for each in (event, ~event))
    for values in (is_so, is_not):
        _inside("probability", values)
    missing = float(np.abs(is_so + is_not - 1.0).max())
    assert missing <= ROUNDING, f"P(A) + P(not A) is off by {missing:.3g}"


def _numbers(post: bj.Posterior) -> list[Column]:
    return [column for column in post.schema.columns if column.base != "category"]


def _distribution(post: bj.Posterior, table: Table, rng: np.random.Generator) -> None:
    for column in _numbers(post):
        position = post.schema.index(column.name)
        seen = table.values[position, table.observed[position]]
        with np.errstate(over="ignore"):
            points = np.unique(np.append(seen[:SOME], column.location + column.scale * rng.standard_cauchy(SOME)))
        points = points[np.isfinite(points)]
        if column.base == "integer":
            points = np.unique(np.rint(points))
        found = _finite("cdf", post.cdf(points, column.name))
        _inside("cdf", found)
        steps = np.diff(found[..., 0], axis=-1)
        assert not steps.size or (steps >= -ROUNDING).all(), f"cdf falls by {-steps.min()}"
        # as wide as numbers go, an end of a heavy tail may be none
        quantiles = _finite("quantile", post.quantile([0.05, 0.5, 0.95], [column.name]), may_be_infinite=True)
        assert (quantiles[..., 1:, 0] >= quantiles[..., :-1, 0]).all(), "quantiles fall"


def _moments(post: bj.Posterior, event: Event) -> None:
    names = [column.name for column in _numbers(post)]
    for given in (None, event) if names else ():
        for name in names:
            with contextlib.suppress(BayesjptError):
                _finite("expectation", post.expectation([name], given=given), may_be_infinite=True)
                spread = _finite("variance", post.variance([name], given=given), may_be_infinite=True)
                assert spread.dtype.kind != "f" or (spread >= 0.0).all(), f"variance {spread.min()}"


def _conditioned(post: bj.Posterior, event: Event, rng: np.random.Generator) -> None:
    inside = post.condition(event)
    again = _finite("probability given itself", inside.probability(event))
    assert np.abs(again - 1.0).max() <= ROUNDING, f"P(A | A) = {again.ravel()[0]!r}"
    rows = inside.sample(SOME, rng=rng)
    assert np.isfinite(rows.values).all(), "a sampled row of an event is not finite"
    drawn = post.sample(SOME, event, rng=rng)
    where = _finite("probability given rows", post.probability(event, given=drawn))
    assert (where == 1.0).all(), "a sampled row lies outside the event"


def _samples(post: bj.Posterior, table: Table, rng: np.random.Generator) -> None:
    rows = post.sample(N_SAMPLED, rng=rng)
    assert np.isfinite(rows.values).all(), "a sampled row is not finite"
    assert np.isfinite(_finite("log mass of samples", post.log_mass(rows))).all()
    recorded = post.sample(N_SAMPLED, rng=rng, recorded=True)
    back = bj.as_table(recorded.to_frame(), schema=table.schema)
    assert back.n_row == N_SAMPLED, "samples are not accepted back"


def _filled(post: bj.Posterior, rows: Table, rng: np.random.Generator) -> None:
    empty = Table(rows.schema, rows.values, rows.observed & (rng.random(rows.observed.shape) < 0.5))
    for filled in (post.impute(empty, rng=rng)[0], bj.queries.impute.impute_mean(post, empty).table):
        assert filled.observed.all(), "an imputed cell is missing"
        _finite("an imputed cell", filled.values)
        kept = filled.values[empty.observed]
        assert (kept == empty.values[empty.observed]).all(), "an observed cell was changed"


def _predicted(post: bj.Posterior, rows: Table, name: str) -> None:
    found = bj.queries.predict.prediction(post, name, rows)
    values = _finite("prediction", found.values, may_be_infinite=True)
    if post.schema.columns[post.schema.index(name)].base == "category":
        _inside("prediction", values)
        assert np.abs(values.sum(axis=1) - 1.0).max(initial=0.0) <= ROUNDING, "predicted shares do not add up to 1"


def _rows_apart(post: bj.Posterior, table: Table, rows: Table) -> None:
    membership = _finite("membership", post.membership(rows))
    _inside("membership", membership)
    _inside("comembership", _finite("comembership", post.comembership(rows)))
    for score in ("tail", "log_mass"):
        found = post.outliers(rows, score=score)
        _finite(f"outliers by {score}", found["score"], may_be_infinite=True)
    found = post.outliers(table, training=True)
    _finite("outliers of training", found["score"], may_be_infinite=True)


def _structure(post: bj.Posterior, name: str, event: Event) -> None:
    if len(post.schema) > 1:
        pairs = np.asarray(post.dependence(normalised=True))[..., *np.triu_indices(len(post.schema), 1)]
        _inside("dependence", _finite("dependence", pairs))  # a column and itself have none
        marginal = post.marginal([name])
        _finite("marginal", marginal.probability(event))
    repr(post.components(name))
    repr(post.patterns())
    repr(post.explain(event))
    _finite("mode", post.mode().get("log_mass", np.zeros(1)))
    repr(post.types())


def _saved(post: bj.Posterior, rows: Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.nc"
        post.save(path)
        back = bj.load(path)
    assert np.array_equal(np.asarray(post.log_density(rows)), np.asarray(back.log_density(rows))), "a saved fit differs"
