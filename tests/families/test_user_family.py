"""The documented family of one's own works everywhere: density, model, step, worker processes, posterior, files.

Each test is a program of its own: a registered family stays in the process, and other tests are about the built-in
ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLES = PROJECT / "docs" / "examples"
MAX_LINES = 60

_TABLE = """
import sys
sys.path.insert(0, {examples!r})
import numpy as np, pandas as pd, scipy.stats
import bayesjpt as bj
from half_normal import HALF_NORMAL
rng = np.random.default_rng(1)
wait = np.abs(rng.normal(0.0, 2.0, 300)).round(2)
table = bj.as_table(pd.DataFrame({{"wait": wait, "group": rng.choice(["a", "b"], 300)}}))
circuit = bj.learn_mspn(table, rng, dictionary=lambda c: (HALF_NORMAL,) if c.base == "real" else bj_dictionary(c))
"""


def run(tmp_path: Path, program: str, *arguments: str) -> str:
    """Run a program that has the table and the circuit; return what it printed."""
    head = _TABLE.format(examples=str(EXAMPLES)).replace(
        "from half_normal", "from bayesjpt.families.registry import dictionary as bj_dictionary\nfrom half_normal"
    )
    path = tmp_path / "program.py"
    path.write_text(head + program)
    command = [sys.executable, "-W", "ignore", str(path), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_example_is_as_short_as_promised():
    lines = (EXAMPLES / "half_normal.py").read_text().splitlines()
    assert sum(bool(line.strip()) for line in lines) < MAX_LINES


def test_slots_agree_with_scipy(tmp_path):
    out = run(
        tmp_path,
        """
theta, none = np.array([2.25]), np.empty(0)
law = scipy.stats.halfnorm(scale=1.5)
z = np.array([0.0, 0.3, 2.0, 8.0])
prepared, density = np.empty(5), np.empty(4)
HALF_NORMAL.coefficients(theta, none, prepared)
HALF_NORMAL.fill_log_density(z, z, prepared, density)
np.testing.assert_allclose(density, law.logpdf(z), rtol=1e-12)
np.testing.assert_allclose(HALF_NORMAL.log_mass(0.5, 2.0, theta, none), np.log(law.cdf(2.0) - law.cdf(0.5)), rtol=1e-12)
np.testing.assert_allclose(HALF_NORMAL.cdf(1.2, theta, none), law.cdf(1.2), rtol=1e-12)
mean = law.expect(lambda x: x, lb=0.5, ub=2.0, conditional=True)
np.testing.assert_allclose(HALF_NORMAL.moment(1, 0.5, 2.0, theta, none), mean, rtol=1e-10)
np.testing.assert_allclose(HALF_NORMAL.moment(2, -np.inf, np.inf, theta, none), law.var(), rtol=1e-10)
draws = np.array([HALF_NORMAL.sample(0.5, np.inf, theta, none, rng) for _ in range(20_000)])
p = scipy.stats.kstest(draws, lambda x: (law.cdf(x) - law.cdf(0.5)) / law.sf(0.5)).pvalue
assert p > 1e-6, p
print("fine")
""",
    )
    assert out == "fine\n"


def test_fit_saves_and_loads_with_the_family(tmp_path):
    out = run(
        tmp_path,
        f"""
post = bj.fit(table, lambda t, r: circuit, n_structures=1, draws=20, tune=20, chains=2, seed=1, progress=False)
path = {str(tmp_path / "fit.nc")!r}
post.save(path)
again = bj.load(path)
np.testing.assert_array_equal(again.log_density(table), post.log_density(table))
print(post.types().shares["wait"].likelihoods)
""",
    )
    assert out == "{'half_normal': 1.0}\n"


def test_file_with_the_family_asks_for_its_module(tmp_path):
    path = str(tmp_path / "fit.nc")
    run(tmp_path, f"bj.Posterior.from_circuit(circuit, table.schema).save({path!r})")
    program = f"import bayesjpt as bj; bj.load({path!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300)
    assert "no likelihood family 'half_normal'" in done.stderr
    assert "Import the module that registers" in done.stderr


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_model_is_sampled_in_worker_processes(tmp_path, method):
    out = run(
        tmp_path,
        f"""
import pymc as pm
import pytensor
pytensor.config.mode = "FAST_COMPILE"
if __name__ == "__main__":
    with bj.build_model(circuit, table) as model:
        idata = pm.sample(draws=30, tune=20, chains=2, cores=2, mp_ctx={method!r}, random_seed=1, progressbar=False,
                          compute_convergence_checks=False)
        pm.compute_log_likelihood(idata, progressbar=False)
    post = bj.Posterior.from_idata(idata, model)
    expected = post.log_density(table).to_numpy()
    np.testing.assert_allclose(idata["log_likelihood"]["x"].to_numpy(), expected, rtol=1e-10)
    print(idata["posterior"]["x_half_normal_variance"].shape[:2])
""",
    )
    assert out == "(2, 30)\n"


def test_second_family_of_the_name_and_wrong_slots_are_refused(tmp_path):
    out = run(
        tmp_path,
        """
import dataclasses
from bayesjpt.numerics.jit import kernel
@kernel
def whole(x, theta, constants):
    return 1
for change in ({}, {"name": "other", "cdf": whole}, {"name": "third", "priors": {}}):
    try:
        bj.register_family(dataclasses.replace(HALF_NORMAL, **change))
    except bj.BayesjptError as error:
        print(str(error).split(":")[0][:60])
print(bj.register_family(HALF_NORMAL) is HALF_NORMAL)
""",
    )
    assert out.splitlines() == [
        "a second family 'half_normal'; expected a name of its own. R",
        "family 'other' cannot be compiled",
        "family 'third' has no prior 'default'; expected priors={'def",
        "True",
    ]


def test_gradient_of_the_block_reaches_the_family(tmp_path):
    out = run(
        tmp_path,
        """
import pytensor
pytensor.config.mode = "FAST_COMPILE"
model = bj.build_model(circuit, table, transforms=True)
value = next(v for v in model.value_vars if "half_normal_variance" in v.name)
point = model.initial_point()
gradient = model.compile_dlogp(vars=[model.values_to_rvs[value]])(point)
log_density = model.compile_logp()
step = 1e-5
for i in range(gradient.size):
    up, down = ({**point, value.name: point[value.name] + sign * step * (np.arange(gradient.size) == i)}
                for sign in (1.0, -1.0))
    np.testing.assert_allclose(gradient[i], (log_density(up) - log_density(down)) / (2.0 * step), rtol=1e-5, atol=1e-5)
print("fine")
""",
    )
    assert out == "fine\n"
