"""A block's draws as steps of a tape: each operation against PyTensor's own, and what stays outside."""

from __future__ import annotations

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import scalar
from pytensor.scalar.basic import Composite
from pytensor.tensor.elemwise import Elemwise

from bayesjpt.model import distributions
from bayesjpt.model import tape as steps
from bayesjpt.model.compiled_draws import _LARGEST_CONSTANT, _LARGEST_TAKEN, DrawnVariables
from bayesjpt.model.flat_vectors import placed
from bayesjpt.model.tape import ARITHMETIC, TapeWriter, knows

LAST_BITS = 1e-14
"""Relative; NumPy and numba round differently inside a gamma draw."""
VALUES = np.array([-np.inf, -2.5, -0.0, 0.0, 1e-300, 0.7, 3.0, 1e300, np.inf, np.nan])


def uniforms(n: int, **kwargs) -> pt.TensorVariable:
    """Return a random variable of a block."""
    return distributions.FlooredGamma.dist(2.0, 1.5, 0.25, shape=(n,), **kwargs)


def drawn(outputs, mode, seed=3) -> list[np.ndarray]:
    """Return values of variables, all drawn at once."""
    return pm.pytensorf.compile([], outputs, mode=mode, random_seed=seed)()


def on_tapes(outputs, inputs=()) -> list[DrawnVariables]:
    """Return the ops of tapes in a function of PyTensor's numba mode."""
    function = pm.pytensorf.compile(list(inputs), outputs, mode="NUMBA")
    return [node.op for node in function.maker.fgraph.toposort() if isinstance(node.op, DrawnVariables)]


def assert_same(outputs, n_tape: int = 1) -> None:
    """Assert that compiled draws are those in Python, from so many tapes."""
    assert len(on_tapes(outputs)) == n_tape
    for found, plain in zip(drawn(outputs, "NUMBA"), drawn(outputs, "FAST_COMPILE"), strict=True):
        assert found.shape == plain.shape
        np.testing.assert_allclose(found, plain, rtol=LAST_BITS, atol=0.0)


def run(op, operands) -> list[np.ndarray]:
    """Return the outputs of an operation on vectors, by steps."""
    writer = TapeWriter()
    outputs = writer.elementwise(op, len(operands[0]), [writer.constant(x) for x in operands])
    tape = writer.tape()
    memory = steps.begin(tape, writer.n_open)
    steps.calculate(tape, 0, len(tape.steps), memory)
    return [memory[out.begin : out.begin + out.size] for out in outputs]


@pytest.mark.parametrize("operation", ARITHMETIC)
def test_operations_are_those_of_pytensor(operation):
    op = operation(scalar.upgrade_to_float) if operation is not scalar.TrueDiv else scalar.true_div
    n_operand = 2 if ARITHMETIC[operation] < ARITHMETIC[scalar.Log] else 1
    operands = [np.ascontiguousarray(side.ravel()) for side in np.meshgrid(VALUES, VALUES)][:n_operand]
    symbols = [pt.vector() for _ in operands]
    function = pytensor.function(symbols, Elemwise(op)(*symbols), mode="FAST_COMPILE")
    with np.errstate(all="ignore"):
        expected = function(*operands)
    (found,) = run(op, operands)
    np.testing.assert_array_max_ulp(found, expected, 1)


def test_composites_are_steps_in_order(rng):
    x, y, z = (scalar.float64(name) for name in "xyz")
    root = scalar.sqrt(scalar.add(x, y, z, scalar.constant(2.0)))
    op = Composite([x, y, z], [scalar.mul(root, x, y), scalar.sub(root, z)])
    assert knows(op)
    a, b, c = rng.random((3, 5))
    first, second = run(op, [a, b, c])
    np.testing.assert_allclose(first, np.sqrt(a + b + c + 2.0) * a * b, rtol=LAST_BITS)
    np.testing.assert_allclose(second, np.sqrt(a + b + c + 2.0) - c, rtol=LAST_BITS)
    assert not knows(Composite([x], [scalar.cosh(x)]))


def test_arithmetic_between_draws_of_several_lengths_is_on_the_tape():
    scale = uniforms(2)
    taken = scale[np.array([0, 1, 1, 0], np.uint8)]
    shape = 1.5 + taken * np.array([1.0, 2.0, 3.0, 4.0]) + pt.exp(-taken)
    rate = pt.sqrt(shape / (2.0 + taken))
    variables = [scale, taken, shape, distributions.FlooredGamma.dist(shape, rate, 0.1), pm.Normal.dist(0.0, rate)]
    assert_same(variables[:-1])


def test_numbers_of_a_user_serve_for_all_entries():
    alpha = pm.HalfNormal.dist(0.5)
    weights = distributions.SegmentDirichlet.dist(pt.full((5,), alpha), ptr=(0, 2, 5))
    assert_same([alpha, weights, distributions.FlooredGamma.dist(alpha, 1.0, 0.0, shape=(3,))])


def test_numbers_of_a_user_are_taken_and_placed_as_often_as_they_are_repeated():
    alpha, repeated = pm.HalfNormal.dist(0.5), uniforms(1)
    for vector in (pt.full((3,), alpha), pt.alloc(repeated, 3), pt.alloc(repeated[0], 3)):
        joined = placed(6, [(np.array([4, 0, 3]), vector), (np.array([1, 5]), uniforms(2))], 0.25)
        taken = vector[np.array([2, 0, 1, 2])]
        draws = [distributions.FlooredGamma.dist(1.0 + x, 1.0, 0.1) for x in (joined, taken)]
        assert_same([*draws, joined, taken], n_tape=2)


def test_places_that_a_vector_does_not_have_are_left_to_pytensor():
    beyond = uniforms(2)[np.array([1, 0, 2, 2])]
    assert len(on_tapes([distributions.FlooredGamma.dist(beyond, 1.0, 0.1)])) == 2


def test_what_no_step_says_stands_between_two_tapes():
    first = uniforms(3)
    between = pt.cumsum(first)
    second = distributions.FlooredGamma.dist(between, 1.0, 0.1)
    beside = distributions.FlooredGamma.dist(first, 1.0, 0.1)
    assert_same([first, between, second, beside], n_tape=2)


def test_long_constants_are_arguments(rng):
    rate = rng.random(_LARGEST_CONSTANT + 1)
    drawn_with = [distributions.FlooredGamma.dist(2.0, x, 0.1) for x in (rate, rate[1:])]
    assert_same(drawn_with)
    assert [[span.size for span in op.frozen.given] for op in on_tapes(drawn_with)] == [[rate.size]]


def test_long_places_stand_between_two_tapes():
    scale = uniforms(2)
    taken = scale[np.arange(_LARGEST_TAKEN + 1) % 2]
    assert_same([scale, distributions.FlooredGamma.dist(2.0, taken, 0.1)], n_tape=2)


def test_a_generator_that_was_moved_on_draws_from_the_next_tape():
    rng = pytensor.shared(np.random.default_rng(1), borrow=False)
    following, first = uniforms(3, rng=rng).owner.outputs
    second = uniforms(3, rng=following)
    last = second.owner.outputs[0]
    answers = []
    for mode in ("NUMBA", "FAST_COMPILE"):
        rng.set_value(np.random.default_rng(1))
        answers.append(pytensor.function([], [first, second], updates={rng: last}, mode=mode)())
    np.testing.assert_allclose(*answers, rtol=LAST_BITS, atol=0.0)
    assert not np.array_equal(*answers[0])


def test_arguments_that_are_computed_in_the_place_of_others_are_read_in_time():
    x = pt.vector(shape=(3,))
    first = distributions.FlooredGamma.dist(x, 1.0, 0.1)
    second = distributions.FlooredGamma.dist(pt.cosh(x), 1.0, 0.1)
    answers = []
    for mode in ("NUMBA", "FAST_COMPILE"):
        taken = pytensor.In(x, mutable=True)
        function = pm.pytensorf.compile([taken], [first, second], mode=mode, random_seed=2)
        answers.append(function(np.array([1.0, 2.0, 3.0])))
        assert not any(isinstance(node.op, DrawnVariables) for node in function.maker.fgraph.apply_nodes)
    np.testing.assert_allclose(*answers, rtol=LAST_BITS, atol=0.0)


def test_batches_are_left_to_pytensor():
    assert not on_tapes([distributions.FlooredGamma.dist(2.0, 1.5, 0.25, shape=(2, 3))])
