"""Many rows given at once, each under the nodes that it needs, answer as each row does by itself."""

from __future__ import annotations

import numpy as np
import pytest

from bayesjpt.circuit.paths import Condition
from bayesjpt.queries.distribution import cdf, quantile
from bayesjpt.queries.moments import expectation, variance
from bayesjpt.queries.probability import probability
from bayesjpt.table.table import Table
from tests import zoo

N_ROW = 150
SOME = (0, 1, 17, 149)
ROUNDING = 1e-11
COLUMNS = (zoo.HEAPED, zoo.COUNT, zoo.LABEL, zoo.POSITIVE)

VERBS = {
    "expectation": lambda post, rows: expectation(post, "positive", rows),
    "variance": lambda post, rows: variance(post, "positive", rows),
    "cdf": lambda post, rows: cdf(post, 2.0, "positive", rows),
    "quantile": lambda post, rows: quantile(post, 0.3, "positive", rows),
    "probability": lambda post, rows: probability(post, "positive > 1 and label = 'a'", rows),
    "probability of what is split": lambda post, rows: probability(post, "heaped > 0.5 or count < 3", rows),
}


@pytest.mark.parametrize("name", VERBS)
def test_rows_given_together_answer_as_by_themselves(name, rng):
    table = zoo.make_table(COLUMNS, N_ROW, rng, missing=0.2)
    conditions = Condition(0, 1.0), Condition(1, 2.5), Condition(2, 0.5, (1,))
    circuit = zoo.hard(table, *conditions, dictionary=zoo.only("normal", "atom", "poisson", "gamma", "categorical"))
    post = zoo.random_posterior(circuit, table, rng, n_draw=3)
    observed = table.observed.copy()
    observed[3] = False
    observed[rng.integers(3, size=N_ROW), np.arange(N_ROW)] = False  # of what is split, something is open
    rows = Table(table.schema, table.values, observed)
    together = np.asarray(VERBS[name](post, rows).values)
    for row in SOME:
        alone = np.asarray(VERBS[name](post, rows.take([row])).values)
        np.testing.assert_allclose(together[..., row].ravel(), alone.ravel(), rtol=ROUNDING, atol=ROUNDING)
