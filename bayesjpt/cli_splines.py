"""Options of `bayesjpt fit --learner wmispn`: how columns, rows and leaves are divided, and the polynomials' order.

They are checked with the learner (`bayesjpt.structure.wmispn.rule_of`).
"""

from __future__ import annotations

from typing import Annotated

import typer

Bins = Annotated[str | None, typer.Option(help="Learner wmispn: breaks by equal width, frequency, or mean.")]
NBins = Annotated[int | None, typer.Option("--n-bins", help="Learner wmispn: bins of each column and leaf.")]
Order = Annotated[int | None, typer.Option(help="Learner wmispn: order of the polynomials, 1 (constants) to 6.")]
PValue = Annotated[
    float | None, typer.Option("--p-value", help="Learner wmispn: of the G-test, below which columns stay together.")
]
Penalty = Annotated[float | None, typer.Option(help="Learner wmispn: of a further cluster of rows, in nats a column.")]
