"""What a checkpoint keeps of several structures: those that are done, and how probable held-out rows are.

scores_0, scores_1, ...        log masses of held-out rows, once a fold is done
structure_0.nc, ...            structures that are done, as saved fits: bayesjpt.posterior.store
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bayesjpt.errors import CheckpointError
from bayesjpt.sampler.checkpoint import Checkpoint
from bayesjpt.sampler.files import read_sealed, write_sealed


class StructuresFolder(Checkpoint):
    """The claimed folder of a fit of several structures."""

    def structure(self, number: int) -> Path:
        """Return the file of a structure that is done."""
        return self.path / f"structure_{number}.nc"

    @property
    def done(self) -> list[int]:
        """Numbers of the structures that are done."""
        return structures_done(self.path) if self.begun else []

    def keep_scores(self, fold: int, log_score: np.ndarray) -> None:
        """Keep the log masses of a fold's rows, float64 (n_structure, n_row)."""
        write_sealed(self.path / f"scores_{fold}", {"shape": log_score.shape}, [log_score.astype(np.float64)])

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
        head, content, _ = read_sealed(path)
        if head != {"shape": list(shape)} or len(content) != 8 * shape[0] * shape[1]:
            raise CheckpointError(f"{path.name} of checkpoint {str(self.path)!r} is of another run")
        return np.frombuffer(content, np.float64).reshape(shape).copy()


def structures_done(path: Path) -> list[int]:
    """Return the numbers of the structures that are done in a folder, which may be in use."""
    return sorted(int(file.stem.removeprefix("structure_")) for file in path.glob("structure_*.nc"))
