"""bayesjpt: learned sum-product structures as PyMC models, with exact answers per posterior draw.

The public names, in the order of the flow. All are loaded on first use: importing the package loads nothing heavier
than NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from bayesjpt.learners import LEARNERS as _LEARNERS

if TYPE_CHECKING:
    from bayesjpt.circuit.bdeu import BDeu as BDeu
    from bayesjpt.errors import BayesjptError as BayesjptError
    from bayesjpt.errors import BayesjptWarning as BayesjptWarning
    from bayesjpt.experts.fit import fit_experts as fit_experts
    from bayesjpt.experts.online import OnlineExperts as OnlineExperts
    from bayesjpt.experts.posterior import ExpertPosterior as ExpertPosterior
    from bayesjpt.experts.series import ExpertSeriesPosterior as ExpertSeriesPosterior
    from bayesjpt.experts.store import load_experts as load_experts
    from bayesjpt.families.registry import register_family as register_family
    from bayesjpt.fitting.compare import compare as compare
    from bayesjpt.fitting.facade import fit as fit
    from bayesjpt.model.block import CircuitMixture as CircuitMixture
    from bayesjpt.model.build import build_model as build_model
    from bayesjpt.model.circuit_prior import CircuitPrior as CircuitPrior
    from bayesjpt.model.expert_tree import ExpertTree as ExpertTree
    from bayesjpt.model.new_rows import set_rows as set_rows
    from bayesjpt.posterior.draws import Posterior as Posterior
    from bayesjpt.posterior.select import select_column as select_column
    from bayesjpt.posterior.store import load as load
    from bayesjpt.queries.column import col as col
    from bayesjpt.queries.grammar import parse_event as parse_event
    from bayesjpt.queries.predict_draws import predict as predict
    from bayesjpt.sampler.memory import estimate_memory as estimate_memory
    from bayesjpt.structure.cutset import learn_cutset as learn_cutset
    from bayesjpt.structure.hclt import learn_hclt as learn_hclt
    from bayesjpt.structure.jpt import learn_jpt as learn_jpt
    from bayesjpt.structure.mspn import learn_mspn as learn_mspn
    from bayesjpt.structure.tree_mixture import learn_tree_mixture as learn_tree_mixture
    from bayesjpt.structure.wmispn import learn_wmispn as learn_wmispn
    from bayesjpt.structure.wmispn import spline_dictionary as spline_dictionary
    from bayesjpt.table.dataset import Dataset as Dataset
    from bayesjpt.table.dataset import dataset as dataset
    from bayesjpt.table.document import SchemaDocument as SchemaDocument
    from bayesjpt.table.document import read_schema as read_schema
    from bayesjpt.table.read import ReadLimits as ReadLimits
    from bayesjpt.table.schema import Schema as Schema
    from bayesjpt.table.table import Table as Table
    from bayesjpt.table.table import as_table as as_table
    from bayesjpt.table.table import read_table as read_table

__version__ = "0.1.0"

_HOME: dict[str, str] = {
    "read_table": "bayesjpt.table.table",
    "as_table": "bayesjpt.table.table",
    "Table": "bayesjpt.table.table",
    "dataset": "bayesjpt.table.dataset",
    "Dataset": "bayesjpt.table.dataset",
    "ReadLimits": "bayesjpt.table.read",
    "Schema": "bayesjpt.table.schema",
    "read_schema": "bayesjpt.table.document",
    "SchemaDocument": "bayesjpt.table.document",
    "register_family": "bayesjpt.families.registry",
    **{f"learn_{name}": f"bayesjpt.structure.{name}" for name in _LEARNERS},
    "spline_dictionary": "bayesjpt.structure.wmispn",
    "BDeu": "bayesjpt.circuit.bdeu",
    "CircuitMixture": "bayesjpt.model.block",
    "CircuitPrior": "bayesjpt.model.circuit_prior",
    "ExpertTree": "bayesjpt.model.expert_tree",
    "build_model": "bayesjpt.model.build",
    "set_rows": "bayesjpt.model.new_rows",
    "predict": "bayesjpt.queries.predict_draws",
    "fit": "bayesjpt.fitting.facade",
    "compare": "bayesjpt.fitting.compare",
    "fit_experts": "bayesjpt.experts.fit",
    "OnlineExperts": "bayesjpt.experts.online",
    "ExpertPosterior": "bayesjpt.experts.posterior",
    "ExpertSeriesPosterior": "bayesjpt.experts.series",
    "load_experts": "bayesjpt.experts.store",
    "estimate_memory": "bayesjpt.sampler.memory",
    "Posterior": "bayesjpt.posterior.draws",
    "load": "bayesjpt.posterior.store",
    "select_column": "bayesjpt.posterior.select",
    "col": "bayesjpt.queries.column",
    "parse_event": "bayesjpt.queries.grammar",
    "BayesjptError": "bayesjpt.errors",
    "BayesjptWarning": "bayesjpt.errors",
}

# with these come the query methods of Posterior
_WITH_METHODS = {
    "fit", "fit_experts", "OnlineExperts", "ExpertPosterior", "ExpertSeriesPosterior", "load_experts", "Posterior",
    "load",
}  # fmt: skip

__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]  # type checkers read the imports above


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'bayesjpt' has no attribute {name!r}")
    if name in _WITH_METHODS:
        importlib.import_module("bayesjpt.queries.methods")
        importlib.import_module("bayesjpt.report")
        importlib.import_module("bayesjpt.fitting.report")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
