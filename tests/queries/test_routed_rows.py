"""Many rows given at once, each under the nodes that it needs, answer as each row does by itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from bayesjpt.circuit.build import ColumnLeaf, Node, Product, Sum, build_circuit
from bayesjpt.circuit.paths import Condition
from bayesjpt.queries.condition import condition
from bayesjpt.queries.density import log_density, log_mass
from bayesjpt.queries.distribution import cdf, quantile
from bayesjpt.queries.moments import expectation, variance
from bayesjpt.queries.probability import probability
from bayesjpt.structure.cutset import learn_cutset
from bayesjpt.structure.jpt import learn_jpt
from bayesjpt.table.table import Table, as_table
from tests import examples as ex

N_ROW = 150
SOME = (0, 1, 17, 149)
ROUNDING = 1e-11
COLUMNS = (ex.HEAPED, ex.COUNT, ex.LABEL, ex.POSITIVE)

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
    table = ex.make_table(COLUMNS, N_ROW, rng, missing=0.2)
    conditions = Condition(0, 1.0), Condition(1, 2.5), Condition(2, 0.5, (1,))
    circuit = ex.hard(table, *conditions, dictionary=ex.only("normal", "atom", "poisson", "gamma", "categorical"))
    post = ex.random_posterior(circuit, table, rng, n_draw=3)
    observed = table.observed.copy()
    observed[3] = False
    observed[rng.integers(3, size=N_ROW), np.arange(N_ROW)] = False  # of what is split, something is open
    rows = Table(table.schema, table.values, observed)
    together = np.asarray(VERBS[name](post, rows).values)
    for row in SOME:
        alone = np.asarray(VERBS[name](post, rows.take([row])).values)
        np.testing.assert_allclose(together[..., row].ravel(), alone.ravel(), rtol=ROUNDING, atol=ROUNDING)


def split_in_two(table: Table, column: int, rows: np.ndarray, grow: Callable[[np.ndarray], Node]) -> Sum:
    """Return a split at a column's median, below which `grow` makes the parts."""
    x = table.values[column, rows]
    meets = x < np.median(x)
    parts = rows[meets], rows[~meets]
    return Sum(tuple(map(grow, parts)), (parts[0].size, parts[1].size), Condition(column, float(np.median(x))))


def test_split_that_boxes_share_brings_whole_products_into_a_segment(rng):
    """A box across the tree's threshold and a box beyond it share what they leave alike: a split among other parts.

    Rows this side of the threshold come to that split through the other box alone; its product in the first box is
    then needed too, and is zero there by its other parts.
    """
    table = ex.make_table((ex.REAL, ex.COUNT, ex.POSITIVE), N_ROW, rng)

    def part(rows: np.ndarray) -> Product:
        pair = Product((ColumnLeaf(0, rows), ColumnLeaf(1, rows)))
        return Product((pair, split_in_two(table, 2, rows, lambda below: ColumnLeaf(2, below))))

    tree = split_in_two(table, 0, np.arange(N_ROW), part)
    circuit = build_circuit(tree, table, ex.only("normal", "poisson", "gamma"))
    post = ex.random_posterior(circuit, table, rng, n_draw=2)
    real, count = table.values[:2]
    limit = float(np.quantile(real, 0.75))
    event = f"real <= {limit} or count <= 3"
    rows = table.take(np.flatnonzero((real <= limit) | (count <= 3)))
    log_probability = np.log(probability(post, event).values)[..., None]
    found = log_density(condition(post, event), rows).values
    np.testing.assert_allclose(found, log_density(post, rows).values - log_probability, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("learn", [learn_jpt, learn_cutset])
@pytest.mark.parametrize(
    ("event", "inside", "outside"),
    [("s in ('a', 'b')", {"s": "a"}, {"s": "c"}), ("x < -1 or x > 8", {"x": -2.0}, {"x": 2.0})],
)
def test_rows_that_an_event_rules_out_have_no_mass_whatever_they_lack(learn, event, inside, outside, rng):
    """Alone or beside others: a row for which no branch of a split is left does not lack its columns."""
    s = rng.choice(list("abc"), 400)
    x, y = (rng.normal(6.0 * (s == "a") - 3.0 * (s == "b")).round(3), rng.normal(6.0 * (s == "a")).round(3))
    table = as_table(pd.DataFrame({"s": s, "x": x, "y": y}))
    given = condition(ex.random_posterior(learn(table, rng), table, rng, n_draw=2), event)
    rows = pd.DataFrame([outside, inside, outside | {"y": 1.0}], columns=["s", "x", "y"])
    rows = rows.astype({"s": object, "x": float, "y": float})
    for verb in (log_density, log_mass):
        together = verb(given, rows).values
        assert np.isfinite(together[..., 1]).all()
        assert (together[..., [0, 2]] == -np.inf).all()
        for row in range(3):
            alone = verb(given, rows.iloc[[row]]).values[..., 0]
            np.testing.assert_allclose(alone, together[..., row], rtol=ROUNDING)
