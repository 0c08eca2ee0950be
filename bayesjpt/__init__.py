"""bayesjpt: learned sum-product structures as PyMC models, with exact answers per posterior draw.

The public names, in the order of the flow. All are loaded on first use: importing the package loads nothing heavier
than NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bayesjpt.errors import BayesjptError as BayesjptError
    from bayesjpt.errors import BayesjptWarning as BayesjptWarning
    from bayesjpt.fitting import fit as fit
    from bayesjpt.model.block import CircuitMixture as CircuitMixture
    from bayesjpt.model.build import build_model as build_model
    from bayesjpt.posterior.draws import Posterior as Posterior
    from bayesjpt.posterior.store import load as load
    from bayesjpt.structure.mspn import learn_mspn as learn_mspn
    from bayesjpt.table.schema import Schema as Schema
    from bayesjpt.table.table import Table as Table
    from bayesjpt.table.table import as_table as as_table
    from bayesjpt.table.table import read_table as read_table

__version__ = "0.1.0"

_HOME = {
    "read_table": "bayesjpt.table.table",
    "as_table": "bayesjpt.table.table",
    "Table": "bayesjpt.table.table",
    "Schema": "bayesjpt.table.schema",
    "learn_mspn": "bayesjpt.structure.mspn",
    "CircuitMixture": "bayesjpt.model.block",
    "build_model": "bayesjpt.model.build",
    "fit": "bayesjpt.fitting",
    "Posterior": "bayesjpt.posterior.draws",
    "load": "bayesjpt.posterior.store",
    "BayesjptError": "bayesjpt.errors",
    "BayesjptWarning": "bayesjpt.errors",
}

# whoever asks for these wants the verbs on Posterior too
_WITH_VERBS = {"fit", "Posterior", "load"}

__all__ = [
    "read_table",
    "as_table",
    "Table",
    "Schema",
    "learn_mspn",
    "CircuitMixture",
    "build_model",
    "fit",
    "Posterior",
    "load",
    "BayesjptError",
    "BayesjptWarning",
]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'bayesjpt' has no attribute {name!r}")
    if name in _WITH_VERBS:
        importlib.import_module("bayesjpt.queries")
        importlib.import_module("bayesjpt.report")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
