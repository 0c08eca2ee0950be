"""The version of what PyTensor keeps of our ops on disk: it changes with any source that such code may hold or name."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from bayesjpt.numerics import jit


@functools.cache
def _folder_version() -> int:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return int(digest.hexdigest()[:14], 16)


def ops_version() -> int:
    """Return an integer over the sources of kernels, which ops hold, and of this folder, whose kernels they name."""
    return jit.source_version() ^ _folder_version()
