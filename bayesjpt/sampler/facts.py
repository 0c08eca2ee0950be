"""On what the draws of a fit depend, and whether a checkpoint is of the same."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.code_hash import package_hash
from bayesjpt.errors import CheckpointError
from bayesjpt.families import registry
from bayesjpt.sampler.checkpoint import Checkpoint, check_facts
from bayesjpt.sampler.schedule import Schedule
from bayesjpt.table.dataset import Dataset

if TYPE_CHECKING:
    from bayesjpt.table.schema import Schema
    from bayesjpt.table.table import Table


def facts_of(
    table: Table | Dataset, schedule: Schedule, settings: dict[str, Any], versions: dict[str, str]
) -> dict[str, Any]:
    """Return everything on which draws depend, as `check_facts` compares it.

    Parameters
    ----------
    table : Table or Dataset
    schedule : Schedule
    settings : dict
        As in `Posterior.settings`.
    versions : dict from str to str
        Hashes of what is the user's own, by the words for it.
    """
    return {
        # structures first: how many there are explains other options that were not given
        "options": {"n_structures": 1, "draws": schedule.n_draw, "chains": schedule.n_chain, **settings},
        "table": {"rows": table.n_row, "columns": table.n_column, "digest": _digest(table)},
        "versions": {
            "bayesjpt": package_hash(),
            "numpy": np.__version__,
            "numba": importlib.metadata.version("numba"),
            "the byte order": sys.byteorder,
            **versions,
        },
    }


def family_versions(schema: Schema) -> dict[str, str]:
    """Return the hashes of families of the user's own that columns are offered, and their order, by words for them."""
    offered = set()
    for column in schema:
        # a dictionary of the learner's may hold all that fit
        families = registry.dictionary(column) if column.families else registry.fitting(column)
        offered |= {family.name for family in families}
    names = [own.name for own in registry.own_families() if own.name in offered]
    order = {"the list of families of your own": ", ".join(names)} if names else {}
    return {f"the family {name!r}": registry.family_hash(name) for name in names} | order


def _digest(table: Table | Dataset) -> str:
    """Return a hash of a table's schema and cells."""
    cells = hashlib.sha256(json.dumps(table.schema.to_dict()).encode())
    if isinstance(table, Dataset):
        cells.update(table.digest().encode())
    else:
        cells.update(np.where(table.observed, table.values, 0.0).data)
        cells.update(table.observed.data)
    return cells.hexdigest()


def resumed_seed(folder: Checkpoint, facts: dict[str, Any], *, resume: bool) -> int:
    """Return the seed of the fit that a folder holds.

    Parameters
    ----------
    folder : Checkpoint
        In which a fit has begun.
    facts : dict
        Of `facts_of`: what is asked for now; any seed where it names none.
    resume : bool
        Whether going on was asked for.

    Raises
    ------
    CheckpointError
        Where it holds another fit, or going on with it was not asked for.
    """
    if not resume:
        raise CheckpointError(
            f"checkpoint {str(folder.path)!r} holds a fit already",
            "an empty folder or none",
            "Go on with it by resume=True, or delete it",
            command="Go on with it by --resume, or delete it",
        )
    stored = folder.facts()
    seed = stored["options"].get("seed")
    if type(seed) is not int or seed < 0:
        raise CheckpointError(f"checkpoint {str(folder.path)!r} with the seed {seed!r}", "a whole number")
    if facts["options"]["seed"] is None:
        facts = facts | {"options": facts["options"] | {"seed": seed}}
    check_facts(folder.path, stored, facts)
    return seed
