"""What the distribution of a column is made of, as mean probabilities of cells: by likelihoods, by sub-populations.

The parts of a column add up to it, cell by cell.
"""

from __future__ import annotations

import numpy as np

from bayesjpt.circuit.plan import ATOM
from bayesjpt.circuit.sub_populations import sub_populations
from bayesjpt.defaults import COMPONENTS
from bayesjpt.kernels.flow import node_probabilities
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.marginals import Axis, cell_ends, cell_masses
from bayesjpt.queries.membership import names_of_sub_populations
from bayesjpt.queries.representative import representative
from bayesjpt.queries.route import below
from bayesjpt.queries.shallow import leaf_masses, shallow


def by_likelihood(post: Posterior, axis: Axis) -> dict[str, np.ndarray]:
    """Return the mean probabilities of the cells of a column under each family, float64 (n_cell,), largest first.

    Weighted by the family's weight; over all draws of all structures. Atoms are a family, which has no cells.
    """
    ends = cell_ends(axis)
    ends = ends[: ends.shape[0] - axis.atoms.size]
    found: dict[str, np.ndarray] = {}
    for structure in post.by_structure():
        mixture = shallow(structure, axis.position)
        share = structure.n_draw / post.n_draw
        masses = np.einsum("dl,dcl->cl", mixture.weight, leaf_masses(structure, axis.position, ends))
        masses *= share / mixture.weight.shape[0]
        for family, mass in zip(mixture.families, masses.T, strict=True):
            if family.name != ATOM:
                found[family.name] = found.get(family.name, 0.0) + mass
    return dict(sorted(found.items(), key=lambda part: -part[1].sum()))


def by_sub_population(post: Posterior, axis: Axis) -> dict[str, np.ndarray]:
    """Return the mean probabilities of the cells of a column in each sub-population, weighted, largest first.

    Of a chain of one structure (`bayesjpt.queries.representative`). Those of little weight are put together.
    """
    one = representative(post, [axis.position]).post
    nodes = sub_populations(one.circuit, len(one.schema))
    weight = node_probabilities(one.plan(), one.flat().log_weight, nodes)
    names = names_of_sub_populations(one)
    parts = []
    for node, node_weight in zip(nodes, weight.T, strict=True):
        group = below(one, node, [axis.position], {}) or one  # a column beside all sub-populations is the same in all
        parts.append((node_weight[:, None] * cell_masses(group, [axis])[0][0]).mean(axis=0))
    order = np.argsort([-part.sum() for part in parts], kind="stable").tolist()
    found = {names[k] if names[k] != str(k) else f"sub-population {k}": parts[k] for k in order[:COMPONENTS]}
    if len(order) > COMPONENTS:
        found[f"{len(order) - COMPONENTS} others"] = np.sum([parts[k] for k in order[COMPONENTS:]], axis=0)
    return found
