"""Starting parameters of all members of a dictionary in one call, given the values of a leaf's rows.

A learner makes thousands of leaves of a few rows each: families asked one after the other from Python would take longer
to be called than to answer. What they need is the same for all leaves of a column, and put down once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bayesjpt.families import dispatch, registry
from bayesjpt.families.features import offset_and_scale
from bayesjpt.families.record import ColumnFacts, Family
from bayesjpt.numerics.borrowed import borrowed, by_address
from bayesjpt.numerics.jit import kernel


@by_address
class Members(NamedTuple):
    """What the members of a dictionary start from.

    Attributes
    ----------
    family : int64 (n_member,)
    offset, scale : float64 (n_member,)
        z = (x - offset) / scale.
    prepares : bool (n_member,)
        Whether a family makes an auxiliary table of z.
    constants, hyper : float64 (n,)
        Of all members, and hyperparameters before there is an estimate.
    constants_at, hyper_at, stats_at, theta_at : int64 (n_member + 1,)
        Where those of each begin.
    """

    family: np.ndarray
    offset: np.ndarray
    scale: np.ndarray
    prepares: np.ndarray
    constants: np.ndarray
    hyper: np.ndarray
    constants_at: np.ndarray
    hyper_at: np.ndarray
    stats_at: np.ndarray
    theta_at: np.ndarray


def start_by_kernel(family: Family) -> bool:
    """Return whether a family's start follows from its slots, and its constants from the column alone."""
    return family.estimate is None and family.leaf_constants is None


def make_members(
    families: Sequence[Family], column: ColumnFacts, constants: Sequence[np.ndarray], hyper: Sequence[np.ndarray]
) -> Members:
    """Return the Members of a dictionary of families for which `start_by_kernel` holds."""
    units = np.array([offset_and_scale(family.scaling, column) for family in families], np.float64).reshape(-1, 2)
    pairs = list(zip(families, constants, strict=True))
    return Members(
        np.array([registry.number(family.name) for family in families], np.int64),
        units[:, 0].copy(),
        units[:, 1].copy(),
        np.array([family.prepare is not None for family in families], np.bool_),
        np.concatenate([np.empty(0), *constants]),
        np.concatenate([np.empty(0), *hyper]),
        _offsets([each.size for each in constants]),
        _offsets([each.size for each in hyper]),
        _offsets([family.n_stats(own) for family, own in pairs]),
        _offsets([family.n_theta(own) for family, own in pairs]),
    )


def _offsets(sizes: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@kernel
def fill_starts(members, x, theta):
    """Fill the starting parameters of all members, one behind the other; x are observed values in the user's units."""
    members = borrowed(members)
    z, prepared, rows = np.empty(x.size), np.empty(x.size), np.empty(x.size, np.int32)
    for i in range(x.size):
        rows[i] = i
    stats = np.zeros(members.stats_at[members.family.size])
    for k in range(members.family.size):
        family = members.family[k]
        for i in range(x.size):
            z[i] = (x[i] - members.offset[k]) / members.scale[k]
        constants = members.constants[members.constants_at[k] : members.constants_at[k + 1]]
        hyper = members.hyper[members.hyper_at[k] : members.hyper_at[k + 1]]
        own_stats = stats[members.stats_at[k] : members.stats_at[k + 1]]
        own = theta[members.theta_at[k] : members.theta_at[k + 1]]
        # a start that `initial` may read, the same as where families are asked one by one
        own[:] = 1.0 / max(own.size, 1)
        if members.prepares[k]:
            dispatch.prepare(family, z, constants, prepared)
            dispatch.accumulate(family, z, prepared, rows, constants, own_stats)
        else:
            dispatch.accumulate(family, z, z, rows, constants, own_stats)
        dispatch.initial(family, own_stats, hyper, constants, own)
