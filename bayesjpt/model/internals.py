"""Names of PyMC and PyTensor that are no promise of theirs, in one place: what a new version may move or rename.

`tests/model/test_internals.py` says of each what it is for, and which of our parts no longer works without it.
"""

from __future__ import annotations

from pymc.distributions.distribution import _support_point as support_point
from pymc.distributions.shape_utils import rv_size_is_none
from pymc.distributions.transforms import _default_transform as default_transform
from pymc.initial_point import make_initial_point_fn
from pymc.logprob.abstract import _logccdf as log_probability_above
from pymc.logprob.abstract import _logcdf as log_probability_up_to
from pymc.logprob.abstract import _logprob as log_probability
from pymc.sampling.mcmc import STEP_METHODS
from pymc.step_methods.state import dataclass_state
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify

__all__ = [
    "STEP_METHODS",
    "dataclass_state",
    "default_transform",
    "log_probability",
    "log_probability_above",
    "log_probability_up_to",
    "make_initial_point_fn",
    "numba_core_rv_funcify",
    "numba_njit",
    "register_funcify_default_op_cache_key",
    "rv_size_is_none",
    "support_point",
]
