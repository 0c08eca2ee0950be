"""A fit by lace, for an interpreter that has it: reads an .npz file, writes the fitted mixtures as JSON.

    PYTHON -I lace_worker.py IN.npz OUT.json

Needs nothing but lace, its own dependencies and SciPy; runs by itself, outside this package
(`-I`, since other scripts of this folder have names of standard modules).

IN.npz holds `train` (n_row, n_column) with NaN where missing, `discrete` (n_column,), `n_state`, `n_iteration`, `seed`.
Columns that are constant are left out, since lace refuses them. OUT.json holds, for each state (chain), its views:
columns, the weight of each component, and the components' parameters by column; besides the types that lace chose, and
processor seconds. The weights are not part of lace's interface: they are found from the log likelihoods that it gives
to training rows, and `recovery_error` is the largest difference, in nats, between those and the ones that follow from
the weights found. All rows are needed, since a component may hold one alone; there are far more of them than weights.
"""

import json
import sys
import time

import numpy as np
from scipy.optimize import nnls
from scipy.special import gammaln

N_RECOVERY = 4000


def as_frame(rows, discrete, columns):
    """Return some columns as lace takes them: whole numbers where the column is discrete, None where missing."""
    import polars as pl

    frame = {"ID": [str(row) for row in range(len(rows))]}
    for column in columns:
        values, kind = rows[:, column], int if discrete[column] else float
        frame[f"x{column}"] = [None if np.isnan(value) else kind(value) for value in values]
    return pl.DataFrame(frame)


def plain(component, kind):
    """Return the parameters of a component as a list of numbers."""
    if kind == "Continuous":
        return [component.mu, component.sigma]
    if kind == "Count":
        return [component.rate]
    return list(component.weights)


def log_density(values, parameters, kind):
    """Return the log density of values (n_row,) under one component, 0 where missing."""
    known = ~np.isnan(values)
    return np.where(known, _log_density(np.where(known, values, 0.0), parameters, kind), 0.0)


def _log_density(values, parameters, kind):
    if kind == "Continuous":
        mean, sigma = parameters
        return -0.5 * ((values - mean) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2.0 * np.pi)
    if kind == "Count":
        return values * np.log(parameters[0]) - parameters[0] - gammaln(values + 1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(parameters))[values.astype(int)]


def recover_weights(terms, log_likelihood):
    """Return the weights (n_component,) of a mixture from log densities (n_row, n_component) and log likelihoods."""
    scaled = np.exp(terms - log_likelihood[:, None])
    weights, _ = nnls(scaled, np.ones(len(terms)))
    return weights / weights.sum()


def log_likelihoods(engine, state, columns, rows, discrete):
    """Return what lace says of rows, (n_row,), each by the columns that it observes: it takes no missing cells."""
    out = np.zeros(len(rows))
    patterns, which = np.unique(~np.isnan(rows[:, columns]), axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        same = which.ravel() == number
        asked = as_frame(rows[same], discrete, np.array(columns)[pattern]).drop("ID")
        out[same] = np.asarray(engine.logp(asked, state_ixs=[state]))
    return out


def read_view(engine, state, columns, rows, kinds, discrete):
    """Return a view of a state and the error of the recovery of its weights."""
    parameters = {
        column: [plain(one, kinds[column]) for one in engine.feature_params(f"x{column}", [state])[state]]
        for column in columns
    }
    known = rows[~np.isnan(rows[:, columns]).all(axis=1)][:N_RECOVERY]
    log_likelihood = log_likelihoods(engine, state, columns, known, discrete)
    terms = sum(
        np.column_stack([log_density(known[:, column], one, kinds[column]) for one in parameters[column]])
        for column in columns
    )
    weights = recover_weights(terms, log_likelihood)
    with np.errstate(divide="ignore"):
        error = np.abs(np.logaddexp.reduce(terms + np.log(weights), axis=1) - log_likelihood).max()
    view = {"columns": columns, "weights": weights.tolist(), "parameters": [parameters[column] for column in columns]}
    return view, float(error)


def main(source, target):
    """Fit and write."""
    from lace import Engine

    with np.load(source) as given:
        train, discrete = given["train"], given["discrete"]
        n_state, n_iteration, seed = (int(given[name]) for name in ("n_state", "n_iteration", "seed"))
    began = time.perf_counter(), time.process_time()
    columns = [column for column, values in enumerate(train.T) if np.unique(values[~np.isnan(values)]).size > 1]
    engine = Engine.from_df(as_frame(train, discrete, columns), n_states=n_state, rng_seed=seed)
    engine.update(n_iteration, transitions="sams", quiet=True)
    seconds, processor_seconds = time.perf_counter() - began[0], time.process_time() - began[1]
    kinds, states, errors = {int(name[1:]): kind for name, kind in engine.ftypes.items()}, [], []
    for state in range(n_state):
        view_of = dict(zip(columns, engine.column_assignment(state), strict=True))
        views = []
        for view in sorted(set(view_of.values())):
            members = [column for column in columns if view_of[column] == view]
            found, error = read_view(engine, state, members, train, kinds, discrete)
            views.append(found)
            errors.append(error)
        states.append(views)
    answer = {
        "kinds": kinds,
        "states": states,
        "recovery_error": max(errors),
        "seconds": seconds,
        "processor_seconds": processor_seconds,
    }
    with open(target, "w") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
