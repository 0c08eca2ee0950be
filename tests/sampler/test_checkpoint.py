"""A folder from which chains go on: bitwise, from any save, whatever a kill left; and what is refused."""

from __future__ import annotations

import collections
import errno
import json
import os
import shutil

import numpy as np
import pytest

from bayesjpt import replace_file
from bayesjpt.errors import CheckpointError
from bayesjpt.sampler import saves as saving
from bayesjpt.sampler.chains import run_chains
from bayesjpt.sampler.checkpoint import LOCK, RUN, STATE, Checkpoint, check_facts
from bayesjpt.sampler.files import read_sealed, write_sealed
from bayesjpt.sampler.saves import Saves, begin_saves, read_progress
from bayesjpt.sampler.schedule import Draws, empty_draws
from bayesjpt.sampler.structures_folder import StructuresFolder
from tests.sampler.conftest import SCHEDULE, assert_same, sampled, seeded

FACTS = {
    "options": {"draws": 6, "gamma": 10.0},
    "table": {"rows": 60, "columns": 5, "digest": "a"},
    "versions": {"numpy": "2.5"},
}


def opened(target, path) -> tuple[Draws, Saves, list]:
    """Return draws, saves and chains of a folder's fit, as they were saved; a new one is begun."""
    with Checkpoint(path) as folder:
        if not folder.begun:
            begin_saves(path, FACTS, SCHEDULE, target.sizes)
            folder.begin(FACTS)
        draws = empty_draws(SCHEDULE, target.sizes.n_edge, target.sizes.n_theta)
        saves, chains = Saves(path, folder.facts(), SCHEDULE, target.sizes, draws), seeded()
        saves.restore(chains)
    return draws, saves, chains


def run_until(target, path, n_sweep: int | None, *, saved: int | None = None) -> Draws:
    """Begin a checkpoint, or go on with it, and stop after so many sweeps; return the draws.

    What is there is saved behind the last of them, or behind an earlier one, and what follows is lost.
    """
    draws, saves, chains = opened(target, path)
    begun = sum(chain.sweep for chain in chains)

    def record(chain):
        saves(chain)
        done = sum(c.sweep for c in chains) - begun
        if done == saved:
            saves.save()
        if done == n_sweep:
            raise KeyboardInterrupt

    assert run_chains(target, SCHEDULE, chains, draws, n_thread=1, record=record) == (n_sweep is not None)
    if saved is None:
        saves.save()
    return draws


def parts(path) -> list:
    return sorted(file.name for file in path.glob("draws_*"))


# --- going on


@pytest.mark.parametrize("n_sweep", [1, 2, 7, 13, 14, 15, 29, 30])
def test_resumed_draws_are_those_of_an_undisturbed_run(target, tmp_path, n_sweep):
    path = tmp_path / "fit"
    run_until(target, path, n_sweep)
    assert sum(read_progress(path)[0]) == n_sweep
    assert_same(run_until(target, path, None), sampled(target))


def test_resuming_after_every_single_sweep_changes_nothing(target, tmp_path):
    path = tmp_path / "fit"
    for _ in range(SCHEDULE.n_chain * SCHEDULE.n_sweep):
        run_until(target, path, 1)
    assert len(parts(path)) == SCHEDULE.n_chain * SCHEDULE.n_draw
    assert_same(run_until(target, path, None), sampled(target))


def test_sweeps_behind_the_last_save_are_done_again(target, tmp_path):
    path = tmp_path / "fit"
    run_until(target, path, 26, saved=19)
    assert sum(read_progress(path)[0]) == 19
    assert_same(run_until(target, path, None), sampled(target))


def test_a_kill_between_draws_and_state_costs_that_save_alone(target, tmp_path, monkeypatch):
    path = tmp_path / "fit"
    run_until(target, path, 15)
    with monkeypatch.context() as patch:
        patch.setattr(saving, "_write_state", lambda *_: None)
        run_until(target, path, 7)
    assert sum(read_progress(path)[0]) == 15
    assert len(parts(path)) == 2  # the second is counted by nobody
    assert_same(run_until(target, path, None), sampled(target))


def test_an_interrupt_behind_the_state_and_then_a_kill_costs_no_more(target, tmp_path, monkeypatch):
    path = tmp_path / "fit"
    undisturbed, write = sampled(target), saving._write_state
    draws, saves, chains = opened(target, path)

    def written_then(error):
        def write_and_raise(*about):
            if error is not SystemExit:  # which stands for a kill
                write(*about)
            raise error

        return write_and_raise

    for n_sweep, error in ((20, KeyboardInterrupt), (3, SystemExit)):
        stop = n_sweep + sum(chain.sweep for chain in chains)

        def record(chain, stop=stop):
            saves(chain)
            if sum(c.sweep for c in chains) == stop:
                raise KeyboardInterrupt

        assert run_chains(target, SCHEDULE, chains, draws, n_thread=1, record=record)
        with monkeypatch.context() as patch:
            patch.setattr(saving, "_write_state", written_then(error))
            with pytest.raises(error):
                saves.save()
    assert_same(run_until(target, path, None), undisturbed)


@pytest.mark.parametrize("n_thread", [1, 3])
def test_what_is_saved_while_chains_run_can_be_gone_on_with(target, tmp_path, monkeypatch, n_thread):
    monkeypatch.setattr("bayesjpt.sampler.chains.WATCH_SECONDS", 1e-4)
    path, sweeps = tmp_path / "fit", collections.Counter()
    draws, saves, chains = opened(target, path)

    def watch():
        saves.save()
        done = sum(read_progress(path)[0])
        if done not in sweeps and len(sweeps) < 6:
            sweeps[done] += 1
            shutil.copytree(path, tmp_path / f"copy_{done}")

    run_chains(target, SCHEDULE, chains, draws, n_thread=n_thread, record=saves, watches=[watch])
    watch()
    for done in sweeps:
        assert_same(run_until(target, tmp_path / f"copy_{done}", None), sampled(target))


def test_chains_are_saved_when_the_seconds_are_over_and_not_before(target, tmp_path, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(saving, "perf_counter", lambda: now[0])
    draws, saves, chains = opened(target, tmp_path / "fit")
    found = []

    def record(chain):
        saves(chain)
        now[0] += 1.0
        saves.watch()
        found.append(sum(read_progress(tmp_path / "fit")[0]))

    run_chains(target, SCHEDULE, chains, draws, n_thread=1, record=record)
    assert saving.SAVE_SECONDS == 5.0
    assert found == [done - done % 5 for done in range(1, 31)]


def test_a_finished_checkpoint_gives_its_draws_again_without_a_sweep(target, tmp_path, monkeypatch):
    path = tmp_path / "fit"
    first = run_until(target, path, None)
    monkeypatch.delattr("bayesjpt.kernels.sweeper.Sweeper.draw")
    assert_same(run_until(target, path, None), first)


# --- what is refused


@pytest.fixture
def begun(target, tmp_path):
    """Return a folder with a state and three parts of draws."""
    path = tmp_path / "fit"
    for n_sweep in (16, 3, 3):
        run_until(target, path, n_sweep)
    assert parts(path) == ["draws_0", "draws_1", "draws_2"]
    return path


@pytest.mark.parametrize("place", [0, 40, 1000, -40, -1])
@pytest.mark.parametrize("name", [STATE, "draws_0", "draws_2"])
def test_a_changed_byte_is_refused_by_the_name_of_the_file(target, begun, name, place):
    content = bytearray((begun / name).read_bytes())
    content[place] ^= 1
    (begun / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=f"{name} of checkpoint .* is damaged"):
        opened(target, begun)


@pytest.mark.parametrize("name", [STATE, "draws_0", "draws_1", "draws_2"])
def test_a_missing_or_shortened_file_is_refused_by_name(target, begun, name):
    content = (begun / name).read_bytes()
    for n_byte in (len(content) - 1, 17, 16, 0):
        (begun / name).write_bytes(content[:n_byte])
        with pytest.raises(CheckpointError, match=f"{name} of checkpoint .* is damaged"):
            opened(target, begun)
    (begun / name).unlink()
    with pytest.raises(CheckpointError, match=f"{name} of checkpoint .* is missing"):
        opened(target, begun)


def test_parts_that_changed_places_are_refused(target, begun):
    (begun / "draws_1").rename(begun / "draws_3")
    (begun / "draws_2").rename(begun / "draws_1")
    (begun / "draws_3").rename(begun / "draws_2")
    with pytest.raises(CheckpointError, match=r"draws_1 of checkpoint .* is of another run"):
        opened(target, begun)


@pytest.mark.parametrize("name", [STATE, "draws_0", "draws_1"])
def test_files_of_another_fit_are_refused(target, begun, tmp_path, monkeypatch, name):
    monkeypatch.setitem(FACTS, "target", "another")
    for n_sweep in (16, 3):
        run_until(target, tmp_path / "other", n_sweep)
    shutil.copy(tmp_path / "other" / name, begun / name)
    with pytest.raises(CheckpointError, match="is of another run"):
        opened(target, begun)


@pytest.mark.parametrize(
    ("file", "change"),
    [
        (STATE, {"n_part": 2}),
        (STATE, {"n_part": -1}),
        (STATE, {"n_part": True}),
        (STATE, {"last": None}),
        (STATE, {"chains": None}),
        (STATE, {"chains": [None] * 3}),
        (STATE, {"chains": [None] * 4}),
        ("draws_2", {"first": [0, 0, 0]}),
        ("draws_2", {"last": [7, 7, 7]}),
        ("draws_2", {"last": [6, 6]}),
        ("draws_2", {"last": ["a", 2, 3]}),
        ("draws_2", {"after": "0"}),
    ],
    ids=str,
)
def test_what_says_something_else_is_refused_even_with_a_valid_digest(target, begun, file, change):
    head, numbers, _ = read_sealed(begun / file)
    write_sealed(begun / file, head | change, [np.frombuffer(numbers, np.uint8)])
    with pytest.raises(CheckpointError, match="is of another run"):
        opened(target, begun)


@pytest.mark.parametrize(
    "change", [{"sweep": 0}, {"sweep": 11}, {"key": "a"}, {"n_even": -1}, {"generator": {}}, {"generator": 3}], ids=str
)
def test_an_impossible_chain_is_refused(target, begun, change):
    head, numbers, _ = read_sealed(begun / STATE)
    head["chains"][1] |= change
    write_sealed(begun / STATE, head, [np.frombuffer(numbers, np.uint8)])
    with pytest.raises(CheckpointError, match=r"state of checkpoint .* is of another run"):
        opened(target, begun)


def test_parameters_that_are_no_numbers_are_refused(target, begun):
    head, content, _ = read_sealed(begun / STATE)
    numbers = np.frombuffer(content).copy()
    numbers[3] = np.nan
    write_sealed(begun / STATE, head, [numbers])
    with pytest.raises(CheckpointError, match=r"state of checkpoint .* is of another run"):
        opened(target, begun)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": "bayesjpt checkpoint 5"}', '{"format": 3}'])
def test_a_damaged_description_is_refused(tmp_path, content):
    (tmp_path / RUN).write_text(content)
    with pytest.raises(CheckpointError, match="checkpoint"):
        read_progress(tmp_path)


def test_a_changed_byte_of_a_description_is_refused(target, tmp_path):
    path = tmp_path / "fit"
    run_until(target, path, 1)
    text = (path / RUN).read_text()
    (path / RUN).write_text(text.replace('"rows": ', '"rows": 1', 1))
    with pytest.raises(CheckpointError, match=r"run\.json of checkpoint .* is not what was written"):
        read_progress(path)


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


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {RUN: '{"format": "bayesjpt checkpoint 2", "facts": {}}', "records": "", "theta": ""},
            "'bayesjpt checkpoint 2'",
        ),
        ({"structures.json": "{}", "structure_0.nc": ""}, "an earlier version"),
    ],
    ids=["one structure", "several"],
)
def test_a_folder_of_an_earlier_version_is_refused_as_that_and_left_alone(tmp_path, files, words):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(CheckpointError, match=f"{words}; expected 'bayesjpt checkpoint 5'"):
        Checkpoint(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == set(files)


def test_a_folder_with_files_of_others_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(CheckpointError, match=r"holds 'thesis\.tex'"):
        Checkpoint(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("kind", [Checkpoint, StructuresFolder])
def test_a_folder_in_use_is_refused(tmp_path, kind):
    pytest.importorskip("fcntl")
    with kind(tmp_path / "fit"), pytest.raises(CheckpointError, match="another process"):
        kind(tmp_path / "fit")


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


@pytest.mark.parametrize("end", [Checkpoint.close, Checkpoint.remove])
def test_a_folder_that_somebody_deleted_is_given_back_and_removed_without_it(begun, end):
    folder = Checkpoint(begun)
    shutil.rmtree(begun)
    end(folder)
    assert not begun.exists()


def test_leftovers_of_a_fit_that_never_began_are_cleared(target, tmp_path):
    path = tmp_path / "fit"
    path.mkdir()
    for name in ("draws_7", "structure.nc.part77", "run.json.part"):
        (path / name).write_text("half")
    run_until(target, path, 1)
    assert sorted(file.name for file in path.iterdir()) == sorted([LOCK, RUN, STATE])


def test_remove_deletes_the_whole_folder(begun):
    with Checkpoint(begun) as folder:
        folder.remove()
    assert not begun.exists()


def test_a_disk_without_room_is_an_error_before_anything_is_sampled(target, tmp_path, monkeypatch):
    usage = collections.namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1000))
    with pytest.raises(CheckpointError, match=r"no room for .* of draws in"):
        run_until(target, tmp_path / "fit", 1)
    assert not (tmp_path / "fit").exists()


def test_a_disk_that_fills_up_later_is_an_error_and_costs_no_more_than_that_save(target, begun, monkeypatch):
    def full(file, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    done = read_progress(begun)
    draws, saves, chains = opened(target, begun)
    run_chains(target, SCHEDULE, chains, draws, n_thread=1, record=saves)
    with monkeypatch.context() as patch:
        patch.setattr(replace_file, "_write", full)
        with pytest.raises(CheckpointError, match=r"cannot write .*no space left on the disk.* resumed"):
            saves.save()
    assert read_progress(begun) == done
    assert_same(run_until(target, begun, None), sampled(target))
