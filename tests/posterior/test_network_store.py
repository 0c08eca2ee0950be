"""Ensembles of cutset networks in files: what draws are made from comes back, and nothing else is taken for it."""

from __future__ import annotations

from dataclasses import replace

import h5py
import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.circuit.check import check_circuit
from bayesjpt.circuit.networks import table_pointers
from bayesjpt.errors import BayesjptError, FitFileError
from bayesjpt.posterior import network_store
from bayesjpt.posterior.network_store import checked_network
from bayesjpt.posterior.networks import NetworkDraws, in_few_bytes
from bayesjpt.posterior.stacked import StackedPosterior
from tests.files import renew_checksum
from tests.queries.test_networks import draws_of
from tests.structure.test_label_networks import labels

FIELDS = ("split", "way_ptr", "way", "tree_ptr", "column", "parent")


@pytest.fixture
def table(rng):
    return labels(rng, other=True)


@pytest.fixture
def saved(table, tmp_path):
    post = StackedPosterior([draws_of(table), draws_of(table, 3)], [0.4, 0.6], {"seed": 1})
    post.save(tmp_path / "fit.nc")
    return post, tmp_path / "fit.nc"


def arrays_of(one: NetworkDraws) -> dict[str, np.ndarray]:
    return {name: getattr(one.network, name).copy() for name in FIELDS}


def test_networks_come_back_with_their_draws_and_counts(saved, table):
    post, path = saved
    loaded = bj.load(path)
    assert all(isinstance(one, NetworkDraws) for one in loaded.members())
    for one, own in zip(loaded.members(), post.members(), strict=True):  # in few bytes, here as there
        np.testing.assert_array_equal(one.count, own.count, strict=True)
        assert one.count.dtype == np.uint8
    np.testing.assert_array_equal(loaded.log_density(table).values, post.log_density(table).values)
    np.testing.assert_array_equal(loaded.weights, post.weights)
    assert loaded.settings == post.settings
    assert loaded.by_structure()[1].circuit.digest() == post.by_structure()[1].circuit.digest()


def test_networks_with_one_imaginary_sample_of_all_sums_come_back(table, tmp_path):
    own = replace(draws_of(table), ess=bj.BDeu(7.0))
    StackedPosterior([own], [1.0]).save(tmp_path / "fit.nc")
    (one,) = bj.load(tmp_path / "fit.nc").members()
    assert isinstance(one, NetworkDraws)
    assert one.ess == bj.BDeu(7.0)
    np.testing.assert_array_equal(one.table_weights(np.arange(2)), own.table_weights(np.arange(2)))


@pytest.mark.parametrize(("largest", "dtype"), [(255, np.uint8), (256, np.uint16), (65_536, np.uint32)])
def test_counts_lose_nothing_in_few_bytes(largest, dtype):
    count = np.array([0, largest])
    np.testing.assert_array_equal(in_few_bytes(count), count.astype(dtype), strict=True)


def test_tables_that_no_file_holds_are_not_taken_for_small_ones():
    n_group = np.full(5, 32_767)
    ends = table_pointers(np.array([0, 5]), np.arange(5), np.arange(-1, 4), n_group, 0)
    assert ends[-1] == 32_767 + 4 * 32_767**2


def test_many_draws_and_other_structures_are_kept_as_draws(table, tmp_path):
    made = draws_of(table).posterior()
    for several in ([draws_of(table), made], [draws_of(table, network_store.MAX_DRAWS + 1)]):
        StackedPosterior(several, [1.0 / len(several)] * len(several)).save(tmp_path / "fit.nc")
        assert not isinstance(bj.load(tmp_path / "fit.nc").members()[0], NetworkDraws)


def test_a_network_of_the_learner_passes(table):
    one = draws_of(table)
    found = checked_network(arrays_of(one), one.network.n_group)
    for name, expected in one.network._asdict().items():
        np.testing.assert_array_equal(getattr(found, name), expected)


@pytest.mark.parametrize("name", FIELDS)
def test_whatever_number_is_changed_the_network_is_refused_or_is_one(table, name, rng):
    one = draws_of(table)
    n_refused = 0
    for _ in range(60):
        arrays = arrays_of(one)
        place = int(rng.integers(arrays[name].size))
        arrays[name][place] += rng.choice([-3, -1, 1, 2, 1000])
        try:
            network = checked_network(arrays, one.network.n_group)
        except FitFileError:
            n_refused += 1
            continue
        # what passes is a network: its circuit is valid, and a column's labels add up to one
        count = np.zeros(network.n_entry, np.int32)
        post = NetworkDraws(network, count, 1.0, table.schema, 0, 1, np.arange(1)).posterior()
        check_circuit(post.circuit, len(table.schema))
        event = f"{table.schema.names[0]} = '{table.schema.columns[0].labels[0]}'"
        parts = [float(post.probability(each).mean()) for each in (event, f"not ({event})")]
        assert abs(sum(parts) - 1.0) < 1e-9
    assert n_refused >= (0 if name in ("parent", "split") else 50)


def test_parents_in_a_circle_are_refused(table):
    one = draws_of(table)
    arrays = arrays_of(one)
    first = int(arrays["tree_ptr"][-2])
    arrays["parent"][first : first + 2] = 1, 0
    with pytest.raises(FitFileError, match="circle"):
        checked_network(arrays, one.network.n_group)


@pytest.mark.parametrize(
    ("name", "value"),
    [("count", -1), ("draws", -1), ("length", 10**12), ("length", -1), ("weights", np.nan)],
)
def test_damaged_numbers_are_refused(saved, name, value):
    _, path = saved
    with h5py.File(path, "r+") as file:
        array = file["bayesjpt"][name]
        array[(0,) * array.ndim] = value
    with pytest.raises(FitFileError):
        bj.load(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n_chain", "1000000000"),
        ("n_chain", "true"),
        ("networks", '[{"seed": -1, "ess": 1.0}, {"seed": 1, "ess": 1.0}]'),
        ("networks", '[{"seed": 1, "ess": 0.0}, {"seed": 1, "ess": 1.0}]'),
        ("networks", "[]"),
        ("structures", "[{}]"),
        ("arrays", "[]"),
    ],
)
def test_damaged_facts_are_refused(saved, name, text):
    _, path = saved
    with h5py.File(path, "r+") as file:
        file["bayesjpt"].attrs[name] = text
        renew_checksum(file)
    with pytest.raises(BayesjptError):
        bj.load(path)
