"""Known answers of other programs, stored with their origin; and pyAgrum itself where it is installed."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest

import bayesjpt.queries.methods  # noqa: F401  # queries become methods
from bayesjpt.circuit import arrays
from bayesjpt.circuit.arrays import Params
from bayesjpt.circuit.build import ColumnLeaf, Product, Sum, build_circuit
from bayesjpt.families import registry
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.schema import Column
from bayesjpt.table.table import Table
from tests import examples as ex
from tests.queries.make_frozen_answers import (
    CLASSES,
    FILE,
    GAUSSIAN_ROWS,
    GAUSSIANS,
    LABELS,
    MIXTURE,
    NORMALS,
    QUESTIONS,
    RATES,
    TABLES,
    WEIGHTS,
)
from tests.queries.make_frozen_answers import question_name as named

ANSWERS = json.loads(FILE.read_text())
RELATIVE = 1e-10

MIXTURE_ASKS = {
    "P(X > 2)": lambda post: post.probability("X > 2"),
    "P(X > 2 or K <= 4)": lambda post: post.probability("X > 2 or K <= 4"),
    "P(C = b | X = 1.3, K = 2)": lambda post: post.probability("C = 'b'", {"X": 1.3, "K": 2}),
    "P(C = a | 1 < X < 3, K >= 5)": lambda post: post.probability("C = 'a'", "1 < X < 3 and K >= 5"),
    "log P(X > 60, K >= 5)": lambda post: post.log_probability("X > 60 and K >= 5"),
    "E[X | K = 6, C = a]": lambda post: post.expectation("X", {"K": 6, "C": "a"}),
    "Var[X | K >= 5]": lambda post: post.variance("X", "K >= 5"),
    "E[X | X > 3]": lambda post: post.expectation("X", "X > 3"),
    "Var[X | X between 1 and 3]": lambda post: post.variance("X", "X between 1 and 3"),
    "E[K | X between 1 and 3]": lambda post: post.expectation("K", "X between 1 and 3"),
    "P(K <= 5 | X = 4)": lambda post: post.cdf(5, "K", {"X": 4}),
    "median of X": lambda post: post.quantile(0.5, "X"),
    "99.9 % quantile of X given C = b": lambda post: post.quantile(0.999, "X", "C = 'b'"),
    "P(X <= -1 or X > 6)": lambda post: post.probability("X <= -1 or X > 6"),
    "P(K in (2, 5, 6))": lambda post: post.probability("K in (2, 5, 6)"),
    "E[X | X between -1 and 2]": lambda post: post.expectation("X", "X between -1 and 2"),
    "Var[X | X between -1 and 2]": lambda post: post.variance("X", "X between -1 and 2"),
    "P(K > 7 | X = 2.5)": lambda post: post.probability("K > 7", {"X": 2.5}),
    "5 % quantile of X": lambda post: post.quantile(0.05, "X"),
}


def known(columns: tuple[Column, ...], families: tuple[str, ...], weights, parameters) -> Posterior:
    """Return one draw of a mixture of products with given weights and parameters, [component][column]."""
    table = ex.make_table(columns, 10, np.random.default_rng(0))
    parts = tuple(
        Product(tuple(ColumnLeaf(c, np.arange(10)) for c in range(len(columns)))) for _ in range(len(weights))
    )
    family_of = dict(zip((column.name for column in columns), families, strict=True))
    circuit = build_circuit(
        Sum(parts, (1,) * len(weights)), table, lambda column: (registry.family(family_of[column.name]),)
    )
    theta, seen = np.empty(circuit.n_theta), [0] * len(columns)
    for leaf, column in enumerate(circuit.leaf_var):
        at = circuit.theta_at[leaf]
        theta[at : at + circuit.theta_len[leaf]] = parameters[seen[column]][column]
        seen[column] += 1
    log_weight = np.zeros(circuit.n_edge)
    log_weight[-len(weights) :] = np.log(weights)
    return Posterior(circuit, table.schema, Params(log_weight[None, None], theta[None, None]))


@pytest.fixture(scope="module")
def mixture() -> Posterior:
    """Return the mixture of `make_frozen_answers`, its labels' "other" with probability 0."""
    columns = (
        replace(ex.REAL, name="X", location=0.0, scale=1.0),
        replace(ex.COUNT, name="K"),
        replace(ex.LABEL, name="C", labels=("a", "b"), frequencies=(0.5, 0.4, 0.1), support=(0.0, 2.0)),
    )
    parameters = [
        [[sd * sd, mu], [rate], [*map(float, labels), 1e-300]]
        for (mu, sd), rate, labels in zip(NORMALS, RATES, LABELS, strict=True)
    ]
    return known(columns, ("normal", "poisson", "categorical"), WEIGHTS, parameters)


def label_column(name: str, n: int) -> Column:
    labels = tuple(str(k) for k in range(n))
    return Column(name, "category", (0.0, float(n)), labels=labels, frequencies=(1.0 / (n + 1),) * (n + 1))


@pytest.fixture(scope="module")
def hidden_class() -> Posterior:
    """Return the hidden class of `make_frozen_answers`, "other" with probability 0."""
    columns = tuple(label_column(name, len(rows[0])) for name, rows in TABLES.items())
    parameters = [[[*rows[k], 1e-300] for rows in TABLES.values()] for k in range(len(CLASSES))]
    return known(columns, ("categorical",) * len(columns), CLASSES, parameters)


def scalar(answer) -> float:
    return float(answer.to_numpy().item())


@pytest.mark.parametrize(
    "answer",
    [a for a in ANSWERS if a["model"] == MIXTURE],
    ids=lambda a: f"{a['program']}: {a['question']}",
)
def test_answer_about_the_mixture_is_that_of_another_program(mixture, answer):
    found = scalar(MIXTURE_ASKS[answer["question"]](mixture))
    # quantiles are promised to 1e-8 of the column's scale, all else to 1e-10 relative
    tolerance = {"abs": 1e-8} if "quantile" in answer["question"] or "median" in answer["question"] else {}
    assert found == pytest.approx(float(answer["value"]), rel=RELATIVE, **tolerance)


@pytest.fixture(scope="module")
def three_normals() -> Posterior:
    """Return scikit-learn's mixture, its component as the label C."""
    columns = (
        replace(ex.REAL, name="X", location=0.0, scale=1.0),
        replace(ex.REAL, name="Y", location=0.0, scale=1.0),
        replace(ex.LABEL, name="C"),
    )
    parameters = [
        [
            *([variance, mean] for variance, mean in zip(variances, means, strict=True)),
            np.where(np.arange(4) == k, 1.0, 1e-300),
        ]
        for k, (means, variances) in enumerate(zip(GAUSSIANS["means"], GAUSSIANS["variances"], strict=True))
    ]
    return known(columns, ("normal", "normal", "categorical"), GAUSSIANS["weights"], parameters)


@pytest.mark.parametrize(("x", "y"), GAUSSIAN_ROWS)
def test_components_of_rows_are_those_of_scikit_learn(three_normals, x, y):
    stored = {a["question"]: float(a["value"]) for a in ANSWERS if a["model"] == "three normals"}
    rows = Table(three_normals.schema, np.array([[x], [y], [0.0]]), np.array([[True], [True], [False]]))
    found = three_normals.log_density(rows)  # type: ignore[attr-defined]
    assert scalar(found) == pytest.approx(stored[f"log f({x}, {y})"], rel=RELATIVE)
    share = scalar(three_normals.probability("C = 'b'", {"X": x, "Y": y}))  # type: ignore[attr-defined]
    assert share == pytest.approx(stored[f"P(C = b | {x}, {y})"], rel=RELATIVE)


def ask_labels(post: Posterior, target, evidence) -> float:
    given = " and ".join(
        f"{name} in ({', '.join(repr(str(k)) for k, one in enumerate(allowed) if one)})"
        for name, allowed in evidence.items()
    )
    return scalar(post.probability(f"{target[0]} = '{target[1]}'", given))


@pytest.mark.parametrize(
    "answer",
    [a for a in ANSWERS if a["model"] == "hidden class"],
    ids=lambda a: f"{a['program']}: {a['question']}",
)
def test_answer_about_labels_is_that_of_another_program(hidden_class, answer):
    (question,) = [q for q in QUESTIONS if named(*q) == answer["question"]]
    assert ask_labels(hidden_class, *question) == pytest.approx(float(answer["value"]), rel=RELATIVE)


def test_every_stored_answer_names_program_and_method():
    assert len({answer["program"] for answer in ANSWERS}) == 6
    for answer in ANSWERS:
        assert answer["program"]
        assert answer["version"]
        assert answer["how"]


SIZES = {"p": 2, "q": 3, "r": 2, "s": 4}


def network(gum, parents: dict[str, tuple[str, ...]], tables: dict[str, np.ndarray]):
    """Return a Bayesian network from each node's parents and its table, (parents' values..., own values)."""
    net = gum.BayesNet()
    for name, table in tables.items():
        net.add(gum.LabelizedVariable(name, "", table.shape[-1]))
        for parent in parents[name]:
            net.addArc(parent, name)
    for name, table in tables.items():
        for values in product(*(range(n) for n in table.shape[:-1])):
            net.cpt(name)[dict(zip(parents[name], values, strict=True))] = table[values].tolist()
    return net


def two_levels(tables: dict[str, np.ndarray]) -> Posterior:
    """Return classes h of p, s and a mixture over classes g of q and r."""
    columns = tuple(label_column(name, n) for name, n in SIZES.items())
    table = ex.make_table(columns, 10, np.random.default_rng(0))
    n_outer, n_inner = tables["g"].shape

    def leaf(column: int) -> ColumnLeaf:
        return ColumnLeaf(column, np.arange(10))

    def outer() -> Product:
        inner = tuple(Product((leaf(1), leaf(2))) for _ in range(n_inner))
        return Product((leaf(0), Sum(inner, (1,) * n_inner), leaf(3)))

    tree = Sum(tuple(outer() for _ in range(n_outer)), (1,) * n_outer)
    circuit = build_circuit(tree, table, lambda _: (registry.family("categorical"),))
    theta, log_weight = np.empty(circuit.n_theta), np.zeros(circuit.n_edge)
    seen = dict.fromkeys(SIZES, 0)
    for leaf, column in enumerate(circuit.leaf_var):
        name = columns[column].name
        rows = tables[name].reshape(-1, SIZES[name])
        at = circuit.theta_at[leaf]
        theta[at : at + circuit.theta_len[leaf]] = [*rows[seen[name]], 1e-300]
        seen[name] += 1
    sums = [node for node in range(circuit.n_node) if circuit.kind[node] == arrays.LATENT]
    for node, weights in zip(sums, [*tables["g"], tables["h"]], strict=True):
        log_weight[circuit.child_ptr[node] : circuit.child_ptr[node + 1]] = np.log(weights)
    return Posterior(circuit, table.schema, Params(log_weight[None, None], theta[None, None]))


@pytest.mark.optional
def test_random_discrete_circuits_agree_with_pyagrum(rng):
    gum = pytest.importorskip("pyagrum")
    parents = {"h": (), "g": ("h",), "p": ("h",), "s": ("h",), "q": ("h", "g"), "r": ("h", "g")}
    for _ in range(5):
        tables = {"h": rng.dirichlet(np.ones(3)), "g": rng.dirichlet(np.ones(2), 3)}
        tables |= {name: rng.dirichlet(np.ones(n), (3, 2)[: len(parents[name])]) for name, n in SIZES.items()}
        net, post = network(gum, parents, tables), two_levels(tables)
        for target, other, third in permutations(SIZES, 3):
            evidence = {name: [1, *rng.integers(0, 2, SIZES[name] - 1).tolist()] for name in (other, third)}
            engine = gum.LazyPropagation(net)
            engine.setEvidence(evidence)
            engine.makeInference()
            expected = engine.posterior(target)[0]
            assert ask_labels(post, (target, 0), evidence) == pytest.approx(expected, rel=RELATIVE)
