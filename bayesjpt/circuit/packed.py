"""A circuit and its schema as one array of whole numbers, which travels wherever data of a model travel.

      word      0                1 ...           ...
      holds     bytes of header  header (JSON)   all arrays of the circuit, one behind the other

Text, numbers and nothing else: reading it runs no code. Knows nothing of files.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.errors import FitFileError
from bayesjpt.families import registry
from bayesjpt.table.schema import Schema

FORMAT = "bayesjpt circuit 2"
PACKED = "_circuit"
"""What a block's name is followed by in the name of the packed circuit among a model's data."""

_WORD = "<u8"
"""PyMC makes int32 of other whole numbers of data."""
_DTYPES = ("|i1", "<i2", "<i4", "<i8", "<f8")


def pack(circuit: Circuit, schema: Schema) -> np.ndarray:
    """Return a circuit and its schema as uint64 (n,)."""
    arrays = {name: array.astype(array.dtype.newbyteorder("<")) for name, array in circuit._asdict().items()}
    header = json.dumps(
        {
            "format": FORMAT,
            "schema": schema.to_dict(),
            "families": [family.name for family in registry.FAMILIES],
            "arrays": [[name, array.dtype.str, array.size] for name, array in arrays.items()],
        }
    ).encode()
    content = b"".join([np.array([len(header)], _WORD).tobytes(), header, *(a.tobytes() for a in arrays.values())])
    # up to a whole number of words
    content += bytes(-len(content) % 8)
    return np.frombuffer(content, _WORD).astype(np.uint64)


def unpack(words: np.ndarray) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays of a packed circuit; neither is checked against the other.

    Raises
    ------
    FitFileError
        For anything that `pack` does not write.
    """
    if words.ndim != 1 or words.dtype.kind not in "iu" or not words.size:
        raise FitFileError(f"a circuit of {words.dtype} with {words.ndim} axes", "whole numbers on one axis")
    content = words.astype(_WORD).tobytes()
    length = int(words[0])
    if not 0 < length <= len(content) - 8:
        raise FitFileError("a circuit whose header is longer than it is", "what a model's data hold")
    try:
        header = json.loads(content[8 : 8 + length])
    except ValueError:
        raise FitFileError("a circuit whose header is no JSON", "what a model's data hold") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        found = header.get("format") if isinstance(header, dict) else header
        raise FitFileError(f"a circuit of format {found!r}", repr(FORMAT), "Sample again with this version of bayesjpt")
    return header, _arrays(header.get("arrays"), content[8 + length :])


def _arrays(listed: Any, content: bytes) -> dict[str, np.ndarray]:
    fine = isinstance(listed, list) and all(
        isinstance(entry, list) and len(entry) == 3 and entry[1] in _DTYPES and type(entry[2]) is int and entry[2] >= 0
        for entry in listed
    )
    if not fine or [entry[0] for entry in listed] != list(Circuit._fields):
        raise FitFileError("a circuit of other arrays than those of this version", ", ".join(Circuit._fields))
    ends = np.cumsum([0, *(np.dtype(dtype).itemsize * size for _, dtype, size in listed)], dtype=object)
    # less than a word of padding
    if not 0 <= len(content) - ends[-1] < 8:
        raise FitFileError(f"a circuit of {len(content)} bytes", f"{ends[-1]} of its arrays")
    return {
        name: np.frombuffer(content[at : ends[k + 1]], dtype)
        for k, ((name, dtype, _), at) in enumerate(zip(listed, ends, strict=False))
    }
