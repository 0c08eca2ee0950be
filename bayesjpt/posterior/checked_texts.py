"""A checksum of the texts beside the arrays of a saved fit: HDF5 has them of arrays alone, not of attributes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Protocol

from bayesjpt.errors import FitFileError

CHECKSUM = "checksum"


class Texts(Protocol):
    """A file, or a DataTree, that has texts."""

    def text(self, path: str, name: str) -> str: ...


def with_checksum(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts by name, and with them what names and texts add up to."""
    texts = {name: text for name, text in texts.items() if name != CHECKSUM}
    return {**texts, CHECKSUM: json.dumps({"of": sorted(texts), "sha256": _digest(texts)})}


def check_texts(file: Texts, group: str) -> None:
    """Raise `FitFileError` unless the texts of a group are those that were written."""
    try:
        stored = json.loads(file.text(group, CHECKSUM))
        names, digest = [str(name) for name in stored["of"]], stored["sha256"]
    except (FitFileError, ValueError, KeyError, TypeError):
        raise FitFileError(
            "no checksum of its texts", "a file of this version of bayesjpt", "Fit again, and save"
        ) from None
    if _digest({name: file.text(group, name) for name in names}) != digest:
        raise FitFileError("its texts (schema, settings) are not those that were written", "an undamaged file")


def _digest(texts: Mapping[str, str]) -> str:
    return hashlib.sha256(json.dumps(sorted(texts.items())).encode()).hexdigest()
