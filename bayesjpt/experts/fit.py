"""`bj.fit_experts`: a tree of gated experts by Gibbs sweeps, or by one of the searches for its optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bayesjpt import defaults_experts
from bayesjpt.errors import LearnerError, SamplingError, counted, warn
from bayesjpt.experts.em import Optimum, first_optimum, make_penalty, opened_in, optimise, record_of, tell_divergence
from bayesjpt.experts.grow import grown
from bayesjpt.experts.laplace import laplace_draws, tell_no_optimum
from bayesjpt.experts.mean_field import ascend, check_kinds, mean_field_draws
from bayesjpt.experts.missing import DRAW_GAPS, check_joint, complete_rows, filled_matrices, make_gaps, own_gaps
from bayesjpt.experts.model import ExpertModel, experts_of, offset_of, with_targets
from bayesjpt.experts.posterior import ExpertPosterior
from bayesjpt.experts.settings import ExpertSettings
from bayesjpt.experts.start import begin, begin_with_gaps, check_same_model, go_on, go_on_with_gaps, last_draw
from bayesjpt.families import features
from bayesjpt.kernels.expert_gaps import Gaps, run_chain_with_gaps
from bayesjpt.kernels.expert_series import Memory
from bayesjpt.kernels.expert_sweep import Prior, run_chain
from bayesjpt.kernels.expert_tree import LOG_LINKED, Coefficients, Task
from bayesjpt.numerics.generator import as_generator
from bayesjpt.posterior.draws import Posterior
from bayesjpt.table.covariates import FILL_GAPS, make_covariates
from bayesjpt.table.excluded import warn_of_unused
from bayesjpt.table.table import Table, as_table


def fit_experts(
    table: Any,
    *,
    target: str | Sequence[str],
    given: Sequence[str] | None = None,
    gates: Sequence[str] | None = None,
    depth: int = defaults_experts.DEPTH,
    branches: int = 2,
    experts: str | Mapping[str, str] = "auto",
    method: str = "gibbs",
    draws: int | None = None,
    tune: int | None = None,
    chains: int | None = None,
    start: str | ExpertPosterior = "cart",
    ridge: float | None = None,
    passes: int | None = None,
    grow: bool = False,
    kinds: Mapping[str, str] | None = None,
    missing: Posterior | None = None,
    time: str | None = None,
    series: str | None = None,
    transitions: str = "leaf",
    cores: int | None = None,
    rng: int | np.random.Generator | None = None,
) -> ExpertPosterior:
    """Fit a hierarchical mixture of experts: the density of some columns given others.

    A tree whose gates are logistic in the covariates decides softly which of its 2^depth leaves a row belongs to; at
    each leaf stands a generalised linear model of the same covariates.

    Parameters
    ----------
    table : Table or data frame
        Rows without a value of a target are left out, with a warning.
    target : str or sequence of str
        What is explained. Several are independent given the leaf.
    given : sequence of str, optional
        Covariates; unless given all other columns but those that the table leaves out, of which a warning tells.
        Numbers become z-scores, labels indicators.
    gates : sequence of str, optional
        Covariates of gates; those of experts unless given. With none, weights of leaves are the same for all rows.
    depth : int
        0 to 6; 0 is one generalised linear model.
    branches : int
        Ways of each gate: 2 is logistic, more are softmax, by ``gibbs`` and ``em`` without `grow` and `time`. At most
        64 leaves in all.
    experts : str or mapping from target to str
        ``gaussian``, ``logistic`` (two labels), ``multinomial``, ``poisson`` or ``gamma``; ``auto`` is logistic or
        multinomial for labels, Poisson for counts, gamma for positive numbers that are as skewed as failure times are,
        gaussian for other numbers.
    method : str
        ``gibbs``: draws from the posterior. ``em``: the most likely coefficients under a ridge, by
        expectation-maximisation with reweighted least squares at gates and experts. ``least_squares``: the same with
        one regression of posterior log odds a gate, whose likelihood may fall; the best pass counts. ``laplace``:
        draws of the Gaussian approximation at the optimum. ``mean_field``: draws of the best approximation by
        independent factors, for gaussian and logistic experts.
    draws, tune, chains : int, optional
        Kept sweeps of each chain (100), sweeps before them (200), and chains (4). Each chain begins with its own
        tree. ``em`` and ``least_squares`` have one draw of each chain, and one chain unless given.
    start : str or ExpertPosterior
        ``cart``: a tree of hard splits learned greedily from a random half of the rows; ``random``; or another fit of
        the same columns, from the last draws of whose chains this one goes on.
    ridge : float, optional
        Of all methods but ``gibbs``: the precision of coefficients around 0, 0.1 unless given. Above 0 it is at least
        1 + the number of covariates for Poisson and gamma experts, which have no plausible means otherwise, and each
        gaussian expert's variance has one imaginary row with a tenth of the target's variance, too. 0 is maximum
        likelihood, which often has no finite optimum; a warning then names what diverges.
    passes : int, optional
        Of all methods but ``gibbs``: over the rows, at most; 100 unless given. EM stops where one gains less than
        1e-7 nats a row.
    grow : bool
        Of all methods but ``gibbs`` and ``mean_field``: begin with one leaf and split one after the other, down to
        `depth`, where that makes a held-out quarter of the rows more likely by more than one standard error; then
        take back what they do not need, and fit all rows.
    kinds : mapping from str to str, optional
        As in `bj.as_table`, for a data frame.
    missing : Posterior, optional
        Of all covariates, from ``bj.fit``. With ``gibbs`` the missing covariates of a row are drawn in each sweep,
        among candidates from it given the row's others, by how well the targets agree with them; over time, too.
        Other methods leave rows with missing covariates out (``em`` over time only their targets), with a warning. New
        rows are averaged over imputations, as `ExpertPosterior.with_missing` says. Without it a missing covariate is
        an error.
    time, series : str, optional
        Columns that say when a row is, a number or a date, and to which series it belongs; all to one unless given.
        With `time`, gates depend on the leaf of the row before: a hidden Markov decision tree, by ``gibbs`` or ``em``
        from a start by name, whose draws are an `ExpertSeriesPosterior`. Rows without targets are then steps too.
    transitions : str
        With `time`. ``leaf``: each gate has an offset for every leaf before; ``decision``: one for the decision before
        at its level.
    cores : int, optional
        Threads; the draws do not depend on their number.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    ExpertPosterior
        With `time` an `ExpertSeriesPosterior`.

    Raises
    ------
    LearnerError
        For settings that make no sense.
    SchemaError, TableError
        For columns that are not there or cannot be used, for missing covariates, and for times that are missing, no
        numbers or dates, or the same in two rows of a series.

    Notes
    -----
    Coefficients of a leaf are normal around those of its parent, up to the root's around 0, with one precision for
    each level; precisions have gamma priors. So leaves with few rows, separated labels and collinear covariates have
    proper posteriors. See ``docs/explanation/experts.md``. Cost of a sweep: about half a microsecond a row and level.

    References
    ----------
    Jordan and Jacobs (1994). Hierarchical Mixtures of Experts and the EM Algorithm. Neural Computation 6(2).
    Peng, Jacobs and Tanner (1996). Bayesian Inference in Mixtures-of-Experts and Hierarchical Mixtures-of-Experts
    Models. JASA 91(435).
    Jordan, Ghahramani and Saul (1997). Hidden Markov Decision Trees. Advances in Neural Information Processing
    Systems 9.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> x = np.linspace(-2.0, 2.0, 200)
    >>> frame = pd.DataFrame({"x": x, "y": np.abs(x) + 0.1 * np.sin(40.0 * x)})
    >>> post = bj.fit_experts(frame, target="y", depth=1, draws=20, tune=50, chains=2, rng=1)
    >>> post.expectation(pd.DataFrame({"x": [-1.5, 1.5]})).mean(("chain", "draw")).round(1).values.tolist()
    [[1.5, 1.5]]
    """
    generator = as_generator(rng)
    if generator is None:
        raise LearnerError(f"rng = {rng!r}", "None, a seed from 0, or a generator of NumPy")
    settings = ExpertSettings(
        target=target,
        given=given,
        gates=gates,
        depth=depth,
        branches=branches,
        experts=experts,
        method=method,
        draws=draws,
        tune=tune,
        chains=chains,
        start=start,
        ridge=ridge,
        passes=passes,
        grow=grow,
        kinds=kinds,
        missing=missing,
        time=time,
        series=series,
        transitions=transitions,
        cores=cores,
    )
    if settings.time is None:
        return _fit_rows(table, settings, generator)
    from bayesjpt.experts.series_fit import fit_series

    return fit_series(table, settings, generator)


class Problem(NamedTuple):
    """What chains run on; `gaps` are the rows that lack covariates, None where no row does."""

    settings: ExpertSettings
    model: ExpertModel
    task: Task
    prior: Prior
    gaps: Gaps | None


def _fit_rows(table: Any, settings: ExpertSettings, rng: np.random.Generator) -> ExpertPosterior:
    """Return the posterior of rows without an order."""
    problem = _problem_of(table, settings, rng)
    start, n_chain = settings.start, settings.schedule.n_chain
    recorded: dict[str, Any] = {
        "depth": settings.depth,
        "branches": settings.branches,
        "start": start if isinstance(start, str) else "fit",
        "rows": problem.task.x.shape[0],
    }
    with ThreadPoolExecutor(max_workers=settings.n_thread) as pool:
        chains, rngs = range(n_chain), chain_generators(rng, n_chain)
        if settings.method == "gibbs":
            kept = list(pool.map(partial(_sample, problem), chains, rngs))
            recorded["tune"] = settings.schedule.n_tune
        else:
            kept, found, no_optimum = zip(*pool.map(partial(_search, problem), chains, rngs), strict=True)
            recorded |= record_of(settings.search, found, settings.branches) | {"method": settings.method}
            tell_no_optimum(no_optimum)
            if settings.search.ridge == 0.0:
                tell_divergence(problem.model, problem.task, problem.prior, found[0])
    return ExpertPosterior(problem.model, joined(kept), recorded, settings.missing)


def _problem_of(table: Any, settings: ExpertSettings, rng: np.random.Generator) -> Problem:
    missing, start = settings.missing, settings.start
    model, rows = make_model(table, settings, gaps=missing is not None, remedy=DRAW_GAPS)
    tell_single_values(model, table, settings)
    if settings.method == "mean_field":
        check_kinds(model)
    if not isinstance(start, str):
        check_same_model(model, start.model)
    prior = make_prior(model)
    if missing is not None:
        check_joint(missing, model.covariate_columns)
        if settings.method != "gibbs":
            rows = complete_rows(model, rows, settings.method)
    gaps = None if missing is None else make_gaps(model, missing, rows, rng)
    x, gate_x = filled_matrices(model, rows, gaps)
    task = Task(x, gate_x, model.units(model.target_cells(rows)[0]), model.kind, model.at, model.offset)
    return Problem(settings, model, task, prior, gaps)


def _sample(problem: Problem, chain: int, rng: np.random.Generator) -> Coefficients:
    """Return the draws of a chain of Gibbs sweeps."""
    settings, model, task, prior, gaps = problem
    start, n_tune, kept = settings.start, settings.schedule.n_tune, room(model, settings.schedule.n_draw)
    if gaps is None:
        if isinstance(start, str):
            state, leaf = begin(model, task, prior, start, rng)
        else:
            state, leaf = go_on(last_draw(start, chain), task, rng)
        run_chain(task, state, prior, leaf, rng, n_tune, kept)
        return kept
    filled, chosen = own_gaps(task, gaps)
    if isinstance(start, str):
        state, leaf = begin_with_gaps(model, filled, chosen, prior, start, rng)
    else:
        state, leaf = go_on_with_gaps(last_draw(start, chain), filled, chosen, rng)
    run_chain_with_gaps(filled, chosen, state, prior, leaf, rng, n_tune, kept)
    return kept


def _search(problem: Problem, chain: int, rng: np.random.Generator) -> tuple[Coefficients, Optimum, int]:
    """Return a chain's draws around the optimum that it finds, that optimum, and in how many directions it is none."""
    settings, model, task, prior, _ = problem
    start, search, n_draw = settings.start, settings.search, settings.schedule.n_draw
    if not isinstance(start, str):
        state = last_draw(start, chain)
        first = Optimum(state, opened_in(model, state), np.zeros(0))
    elif settings.grow:
        first = grown(model, task, prior, search, rng)
    else:
        first = first_optimum(model, task, prior, start, rng)
    found = optimise(model, task, prior, search, first)
    penalty = make_penalty(model, prior, search.ridge)
    if settings.method == "laplace":
        drawn, no_optimum = laplace_draws(model, task, penalty, found, n_draw, rng)
        return drawn, found, no_optimum
    if settings.method == "mean_field":
        field, trace = ascend(model, task, penalty, search, found)
        return mean_field_draws(model, field, found, n_draw, rng), found._replace(trace=np.array(trace)), 0
    return one_draw(found.state), found, 0


def chain_generators(rng: np.random.Generator, n_chain: int) -> list[np.random.Generator]:
    """Return a generator for each chain."""
    seeds = rng.bit_generator.seed_seq.spawn(n_chain)  # pyright: ignore[reportAttributeAccessIssue] - it has it
    return [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]


def one_draw[State: (Coefficients, Memory)](state: State) -> State:
    """Return a state as the single draw of a chain."""
    return type(state)(*(array[None] for array in state))


def joined[State: (Coefficients, Memory)](chains: Sequence[State]) -> State:
    """Return the draws of chains as one array each, the chains first; raise `SamplingError` where one is not finite."""
    drawn = type(chains[0])(*(np.stack(arrays) for arrays in zip(*chains, strict=True)))
    if not all(np.isfinite(array).all() for array in drawn):
        raise SamplingError("a draw that is not finite", remedy="Rescale covariates with values far from all others.")
    return drawn


def make_model(
    table: Any, settings: ExpertSettings, *, gaps: bool = False, remedy: str = FILL_GAPS
) -> tuple[ExpertModel, Table]:
    """Return what is fitted, and the rows it is fitted to; without `gaps` those lack no covariate, or see `remedy`."""
    read, targets, experts = as_table(table, kinds=settings.kinds), settings.targets, settings.experts
    positions = [_position(read, name) for name in targets]
    wanted = dict(experts) if isinstance(experts, Mapping) else experts
    values = [read.values[position, read.observed[position]] for position in positions]
    chosen = experts_of([read.schema.columns[position] for position in positions], values, wanted)
    names, gate_names = settings.covariates(read.names)
    if settings.given is None:
        warn_of_unused(read.schema.set_aside)
    both = sorted({*names, *gate_names} & {*targets})
    if both:
        raise LearnerError(f"column {both[0]!r} is both target and covariate", "one or the other")
    read = with_targets(read, targets, chosen)
    full = read.observed[[read.schema.index(name) for name in targets]].all(axis=0)
    if not full.all():
        n = int((~full).sum())
        warn(f"{counted(n, 'row')} without a value of the target {'is' if n == 1 else 'are'} left out")
        read = read.take(full)
    numbers = np.flatnonzero(full)
    strange = np.zeros(read.n_row, bool)
    for name in targets:
        column = read.schema.columns[read.schema.index(name)]
        if column.base == "category":
            strange |= read.values[read.schema.index(name)] >= len(column.labels)
    if strange.any():
        n = int(strange.sum())
        left = "is left out" if n == 1 else "are left out"
        warn(f"{counted(n, 'row')} with a label of the target that its schema does not know {left}")
        read, numbers = read.take(~strange), numbers[~strange]
    covariates = make_covariates(read, names)
    gate_covariates = covariates if gate_names == names else make_covariates(read, gate_names)
    if not gaps:
        covariates.refuse_missing(read, numbers, remedy)
        gate_covariates.refuse_missing(read, numbers, remedy)
    depth, branches, zeros = settings.depth, settings.branches, np.zeros(len(targets))
    model = ExpertModel(read.schema, targets, covariates, gate_covariates, depth, chosen, zeros, branches)
    units = model.units(model.target_cells(read)[0])
    offset = np.array([offset_of(name, own) for name, own in zip(chosen, units, strict=True)])
    return replace(model, offset=offset), read


def tell_single_values(model: ExpertModel, table: Any, settings: ExpertSettings) -> None:
    """Warn of the covariates of a table or frame that hold a single value, for they are left out."""
    schema = model.schema
    experts, gates = settings.covariates(schema.names)
    names = dict.fromkeys((*experts, *gates))
    # reading a frame has told of columns that are constant in all rows, but for those whose kind was overridden
    told = set() if isinstance(table, Table) else {column.name for column in schema if column.n_distinct < 2}
    told -= {*(settings.kinds or {})}
    silent = [name for name in names if name not in model.covariate_columns and name not in told]
    if silent:
        warn(f"covariates with a single value are left out: {', '.join(silent)}")


def make_prior(model: ExpertModel) -> Prior:
    """Return the hyperparameters of a model."""
    floor = []
    for family, column in zip(model.families, model.response, strict=True):
        _, scale = features.offset_and_scale(family.scaling, column)
        floor.append(max((column.resolution / scale) ** 2 / 12.0, defaults_experts.LEAST_VARIANCE))
    rate, least = defaults_experts.precision_bounds(
        np.isin(model.kind, LOG_LINKED), len(model.covariates.columns), model.depth
    )
    return Prior(
        gate_shape=defaults_experts.GATE_PRECISION[0],
        gate_rate=defaults_experts.GATE_PRECISION[1],
        precision_shape=defaults_experts.PRECISION_SHAPE,
        precision_rate=np.array(rate),
        least_precision=np.array(least),
        noise_shape=defaults_experts.NOISE_SHAPE,
        noise_rate_shape=defaults_experts.NOISE_RATE[0],
        noise_rate_rate=defaults_experts.NOISE_RATE[1],
        log_shape_mean=defaults_experts.LOG_SHAPE[0],
        log_shape_deviation=defaults_experts.LOG_SHAPE[1],
        floor=np.array(floor),
    )


def room(model: ExpertModel, n_draw: int) -> Coefficients:
    """Return arrays for the draws of a chain."""
    n_target = len(model.targets)
    return Coefficients(
        gate=np.empty((n_draw, model.n_leaf - 1, len(model.gate_covariates.names))),
        node=np.empty((n_draw, model.n_node, int(model.at[-1]), len(model.covariates.names))),
        dispersion=np.empty((n_draw, model.n_leaf, n_target)),
        gate_precision=np.empty((n_draw, 1)),
        precision=np.empty((n_draw, model.depth + 1, n_target)),
        noise=np.empty((n_draw, n_target)),
    )


def _position(table: Table, name: str) -> int:
    for aside in table.schema.set_aside:
        if aside.name == name:
            raise LearnerError(f"target {name!r} is left out: {aside.reason}", **aside.remedies())
    return table.schema.index(name)
