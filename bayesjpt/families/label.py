"""Label: fixed shares of some labels of a column; nothing is unknown.

What a tree of labels is made of: below a hard sum a column has one label, and weights of sums are all there is to
learn. The constants are the codes of the labels, and then the share of each, 0 for labels that cannot occur. "Other",
which training never showed, goes with the most frequent label of its column, in their smoothed training shares; so a
tree needs no ways for it.

The auxiliary table holds the code, -1 where a value is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bayesjpt.families import finite_support
from bayesjpt.families.record import ColumnFacts, Family
from bayesjpt.numerics.jit import kernel


def no_prior(_column: ColumnFacts, _start: np.ndarray) -> np.ndarray:
    """Return no hyperparameters: nothing is unknown."""
    return np.empty(0)


def label_groups(column: ColumnFacts) -> tuple[tuple[int, ...], ...]:
    """Return the codes that go together: one group a label, "other" with the most frequent one.

    Examples
    --------
    >>> from bayesjpt.table.schema import Column
    >>> label_groups(Column("size", "category", (0.0, 3.0), ("S", "M", "L"), frequencies=(0.2, 0.6, 0.15, 0.05)))
    ((0,), (1, 3), (2,))
    """
    n = column.n_label
    if not column.other:
        return tuple((code,) for code in range(n))
    most = int(np.argmax(column.frequencies[: n - 1])) if n > 1 else 0
    return tuple((code, n - 1) if code == most else (code,) for code in range(n - 1)) or ((0,),)


def constants_of(codes: Sequence[int], column: ColumnFacts) -> np.ndarray:
    """Return the constants of a leaf that holds some labels of a column, in their training shares."""
    n = column.n_label
    out = np.zeros(2 * n)
    out[:n] = np.arange(n)
    for code in codes:  # of two labels as a rule: a circuit has hundreds of such leaves
        out[n + code] = column.frequencies[code]
    out[n:] /= out[n:].sum()
    return out


def _constants(column: ColumnFacts) -> np.ndarray:
    return constants_of(range(column.n_label), column)


def _valid_constants(column: ColumnFacts, constants: np.ndarray) -> bool:
    n = column.n_label
    share = constants[n:]
    return (
        constants.size == 2 * n
        and np.array_equal(constants[:n], np.arange(n))
        and bool((share >= 0.0).all() and abs(share.sum() - 1.0) < 1e-9)
    )


@kernel
def prepare(z, constants, out):
    n = constants.size // 2
    for i in range(out.size):
        out[i] = z[i] if 0.0 <= z[i] < n and z[i] == math.floor(z[i]) else -1.0


@kernel
def coefficients(theta, constants, out):
    n = constants.size // 2
    out[0] = -np.inf  # code -1
    for k in range(n):
        out[k + 1] = math.log(constants[n + k]) if constants[n + k] > 0.0 else -np.inf


@kernel
def accumulate(z, aux, rows, constants, stats):
    stats[0] += rows.size


@kernel
def accumulate_gradient(z, aux, flow, theta, constants, out):
    pass


@kernel
def initial(stats, hyper, constants, theta):
    pass


@kernel
def log_mass(lo, hi, theta, constants):
    share = constants[constants.size // 2 :]
    inside, outside = finite_support.weight_within(constants, share, share, lo, hi)
    if inside == 0.0:
        return -np.inf
    return 0.0 if outside == 0.0 else math.log(inside / (inside + outside))


@kernel
def cdf(x, theta, constants):
    return math.exp(log_mass(-np.inf, x, theta, constants))


@kernel
def mode(lo, hi, theta, constants):
    share = constants[constants.size // 2 :]
    return finite_support.most_probable(constants, share, share, lo, hi)


@kernel
def moment(k, lo, hi, theta, constants):
    return finite_support.mean_or_variance(k, constants, constants[constants.size // 2 :], lo, hi)


@kernel
def sample(lo, hi, theta, constants, rng):
    share = constants[constants.size // 2 :]
    n_possible = 0
    for k in range(share.size):
        n_possible += lo <= constants[k] <= hi and share[k] > 0.0
    # of one label there is nothing to draw
    if n_possible < 2:
        return finite_support.most_probable(constants, share, share, lo, hi)
    return finite_support.draw_value(constants, share, share, lo, hi, rng)


FAMILY = Family.of(
    finite_support,
    globals(),
    name="label",
    bases=("category",),
    statistical_type="nominal",
    priors={"default": no_prior, "abda": no_prior},
    constants=_constants,
    valid_constants=_valid_constants,
    n_stats=1,
    by_name=True,
)
