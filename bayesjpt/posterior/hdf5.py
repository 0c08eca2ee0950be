"""Arrays and texts of an HDF5 file from anywhere: what is about to be read is checked before a byte of it is read.

HDF5 can ask for more than a file holds: arrays of any shape over nothing, links and storage in other files, filters
that expand or that are libraries to be loaded. A saved fit needs none of these, so all are refused by name. What an
array takes in memory has to lie in the file, byte for byte, and all arrays together may not take more than the file.
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.errors import FitFileError

if TYPE_CHECKING:
    import h5py

CHECKSUM, SHUFFLE = 3, 2
"""Numbers of the filters that change no size, in HDF5."""

_HEAP = b"GCOL\x01\0\0\0"
"""How a global heap begins."""

_WIDEST = 8
"""Bytes of a number."""


class SafeFile:
    """An open file; a context manager.

    Parameters
    ----------
    path : Path

    Raises
    ------
    OSError
        Where it is no HDF5 file.
    FitFileError
        Where its texts are damaged.
    """

    def __init__(self, path: Path):
        import h5py

        _check_heaps(path)
        # HDF5 neither asks for a lock nor minds how else the process has a file open that Python reads; one that is
        # being replaced is whole, though its writer holds a lock for a moment
        with ExitStack() as opened:
            source = opened.enter_context(path.open("rb"))
            try:
                self._file = h5py.File(source, "r")
            except OSError as error:
                # frames of h5py hold what HDF5 knows of a Python file; where no garbage is collected, HDF5 would free
                # it behind the end of the interpreter, which ends in a segmentation fault
                raise error.with_traceback(None) from None
            self._opened = opened.pop_all()
        self._n_byte = path.stat().st_size
        self._n_read = 0
        self._checked: dict[str, h5py.Dataset] = {}

    def __enter__(self) -> SafeFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._opened.close()

    def has(self, path: str) -> bool:
        """Return whether there is something of a path, under links of the usual kind.

        Raises
        ------
        FitFileError
            For a link to another place or file.
        """
        return self._find(path) is not None

    def names(self, path: str) -> list[str]:
        """Return the names of what a group holds; none where there is no such group."""
        import h5py

        found = self._find(path)
        return list(found) if isinstance(found, h5py.Group) else []

    def shape(self, path: str) -> tuple[int, ...]:
        """Return the shape of an array of numbers that can be read; see `array`."""
        return self._array(path).shape

    def array(self, path: str, shape: Sequence[int] | None = None) -> np.ndarray:
        """Return an array of numbers.

        Parameters
        ----------
        shape : sequence of int, optional
            What it must be.

        Raises
        ------
        FitFileError
            Where there is none, or one of another shape or type, stored elsewhere, or larger than what the file holds.
        """
        array = self._array(path)
        if shape is not None and array.shape != tuple(shape):
            raise FitFileError(f"array {path!r} of shape {array.shape}", f"{tuple(shape)}")
        n_byte = array.id.get_type().get_size() * _product(array.shape)
        self._n_read += n_byte
        if self._n_read > self._n_byte:
            raise FitFileError(
                f"arrays of more bytes than the {self._n_byte} of the file, at {path!r}", "at most those"
            )
        return array[()]

    def text(self, path: str, name: str) -> str:
        """Return an attribute of a group that is a text.

        Raises
        ------
        FitFileError
            Where there is none, or something else.
        """
        import h5py

        group = self._group(path)
        if not h5py.h5a.exists(group.id, name.encode()):
            raise FitFileError(f"no attribute {name!r} of {path!r}", "a text")
        found = h5py.h5a.open(group.id, name.encode())
        kind = h5py.check_string_dtype(found.dtype)
        if kind is None or found.shape != () or found.get_storage_size() > self._n_byte:
            raise FitFileError(f"attribute {name!r} of {path!r} is no text", "a text")
        value = group.attrs[name]
        return value.decode() if isinstance(value, bytes) else str(value)

    def json(self, path: str, name: str) -> Any:
        """Return what an attribute says in JSON."""
        return json.loads(self.text(path, name))

    def dims(self, path: str, names: Sequence[str]) -> bool:
        """Return whether the axes of an array are those that netCDF knows by some names, in its group."""
        array, (group, _, _) = self._array(path), path.rpartition("/")
        if not _refers_to_axes(array) or len(array.shape) != len(names):
            return False
        axes = np.asarray(array.attrs["DIMENSION_LIST"])
        return len(axes) == len(names) and all(
            len(axis) == 1 and self._file[axis[0]] == self._find(f"{group}/{name}")
            for axis, name in zip(axes, names, strict=True)
        )

    def _find(self, path: str) -> Any:
        """Return an object, or None; every link to it has to be one to an object of this file."""
        import h5py

        found: Any = self._file
        for part in path.encode().split(b"/"):
            if not isinstance(found, h5py.Group) or not found.id.links.exists(part):
                return None
            if not isinstance(found.get(part.decode(), getlink=True), h5py.HardLink):
                raise FitFileError(f"{path!r} is a link to another place", "arrays and groups in the file itself")
            found = found[part.decode()]
        return found

    def _group(self, path: str) -> h5py.Group:
        import h5py

        found = self._find(path)
        if not isinstance(found, h5py.Group):
            raise FitFileError(f"no group {path!r}", "a file that Posterior.save wrote")
        return found

    def _array(self, path: str) -> h5py.Dataset:
        if path not in self._checked:
            self._checked[path] = self._check(path)
        return self._checked[path]

    def _check(self, path: str) -> h5py.Dataset:
        """Return an array of numbers that lie in the file as they are."""
        import h5py

        array = self._find(path)
        if not isinstance(array, h5py.Dataset):
            raise FitFileError(f"no array {path!r}", "a file that Posterior.save wrote")
        kind = array.id.get_type()
        if kind.get_class() not in (h5py.h5t.INTEGER, h5py.h5t.FLOAT) or kind.get_size() > _WIDEST:
            raise FitFileError(f"array {path!r} of type {array.dtype}", "numbers of at most 64 bits")
        if array.shape is None:
            raise FitFileError(f"array {path!r} without a shape", "numbers")
        n_byte, stored = kind.get_size() * _product(array.shape), array.id.get_storage_size()
        made = array.id.get_create_plist()
        filters = {made.get_filter(number)[0] for number in range(made.get_nfilters())}
        if made.get_layout() == h5py.h5d.VIRTUAL or made.get_external_count():
            raise FitFileError(f"array {path!r} lies in another file", "arrays in the file itself")
        if filters - {CHECKSUM, SHUFFLE}:
            raise FitFileError(
                f"array {path!r} is compressed", "arrays as Posterior.save writes them", "h5repack -f NONE expands them"
            )
        if array.chunks and n_byte and kind.get_size() * _product(array.chunks) > self._n_byte:
            raise FitFileError(f"array {path!r} in chunks of {array.chunks}", "chunks that lie in the file")
        if n_byte > min(stored, self._n_byte):
            raise FitFileError(
                f"array {path!r} of {n_byte} bytes, of which the file holds {min(stored, self._n_byte)}", "all of them"
            )
        return array


def _check_heaps(path: Path) -> None:
    """Raise `FitFileError` unless the objects of each global heap, where texts lie, fill it one behind the other.

    HDF5 1.14 walks over them without end where the free space behind them has the size zero.

    References
    ----------
    The HDF Group, HDF5 File Format Specification 3.0, section III.E.
    """
    size = path.stat().st_size
    if not size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(_HEAP)
        while at >= 0:
            end = at + int.from_bytes(content[at + 8 : at + 16], "little")
            place = at + 16
            while end <= size and place + 16 <= end:
                index, length = struct.unpack_from("<H6xQ", content, place)
                # free space, of index 0, counts its own 16 bytes and is the last
                place += length if index == 0 else 16 + (length + 7) // 8 * 8
                if index == 0:
                    break
            if not end - 16 < place <= end <= size:
                raise FitFileError(f"a damaged heap of texts at byte {at}", "objects that fill it")
            at = content.find(_HEAP, at + 1)


def _product(shape: Sequence[int]) -> int:
    """Return the number of entries; exact, where NumPy's would overflow."""
    n = 1
    for size in shape:
        n *= int(size)
    return n


def _refers_to_axes(array: h5py.Dataset) -> bool:
    """Return whether an array names its axes as netCDF does, by lists of references to objects; others crash HDF5."""
    import h5py

    if not h5py.h5a.exists(array.id, b"DIMENSION_LIST"):
        return False
    found = h5py.h5a.open(array.id, b"DIMENSION_LIST")
    kind = found.get_type()
    is_list = isinstance(kind, h5py.h5t.TypeVlenID) and kind.get_super().equal(h5py.h5t.STD_REF_OBJ)
    return is_list and found.shape == (len(array.shape),)
