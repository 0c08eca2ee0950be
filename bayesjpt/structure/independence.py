"""The G-test of independence between columns of codes.

    G = 2 sum over codes of O log(O / E),     E = row total times column total over n

O counts how often two codes occur together; of independent columns G is nearly chi-squared with (a - 1)(b - 1) degrees
of freedom, where a and b are the codes that occur in these rows (Sokal and Rohlf, 1981, Biometry, section 17.2).
"""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc, xlogy


def g_test(first: np.ndarray, second: np.ndarray) -> tuple[float, int]:
    """Return the G statistic of two columns of codes and its degrees of freedom.

    Parameters
    ----------
    first, second : int (n_row,)
        Codes from 0; -1 where a cell is missing, which leaves out its row.

    Examples
    --------
    >>> statistic, freedom = g_test(np.array([0, 0, 1, 1] * 5), np.array([0, 0, 1, 1] * 5))
    >>> round(statistic, 3), freedom
    (27.726, 1)
    """
    kept = (first >= 0) & (second >= 0)
    if not kept.any():
        return 0.0, 0
    n_second = int(second.max()) + 1
    table = np.bincount(
        first[kept].astype(np.intp) * n_second + second[kept], minlength=(int(first.max()) + 1) * n_second
    )
    table = table.reshape(-1, n_second).astype(np.float64)
    by_first, by_second, n = table.sum(axis=1), table.sum(axis=0), table.sum()
    # xlogy(0, 0) = 0: codes that never occur add nothing
    statistic = xlogy(table, table).sum() - xlogy(by_first, by_first).sum() - xlogy(by_second, by_second).sum()
    freedom = (np.count_nonzero(by_first) - 1) * (np.count_nonzero(by_second) - 1)
    # never below 0 but for rounding
    return max(2.0 * float(statistic + xlogy(n, n)), 0.0), int(freedom)


def p_values(codes: np.ndarray) -> np.ndarray:
    """Return the probability of a G at least as large if columns were independent, float64 (n_column, n_column).

    Parameters
    ----------
    codes : int32 (n_row, n_column)
        Codes from 0; -1 where a cell is missing.

    Returns
    -------
    numpy.ndarray
        Symmetric; 0 on the diagonal, 1 where a column holds one code in these rows.

    Notes
    -----
    Cost: O(n_row n_column^2).
    """
    n_column = codes.shape[1]
    out = np.zeros((n_column, n_column))
    for i in range(n_column):
        for j in range(i + 1, n_column):
            statistic, freedom = g_test(codes[:, i], codes[:, j])
            out[i, j] = out[j, i] = float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0
    return out
