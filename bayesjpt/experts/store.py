"""Saved trees of experts: one netCDF file, draws in ArviZ's group ``posterior``, what they mean as JSON beside them.

What is read is checked as if it came from anywhere, and no code runs from it (`bayesjpt.posterior.hdf5`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.errors import FitFileError
from bayesjpt.experts.model import KINDS, LARGEST_DEPTH, LARGEST_TREE, ExpertModel, chosen_expert
from bayesjpt.experts.posterior import ExpertPosterior
from bayesjpt.experts.series import ExpertSeriesPosterior
from bayesjpt.kernels.expert_series import Memory
from bayesjpt.kernels.expert_series_start import TRANSITIONS, slots
from bayesjpt.kernels.expert_tree import Coefficients
from bayesjpt.posterior import check
from bayesjpt.posterior.checked_texts import check_texts, with_checksum
from bayesjpt.posterior.draws import check_format
from bayesjpt.posterior.hdf5 import SafeFile
from bayesjpt.posterior.store import read_with, write_tree
from bayesjpt.table.covariates import Covariate, Covariates
from bayesjpt.table.schema import Schema
from bayesjpt.user_paths import as_file, as_output

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "bayesjpt experts 1"
SERIES_FORMAT = "bayesjpt experts over time 1"
_GROUP = "bayesjpt"
_DIMS = {
    "gate": ("gate_number", "gate_covariate"),
    "node": ("node_number", "predictor", "covariate"),
    "dispersion": ("leaf", "target"),
    "gate_precision": ("one",),
    "precision": ("level", "target"),
    "noise": ("target",),
}
_MEMORY_DIMS = {"memory": ("gate_number", "slot"), "memory_precision": ("one",)}
_POSITIVE = ("dispersion", "gate_precision", "precision", "noise", "memory_precision")


def save(post: ExpertPosterior, path: Any) -> None:
    """Write a fit; see `ExpertPosterior.save`.

    Raises
    ------
    FitFileError
        Where the file cannot be written. A file that was there before is then left as it was.
    """
    path = as_output(path, FitFileError)
    write_tree(_tree(post, post.coefficients._asdict(), {"format": FORMAT}), path)


def save_series(post: ExpertSeriesPosterior, path: Any) -> None:
    """Write a fit of series, as `save` does: a format of its own, with memory and the names of time and series."""
    path = as_output(path, FitFileError)
    arrays = {**post.coefficients._asdict(), "memory": post.memory.offset, "memory_precision": post.memory.precision}
    order = {"transitions": post.transitions, "time": post.time, "series": post.series}
    write_tree(_tree(post, arrays, {"format": SERIES_FORMAT, "order": json.dumps(order)}), path)


def _tree(post: ExpertPosterior, draws: dict[str, np.ndarray], own: dict[str, str]) -> xr.DataTree:
    import xarray as xr

    model, dims = post.model, {**_DIMS, **_MEMORY_DIMS}
    arrays = {name: (("chain", "draw", *dims[name]), array) for name, array in draws.items()}
    attrs = {
        **own,
        "schema": json.dumps(model.schema.to_dict()),
        "model": json.dumps(
            {
                "targets": model.targets,
                "experts": model.experts,
                "depth": model.depth,
                "branches": model.branches,
                "offset": model.offset.tolist(),
                "covariates": model.covariates.to_list(),
                "gate_covariates": model.gate_covariates.to_list(),
            }
        ),
        "settings": json.dumps(dict(post.settings)),
    }
    coords = {"chain": np.arange(post.n_chain), "draw": np.arange(post.n_draw)}
    return xr.DataTree.from_dict(
        {"posterior": xr.Dataset(arrays, coords), _GROUP: xr.Dataset(attrs=with_checksum(attrs))}
    )


def load_experts(path: Any) -> ExpertPosterior:
    """Return the ExpertPosterior or ExpertSeriesPosterior that its `save` wrote.

    Raises
    ------
    FitFileError
        For a file that is not one, is damaged, or of another version.

    Examples
    --------
    >>> import numpy as np, tempfile, pathlib, bayesjpt as bj
    >>> x = np.linspace(-2.0, 2.0, 60)
    >>> post = bj.fit_experts({"x": x, "y": np.sin(x)}, target="y", depth=1, draws=3, tune=5, chains=1, rng=1)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "fit.nc"
    >>> post.save(path)
    >>> bj.load_experts(path)
    ExpertPosterior(y (gaussian) given x; 2 leaves, 1 chains x 3 draws)
    """
    path = as_file(path, FitFileError)
    return read_with(path, _read)


def _read(file: SafeFile) -> ExpertPosterior:
    found = file.text(_GROUP, "format")
    if found.startswith("bayesjpt fit"):
        raise FitFileError("a saved joint distribution", "a mixture of experts", "Open it with bj.load.")
    of_series = found.startswith(SERIES_FORMAT.rstrip("0123456789"))
    check_format(found, SERIES_FORMAT if of_series else FORMAT)
    check_texts(file, _GROUP)
    schema = Schema.from_dict(file.json(_GROUP, "schema"))
    check.check_columns(schema)
    model = _model(schema, file.json(_GROUP, "model"))
    sizes = {
        "gate_number": model.n_leaf - 1,
        "gate_covariate": len(model.gate_covariates.names),
        "node_number": model.n_node,
        "predictor": int(model.at[-1]),
        "covariate": len(model.covariates.names),
        "leaf": model.n_leaf,
        "target": len(model.targets),
        "level": model.depth + 1,
        "one": 1,
    }
    settings = file.json(_GROUP, "settings")
    if not isinstance(settings, dict):
        raise FitFileError("settings that are none", "names and values")
    if not of_series:
        return ExpertPosterior(model, Coefficients(*_draws(file, _DIMS, sizes)), settings)
    order = file.json(_GROUP, "order")
    time, series, transitions = (order.get(key) for key in ("time", "series", "transitions"))
    if not isinstance(time, str) or not isinstance(series, str | None) or transitions not in TRANSITIONS:
        raise FitFileError(f"rows in the order {order!r}", "columns of time and series, and what gates depend on")
    sizes["slot"] = slots(model.depth, transitions)[2]
    coefficients = Coefficients(*_draws(file, _DIMS, sizes))
    memory = Memory(*_draws(file, _MEMORY_DIMS, sizes))
    return ExpertSeriesPosterior(
        model, coefficients, settings, memory=memory, transitions=transitions, time=time, series=series
    )


def _draws(file: SafeFile, names: dict[str, tuple[str, ...]], sizes: dict[str, int]) -> list[np.ndarray]:
    """Return arrays of draws of which all are possible."""
    n_chain, n_draw = file.shape("posterior/noise")[:2]
    if not (n_chain and n_draw):
        raise FitFileError("a fit without draws", "one chain and one draw at least")
    arrays = []
    for name, dims in names.items():
        shape = (n_chain, n_draw, *(sizes[dim] for dim in dims))
        array = (
            np.ascontiguousarray(file.array(f"posterior/{name}", shape), np.float64)
            if 0 not in shape
            else np.empty(shape)
        )
        if not np.isfinite(array).all() or (name in _POSITIVE and not (array > 0.0).all()):
            raise FitFileError(
                f"draws of {name!r} that no sampler gives", "finite numbers, of precisions positive ones"
            )
        arrays.append(array)
    return arrays


def _model(schema: Schema, plain: Any) -> ExpertModel:
    targets, experts = tuple(map(str, plain["targets"])), tuple(map(str, plain["experts"]))
    depth, offset = plain["depth"], np.array(plain["offset"], np.float64)
    if type(depth) is not int or not 0 <= depth <= LARGEST_DEPTH or not targets or len(set(targets)) < len(targets):
        raise FitFileError(f"a tree of depth {depth!r} of {targets!r}", f"0 to {LARGEST_DEPTH}, and targets")
    if len(experts) != len(targets) or offset.shape != (len(targets),) or not np.isfinite(offset).all():
        raise FitFileError("experts and offsets that do not fit the targets", "one of each for each")
    for name, expert in zip(targets, experts, strict=True):
        if expert not in KINDS:
            raise FitFileError(f"experts {expert!r}", f"one of {', '.join(KINDS)}")
        chosen_expert(schema.columns[schema.index(name)], expert)
    made = [_covariates(schema, plain[key]) for key in ("covariates", "gate_covariates")]
    branches = plain.get("branches", 2)  # files from before gates had ways
    if type(branches) is not int or branches < 2 or branches**depth > LARGEST_TREE:
        raise FitFileError(f"gates of {branches!r} ways", f"2 or more, and at most {LARGEST_TREE} leaves")
    return ExpertModel(schema, targets, made[0], made[1], depth, experts, offset, branches)


def _covariates(schema: Schema, plain: Any) -> Covariates:
    members = []
    for name, column, code, centre, scale in plain:
        facts = schema.columns[schema.index(column)]
        fits = code in range(len(facts.labels)) if facts.base == "category" else code == -1
        if not fits or not np.isfinite([centre, scale]).all() or not scale > 0.0:
            raise FitFileError(f"a covariate {name!r} that cannot be made", "one of the columns")
        members.append(Covariate(str(name), str(column), int(code), float(centre), float(scale)))
    return Covariates(schema, tuple(members))
