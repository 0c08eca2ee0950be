"""What default priors take from a column, so that a leaf without rows describes plausible values of that column.

A member of a dictionary that no row uses keeps a weight of about alpha / n and draws its parameters from the prior. So
priors here have the moments that queries ask for: parts of a column lie where it lies, and are narrower.

    column    -----------[=====================|======================]------------    mean, standard deviation s
    parts        [==|==]      [=|=]    [====|====]                                     means spread by s, variances
                                                                                       around PART_VARIANCE s^2
"""

from __future__ import annotations

import numpy as np

from bayesjpt.defaults import MAX_INTEGER_LEVELS
from bayesjpt.families.record import ColumnFacts

PART_VARIANCE = 0.1
"""Prior expectation of a part's variance, in variances of its column. A shared scale corrects it."""
SHAPE_OF_VARIANCES = 2.0
"""Of the inverse gamma of variances: the least whole number for which their mean exists. Four pseudo-rows."""
SMALLEST_RATIO, LARGEST_RATIO = 1e-3, 1e4
"""Of mean and standard deviation: beyond, pseudo-rows of a prior would be too many to count in double precision."""
MAX_EXCESS = 1.5
"""A family is not offered where its least variance, at the column's mean, is more than so many times the column's."""
LEAST_COUNT = 3.0
"""A column of zeros and ones says nothing of tails; parts may have means beyond 1."""
LEAST_LEVELS = 4
"""Different values of a column that may have a tail heavier than a Poisson's. Fewer say nothing of one, and the shares
of three levels, two numbers, describe them all."""


LOPSIDED = 0.2
"""Mean less median, in standard deviations, from which normal mixtures put the mean elsewhere: by a quarter on
exp(z) - 1, z ~ Normal(1, 1). Splines beside them gain .07 nats a value there, and lose .004 on two normals at .25."""

NARROWEST_HILL, WIDEST_HILL = 0.1, 1.5
"""Distance of the quartiles in standard deviations: .07 for a lognormal whose logarithm has a deviation of 2, .7 where
it is 1, 1.1 for an exponential, 1.35 for a normal; 0 or 2 for two clusters far apart."""


FLAT, FLAT_HALF = (0.26, 0.32), (0.42, 0.58)
"""Standard deviation and distance of the quartiles over the range, of numbers without a hill. Normals put 4 to 5 % of
days of a year beyond its ends; splines beside them gain .04 nats a day of 300, .07 of 2,000."""


def deviation(column: ColumnFacts) -> float:
    """Return the standard deviation of the column's values that are no atoms; its scale where it is not known."""
    return column.deviation_without_atoms if column.deviation_without_atoms > 0.0 else column.scale


def relative_deviation(column: ColumnFacts) -> float:
    """Return that deviation in scale units: a number of moderate size, also where deviations are next to 1.8e308."""
    return deviation(column) / column.scale


def mean(column: ColumnFacts) -> float:
    """Return the mean of the column's values that are no atoms; of all values where it is not known."""
    return column.mean_without_atoms if column.deviation_without_atoms > 0.0 else column.mean


def ratio(column: ColumnFacts) -> float:
    """Return mean over standard deviation, between `SMALLEST_RATIO` and `LARGEST_RATIO`."""
    return float(min(max(mean(column) / deviation(column), SMALLEST_RATIO), LARGEST_RATIO))


def relative_mean(column: ColumnFacts) -> float:
    """Return the mean in scale units, and `SMALLEST_RATIO` standard deviations at least.

    It is not the product of `ratio` and the deviation: where that ends, parts would lie nearer to 0 than the column.
    """
    return float(max(mean(column) / column.scale, SMALLEST_RATIO * relative_deviation(column)))


def normal_inverse_gamma(variance: float, centre: float, floor: float) -> tuple[float, float, float, float, float]:
    """Return (m0, v0, a0, b0, floor): parts lie around a centre like the column, whose variance is given.

    Variances have mean `PART_VARIANCE` times the column's, or the floor's where that is larger; means are t distributed
    with about the column's variance, narrower than the floor though it may be.
    """
    a0, part = SHAPE_OF_VARIANCES, PART_VARIANCE * variance
    return centre, variance / (part + floor), a0, (a0 - 1.0) * part, floor


def squared_deviation(column: ColumnFacts) -> float:
    """Return the column's variance in squared scale units."""
    relative = min(relative_deviation(column), 1e100)
    return float(max(relative * relative, np.finfo(np.float64).tiny))


def rounding_variance(column: ColumnFacts) -> float:
    """Return the variance of a rounding error in squared scale units, (resolution / scale)^2 / 12."""
    return (column.resolution / column.scale) ** 2 / 12.0


def mean_shape(column: ColumnFacts) -> float:
    """Return the shape a0 of an inverse gamma of means whose variance is the column's, or less, and finite."""
    return 3.0 + ratio(column) ** 2


def farthest(column: ColumnFacts) -> float:
    """Return a number z, in scales from 0, that bounds the tails of parts of a column of positive numbers.

    Of values z_i between 0 and their maximum, sum z_i^3 is at most the squared maximum times sum z_i. So parts keep to

        E[z^3] <= farthest^2 E[z]

    with the column's maximum; values beyond it stay possible, as those of an exponential at this bound show. Of two
    likelihoods that describe a part as well, the one whose tail reaches where no value is says nothing that the column
    does.
    """
    return max(column.maximum, deviation(column)) / column.scale


def largest_count(column: ColumnFacts) -> float:
    """Return the whole number at which tails of counts end, as `farthest`; at least 3, for rows without a one."""
    return max(column.maximum, deviation(column), LEAST_COUNT)


def has_few_levels(column: ColumnFacts) -> bool:
    """Return whether a column has too few different values for a tail."""
    return 0 < len(column.levels) < LEAST_LEVELS


def has_few_shares(column: ColumnFacts) -> bool:
    """Return whether whole numbers have so few different values that each has a share of its own."""
    return 0 < len(column.levels) <= MAX_INTEGER_LEVELS


def holds_zeros(column: ColumnFacts) -> bool:
    """Return whether zeros are recorded, and are no atoms.

    They stand for cells that begin at 0, where a family with a free shape may put all its mass while its tail grows
    without bounds. Smallest values of a column without a visible grid are none, though they lie in the cell of 0: its
    width is a guess there, and any column of positive numbers that begins near 0 has a value or two in it.
    """
    return column.minimum == 0.0 and 0.0 not in column.atoms


_LEAST_SPREAD = 1.0 / LARGEST_RATIO
"""Of the size of a column's numbers: beyond, pseudo-rows could not tell where it lies."""


def is_far_from_zero(column: ColumnFacts) -> bool:
    """Return whether numbers are so close to each other, seen from 0, that a family that begins at 0 is of no use.

    A gamma would have a shape of 10^8 and more, which is a normal, with half of the digits lost; so would a lognormal;
    an exponential is much wider (`is_too_wide`).
    """
    return min(column.scale, deviation(column)) < _LEAST_SPREAD * abs(column.location)


def is_lopsided(column: ColumnFacts) -> bool:
    """Return whether numbers that reach below zero lean to one side; likelihoods of the whole line are even.

    Mean less median in standard deviations is 0 for even distributions, .16 for a Gumbel, .2 for a chi-squared of four
    degrees of freedom, .3 for an exponential and for a lognormal of usual width. Where the least or the largest value
    is an atom, or half of the cells, as -1 for none, it is this value alone that reaches so far. Two clusters do not
    lean: quartiles lie both in one of them, or farther apart than in any single hill.
    """
    sd, ends = deviation(column), (column.minimum, column.maximum)
    if column.levels or not column.support[0] < 0.0 < sd or {*ends} & {column.location, *column.atoms}:
        return False
    one_hill = NARROWEST_HILL * sd < column.scale < WIDEST_HILL * sd
    return one_hill and abs(mean(column) - column.location) > LOPSIDED * sd


def is_flat(column: ColumnFacts) -> bool:
    """Return whether numbers lie evenly between two ends, as days of a year and running numbers do.

    A uniform distribution has a standard deviation of .289 times its range, and quartiles half of it apart; a triangle
    .204, a semicircle .25. Where an end is an atom it is no end of an even spread.
    """
    sd, reach = deviation(column), column.maximum - column.minimum
    if column.levels or not 0.0 < reach < np.inf or {column.minimum, column.maximum} & {*column.atoms}:
        return False
    return FLAT[0] * reach < sd < FLAT[1] * reach and FLAT_HALF[0] * reach < column.scale < FLAT_HALF[1] * reach


def is_too_wide(column: ColumnFacts, least_variance: float) -> bool:
    """Return whether a family whose variance is at least so large, in the user's units, is implausible for a column."""
    sd = column.deviation_without_atoms
    return sd > 0.0 and least_variance > MAX_EXCESS * sd * sd
