"""How a block is drawn in functions that PyTensor compiles with numba: two ops, whatever variables it has.

PyTensor compiles loops over batches anew around each distribution and each piece of arithmetic between them, and numba
copies into them, and then into the function around them, the code of whatever they call. A rewrite, which belongs to
PyTensor's numba mode alone and runs once generators may be moved on in place, puts these ops there:

      variables   (generators, arguments)                        -> steps of a tape, one address each
      rows        (generator, size, mask, log weights, parameters) -> draw_rows, one address

What it draws is what the distributions draw in Python, but for last bits; a form that they do not know stays as it is,
such as a batch of weights.
"""

from __future__ import annotations

import hashlib

import numpy as np
from pytensor.compile import optdb
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.op import Op
from pytensor.graph.rewriting.basic import GraphRewriter, dfs_rewriter, node_rewriter
from pytensor.graph.utils import InconsistencyError
from pytensor.link.utils import compile_function_src
from pytensor.tensor.basic import Alloc, MakeVector
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.subtensor import AdvancedSubtensor
from pytensor.tensor.type import TensorType
from pytensor.tensor.type_other import NoneTypeT

from bayesjpt.internals import numba_njit, register_funcify_default_op_cache_key
from bayesjpt.kernels.sampling import sample_rows
from bayesjpt.model import distributions as ours
from bayesjpt.model import tape as steps
from bayesjpt.model.block_variables import BlockVariable
from bayesjpt.model.circuit_rows import CircuitRowsRV, FrozenCircuit
from bayesjpt.model.flat_vectors import Placed, copy_behind
from bayesjpt.model.tape import Span, Tape, TapeWriter
from bayesjpt.model.versions import ops_version
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.borrowed import borrowed
from bayesjpt.numerics.jit import kernel

NAME = "bayesjpt_draws"
_LARGEST_CONSTANT, _LARGEST_TAKEN = 2048, 32768
"""Entries of what a tape holds itself, so that all is less than the megabyte that numba's cache takes of an array."""
_BEHIND_INPLACE = 99.5
"""Between PyTensor's rewrites that move generators on in place (99) and that prepare the others for numba (100)."""


@apart
@kernel
def draw_rows(plan, shape, log_weight, theta, rng):
    """Return float64 of a shape (n_row, n_column): rows of a circuit."""
    out = np.empty(shape)
    sample_rows(plan, log_weight, theta, rng, out)
    return out


class FrozenTape:
    """A tape as a hashable property of an op, with what goes in and comes out.

    Parameters
    ----------
    tape : Tape
    n_open : int
        Entries of the memory before its constants.
    ends : tuple of int
        The step behind each draw: one a generator.
    given : tuple of Span
        Where the arguments stand.
    found : tuple of Span
        Where the vectors stand that come out.
    """

    def __init__(
        self, tape: Tape, n_open: int, ends: tuple[int, ...], given: tuple[Span, ...], found: tuple[Span, ...]
    ):
        self.tape, self.n_open, self.ends, self.given, self.found = tape, n_open, ends, given, found
        digest = hashlib.sha256(repr((n_open, ends, given, found)).encode())
        for array in tape:
            digest.update(f"{array.shape}".encode())
            digest.update(array.tobytes())
        self.digest = digest.hexdigest()

    def __eq__(self, other):
        return isinstance(other, FrozenTape) and other.digest == self.digest

    def __hash__(self):
        return hash(self.digest)

    def __repr__(self):
        return f"{len(self.tape.steps)} steps"


class _CompiledDraw(Op):
    """An op that moves its generators on, of a numba graph; nothing evaluates it in Python."""

    __props__: tuple = ("frozen",)

    def perform(self, node, inputs, outputs):
        # PyTensor asks every op for this method; a rewrite of the numba mode alone puts the op into graphs
        raise NotImplementedError("of PyTensor's numba mode alone")


class DrawnVariables(_CompiledDraw):
    """The variables of a block before its rows, and what stands between them; each float64 (n,)."""

    def __init__(self, frozen: FrozenTape):
        self.frozen = frozen
        self.destroy_map = {k: [k] for k in range(len(frozen.ends))}

    def make_node(self, *inputs):
        """Inputs are the generators, then the arguments; outputs the generators, then what is found."""
        generators = inputs[: len(self.frozen.ends)]
        found = [TensorType("float64", (span.size,))() for span in self.frozen.found]
        return Apply(self, list(inputs), [*(rng.type() for rng in generators), *found])


class DrawnRows(_CompiledDraw):
    """Rows of a circuit, float64 (n_row, n_column).

    Parameters
    ----------
    kind : TensorType
        Of the rows; no property, since compiled code of one serves all.
    frozen : FrozenCircuit
    """

    destroy_map = {0: [0]}  # noqa: RUF012 (PyTensor's)
    default_output = 1

    def __init__(self, kind: TensorType, frozen: FrozenCircuit):
        self.kind = kind
        self.frozen = frozen

    def make_node(self, rng, size, missing, log_weight, theta):
        """Here the size is a scalar, or a vector of one."""
        return Apply(self, [rng, size, missing, log_weight, theta], [rng.type(), self.kind()])


@register_funcify_default_op_cache_key(DrawnVariables)
def _drawn_variables_numba(op, node, **kwargs):
    # written out: numba has no loop over generators, nor over arrays of several types
    frozen: FrozenTape = op.frozen
    generators = [f"rng_{k}" for k in range(len(frozen.ends))]
    arguments = [f"argument_{k}" for k in range(len(frozen.given))]
    lines = [f"def drawn_variables({', '.join(generators + arguments)}):"]
    lines += ["    tape = borrowed(frozen_tape)", f"    memory = begin(tape, {frozen.n_open})"]
    for name, x, span in zip(arguments, node.inputs[len(generators) :], frozen.given, strict=True):
        at = span.begin
        lines.append(f"    copy_behind({name}, {at}, memory)" if x.type.ndim else f"    memory[{at}] = {name}.item()")
    for name, lo, hi in zip(generators, (0, *frozen.ends), frozen.ends, strict=False):
        lines.append(f"    draw(tape, {lo}, {hi}, memory, {name})")
    lo, hi = frozen.ends[-1] if frozen.ends else 0, len(frozen.tape.steps)
    if lo < hi:
        lines.append(f"    calculate(tape, {lo}, {hi}, memory)")
    found = [f"memory[{span.begin}:{span.begin + span.size}]" for span in frozen.found]
    lines.append(f"    return {', '.join(generators + found)}")
    names = {"borrowed": borrowed, "frozen_tape": frozen.tape, "copy_behind": copy_behind}
    names |= {"begin": steps.begin, "calculate": steps.calculate, "draw": steps.draw}
    function = compile_function_src("\n".join(lines), "drawn_variables", names)
    # the arrays are constants of the compiled function, so its key holds their content too
    return numba_njit(function), ops_version() ^ int(frozen.digest[:14], 16)


@register_funcify_default_op_cache_key(DrawnRows)
def _drawn_rows_numba(op, node, **kwargs):
    plan = op.frozen.plan

    @numba_njit
    def drawn_rows(rng, size, missing, log_weight, theta):
        n = size.item()
        if missing.shape[0] != 1 and missing.shape[0] != n:
            raise ValueError("a mask of missing cells that does not fit the rows")
        return rng, draw_rows(borrowed(plan), (n, missing.shape[1]), log_weight, theta, rng)

    return drawn_rows, ops_version() ^ int(op.frozen.digest[:14], 16)


# --- rows


def _only(size: Variable) -> Variable:
    """Return the scalar entry of a size (1,) where it was made of one, else the size."""
    return size.owner.inputs[0] if size.owner and isinstance(size.owner.op, MakeVector) else size


def _unexpanded(x: Variable) -> Variable:
    """Return the vector that was expanded to a matrix (1, n), before or after elementwise operations; else x."""
    if x.owner is None:
        return x
    if isinstance(x.owner.op, DimShuffle) and x.owner.op.new_order == ("x", 0):
        return x.owner.inputs[0]
    if isinstance(x.owner.op, Elemwise):
        inner = [_unexpanded(y) for y in x.owner.inputs]
        if all(y.type.ndim == 1 for y in inner):
            return x.owner.op.make_node(*inner).outputs[x.owner.outputs.index(x)]
    return x


@node_rewriter([CircuitRowsRV])
def compiled_rows(fgraph, node) -> list | None:
    """Return the outputs of the op that stands for a block's rows, None for a form that it does not know."""
    if type(node.op) is not CircuitRowsRV:
        return None  # rows of groups have a weight for each group
    rng, size, missing, *given = node.inputs
    kind = node.outputs[1].type
    log_weight, theta = map(_unexpanded, given)
    is_whole = isinstance(size.type, NoneTypeT)
    if not node.op.inplace or is_whole or kind.ndim != 2 or log_weight.type.ndim != 1 or theta.type.ndim != 1:
        return None
    return DrawnRows(kind, node.op.frozen).make_node(rng, _only(size), missing, log_weight, theta).outputs


# --- variables


def _is_number(x: Variable) -> bool:
    """Return whether a variable is a real number or a vector of known length."""
    kind = x.type
    return isinstance(kind, TensorType) and kind.dtype == "float64" and kind.ndim <= 1 and None not in kind.shape


def _source(x: Variable) -> Variable:
    """Return the number that was made a vector of one, or repeated to a longer one; else x."""
    made = x.owner is not None and isinstance(x.owner.op, DimShuffle | Alloc) and x.owner.inputs[0].type.ndim == 0
    return x.owner.inputs[0] if made and _is_number(x.owner.inputs[0]) else x


def _is_held(x: Variable) -> bool:
    """Return whether a tape holds a constant itself; a longer one is an argument."""
    return isinstance(x, Constant) and x.type.ndim <= 1 and x.data.size <= _LARGEST_CONSTANT


def _arguments(node: Apply) -> list[Variable] | None:
    """Return what a step reads of what was computed or drawn; None where a node cannot be a step of a tape."""
    op, out = node.op, node.outputs[-1]
    if not all(x.type.ndim == 1 and _is_number(x) for x in node.outputs if isinstance(x.type, TensorType)):
        return None
    match op:
        case ours.SegmentDirichletRV() | BlockVariable() | ours.TruncatedRV():
            if not op.inplace or _number(op) is None:
                return None
            given = [_source(x) for x in node.inputs[2:]]
            if not all(x.type.shape in ((), (1,), out.type.shape) for x in given):
                return None
        case Elemwise():
            if not steps.knows(op.scalar_op):
                return None
            given = [_source(x) for x in node.inputs]
        case AdvancedSubtensor():
            x, *places = node.inputs
            if x.type.ndim != 1 or not _is_number(x) or not _are_places(places, x.type.shape[0]):
                return None
            given = [x]
        case Placed():
            given = [node.inputs[0], *node.inputs[2:]]
            if out.type.shape[0] > _LARGEST_TAKEN:
                return None
        case _:
            return None
    return given if all(_is_held(x) or _is_number(x) for x in given) else None


def _are_places(index: list[Variable], size: int) -> bool:
    """Return whether an index is of places that a vector of some size has, as a tape holds them."""
    if len(index) != 1 or not isinstance(index[0], Constant):
        return False
    places = np.asarray(index[0].data)
    is_known = places.dtype.kind in "iu" and places.ndim == 1 and places.size <= _LARGEST_TAKEN
    return is_known and bool(np.all((places >= 0) & (places < size)))


def _number(op: Op) -> int | None:
    """Return the step that draws from a distribution of a block; None for one of the user's."""
    if isinstance(op, ours.SegmentDirichletRV):
        return steps.SEGMENTS
    # PyTensor's code for a distribution of the user's is as good
    return next((number for kind, number in steps.NUMBERS.items() if isinstance(op, kind)), None)


class _DrawsOnTapes(GraphRewriter):
    """Put what draws a block's variables, and what stands between them, into one op."""

    def apply(self, fgraph: FunctionGraph) -> None:
        order = fgraph.toposort()
        able = {node for node in order if _arguments(node) is not None}
        generation = _generations(order, able)
        wanted: set[Apply] = set()
        for node in reversed(order):
            clients = [client for x in node.outputs for client, _ in fgraph.clients[x]]
            if node in able and (
                not isinstance(node.op, Elemwise | AdvancedSubtensor | Placed)
                or any(isinstance(client.op, DrawnRows) for client in clients)
                or any(client in wanted and generation[client] == generation[node] for client in clients)
            ):
                wanted.add(node)
        for number in sorted({generation[node] for node in wanted}):
            chosen = [node for node in order if node in wanted and generation[node] == number]
            try:
                fgraph.replace_all_validate(_on_a_tape(fgraph, chosen), reason=NAME)
            except InconsistencyError:
                # an argument is computed in the place of another one: PyTensor draws each variable for itself
                continue


def _generations(order: list[Apply], able: set[Apply]) -> dict[Apply, int]:
    """Return how many tapes have to be done before each node; of one number, none waits for what is no step."""
    found: dict[Apply, int] = {}
    for node in order:
        behind = 0
        for x in node.inputs:
            if x.owner is not None:
                # a generator that a draw has moved on comes from a tape that is done, too
                on_tape = x.owner in able
                same = on_tape and node in able and isinstance(x.type, TensorType)
                behind = max(behind, found[x.owner] + (on_tape and not same))
        found[node] = behind
    return found


def _on_a_tape(fgraph: FunctionGraph, nodes: list[Apply]) -> list[tuple[Variable, Variable]]:
    """Return, for nodes in order, each output that is used elsewhere and what takes its place."""
    writer = TapeWriter()
    spans: dict[Variable, Span] = {}
    given: dict[Variable, Span] = {}
    generators: list[Variable] = []
    ends: list[int] = []

    def span(x: Variable) -> Span:
        if _is_held(x):
            return writer.constant(x.data)
        if x not in spans:
            spans[x] = given[x] = writer.span(x.type.shape[0] if x.type.ndim else 1)
        return spans[x]

    for node in nodes:
        # of a tape that is done, arguments are others by now
        operands = [span(x) for x in _arguments(node) or []]
        n = node.outputs[-1].type.shape[0]
        if isinstance(node.op, Elemwise):
            spans.update(zip(node.outputs, writer.elementwise(node.op.scalar_op, n, operands), strict=True))
            continue
        if isinstance(node.op, AdvancedSubtensor):
            places = operands[0].begin + np.asarray(node.inputs[1].data, np.int64)
            spans[node.outputs[0]] = writer.step(steps.TAKE, n, writer.place(places))
            continue
        if isinstance(node.op, Placed):
            joined = np.concatenate([operand.begin + np.arange(operand.size) for operand in operands])
            spans[node.outputs[0]] = writer.step(steps.TAKE, n, writer.place(joined[node.inputs[1].data]))
            continue
        if isinstance(node.op, ours.SegmentDirichletRV):
            operands.append(writer.place(node.op.segments.ptr))
        spans[node.outputs[1]] = writer.step(_number(node.op), n, *operands)
        generators.append(node.inputs[0])
        ends.append(len(writer.steps))
    inside = set(nodes)
    used = [
        x
        for node in nodes
        for x in node.outputs
        if x in spans and any(client not in inside for client, _ in fgraph.clients[x])
    ]
    frozen = FrozenTape(writer.tape(), writer.n_open, tuple(ends), tuple(given.values()), tuple(spans[x] for x in used))
    new = DrawnVariables(frozen)(*generators, *given, return_list=True)
    moved = [node.outputs[0] for node in nodes if node.outputs[0] not in spans]
    return list(zip(moved + used, new, strict=True))


def register_draws() -> None:
    """Add the rewrites to PyTensor's numba mode; once, however often it is called."""
    if NAME not in optdb:
        optdb.register(f"{NAME}_of_rows", dfs_rewriter(compiled_rows), "numba", position=_BEHIND_INPLACE)
        optdb.register(NAME, _DrawsOnTapes(), "numba", position=_BEHIND_INPLACE + 0.1)
