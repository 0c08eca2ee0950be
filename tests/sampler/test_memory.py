"""How much memory a fit is said to take, against what it takes, and what is refused."""

from __future__ import annotations

import pytest

from bayesjpt.defaults import MAX_WORK_BYTES
from bayesjpt.errors import SamplingError
from bayesjpt.kernels.work import block_rows, make_work
from bayesjpt.sampler import memory
from bayesjpt.sampler.memory import MemoryEstimate, available_memory, check_memory, estimate_memory, in_words
from bayesjpt.sampler.schedule import Schedule, empty_draws
from bayesjpt.sampler.target import make_target
from tests import examples as ex

LOOSE = 3.0
"""By which the bounds of workspaces and cells may exceed what is taken, on tables of distinct values."""

SLACK_BYTES = 4 * 2**20
"""And in bytes, for tables by distinct value that were allowed and not needed."""


def n_byte(arrays) -> int:
    return sum(array.nbytes for array in arrays)


def work_of(target):
    return make_work(target.plan, target.units[0], block_rows(target.plan, MAX_WORK_BYTES, target.units[0]))


@pytest.fixture(params=[(20_000, False), (20_000, True), (50, True)], ids=["coded", "distinct", "few rows"])
def case(request, rng):
    n_row, continuous = request.param
    table = ex.make_table(ex.COLUMNS, n_row, rng, missing=0.1, continuous=continuous)
    return table, ex.mixture(table, 8)


def test_draws_are_counted_exactly(case):
    table, circuit = case
    draws = empty_draws(Schedule(n_chain=3, n_tune=7, n_draw=11), circuit.n_edge, circuit.n_theta)
    assert estimate_memory(circuit, table, draws=11, chains=3).draws == n_byte(draws)


def test_workspaces_and_cells_are_bounded_from_above(case):
    table, circuit = case
    target = make_target(circuit, table)
    estimate = estimate_memory(circuit, table, chains=1)
    assert estimate.workspaces >= n_byte(work_of(target))
    assert estimate.cells >= n_byte(target.units[0]) - 1000  # a few offsets a column


def test_bounds_are_not_far_off(rng):
    table = ex.make_table((ex.REAL, ex.POSITIVE), 50_000, rng, missing=0.1, continuous=True)
    target = make_target(ex.mixture(table, 8), table)
    estimate = estimate_memory(target.circuit, table, chains=1)
    assert estimate.cells <= LOOSE * n_byte(target.units[0])
    assert estimate.workspaces <= SLACK_BYTES + LOOSE * n_byte(work_of(target))


def test_what_does_not_fit_is_refused_with_found_expected_and_remedy(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10 * 2**30)
    check_memory(MemoryEstimate(draws=7 * 2**30, workspaces=2**29, cells=0))
    with pytest.raises(SamplingError) as caught:
        check_memory(MemoryEstimate(draws=8 * 2**30, workspaces=2**29, cells=0))
    for words in ("8.5 GiB", "draws 8.0 GiB", "80%", "10.0 GiB", "thin="):
        assert words in str(caught.value)


def test_nothing_is_refused_where_the_system_does_not_say(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    check_memory(MemoryEstimate(draws=2**60, workspaces=0, cells=0))


def test_requests_beyond_all_integers_are_still_counted(case):
    table, circuit = case
    assert estimate_memory(circuit, table, draws=10**30, chains=2).draws > 10**30


def test_this_machine_has_memory():
    assert 2**20 < available_memory() < 2**60


def group(tmp_path, files: dict[str, str]):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    return memory._of_group(tmp_path)


def test_limit_of_a_group_counts_cache_as_free(tmp_path):
    files = {"memory.max": "1000\n", "memory.current": "700\n", "memory.stat": "anon 500\ninactive_file 150\n"}
    assert group(tmp_path, files) == 450


def test_limit_of_a_group_of_the_first_version_is_read(tmp_path):
    names = ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat")
    assert group(tmp_path, dict(zip(names, ("1000", "700", "total_inactive_file 100"), strict=True))) == 400


def test_group_without_a_limit_says_nothing(tmp_path):
    assert group(tmp_path, {"memory.max": "max\n", "memory.current": "700\n", "memory.stat": ""}) is None


def test_machine_is_read_from_meminfo_or_from_the_number_of_pages(tmp_path):
    path = tmp_path / "meminfo"
    path.write_text("MemTotal: 9 kB\nMemAvailable:       5 kB\n")
    assert memory._of_machine(path) == 5 * 1024
    assert memory._of_machine(tmp_path / "missing") > 2**20


@pytest.mark.parametrize(
    ("n", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 kiB"), (3 * 2**20, "3.0 MiB"), (2**40, "1024.0 GiB")],
)
def test_bytes_in_words(n, words):
    assert in_words(n) == words


def test_estimate_reads_as_a_sum():
    assert str(MemoryEstimate(2**20, 2**19, 0)) == "1.5 MiB (draws 1.0 MiB, workspaces 512.0 kiB, cells 0 bytes)"
    assert MemoryEstimate(1, 2, 3).total == 6
