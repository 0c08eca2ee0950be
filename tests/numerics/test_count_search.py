"""The search for quantiles of counts, against the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from bayesjpt.numerics.count_search import begin_search, found, is_open, narrowed, tail_targets


def quantile(below, target: float, start: float, first: float, last: float) -> tuple[float, int]:
    """Return the least count with P(X <= count) >= target, and how often it was compared."""
    search, n_compared = begin_search(start), 0
    while is_open(search):
        search = narrowed(search, bool(below(search[0]) >= target), first, last)
        n_compared += 1
    return found(search), n_compared


@pytest.mark.parametrize(("first", "last"), [(0.0, np.inf), (3.0, np.inf), (0.0, 9.0), (4.0, 4.0), (5.0, 6.0)])
@pytest.mark.parametrize("start", [0.0, 6.0, 400.0])
def test_every_quantile_is_found_from_any_start(first, last, start):
    law = scipy.stats.poisson(5.5)
    start = min(max(start, first), last)
    before, upto = law.cdf(first - 1.0), law.cdf(last)
    for u in (1e-9, 0.01, 0.3, 0.5, 0.77, 0.999, 1.0 - 1e-9):
        target = before + u * (upto - before)
        counts = np.arange(first, min(last, 60.0) + 1.0)
        expected = counts[np.argmax(law.cdf(counts) >= target)]
        assert quantile(law.cdf, target, start, first, last)[0] == expected


def test_it_takes_few_comparisons_and_ends_where_floats_are_coarse():
    for true in (0.0, 1e3, 2.0**53, 2.0**60, 1e300):
        value, n_compared = quantile(lambda k, true=true: float(k >= true), 0.5, 7.0, 0.0, np.inf)
        assert value == pytest.approx(true, rel=2.0**-52, abs=0.0)
        assert n_compared <= 4 + 2 * max(math.log2(max(true, 1.0)), 3.0)
    assert quantile(lambda _k: 0.0, 0.5, 7.0, 0.0, np.inf)[0] == np.inf
    assert quantile(lambda _k: np.nan, 0.5, 7.0, 0.0, 20.0)[0] == 20.0
    assert quantile(lambda _k: 1.0, 0.5, 2.0**60, 0.0, np.inf)[0] == 0.0


@pytest.mark.parametrize("first", [2.0**53, 2.0**53 + 4.0, 1e17, 1e300])
@pytest.mark.parametrize("reached", [0.0, 1.0, np.nan])
def test_a_search_ends_where_a_count_less_one_is_the_count_itself(first, reached):
    for start in (first, 8.0 * first):
        for last in (np.inf, 16.0 * first):
            value, n_compared = quantile(lambda _k: reached, 0.5, start, first, last)
            assert first - 1.0 <= value <= last
            assert n_compared < 2200


def test_targets_are_those_between_the_ends():
    law = scipy.stats.poisson(5.5)
    for first, last in ((0, np.inf), (3, 8)):
        before, behind = law.cdf(first - 1), law.sf(last)
        with np.errstate(divide="ignore"):
            log_below, log_above = tail_targets(0.3, np.log1p(-before - behind), np.log(before), np.log(behind))
        assert math.exp(log_below) == pytest.approx(before + 0.3 * (1.0 - before - behind), rel=1e-12)
        assert math.exp(log_above) == pytest.approx(behind + 0.7 * (1.0 - before - behind), rel=1e-12)
