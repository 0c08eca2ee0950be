"""The list of families; a family's number is its position here and is never stored (saved files hold names)."""

from __future__ import annotations

import copyreg
import functools
import importlib
from collections.abc import Callable

from bayesjpt.code_hash import hash_of
from bayesjpt.errors import SamplingError, SchemaError
from bayesjpt.families import dispatch
from bayesjpt.families.record import ColumnFacts, Family
from bayesjpt.internals import NumbaError

BUILT_IN = (
    "normal",
    "gamma",
    "exponential",
    "poisson",
    "geometric",
    "categorical",
    "lognormal",
    "student_t",
    "uniform",
    "atom",
    "negative_binomial",
    "bernoulli",
    "rounded_normal",
    "truncated_rounded_normal",
    "quantile",
    "ordinal",
    "spline",
    "label",
)
"""Files with a ``FAMILY``, in the order of dictionaries: a new one comes last, so the draws of others stay the same."""

FAMILIES: list[Family] = []
"""Grows by `register_family` alone; the built-in families come first."""


def register_family(family: Family) -> Family:
    """Add a family to the likelihood dictionary of every column that it fits, and return it.

    Registering the same record again changes nothing, so a module may register its family whenever it is imported.
    Every process that samples or loads a circuit with the family must import that module; workers of
    `bayesjpt.fit` do so by themselves.

    Raises
    ------
    SchemaError
        Where another family has the name, a prior ``default`` is missing, a shared scale has no proper prior or changes
        a hyperparameter that the family does not have, or a slot is not of the contract's form.
    """
    for known in FAMILIES:
        if known is family:
            return family
        if known.name == family.name:
            raise SchemaError(f"a second family {family.name!r}", "a name of its own", "Rename one of the two.")
    if "default" not in family.priors:
        raise SchemaError(f"family {family.name!r} has no prior 'default'", "priors={'default': ...}")
    _check_shared_scale(family)
    dispatch.install(len(FAMILIES), family)
    try:
        dispatch.compile_slots(len(FAMILIES), family)
    except (TypeError, NumbaError) as error:
        raise SchemaError(f"family {family.name!r} cannot be compiled: {error}", "the slots of the contract") from error
    _add(family)
    return family


def _add(family: Family) -> None:
    dispatch.install(len(FAMILIES), family)
    FAMILIES.append(family)


for _name in BUILT_IN:
    _add(importlib.import_module(f"bayesjpt.families.{_name}").FAMILY)


def _check_shared_scale(family: Family) -> None:
    shared = family.shared_scale
    if shared is None:
        return
    for name in (*shared.exponents, *shared.shifts):
        if name not in family.hyper_names:
            raise SchemaError(
                f"the shared scale of family {family.name!r} changes a hyperparameter {name!r}",
                f"one of {', '.join(family.hyper_names)}",
            )
    if not shared.exponents and not shared.shifts:
        raise SchemaError(f"the shared scale of family {family.name!r} changes nothing", "exponents or shifts")
    if (shared.accumulate is None) == (shared.log_evidence is None):
        raise SchemaError(
            f"the shared scale of family {family.name!r} is given parameters and statistics, or neither",
            "one of accumulate and log_evidence",
        )
    if not callable(shared.shape):
        raise SchemaError(
            f"the shared scale of family {family.name!r} has the prior shape {shared.shape!r}, which is not proper",
            "a positive number, or a function of the column that returns one",
        )


def number(name: str) -> int:
    """Return the number of a family, or raise `SchemaError` listing the names."""
    for position, member in enumerate(FAMILIES):
        if member.name == name:
            return position
    known = ", ".join(member.name for member in FAMILIES)
    raise SchemaError(
        f"no likelihood family {name!r}", f"one of {known}", "Import the module that registers a family of your own."
    )


def family(name: str) -> Family:
    """Return a family by its name."""
    return FAMILIES[number(name)]


def _registered(name: str, module: str) -> Family:
    """Return a registered family by its name, importing the module that registers it."""
    importlib.import_module(module)
    return family(name)


def _travel(member: Family) -> tuple[Callable, tuple[str, str]]:
    """Let a family travel between processes as its name and the module of its density, which registers it."""
    return _registered, (member.name, member.fill_log_density.__module__)


copyreg.pickle(Family, _travel)


def own_families() -> list[Family]:
    """Return the families that `register_family` added, in the order of their numbers."""
    return FAMILIES[len(BUILT_IN) :]


@functools.cache
def family_hash(name: str) -> str:
    """Return a hash of a family's code: of the module that registers it and the functions of its slots."""
    return hash_of(family(name))


def sent_families() -> tuple[tuple[str, str, str], ...]:
    """Return what `check_sent_families` compares: name, module and hash of each family that was added."""
    return tuple((own.name, own.fill_log_density.__module__, family_hash(own.name)) for own in own_families())


def check_sent_families(sent: tuple[tuple[str, str, str], ...]) -> None:
    """Raise unless families have the same numbers and code here as in the process of `sent_families`.

    Modules of families that are not registered here are imported first.

    Raises
    ------
    SamplingError
        Where that cannot be done, or this process has other families, the same in another order, or other code.
    """
    modules = ", ".join(dict.fromkeys(module for _, module, _ in sent))
    for name, module, _ in sent:
        if all(own.name != name for own in own_families()):
            try:
                importlib.import_module(module)
            except ImportError as error:
                raise SamplingError(
                    f"a worker that cannot import {module!r}, which registers the family {name!r} ({error})",
                    "modules that workers find",
                ) from error
    here = sent_families()
    names, expected = ([name for name, _, _ in each] for each in (here, sent))
    if names != expected:
        # numbers of families are positions, and the order of a dictionary decides on draws
        raise SamplingError(
            f"a worker with the families of your own {', '.join(names) or 'none'}",
            f"{', '.join(expected) or 'none'}, in the order of this process",
            f"Start workers anew that import {modules}, in this order" if sent else "Start workers anew",
        )
    for (name, _, code), (_, module, expected_code) in zip(here, sent, strict=True):
        if code != expected_code:
            raise SamplingError(
                f"a worker with another version of the family {name!r}",
                f"the module {module!r} of this process",
                "Start workers anew",
            )


def fits(member: Family, column: ColumnFacts) -> bool:
    """Return whether a family may describe a column: same base, support at least as wide as the column's."""
    lo, hi = column.support
    return column.base in member.bases and member.support[0] <= lo and member.support[1] >= hi and member.offers(column)


def fitting(column: ColumnFacts) -> tuple[Family, ...]:
    """Return the families that may describe a column, those included that have to be named."""
    return tuple(member for member in FAMILIES if fits(member, column))


def dictionary(column: ColumnFacts) -> tuple[Family, ...]:
    """Return the families of a column's likelihood dictionary: those that its schema names, or all that fit.

    A column with atoms always has the family ``atom``; families that have to be named are there only if they are.
    """
    if column.families:
        named = tuple(family(name) for name in column.families)
        carried = tuple(member for member in FAMILIES if member.name == "atom" and member not in named)
        return (*named, *(member for member in carried if fits(member, column)))
    return tuple(member for member in fitting(column) if not member.by_name(column))
