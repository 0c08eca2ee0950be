"""Nodes and weights of the Gauss-Legendre rule on [-1, 1] that narrow intervals are integrated with.

With 32 nodes an integrand that falls by e^-40 along the interval is still exact to rounding.
"""

from __future__ import annotations

import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(32)
