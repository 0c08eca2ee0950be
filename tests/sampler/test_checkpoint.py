"""A folder from which chains go on: bitwise, from any sweep, whatever was torn; and what is refused."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest

from bayesjpt.errors import CheckpointError
from bayesjpt.sampler.chains import run_chains
from bayesjpt.sampler.checkpoint import RECORDS, RUN, Checkpoint, check_facts, read_progress
from bayesjpt.sampler.records import slot_bytes
from bayesjpt.sampler.schedule import Draws
from tests.sampler.conftest import SCHEDULE, assert_same, sampled, seeded

FACTS = {
    "options": {"draws": 6, "gamma": 10.0},
    "table": {"rows": 60, "columns": 5, "digest": "a"},
    "versions": {"numpy": "2.5"},
}


def run_until(target, path, n_sweep: int | None) -> list:
    """Begin a checkpoint, or go on with it, and stop after so many sweeps; return its chains."""
    with Checkpoint(path) as folder:
        if not folder.begun:
            folder.begin(FACTS, SCHEDULE, target.sizes)
        draws, records = folder.open(SCHEDULE, target.sizes)
        chains = seeded()
        records.restore(chains, SCHEDULE)
        begun = sum(chain.sweep for chain in chains)

        def record(chain, draw):
            records(chain, draw)
            if n_sweep is not None and sum(c.sweep for c in chains) == begun + n_sweep:
                raise KeyboardInterrupt

        assert run_chains(target, SCHEDULE, chains, draws, n_thread=1, record=record) == (n_sweep is not None)
    return chains


def finished(target, path) -> Draws:
    """Go on to the end and return all draws."""
    run_until(target, path, None)
    with Checkpoint(path) as folder:
        return folder.open(SCHEDULE, target.sizes)[0].first(SCHEDULE.n_draw)


def tear(path, target, chain: int, slot: int, part: slice) -> None:
    """Overwrite part of one record with what was never written there."""
    size = slot_bytes(sum(target.sizes))
    content = bytearray((path / RECORDS).read_bytes())
    start = (2 * chain + slot) * size
    torn = content[start : start + size]
    torn[part] = bytes(byte ^ 0x5A for byte in torn[part])
    content[start : start + size] = torn
    (path / RECORDS).write_bytes(content)


# --- going on


@pytest.mark.parametrize("n_sweep", [1, 2, 7, 13, 14, 15, 29, 30])
def test_resumed_draws_are_those_of_an_undisturbed_run(target, tmp_path, n_sweep):
    path = tmp_path / "fit"
    run_until(target, path, n_sweep)
    assert sum(read_progress(path)[0]) == n_sweep
    assert_same(finished(target, path), sampled(target))


def test_resuming_after_every_single_sweep_changes_nothing(target, tmp_path):
    path = tmp_path / "fit"
    for _ in range(SCHEDULE.n_chain * SCHEDULE.n_sweep):
        run_until(target, path, 1)
    assert_same(finished(target, path), sampled(target))


@pytest.mark.parametrize("part", [slice(0, 8), slice(8, 16), slice(40, 48), slice(100, 200), slice(-8, None)])
def test_a_torn_record_costs_one_sweep_and_no_bit(target, tmp_path, part):
    path = tmp_path / "fit"
    run_until(target, path, 20)
    done, _ = read_progress(path)
    tear(path, target, 1, done[1] % 2, part)
    assert read_progress(path)[0] == [done[0], done[1] - 1, done[2]]
    assert_same(finished(target, path), sampled(target))


def test_a_first_record_cut_short_is_a_chain_that_has_not_begun(target, tmp_path):
    path = tmp_path / "fit"
    run_until(target, path, 1)
    tear(path, target, 0, 1, slice(-30, None))
    assert read_progress(path)[0] == [0, 0, 0]
    assert_same(finished(target, path), sampled(target))


def test_a_draw_that_no_record_counts_is_drawn_again(target, tmp_path):
    path = tmp_path / "fit"
    run_until(target, path, 20)
    with Checkpoint(path) as folder:
        draws, _ = folder.open(SCHEDULE, target.sizes)
        draws.theta[:, SCHEDULE.n_kept(max(read_progress(path)[0])) :] = np.nan
    assert_same(finished(target, path), sampled(target))


def test_a_finished_checkpoint_gives_its_draws_again_without_a_sweep(target, tmp_path, monkeypatch):
    path = tmp_path / "fit"
    first = finished(target, path)
    monkeypatch.delattr("bayesjpt.kernels.sweeper.Sweeper.draw")
    assert_same(finished(target, path), first)


# --- what is refused


def test_two_damaged_records_of_a_chain_are_refused(target, tmp_path):
    path = tmp_path / "fit"
    run_until(target, path, 20)
    for slot in range(2):
        tear(path, target, 2, slot, slice(50, 60))
    with pytest.raises(CheckpointError, match="both records of chain 2 in records are damaged"):
        run_until(target, path, None)


@pytest.mark.parametrize("name", Draws._fields)
def test_draws_that_were_changed_are_refused(target, tmp_path, name):
    path = tmp_path / "fit"
    run_until(target, path, 30)
    content = bytearray((path / name).read_bytes())
    content[3] ^= 1
    (path / name).write_bytes(content)
    with pytest.raises(CheckpointError, match="draws of chain 0 are not those that were recorded"):
        run_until(target, path, None)


@pytest.mark.parametrize("name", [*Draws._fields, RECORDS])
def test_a_missing_or_shortened_file_is_refused_by_name(target, tmp_path, name):
    path = tmp_path / "fit"
    run_until(target, path, 5)
    content = (path / name).read_bytes()
    (path / name).write_bytes(content[:-1])
    with pytest.raises(CheckpointError, match=f"{name} of the checkpoint .* has {len(content) - 1} bytes"):
        run_until(target, path, None)
    (path / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} of the checkpoint .* is missing"):
        run_until(target, path, None)


def test_records_of_chains_with_other_keys_are_refused(target, tmp_path, monkeypatch):
    path = tmp_path / "fit"
    run_until(target, path, 5)
    others = seeded()
    for chain in others:
        chain.rng = np.random.default_rng(chain.number)
    with Checkpoint(path) as folder, pytest.raises(CheckpointError, match="of another run"):
        folder.open(SCHEDULE, target.sizes)[1].restore(others, SCHEDULE)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": "bayesjpt checkpoint 2"}', '{"format": 3}'])
def test_a_damaged_description_is_refused(tmp_path, content):
    (tmp_path / RUN).write_text(content)
    with pytest.raises(CheckpointError, match="checkpoint"):
        read_progress(tmp_path)


def test_a_description_of_another_format_is_refused_naming_it(target, tmp_path):
    path = tmp_path / "fit"
    run_until(target, path, 1)
    run = json.loads((path / RUN).read_text()) | {"format": "bayesjpt checkpoint 99"}
    (path / RUN).write_text(json.dumps(run))
    with pytest.raises(CheckpointError, match="bayesjpt checkpoint 99"):
        read_progress(path)


@pytest.mark.parametrize(
    ("group", "name", "value", "words"),
    [
        ("options", "gamma", 3.0, "gamma = 10.0, not 3.0"),
        ("options", "threshold", 0.4, "threshold = None, not 0.4"),
        ("table", "rows", 61, "another table"),
        ("table", "digest", "b", "another table"),
        ("versions", "numpy", "3.0", "another version of numpy"),
    ],
)
def test_another_fit_is_refused_by_what_differs(tmp_path, group, name, value, words):
    asked = {**FACTS, group: {**FACTS[group], name: value}}
    with pytest.raises(CheckpointError, match=words):
        check_facts(tmp_path, FACTS, asked)


def test_the_same_fit_passes_whatever_json_made_of_it(tmp_path):
    given = {**FACTS, "options": {"families": ("a", "b"), "gamma": 0.1}}
    check_facts(tmp_path, json.loads(json.dumps(given)), given)


# --- the folder


def test_a_folder_with_files_of_others_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(CheckpointError, match=r"holds 'thesis\.tex'"):
        Checkpoint(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_in_use_is_refused(tmp_path):
    pytest.importorskip("fcntl")
    with Checkpoint(tmp_path / "fit"), pytest.raises(CheckpointError, match="another process"):
        Checkpoint(tmp_path / "fit")


def test_a_folder_without_a_parent_or_that_is_a_file_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no folder"):
        Checkpoint(tmp_path / "nowhere" / "fit")
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="is a file"):
        Checkpoint(tmp_path / "file")


def test_a_folder_in_which_nothing_began_disappears(tmp_path):
    with Checkpoint(tmp_path / "fit"):
        assert (tmp_path / "fit").is_dir()
    assert not (tmp_path / "fit").exists()


def test_leftovers_of_a_fit_that_never_began_are_cleared(target, tmp_path):
    path = tmp_path / "fit"
    path.mkdir()
    for name in ("theta", "structure.nc.part77", "run.json.part"):
        (path / name).write_text("half")
    run_until(target, path, 1)
    assert sorted(file.name for file in path.iterdir()) == sorted([*Draws._fields, "lock", RECORDS, RUN])


def test_remove_deletes_the_whole_folder(target, tmp_path):
    path = tmp_path / "fit"
    run_until(target, path, 1)
    with Checkpoint(path) as folder:
        folder.remove()
    assert not path.exists()


def test_a_full_disk_is_an_error_before_anything_is_sampled(target, tmp_path, monkeypatch):
    def full(descriptor, offset, n_byte):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(CheckpointError, match=r"no room for .* of log_weight"):
        run_until(target, tmp_path / "fit", 1)
    assert not (tmp_path / "fit").exists()
