"""Pruning by held-out rows: what the definition cuts; noise goes, structure stays; all rows return to the leaves."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import LearnerError
from bayesjpt.structure.grow import Leaf, Split, Tree, grow_tree
from bayesjpt.structure.jpt import learn_jpt
from bayesjpt.structure.prune import grow_and_prune, prune
from tests.structure import naive_jpt
from tests.structure.test_jpt import make_table, settings_of


def grown_on(table, kept, settings) -> Tree:
    """Return a tree grown on some rows, with their positions in the table."""
    tree = grow_tree(table.take(kept), settings)
    return Tree(tuple(Leaf(kept[node.rows]) if isinstance(node, Leaf) else node for node in tree.nodes))


@pytest.mark.parametrize("missing", [0.0, 0.25])
@pytest.mark.parametrize("changes", [{}, {"gini": True}, {"targets": (0, 3), "features": (1, 2, 4)}])
def test_subtrees_are_cut_that_are_worth_nothing_by_definition(missing, changes, rng):
    table = make_table(rng, 160, missing=missing)
    settings = settings_of(table, min_rows=3, **changes)
    held, kept = (np.sort(part).astype(np.int32) for part in np.split(rng.permutation(160), [60]))
    tree = grown_on(table, kept, settings)
    found = prune(tree, table, held, settings)
    _, expected = naive_jpt.pruned(table, tree, held.tolist(), settings)
    assert 1 < len(found.leaves()) < len(tree.leaves())
    assert [leaf.rows.tolist() for leaf in found.leaves()] == expected


def test_all_rows_return_and_every_node_counts_its_own(rng):
    table = make_table(rng, 300, missing=0.1)
    settings = settings_of(table, min_rows=10)
    tree = grow_and_prune(table, settings, 0.3, rng)
    np.testing.assert_array_equal(tree.rows(0), np.arange(300))
    assert min(leaf.rows.size for leaf in tree.leaves()) >= 10
    for position, node in enumerate(tree.nodes):
        if isinstance(node, Split):
            assert position < node.left < node.right
            assert node.n_rows == tree.rows(position).size


def test_splits_of_noise_are_cut_and_those_of_structure_stay(rng):
    n = 1500
    group = rng.integers(0, 3, n)
    noise = {"u": rng.normal(size=n), "v": rng.exponential(size=n), "w": rng.choice(list("klmn"), n)}
    alone = bj.as_table(pd.DataFrame(noise))
    with_structure = bj.as_table(pd.DataFrame({**noise, "a": 5.0 * group + rng.normal(size=n), "g": group.astype(str)}))
    settings = settings_of(alone, min_rows=15)
    assert len(grow_tree(alone, settings).leaves()) > 50
    assert len(grow_and_prune(alone, settings, 0.3, rng).leaves()) < 8
    tree = grow_and_prune(with_structure, settings_of(with_structure, min_rows=15), 0.3, rng)
    assert len(tree.leaves()) < 20
    assert sum(np.bincount(group[leaf.rows]).max() for leaf in tree.leaves()) > 0.97 * n


def test_rows_held_out_follow_the_generator(rng):
    table = make_table(rng, 200)
    one, other = (learn_jpt(table, np.random.default_rng(seed), min_rows=5, validation=0.4) for seed in (1, 1))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("share", [1.0, -0.1, True, "half"])
def test_shares_that_leave_nothing_are_refused(share, rng):
    with pytest.raises(LearnerError, match="validation is"):
        learn_jpt(make_table(rng, 20), rng, validation=share)
