"""A tree of gated experts before it has draws: what is explained, by what, and by which experts."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.errors import LearnerError, TableError
from bayesjpt.families import features, registry
from bayesjpt.families.record import Family
from bayesjpt.families.skewed import is_skewed
from bayesjpt.kernels.expert_pairs import Leaves
from bayesjpt.kernels.expert_tree import GAMMA, GAUSSIAN, KIND_NAMES, MULTINOMIAL, POISSON, Task
from bayesjpt.kernels.upward import NARROWEST_CELL
from bayesjpt.table.covariates import Covariates, check_size, spread_of
from bayesjpt.table.heaps import recorded_cells
from bayesjpt.table.schema import Column, Schema, SetAside
from bayesjpt.table.table import Table

KINDS = {name: code for code, name in KIND_NAMES.items()}
LARGEST_DEPTH = 6
LARGEST_TREE = 64
"""Leaves."""
_LEAST_UNIT = 1e-300
"""Of a target: a density in it is a finite number."""


@dataclass(frozen=True, eq=False)
class ExpertModel:
    """What is explained by what.

    Parameters
    ----------
    schema : Schema
        Of the training table. Rows of questions are read under that of the columns in use, `read_schema`.
    targets : tuple of str
    covariates, gate_covariates : Covariates
        Of experts, and of gates; without any, weights are the same for all rows.
    depth : int
        Of the tree, which has 2^depth leaves.
    experts : tuple of str
        The kind of expert of each target.
    offset : float64 (n_target,)
        What is added to each target's linear predictor, in the family's units.
    branches : int
        Ways of each gate.
    """

    schema: Schema
    targets: tuple[str, ...]
    covariates: Covariates
    gate_covariates: Covariates
    depth: int
    experts: tuple[str, ...]
    offset: np.ndarray
    branches: int = 2

    @property
    def n_leaf(self) -> int:
        return self.branches**self.depth

    @property
    def n_gate(self) -> int:
        return (self.n_leaf - 1) // (self.branches - 1)

    @property
    def n_node(self) -> int:
        return self.n_gate + self.n_leaf

    def children(self, gate: int) -> list[int]:
        """Return the numbers of a gate's children, of two the one of negative log odds first."""
        return [self.branches * gate + way for way in range(1, self.branches + 1)]

    def parent(self, number: int) -> int:
        """Return the gate above a node that is not the root."""
        return (number - 1) // self.branches

    def gate_rows(self, gate: int) -> slice:
        """Return which rows of gates' coefficients are a gate's: log odds of each way but the first against it."""
        return slice((self.branches - 1) * gate, (self.branches - 1) * (gate + 1))

    @property
    def covariate_columns(self) -> tuple[str, ...]:
        """The columns that experts or gates look at."""
        return tuple(dict.fromkeys((*self.covariates.columns, *self.gate_covariates.columns)))

    @cached_property
    def response(self) -> Schema:
        """The schema of the targets alone, over which the circuit is."""
        return Schema(tuple(self.schema.columns[self.schema.index(name)] for name in self.targets))

    def read_schema(self, *, targets: bool) -> Schema:
        """Return the schema that rows of a question are read under: of covariates in use, and of targets if asked for.

        Other columns of the training table are excluded: what new rows hold there changes no answer.
        """
        used = {*self.covariate_columns, *(self.targets if targets else ())}
        columns = tuple(column for column in self.schema if column.name in used)
        others = tuple(SetAside(column.name, "not in use") for column in self.schema if column.name not in used)
        return Schema(columns, (*self.schema.set_aside, *others))

    @cached_property
    def kind(self) -> np.ndarray:
        """int8 (n_target,): the experts' codes."""
        return np.array([KINDS[name] for name in self.experts], np.int8)

    @cached_property
    def at(self) -> np.ndarray:
        """int32 (n_target + 1,): which linear predictors belong to each target."""
        n = [len(column.labels) if KINDS[name] == MULTINOMIAL else 1 for column, name in self._pairs]
        return np.concatenate([[0], np.cumsum(n)]).astype(np.int32)

    @property
    def _pairs(self) -> list[tuple[Column, str]]:
        return list(zip(self.response, self.experts, strict=True))

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """The likelihood family of each target's experts."""
        return tuple(registry.family(family_of(name, column)) for column, name in self._pairs)

    @cached_property
    def circuit(self) -> Circuit:
        """A sum over the leaves, each of which is the product of its experts' families."""
        return mixture_circuit(self.response, self.families, self.n_leaf)

    @cached_property
    def leaves(self) -> Leaves:
        """Where the circuit keeps what belongs to each leaf."""
        circuit, shape = self.circuit, (self.n_leaf, len(self.targets))
        # the builder numbers leaves child by child, target by target
        assert (circuit.leaf_var.reshape(shape) == np.arange(shape[1])).all()
        edges = np.flatnonzero(circuit.kind[circuit.edge_parent()] == arrays.LATENT).astype(np.int32)
        other = [column.frequencies[-1] if column.n_label and column.other else -1.0 for column in self.response]
        return Leaves(
            self.kind,
            self.at,
            self.offset,
            np.array(other),
            edges,
            circuit.leaf_family[: shape[1]].astype(np.int64),
            circuit.theta_at.reshape(shape),
            circuit.theta_len.reshape(shape),
            circuit.const_at[: shape[1]].copy(),
            circuit.const_len[: shape[1]].copy(),
            circuit.const,
        )

    def units(self, values: np.ndarray) -> np.ndarray:
        """Return target values, float64 (n_target, n_row), in the families' units."""
        pairs = zip(self.families, self.response, values, strict=True)
        return np.array([features.to_units(family, column, own) for family, column, own in pairs])

    def recorded_ends(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return ends of the cells of recorded values in the families' units, and logs of shares; (n_target, n_row).

        A cell narrower than its ends can tell apart is a wider one, of which it has a share.
        """
        centre, half = recorded_cells(self.response, values)
        z, pairs = self.units(centre), zip(self.families, self.response, half, strict=True)
        half = np.array([own / features.offset_and_scale(family.scaling, column)[1] for family, column, own in pairs])
        reach = np.where(half > 0.0, np.maximum(half, NARROWEST_CELL * np.abs(z)), 0.0)
        share = np.divide(half, reach, out=np.ones(half.shape), where=reach > 0.0)
        return z - reach, z + reach, np.log(share)

    def target_cells(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """Return values and mask of the targets, (n_target, n_row) each."""
        index = [table.schema.index(name) for name in self.targets]
        return np.ascontiguousarray(table.values[index]), np.ascontiguousarray(table.observed[index])

    def task(self, table: Table) -> Task:
        """Return training rows, without missing targets, as kernels take them."""
        values, observed = self.target_cells(table)
        assert observed.all()
        x, gate_x = self.covariates.matrix(table), self.gate_covariates.matrix(table)
        return Task(x, gate_x, self.units(values), self.kind, self.at, self.offset)


def mixture_circuit(schema: Schema, families: Sequence[Family], n_leaf: int) -> Circuit:
    """Return the circuit of a mixture of products of one family for each column; of a single product without a sum."""
    members = dict(zip(schema.names, families, strict=True))
    rows = np.zeros(0, np.int64)

    def product() -> ColumnLeaf | Product:
        leaf = tuple(ColumnLeaf(position, rows) for position in range(len(schema)))
        return leaf[0] if len(leaf) == 1 else Product(leaf)

    root = product() if n_leaf == 1 else Sum(tuple(product() for _ in range(n_leaf)), (0,) * n_leaf)
    values = np.zeros((len(schema), 0))
    table = Table(schema, values, np.ones(values.shape, bool))
    return build_circuit(root, table, lambda column: [members[column.name]])


def family_of(expert: str, column: Column) -> str:
    """Return the name of the likelihood family of an expert's leaves."""
    if expert == "logistic":
        return "bernoulli" if column.other else "categorical"
    return {"gaussian": "normal", "multinomial": "categorical"}.get(expert, expert)


def chosen_expert(column: Column, wanted: str, values: np.ndarray | None = None) -> str:
    """Return the kind of expert of a target; ``auto`` follows what the column is, and its observed values.

    Raises
    ------
    LearnerError
        For an unknown kind, or one that the column's values do not allow.
    """
    if wanted not in (*KINDS, "auto"):
        raise LearnerError(f"experts={wanted!r}", f"auto or one of {', '.join(KINDS)}")
    if column.base == "category":
        fitting = ["logistic", "multinomial"] if len(column.labels) == 2 else ["multinomial"]
        if len(column.labels) < 2:
            raise LearnerError(f"target {column.name!r} has a single label", "two at least")
    elif column.base == "integer":
        fitting = ["poisson", "gaussian"] if column.minimum >= 0.0 else ["gaussian"]
    else:
        fitting = ["gaussian"]
    if column.base != "category" and column.minimum > 0.0:
        fitting.append("gamma")
    if wanted == "auto":
        # of a date 0 is 1970, and no least value
        lengths = column.base == "real" and column.dtype != "datetime"
        skewed = values is not None and lengths and is_skewed(values)
        return "gamma" if skewed else fitting[0]
    if wanted not in fitting:
        what = f"is {column.base} from {column.minimum:g}"
        if column.base == "category":
            what = f"has {len(column.labels)} labels"
        raise LearnerError(
            f"{wanted} experts for column {column.name!r}, which {what}",
            fitting[0] if len(fitting) == 1 else f"one of {', '.join(fitting)}",
            f"Override what the column is with kinds={{{column.name!r}: ...}}.",
            command=f"Override what the column is with --kind {shlex.quote(column.name)}=...",
        )
    return wanted


def as_real(column: Column, values: np.ndarray, support: tuple[float, float]) -> Column:
    """Return a target of numbers as a column with a density on some support, in units of its spread.

    A number in one row says nothing of spread: the unit is then its size, 1 for 0, however many digits are written.
    In n rows it is 1 / sqrt(n) of that, about the deviation that one row as far off would make. It is at least the
    resolution.
    """
    check_size(column.name, values)
    scale = spread_of(values) or _unit_without_spread(values, column.resolution)
    centre = float(values.mean()) if values.size else 0.0
    return replace(
        column,
        base="real",
        support=support,
        levels=(),
        frequencies=(),
        atoms=(),
        atom_frequencies=(),
        location=centre,
        scale=scale,
    )


def _unit_without_spread(values: np.ndarray, resolution: float) -> float:
    """Return the unit of a target that is one number, or has none."""
    size = float(np.abs(values).max(initial=0.0)) or 1.0
    return max(size / math.sqrt(max(values.size, 1)), resolution, _LEAST_UNIT)


def offset_of(expert: str, values: np.ndarray) -> float:
    """Return what is added to a predictor, so that coefficients of zero are the mean; `values` in its units."""
    code = KINDS[expert]
    if code == GAUSSIAN:
        return float(values.mean())
    return float(np.log(max(values.mean(), 1e-3))) if code in (POISSON, GAMMA) else 0.0


def experts_of(columns: Sequence[Column], values: Sequence[np.ndarray], wanted: object) -> tuple[str, ...]:
    """Return the kind of expert of each target; `wanted` is one name for all, or a mapping from names of targets."""
    if isinstance(wanted, str):
        wanted = {column.name: wanted for column in columns}
    if not isinstance(wanted, dict) or set(wanted) - {column.name for column in columns}:
        raise LearnerError(f"experts={wanted!r}", "a name, or a dict from targets to names")
    pairs = zip(columns, values, strict=True)
    return tuple(chosen_expert(column, wanted.get(column.name, "auto"), own) for column, own in pairs)


def with_targets(table: Table, targets: Sequence[str], experts: Sequence[str]) -> Table:
    """Return the table with targets of gaussian and gamma experts as columns with densities.

    Raises
    ------
    TableError
        Where no row has all targets.
    """
    columns = list(table.schema.columns)
    for name, expert in zip(targets, experts, strict=True):
        position = table.schema.index(name)
        if KINDS[expert] in (GAUSSIAN, GAMMA):
            support = (-np.inf, np.inf) if KINDS[expert] == GAUSSIAN else (0.0, np.inf)
            seen = table.values[position, table.observed[position]]
            columns[position] = as_real(columns[position], seen, support)
    full = table.observed[[table.schema.index(name) for name in targets]].all(axis=0)
    if not full.any():
        raise TableError(f"no row has a value of {', '.join(targets)}", "one at least")
    return Table(Schema(tuple(columns), table.schema.set_aside), table.values, table.observed, table.unseen)


def first_leaf_of_a_single_expert(node: np.ndarray, dispersion: np.ndarray, number: int) -> int | None:
    """Return the first leaf below a node where all have the same expert, as in a tree that was not grown further.

    Parameters
    ----------
    node : float64 (n_node, n_predictor, n_covariate)
    dispersion : float64 (n_leaf, n_target)
    number : int
        Of the node.
    """
    n_gate, lo, hi = node.shape[0] - dispersion.shape[0], number, number
    n_way = (node.shape[0] - 1) // max(n_gate, 1)
    while lo < n_gate:
        lo, hi = n_way * lo + 1, n_way * hi + n_way
    same = (node[lo : hi + 1] == node[lo]).all() and (
        dispersion[lo - n_gate : hi + 1 - n_gate] == dispersion[lo - n_gate]
    ).all()
    return lo if same else None
