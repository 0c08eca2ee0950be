"""What kernels call when all they have is a family's number: each slot of the contract, by address.

The number is a row of the process's table of addresses, a slot one of its columns; both are resolved once a leaf and
block of rows, never per row. Families are compiled one slot at a time, when it is first called, so a circuit of
normals never waits for the negative binomial; and a user's family is called exactly as a built-in one.
"""

from __future__ import annotations

from typing import Any

from numba import float64, int32, int64, types, void

from bayesjpt.families.record import OK, Family
from bayesjpt.numerics.jit import kernel
from bayesjpt.numerics.native import N_SLOT, address, caller, put, resolve

_FLOATS = float64[::1]
_ROWS = int32[::1]
_RNG = types.npy_rng

(
    PREPARE,
    COEFFICIENTS,
    FILL_LOG_DENSITY,
    ACCUMULATE,
    INITIAL,
    DRAW_POSTERIOR,
    DRAW_FROM_VALUES,
    ACCUMULATE_GRADIENT,
    LOG_MASS,
    CDF,
    MOMENT,
    MODE,
    SAMPLE,
    FILL_LOG_MASSES,
    LOG_POSTERIOR,
    LOG_EVIDENCE,
    DRAW_AFRESH,
    ACCUMULATE_SCALE,
    LOG_SCALE_NORMALISER,
    PREDICTIVE,
    FILL_LOG_PREDICTIVE,
    SCALE_EVIDENCE,
) = range(22)

SIGNATURES: dict[str, Any] = {
    "prepare": void(_FLOATS, _FLOATS, _FLOATS),
    "coefficients": void(_FLOATS, _FLOATS, _FLOATS),
    "fill_log_density": void(_FLOATS, _FLOATS, _FLOATS, _FLOATS),
    "accumulate": void(_FLOATS, _FLOATS, _ROWS, _FLOATS, _FLOATS),
    "initial": void(_FLOATS, _FLOATS, _FLOATS, _FLOATS),
    "draw_posterior": int64(_FLOATS, _FLOATS, _FLOATS, _FLOATS, _RNG),
    "draw_from_values": int64(_FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _RNG),
    "accumulate_gradient": void(_FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS),
    "log_mass": float64(float64, float64, _FLOATS, _FLOATS),
    "cdf": float64(float64, _FLOATS, _FLOATS),
    "moment": float64(int64, float64, float64, _FLOATS, _FLOATS),
    "mode": float64(float64, float64, _FLOATS, _FLOATS),
    "sample": float64(float64, float64, _FLOATS, _FLOATS, _RNG),
    "fill_log_masses": void(float64, float64, _FLOATS, _ROWS, _FLOATS, _FLOATS),
    "log_posterior": float64(_FLOATS, _FLOATS, _FLOATS, _FLOATS),
    "log_evidence": float64(_FLOATS, _FLOATS, _FLOATS, _FLOATS),
    "draw_afresh": int64(_FLOATS, _FLOATS, _FLOATS, _FLOATS, _RNG),
    "accumulate_scale": void(_FLOATS, _FLOATS, _FLOATS),
    "log_scale_normaliser": float64(float64, _FLOATS, _FLOATS),
    "predictive": void(_FLOATS, _FLOATS, _FLOATS, _FLOATS, _FLOATS),
    "fill_log_predictive": void(_FLOATS, _FLOATS, _FLOATS, _FLOATS),
    "scale_evidence": float64(float64, _FLOATS, _FLOATS, _FLOATS, float64, float64),
}
"""The compiled slots in the order of their numbers, with the exact types that they take and return."""


@kernel
def _copy(z, constants, out):
    for i in range(out.size):
        out[i] = z[i]


@kernel
def _keep(stats, hyper, constants, theta, rng):
    return OK


@kernel
def _no_normaliser(tau, theta, hyper):
    return 0.0


_OF_SCALES = {
    "accumulate_scale": "accumulate",
    "log_scale_normaliser": "log_normaliser",
    "scale_evidence": "log_evidence",
}
"""Slots that are a shared scale's, by what they are called there."""
_ABSENT = {"prepare": _copy, "draw_posterior": _keep, "draw_afresh": _keep, "log_scale_normaliser": _no_normaliser}


def _slot(family: Family, name: str) -> Any:
    """Return what a family provides for a slot, or None."""
    if name not in _OF_SCALES:
        return getattr(family, name)
    return None if family.shared_scale is None else getattr(family.shared_scale, _OF_SCALES[name])


def install(number: int, family: Family) -> None:
    """Enter the slots of a family into the process's table, in the row of its number."""
    for slot, (name, signature) in enumerate(SIGNATURES.items()):
        function = _slot(family, name) or _ABSENT.get(name)
        if function is not None:
            put(number, slot, function, signature)


def compile_slots(number: int, family: Family) -> None:
    """Compile every slot of a family now, or load it from the disk cache.

    Raises
    ------
    TypeError
        Where a slot does not take or return what its signature says.
    """
    for slot, name in enumerate(SIGNATURES):
        if _slot(family, name) is not None:
            resolve(number, slot)


_prepare, _coefficients, _fill_log_density, _accumulate, _initial = (
    caller(SIGNATURES[name]) for name in ("prepare", "coefficients", "fill_log_density", "accumulate", "initial")
)
_draw_posterior, _draw_from_values, _log_posterior, _accumulate_gradient = (
    caller(SIGNATURES[name]) for name in ("draw_posterior", "draw_from_values", "log_posterior", "accumulate_gradient")
)
_log_evidence, _draw_afresh = (caller(SIGNATURES[name]) for name in ("log_evidence", "draw_afresh"))
_accumulate_scale, _log_scale_normaliser, _scale_evidence = (caller(SIGNATURES[name]) for name in _OF_SCALES)
_predictive, _fill_log_predictive = (caller(SIGNATURES[name]) for name in ("predictive", "fill_log_predictive"))
_log_mass, _cdf, _moment, _mode, _sample, _fill_log_masses = (
    caller(SIGNATURES[name]) for name in ("log_mass", "cdf", "moment", "mode", "sample", "fill_log_masses")
)


@kernel
def prepare(family, z, constants, out):
    """Fill the auxiliary table of a family, or copy z where it prepares nothing."""
    _prepare(address(family * N_SLOT + PREPARE), (z, constants, out))


@kernel
def coefficients(family, theta, constants, out):
    """Prepare the constants of a leaf's log density."""
    _coefficients(address(family * N_SLOT + COEFFICIENTS), (theta, constants, out))


@kernel
def fill_log_density(family, z, aux, coefficients, out):
    """Fill the log density of a block of values under one leaf."""
    _fill_log_density(address(family * N_SLOT + FILL_LOG_DENSITY), (z, aux, coefficients, out))


@kernel
def accumulate(family, z, aux, rows, constants, stats):
    """Add the statistics of some rows, one after the other."""
    _accumulate(address(family * N_SLOT + ACCUMULATE), (z, aux, rows, constants, stats))


@kernel
def initial(family, stats, hyper, constants, theta):
    """Estimate a leaf's parameters from statistics."""
    _initial(address(family * N_SLOT + INITIAL), (stats, hyper, constants, theta))


@kernel
def draw_posterior(family, stats, hyper, constants, theta, rng):
    """Replace a leaf's parameters by a draw given its statistics; return a status."""
    return _draw_posterior(address(family * N_SLOT + DRAW_POSTERIOR), (stats, hyper, constants, theta, rng))


@kernel
def draw_from_values(family, z, count, hyper, constants, theta, rng):
    """Replace a leaf's parameters by a draw given its values and how often each occurs; return a status."""
    return _draw_from_values(address(family * N_SLOT + DRAW_FROM_VALUES), (z, count, hyper, constants, theta, rng))


@kernel
def log_posterior(family, stats, hyper, constants, theta):
    """Return log prior plus log likelihood, up to a constant; only for families that have the slot."""
    return _log_posterior(address(family * N_SLOT + LOG_POSTERIOR), (stats, hyper, constants, theta))


@kernel
def log_evidence(family, stats, hyper, constants, theta):
    """Return the log evidence of statistics, as the record says; only for families that have the slot."""
    return _log_evidence(address(family * N_SLOT + LOG_EVIDENCE), (stats, hyper, constants, theta))


@kernel
def draw_afresh(family, stats, hyper, constants, theta, rng):
    """Replace a leaf's parameters by a draw that does not depend on them, where its evidence asks for that."""
    return _draw_afresh(address(family * N_SLOT + DRAW_AFRESH), (stats, hyper, constants, theta, rng))


@kernel
def accumulate_scale(family, theta, hyper, out):
    """Add what the parameters of some leaves say of the factor that they share."""
    _accumulate_scale(address(family * N_SLOT + ACCUMULATE_SCALE), (theta, hyper, out))


@kernel
def log_scale_normaliser(family, tau, theta, hyper):
    """Return the part of the log density of parameters that depends on their factor otherwise; 0 where none does."""
    return _log_scale_normaliser(address(family * N_SLOT + LOG_SCALE_NORMALISER), (tau, theta, hyper))


@kernel
def scale_evidence(family, tau, stats, hyper, constants, lo, hi):
    """Return the log probability of a leaf's statistics at a factor; only for families that have the slot."""
    return _scale_evidence(address(family * N_SLOT + SCALE_EVIDENCE), (tau, stats, hyper, constants, lo, hi))


@kernel
def accumulate_gradient(family, z, aux, flow, theta, constants, out):
    """Add the gradient of the flow-weighted log densities with respect to theta."""
    _accumulate_gradient(address(family * N_SLOT + ACCUMULATE_GRADIENT), (z, aux, flow, theta, constants, out))


@kernel
def log_mass(family, lo, hi, theta, constants):
    """Return the log probability of [lo, hi]."""
    return _log_mass(address(family * N_SLOT + LOG_MASS), (lo, hi, theta, constants))


@kernel
def cdf(family, x, theta, constants):
    """Return the probability of (-inf, x]."""
    return _cdf(address(family * N_SLOT + CDF), (x, theta, constants))


@kernel
def moment(family, k, lo, hi, theta, constants):
    """Return the mean (k = 1) or the variance (k = 2) given [lo, hi]."""
    return _moment(address(family * N_SLOT + MOMENT), (k, lo, hi, theta, constants))


@kernel
def mode(family, lo, hi, theta, constants):
    """Return a value of [lo, hi] with the largest density."""
    return _mode(address(family * N_SLOT + MODE), (lo, hi, theta, constants))


@kernel
def sample(family, lo, hi, theta, constants, rng):
    """Return a draw given [lo, hi]."""
    return _sample(address(family * N_SLOT + SAMPLE), (lo, hi, theta, constants, rng))


@kernel
def fill_log_masses(family, lo, hi, theta, at, constants, out):
    """Fill the log probability of [lo, hi] under several leaves; only for families that have the slot."""
    _fill_log_masses(address(family * N_SLOT + FILL_LOG_MASSES), (lo, hi, theta, at, constants, out))


@kernel
def predictive(family, stats, hyper, constants, theta, out):
    """Prepare the constants of a leaf's log predictive density; only for families that have the slot."""
    _predictive(address(family * N_SLOT + PREDICTIVE), (stats, hyper, constants, theta, out))


@kernel
def fill_log_predictive(family, z, aux, coefficients, out):
    """Fill the log predictive density of values under one leaf; only for families that have the slot."""
    _fill_log_predictive(address(family * N_SLOT + FILL_LOG_PREDICTIVE), (z, aux, coefficients, out))
