"""Circuit and Params: a sum-product structure as C-contiguous arrays, children before parents, root last.

      node   0     1     2        3           4        5 ...            root
      kind   leaf  leaf  leaf     likelihood  leaf ... product ...      latent
      child_ptr[n]:child_ptr[n + 1] are node n's edges; child[e] < n; log_weight[e] belongs to the edge
      leaf_of[n] is the row of the leaf table, or -1

Sums are told apart by what decides: rows choose softly (`LATENT`), a leaf's dictionary (`LIKELIHOOD`), or a split of
a column in two or more ways (`HARD`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bayesjpt.numerics.jit import read_only

LATENT = 0
LIKELIHOOD = 1
HARD = 2
PRODUCT = 4
LEAF = 5

KIND_NAMES = {LATENT: "latent", LIKELIHOOD: "likelihood", HARD: "hard", PRODUCT: "product", LEAF: "leaf"}
"""Codes are stored in files."""

SUM_KINDS = (LATENT, LIKELIHOOD, HARD)
STRUCTURE_KINDS = (LATENT, HARD)
"""Sums of the structure, whose weights are drawn; rows choose among their children, or a split does."""


def one_of(numbers: np.ndarray, few: Iterable[int]) -> np.ndarray:
    """Return whether each of some whole numbers is one of a few, bool as `numbers`; np.isin takes 7 times as long."""
    out = np.zeros(numbers.shape, bool)
    for number in few:
        out |= numbers == number
    return out


class Circuit(NamedTuple):
    """A frozen topology. Made by `bayesjpt.circuit.build` alone; every array is read-only.

    Attributes
    ----------
    kind : int8 (n_node,)
        `LATENT`, `LIKELIHOOD`, `HARD`, `PRODUCT` or `LEAF`.
    child_ptr : int32 (n_node + 1,)
        Edges of node n are ``child_ptr[n]:child_ptr[n + 1]``.
    child : int32 (n_edge,)
        Child of each edge; its number is below its parent's.
    leaf_of : int32 (n_node,)
        Row in the leaf table, -1 for inner nodes.
    leaf_family : int16 (n_leaf,)
        Number in `bayesjpt.families.registry`.
    leaf_var : int32 (n_leaf,)
        The column of each leaf.
    leaf_cell : int32 (n_leaf,)
        Number of the cell to which the leaf is truncated, -1 for the whole domain.
    cell : float64 (2 n_cell,)
        Cell k is the closed interval ``cell[2k]`` to ``cell[2k + 1]`` in the user's units, codes on columns of labels.
        Where both ends are one number, a leaf on a real column is a value that is known: there the base measure counts.
    theta_at, theta_len : int32 (n_leaf,)
        Where the leaf's parameters lie in the flat vector.
    const_at, const_len : int32 (n_leaf,)
        Where its constants lie in `const`.
    const : float64 (n_const,)
        Constants of all leaves; leaves of one column and family share theirs, unless they learned them.
    start_log_weight : float64 (n_edge,), nats
        The learner's estimate of the weights, where chains may begin.
    start_theta : float64 (n_theta,)
        The learner's estimate of the parameters.
    """

    kind: np.ndarray
    child_ptr: np.ndarray
    child: np.ndarray
    leaf_of: np.ndarray
    leaf_family: np.ndarray
    leaf_var: np.ndarray
    leaf_cell: np.ndarray
    cell: np.ndarray
    theta_at: np.ndarray
    theta_len: np.ndarray
    const_at: np.ndarray
    const_len: np.ndarray
    const: np.ndarray
    start_log_weight: np.ndarray
    start_theta: np.ndarray

    @property
    def n_node(self) -> int:
        return self.kind.size

    @property
    def n_edge(self) -> int:
        return self.child.size

    @property
    def n_leaf(self) -> int:
        return self.leaf_family.size

    @property
    def n_theta(self) -> int:
        return self.start_theta.size

    @property
    def shares_parameters(self) -> bool:
        """Whether two leaves read the same parameters."""
        at = self.theta_at[self.theta_len > 0]
        return np.unique(at).size < at.size

    def constants_of(self, leaf: int) -> np.ndarray:
        """Return the constants of a leaf."""
        return self.const[self.const_at[leaf] : self.const_at[leaf] + self.const_len[leaf]]

    def leaf_interval(self) -> np.ndarray:
        """Return float64 (n_leaf, 2): the cell of each leaf in the user's units, infinite for the whole domain."""
        # behind the last cell: where -1 points
        cells = np.concatenate([self.cell, [-np.inf, np.inf]]).reshape(-1, 2)
        return cells[self.leaf_cell]

    def edge_parent(self) -> np.ndarray:
        """Return int32 (n_edge,): the node that owns each edge."""
        return np.repeat(np.arange(self.n_node, dtype=np.int32), np.diff(self.child_ptr))

    def edges_of_kind(self, *kinds: int) -> np.ndarray:
        """Return the edges, ascending, whose parent is of one of some kinds."""
        return np.flatnonzero(one_of(self.kind[self.edge_parent()], kinds))

    def leaf_node(self) -> np.ndarray:
        """Return int32 (n_leaf,): the node of each leaf."""
        nodes = np.flatnonzero(self.kind == LEAF).astype(np.int32)
        out = np.empty(self.n_leaf, np.int32)
        out[self.leaf_of[nodes]] = nodes
        return out

    def digest(self) -> str:
        """Return a hash of the content, equal for equal circuits."""
        total = hashlib.sha256()
        for name, array in zip(self._fields, self, strict=True):
            total.update(f"{name}{array.dtype.str}{array.shape}".encode())
            total.update(np.ascontiguousarray(array).tobytes())
        return total.hexdigest()

    def __repr__(self) -> str:
        counts = ", ".join(f"{int((self.kind == code).sum())} {name}" for code, name in KIND_NAMES.items())
        return f"Circuit({counts}; {self.n_theta} parameters)"


class Params(NamedTuple):
    """Weights and parameters of one point: an estimate or a posterior draw.

    Attributes
    ----------
    log_weight : float64 (..., n_edge), nats
        0 on edges of products.
    theta : float64 (..., n_theta)
        In the families' units.
    """

    log_weight: np.ndarray
    theta: np.ndarray


def start_params(circuit: Circuit) -> Params:
    """Return the learner's estimate as Params."""
    return Params(circuit.start_log_weight, circuit.start_theta)


def read_only_arrays(circuit: Circuit) -> Circuit:
    """Return the same circuit of views that cannot be written to, for which kernels are compiled once."""
    return Circuit(*map(read_only, circuit))
