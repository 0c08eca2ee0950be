"""Options of learners at the command line: what each is called there, and which learner has which.

What they may be is checked with the learner. Those of `wmispn` are in `bayesjpt.cli_splines`, those of experts in
`bayesjpt.cli_experts`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesjpt import defaults
from bayesjpt.errors import LearnerError
from bayesjpt.learners import LEARNERS

if TYPE_CHECKING:
    from bayesjpt.circuit.bdeu import BDeu

Epsilon = Annotated[float | None, typer.Option(help="Learner jpt: mean squared error of a histogram's distribution.")]
MinRows = Annotated[
    float | None,
    typer.Option("--min-rows", help="Learner: rows below which nothing is split; a share below 1, a count from 1."),
]
Threshold = Annotated[float | None, typer.Option(help="Learner mspn: dependence (0 to 1) below which columns part.")]
Select = Annotated[str | None, typer.Option(help="Learner cutset: how splits are chosen: random, entropy, likelihood.")]
Leaf = Annotated[
    str | None,
    typer.Option(help="Learner cutset: leaves: chow_liu (trees), bernoulli (columns apart), dictionary (likelihoods)."),
]
MinColumns = Annotated[
    int | None,
    typer.Option(
        "--min-columns",
        help=f"Learner cutset: columns, so many at most, that no split parts: {defaults.CUTSET_MIN_COLUMNS}, or "
        f"{defaults.CUTSET_MIXED_COLUMNS} where some hold numbers.",
    ),
]
Prune = Annotated[
    float | None, typer.Option(help="Learner cutset: share of rows held out; splits that do not help them go.")
]
Subspace = Annotated[
    float | None, typer.Option(help="Learner cutset: share of the columns that each split by judgement looks at.")
]
Edges = Annotated[str | None, typer.Option(help="Learner tree_mixture: edges of each tree: own, or shared by all.")]
Ess = Annotated[
    str | None,
    typer.Option(
        help=f"Imaginary rows of each split: {defaults.ESS:g}; or, of learner cutset, drawn with the weights; or "
        "bdeu:10, as many for all splits together."
    ),
]
States = Annotated[int | None, typer.Option(help=f"Learner hclt: states of each variable: {defaults.HCLT_STATES}.")]
Components = Annotated[int | None, typer.Option(help=f"Learner tree_mixture: trees: {defaults.TREE_COMPONENTS}.")]

FLAGS = {
    name: f"--{name.removeprefix('n_').replace('_', '-')}"
    for name in (
        "min_rows", "epsilon", "threshold", "select", "leaf", "min_columns", "prune", "subspace", "n_states",
        "n_components", "edges", "bins", "order", "p_value",
        "penalty",
    )
} | {"n_bins": "--n-bins"}  # fmt: skip
"""Options of learners by their names in Python."""


def given_options(learner: str, **options: Any) -> dict[str, Any]:
    """Return the options that were given; a whole number of rows is a count, anything else a share.

    Raises
    ------
    LearnerError
        For an option that is another learner's.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if learner in LEARNERS:
        from bayesjpt.fitting.learning import parameters_of

        known = parameters_of(learner)
        for name in given:
            if name not in known:
                has = [flag for other, flag in FLAGS.items() if other in known]
                raise LearnerError(f"{FLAGS[name]} with --learner {learner}", f"one of {', '.join(has)}")
    if given.get("min_rows", 0.0) >= 1 and float(given["min_rows"]).is_integer():
        given["min_rows"] = int(given["min_rows"])
    return given


def ess_of(text: str) -> float | str | BDeu:
    """Return what ``--ess`` says, as `bayesjpt.fit` takes it.

    Examples
    --------
    >>> ess_of("2.5"), ess_of("drawn"), ess_of("bdeu:10")
    (2.5, 'drawn', BDeu(rows=10.0))
    """
    if text == defaults.DRAWN_ESS:
        return text
    kind, sign, rows = text.rpartition(":")
    try:
        number = float(rows)
    except ValueError:
        number = None
    if number is None or (kind, sign) not in (("", ""), ("bdeu", ":")):
        raise LearnerError(f"--ess {text}", f"a positive number, {defaults.DRAWN_ESS}, or bdeu:ROWS")
    if not sign:
        return number
    from bayesjpt.circuit.bdeu import BDeu

    return BDeu(number)
