"""Options of learners at the command line: one table, from which commands take theirs.

What the values may be is checked by the learner (`check_options` of its file, or the learner itself). Options of
experts are in `bayesjpt.cli_experts`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesjpt import defaults
from bayesjpt.errors import LearnerError
from bayesjpt.learners import LEARNERS

if TYPE_CHECKING:
    from bayesjpt.circuit.bdeu import BDeu

_PANEL = "Learning and sampling"

_IN_PANEL = frozenset(
    """
    learner structures weights draws tune thin chains cores workers prior type_prior sampler families target given depth
    experts branches method ridge passes grow step series
    """.split()  # noqa: SIM905 - a line for each would say no more
)
"""Other options that a first answer does not need; commands that learn show them in a panel of their own."""

OPTIONS: dict[str, tuple[type, str, str]] = {
    "min_rows": (
        float,
        "--min-rows",
        "Learner: rows below which nothing is split; a share below 1, a count from 1.",
    ),
    "epsilon": (float, "--epsilon", "Learner jpt: mean squared error of a histogram's distribution."),
    "threshold": (float, "--threshold", "Learner mspn: dependence (0 to 1) below which columns part."),
    "select": (str, "--select", "Learner cutset: how splits are chosen: random, entropy, likelihood."),
    "leaf": (
        str,
        "--leaf",
        "Learner cutset: leaves: chow_liu (trees), bernoulli (columns apart), dictionary (likelihoods).",
    ),
    "min_columns": (
        int,
        "--min-columns",
        f"Learner cutset: columns, so many at most, that no split parts: {defaults.CUTSET_MIN_COLUMNS}, or "
        f"{defaults.CUTSET_MIXED_COLUMNS} where some hold numbers.",
    ),
    "prune": (float, "--prune", "Learner cutset: share of rows held out; splits that do not help them go."),
    "subspace": (
        float,
        "--subspace",
        "Learner cutset: share of the columns that each split by judgement looks at.",
    ),
    "ess": (
        str,
        "--ess",
        f"Imaginary rows of each split: {defaults.ESS:g}; or, of learner cutset, drawn with the weights; or "
        "bdeu:10, as many for all splits together.",
    ),
    "n_states": (int, "--states", f"Learner hclt: states of each variable: {defaults.HCLT_STATES}."),
    "n_components": (int, "--components", f"Learner tree_mixture: trees: {defaults.TREE_COMPONENTS}."),
    "edges": (str, "--edges", "Learner tree_mixture: edges of each tree: own, or shared by all."),
    "bins": (str, "--bins", "Learner wmispn: breaks by equal width, frequency, or mean."),
    "n_bins": (int, "--n-bins", "Learner wmispn: bins of each column and leaf."),
    "order": (int, "--order", "Learner wmispn: order of the polynomials, 1 (constants) to 6."),
    "p_value": (float, "--p-value", "Learner wmispn: of the G-test, below which columns stay together."),
    "penalty": (float, "--penalty", "Learner wmispn: of a further cluster of rows, in nats a column."),
}
"""Options of learners by their names in Python: type, name at the command line, help. None of them has a default."""

FLAGS = {name: flag for name, (_, flag, _) in OPTIONS.items()}
"""Options of learners at the command line, by their names in Python."""


def learns(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator of commands with a parameter ``learner``: these options follow it, in one panel.

    The command takes their values by its ``**of_learner``, in the order of `OPTIONS`; it has none where no name is
    given.
    """
    assert set(names) <= OPTIONS.keys()
    # positional, too, as those around them are: a signature with others between them is refused
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[kind | None, typer.Option(flag, help=text, rich_help_panel=_PANEL)],
        )
        for name, (kind, flag, text) in OPTIONS.items()
        if name in names
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        # Typer resolves the texts of annotations, but not those of a signature that was made
        signature = inspect.signature(command, eval_str=True)
        shown = []
        for name, parameter in signature.parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                continue
            shown.append(parameter)
            if name in _IN_PANEL:
                for option in parameter.annotation.__metadata__:
                    option.rich_help_panel = _PANEL
            if name == "learner":
                shown += added
        command.__signature__ = signature.replace(parameters=shown)  # pyright: ignore[reportFunctionMemberAccess]
        return command

    return decorate


def given_options(learner: str, **options: Any) -> dict[str, Any]:
    """Return the options that were given; a whole number of rows is a count, anything else a share.

    Raises
    ------
    LearnerError
        For an option that is another learner's, or an ``--ess`` that makes no sense.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if learner in LEARNERS:
        from bayesjpt.fitting.learning import parameters_of

        known = parameters_of(learner)
        of_learners = [name for name in OPTIONS if name != "ess"]  # a prior of every fit, which some learners share
        for name in of_learners:
            if name in given and name not in known:
                has = [FLAGS[other] for other in of_learners if other in known]
                raise LearnerError(f"{FLAGS[name]} with --learner {learner}", f"one of {', '.join(has)}")
    if float(given.get("min_rows", 0.5)).is_integer():
        given["min_rows"] = int(given["min_rows"])
    if "ess" in given:
        given["ess"] = ess_of(given["ess"])
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
