"""A folder from which a fit of several structures goes on after a kill.

structures.json                what is fitted, how, from which table; it says "begun"
scores_0, scores_1, ...        log masses of held-out rows, once a fold is done: NumPy's own format, no pickle
structure_0.nc, ...            structures that are done, as saved fits: bayesjpt.posterior.store
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayesjpt.errors import CheckpointError
from bayesjpt.replace_file import PART
from bayesjpt.sampler.files import write_whole

FORMAT = "bayesjpt checkpoint of several structures 2"

RUN = "structures.json"
_OURS = re.compile(rf"(structures\.json|scores_\d+|structure_\d+\.nc)(\.part\d*)?|{PART.pattern}")


class StructuresFolder:
    """The folder of a fit of several structures. Two processes that share it do the same work twice, and no harm.

    Parameters
    ----------
    path : Path
        Made when something is begun.

    Raises
    ------
    CheckpointError
        Where the folder holds files of others.
    """

    def __init__(self, path: Path):
        self.path = path
        if path.is_file():
            raise CheckpointError(f"{str(path)!r} is a file", "the name of a folder")
        if not path.parent.is_dir():
            raise CheckpointError(f"no folder {str(path.parent)!r} for the checkpoint {path.name!r}")
        found = sorted(file.name for file in path.iterdir()) if path.is_dir() else []
        strange = [name for name in found if not _OURS.fullmatch(name)]
        if strange:
            raise CheckpointError(
                f"folder {str(path)!r} holds {strange[0]!r}, which is not of a checkpoint of several structures",
                "a folder of its own",
            )

    @property
    def begun(self) -> bool:
        """Whether the folder holds a fit that can be continued."""
        return (self.path / RUN).is_file()

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Say what is fitted: everything on which draws and weights depend, for `check_facts`."""
        try:
            self.path.mkdir(exist_ok=True)
            write_whole(self.path / RUN, json.dumps({"format": FORMAT, "facts": facts}, indent=1))
        except OSError as error:
            raise CheckpointError(f"cannot write into {str(self.path)!r}: {error.strerror or error}") from None

    def facts(self) -> dict[str, Any]:
        """Return what `begin` was told."""
        try:
            run = json.loads((self.path / RUN).read_text(encoding="utf-8"))
            stored, facts = run["format"], run["facts"]
            complete = all(isinstance(facts[name], dict) for name in ("options", "table", "versions"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            text = f"{RUN} of checkpoint {str(self.path)!r} cannot be read ({type(error).__name__})"
            raise CheckpointError(text) from None
        if stored != FORMAT or not complete:
            raise CheckpointError(f"checkpoint {str(self.path)!r} of format {stored!r}", repr(FORMAT), "Start again")
        return facts

    def structure(self, number: int) -> Path:
        """Return the file of a structure that is done."""
        return self.path / f"structure_{number}.nc"

    @property
    def done(self) -> list[int]:
        """Numbers of the structures that are done."""
        files = self.path.glob("structure_*.nc") if self.begun else ()
        return sorted(int(file.stem.removeprefix("structure_")) for file in files)

    def keep_scores(self, fold: int, log_score: np.ndarray) -> None:
        """Keep the log masses of a fold's rows, float64 (n_structure, n_row)."""
        write_whole(self.path / f"scores_{fold}", _header(log_score.shape) + log_score.astype(np.float64).tobytes())

    def scores(self, fold: int, shape: tuple[int, int]) -> np.ndarray | None:
        """Return what `keep_scores` kept, or None.

        Raises
        ------
        CheckpointError
            For a file that holds something else.
        """
        path = self.path / f"scores_{fold}"
        if not path.is_file():
            return None
        header = _header(shape)
        n_byte = len(header) + 8 * shape[0] * shape[1]
        try:
            if path.stat().st_size != n_byte or not (content := path.read_bytes()).startswith(header):
                raise CheckpointError(f"{path.name} of checkpoint {str(self.path)!r} is damaged, or of another run")
        except OSError as error:
            text = f"{path.name} of checkpoint {str(self.path)!r} cannot be read: {error.strerror or error}"
            raise CheckpointError(text) from None
        return np.frombuffer(content, np.float64, offset=len(header)).reshape(shape).copy()

    def remove(self) -> None:
        """Delete the folder, and nothing that is not ours."""
        for path in self.path.iterdir():
            if _OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)
        self.path.rmdir()


def _header(shape: tuple[int, ...]) -> bytes:
    """Return how NumPy's own files of float64 arrays of a shape begin.

    Reading compares it, byte by byte: a header is Python, which nobody should have to parse.
    """
    content = io.BytesIO()
    form = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.float64)), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(content, form)
    return content.getvalue()
