"""A block's draws as a list of steps over one flat memory, the tape: what runs it is compiled once, for all blocks.

      memory | arguments | x_normal_scale | taken[...] * shape | x_normal_variance | ... | constants |
                           step 0: a draw   step 1: arithmetic   step 2: a draw

Each step reads vectors of the memory, or numbers that serve for all entries, and writes one vector behind them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from pytensor import scalar
from pytensor.graph.basic import Constant, Variable
from pytensor.scalar.basic import Composite, ScalarOp
from pytensor.tensor.random.basic import BetaRV, GammaRV, NormalRV
from pytensor.tensor.random.op import RandomVariable

from bayesjpt.model import distributions as ours
from bayesjpt.model.truncated_beta import FlooredBetaRV, draw_beta
from bayesjpt.numerics.apart import apart
from bayesjpt.numerics.borrowed import by_address
from bayesjpt.numerics.jit import kernel

NUMBERS: dict[type[RandomVariable], int] = {
    NormalRV: 0,
    GammaRV: 1,
    BetaRV: 2,
    ours.FlooredInverseGammaRV: 3,
    ours.FlooredGammaRV: 4,
    ours.CappedGammaRV: 5,
    ours.CappedLogNormalRV: 6,
    ours.CappedNormalRV: 7,
    FlooredBetaRV: 8,
}
"""By which `draw_parameter` knows a distribution."""

ARITHMETIC: dict[type[ScalarOp], int] = {
    scalar.Add: 0,
    scalar.Sub: 1,
    scalar.Mul: 2,
    scalar.TrueDiv: 3,
    scalar.ScalarMaximum: 4,
    scalar.ScalarMinimum: 5,
    scalar.Log: 6,
    scalar.Exp: 7,
    scalar.Sqrt: 8,
    scalar.Abs: 9,
    scalar.Neg: 10,
    scalar.Reciprocal: 11,
    scalar.Sqr: 12,
}
"""By which `arithmetic` knows an operation; sums and products of more than two operands are several steps."""

TAKE = -1
"""The step that takes entries of the memory at places; it has the first in the column of its first operand."""
SEGMENTS = -2
"""The step that draws one simplex a segment; its second operand is of offsets, among the places."""

WHAT, AT, N, FIRST = 0, 1, 2, 3
"""Columns of a step: what it does, where its vector begins, how many entries; then begin and size of each operand."""
_N_OPERAND = 3
_FIRST_CONSTANT = 1 << 40
"""Where constants begin until it is known where they do: behind all else."""


@by_address
class Tape(NamedTuple):
    """What a block's draws are made by.

    Parameters
    ----------
    steps : int64 (n_step, 9)
        A step a row, by the columns `WHAT`, `AT`, `N`, and begin and size of three operands.
    constants : float64 (n_constant,)
        The end of the memory.
    places : int32 (n_place,)
        Places in the memory, and offsets of segments.
    """

    steps: np.ndarray
    constants: np.ndarray
    places: np.ndarray


@kernel
def arithmetic(what, x, y):
    """Return the result of an operation of a number of `ARITHMETIC`; those of one operand leave out y."""
    if what == 0:
        return x + y
    if what == 1:
        return x - y
    if what == 2:
        return x * y
    if what == 3:
        return x / y
    if what == 4:
        return np.maximum(x, y)  # NaN where either is, as PyTensor has it
    if what == 5:
        return np.minimum(x, y)
    if what == 6:
        return np.log(x)
    if what == 7:
        return np.exp(x)
    if what == 8:
        return np.sqrt(x)
    if what == 9:
        return np.abs(x)
    if what == 10:
        return -x
    if what == 11:
        return 1.0 / x
    return x * x


@apart
@kernel
def draw_parameter(number, first, second, limit, rng):
    """Return a draw of the distribution of a number of `NUMBERS`; `limit` is for those that are truncated."""
    if number == 0:
        return rng.normal(first, second)
    if number == 1:
        return rng.gamma(first, second)
    if number == 2:
        return rng.beta(first, second)
    if number == 3:
        return ours.draw_inverse_gamma_above(rng, first, second, limit)
    if number == 4:
        return ours.draw_gamma_above(rng, first, second, limit)
    if number == 5:
        return ours.draw_gamma_below(rng, first, second, limit)
    if number == 6:
        return ours.draw_log_normal_below(rng, first, second, limit)
    if number == 7:
        return ours.draw_normal_below(rng, first, second, limit)
    return draw_beta(rng, first, second, limit)


@apart
@kernel
def begin(tape, n):
    """Return a memory before the first step, float64: n entries that are still open, then the constants."""
    memory = np.empty(n + tape.constants.size)
    memory[n:] = tape.constants
    return memory


@apart
@kernel
def calculate(tape, lo, hi, memory):
    """Run steps lo to hi, none of which draws."""
    for k in range(lo, hi):
        what, at, n = tape.steps[k, WHAT], tape.steps[k, AT], tape.steps[k, N]
        a, n_a, b, n_b = tape.steps[k, 3], tape.steps[k, 4], tape.steps[k, 5], tape.steps[k, 6]
        for i in range(n):
            if what == TAKE:
                memory[at + i] = memory[tape.places[a + i]]
            else:
                # an operand of size one serves for all entries
                memory[at + i] = arithmetic(what, memory[a + min(i, n_a - 1)], memory[b + min(i, n_b - 1)])


@apart
@kernel
def draw(tape, lo, hi, memory, rng):
    """Run steps lo to hi, the last of which draws."""
    calculate(tape, lo, hi - 1, memory)
    what, at, n, a, n_a, b, n_b, c, n_c = tape.steps[hi - 1]
    if what == SEGMENTS:
        concentration = memory[a : a + n_a]
        if n_a != n:
            concentration = np.full(n, memory[a])
        ours.fill_segments(concentration, tape.places[b : b + n_b], memory[at : at + n], rng)
        return
    for i in range(n):
        x, y, limit = memory[a + min(i, n_a - 1)], memory[b + min(i, n_b - 1)], memory[c + min(i, n_c - 1)]
        memory[at + i] = draw_parameter(what, x, y, limit, rng)


class Span(NamedTuple):
    """A vector in the memory: where it begins and how many entries it has."""

    begin: int
    size: int


class TapeWriter:
    """What a tape is written with, step by step."""

    def __init__(self):
        self.steps: list[list[int]] = []
        self.places: list[np.ndarray] = []
        self.n_open = 0
        self._constants: dict[bytes, Span] = {}
        self._n_constant = self._n_place = 0

    def span(self, size: int) -> Span:
        """Return a new vector of the memory."""
        self.n_open += size
        return Span(self.n_open - size, size)

    def constant(self, value: Any) -> Span:
        """Return the vector of a constant, which stands once in the memory, however often it is asked for."""
        value = np.asarray(value, np.float64).ravel()
        key = value.tobytes()
        if key not in self._constants:
            self._constants[key] = Span(_FIRST_CONSTANT + self._n_constant, value.size)
            self._n_constant += value.size
        return self._constants[key]

    def place(self, places: np.ndarray) -> Span:
        """Return where places, or offsets, stand among all."""
        self.places.append(np.asarray(places, np.int64))
        self._n_place += len(places)
        return Span(self._n_place - len(places), len(places))

    def step(self, what: int, n: int, *operands: Span) -> Span:
        """Write a step and return its vector; operands that it does not have are its first one."""
        out = self.span(n)
        operands += operands[:1] * (_N_OPERAND - len(operands))
        self.steps.append([what, out.begin, n, *(number for operand in operands for number in operand)])
        return out

    def elementwise(self, op: ScalarOp, n: int, operands: list[Span]) -> list[Span]:
        """Write the steps of an operation on vectors of n entries, or of one, and return its outputs."""
        if isinstance(op, Composite):
            found: dict[Variable, Span] = dict(zip(op.fgraph.inputs, operands, strict=True))
            for node in op.fgraph.toposort():
                found.update({x: self.constant(x.data) for x in node.inputs if isinstance(x, Constant)})
                inputs = [found[x] for x in node.inputs]
                found.update(zip(node.outputs, self.elementwise(node.op, n, inputs), strict=True))
            return [found[x] for x in op.fgraph.outputs]
        what, first, *others = ARITHMETIC[type(op)], *operands
        if not others:
            return [self.step(what, n, first)]
        for other in others:
            first = self.step(what, n, first, other)
        return [first]

    def tape(self) -> Tape:
        """Return what was written."""
        steps = np.array(self.steps, np.int64).reshape(-1, FIRST + 2 * _N_OPERAND)
        places = np.concatenate(self.places or [np.zeros(0, np.int64)])
        for array in (steps, places):
            array[array >= _FIRST_CONSTANT] += self.n_open - _FIRST_CONSTANT
        return Tape(steps, np.frombuffer(b"".join(self._constants), np.float64), places.astype(np.int32))


def knows(op: ScalarOp) -> bool:
    """Return whether steps can say an operation."""
    if isinstance(op, Composite):
        return all(knows(node.op) for node in op.fgraph.toposort())
    return type(op) in ARITHMETIC
