"""Files of a checkpoint, each written whole or not at all. A sealed one says whether it is still what was written:

a line of JSON | numbers, as they lie in memory | digest of both
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayesjpt.errors import CheckpointError
from bayesjpt.replace_file import reason, replace_file

_DIGEST_BYTES = 16


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it holds all of its content or is as it was before, and is on the disk.

    Raises
    ------
    CheckpointError
        Where it cannot be written.
    """
    try:
        replace_file(path, content)
    except OSError as error:
        raise CheckpointError(
            f"cannot write {str(path)!r}: {reason(error)}", remedy="What was saved before is whole: it can be resumed"
        ) from None


def write_sealed(path: Path, head: Mapping[str, Any], arrays: Iterable[np.ndarray]) -> str:
    """Write what JSON can hold and some arrays, one behind the other; return the digest of the file."""
    content = b"".join([json.dumps(head).encode(), b"\n", *(np.ascontiguousarray(array).tobytes() for array in arrays)])
    digest = _digest(content)
    write_whole(path, content + digest)
    return digest.hex()


def read_sealed(path: Path) -> tuple[dict[str, Any], memoryview, str]:
    """Return what `write_sealed` wrote: the head, the bytes of the arrays, the digest.

    Raises
    ------
    CheckpointError
        Where there is no such file, or it is not as it was written.
    """
    name = f"{path.name} of checkpoint {str(path.parent)!r}"
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"{name} is missing") from None
    except OSError as error:
        raise CheckpointError(f"{name} cannot be read: {error.strerror or error}") from None
    content, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
    line = content.find(b"\n")
    try:
        head = json.loads(content[:line]) if line >= 0 and _digest(content) == digest else None
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict):
        raise CheckpointError(f"{name} is damaged", "a file as it was written", "Start again in another folder")
    return head, memoryview(content)[line + 1 :], digest.hex()


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()
