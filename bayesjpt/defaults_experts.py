"""Numbers of hierarchical mixtures of experts: how chains run, and priors."""

from __future__ import annotations

from collections.abc import Iterable

DEPTH = 2
DRAWS = 100
TUNE = 200
CHAINS = 4
"""Of `bj.fit_experts`: chains begin with trees of their own and do not leave their modes, so some are averaged."""
GATE_PRECISION = (1.0, 1.0)
PRECISION_SHAPE = 2.0
PRECISION_RATE = (1.0, 0.05)
"""Of the gamma priors of precisions, of the root and of steps below it: coefficients are then a Student's t, whose
variance exists where draws of leaves without rows enter answers. Steps are small before rows tell leaves apart: what
a leaf without rows says is then close to what the others say; see `docs/explanation/experts.md`."""
ROOT_VARIANCE = 4.0
PATH_VARIANCE = 0.5
"""Largest variances a priori of a Poisson or gamma expert's log mean where covariates are ordinary: of the root, and of
what all levels below add. Means of exponentials then exist; see `docs/explanation/experts.md`."""
LOG_LINK_RIDGE = 1.0
"""One over the largest variance of such a log mean where coefficients are optimised."""
NOISE_SHAPE = 2.0
NOISE_RATE = (1.0, 2.0)
"""Variances of gaussian experts: inverse gamma, around half of the target's variance before any row."""
LOG_SHAPE = (0.0, 1.5)
"""Mean and standard deviation of the logarithm of gamma experts' shapes, as of the family gamma."""
LEAST_VARIANCE = 1e-10
"""In units of the target's variance, where its resolution is finer."""
PAIR_BYTES = 64 * 2**20
"""Of the pairs of a draw and a row that are made at once."""
SHOWN_DRAWS = 20
"""Of a chain whose tree is shown: deviances need regressions of each draw."""
RIDGE = 0.1
"""Precision of all coefficients around 0 where they are optimised; with 1, sharp gates become too soft."""
PASSES = 100
"""Of EM at most."""
PASS_GAIN = 1e-7
"""Nats a row: a pass that gains less is the last."""
PATIENCE = 10
"""Passes of least squares without a better state than the best, after which it ends."""
NEWTON_STEPS = 1
"""Of each regression in a pass; with three the simulated arm of `docs/results.md` took twice the time for no gain."""
IMAGINARY_ROWS = (1.0, 0.1)
"""Of each gaussian expert's variance where there is a ridge: their number, and their squared residual."""
HELD_OUT = 0.25
"""Share of the rows on which a tree's growth is judged."""
GROWTH_PASSES = 5
"""Of EM before a split is judged."""
FORGETTING = 0.9999
"""Of `bj.OnlineExperts`, a row: what gates and experts were while they still moved is forgotten after 10,000 rows."""


def precision_bounds(
    log_linked: Iterable[bool], n_column: int, depth: int
) -> tuple[list[list[float]], list[list[float]]]:
    """Return the rates of the priors of precisions, and what these are at least, each a table (2, n_response).

    Of the root in the first row, of other levels in the second.

    Parameters
    ----------
    log_linked : iterable of bool, n_response of them
        Whose means are exponentials.
    n_column : int
        Of covariates, the intercept left out. In ordinary rows their squares are about 1, and indicators' less.
    depth : int
        Of the tree, along which variances add up.
    """
    bounds = [(1.0 + n_column) / ROOT_VARIANCE, (1.0 + n_column) * max(depth, 1) / PATH_VARIANCE]
    kinds = list(log_linked)
    # in units of the bound a gamma of rate 1: half of the largest variance on the average
    rates = [
        [1.0 / bound if is_log else rate for is_log in kinds]
        for bound, rate in zip(bounds, PRECISION_RATE, strict=True)
    ]
    return rates, [[bound if is_log else 0.0 for is_log in kinds] for bound in bounds]
