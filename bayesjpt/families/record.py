"""The contract of a likelihood family: what a file of this folder provides, slot by slot.

A family is a record of metadata (plain Python) and of compiled functions over scalars and 1-D arrays. It knows one
column at a time, in the family's own units (`Scaling`), and nothing of circuits, tables or PyMC.

Arguments that recur in the compiled slots:

    z            float64 (n,)             values in the family's units
    aux          float64 (n,)             what `prepare` made of z; z itself where a family prepares nothing
    theta        float64 (n_theta,)       parameters, in the order of `Family.parameters`
    constants    float64 (n_constant,)    what the family fixed about its column (`Family.constants`)
    coefficients float64                  what `coefficients` made of theta, so that the density loop is one line;
                                          (n_theta + n_constant + 4,): room for both, copied
    stats        float64 (n_stats,)       additive sufficient statistics
    hyper        float64 (n_hyper,)       hyperparameters of one leaf
    rng          numpy.random.Generator   usable inside compiled code
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import ModuleType
from typing import Any, Protocol

import numpy as np

N_EXTRA_COEFFICIENTS = 4

OK = 0
INVALID = 1
"""Status codes of `draw_posterior`: fine, or parameters for which no valid draw exists."""


class Scaling(StrEnum):
    """How a family's units follow from the user's units x, with the column's location m and scale s."""

    LOCATION_SCALE = "location_scale"  # (x - m) / s
    SCALE = "scale"  # x / s
    REAL_LOCATION_SCALE = "real_location_scale"  # (x - m) / s on real columns, x on others
    NONE = "none"  # x


class ColumnFacts(Protocol):
    """What a family may know of a column; `bayesjpt.table.schema.Column` provides it."""

    @property
    def name(self) -> str: ...
    @property
    def base(self) -> str: ...  # "real", "integer" or "category"
    @property
    def support(self) -> tuple[float, float]: ...
    @property
    def families(self) -> tuple[str, ...]: ...  # names of the only families of its dictionary; empty for all that fit
    @property
    def n_label(self) -> int: ...  # labels with "other" (category); 0 otherwise
    @property
    def other(self) -> bool: ...  # whether a code stands for labels that training never showed
    @property
    def code_names(self) -> tuple[str, ...]: ...  # their names, that of "other" last
    @property
    def levels(self) -> tuple[float, ...]: ...  # distinct training values of an integer column with few of them
    @property
    def frequencies(self) -> tuple[float, ...]: ...  # smoothed training shares of labels or levels
    @property
    def resolution(self) -> float: ...
    @property
    def location(self) -> float: ...
    @property
    def scale(self) -> float: ...
    @property
    def mean(self) -> float: ...
    @property
    def minimum(self) -> float: ...
    @property
    def maximum(self) -> float: ...
    @property
    def mean_without_atoms(self) -> float: ...  # of training values that are no atoms
    @property
    def deviation_without_atoms(self) -> float: ...  # standard deviation of the same values; 0 where it is not known
    @property
    def atoms(self) -> tuple[float, ...]: ...  # values of a real column that repeat far beyond chance
    @property
    def atom_frequencies(self) -> tuple[float, ...]: ...  # their training shares among each other


def no_constants(_column: ColumnFacts) -> np.ndarray:
    """Return no constants: the family fixes nothing about its column."""
    return np.empty(0)


def always(_column: ColumnFacts) -> bool:
    """Offer the family to every column of its bases and support."""
    return True


@dataclass(frozen=True)
class Parameter:
    """One parameter of a family, with its prior as the PyMC side needs it.

    Parameters
    ----------
    name : str
        Name of the parameter; the model's variable is ``<block>_<family>_<name>``.
    constraint : str
        ``real``, ``positive``, ``unit`` or ``simplex`` (the leaf's whole parameter vector).
    prior : str
        ``normal`` (mean, standard deviation), ``normal_below`` (mean, standard deviation, upper bound),
        ``inverse_gamma`` (shape, scale, lower bound), ``log_normal`` (mean and standard deviation of the logarithm,
        upper bound), ``gamma`` (shape, rate), ``gamma_above`` and ``gamma_below`` (shape, rate, bound),
        ``beta`` (a, b), ``beta_above`` (a, b, lower bound) or ``dirichlet`` (concentration).
    arguments : callable
        ``(hyper, theta) -> tuple`` of the prior's arguments. Both are mappings from names to arrays with one entry a
        leaf; plain arithmetic only, so that it serves NumPy arrays and symbolic tensors alike. `theta` holds the
        parameters listed before this one.
    unit : str
        Unit of the parameter in words, for the documentation of the model's variables.
    """

    name: str
    constraint: str
    prior: str
    arguments: Callable[[Mapping[str, Any], Mapping[str, Any]], tuple]
    unit: str


@dataclass(frozen=True)
class SharedScale:
    """A factor of the default prior's hyperparameters that all leaves of one column and family share.

    It says how wide, or how large, parts of this column are, or how alike their shares of labels, and is drawn in each
    sweep. Prior: Gamma(shape, shape), so that a factor of 1 is expected. The model's variable is
    ``<block>_<family>_scale``, one entry a column.

    Hyperparameters are h_j tau^e_j + s_j log tau. A family says one of two things of the factor. With `accumulate` it
    is drawn given the parameters theta of all leaves that have rows, whose log density is, as a function of it,

        A log tau - B tau - log Z(tau)        A, B from theta and h alone

    and those without rows then follow it. With `log_evidence` it is drawn given the statistics of all leaves, their
    parameters integrated out, and these follow it: for shares, which may underflow where the factor is small.

    Parameters
    ----------
    exponents : mapping from str to float
        e_j, by the names of hyperparameters; 0 for those that are not named.
    shape : callable or float
        ``(column) -> float``, positive, or the number where it is the same for all columns. At least 3 where a mean
        falls with the factor, whose inverse then has a variance.
    accumulate : kernel or None
        ``(theta, hyper, out)``: adds A and B to `out`, float64 (2,); `theta` float64 (n_leaf * n_theta,) holds the
        leaves' parameters one after the other, `hyper` float64 (n_hyper,) what they share at a factor of 1.
    log_normaliser : kernel or None
        ``(tau, theta, hyper) -> float``: the sum of log Z over the same leaves; None where Z does not depend on the
        factor, which then has a gamma conditional.
    shifts : mapping from str to float
        s_j, likewise: for hyperparameters that are means of logarithms.
    log_evidence : kernel or None
        ``(tau, stats, hyper, constants, lo, hi) -> float``: the log probability of one leaf's statistics at a factor,
        up to what does not depend on it; 0 without rows. `hyper` is the leaf's at a factor of 1, `lo` and `hi` the ends
        of its interval.
    """

    exponents: Mapping[str, float]
    shape: Any  # a number is made a callable in __post_init__
    accumulate: Callable | None = None
    log_normaliser: Callable | None = None
    shifts: Mapping[str, float] = field(default_factory=dict)
    log_evidence: Callable | None = None

    def __post_init__(self):
        if isinstance(self.shape, int | float) and 0.0 < self.shape < np.inf:
            everywhere = float(self.shape)
            object.__setattr__(self, "shape", lambda _column: everywhere)


@dataclass(frozen=True, kw_only=True)
class Family:
    """A likelihood family: metadata, priors, and compiled slots.

    Parameters
    ----------
    name : str
        The field's standard name, lower case.
    bases : tuple of str
        Bases of columns that it may describe: ``real``, ``integer``, ``category``.
    support : tuple of float
        Smallest and largest value with positive density; a column whose support is wider is not offered the family.
    statistical_type : str
        ``real``, ``positive``, ``interval``, ``count``, ``nominal``, ``ordinal``, ``binary`` or ``none``; or
        ``support``: real, positive or count, as the column's support has it.
    scaling : Scaling
        Units of z.
    parameters : tuple of Parameter
    hyper_names : tuple of str
        Names of the hyperparameters; one name of a whole vector for a simplex.
    priors : mapping from str to callable
        ``(column, start_theta) -> hyper``; ``default`` always exists, ``abda`` holds the paper's raw-unit prior.
        `start_theta` is the learner's estimate; before there is one, all its entries are alike.
    shared_scale : SharedScale or None
        What the ``default`` prior of all leaves of a column shares; other priors are as they are.
    n_stats : callable or int
        ``(constants) -> int``, or the number where it is the same for all leaves.
    constants, offers : callable, optional
        ``(column) -> float64 array``, ``(column) -> bool``. Unless given: no constants, offered wherever base and
        support allow it.
    n_theta : callable, optional
        ``(constants) -> int``; one parameter an entry of `parameters` unless given.
    by_name : bool or callable
        Whether dictionaries hold the family only where it is named; ``(column) -> bool`` where that depends on the
        column.
    leaf_constants : callable or None
        ``(column, values, lo, hi) -> float64 array``: constants of one leaf, from its observed training values (user's
        units, without atoms) and the ends of its interval. None: leaves have those of the column, and share them.
    valid_constants : callable or None
        ``(column, constants) -> bool``: whether a leaf of the column may have these constants, for a family whose
        leaves may differ in them. None: they are those of the column.
    estimate : callable or None
        ``(column, values, constants) -> theta``: a leaf's estimate, and what its prior is centred on, from the same
        values as `leaf_constants` has. None: `initial` of their statistics.
    entry_labels : callable or None
        ``(column, constants) -> names`` of the entries of a simplex, for the labels of the model's variables. None:
        their numbers.
    prepare : kernel or None
        ``(z, constants, out)``: one table of auxiliary values, made once a table (``log z``).
    coefficients : kernel
        ``(theta, constants, out)``: constants of the log density, made once a sweep.
    fill_log_density : kernel
        ``(z, aux, coefficients, out)``: a one-line loop over ``out.size`` values. Natural logarithm of the density per
        unit of z, or of the mass on an integer or label.
    accumulate : kernel
        ``(z, aux, rows, constants, stats)``: adds the rows (int32 positions in z), one after the other.
    initial : kernel
        ``(stats, hyper, constants, theta)``: an estimate from statistics, valid for empty ones too.
    draw_posterior : kernel or None
        ``(stats, hyper, constants, theta, rng) -> status``: replaces theta by a draw given the statistics, exact, or
        by slice steps from the theta that it finds. None, with `draw_from_values` None too, keeps theta fixed.
    draw_from_values : kernel or None
        ``(z, count, hyper, constants, theta, rng) -> status``: the same, for a family without statistics of fixed
        length: the leaf's values, ascending in the order of their rows or distinct values, and how often each occurs.
    log_posterior : kernel or None
        ``(stats, hyper, constants, theta)``: log prior plus log likelihood given the statistics, up to a constant; -inf
        where the prior says no. With it the parameters of a leaf that is truncated to a cell are drawn by slice steps.
    conjugate_on_cell : bool
        Whether the parameters are a simplex of which a cell takes some entries whole: then shares among those inside
        are independent of the rest, and `draw_posterior` serves a truncated leaf too.
    reversible_draw : bool
        Whether `draw_from_values`, from some theta on, is reversible with respect to the posterior. Then the parameters
        of a truncated leaf are proposed by it, and kept or not by what the cell's mass becomes.
    accumulate_gradient : kernel or None
        ``(z, aux, flow, theta, constants, out)``: adds the sum over values of flow times the gradient of the log
        density with respect to theta to `out`, float64 (n_theta,). Entries with flow 0 are skipped, whatever their
        density. A block that holds a family without it refuses gradients (NUTS, ADVI).
    log_marginal : kernel or None
        ``(stats, hyper, constants)``: log evidence up to a constant of the data alone, where conjugate.
    log_evidence : kernel or None
        ``(stats, hyper, constants, theta)``: log evidence of the values, per unit of z or as a mass, with nothing left
        out; NaN where it is not known, NaN or -inf where a value is impossible. With it leaves of a dictionary exchange
        their rows (`bayesjpt.kernels.swaps`). A family with `draw_afresh` returns the log density of the values and
        theta less that of such a draw.
    draw_afresh : kernel or None
        ``(stats, hyper, constants, theta, rng) -> status``: replaces theta by a draw from about the posterior, whatever
        theta was; from the prior where there are no values. None where `draw_posterior` does that exactly.
    predictive : kernel or None
        ``(stats, hyper, constants, theta, out)``: coefficients of the log density of one further value given the
        statistics, parameters integrated out; `out` is as long as that of `coefficients`. A family may integrate out
        some parameters given the others, if `draw_posterior` does not start from those. With it the collapsed sampler
        integrates them out (`bayesjpt.kernels.collapsed`).
    fill_log_predictive : kernel or None
        ``(z, aux, coefficients, out)``: that log density, as `fill_log_density`; NaN where it is not known.
    predicts_by_mean : bool
        Whether that density is the one at what `initial` returns: the posterior mean of parameters in which the density
        is linear, and of a simplex also when truncated to a cell. Then the family needs neither slot.
    log_mass : kernel
        ``(lo, hi, theta, constants)``: log probability of the closed interval [lo, hi] in units of z.
    fill_log_masses : kernel or None
        ``(lo, hi, theta, at, constants, out)``: the same for one interval under ``out.size`` leaves of one column;
        their parameters begin at ``at`` (int32) in theta. For speed alone: without it, `log_mass` is called leaf by
        leaf.
    cdf : kernel
        ``(x, theta, constants)``: probability of (-inf, x].
    moment : kernel
        ``(k, lo, hi, theta, constants)``: mean (k = 1) or variance (k = 2) given the closed interval [lo, hi]; of an
        interval without mass, its end nearest to the mode, and 0. Not a difference of squares where these are large.
    mode : kernel
        ``(lo, hi, theta, constants)``: a value of [lo, hi] with the largest density.
    sample : kernel
        ``(lo, hi, theta, constants, rng)``: a draw given [lo, hi].
    """

    name: str
    bases: tuple[str, ...]
    support: tuple[float, float] = (-np.inf, np.inf)
    statistical_type: str
    scaling: Scaling = Scaling.NONE
    parameters: tuple[Parameter, ...] = ()
    hyper_names: tuple[str, ...] = ()
    shared_scale: SharedScale | None = None
    priors: Mapping[str, Callable[[ColumnFacts, np.ndarray], np.ndarray]]
    constants: Callable[[ColumnFacts], np.ndarray] = no_constants
    n_theta: Callable[[np.ndarray], int] = field(default=None)  # type: ignore[assignment] # filled in __post_init__
    n_stats: Any  # a number is made a callable in __post_init__
    offers: Callable[[ColumnFacts], bool] = always
    by_name: Any = False  # made a callable in __post_init__
    leaf_constants: Callable[[ColumnFacts, np.ndarray, float, float], np.ndarray] | None = None
    valid_constants: Callable[[ColumnFacts, np.ndarray], bool] | None = None
    estimate: Callable[[ColumnFacts, np.ndarray, np.ndarray], np.ndarray] | None = None
    entry_labels: Callable[[ColumnFacts, np.ndarray], Sequence[str]] | None = None
    prepare: Callable | None = None
    coefficients: Callable
    fill_log_density: Callable
    accumulate: Callable
    initial: Callable
    draw_posterior: Callable | None = None
    draw_from_values: Callable | None = None
    log_posterior: Callable | None = None
    conjugate_on_cell: bool = False
    reversible_draw: bool = False
    accumulate_gradient: Callable | None = None
    log_marginal: Callable | None = None
    log_evidence: Callable | None = None
    draw_afresh: Callable | None = None
    predictive: Callable | None = None
    fill_log_predictive: Callable | None = None
    predicts_by_mean: bool = False
    log_mass: Callable
    fill_log_masses: Callable | None = None
    cdf: Callable
    moment: Callable
    mode: Callable
    sample: Callable

    @classmethod
    def of(cls, *files: ModuleType | Mapping[str, Any], **metadata: Any) -> Family:
        """Return the family that files describe: a function with the name of a slot fills it.

        Parameters
        ----------
        *files : module or mapping from str
            ``globals()`` of the family's file, and modules that hold more of its slots; later ones go before.
        **metadata
            All other fields; they go before functions of the files.

        Raises
        ------
        TypeError
            Where a slot that every family has is not filled, or a field is not of the contract.
        """
        names = [file if isinstance(file, Mapping) else vars(file) for file in files]
        slots = {slot.name: one[slot.name] for one in names for slot in fields(cls) if callable(one.get(slot.name))}
        return cls(**{**slots, **metadata})

    def __post_init__(self):
        if self.n_theta is None:
            n = len(self.parameters)
            object.__setattr__(self, "n_theta", lambda _constants: n)
        if isinstance(self.n_stats, int):
            size = self.n_stats
            object.__setattr__(self, "n_stats", lambda _constants: size)
        if isinstance(self.by_name, bool):
            everywhere = self.by_name
            object.__setattr__(self, "by_name", lambda _column: everywhere)

    @property
    def is_conjugate(self) -> bool:
        """Whether `draw_posterior` is an independent draw, without slice steps."""
        return self.log_marginal is not None and self.draw_from_values is None

    @property
    def samplable_on_cell(self) -> bool:
        """Whether the parameters of a leaf that is truncated to a cell can be drawn."""
        return (
            self.conjugate_on_cell
            or self.log_posterior is not None
            or self.is_conjugate
            or self.reversible_draw
            or not self.parameters
        )

    def accepts(self, column: ColumnFacts, constants: np.ndarray) -> bool:
        """Return whether a leaf of a column may have these constants."""
        if self.valid_constants is not None:
            return self.valid_constants(column, constants)
        return np.array_equal(constants, self.constants(column))

    def __repr__(self) -> str:
        return f"Family({self.name})"
