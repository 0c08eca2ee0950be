"""Connected components of columns, found edge by edge. A component is known by its first column."""

from __future__ import annotations

import numpy as np


def joined(component: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the components of columns when columns first[k] and second[k] are joined, too, for each k.

    Parameters
    ----------
    component : intp (n_column,)
        First column of the component that each column belongs to.
    first, second : intp (n_edge,)

    Notes
    -----
    Each component takes the least number that an edge brings it, until none does (Shiloach and Vishkin, 1982, An
    O(log n) parallel connectivity algorithm).

    Examples
    --------
    >>> joined(np.arange(5), np.array([3, 1]), np.array([1, 4])).tolist()
    [0, 1, 2, 1, 1]
    """
    while True:
        one, other = component[first], component[second]
        if (one == other).all():
            return component
        taken = np.arange(component.size)
        # `at`: a component may be joined to several, and takes the least of them
        np.minimum.at(taken, np.maximum(one, other), np.minimum(one, other))
        # by doubling: every component points at the root of its chain
        further = taken[taken]
        while (further != taken).any():
            taken, further = further, further[further]
        component = taken[component]


def components(together: np.ndarray) -> np.ndarray:
    """Return the first column of each column's component, intp (n_column,).

    Parameters
    ----------
    together : bool (n_column, n_column)
        Symmetric.
    """
    return joined(np.arange(len(together)), *np.nonzero(together))
