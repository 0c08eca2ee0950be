"""Files that are replaced whole or not at all: planted errors, real limits, kills, many writers."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bayesjpt import replace_file as module
from bayesjpt.replace_file import PART, reason, replace_file

OLD, NEW = b"old " * 50, b"the new content " * 40
MOST_CALLS = 60
N_WRITER = 6

pytestmark = pytest.mark.skipif(os.name == "nt", reason="plants errors into calls of POSIX")


@pytest.fixture(params=["unnamed", "named"])
def way(request, monkeypatch) -> str:
    """Write by a file without a name, or by one that has a name from the start."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("no files without a name on this system")
    monkeypatch.setattr(module, "_CHUNK", 100)  # several writes a file
    return request.param


@pytest.fixture(params=[True, False], ids=["replaced", "new"])
def path(request, tmp_path) -> Path:
    """Return a path, of a file or of none."""
    path = tmp_path / "file"
    if request.param:
        path.write_bytes(OLD)
    return path


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def fail_at(monkeypatch, name: str, count: int, number: int) -> list[int]:
    """Plant an error into one call of a function of `os`; the list grows by one at each call."""
    call, calls = getattr(os, name), []

    def planted(*arguments, **options):
        calls.append(len(calls))
        if len(calls) == count:
            raise OSError(number, os.strerror(number))
        return call(*arguments, **options)

    monkeypatch.setattr(os, name, planted)
    return calls


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EFBIG])
@pytest.mark.parametrize("count", range(1, len(NEW) // 100 + 2))
def test_an_error_at_any_write_leaves_the_folder_as_it_was(way, path, count, number, monkeypatch):
    before = content(path)
    calls = fail_at(monkeypatch, "write", count, number)
    with pytest.raises(OSError, match=os.strerror(number)):
        replace_file(path, NEW)
    assert len(calls) == count
    assert content(path) == before
    assert [file.name for file in path.parent.iterdir()] == ["file"] * (before is not None)


@pytest.mark.parametrize("call", ["fsync", "replace", "link"])
def test_an_error_behind_the_writes_leaves_the_folder_as_it_was(way, path, call, monkeypatch):
    if way == "named" and call == "link":
        pytest.skip("is not called")
    before = content(path)
    calls = fail_at(monkeypatch, call, 1, errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        replace_file(path, NEW)
    assert len(calls) == 1
    assert content(path) == before
    assert [file.name for file in path.parent.iterdir()] == ["file"] * (before is not None)


def test_an_error_at_the_sync_of_the_folder_leaves_the_new_file_whole(way, path, monkeypatch):
    calls = fail_at(monkeypatch, "fsync", 2, errno.EIO)
    replace_file(path, NEW)
    assert len(calls) == 2
    assert content(path) == NEW
    assert [file.name for file in path.parent.iterdir()] == ["file"]


def test_a_keyboard_interrupt_leaves_the_folder_as_it_was(way, path, monkeypatch):
    before = content(path)

    def interrupted(file):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace_file(path, NEW)
    assert content(path) == before
    assert [file.name for file in path.parent.iterdir()] == ["file"] * (before is not None)


def test_what_the_system_writes_in_part_is_written_on(way, path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, rest: write(file, rest[:7]))
    replace_file(path, NEW)
    assert content(path) == NEW


def test_a_system_without_files_that_have_no_name_gets_the_same_file(path, monkeypatch):
    real = os.open

    def refuses(name, flags, *more, **options):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return real(name, flags, *more, **options)

    monkeypatch.setattr(os, "open", refuses)
    replace_file(path, NEW)
    assert content(path) == NEW


def test_the_mode_of_the_old_file_is_kept_and_that_of_a_new_one_is_usual(way, tmp_path):
    old, new, usual = (tmp_path / name for name in ("old", "new", "usual"))
    old.write_bytes(OLD)
    old.chmod(0o640)
    usual.write_bytes(OLD)
    for path in (old, new):
        replace_file(path, NEW)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640
    assert new.stat().st_mode == usual.stat().st_mode


def test_of_a_link_the_file_is_replaced(way, path, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(path.name)
    replace_file(link, NEW)
    assert link.is_symlink()
    assert content(path) == NEW


def test_a_pipe_is_written_into(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(path.read_bytes)
        replace_file(path, NEW)
    assert read.result() == NEW
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_parts_of_killed_writers_are_deleted_and_those_in_use_are_not(tmp_path):
    abandoned, used = (tmp_path / f".bayesjpt-{digit * 16}.part" for digit in "01")
    foreign = tmp_path / "other.part"
    for part in (abandoned, used, foreign):
        part.write_bytes(OLD)
    with used.open("rb") as file:
        module._lock(file.fileno())
        replace_file(tmp_path / "file", NEW)
    assert {file.name for file in tmp_path.iterdir()} == {used.name, foreign.name, "file"}


@pytest.mark.parametrize("number", [errno.EFBIG, errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_reasons_are_words(number):
    assert len(reason(OSError(number, os.strerror(number)))) > 10


# --- the system's own limits


def test_a_file_size_limit_is_an_error_and_leaves_the_old_file(path, way):
    before = content(path)
    program = f"""
import resource, signal, sys
from pathlib import Path
from bayesjpt import replace_file as module
module._CHUNK = 100
if {way == "named"}:
    del module.os.O_TMPFILE
resource.setrlimit(resource.RLIMIT_FSIZE, (250, 250))
try:
    module.replace_file(Path({str(path)!r}), {NEW!r})
except OSError as error:
    print(module.reason(error))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "size limit" in done.stdout
    assert content(path) == before
    assert [file.name for file in path.parent.iterdir()] == ["file"] * (before is not None)


def test_a_full_disk_is_an_error_and_leaves_the_old_file(small_disk, way):
    path = small_disk / "file"
    replace_file(path, OLD)
    with pytest.raises(OSError, match="No space") as caught:
        replace_file(path, b"x" * 100_000)
    assert "no space" in reason(caught.value)
    assert path.read_bytes() == OLD
    assert list(small_disk.iterdir()) == [path]


def test_a_read_only_disk_is_an_error_and_leaves_the_old_file(small_disk, way):
    path = small_disk / "file"
    replace_file(path, OLD)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(OSError, match="Read-only") as caught:
        replace_file(path, NEW)
    assert "read-only" in reason(caught.value)
    assert path.read_bytes() == OLD
    assert list(small_disk.iterdir()) == [path]


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_an_error_and_keeps_its_file(path, way):
    before = content(path)
    path.parent.chmod(0o500)
    with pytest.raises(OSError, match="Permission"):
        replace_file(path, NEW)
    path.parent.chmod(0o700)
    assert content(path) == before


# --- kills, threads, processes

WRITER = """
import os, sys
from bayesjpt import replace_file as module
path, letter, named = sys.argv[1], sys.argv[2], sys.argv[3] == "named"
if named:
    del module.os.O_TMPFILE
module._CHUNK = 1000
print("begun", flush=True)
while True:
    module.replace_file(path, letter * 100_000)
"""


def start_writer(path: Path, letter: str, way: str) -> subprocess.Popen:
    command = [sys.executable, "-c", WRITER, str(path), letter, way]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def is_whole(content: bytes) -> bool:
    return len(content) == 100_000 and len(set(content)) == 1


KILLED = """
import itertools, os, signal, sys
from bayesjpt import replace_file as module
path, letter, named, last = sys.argv[1], sys.argv[2], sys.argv[3] == "named", int(sys.argv[4])
if named:
    del os.O_TMPFILE
module._CHUNK = 10_000
number = itertools.count(1)


def counted(call):
    def counting(*arguments, **options):
        if next(number) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **options)

    return counting


for name in ("open", "fchmod", "write", "fsync", "link", "replace", "unlink", "close"):
    setattr(os, name, counted(getattr(os, name)))
module.replace_file(path, letter * 100_000)
"""


def test_a_kill_before_any_call_leaves_a_whole_file(tmp_path, way):
    path = tmp_path / "file"
    path.write_bytes(b"o" * 100_000)
    for last in range(1, MOST_CALLS):
        command = [sys.executable, "-c", KILLED, str(path), "abcdefgh"[last % 8], way, str(last)]
        code = subprocess.run(command, check=False).returncode
        assert is_whole(path.read_bytes())
        if code == 0:  # it came to its end before so many calls
            break
        assert code == -signal.SIGKILL
        parts = [file.name for file in tmp_path.iterdir() if file != path]
        assert all(map(PART.fullmatch, parts))
        if way == "unnamed":  # a kill between link and rename leaves a whole part
            assert all(len((tmp_path / part).read_bytes()) == 100_000 for part in parts)
        assert len(parts) <= 1  # the writer before left none that this one did not delete
    assert 15 < last < MOST_CALLS - 1
    replace_file(path, NEW)
    assert list(tmp_path.iterdir()) == [path]


def test_of_processes_that_write_to_one_path_one_wins(tmp_path, way):
    path = tmp_path / "file"
    path.write_bytes(b"o" * 100_000)
    writers = [start_writer(path, letter, way) for letter in "ab"]
    for _ in range(300):
        assert is_whole(path.read_bytes())
    for writer in writers:
        assert writer.poll() is None  # no writer has failed
        writer.kill()
        writer.wait()
        writer.stdout.close()  # pyright: ignore[reportOptionalMemberAccess]


def test_of_threads_that_write_to_one_path_one_wins(tmp_path, way):
    path = tmp_path / "file"
    together = threading.Barrier(N_WRITER)

    def write(letter: str) -> None:
        together.wait()
        for _ in range(5):
            replace_file(path, letter * 100_000)

    with ThreadPoolExecutor(N_WRITER) as pool:
        list(pool.map(write, "abcdef"))
    assert is_whole(path.read_bytes())
    assert list(tmp_path.iterdir()) == [path]
