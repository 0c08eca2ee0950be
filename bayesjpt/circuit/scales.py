"""Factors that the default priors of all leaves of one column and family share: which leaves, which hyperparameters.

    scale of (alcohol, normal)   ---  b0, v0 of every normal leaf of alcohol
    scale of (alcohol, gamma)    ---  b0 of every gamma leaf of alcohol

See `bayesjpt.families.record.SharedScale`; the sweep draws them by `bayesjpt.kernels.scales`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.errors import ModelError
from bayesjpt.families import registry
from bayesjpt.families.record import Family
from bayesjpt.numerics.borrowed import by_address
from bayesjpt.table.schema import Schema

SCALE = "scale"
"""Last part of the name of the model's variables."""


@by_address
class Scales(NamedTuple):
    """Groups of leaves that share a factor, in the order of families and then columns.

    Attributes
    ----------
    family, column : int64 (n_group,)
    shape : float64 (n_group,)
        Of the prior Gamma(shape, shape).
    has_normaliser : bool (n_group,)
        Whether the conditional is no gamma.
    from_statistics : bool (n_group,)
        Whether the factor is drawn given statistics, parameters integrated out.
    leaf_ptr : int64 (n_group + 1,), leaf : int64 (n,)
    exponent : float64 (n_hyper,)
        Power of the factor in each hyperparameter of all leaves; 0 where it has none.
    shift : float64 (n_hyper,)
        How many times its logarithm is added.
    """

    family: np.ndarray
    column: np.ndarray
    shape: np.ndarray
    has_normaliser: np.ndarray
    from_statistics: np.ndarray
    leaf_ptr: np.ndarray
    leaf: np.ndarray
    exponent: np.ndarray
    shift: np.ndarray

    @property
    def n_group(self) -> int:
        return self.shape.size

    def entry_of_leaf(self) -> np.ndarray:
        """Return the place of each leaf's factor among those of its family, int64 (n_leaf,); -1 where it has none."""
        first = np.searchsorted(self.family, self.family)
        place = np.repeat(np.arange(self.n_group) - first, np.diff(self.leaf_ptr))
        entry = np.full(self.leaf.max(initial=-1) + 1, -1)
        entry[self.leaf] = place
        return entry


def make_scales(circuit: Circuit, schema: Schema, hyper_at: np.ndarray, prior: str) -> Scales:
    """Return the Scales of a circuit whose leaves' hyperparameters begin at `hyper_at`; none unless by default priors.

    Of leaves that share parameters the first is a member.
    """
    exponent, shift = np.zeros(int(hyper_at[-1])), np.zeros(int(hyper_at[-1]))
    groups: dict[tuple[int, int], list[int]] = {}
    if prior == "default":
        column = circuit.leaf_var
        _, first = np.unique(np.stack([circuit.leaf_family, circuit.theta_at]), axis=1, return_index=True)
        # the unique pairs come sorted by family: back into the order of the leaves
        first = np.sort(first)
        for number in np.unique(circuit.leaf_family).tolist():
            family = registry.FAMILIES[number]
            if family.shared_scale is None:
                continue
            leaves = first[circuit.leaf_family[first] == number]
            for at in np.unique(column[leaves]).tolist():
                groups[number, at] = leaves[column[leaves] == at].tolist()
            for out, named in ((exponent, family.shared_scale.exponents), (shift, family.shared_scale.shifts)):
                for name, value in named.items():
                    out[_places(family, name, leaves, hyper_at)] = value
    keys = sorted(groups)
    found = [registry.FAMILIES[family].shared_scale for family, _ in keys]
    shared = [each for each in found if each is not None]
    shape = [each.shape(schema.columns[at]) for each, (_, at) in zip(shared, keys, strict=True)]
    for value, (family, at) in zip(shape, keys, strict=True):
        if not 0.0 < value < np.inf:
            raise ModelError(
                f"the shared scale of {registry.FAMILIES[family].name} on column {schema.columns[at].name!r} has the "
                f"prior shape {value!r}",
                "a positive number",
            )
    return Scales(
        family=np.array([family for family, _ in keys], np.int64),
        column=np.array([column for _, column in keys], np.int64),
        shape=np.array(shape, np.float64),
        has_normaliser=np.array([each.log_normaliser is not None for each in shared], np.bool_),
        from_statistics=np.array([each.log_evidence is not None for each in shared], np.bool_),
        leaf_ptr=np.cumsum([0, *(len(groups[key]) for key in keys)]).astype(np.int64),
        leaf=np.array([leaf for key in keys for leaf in groups[key]], np.int64),
        exponent=exponent,
        shift=shift,
    )


def _places(family: Family, name: str, leaves: np.ndarray, hyper_at: np.ndarray) -> np.ndarray:
    """Return where a hyperparameter of some leaves of a family stands."""
    if family.parameters[0].constraint == "simplex":  # one name of a whole vector
        ends = zip(hyper_at[leaves].tolist(), hyper_at[leaves + 1].tolist(), strict=True)
        blocks = [np.arange(first, last) for first, last in ends]
        return np.concatenate([np.empty(0, np.int64), *blocks])
    return hyper_at[leaves] + family.hyper_names.index(name)


def scale_name(family: int) -> str:
    """Return the name, without the block's prefix, of the variable that holds a family's factors."""
    return f"{registry.FAMILIES[family].name}_{SCALE}"


def no_scales(n_hyper: int) -> Scales:
    """Return Scales without any group, for so many hyperparameters."""
    empty = np.empty(0, np.int64)
    nothing = np.empty(0, np.bool_)
    return Scales(empty, empty, np.empty(0), nothing, nothing, np.zeros(1, np.int64), empty, *np.zeros((2, n_hyper)))
