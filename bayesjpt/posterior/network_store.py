"""Saved ensembles of cutset networks: what draws are made from in place of draws, and checks of it.

      array    |network 0 |network 1     |network 2 |       arrays of all networks, one behind the other
      length    9          21             15                how long each is

A network with its counts takes about six bytes a table entry; its circuit takes thirty, and each draw eight more. What
is read may come from anywhere, and kernels check nothing: so parts have to be numbered as a walk from the root meets
them, trees to hold the columns that no split above decides, and parents to be no circle. Draws are made again by the
version that reads the file.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.circuit.bdeu import BDeu
from bayesjpt.circuit.networks import Network, groups_of, table_pointers
from bayesjpt.errors import FitFileError
from bayesjpt.posterior.networks import NetworkDraws, in_few_bytes
from bayesjpt.posterior.stacked import StackedPosterior
from bayesjpt.table.schema import Schema
from bayesjpt.table.table import Table

if TYPE_CHECKING:
    from bayesjpt.posterior.hdf5 import SafeFile
    from bayesjpt.posterior.tree import Tree

FORMAT = "bayesjpt fit of cutset networks 1"

MAX_DRAWS = 200
"""Draws of a network, of all its chains: they take memory that the file does not, up to 300 times the counts'."""

_DTYPES = {
    "split": np.int32,
    "way_ptr": np.int64,
    "way": np.int32,
    "tree_ptr": np.int64,
    "column": np.int16,
    "parent": np.int16,
    "count": np.int32,
    "draws": np.int64,
}
"""Arrays of each network; where its tables begin follows from them."""


def networks_of(post: StackedPosterior) -> list[NetworkDraws] | None:
    """Return the networks of an ensemble that keeps no draws; None of others, and of more draws than `MAX_DRAWS`."""
    found = [one for one in post.members() if isinstance(one, NetworkDraws)]
    if len(found) < len(post.members()) or max(one.n_chain * one.n_draw for one in found) > MAX_DRAWS:
        return None
    return found


def arrays_of(networks: list[NetworkDraws]) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Return the arrays that are written, each with the names of its axes."""
    by_network = [one.network._asdict() | {"count": one.count, "draws": one.draws} for one in networks]
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {
        name: ((f"{name}_dim",), np.concatenate([each[name] for each in by_network]).astype(dtype))
        for name, dtype in _DTYPES.items()
    }
    return arrays | {
        "length": (("structure", "array"), np.array([[each[n].size for n in _DTYPES] for each in by_network]))
    }


def attributes_of(networks: list[NetworkDraws]) -> dict[str, str]:
    """Return what is written beside the arrays, as JSON."""
    facts = [{"seed": one.seed, "ess": _written(one.ess)} for one in networks]
    return {"arrays": json.dumps(list(_DTYPES)), "networks": json.dumps(facts)}


_DIVIDED = "divided"
"""What imaginary rows are called that all sums of a circuit divide."""


def _written(ess: float | BDeu | None) -> float | dict[str, float] | None:
    """Return imaginary rows as JSON has them."""
    return {_DIVIDED: float(ess.rows)} if isinstance(ess, BDeu) else ess


def read_networks(
    file: SafeFile | Tree, group: str, schema: Schema, reference: Table | None, settings: list[dict[str, Any]]
) -> list[NetworkDraws]:
    """Return the networks in a group of a file.

    Raises
    ------
    FitFileError
        Where what is there is no network of these columns.
    """
    n_group = groups_of(schema)
    if n_group is None or file.json(group, "arrays") != list(_DTYPES):
        raise FitFileError("columns of numbers, or other arrays than those of this version", ", ".join(_DTYPES))
    facts, n_chain = file.json(group, "networks"), file.json(group, "n_chain")
    length = np.asarray(file.array(f"{group}/length", (len(facts), len(_DTYPES))))
    if type(n_chain) is not int or n_chain < 1 or len(settings) != len(facts):
        raise FitFileError("chains or settings that do not fit the networks", "one chain at least, settings of each")
    if length.dtype.kind not in "iu" or (length < 0).any():
        raise FitFileError("lengths of arrays that are no numbers from 0", "whole numbers")
    parts = []
    for k, (name, dtype) in enumerate(_DTYPES.items()):
        array = file.array(f"{group}/{name}")
        typed = array.astype(dtype) if array.dtype.kind in "iu" else np.empty(0, dtype)
        if array.ndim != 1 or array.size != sum(length[:, k].tolist()) or not np.array_equal(typed, array):
            raise FitFileError(f"array {name!r} of other numbers or of another length", f"{np.dtype(dtype)}")
        parts.append(np.split(typed, np.cumsum(length[:-1, k])))
    found = []
    for network_arrays, fact, noted in zip(zip(*parts, strict=True), facts, settings, strict=True):
        arrays = dict(zip(_DTYPES, network_arrays, strict=True))
        count, draws = arrays.pop("count"), arrays.pop("draws")
        network = checked_network(arrays, n_group)
        if count.size != network.n_entry or (count < 0).any():
            raise FitFileError("counts that do not fit the tables, or below 0", f"{network.n_entry} numbers from 0")
        if not 0 < draws.size * n_chain <= MAX_DRAWS or (draws < 0).any():
            raise FitFileError(f"{draws.size} draws of {n_chain} chains, or numbers below 0", f"1 to {MAX_DRAWS}")
        seed, written = fact["seed"], fact["ess"]
        is_divided = isinstance(written, dict) and list(written) == [_DIVIDED]
        rows: Any = written[_DIVIDED] if is_divided else written
        is_number = isinstance(rows, float) and 0.0 < rows < np.inf
        if type(seed) is not int or seed < 0 or not (is_number or written is None):
            raise FitFileError(f"seed {seed!r} or imaginary rows {written!r}", "a number from 0, and one above 0")
        ess = None if written is None else BDeu(float(rows)) if is_divided else float(rows)
        found.append(NetworkDraws(network, in_few_bytes(count), ess, schema, seed, n_chain, draws, reference, noted))
    return found


def checked_network(arrays: dict[str, np.ndarray], n_group: np.ndarray) -> Network:
    """Return a network of arrays that may come from anywhere; cost: parts times columns.

    Raises
    ------
    FitFileError
        Unless parts are numbered as a walk meets them, each with one part above it, a split has a way for each group of
        a column that no split above decides, and a tree the other columns, ascending, without circles.
    """
    split, way_ptr, way, tree_ptr = (arrays[name] for name in ("split", "way_ptr", "way", "tree_ptr"))
    column, parent = arrays["column"], arrays["parent"]
    n_part, n_column = split.size, n_group.size
    is_split = split >= 0
    _require(n_part > 0 and (split >= -1).all() and (split < n_column).all(), "splits by columns that are not there")
    n_way = np.where(is_split, n_group[np.maximum(split, 0)], 0)
    _require(_points(way_ptr, n_part, way.size) and np.array_equal(np.diff(way_ptr), n_way), "ways that do not fit")
    _require(_points(tree_ptr, n_part, column.size) and parent.size == column.size, "trees that do not fit")
    _require((np.diff(tree_ptr)[is_split] == 0).all(), "a part with a split and a tree")
    _check_walk(split, way_ptr, way)
    is_decided = np.zeros(n_column, bool)
    path: list[tuple[int, int]] = []  # splits above, each with the ways that are left
    for part in range(n_part):
        if is_split[part]:
            _require(not is_decided[split[part]], "a column that is split twice on one path")
            is_decided[split[part]] = True
            path.append((part, int(n_way[part])))
            continue
        first, last = tree_ptr[part], tree_ptr[part + 1]
        _require(np.array_equal(column[first:last], np.flatnonzero(~is_decided)), "a tree of other columns")
        tree_parent = parent[first:last]
        _require(((tree_parent >= -1) & (tree_parent < last - first)).all(), "a parent that is not in the tree")
        while path:
            above, n_left = path.pop()
            if n_left > 1:
                path.append((above, n_left - 1))
                break
            is_decided[split[above]] = False
    _check_no_circle(tree_ptr, parent, n_column)
    table_ptr = table_pointers(tree_ptr, column, parent, n_group, way.size)
    return Network(split, way_ptr, way, tree_ptr, column, parent, table_ptr, n_group)


def _require(holds: bool | np.bool_, found: str) -> None:
    if not holds:
        raise FitFileError(found, "a cutset network of these columns")


def _points(ptr: np.ndarray, n: int, size: int) -> bool:
    """Return whether n + 1 pointers ascend from 0 to a size."""
    return ptr.size == n + 1 and ptr[0] == 0 and ptr[-1] == size and bool((np.diff(ptr) >= 0).all())


def _check_walk(split: np.ndarray, way_ptr: np.ndarray, way: np.ndarray) -> None:
    """Raise unless the first part below a split follows it, and each other one what lies below the one before."""
    size = np.ones(split.size, np.int64)
    for part in np.flatnonzero(split >= 0)[::-1].tolist():
        following = part + 1
        for below in way[way_ptr[part] : way_ptr[part + 1]].tolist():
            _require(below == following < split.size, "parts in another order than that of a walk")
            following += int(size[below])
        size[part] = following - part
    _require(size[0] == split.size, "parts that the root does not reach")


def _check_no_circle(tree_ptr: np.ndarray, parent: np.ndarray, n_column: int) -> None:
    """Raise unless each place of a tree comes to a root, going up: after k steps it has gone 2^k places."""
    first = np.repeat(tree_ptr[:-1], np.diff(tree_ptr))
    above = np.append(np.where(parent >= 0, first + parent, parent.size), parent.size)
    for _ in range(int(n_column).bit_length()):
        above = above[above]
    _require((above == parent.size).all(), "a tree whose parents go round in a circle")
