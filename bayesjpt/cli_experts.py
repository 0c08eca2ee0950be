"""What ``bayesjpt fit --learner experts`` and ``bayesjpt predict`` of such a fit do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bayesjpt import defaults_experts
from bayesjpt.announced import announced
from bayesjpt.errors import BayesjptError, LearnerError, QueryError

if TYPE_CHECKING:
    from bayesjpt.queries.predict import Prediction
    from bayesjpt.table.table import Table

LEARNER = "experts"


def check_learner(learner: str, chosen: dict[str, Any]) -> None:
    """Raise `LearnerError` for options of the one kind of learner given with the other."""
    given = [f"--{name.replace('_', '-')}" for name, value in chosen.items() if value not in (None, False)]
    if given:
        words = "go with --learner experts alone" if learner != LEARNER else "do not go with --learner experts"
        raise LearnerError(f"{', '.join(given)}, which {words}", "options of one learner")


def fit_and_save(
    table: Table, output: Path, quiet: bool, *, target: str | None, seed: int | None, **chosen: Any
) -> None:
    """Fit experts and write the file."""
    from bayesjpt.experts.fit import fit_experts

    if target is None:
        raise LearnerError("--learner experts without --target", "the column to explain")
    own = {
        "depth": defaults_experts.DEPTH,
        "draws": defaults_experts.DRAWS,
        "tune": defaults_experts.TUNE,
        "chains": defaults_experts.CHAINS,
        "experts": "auto",
    }
    own |= {name: value for name, value in chosen.items() if value is not None}
    with announced("sampling trees of experts", not quiet):
        post = fit_experts(table, target=names(target) or [], rng=seed, **own)
    post.save(output)
    if not quiet:
        typer.echo(f"Wrote {output}: {post!r}")
        typer.echo(post.explain())


def predicted(fit: Path, table: Any, target: str | None, interval: float) -> Prediction:
    """Return what a target is in new rows; `table` reads them under a schema."""
    from bayesjpt.experts.predict import prediction
    from bayesjpt.experts.series import ExpertSeriesPosterior
    from bayesjpt.experts.store import load_experts

    post = load_experts(fit).some_draws(defaults_experts.PREDICTED_DRAWS)
    if isinstance(post, ExpertSeriesPosterior):
        raise QueryError("a fit of series", "one of rows apart", "Use Python: bj.load_experts(FIT).predict(rows).")
    known = list(post.targets)
    if target is None and len(known) > 1:
        raise QueryError("a fit of several targets", f"--target, one of {', '.join(known)}")
    name = known[0] if target is None else target
    if name not in known:
        raise QueryError(f"--target {name!r}", f"one of {', '.join(known)}")
    return prediction(post, table(post.model.schema), name, interval)


def is_experts(fit: Path) -> bool:
    """Return whether a file is a saved fit of experts; what cannot be read is not."""
    from bayesjpt.experts.store import FORMAT, SERIES_FORMAT
    from bayesjpt.posterior.hdf5 import SafeFile

    try:
        with SafeFile(fit) as file:
            known = [name.rstrip("0123456789") for name in (FORMAT, SERIES_FORMAT)]
            return file.text("bayesjpt", "format").rstrip("0123456789") in known
    except (OSError, BayesjptError, ValueError, KeyError):
        return False


def names(text: str | None) -> list[str] | None:
    """Return names separated by commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
