"""The uniform mixture of points of several circuits over the same columns: again a circuit, with one point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayesjpt.circuit.arrays import LATENT, Circuit, Params
from bayesjpt.circuit.build import freeze


def average(points: Sequence[tuple[Circuit, Params]]) -> tuple[Circuit, Params]:
    """Return the mixture, with equal weights, of circuits at a point each.

    Parameters
    ----------
    points : sequence of (Circuit, Params)
        Over the same columns; Params with log weights (n_edge,) and parameters (n_theta,). One circuit may come often.

    Returns
    -------
    circuit : Circuit
        The given ones side by side below a latent sum, the root.
    params : Params
        Its density is the mean of theirs.
    """
    circuits = [circuit for circuit, _ in points]
    before = {
        name: np.concatenate([[0], np.cumsum(sizes)])
        for name, sizes in {
            "node": [c.n_node for c in circuits],
            "edge": [c.n_edge for c in circuits],
            "leaf": [c.n_leaf for c in circuits],
            "cell": [c.cell.size // 2 for c in circuits],
            "theta": [c.n_theta for c in circuits],
            "const": [c.const.size for c in circuits],
        }.items()
    }

    def joined(name: str, offset: str = "") -> np.ndarray:
        """Return an array of all circuits; positions, which are not negative, move behind those of the earlier ones."""
        parts = [getattr(circuit, name) for circuit in circuits]
        if offset:
            parts = [np.where(part >= 0, part + lo, part) for part, lo in zip(parts, before[offset], strict=False)]
        return np.concatenate(parts).astype(parts[0].dtype)

    n, n_edge = len(points), before["edge"][-1]
    # the root is the last node of each circuit
    roots = before["node"][1:] - 1
    child_ptr = np.concatenate([c.child_ptr[:-1] + lo for c, lo in zip(circuits, before["edge"], strict=False)])
    log_weight = np.concatenate([*(params.log_weight for _, params in points), np.full(n, -np.log(n))])
    theta = np.concatenate([params.theta for _, params in points])
    circuit = Circuit(
        kind=np.append(joined("kind"), LATENT).astype(np.int8),
        child_ptr=np.concatenate([child_ptr, [n_edge, n_edge + n]]).astype(np.int32),
        child=np.concatenate([joined("child", "node"), roots]).astype(np.int32),
        leaf_of=np.append(joined("leaf_of", "leaf"), -1).astype(np.int32),
        leaf_family=joined("leaf_family"),
        leaf_var=joined("leaf_var"),
        leaf_cell=joined("leaf_cell", "cell"),
        cell=joined("cell"),
        theta_at=joined("theta_at", "theta"),
        theta_len=joined("theta_len"),
        const_at=joined("const_at", "const"),
        const_len=joined("const_len"),
        const=joined("const"),
        start_log_weight=log_weight,
        start_theta=theta,
    )
    return freeze(circuit), Params(log_weight, theta)
