"""On what the draws of a fit depend, and whether a checkpoint is of the same."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.errors import CheckpointError
from bayesjpt.numerics import jit
from bayesjpt.sampler.checkpoint import Checkpoint, check_facts
from bayesjpt.sampler.schedule import Schedule
from bayesjpt.sampler.structures_folder import StructuresFolder

if TYPE_CHECKING:
    from bayesjpt.table.table import Table


def facts_of(table: Table, schedule: Schedule, settings: dict[str, Any]) -> dict[str, Any]:
    """Return everything on which draws depend, as `check_facts` compares it."""
    cells = hashlib.sha256(json.dumps(table.schema.to_dict()).encode())
    cells.update(np.where(table.observed, table.values, 0.0).data)
    cells.update(table.observed.data)
    return {
        "options": {"draws": schedule.n_draw, "chains": schedule.n_chain, **settings},
        "table": {"rows": table.n_row, "columns": table.n_column, "digest": cells.hexdigest()},
        "versions": {
            "bayesjpt's kernels": jit.source_hash(),
            "numpy": np.__version__,
            "numba": importlib.metadata.version("numba"),
            "the byte order": sys.byteorder,
        },
    }


def check_resumable(
    folder: Checkpoint | StructuresFolder,
    table: Table,
    schedule: Schedule,
    settings: dict[str, Any],
    resume: bool,
    seed: int | None,
) -> bool:
    """Return whether the folder holds this fit; raise where it holds another, or nobody asked to go on with it."""
    if not folder.begun:
        return False
    if not resume:
        raise CheckpointError(
            f"checkpoint {str(folder.path)!r} holds a fit already",
            "an empty folder or none",
            "Go on with it by resume=True, or delete it",
            command="Go on with it by --resume, or delete it",
        )
    stored = folder.facts()
    if seed is None:
        settings["seed"] = stored["options"].get("seed")
        if type(settings["seed"]) is not int or settings["seed"] < 0:
            raise CheckpointError(
                f"checkpoint {str(folder.path)!r} with the seed {settings['seed']!r}", "a whole number"
            )
    check_facts(folder.path, stored, facts_of(table, schedule, settings))
    return True
