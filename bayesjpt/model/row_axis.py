"""Whether entry i of an expression depends on no row of a matrix but row i, read off its graph.

Rows can then be accepted one by one from a single evaluation. What is not known to keep rows apart is taken to mix
them: the answer may miss a case, and is never wrong.
"""

from __future__ import annotations

from typing import Any

from pytensor.graph.basic import Variable
from pytensor.graph.traversal import io_toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc, Join, MakeVector
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.shape import Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor

MIXED = -1
"""In place of an axis: entries depend on several rows."""

_FULL = slice(None)


def row_axis(output: Variable, source: Variable, rows: type) -> int | None:
    """Return the axis of an expression along which each entry belongs to one row.

    Parameters
    ----------
    output : Variable
    source : Variable
        What rows are made of; used by itself it mixes rows.
    rows : type
        Of the ops that make rows, on axis 0, of the source.

    Returns
    -------
    int or None
        `MIXED` where entries depend on several rows, None where the expression does not depend on the source.
    """
    axis: dict[Variable, int] = {source: MIXED}
    for node in io_toposort([source], [output]):
        dependent = [(k, axis[x]) for k, x in enumerate(node.inputs) if x in axis]
        if not dependent or isinstance(node.op, Shape | Shape_i):  # a shape depends on no value
            continue
        if isinstance(node.op, rows):
            found = 0
        elif any(at == MIXED for _, at in dependent):
            found = MIXED
        else:
            found = _through(node, dependent)
        for out in node.outputs:
            axis[out] = found
    return axis.get(output)


def _through(node: Any, dependent: list[tuple[int, int]]) -> int:
    """Return the axis of rows behind one op, given which inputs depend on rows and along which axis."""
    op, (first, at) = node.op, dependent[0]
    same = all(other == at for _, other in dependent)
    alone = len(dependent) == 1
    x = node.inputs[first]
    n_out = node.outputs[0].type.ndim if hasattr(node.outputs[0].type, "ndim") else 0
    if isinstance(op, Elemwise):
        # an axis of length one would be stretched over the rows of another
        return at if same else MIXED
    if isinstance(op, DimShuffle):
        return op.new_order.index(at) if at in op.new_order else MIXED
    if isinstance(op, CAReduce):
        return MIXED if op.axis is None or at in op.axis else at - sum(a < at for a in op.axis)
    if isinstance(op, SpecifyShape | CheckAndRaise):
        return at if alone and first == 0 else MIXED
    if isinstance(op, Alloc):
        stretched = x.type.shape[at] == 1  # a single row over several
        return n_out - x.type.ndim + at if alone and first == 0 and not stretched else MIXED
    if isinstance(op, Join):
        return at if same and op.axis != at else MIXED
    if isinstance(op, MakeVector):
        return MIXED
    if isinstance(op, Dot) or (isinstance(op, Blockwise) and isinstance(op.core_op, Dot)):
        left_rows, right_columns = (first, at) == (0, 0), (first, at) == (1, 1)
        return at if alone and n_out == 2 and (left_rows or right_columns) else MIXED
    if isinstance(op, Subtensor | AdvancedSubtensor) and alone:
        return _indexed(op, node, first, at)
    return MIXED


def _indexed(op: Any, node: Any, first: int, at: int) -> int:
    """Return the axis of rows of x[...]: rows kept whole, or rows in an index that looks up something else."""
    entries = list(op.idx_list)
    advanced = [k for k, entry in enumerate(entries) if not isinstance(entry, slice)]
    if first == 0:
        if at < len(entries) and entries[at] != _FULL:
            return MIXED
        if isinstance(op, Subtensor):
            return at - sum(k < at for k in advanced)
        # one vector of positions along another axis
        return at if len(advanced) == 1 and node.inputs[1].type.ndim == 1 else MIXED
    if (
        isinstance(op, AdvancedSubtensor)
        and len(advanced) == 1
        and all(entry == _FULL for entry in entries if isinstance(entry, slice))
    ):
        return advanced[0] + at
    return MIXED
