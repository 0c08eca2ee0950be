"""Changes to files: of bytes anywhere, of JSON, and of what an HDF5 file says that it holds, checksums included."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.files import renew_checksum

Rng = np.random.Generator

NUMBERS = (0, 1, -1, 2, 127, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, -(2**63), 10**20)
FLOATS = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.5)
VALUES: tuple[Any, ...] = (*NUMBERS, *FLOATS, None, True, "", "x", "nan", "inf", "1e999", [], [[]], {}, "9" * 400)
DATA_TYPES = ("i1", "u8", "f2", "f4", "f8", "g", "S3", "c16", "V4", "text", "compound", "reference", "long")
TOKENS = (*(bytes([byte]) for byte in b',;\t\n\r"\0\xff[]='), b"nan", b"1e999", b"sep=;\n", b"9" * 50)


def mutate(path: Path, rng: Rng) -> None:
    """Change a file, or one file of a folder."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.stat().st_size)
        path = files[rng.integers(len(files))]
    if path.suffix == ".nc" and rng.random() < 0.6:
        for _ in range(rng.integers(1, 3)):
            with contextlib.suppress(Exception):  # what the change before has broken is not changed again
                mutate_hdf5(path, rng)
    elif path.suffix == ".json" and rng.random() < 0.7:
        path.write_text(json.dumps(mutated_json(json.loads(path.read_text()), rng)))
    elif path.suffix == ".gz" and rng.random() < 0.6:
        path.write_bytes(gzip.compress(mutated_bytes(gzip.decompress(path.read_bytes()), rng)))
    else:
        path.write_bytes(mutated_bytes(path.read_bytes(), rng))


def mutated_bytes(content: bytes, rng: Rng) -> bytes:
    """Return bytes after one to eight changes."""
    changed = bytearray(content)
    for _ in range(rng.integers(1, 9)):
        if not changed:
            break
        at = int(rng.integers(len(changed)))
        length = int(min(rng.geometric(0.05), len(changed) - at))
        match rng.integers(8):
            case 0:
                changed[at] ^= 1 << int(rng.integers(8))
            case 1:
                changed[at : at + length] = rng.bytes(length)
            case 2:
                del changed[at : at + length]
            case 3:
                changed[at:at] = changed[at : at + length]
            case 4:
                number = int(rng.choice(np.array(NUMBERS, object))) % 2**64
                changed[at : at + 8] = number.to_bytes(8, "little")
            case 5:
                token = TOKENS[rng.integers(len(TOKENS))]
                changed[at : at + int(rng.integers(2))] = token * int(rng.integers(1, 4))
            case 6:
                del changed[at : None if rng.random() < 0.2 else at + 1]
            case 7:
                other = int(rng.integers(len(changed)))
                changed[other : other + length] = changed[at : at + length]
    return bytes(changed)


def mutated_json(value: Any, rng: Rng) -> Any:
    """Return JSON with one value changed, somewhere below."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = list(value)[rng.integers(len(value))]
        if rng.random() < 0.1:
            return {name: part for name, part in value.items() if name != key}
        return value | {key: mutated_json(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = int(rng.integers(len(value)))
        match rng.integers(8):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return [*value, value[at]]
        return [*value[:at], mutated_json(value[at], rng), *value[at + 1 :]]
    return VALUES[rng.integers(len(VALUES))]


def mutate_hdf5(path: Path, rng: Rng) -> None:
    """Change an array, its form, a link or a text of a file, as a program that writes HDF5 would."""
    with h5py.File(path, "r+") as file:
        names: list[str] = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        name = names[rng.integers(len(names))]
        group, array = file[name].parent, file[name]
        match rng.integers(10):
            case 0 | 1 | 2:
                _change_numbers(array, rng)
            case 3 | 4:
                _change_text(file, rng)
            case 5:
                _replace(group, array, rng)
            case 6:
                _promise(group, array, rng)
            case 7:
                _link(file, group, array, rng)
            case 8:
                del group[name.rpartition("/")[2]]
            case 9:
                other = names[rng.integers(len(names))]
                del file[name]
                if other in file:
                    file[name] = file[other]


def _change_numbers(array: h5py.Dataset, rng: Rng) -> None:
    values = array[()]
    if not values.size or values.dtype.kind not in "iuf":
        return
    flat = values.reshape(-1)
    for at in rng.integers(0, flat.size, rng.integers(1, 4)):
        if rng.random() < 0.5:
            at = slice(at, at + int(rng.geometric(0.1)))
        if values.dtype.kind == "f":
            flat[at] = FLOATS[rng.integers(len(FLOATS))] if rng.random() < 0.5 else flat[at] + rng.normal()
        elif rng.random() < 0.5:
            info = np.iinfo(values.dtype)
            flat[at] = rng.choice([info.min, info.max, 0, 1, -1 if info.min else 2])
        else:
            with np.errstate(over="ignore"):
                flat[at] = flat[at] + values.dtype.type(rng.integers(1, 3))
    array[...] = values


def _change_text(file: h5py.File, rng: Rng) -> None:
    attributes = file["bayesjpt"].attrs if "bayesjpt" in file else {}
    names = [name for name in attributes if isinstance(attributes[name], str)]
    if not names:
        return
    name = names[rng.integers(len(names))]
    text = attributes[name]
    try:
        changed = json.dumps(mutated_json(json.loads(text), rng))
    except ValueError:
        changed = text
    if rng.random() < 0.15:
        changed = mutated_bytes(text.encode(), rng).decode("utf-8", "replace").replace("\0", "")
    match rng.integers(12):
        case 0:
            attributes[name] = VALUES[rng.integers(len(NUMBERS))] % 2**62
        case 1:
            attributes[name] = np.array([changed.encode()] * 3)
        case 2:
            attributes[name] = np.bytes_(changed.encode() or b"x")
        case 3:
            attributes[name] = "[" * 20_000
        case _:
            attributes[name] = changed
    if rng.random() < 0.8:  # or nothing would be met behind the checksum
        renew_checksum(file)


def _replace(group: h5py.Group, array: h5py.Dataset, rng: Rng) -> None:
    """Put an array of another type or shape in place of one."""
    name = array.name.rpartition("/")[2]
    shape = tuple(int(size) for size in rng.permutation(array.shape))
    kind = DATA_TYPES[rng.integers(len(DATA_TYPES))]
    dtype: Any = {
        "text": h5py.string_dtype(),
        "compound": np.dtype([("a", "f8"), ("b", "i4")]),
        "reference": h5py.ref_dtype,
        "long": h5py.vlen_dtype(np.int32),
    }.get(kind, kind)
    del group[name]
    match rng.integers(4):
        case 0:
            group.create_dataset(name, shape, dtype)
        case 1:
            group.create_dataset(name, (*shape, 2), dtype)
        case 2:
            group.create_dataset(name, (), dtype)
        case 3:
            group[name] = h5py.Empty("f8")


def _promise(group: h5py.Group, array: h5py.Dataset, rng: Rng) -> None:
    """Put an array in place of one that takes more memory than the file."""
    name = array.name.rpartition("/")[2]
    shape = list(array.shape) or [1]
    shape[rng.integers(len(shape))] = int(rng.choice([10**6, 2**31, 2**32, 2**40]))
    options: dict[str, Any] = {"chunks": tuple(min(size, 64) for size in shape)}
    if rng.random() < 0.5:
        options["compression"] = "gzip"
    if rng.random() < 0.2:
        options["chunks"] = tuple(min(size, 2**28 // len(shape)) for size in shape)
    if rng.random() < 0.2 and array.shape and array.size:
        shape = list(array.shape)
        options = {"compression": "gzip", "data": array[()]}
    dtype = array.dtype
    del group[name]
    try:
        group.create_dataset(name, shape=tuple(shape), dtype=dtype, **options)
    except (ValueError, OverflowError, RuntimeError):  # beyond what HDF5 itself can say
        group[name] = 0


def _link(file: h5py.File, group: h5py.Group, array: h5py.Dataset, rng: Rng) -> None:
    """Let an array, or a group, lie elsewhere."""
    name, shape, dtype = array.name.rpartition("/")[2], array.shape or (1,), array.dtype
    whole = rng.random() < 0.2
    parent, name = (file, group.name.strip("/").split("/")[0]) if whole else (group, name)
    if not name or name not in parent:
        return
    del parent[name]
    match rng.integers(5):
        case 0:
            parent[name] = h5py.SoftLink("/posterior" if rng.random() < 0.5 else f"/{name}")
        case 1:
            parent[name] = h5py.ExternalLink("/etc/passwd" if rng.random() < 0.5 else "one.nc", "/bayesjpt")
        case 2:
            size = int(np.prod(shape)) * 8
            parent.create_dataset(name, shape, "f8", external=[("/dev/zero", 0, size or 8)])
        case 3:
            layout = h5py.VirtualLayout(shape, dtype)
            if 0 not in shape:
                layout[...] = h5py.VirtualSource("one.nc", "bayesjpt/kind", shape=shape)
            parent.create_virtual_dataset(name, layout)
        case 4:
            parent[name] = file["/"]  # a circle
