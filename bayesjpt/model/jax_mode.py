"""Makes blocks known to JAX in the moment when PyTensor compiles one for it, and imports JAX no earlier.

PyTensor finds what JAX runs in place of an op by a registration that imports JAX. So a rewrite that belongs to
PyTensor's JAX mode alone, and that runs before the ops are looked up, imports ours; it changes no graph.
"""

from __future__ import annotations

import importlib

from pytensor.compile import optdb
from pytensor.graph.rewriting.basic import GraphRewriter

from bayesjpt.model.circuit_rows import CircuitLogDensity

NAME = "bayesjpt_in_jax"


class KnownToJax(GraphRewriter):
    """Registers our ops with JAX where a graph holds one."""

    def apply(self, fgraph):
        """Import the registration."""
        if any(isinstance(node.op, CircuitLogDensity) for node in fgraph.apply_nodes):
            importlib.import_module("bayesjpt.model.jax_density")


def register_jax() -> None:
    """Add the rewrite to PyTensor's JAX mode; once, however often it is called."""
    if NAME not in optdb:
        optdb.register(NAME, KnownToJax(), "jax", position=100)
