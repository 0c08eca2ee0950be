"""Paths as users give them, checked before anything is read or written: what is wrong with one, in a line."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from bayesjpt.errors import BayesjptError
from bayesjpt.replace_file import reason


def as_path(path: object, error: type[BayesjptError]) -> Path:
    """Return a path, with the home folder for ``~``, or raise an error of ours for what is none.

    Examples
    --------
    >>> from bayesjpt.errors import FitFileError
    >>> as_path(None, FitFileError)
    Traceback (most recent call last):
    ...
    bayesjpt.errors.FitFileError: a path of type NoneType; expected a text or a Path
    """
    if not isinstance(path, str | os.PathLike):
        raise error(f"a path of type {type(path).__name__}", "a text or a Path")
    text = os.fspath(path)
    if not isinstance(text, str) or "\0" in text:
        raise error(f"the path {text!r}", "a text without NUL")
    if not text:
        raise error("an empty path", "the name of a file or folder")
    with contextlib.suppress(RuntimeError):  # nobody's home
        return Path(text).expanduser()
    return Path(text)


def as_file(path: object, error: type[BayesjptError]) -> Path:
    """Return the path of a file that is there, or raise an error of ours that says why there is none."""
    path = as_path(path, error)
    if not os.path.isfile(path):  # of `Path`, the same raises where a name is too long or a folder closed
        raise error(_why_none(path, "file"))
    return path


def as_output(path: object, error: type[BayesjptError]) -> Path:
    """Return the path of a file to write; an error of ours where it is a folder, or in none, or in a closed one."""
    path = as_path(path, error)
    if os.path.isdir(path):
        raise error(f"{str(path)!r} is a folder", "the name of a file to write")
    if not os.path.isdir(path.parent):
        raise error(f"{_why_none(path.parent, 'folder')} to write {path.name!r} into")
    why = _why_closed(path)
    if why:
        raise error(f"{str(path)!r} cannot be written: {why}")
    return path


def _why_closed(path: Path) -> str:
    """Return why a file cannot be written into its folder, as far as the system says so before; else nothing."""
    try:
        os.stat(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        return reason(error)
    if os.path.exists(path) and not os.path.isfile(path):
        return ""  # a pipe or device, which is written into
    folder = os.path.dirname(os.path.realpath(path))  # of links, what they lead to is replaced
    if not os.path.isdir(folder):
        return f"it is a link into {folder!r}, which is no folder"
    if os.access(folder, os.W_OK | os.X_OK):
        return ""
    is_read_only = hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY
    return reason(OSError(errno.EROFS if is_read_only else errno.EACCES, ""))


def _why_none(path: Path, kind: str) -> str:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return f"no {kind} {str(path)!r}"
    except PermissionError:
        return f"no permission to look for {kind} {str(path)!r}"
    except OSError as error:
        return f"no {kind} {str(path)!r}: {reason(error)}"
    return f"{str(path)!r} is no {kind}"
