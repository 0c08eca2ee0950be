"""Compute the answers in ``frozen_answers.json`` with other programs: mpmath, SciPy, scikit-learn, pyAgrum, pgmpy.

Run as ``python tests/queries/make_frozen_answers.py`` where these are installed; the tests read the file alone. The
answer of SPPL was recorded once, since it needs an older Python.
"""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

FILE = Path(__file__).with_name("frozen_answers.json")

MIXTURE = "0.4 N(0, sd 1) Pois(3) Cat(.2, .8) + 0.6 N(4, sd 2) Pois(9) Cat(.7, .3) over X, K, C"
WEIGHTS = (0.4, 0.6)
NORMALS = ((0, 1), (4, 2))
RATES = (3, 9)
LABELS = (("0.2", "0.8"), ("0.7", "0.3"))

CLASSES = (0.5, 0.3, 0.2)
TABLES = {
    "u": ((0.7, 0.2, 0.1), (0.1, 0.6, 0.3), (0.25, 0.25, 0.5)),
    "v": ((0.1, 0.9), (0.5, 0.5), (0.8, 0.2)),
    "w": ((0.3, 0.3, 0.4), (0.05, 0.15, 0.8), (0.6, 0.3, 0.1)),
}
"""A hidden class and, for each class, the probabilities of the labels of three columns."""


def with_mpmath() -> list[dict]:
    """Return answers about the mixture, from sums and integrals in 40 digits."""
    import mpmath as mp

    mp.mp.dps = 40
    weights = [mp.mpf(str(w)) for w in WEIGHTS]
    labels = [[mp.mpf(p) for p in row] for row in LABELS]

    def density(i, x):
        return mp.npdf(x, *NORMALS[i])

    def below(i, x):
        return mp.ncdf(x, *NORMALS[i])

    def above(i, x):
        mu, sd = NORMALS[i]
        return mp.erfc((x - mu) / (sd * mp.sqrt(2))) / 2

    def count(i, k):
        return mp.exp(-RATES[i]) * mp.mpf(RATES[i]) ** k / mp.factorial(k)

    def counts(i, ks):
        return mp.fsum(count(i, k) for k in ks)

    def both(term):
        return mp.fsum(weights[i] * term(i) for i in (0, 1))

    def integral(i, power, lo, hi):
        return mp.quad(lambda x: x**power * density(i, x), [lo, *[p for p in (0, 2, 4, 6, 10) if lo < p < hi], hi])

    inf = mp.inf
    five_up = [mp.mpf(1) - counts(i, range(5)) for i in (0, 1)]
    given_count = both(lambda i: count(i, 6) * labels[i][0])
    of_five = both(lambda i: five_up[i])
    mean = both(lambda i: five_up[i] * NORMALS[i][0]) / of_five
    square = both(lambda i: five_up[i] * (NORMALS[i][0] ** 2 + NORMALS[i][1] ** 2)) / of_five
    inside = both(lambda i: below(i, 3) - below(i, 1))
    median = mp.findroot(lambda x: both(lambda i: below(i, x)) - mp.mpf("0.5"), 2)
    of_b = both(lambda i: labels[i][1])
    far = mp.findroot(lambda x: both(lambda i: labels[i][1] * above(i, x)) / of_b - mp.mpf("0.001"), 9)
    found = {
        "P(X > 2)": both(lambda i: above(i, 2)),
        "P(X > 2 or K <= 4)": 1 - both(lambda i: below(i, 2) * five_up[i]),
        "P(C = b | X = 1.3, K = 2)": both(lambda i: density(i, mp.mpf("1.3")) * count(i, 2) * labels[i][1])
        / both(lambda i: density(i, mp.mpf("1.3")) * count(i, 2)),
        "P(C = a | 1 < X < 3, K >= 5)": both(lambda i: (below(i, 3) - below(i, 1)) * five_up[i] * labels[i][0])
        / both(lambda i: (below(i, 3) - below(i, 1)) * five_up[i]),
        "log P(X > 60, K >= 5)": mp.log(both(lambda i: above(i, 60) * five_up[i])),
        "E[X | K = 6, C = a]": both(lambda i: count(i, 6) * labels[i][0] * NORMALS[i][0]) / given_count,
        "Var[X | K >= 5]": square - mean**2,
        "E[X | X > 3]": both(lambda i: integral(i, 1, 3, inf)) / both(lambda i: above(i, 3)),
        "Var[X | X between 1 and 3]": both(lambda i: integral(i, 2, 1, 3)) / inside
        - (both(lambda i: integral(i, 1, 1, 3)) / inside) ** 2,
        "E[K | X between 1 and 3]": both(lambda i: (below(i, 3) - below(i, 1)) * RATES[i]) / inside,
        "P(K <= 5 | X = 4)": both(lambda i: density(i, 4) * counts(i, range(6))) / both(lambda i: density(i, 4)),
        "median of X": median,
        "99.9 % quantile of X given C = b": far,
    }
    return [
        entry(name, MIXTURE, "mpmath", "sums and quadrature in 40 digits", mp.nstr(v, 20)) for name, v in found.items()
    ]


def with_pyagrum() -> list[dict]:
    """Return answers about the hidden class by lazy propagation."""
    import pyagrum as gum

    net = gum.BayesNet()
    hidden = net.add(gum.LabelizedVariable("h", "", len(CLASSES)))
    net.cpt(hidden).fillWith(list(CLASSES))
    for name, rows in TABLES.items():
        node = net.add(gum.LabelizedVariable(name, "", len(rows[0])))
        net.addArc(hidden, node)
        net.cpt(node).fillWith([p for row in rows for p in row])
    answers = []
    for target, evidence in QUESTIONS:
        engine = gum.LazyPropagation(net)
        engine.setEvidence(evidence)
        engine.makeInference()
        answers.append(
            entry(question_name(target, evidence), "hidden class", "pyAgrum", "LazyPropagation, evidence as 0/1 "
                  "likelihoods", repr(float(engine.posterior(target[0])[target[1]])))
        )  # fmt: skip
    return answers


QUESTIONS = (
    (("u", 0), {"v": [1, 0]}),
    (("u", 2), {"v": [0, 1], "w": [0, 1, 1]}),
    (("v", 1), {"u": [1, 1, 0]}),
    (("w", 1), {"u": [0, 1, 1], "v": [1, 0]}),
)
"""(column, label) asked for, and which labels of other columns are possible."""


def question_name(target, evidence) -> str:
    """Return a question in words: P(u = 0 | v in 0)."""
    given = ", ".join(
        f"{name} in {' '.join(str(k) for k, one in enumerate(allowed) if one)}" for name, allowed in evidence.items()
    )
    return f"P({target[0]} = {target[1]} | {given})"


def with_pgmpy() -> list[dict]:
    """Return the answers with hard evidence by variable elimination."""
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork([("h", name) for name in TABLES])
    model.add_cpds(TabularCPD("h", len(CLASSES), [[p] for p in CLASSES]))
    for name, rows in TABLES.items():
        model.add_cpds(TabularCPD(name, len(rows[0]), [list(c) for c in zip(*rows, strict=True)], ["h"], [len(rows)]))
    answers = []
    for target, evidence in QUESTIONS:
        if any(sum(allowed) > 1 for allowed in evidence.values()):
            continue
        hard = {name: allowed.index(1) for name, allowed in evidence.items()}
        factor = VariableElimination(model).query([target[0]], evidence=hard, show_progress=False)
        answers.append(
            entry(question_name(target, evidence), "hidden class", "pgmpy", "VariableElimination",
                  repr(float(factor.values[target[1]])))
        )  # fmt: skip
    return answers


def with_scipy() -> list[dict]:
    """Return answers about the mixture from SciPy's distributions, its quadrature and its root finder."""
    import numpy as np
    from scipy import integrate, optimize, stats

    normals = [stats.norm(mu, sd) for mu, sd in NORMALS]
    counts = [stats.poisson(rate) for rate in RATES]

    def both(term):
        return sum(WEIGHTS[i] * term(i) for i in (0, 1))

    def density(x):
        return both(lambda i: normals[i].pdf(x))

    def integral(term, lo, hi):
        return integrate.quad(term, lo, hi, epsabs=0.0, epsrel=1e-13, limit=200)[0]

    inside = integral(density, -1, 2)
    mean = integral(lambda x: x * density(x), -1, 2) / inside
    given_x = np.array([WEIGHTS[i] * normals[i].pdf(2.5) for i in (0, 1)])
    given_x /= given_x.sum()
    below = optimize.brentq(lambda x: both(lambda i: normals[i].cdf(x)) - 0.05, -10, 4, xtol=1e-15, rtol=1e-15)
    found = {
        "P(X <= -1 or X > 6)": both(lambda i: normals[i].cdf(-1) + normals[i].sf(6)),
        "P(K in (2, 5, 6))": both(lambda i: counts[i].pmf([2, 5, 6]).sum()),
        "E[X | X between -1 and 2]": mean,
        "Var[X | X between -1 and 2]": integral(lambda x: (x - mean) ** 2 * density(x), -1, 2) / inside,
        "P(K > 7 | X = 2.5)": sum(given_x[i] * counts[i].sf(7) for i in (0, 1)),
        "5 % quantile of X": below,
    }
    how = "stats, integrate.quad, optimize.brentq"
    return [entry(name, MIXTURE, "scipy", how, repr(float(value))) for name, value in found.items()]


GAUSSIANS = {
    "weights": (0.2, 0.5, 0.3),
    "means": ((-1.0, 2.0), (0.5, -0.5), (3.0, 1.0)),
    "variances": ((0.5, 1.5), (1.0, 0.25), (2.0, 3.0)),
}
"""Three normals with diagonal covariance over X and Y; the component is the label C."""
GAUSSIAN_ROWS = ((0.0, 0.0), (1.7, 0.4), (-0.5, 1.0), (5.0, -3.0))


def with_sklearn() -> list[dict]:
    """Return log densities, and probabilities of the component given a row, of scikit-learn's mixture."""
    import numpy as np
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(3, covariance_type="diag")
    model.weights_, model.means_ = np.array(GAUSSIANS["weights"]), np.array(GAUSSIANS["means"])
    model.covariances_ = np.array(GAUSSIANS["variances"])
    model.precisions_cholesky_ = 1.0 / np.sqrt(model.covariances_)
    rows = np.array(GAUSSIAN_ROWS)
    scores, shares = model.score_samples(rows), model.predict_proba(rows)
    answers = []
    for (x, y), score, share in zip(GAUSSIAN_ROWS, scores, shares, strict=True):
        how = "mixture.GaussianMixture, score_samples and predict_proba"
        answers.append(entry(f"log f({x}, {y})", "three normals", "scikit-learn", how, repr(float(score))))
        answers.append(entry(f"P(C = b | {x}, {y})", "three normals", "scikit-learn", how, repr(float(share[1]))))
    return answers


def entry(name: str, model: str, program: str, how: str, value: str) -> dict:
    """Return one answer with its origin."""
    version = importlib.metadata.version(program.lower())
    return {"question": name, "model": model, "program": program, "version": version, "how": how, "value": value}


SPPL = {
    "question": "P(C = a | 1 < X < 3, K >= 5)",
    "model": MIXTURE,
    "program": "SPPL",
    "version": "not recorded",
    "how": "condition and probability",
    "value": "0.660911962476396",
}

if __name__ == "__main__":
    answers = [SPPL, *with_mpmath(), *with_scipy(), *with_sklearn(), *with_pyagrum(), *with_pgmpy()]
    FILE.write_text(json.dumps(answers, indent=1) + "\n")
