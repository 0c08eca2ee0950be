"""Writing files so that a path holds the old content or the new one, whole, whatever happens in between.

      file without a name  --write, fsync-->  whole  --link-->  .bayesjpt-1f...9c.part  --rename-->  path

A full disk, a limit, or a kill before the link leaves nothing behind: the system frees a file without a name with the
process. Where a system has no such files, the part has its name from the start. Its writer holds a lock on it until it
is renamed, so a part without a lock was abandoned, and the next writer into the folder deletes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: abandoned parts stay
    fcntl = None

PART = re.compile(r"\.bayesjpt-[0-9a-f]{16}\.part")
"""Names of files that are being written."""

_CHUNK = 2**24
"""Bytes handed to the system at once; Linux takes at most 2^31."""

_REASONS = {
    errno.EFBIG: "the file would exceed the size limit of the process (ulimit -f) or of the file system",
    errno.ENOSPC: "no space left on the disk",
    errno.EDQUOT: "no space left in the quota",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "no permission to write into the folder",
    errno.ENAMETOOLONG: "the name is too long",
}


def reason(error: OSError) -> str:
    """Return why the system did not write, in words."""
    return _REASONS.get(error.errno or 0, error.strerror or str(error))


def replace_file(path: str | Path, content: bytes | memoryview | str) -> None:
    """Write a file; one that was there is replaced when the new one is whole and on the disk.

    Parameters
    ----------
    path : str or Path
        Of links, what they lead to is replaced. A pipe or device is written into.
    content : bytes, memoryview or str
        A text is written as UTF-8.

    Raises
    ------
    OSError
        Where it cannot be written; the old file is then as it was, and nothing is left beside it.

    Notes
    -----
    Of several processes or threads that write to one path, the last to finish wins. The folder's entry is synced, too,
    but an error there is no failure: behind a power cut the path then holds the old file or the new one, each whole.
    """
    if isinstance(content, str):
        content = content.encode()
    path = Path(path)
    if os.path.exists(path) and not os.path.isfile(path):
        path.write_bytes(content)
        return
    path = Path(os.path.realpath(path))
    part = path.with_name(f".bayesjpt-{secrets.token_hex(8)}.part")
    try:
        _remove_abandoned(path.parent)
        with _written(part, content, path):
            os.replace(part, path)
    except BaseException:  # a keyboard interrupt, too
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


@contextlib.contextmanager
def _written(part: Path, content: bytes | memoryview, like: Path) -> Iterator[None]:
    """Hold a new file of some content, synced and named, until it is renamed."""
    file, is_named = _new_file(part)
    try:
        _write(file, content)
        if hasattr(os, "fchmod"):
            with contextlib.suppress(OSError):  # no old file, or a file system without modes
                os.fchmod(file, like.stat().st_mode & 0o777)
        os.fsync(file)
        if not is_named:
            _link(file, part)
        if os.name != "nt":
            yield
    finally:
        os.close(file)
    if os.name == "nt":  # does not rename open files
        yield


def _new_file(part: Path) -> tuple[int, bool]:
    """Return an open and locked empty file, and whether it has a name yet."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # a file system without such files, or an error that the next lines repeat
            file = os.open(part.parent, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o666)
            _lock(file)
            return file, False
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        file = os.open(part, flags, 0o666)
        _lock(file)
        if part.exists():
            return file, True
        os.close(file)  # another writer met it between the two lines above, without its lock


def _lock(file: int) -> None:
    if fcntl is not None:
        with contextlib.suppress(OSError):  # a file system without locks: nothing is ever taken for abandoned
            fcntl.flock(file, fcntl.LOCK_EX)


def _write(file: int, content: bytes | memoryview) -> None:
    rest = memoryview(content).cast("B")
    while rest:
        # at a limit the system takes what still fits, and says why only when it is asked again
        rest = rest[os.write(file, rest[:_CHUNK]) :]


def _link(file: int, part: Path) -> None:
    """Give an open file without a name its name."""
    folder = os.open(part.parent, os.O_RDONLY)
    try:
        # with a folder given, Python calls linkat, which follows the link in /proc to the open file
        os.link(f"/proc/self/fd/{file}", part.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _remove_abandoned(folder: Path) -> None:
    """Delete parts whose writers were killed: those without a lock."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        names = [entry.name for entry in os.scandir(folder) if PART.fullmatch(entry.name)]
        for part in (folder / name for name in names):
            with contextlib.suppress(OSError), part.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
