"""Files of a checkpoint: mapped arrays with room reserved on the disk, texts written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np

from bayesjpt.errors import CheckpointError
from bayesjpt.replace_file import reason, replace_file
from bayesjpt.sampler.memory import in_words


def create_file(path: Path, n_byte: int) -> None:
    """Create a file of zeros whose room on the disk is reserved: without it, a full disk would kill the process later.

    Raises
    ------
    CheckpointError
        Where the disk has no room, or cannot be written to.
    """
    try:
        with path.open("wb") as file:
            if n_byte and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, n_byte)
            else:
                file.truncate(n_byte)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise CheckpointError(
                f"no room for {in_words(n_byte)} of {path.name} in {str(path.parent)!r}",
                remedy="Choose a folder on another disk, or keep fewer draws with thin=10 and a tenth of the draws",
                command="Choose a folder on another disk, or keep fewer draws with --thin 10 and a tenth of the draws",
            ) from None
        raise CheckpointError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


def map_file(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return a file as an array; what is written into the array is in the file, whatever becomes of the process.

    Raises
    ------
    CheckpointError
        Where there is no such file, or it has another size.
    """
    n_byte = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    found = path.stat().st_size if path.is_file() else None
    if found != n_byte:
        what = "is missing" if found is None else f"has {found} bytes"
        raise CheckpointError(f"{path.name} of the checkpoint {str(path.parent)!r} {what}", f"a file of {n_byte} bytes")
    if not n_byte:
        return np.zeros(shape, dtype)
    return np.asarray(np.memmap(path, dtype, "r+", shape=shape))


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it holds all of its content or is as it was before.

    Raises
    ------
    CheckpointError
        Where it cannot be written.
    """
    try:
        replace_file(path, content)
    except OSError as error:
        raise CheckpointError(f"cannot write {str(path)!r}: {reason(error)}") from None
