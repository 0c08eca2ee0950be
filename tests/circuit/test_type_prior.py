"""Weights of types: which edges follow them, what they are called, and how they divide a concentration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesjpt.circuit import arrays
from bayesjpt.circuit.layout import make_layout
from bayesjpt.circuit.priors import make_priors
from bayesjpt.circuit.type_prior import column_type_labels, make_column_types, no_column_types
from bayesjpt.errors import ModelError
from bayesjpt.families import registry
from tests import examples as ex
from tests import naive

ALPHA = 0.3


@pytest.fixture
def table(rng):
    return ex.make_table(ex.PLAIN, 30, rng)


@pytest.fixture
def circuit(table):
    return ex.mixture(table, 3)


def members(circuit, node: int) -> list[tuple[int, str]]:
    """Return (edge, type) of each member of a dictionary."""
    return [
        (edge, registry.FAMILIES[circuit.leaf_family[circuit.leaf_of[circuit.child[edge]]]].statistical_type)
        for edge in naive.edges_of(circuit, node)
    ]


def test_every_type_of_a_column_has_one_weight_that_all_its_leaves_share(circuit, table):
    types, labels = make_column_types(circuit, table.schema), column_type_labels(circuit, table.schema)
    entry = dict(zip(types.edge.tolist(), types.entry.tolist(), strict=True))
    followed = set()
    for node in np.flatnonzero(circuit.kind == arrays.LIKELIHOOD):
        offered = members(circuit, node)
        column = table.schema.columns[naive.leaf_column(circuit, circuit.leaf_of[circuit.child[offered[0][0]]])]
        for edge, name in offered:
            if len({name for _, name in offered}) == 1:
                assert edge not in entry
            else:
                assert labels[entry[edge]] == f"{column.name}:{name}"
                followed.add(entry[edge])
    assert followed == set(range(types.n_weight)) == set(range(len(labels)))
    assert [labels[first].split(":")[0] for first in types.ptr[:-1]] == sorted(
        {label.split(":")[0] for label in labels}, key=[column.name for column in table.schema].index
    )


def test_weights_of_each_group_add_up_to_one_when_they_are_even(circuit, table):
    types = make_column_types(circuit, table.schema)
    np.testing.assert_allclose(np.add.reduceat(types.even(), types.ptr[:-1]), 1.0)


def test_a_type_has_the_same_concentration_however_many_families_it_has(circuit, table):
    layout = make_layout(circuit, table.schema)
    found = make_priors(circuit, table.schema, layout, gamma=1.0, alpha=ALPHA, prior="default", type_prior="types")
    for node in np.flatnonzero(circuit.kind == arrays.LIKELIHOOD):
        offered = members(circuit, node)
        names = {name for _, name in offered}
        for name in names:
            of_type = [found.concentration[edge] for edge, own in offered if own == name]
            assert np.ptp(of_type) == 0.0
            np.testing.assert_allclose(sum(of_type), ALPHA * len(offered) / len(names))


def test_leaves_that_offer_other_types_have_weights_of_their_own(rng):
    table = ex.make_table((ex.REAL, ex.PLAIN[1]), 20, rng)
    whole = ex.mixture(table, 2)
    nodes = [
        node
        for node in np.flatnonzero(whole.kind == arrays.LIKELIHOOD)
        if naive.leaf_column(whole, whole.leaf_of[whole.child[whole.child_ptr[node]]]) == 1
    ]
    before = make_column_types(whole, table.schema)
    leaves = whole.leaf_of[whole.child[naive.edges_of(whole, nodes[1])]]
    family = whole.leaf_family.copy()
    family[leaves] = np.where(family[leaves] == registry.number("normal"), registry.number("poisson"), family[leaves])
    changed = whole._replace(leaf_family=family)
    assert column_type_labels(changed, table.schema)[-4:] == [
        f"{ex.PLAIN[1].name}:count",
        f"{ex.PLAIN[1].name}:positive",
        f"{ex.PLAIN[1].name}':positive",
        f"{ex.PLAIN[1].name}':real",
    ]
    assert make_column_types(changed, table.schema).n_weight == before.n_weight + 2


def test_an_atom_has_no_type_and_keeps_its_concentration(rng):
    table = ex.make_table((ex.ZEROS,), 30, rng)
    circuit = ex.mixture(table)
    types = make_column_types(circuit, table.schema)
    atoms = np.flatnonzero(circuit.leaf_family[circuit.leaf_of[circuit.child]] == registry.number("atom"))
    atoms = atoms[circuit.leaf_of[circuit.child[atoms]] >= 0]
    assert atoms.size == 2
    assert not set(atoms) & set(types.edge)
    assert not any(label.endswith(":none") for label in column_type_labels(circuit, table.schema))
    layout = make_layout(circuit, table.schema)
    found = make_priors(circuit, table.schema, layout, gamma=1.0, alpha=ALPHA, prior="default", type_prior="types")
    np.testing.assert_array_equal(found.concentration[atoms], ALPHA)
    for node in np.flatnonzero(circuit.kind == arrays.LIKELIHOOD):
        edges = naive.edges_of(circuit, node)
        np.testing.assert_allclose(found.concentration[edges.start : edges.stop].sum(), ALPHA * len(edges))


def test_types_are_those_that_a_column_calls_its_cells(rng):
    many = replace(
        ex.LEVELS, name="age", levels=tuple(map(float, range(30))), frequencies=(1.0 / 30.0,) * 30, families=()
    )
    column = replace(many, families=("poisson", "categorical"))
    table = ex.make_table((column,), 60, rng)
    assert make_column_types(ex.mixture(table), table.schema).n_weight == 0  # thirty levels are counts


def test_no_weights_are_none():
    assert no_column_types().n_weight == 0
    assert no_column_types().even().size == 0


def test_dictionaries_of_one_type_have_nothing_to_divide(rng):
    table = ex.make_table((replace(ex.COUNT, name="n"),), 12, rng)
    circuit = ex.mixture(table, dictionary=ex.only("poisson", "geometric"))
    assert make_column_types(circuit, table.schema).n_weight == 0
    assert column_type_labels(circuit, table.schema) == []


def test_an_unknown_way_to_divide_is_refused(circuit, table):
    layout = make_layout(circuit, table.schema)
    with pytest.raises(ModelError, match=r"type_prior = 'leaves'.*members, types, columns"):
        make_priors(circuit, table.schema, layout, gamma=1.0, alpha=1.0, prior="default", type_prior="leaves")
