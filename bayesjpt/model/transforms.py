"""From bounded parameters to the whole line and back, for samplers that follow gradients.

A transform's name joins the variable's with underscores on either side, so it has none itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform

from bayesjpt.model.segments import SMALLEST_WEIGHT, Segments


class SegmentSimplex(Transform):
    """Simplexes in segments: logarithms, centred in each segment, without its last entry.

    Parameters
    ----------
    segments : Segments

    Notes
    -----
    In each segment the same as PyMC's transform of one simplex. Entries are kept above 1e-300 on the way back.
    """

    name = "segmentsimplex"
    ndim_supp = 1

    def __init__(self, segments: Segments):
        self.segments = segments
        last = np.zeros(segments.ptr[-1], bool)
        last[segments.ptr[1:] - 1] = True
        self._free, self._last = np.flatnonzero(~last), np.flatnonzero(last)

    def forward(self, value, *inputs):
        """Return the free coordinates of simplexes."""
        log_value: Any = pt.log(pt.as_tensor(value))
        mean = self.segments.sum(log_value) / np.diff(self.segments.ptr)
        return (log_value - mean[..., self.segments.member])[..., self._free]

    def _centred(self, value) -> Any:
        """Return the centred logarithms of all entries, up to a constant a segment."""
        value = pt.as_tensor(value)
        batch = [value.shape[i] for i in range(value.type.ndim - 1)]
        owner = self.segments.member[self._free]
        total = pt.inc_subtensor(pt.zeros((*batch, self.segments.ptr.size - 1))[..., owner], value)
        out: Any = pt.set_subtensor(pt.zeros((*batch, int(self.segments.ptr[-1])))[..., self._free], value)
        return pt.set_subtensor(out[..., self._last], -total)

    def backward(self, value, *inputs):
        """Return the simplexes of free coordinates."""
        logs = self._centred(value)
        unscaled = pt.exp(logs - self.segments.max(logs)[..., self.segments.member])
        return pt.maximum(unscaled / self.segments.sum(unscaled)[..., self.segments.member], SMALLEST_WEIGHT)

    def log_jac_det(self, value, *inputs):
        """Return the logarithm of the Jacobian determinant of `backward`."""
        logs = self._centred(value)
        largest = self.segments.max(logs)
        total = self.segments.sum(pt.exp(logs - largest[..., self.segments.member]))
        # log n plus the sum of log shares, in which the centred logarithms add up to 0
        length = np.diff(self.segments.ptr)
        return pt.sum(np.log(length) - length * (largest + pt.log(total)), axis=-1)


class AboveFloor(Transform):
    """Logarithm of the distance from a floor, the last input of the random variable."""

    name = "abovefloor"
    ndim_supp = 0

    def forward(self, value, *inputs):
        """Return the logarithm of the distance."""
        return pt.log(value - inputs[-1])

    def backward(self, value, *inputs):
        """Return the floor plus the exponential."""
        return inputs[-1] + pt.exp(value)

    def log_jac_det(self, value, *inputs):
        """Return the logarithm of the derivative of `backward`."""
        return pt.as_tensor(value)


class AboveFloorBelowOne(Transform):
    """Log odds of where a probability lies between a floor, the last input of the random variable, and 1."""

    name = "abovefloorbelowone"
    ndim_supp = 0

    def forward(self, value, *inputs):
        """Return log(x - floor) - log(1 - x)."""
        return pt.log(value - inputs[-1]) - pt.log1p(-value)

    def backward(self, value, *inputs):
        """Return the floor plus a share of the rest."""
        return inputs[-1] + (1.0 - inputs[-1]) * pt.sigmoid(value)

    def log_jac_det(self, value, *inputs):
        """Return the logarithm of the derivative of `backward`."""
        return pt.log1p(-inputs[-1]) - pt.softplus(value) - pt.softplus(-value)


class BelowCap(Transform):
    """Positive values below a cap, the last input of the random variable; the logarithm where that is infinite."""

    name = "belowcap"
    ndim_supp = 0

    def forward(self, value, *inputs):
        """Return log x - log(1 - x / cap)."""
        return pt.log(value) - pt.log1p(-value / inputs[-1])

    def backward(self, value, *inputs):
        """Return 1 / (exp(-value) + 1 / cap)."""
        return 1.0 / (pt.exp(-value) + 1.0 / inputs[-1])

    def log_jac_det(self, value, *inputs):
        """Return the logarithm of the derivative of `backward`."""
        return 2.0 * pt.log(self.backward(value, *inputs)) - value


class BelowLimit(Transform):
    """Numbers below a limit, the last input of the random variable; the number itself where that is infinite.

    The way back is limit - log(1 + exp(limit - value)), nearly the value itself far below the limit.
    """

    name = "belowlimit"
    ndim_supp = 0

    def forward(self, value, *inputs):
        """Return limit - log(exp(limit - x) - 1)."""
        distance = inputs[-1] - value
        return pt.switch(pt.isinf(inputs[-1]), value, value - pt.log1mexp(-distance))

    def backward(self, value, *inputs):
        """Return limit - log(1 + exp(limit - value))."""
        unbounded = pt.isinf(inputs[-1])
        # the branch that is not taken would be infinity less infinity
        limit = pt.switch(unbounded, 0.0, inputs[-1])
        return pt.switch(unbounded, value, limit - pt.softplus(limit - value))

    def log_jac_det(self, value, *inputs):
        """Return the logarithm of the derivative of `backward`."""
        unbounded = pt.isinf(inputs[-1])
        limit = pt.switch(unbounded, 0.0, inputs[-1])
        return pt.switch(unbounded, 0.0, -pt.softplus(value - limit))
