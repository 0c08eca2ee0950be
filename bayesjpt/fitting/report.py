"""A report of a fit: one page that says what is in the table, and how far that can be trusted."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayesjpt.errors import FitFileError, QueryError
from bayesjpt.learners import LEARNERS
from bayesjpt.posterior.answer import query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.user_paths import as_output, as_path

if TYPE_CHECKING:
    from bayesjpt.table.table import Table

HELD_OUT = 600
"""Rows, drawn at random, of which a quarter are held out in turn from structures that are learned anew."""


_SUFFIXES = (".html", ".htm")


def check_page(path: str | Path) -> Path:
    """Return a path, or raise `QueryError` where a page cannot be written there, before time is spent."""
    path = as_path(path, FitFileError)
    if path.suffix.lower() not in _SUFFIXES:
        raise QueryError(f"file {path.name!r} is of an unknown kind", "a name that ends in .html")
    return as_output(path, FitFileError)


@query_method
def report(
    post: Posterior,
    path: str | Path,
    *,
    table: Table | Any = None,
    name: str | None = None,
    command: str | None = None,
) -> Path:
    """Write what is in a table as one page of HTML, for people: no other file and no network is needed to read it.

    Shown are: what to look at; each column with its type, its rows and the model's band; what hangs together; groups of
    rows in words; outliers with what was to be expected; missing cells; how far the fit can be trusted; how to repeat
    it. The page holds a few hundred rows of the table, for its pictures.

    Parameters
    ----------
    post : Posterior
    path : str or Path
        Ends in .html.
    table : Table or data frame, optional
        The rows that were fitted; the few that the fit keeps unless given.
    name : str, optional
        Of the table; as the fit has it unless given.
    command : str, optional
        What makes this report again, for its last section.

    Returns
    -------
    Path
        Of the page.

    Raises
    ------
    QueryError
        For another kind of file.
    FitFileError
        Where the page cannot be written.
    SchemaError, TableError
        For rows that do not fit the schema.

    Notes
    -----
    The same fit and table give the same page, byte for byte. Held-out rows are judged by structures that are learned
    anew without them; everything else is asked of the posterior, of a part of its draws.

    Examples
    --------
    >>> import pathlib, tempfile, numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"kind": ["a", "b"] * 40, "size": np.tile([0.5, 9.0, 1.5, 9.5], 20)}))
    >>> circuit = bj.learn_mspn(table, np.random.default_rng(1), min_rows=20)
    >>> post = bj.Posterior.from_circuit(circuit, table.schema)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = post.report(pathlib.Path(folder) / "report.html", table=table, name="kinds")
    ...     print(page.read_text().count("<section"))
    8
    """
    from bayesjpt.fitting.held_out import held_out_score
    from bayesjpt.queries.evidence import as_rows
    from bayesjpt.replace_file import reason, replace_file
    from bayesjpt.report.contents import contents_of
    from bayesjpt.report.page import page_html

    path = check_page(path)
    rows = None if table is None else as_rows(table, post.schema)
    name = str(post.settings.get("table", "a table")) if name is None else name
    seed = post.settings.get("seed", 0)
    rng = np.random.default_rng(seed if isinstance(seed, int) else 0)
    learner = str(post.settings.get("learner", "mspn")).split(", ")[0]
    scored = post.reference if rows is None else rows
    held_out = None
    if scored is not None:
        learner = learner if learner in LEARNERS else "mspn"
        held_out = held_out_score(scored, learner, rng, n_row=HELD_OUT)
    contents = contents_of(post, rows, name=name, held_out=held_out, rng=rng)
    page = page_html(contents, command or _call(name, path, contents.settings))
    try:
        replace_file(path, page)
    except OSError as error:
        raise FitFileError(f"cannot write {str(path)!r}: {reason(error)}") from None
    return path


def _call(name: str, path: Path, settings: dict[str, Any]) -> str:
    """Return a command that makes a report of the same table and seed."""
    seed = f" --seed {settings['seed']}" if "seed" in settings else ""
    learner = f" --learner {settings['learner']}" if settings.get("learner") in set(LEARNERS) - {"mspn"} else ""
    return f"bayesjpt report {shlex.quote(name)} -o {shlex.quote(path.name)}{learner}{seed}"
