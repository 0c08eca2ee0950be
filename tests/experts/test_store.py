"""Saved trees of experts come back as they were; files that are none are refused."""

from __future__ import annotations

import h5py
import numpy as np
import pandas as pd
import pytest

import bayesjpt as bj
from bayesjpt.errors import FitFileError
from tests.files import renew_checksum


@pytest.fixture
def fitted(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=40), "kind": np.tile(["a", "b"], 20), "y": rng.normal(size=40)})
    frame["label"] = np.tile(["u", "v", "w", "w"], 10)
    post = bj.fit_experts(frame, target=["y", "label"], depth=1, draws=3, tune=3, chains=2, rng=1)
    post.save(tmp_path / "fit.nc")
    return post, frame, tmp_path / "fit.nc"


def test_a_saved_fit_answers_as_before(fitted):
    post, frame, path = fitted
    again = bj.load_experts(path)
    assert repr(again) == repr(post)
    assert again.explain() == post.explain()
    np.testing.assert_array_equal(again.log_density(frame), post.log_density(frame))
    pd.testing.assert_frame_equal(again.predict(frame, target="label"), post.predict(frame, target="label"))


def test_a_single_model_without_gates_is_saved(tmp_path):
    post = bj.fit_experts(
        {"x": np.sin(np.arange(20.0)), "y": np.cos(np.arange(20.0))}, target="y", depth=0, draws=2, tune=2, rng=1
    )
    post.save(tmp_path / "fit.nc")
    assert bj.load_experts(tmp_path / "fit.nc").n_chain == post.n_chain


def test_damaged_files_are_refused(fitted, tmp_path):
    _, _, path = fitted
    with h5py.File(path, "r+") as file:
        file["posterior/dispersion"][0, 0, 0, 0] = -1.0
    with pytest.raises(FitFileError, match="dispersion"):
        bj.load_experts(path)
    with h5py.File(path, "r+") as file:
        attrs = file["bayesjpt"].attrs
        attrs["model"] = attrs["model"].replace('"offset": [', f'"offset": [1{"0" * 400}, ')
        renew_checksum(file)
    with pytest.raises(FitFileError, match=r"fit\.nc cannot be read"):
        bj.load_experts(path)
    (tmp_path / "text.nc").write_text("no fit")
    with pytest.raises(FitFileError, match=r"text\.nc"):
        bj.load_experts(tmp_path / "text.nc")
    with pytest.raises(FitFileError):
        bj.load(path)
