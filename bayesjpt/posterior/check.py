"""Whether what a file holds fits together, before a kernel that checks nothing reads it.

Columns against themselves, a circuit against its columns, draws against the circuit. Knows nothing of files.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.circuit.check import check_circuit, check_leaves_fit, check_tables
from bayesjpt.circuit.check_values import WEIGHT_TOLERANCE, check_values
from bayesjpt.circuit.layout import make_layout
from bayesjpt.errors import CircuitError, FitFileError
from bayesjpt.table.schema import Column, Schema
from bayesjpt.table.table import Table

DTYPES = {
    "kind": np.int8,
    "leaf_family": np.int16,
    "cell": np.float64,
    "const": np.float64,
    "start_log_weight": np.float64,
    "start_theta": np.float64,
}
"""Of the circuit's arrays; all others are int32."""


def _fail(found: str, expected: str) -> None:
    raise FitFileError(found, expected)


def check_columns(schema: Schema) -> None:
    """Raise `FitFileError` unless the numbers of every column make sense."""
    if not len(schema):
        _fail("a schema without columns", "at least one column")
    repeated = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if repeated:
        _fail(f"several columns called {repeated[0]!r}", "a name of its own for each")
    for column in schema:
        _check_column(column)


def _check_column(column: Column) -> None:
    where = f"column {column.name!r}"
    positive = (column.scale, column.resolution)
    finite = (column.location, column.mean, column.mean_without_atoms, column.deviation_without_atoms)
    if not (np.isfinite(positive).all() and min(positive) > 0.0 and np.isfinite(finite).all()):
        _fail(f"{where} has a scale or resolution that is not positive, or a location that is not finite", "numbers")
    if not column.support[0] <= column.support[1]:
        _fail(f"{where} has the support {column.support}", "two bounds in ascending order")
    n_share = column.n_label if column.base == "category" else len(column.levels)
    shares = np.array(column.frequencies)
    if shares.size != n_share or not (np.isfinite(shares).all() and (shares > 0.0).all()):
        _fail(f"{where} has {shares.size} frequencies, or some that are not positive", f"{n_share} positive ones")
    if len(set(column.labels)) != len(column.labels) or (np.diff(column.levels) <= 0.0).any():
        _fail(f"{where} has labels or levels that repeat", "distinct ones")
    _check_atoms(where, column)
    _check_heaps(where, column)


def _check_atoms(where: str, column: Column) -> None:
    atoms, shares = np.array(column.atoms), np.array(column.atom_frequencies)
    if atoms.size and column.base != "real":
        _fail(f"{where} has atoms, and the base {column.base!r}", "base 'real'")
    inside = np.isfinite(atoms) & (atoms >= column.support[0]) & (atoms <= column.support[1])
    if not inside.all() or (np.diff(atoms) <= 0.0).any():
        _fail(f"{where} has atoms that repeat, or lie outside its support", "ascending numbers of the support")
    if shares.size != atoms.size or not (np.isfinite(shares).all() and (shares > 0.0).all()):
        _fail(
            f"{where} has {shares.size} atom frequencies, or some that are not positive", f"{atoms.size} positive ones"
        )


def _check_heaps(where: str, column: Column) -> None:
    ends, shifts = np.array(column.cell_ends), np.array(column.cell_shifts)
    if ends.size and column.base != "real":
        _fail(f"{where} has ends of cells, and the base {column.base!r}", "base 'real'")
    if ends.size != shifts.size or not np.isfinite([*ends, *shifts]).all():
        _fail(f"{where} has {ends.size} ends of cells and {shifts.size} shifts, or some not finite", "as many of both")
    if (np.diff(ends) <= 0.0).any() or (np.diff(ends + shifts) <= 0.0).any():
        _fail(f"{where} has ends of cells that do not ascend", "ascending ends")


def checked_circuit(arrays: dict[str, np.ndarray], schema: Schema) -> Circuit:
    """Return a Circuit of arrays that may come from anywhere, or raise `FitFileError` or `CircuitError`.

    Parameters
    ----------
    arrays : dict from str to array
        One entry a field of Circuit, in any numeric dtype that holds the numbers exactly.
    schema : Schema
    """
    typed = {}
    for name in Circuit._fields:
        dtype = np.dtype(DTYPES.get(name, np.int32))
        array = np.asarray(arrays[name])
        if array.ndim != 1 or array.dtype.kind not in ("fiu" if dtype.kind == "f" else "iu"):
            _fail(f"array {name!r} of the circuit is {array.dtype} with {array.ndim} axes", f"{dtype} with one axis")
        typed[name] = array.astype(dtype)
        if not np.array_equal(typed[name], array):
            _fail(f"array {name!r} of the circuit holds numbers out of range", f"{dtype}")
    circuit = Circuit(**typed)
    check_tables(circuit, len(schema))  # before anything is made whose size a number of the file says
    check_leaves_fit(circuit, schema)  # constants are read by what comes next
    check_circuit(circuit, len(schema))
    return circuit


def check_draws(params: Params, circuit: Circuit, schema: Schema) -> None:
    """Raise `FitFileError` unless draws, (n_chain, n_draw, ...), are weights and parameters that a sampler can give.

    And unless the learner's estimate, in a circuit of `checked_circuit`, is.
    """
    for name, array, size in zip(Params._fields, params, (circuit.n_edge, circuit.n_theta), strict=True):
        if array.ndim != 3 or array.shape[-1] != size or 0 in array.shape[:2]:
            _fail(f"draws of {name} with shape {array.shape}", f"(chains, draws, {size}), at least one of each")
    if params.log_weight.shape[:2] != params.theta.shape[:2]:
        _fail("different numbers of draws of weights and of parameters", "the same")
    layout = make_layout(circuit, schema)
    for each in (Params(circuit.start_log_weight, circuit.start_theta), params):
        try:
            check_values(layout, each)
        except CircuitError as error:
            _fail(error.found, error.expected or "")


def check_weights(weights: np.ndarray) -> None:
    """Raise `FitFileError` unless weights of structures are positive and add up to one."""
    if (
        weights.ndim != 1
        or not weights.size
        or not (weights > 0.0).all()
        or abs(weights.sum() - 1.0) > WEIGHT_TOLERANCE
    ):
        _fail("weights of structures that are no shares of one", "positive ones that add up to one")


def check_sizes(shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise `FitFileError` unless arrays of these shapes can be a circuit and the log weights of its draws."""
    for name in Circuit._fields:
        if len(shapes[name]) != 1:
            _fail(f"array {name!r} of the circuit has shape {shapes[name]}", "one axis")
    n_node, n_edge, n_leaf = (shapes[name][0] for name in ("kind", "child", "leaf_family"))
    expected = {"child_ptr": n_node + 1, "leaf_of": n_node, "start_log_weight": n_edge}
    expected |= dict.fromkeys(("leaf_var", "leaf_cell", "theta_at", "theta_len", "const_at", "const_len"), n_leaf)
    for name, size in expected.items():
        if shapes[name] != (size,):
            _fail(f"array {name!r} of the circuit has shape {shapes[name]}", f"({size},)")
    if len(shapes["log_weight"]) != 3 or shapes["log_weight"][2] != n_edge or 0 in shapes["log_weight"][:2]:
        _fail(f"log weights of shape {shapes['log_weight']}", f"(chains, draws, {n_edge}), at least one of each")


def check_lengths(
    shapes: Mapping[str, tuple[int, ...]], length: np.ndarray, n_draw: np.ndarray, n_chain: object
) -> None:
    """Raise `FitFileError` unless arrays are cut into one part for each structure, each with some draws.

    Parameters
    ----------
    shapes : mapping from str to tuple of int
        Of the circuits' arrays and then the draws, end to end.
    length : int (n_structure, n_array)
        Of each structure's part of each.
    n_draw : int (n_structure,)
    n_chain : object
        What the file says.
    """
    if not all(array.dtype.kind in "iu" for array in (length, n_draw)):
        _fail("lengths that are no whole numbers", "whole numbers")
    if type(n_chain) is not int or n_chain < 1:
        _fail(f"{n_chain!r} chains", "a number from 1")
    sizes = [shape[0] if len(shape) == 1 else -1 for shape in shapes.values()]
    # as Python's numbers, which do not overflow
    sums = [sum(column) for column in length.T.tolist()]
    if (length < 0).any() or sums != sizes or (n_draw < 1).any():
        _fail("structures whose lengths do not add up, or without draws", "all numbers of each array, once")
    names = list(shapes)
    for number, row in enumerate(length.tolist()):
        size_of = dict(zip(names, row, strict=True))
        n_kept = n_chain * int(n_draw[number])  # pyright: ignore[reportOperatorIssue] - an int
        check_sizes({name: (size,) for name, size in size_of.items()} | {"log_weight": (1, 1, size_of["child"])})
        for name, size in (("log_weight", size_of["child"]), ("theta", size_of["start_theta"])):
            if size_of[name] != n_kept * size:
                _fail(f"{size_of[name]} numbers of {name!r} in structure {number}", f"{n_kept} draws of {size}")


def check_cells(table: Table) -> None:
    """Raise `FitFileError` unless every cell of a table is a number that its column can hold."""
    for column, values in zip(table.schema, table.values, strict=True):
        lo, hi = column.support
        fits = np.isfinite(values) & (values >= lo) & (values <= hi)
        if column.base != "real":
            fits &= values == np.rint(values)
        if not fits.all():
            _fail(f"a cell of column {column.name!r} holds {values[~fits][0]:g}", "a value that the column can hold")
