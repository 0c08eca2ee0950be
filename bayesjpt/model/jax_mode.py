"""Makes blocks known to JAX in the moment when PyTensor compiles one for it, and imports JAX no earlier.

PyTensor finds what JAX runs in place of an op by a registration that imports JAX. So a rewrite that belongs to
PyTensor's JAX mode alone, and that runs before the ops are looked up, imports ours. Ops that have a form in PyTensor's
operations, `FlatOp`, take it there.
"""

from __future__ import annotations

import importlib

from pytensor.compile import optdb
from pytensor.graph.rewriting.basic import GraphRewriter

from bayesjpt.model.circuit_rows import CircuitLogDensity
from bayesjpt.model.flat_vectors import FlatOp

NAME = "bayesjpt_in_jax"


class KnownToJax(GraphRewriter):
    """Registers our ops with JAX where a graph holds one."""

    def apply(self, fgraph):
        """Import the registration, and put PyTensor's operations where an op has a form in these."""
        for node in fgraph.toposort():
            if isinstance(node.op, FlatOp):
                found = zip(node.outputs, node.op.symbolic(*node.inputs), strict=True)
                fgraph.replace_all(list(found), import_missing=True)
        if any(isinstance(node.op, CircuitLogDensity) for node in fgraph.apply_nodes):
            importlib.import_module("bayesjpt.model.jax_density")


def register_jax() -> None:
    """Add the rewrite to PyTensor's JAX mode; once, however often it is called."""
    if NAME not in optdb:
        optdb.register(NAME, KnownToJax(), "jax", position=100)
