"""A folder from which a fit that was killed goes on as if nothing had happened.

      run.json                              what is fitted, how, from which table: written last, it says "begun"
      lock                                  held by the process that fits
      structure.nc, state, draws_0, ...     of one structure: its circuit, and bayesjpt.sampler.saves
      structure_0.nc, scores_0, ...         of several: bayesjpt.sampler.structures_folder

A folder without run.json is one in which nothing has begun: whatever else it holds of ours is deleted. Plain binary
files, JSON and netCDF; reading them runs no code.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Self

from bayesjpt.errors import CheckpointError
from bayesjpt.replace_file import PART
from bayesjpt.sampler.files import write_whole

FORMAT = "bayesjpt checkpoint 5"

RUN, STRUCTURE, STATE, LOCK = "run.json", "structure.nc", "state", "lock"
_OURS = re.compile(
    rf"({RUN}|{LOCK}|{STATE}|{STRUCTURE}|draws_\d+|scores_\d+|structure_\d+\.nc)(\.part\d*)?|{PART.pattern}"
)

_EARLIER = "structures.json"
"""Stood in folders of several structures before format 3."""


class Checkpoint:
    """A claimed folder; to be closed, or used as a context manager.

    Parameters
    ----------
    path : Path
        Made if it does not exist.

    Raises
    ------
    CheckpointError
        Where the folder cannot be made, holds files of others, or belongs to a process that is still running.
    """

    def __init__(self, path: Path):
        self.path = path
        self._lock = _claim(path)
        if not self.begun:
            self._clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the folder back; it disappears if nothing was begun."""
        if self._lock is not None:
            if not self.begun:
                self._disappear()
            self._release()

    @property
    def begun(self) -> bool:
        """Whether the folder holds a fit that can be continued."""
        return (self.path / RUN).is_file()

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Say that the fit has begun, when all that it needs is there.

        Parameters
        ----------
        facts : mapping
            What JSON can hold: everything on which the draws depend, for `check_facts`.
        """
        facts = json.loads(json.dumps(facts))
        run = {"format": FORMAT, "facts": facts, "sha256": _digest(facts)}
        write_whole(self.path / RUN, json.dumps(run, indent=1))

    def facts(self) -> dict[str, Any]:
        """Return what `begin` was given."""
        return read_run(self.path)

    def remove(self) -> None:
        """Delete the folder, and nothing that is not ours."""
        if self._lock is not None:
            # first of all: without it whatever cannot be deleted is no fit that has begun
            (self.path / RUN).unlink(missing_ok=True)
            self._disappear()
            self._release()

    def _disappear(self) -> None:
        if self.path.is_dir():  # unless somebody deleted it meanwhile, which whatever is written next tells
            self._clear()
        self._release()  # some systems do not delete open files
        try:
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()
        except OSError:  # somebody else has claimed it meanwhile, or put a file there
            return

    def _clear(self) -> None:
        for file in self.path.iterdir():
            if file.name != LOCK:
                file.unlink(missing_ok=True)

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def read_run(path: Path) -> dict[str, Any]:
    """Return the facts of the fit that has begun in a folder.

    Raises
    ------
    CheckpointError
        For a description that is damaged, or of another version.
    """
    where = f"checkpoint {str(path)!r}"
    try:
        run = json.loads((path / RUN).read_text(encoding="utf-8"))
        stored, facts, digest = run["format"], run["facts"], run.get("sha256")
        complete = isinstance(facts, dict) and all(
            isinstance(facts.get(n), dict) for n in ("options", "table", "versions")
        )
    except (OSError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{RUN} of {where} cannot be read ({type(error).__name__})") from None
    if stored != FORMAT or not complete:
        raise CheckpointError(f"{where} of format {stored!r}", repr(FORMAT), "Start again")
    if digest != _digest(facts):
        raise CheckpointError(f"{RUN} of {where} is not what was written", remedy="Start again")
    return facts


def _digest(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def check_facts(path: Path, stored: Mapping[str, Any], requested: Mapping[str, Any]) -> None:
    """Raise `CheckpointError` unless a checkpoint is of this table, these options and these versions.

    Parameters
    ----------
    stored, requested : mapping
        With the keys ``options`` and ``versions`` (mappings from names to values) and ``table`` (with ``rows``,
        ``columns`` and ``digest``).
    """
    where = f"checkpoint {str(path)!r}"
    # as what was stored came back: tuples are lists
    requested = json.loads(json.dumps(requested))
    if stored["table"] != requested["table"]:
        rows, columns = (stored["table"].get(name, "unknown") for name in ("rows", "columns"))
        raise CheckpointError(
            f"{where} is of another table ({rows} rows x {columns} columns, "
            f"this one has {requested['table']['rows']} x {requested['table']['columns']})",
            "the very table, read in the same way",
        )
    for name in {**stored["options"], **requested["options"]}:
        before, now = (facts["options"].get(name) for facts in (stored, requested))
        if before != now:
            raise CheckpointError(
                f"{where} was begun with {name} = {before!r}, not {now!r}",
                "the same options",
                "Repeat them, or choose another folder",
            )
    for name in {**stored["versions"], **requested["versions"]}:
        before, now = (facts["versions"].get(name) for facts in (stored, requested))
        if before != now:
            raise CheckpointError(
                f"{where} was begun with another version of {name} ({_short(before)}, now {_short(now)}), "
                "which may not draw the same numbers",
                "the same versions",
                "Finish it with those, or start again in another folder",
            )


def _short(value: object) -> str:
    return str(value)[:12]


def _claim(path: Path) -> BinaryIO:
    """Return the open lock file of a folder, made if need be."""
    try:
        path.mkdir(exist_ok=True)
        strange = sorted(file.name for file in path.iterdir() if file.is_dir() or not _OURS.fullmatch(file.name))
        if _EARLIER in strange:
            raise CheckpointError(f"checkpoint {str(path)!r} of an earlier version", repr(FORMAT), "Start again")
        if strange and (path / RUN).is_file():
            read_run(path)  # which names another version
        if strange:
            raise CheckpointError(
                f"folder {str(path)!r} holds {strange[0]!r}, which is not of a checkpoint", "a folder of its own"
            )
        lock = (path / LOCK).open("ab")
    except FileNotFoundError:
        if path.parent.is_dir():  # of the system's own, in which nothing can be made
            raise CheckpointError(f"cannot make the folder {str(path)!r}") from None
        raise CheckpointError(f"no folder {str(path.parent)!r} for the checkpoint {path.name!r}") from None
    except FileExistsError:
        raise CheckpointError(f"{str(path)!r} is a file", "the name of a folder") from None
    except OSError as error:
        raise CheckpointError(f"cannot write into {str(path)!r}: {error.strerror or error}") from None
    if not _locked(lock):
        lock.close()
        raise CheckpointError(
            f"another process is fitting into {str(path)!r}", remedy="Wait for it, or choose another folder"
        )
    return lock


def _locked(lock: BinaryIO) -> bool:
    """Lock an open file until it is closed or the process ends; return whether the lock was free."""
    try:
        import fcntl
    except ImportError:
        return True  # Windows: the folder is then not guarded
    try:
        fcntl.flock(lock.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True
