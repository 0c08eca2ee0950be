"""Which entries of an expression are computed from marked cells of a matrix, as an expression of its own.

Taint analysis of the graph: every op passes marks on from its inputs to its outputs. An entry is clean where no marked
cell was used, or where a choice that the data alone make (a mask, ``isnan``, positions of rows) takes something else.
Ops that are not known mark all their outputs: an expression may be called tainted wrongly, never clean.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce, singledispatch
from typing import Any

import pytensor.tensor as pt
from pytensor import scalar
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import graph_inputs, io_toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc, Join, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.math import Dot
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor, IncSubtensor, Subtensor

Marks = Sequence[Any]
"""Of each input: boolean, in its shape, or None where it depends on no marked cell."""


def tainted(outputs: Sequence[Variable], source: Variable, marks: Variable) -> Any:
    """Return, of each output, whether an entry of it uses a marked entry of the source: a boolean vector.

    Parameters
    ----------
    outputs : sequence of Variable
    source : SharedVariable
        Data.
    marks : Variable
        Boolean, in the source's shape.

    Notes
    -----
    Numbers of the source at marked entries have to be NaN, or what is there when it is looked at by ``isnan``.
    """
    found: dict[Variable, Any] = {source: marks}
    for node in io_toposort([source], outputs):
        of_inputs = [found.get(x) for x in node.inputs]
        if all(mark is None for mark in of_inputs):
            continue
        of_outputs = through(node.op, node, of_inputs)
        for out, mark in zip(node.outputs, of_outputs, strict=True):
            found[out] = None if mark is None else _shaped(mark, out)
    ends = [found.get(out) for out in outputs]
    return pt.stack([pt.constant(False) if mark is None else pt.any(mark) for mark in ends])


def _shaped(mark: Any, like: Variable) -> Any:
    """Return a mark in the shape of what it belongs to."""
    if not isinstance(like, pt.TensorVariable) or like.type.ndim == 0:
        return pt.any(mark)
    return pt.specify_shape(pt.broadcast_to(mark, like.shape), like.type.shape)


def _any(marks: Marks) -> Any:
    """Return whether an entry of any input is marked."""
    return reduce(pt.or_, [pt.any(mark) for mark in marks if mark is not None])


def _whole(x: Variable, mark: Any) -> Any:
    return pt.zeros_like(x, dtype="bool") if mark is None else mark


def _by_data(*choices: Variable) -> bool:
    """Tell whether choices are made by data alone, and so whatever value the model's variables have."""
    return all(
        isinstance(x, Constant | SharedVariable) and not isinstance(x.type, RandomType) for x in graph_inputs(choices)
    )


@singledispatch
def through(op: Any, node: Any, marks: Marks) -> list[Any]:
    """Return the marks of the outputs, or None for those without: all are marked where nothing is known of an op."""
    return [_any(marks)] * len(node.outputs)


@through.register(Shape)
@through.register(Shape_i)
def _shape(op, node, marks):
    return [None]


@through.register(Elemwise)
def _elemwise(op, node, marks):
    if isinstance(op.scalar_op, scalar.IsNan):  # asks whether a cell is missing
        return [None]
    if isinstance(op.scalar_op, scalar.Second):
        return [marks[1]]
    if isinstance(op.scalar_op, scalar.Switch) and _by_data(node.inputs[0]):
        of_choice, *of_values = (_whole(x, mark) for x, mark in zip(node.inputs, marks, strict=True))
        return [of_choice | pt.switch(node.inputs[0], *of_values)]
    if isinstance(op.scalar_op, scalar.AND) and _by_data(*node.inputs):  # of any with False is False
        whole = [_whole(x, mark) for x, mark in zip(node.inputs, marks, strict=True)]
        open_ = [mark | pt.neq(x, 0) for x, mark in zip(node.inputs, whole, strict=True)]
        return [reduce(pt.or_, whole) & reduce(pt.and_, open_)]
    return [reduce(pt.or_, [mark for mark in marks if mark is not None])]


@through.register(CAReduce)
def _reduction(op, node, marks):
    return [pt.any(marks[0], axis=op.axis)]


@through.register(DimShuffle)
@through.register(TensorFromScalar)
@through.register(ScalarFromTensor)
def _rearranged(op, node, marks):
    return [op(marks[0])] if isinstance(op, DimShuffle) else [marks[0]]


@through.register(SpecifyShape)
def _specified(op, node, marks):
    return [marks[0] if marks[0] is not None else _any(marks)]


@through.register(CheckAndRaise)
def _checked(op, node, marks):
    return [_any(marks) if any(mark is not None for mark in marks[1:]) else marks[0]]


@through.register(Reshape)
@through.register(Alloc)
def _by_shape(op, node, marks):
    if any(mark is not None for mark in marks[1:]):
        return [_any(marks)]
    made = op(marks[0], *node.inputs[1:]) if isinstance(op, Reshape) else pt.alloc(marks[0], *node.inputs[1:])
    return [made]


@through.register(Join)
def _joined(op, node, marks):
    if marks[0] is not None:
        return [_any(marks)]
    return [op(node.inputs[0], *(_whole(x, mark) for x, mark in zip(node.inputs[1:], marks[1:], strict=True)))]


@through.register(MakeVector)
def _vector(op, node, marks):
    return [MakeVector("bool")(*(_whole(x, mark) for x, mark in zip(node.inputs, marks, strict=True)))]


@through.register(Dot)
def _dot(op, node, marks):
    terms = []
    for k, mark in enumerate(marks):
        if mark is not None:
            inputs = [pt.ones_like(x, dtype="float64") for x in node.inputs]
            inputs[k] = mark.astype("float64")
            terms.append(op(*inputs) > 0.0)
    return [reduce(pt.or_, terms)]


@through.register(Blockwise)
def _blockwise(op, node, marks):
    return _dot(op, node, marks) if isinstance(op.core_op, Dot) else [_any(marks)] * len(node.outputs)


@through.register(Subtensor)
@through.register(AdvancedSubtensor)
def _indexed(op, node, marks):
    x, *index = node.inputs
    of_index = [mark for mark in marks[1:] if mark is not None]
    if of_index or not _by_data(*index):
        if marks[0] is None and len(index) == 1 and len(op.idx_list) == 1 and isinstance(op, AdvancedSubtensor):
            # what is looked up by rows: an entry a row
            behind = [*range(index[0].type.ndim), *["x"] * (x.type.ndim - 1)]
            return [of_index[0].dimshuffle(behind)]
        return [_any(marks)]
    return [op(marks[0], *index)]


@through.register(IncSubtensor)
@through.register(AdvancedIncSubtensor)
def _placed(op, node, marks):
    x, y, *index = node.inputs
    if any(mark is not None for mark in marks[2:]) or not _by_data(*index):
        return [_any(marks)]
    setting = type(op)(op.idx_list, set_instead_of_inc=True)
    placed = setting(_whole(x, marks[0]), _whole(y, marks[1]), *index)
    return [placed if op.set_instead_of_inc or marks[0] is None else placed | marks[0]]
