"""Whether two samples are of one distribution: Bayes factors in closed form, for labels, for numbers and for parts.

Under "differ" each sample has a distribution of its own, under "alike" both have one; all have the same kind of prior.
What is known of nothing but the two samples decides, so these know no circuits.
"""

from __future__ import annotations

import numpy as np

JEFFREYS = 0.5
"""Imaginary rows of each label."""

_LIKENESS = (2.0, 8.0, 32.0, 128.0)
"""How alike the mixes of different parts are, if they differ: the concentration of their distribution."""

_PARTS = (2, 4, 8, 16, 32, 64)
"""Numbers of parts that the line is divided into."""


def labels_log_factor(first: np.ndarray, second: np.ndarray) -> float:
    """Return the log Bayes factor that two samples of labels have different shares, nats.

    Parameters
    ----------
    first, second : float64 (n_label,)
        Counts of each label.

    Notes
    -----
    With m(c) = B(c + 1/2) / B(1/2), the marginal likelihood of counts under a Dirichlet prior of Jeffreys, it is
    log m(first) + log m(second) - log m(first + second). Labels that neither sample shows are left out.

    References
    ----------
    Gunel and Dickey (1974). Bayes factors for independence in contingency tables. Biometrika 61(3).

    Examples
    --------
    >>> labels_log_factor(np.array([50.0, 50.0]), np.array([50.0, 50.0])) < -1.0
    True
    >>> labels_log_factor(np.array([50.0, 50.0]), np.array([90.0, 10.0])) > 10.0
    True
    """
    kept = first + second > 0.0
    first, second = first[kept], second[kept]
    return _log_marginal(first) + _log_marginal(second) - _log_marginal(first + second)


def _log_marginal(counts: np.ndarray) -> float:
    from scipy.special import gammaln

    prior = JEFFREYS * counts.size
    within = gammaln(counts + JEFFREYS).sum() - counts.size * gammaln(JEFFREYS)
    return float(within + gammaln(prior) - gammaln(prior + counts.sum()))


def parts_log_factor(first: np.ndarray, second: np.ndarray) -> float:
    """Return the log Bayes factor that the mix of two samples is not the same in all parts of a space, nats.

    Parameters
    ----------
    first, second : float64 (n_part,)
        Rows of each sample in each part. What chose the parts must not know whose rows these are.

    Notes
    -----
    Of all rows a share p is of the second sample, by design. "Alike": so it is in each part. "Differ": each part has a
    share of its own from Beta(c p, c (1 - p)), where c is 2, 8, 32 or 128 with the same probability: from quite another
    mix to nearly the same.

    Examples
    --------
    >>> parts_log_factor(np.array([50.0, 50.0]), np.array([52.0, 48.0])) < 0.0
    True
    """
    from scipy.special import betaln

    share = second.sum() / (first.sum() + second.sum())
    alike = second.sum() * np.log(share) + first.sum() * np.log1p(-share)
    factors = []
    for likeness in _LIKENESS:
        a, b = likeness * (1.0 - share), likeness * share
        factors.append(float((betaln(a + first, b + second) - betaln(a, b)).sum() - alike))
    return float(np.logaddexp.reduce(factors) - np.log(len(factors)))


def numbers_log_factor(first: np.ndarray, second: np.ndarray) -> float:
    """Return the log Bayes factor that two samples of numbers have different distributions, nats.

    Parameters
    ----------
    first, second : float64 (n,)

    Notes
    -----
    The values of both samples together, without whose they are, divide the line into 2, 4, ... 64 parts of about
    equally many rows, ties staying together. Given the parts, `parts_log_factor` says whether the mix of the samples is
    the same in all of them; "differ" takes each number of parts to be equally probable. Nothing depends on units, and
    any difference (place, spread, shape, single values) is found with enough rows.

    Polya trees on fixed parts (Holmes et al., 2015) judge how many rows of either sample lie in each. Parts that these
    rows have chosen may not be judged so: that finds differences where there are none. Whose rows they are, the parts
    do not know.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 200)
    >>> numbers_log_factor(x, x + 0.001) < -1.0, numbers_log_factor(x, x + 0.5) > 10.0
    (True, True)
    """
    values, place = np.unique(np.concatenate([first, second]), return_inverse=True)
    by_value = [np.bincount(which, minlength=values.size) for which in np.split(place, [first.size])]
    total = np.cumsum(by_value[0] + by_value[1])
    # the part of a value, of so many, by the rows up to the middle of its own
    middle = (total - 0.5 * (by_value[0] + by_value[1])) / total[-1]
    factors = []
    for n_part in _PARTS:
        part = np.minimum((middle * n_part).astype(np.int64), n_part - 1)
        counts = [np.bincount(part, weights=of_sample, minlength=n_part) for of_sample in by_value]
        kept = counts[0] + counts[1] > 0.0
        factors.append(parts_log_factor(counts[0][kept], counts[1][kept]))
    return float(np.logaddexp.reduce(factors) - np.log(len(factors)))


def probability_of(log_factor: float) -> float:
    """Return the probability that two samples differ, where both answers were equally probable before.

    Examples
    --------
    >>> probability_of(0.0), probability_of(-800.0)
    (0.5, 0.0)
    """
    return float(1.0 / (1.0 + np.exp(-log_factor))) if log_factor > -700.0 else 0.0
