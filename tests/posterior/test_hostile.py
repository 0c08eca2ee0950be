"""Files that ask for more than they hold, or for what lies elsewhere: refused before a byte is read."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

import arviz as az
import h5py
import numpy as np
import pytest

import bayesjpt as bj
from bayesjpt.errors import FitFileError
from bayesjpt.posterior.stacked import StackedPosterior
from tests.posterior.test_damaged import refused, rewrite, rewrite_attribute

NAMES = ("bayesjpt/log_weight", "bayesjpt/kind", "posterior/x_normal_mu", "sample_stats/log_likelihood")
"""An array of draws, one of the circuit, one that ArviZ reads, one of the sampler."""


@pytest.fixture
def copy(saved, tmp_path) -> Path:
    """Return the path of a fit's file that a test may change."""
    return shutil.copy(saved, tmp_path / "copy.nc")


@pytest.fixture
def nothing_is_read(monkeypatch):
    """Let the test fail where an array that is refused is read."""
    read = h5py.Dataset.__getitem__

    def watched(array, *arguments, **options):
        assert array.id.get_storage_size() >= array.nbytes
        assert not array.external
        assert not array.is_virtual
        return read(array, *arguments, **options)

    monkeypatch.setattr(h5py.Dataset, "__getitem__", watched)


def replace(path: Path, name: str, make) -> None:
    """Put something else in place of an array: `make` gets its group, the name there, and its shape and numbers."""
    with h5py.File(path, "r+") as file:
        group, _, last = name.rpartition("/")
        values = file[name][()]
        del file[name]
        make(file[group], last, values)


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_an_array_of_gigabytes_in_a_small_file_is_refused(copy, name, compression):
    def make(group, last, values):
        shape = (2**20, *values.shape[1:-1], 2**20)[: values.ndim]
        group.create_dataset(
            last, shape, values.dtype, chunks=tuple(min(size, 16) for size in shape), compression=compression
        )

    replace(copy, name, make)
    assert copy.stat().st_size < 2**20
    assert "of which the file holds" in refused(copy) or "compressed" in refused(copy) or "shape" in refused(copy)


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize("name", NAMES)
def test_a_compressed_array_is_refused_with_the_remedy(copy, name):
    replace(copy, name, lambda group, last, values: group.create_dataset(last, data=values, compression="gzip"))
    assert "h5repack" in refused(copy)


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize("name", NAMES)
def test_an_array_in_another_file_is_refused(copy, name, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(100_000))

    def make(group, last, values):
        group.create_dataset(last, values.shape, values.dtype, external=[(str(secret), 0, values.nbytes)])

    replace(copy, name, make)
    assert "another file" in refused(copy)


@pytest.mark.usefixtures("nothing_is_read")
@pytest.mark.parametrize("name", NAMES)
def test_a_virtual_array_is_refused(copy, name, saved):
    def make(group, last, values):
        layout = h5py.VirtualLayout(values.shape, values.dtype)
        layout[...] = h5py.VirtualSource(str(saved), name, shape=values.shape)
        group.create_virtual_dataset(last, layout)

    replace(copy, name, make)
    assert "another file" in refused(copy)


@pytest.mark.parametrize("name", [*NAMES, "bayesjpt", "posterior"])
@pytest.mark.parametrize("kind", ["soft", "external"])
def test_a_link_to_another_place_is_refused(copy, saved, name, kind):
    with h5py.File(copy, "r+") as file:
        file.move(name, "moved")
        file[name] = h5py.SoftLink("/moved") if kind == "soft" else h5py.ExternalLink(str(saved), name)
    assert "is a link" in refused(copy)


@pytest.mark.parametrize("dtype", [np.complex128, np.longdouble, "S5", h5py.string_dtype(), h5py.ref_dtype, "V3"])
def test_an_array_of_other_than_numbers_is_refused(copy, dtype):
    replace(copy, NAMES[0], lambda group, last, values: group.create_dataset(last, values.shape, dtype))
    assert "numbers of at most 64 bits" in refused(copy)


def test_one_array_under_many_names_is_refused_where_it_exceeds_the_file(copy):
    with h5py.File(copy, "r+") as file:
        shape = file["bayesjpt/reference_values"].shape
        n = copy.stat().st_size // 4 // shape[0]
        large = np.zeros((shape[0], n))
        for name in ("reference_values", "reference_observed"):
            del file["bayesjpt"][name]
        file["bayesjpt/reference_values"] = large
        file["bayesjpt/reference_observed"] = file["bayesjpt/reference_values"]
        for name in file["sample_stats"]:
            del file["sample_stats"][name]
    with h5py.File(copy, "r+") as file:
        assert file["bayesjpt/reference_values"].nbytes * 2 > copy.stat().st_size
    assert "more bytes than" in refused(copy)


def test_a_text_that_is_a_list_is_refused(copy):
    rewrite_attribute(copy, "schema", lambda text: np.array([text.encode()] * 2))
    assert "is no text" in refused(copy)


def test_lengths_that_overflow_are_refused(post, tmp_path):
    path = tmp_path / "several.nc"
    StackedPosterior([post, post], [0.5, 0.5]).save(path)

    def overflowing(length):
        length = length.copy()
        length[:, 0] = [length[:, 0].sum() + 2**62, -(2**62)]
        return length

    rewrite(path, "length", overflowing)
    assert "do not add up" in refused(path)


def test_a_heap_of_texts_without_an_end_is_refused(copy):
    content = bytearray(copy.read_bytes())
    at = content.find(b"GCOL\x01\0\0\0")
    content[at + 16 : at + 32] = bytes(16)  # free space of no size, on which HDF5 stays for ever
    copy.write_bytes(content)
    assert "damaged heap" in refused(copy)


@pytest.mark.parametrize("dtype", [h5py.regionref_dtype, np.dtype(np.float64)])
def test_axes_that_are_named_by_other_than_objects_are_refused(copy, dtype):
    with h5py.File(copy, "r+") as file:
        array = file["posterior/x_normal_mu"]
        one = {"O": [array.regionref[:1]] if dtype == h5py.regionref_dtype else ["x"], "f": [1.0]}[dtype.kind]
        axes = np.empty(array.ndim, object)
        for axis in range(array.ndim):
            axes[axis] = np.array(one, dtype)
        del array.attrs["DIMENSION_LIST"]
        array.attrs.create("DIMENSION_LIST", axes, (array.ndim,), h5py.vlen_dtype(dtype))
    # HDF5 ends the interpreter where it reads lists of regions
    assert "expected dims" in refused(copy)


@pytest.mark.parametrize("settings", ["[1, 2]", "3", '"text"'])
def test_settings_that_are_no_names_with_values_are_refused(copy, settings):
    rewrite_attribute(copy, "settings", lambda _: settings)
    assert "settings" in refused(copy)


def test_a_fit_is_opened_while_its_writer_holds_the_lock(saved):
    with saved.open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert bj.load(saved).n_draw > 0


def test_a_fit_is_read_while_arviz_has_it_open(saved):
    with az.from_netcdf(saved) as tree:  # arrays are read when they are asked for
        assert bj.load(saved).n_draw == tree["posterior"].sizes["draw"]


def test_no_memory_is_an_error_of_ours(saved, monkeypatch):
    def planted(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(h5py.Dataset, "__getitem__", planted)
    with pytest.raises(FitFileError, match="memory"):
        bj.load(saved)
