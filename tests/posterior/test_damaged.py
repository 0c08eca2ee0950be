"""Files that are damaged, foreign or made up: one error of ours in one line, and never another exception."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
import xarray as xr

import bayesjpt as bj
from bayesjpt.errors import FitFileError
from tests.files import renew_checksum

N_DAMAGED = 25


def refused(path) -> str:
    with pytest.raises(FitFileError) as caught:
        bj.load(path)
    text = str(caught.value)
    assert "\n" not in text
    assert path.name in text
    return text


@pytest.fixture
def copy(saved, tmp_path):
    """Return the path of a fit's file that a test may change."""
    return shutil.copy(saved, tmp_path / "copy.nc")


def rewrite(path, name: str, change) -> None:
    """Replace one array of our group by a changed one, checksum included."""
    with h5py.File(path, "r+") as file:
        file["bayesjpt"][name][...] = change(file["bayesjpt"][name][...])


def rewrite_draws(path, name: str, change) -> None:
    with h5py.File(path, "r+") as file:
        file["posterior"][name][...] = change(file["posterior"][name][...])


def rewrite_attribute(path, name: str, change) -> None:
    with h5py.File(path, "r+") as file:
        attributes = file["bayesjpt"].attrs
        attributes[name] = change(attributes[name])
        renew_checksum(file)


def test_missing_file_is_refused(tmp_path):
    assert "no file" in refused(tmp_path / "missing.nc")


@pytest.mark.parametrize("content", [b"", b"x,y\n1,2\n", pickle.dumps({"a": 1}), b"\x89HDF\r\n\x1a\n"])
def test_file_of_another_kind_is_refused(tmp_path, content):
    path = tmp_path / "other.nc"
    path.write_bytes(content)
    assert "cannot be read" in refused(path)


def test_netcdf_file_of_somebody_else_is_refused_naming_the_group(tmp_path):
    path = tmp_path / "weather.nc"
    xr.Dataset({"t": ("time", [1.0, 2.0])}).to_netcdf(path, engine="h5netcdf")
    assert "no group 'bayesjpt'" in refused(path)


def test_other_format_version_is_refused_naming_both(copy):
    rewrite_attribute(copy, "format", lambda _: "bayesjpt fit 99")
    text = refused(copy)
    assert "bayesjpt fit 99" in text
    assert "bayesjpt fit 4'" in text


@pytest.mark.parametrize("group", ["bayesjpt", "posterior"])
def test_file_without_a_group_is_refused(copy, group):
    with h5py.File(copy, "r+") as file:
        del file[group]
    assert refused(copy)


@pytest.mark.parametrize("name", ["schema", "families", "settings", "format"])
def test_file_without_an_attribute_is_refused(copy, name):
    with h5py.File(copy, "r+") as file:
        del file["bayesjpt"].attrs[name]
    assert refused(copy)


@pytest.mark.parametrize("name", ["schema", "families", "settings", "checksum"])
def test_a_changed_byte_of_any_text_is_refused(copy, name):
    with h5py.File(copy, "r+") as file:
        text = file["bayesjpt"].attrs[name]
        at = next(i for i in range(len(text) // 2, len(text)) if text[i].isalnum())
        file["bayesjpt"].attrs[name] = text[:at] + ("4" if text[at] != "4" else "5") + text[at + 1 :]
    assert "text" in refused(copy)


def test_columns_of_one_name_are_refused(copy):
    def twice(text: str) -> str:
        first, second = [column["name"] for column in json.loads(text)["columns"][:2]]
        return text.replace(f'"name": "{second}"', f'"name": "{first}"')

    rewrite_attribute(copy, "schema", twice)
    assert "several columns" in refused(copy)


def test_attribute_that_is_no_json_is_refused(copy):
    rewrite_attribute(copy, "schema", lambda text: text[:-5])
    assert "JSON" in refused(copy)


def test_family_that_this_version_does_not_know_is_refused_by_name(copy):
    rewrite_attribute(copy, "families", lambda text: text.replace("poisson", "wishart"))
    assert "wishart" in refused(copy)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scale", 0.0),
        ("scale", "nan"),
        ("resolution", -1.0),
        ("location", "inf"),
        ("support", ["nan", 1.0]),
        ("frequencies", []),
        ("atoms", [1.0]),
        ("atoms", ["inf"]),
        ("atoms", [2.0, 1.0]),
        ("atom_frequencies", [1.0]),
    ],
)
def test_column_with_impossible_numbers_is_refused_by_name(copy, field, value):
    def change(text):
        schema = json.loads(text)
        schema["columns"][0][field] = value
        if field == "frequencies":
            schema["columns"][-1][field] = value
        return json.dumps(schema)

    rewrite_attribute(copy, "schema", change)
    assert "column 'label'" in refused(copy) if field == "frequencies" else "column 'real'" in refused(copy)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("child", lambda child: child[::-1]),
        ("child", lambda child: child + 1000),
        ("child_ptr", lambda ptr: ptr * 0),
        ("kind", lambda kind: kind + 1),
        ("leaf_of", lambda leaf_of: leaf_of - 1),
        ("leaf_var", lambda var: var + 1),
        ("leaf_family", lambda family: family - 1),
        ("leaf_family", lambda family: family + 1),
        ("leaf_cell", lambda cell: cell + 1),
        ("theta_at", lambda at: at - 10**6),
        ("theta_at", lambda at: at + 10**6),
        ("theta_len", lambda length: length + 1),
        ("const_at", lambda at: at + 10**6),
        ("const", lambda const: const + 1.0),
        ("start_log_weight", lambda weight: weight + 1.0),
        ("start_log_weight", lambda weight: weight * np.nan),
        ("start_theta", lambda theta: theta * np.nan),
        ("start_theta", lambda theta: -theta),
        ("log_weight", lambda weight: weight + 0.1),
        ("log_weight", lambda weight: weight * np.nan),
        ("reference_values", lambda values: values * np.nan),
        ("reference_values", lambda values: values + 0.5),
    ],
)
def test_changed_array_is_refused(copy, name, change):
    rewrite(copy, name, change)
    assert refused(copy)


@pytest.mark.parametrize("change", [lambda cell: cell * np.nan, lambda cell: -cell, lambda cell: cell * 0.0 + np.inf])
def test_changed_cells_are_refused(post, tmp_path, change):
    path = tmp_path / "given.nc"
    bj.Posterior.condition(post, "real > 0.5 and count < 4").save(path)
    assert (bj.load(path).circuit.leaf_cell >= 0).any()
    with np.errstate(invalid="ignore"):
        rewrite(path, "cell", change)
    assert refused(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("x_normal_mu", lambda draws: draws * np.nan),
        ("x_normal_variance", lambda draws: -draws),
        ("x_gamma_rate", lambda draws: draws * np.inf),
        ("x_geometric_p", lambda draws: draws + 1.0),
        ("x_categorical_probability", lambda draws: draws * 2.0),
        ("x_sum_weights", lambda draws: draws[..., ::-1] ** 2),
        ("x_likelihood_weights", lambda draws: draws * 0.0),
    ],
)
def test_impossible_draws_are_refused(copy, name, change):
    rewrite_draws(copy, name, change)
    assert refused(copy)


def test_array_of_another_length_is_refused(copy):
    with h5py.File(copy, "r+") as file:
        group = file["bayesjpt"]
        short = group["kind"][:-1]
        del group["kind"]
        group["kind"] = short
    assert refused(copy)


@pytest.mark.parametrize("replacement", [np.zeros(3), np.array([b"text", b"other"]), np.zeros((2, 2), np.int8)])
def test_array_of_another_type_is_refused(copy, replacement):
    with h5py.File(copy, "r+") as file:
        del file["bayesjpt"]["kind"]
        file["bayesjpt"]["kind"] = replacement
    assert refused(copy)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 0.999])
def test_truncated_file_is_refused(copy, share):
    content = copy.read_bytes()
    copy.write_bytes(content[: int(share * len(content))])
    assert refused(copy)


def test_a_command_refuses_a_truncated_file_and_ends_as_others_do(copy):
    copy.write_bytes(copy.read_bytes()[:-100])
    command = [sys.executable, "-m", "bayesjpt", "sample", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "truncated file" in done.stderr


# h5netcdf's own destructor complains about files that it could not open
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_flipped_bits_are_refused_or_harmless(saved, post, tmp_path, rng):
    content = saved.read_bytes()
    path = tmp_path / "flipped.nc"
    n_refused = 0
    for _ in range(N_DAMAGED):
        damaged = bytearray(content)
        for at in rng.integers(0, len(content), 8):
            damaged[at] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            read = bj.load(path)
        except FitFileError:
            n_refused += 1
        else:
            assert read.params.theta.tobytes() == post.params.theta.tobytes()
            assert read.params.log_weight.tobytes() == post.params.log_weight.tobytes()
            assert read.schema == post.schema
    assert n_refused > 0


def test_file_holds_no_pickle(saved):
    """Object arrays are what HDF5 libraries pickle or store as variable-length bytes; ours holds numbers and text."""
    kinds = set()
    with h5py.File(saved, "r") as file:
        file.visititems(lambda _, item: kinds.add(item.dtype) if isinstance(item, h5py.Dataset) else None)
    assert all(kind.kind in "fiu" or h5py.check_string_dtype(kind) for kind in kinds)
    assert b"numpy.core" not in saved.read_bytes()
    assert b"\x80\x04\x95" not in saved.read_bytes()
