"""The collapsed sampler beside the blocked one: processor time of a sweep, and how good draws after some sweeps are."""

from __future__ import annotations

import argparse
import time

import numpy as np

import bayesjpt as bj
from bayesjpt.circuit.arrays import Circuit, Params
from bayesjpt.kernels.samplers import SAMPLERS
from bayesjpt.sampler.target import make_target
from bayesjpt.table.table import Table

N_TEST = 1000


def sweeps(circuit: Circuit, train: Table, sampler: str, n: int, seed: int) -> tuple[np.ndarray, Params]:
    """Return processor seconds after each of n sweeps from the learner's estimate, and the draws as one chain."""
    sweeper = make_target(circuit, train, sampler=sampler).sweeper()
    sweeper.sweep(sweeper.learned(), np.random.default_rng(0), 0, 0)  # compiles what is not compiled
    rng, params = np.random.default_rng(seed), sweeper.learned()
    seconds, log_weight, theta = np.empty(n), np.empty((1, n, circuit.n_edge)), np.empty((1, n, circuit.n_theta))
    began = time.thread_time()
    for number in range(n):
        sweeper.sweep(params, rng, seed, number)
        log_weight[0, number], theta[0, number] = params.log_weight, params.theta[: circuit.n_theta]
        seconds[number] = time.thread_time() - began
    return seconds, Params(log_weight, theta)


def held_out(circuit: Circuit, params: Params, train: Table, test: Table) -> float:
    """Return the log mass of held-out rows in nats a row, averaged over draws before the logarithm."""
    post = bj.Posterior(
        circuit=circuit, schema=train.schema, params=params, sample_stats={}, reference=train, settings={}
    )
    mass = np.asarray(post.log_mass(test))[0]
    return float(np.mean(np.logaddexp.reduce(mass, axis=0) - np.log(mass.shape[0])))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.papers.collapsed", description=__doc__)
    parser.add_argument("table", help="a csv file")
    parser.add_argument("--rows", type=int, default=400, help="rows to learn from and to sample")
    parser.add_argument("--sweeps", type=int, nargs="+", default=[5, 20, 80], help="after how many draws are scored")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    whole = bj.read_table(chosen.table)
    order = np.random.default_rng(chosen.seed).permutation(whole.n_row)
    train, test = whole.take(np.sort(order[: chosen.rows])), whole.take(np.sort(order[chosen.rows :][:N_TEST]))
    circuit = bj.learn_mspn(train, np.random.default_rng(chosen.seed))
    print(f"{train.n_row} rows, {test.n_row} held out, {circuit.n_leaf} leaves")
    for sampler in SAMPLERS:
        seconds, params = sweeps(circuit, train, sampler, max(chosen.sweeps), chosen.seed)
        print(f"{sampler}: {1e3 * seconds[-1] / seconds.size:.1f} ms a sweep")
        for n in chosen.sweeps:
            late = Params(params.log_weight[:, n // 2 : n], params.theta[:, n // 2 : n])
            score = held_out(circuit, late, train, test)
            print(f"  sweeps {n // 2 + 1} to {n}: {score:.3f} nats a held-out row, {seconds[n - 1]:.2f} s until then")


if __name__ == "__main__":
    main()
