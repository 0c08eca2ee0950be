"""What befalls a fit from outside, one fault after the other; ``python -m tests.sampler.kills --faults`` runs all.

Each function takes an empty folder and returns in a few words what it saw; an `AssertionError` says what went wrong.
Nothing looks at the clock: processes wait for a state of others, and a limit of seconds ends a run that hangs.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

import bayesjpt as bj
from bayesjpt.sampler.saves import read_progress

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "notebooks" / "data" / "abalone.csv"
LONGEST_SECONDS = 600.0
POLL_SECONDS = 0.01
SETTINGS = {"n_structures": 2, "draws": 2, "tune": 2, "chains": 2, "progress": False, "seed": 3}
N_QUERY = 10_000
N_WARM = 2_000
"""Queries before memory is looked at; allocators and caches of answers have their size by then."""
GROWTH = 8 * 2**20
"""Bytes that 8,000 queries may leave behind: a kilobyte each."""
N_THREAD = 16

WORKER = """
import multiprocessing, os, signal, threading, time
import pymc as pm
import bayesjpt as bj
from tests import examples as ex
import numpy as np

def kill():
    while not (workers := multiprocessing.active_children()):
        time.sleep(.01)
    time.sleep(1.0)  # into its sweeps, if the machine is quick; wherever it is, what follows holds
    os.kill(workers[0].pid, signal.SIGKILL)

if __name__ == "__main__":
    table = ex.make_table(ex.COLUMNS, 14, np.random.default_rng(1), missing=0.2)
    options = dict(tune=5, chains=2, random_seed=1, progressbar=False, compute_convergence_checks=False)
    with bj.build_model(ex.two_level(table), table):
        before = pm.sample(5, cores=1, **options).posterior["x_normal_mu"].to_numpy()
        threading.Thread(target=kill, daemon=True).start()
        try:
            pm.sample(10_000_000, cores=2, mp_ctx="fork", **options)
        except Exception as error:
            print("error:", type(error).__name__, str(error)[:60])
        again = pm.sample(5, cores=2, mp_ctx="fork", **options).posterior["x_normal_mu"].to_numpy()
    print("same draws:", bool((before == again).all()))
"""


def a_killed_worker_of_pymc(folder: Path) -> str:
    """A worker of `pm.sample` is killed: PyMC says so, and the same model samples again as if nothing had been."""
    script = folder / "worker.py"
    script.write_text(WORKER)
    done = _python([str(script)], PYTENSOR_FLAGS="mode=FAST_COMPILE", PYTHONPATH=str(ROOT))
    assert "error:" in done.stdout, done.stdout + done.stderr[-2000:]
    assert "same draws: True" in done.stdout, done.stdout + done.stderr[-2000:]
    return done.stdout.splitlines()[0]


def interrupts(folder: Path) -> str:
    """One interrupt saves what was drawn, two end the command at once; either way the fit goes on to the same bits."""
    reference = folder / "undisturbed.nc"
    assert _ended(_command(_fit(reference)))[0] == 0
    said = []
    for number in (1, 2):
        checkpoint, output = folder / f"checkpoint{number}", folder / f"interrupted{number}.nc"
        process = _command(_fit(output, checkpoint))
        _wait_until(lambda checkpoint=checkpoint: _sweeps(checkpoint) > 0, process)
        for _ in range(number):
            process.send_signal(signal.SIGINT)
            time.sleep(POLL_SECONDS)
        status, text = _ended(process)
        assert "Traceback" not in text, text
        said.append(f"{number}: exit {status}")
        if checkpoint.exists():
            assert _ended(_command(_fit(output, checkpoint)))[0] == 0
            assert _same(reference, output)
            said[-1] += ", resumed bitwise"
    return "; ".join(said)


def two_fits_on_one_folder(folder: Path) -> str:
    """The second is refused in a line; the first is as if it had been alone."""
    checkpoint, output = folder / "checkpoint", folder / "first.nc"
    first = _command(_fit(output, checkpoint))
    _wait_until(lambda: _sweeps(checkpoint) > 0, first)
    first.send_signal(signal.SIGSTOP)
    try:
        second = _command(_fit(folder / "second.nc", checkpoint))
        status, text = _ended(second)
    finally:
        first.send_signal(signal.SIGCONT)
    assert status == 2, (status, text)
    assert "Traceback" not in text
    assert _ended(first)[0] == 0
    assert _ended(_command(_fit(folder / "alone.nc")))[0] == 0
    assert _same(folder / "alone.nc", output)
    assert not (folder / "second.nc").exists()
    return text.strip().splitlines()[-1][:100]


def a_folder_of_another_version(folder: Path) -> str:
    """It is refused by its version, and stays as it is."""
    checkpoint = folder / "checkpoint"
    first = _command(_fit(folder / "fit.nc", checkpoint))
    _wait_until(lambda: _sweeps(checkpoint) > 0, first)
    first.kill()
    _ended(first)
    described = next(path for path in checkpoint.rglob("*.json") if "format" in json.loads(path.read_text()))
    content = json.loads(described.read_text())
    described.write_text(json.dumps(content | {"format": f"{content['format']}0"}))
    before = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    second = _command(_fit(folder / "fit.nc", checkpoint))
    status, text = _ended(second)
    assert status == 2, (status, text)
    assert "Traceback" not in text
    assert before == {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    return text.strip().splitlines()[-1][:100]


def a_cache_that_cannot_be_written(folder: Path) -> str:
    """A package without a folder to write to is imported and computes, whether compiled code is there or not."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return "not tried: only root may mount a folder once more, read-only"
    package = folder / "bayesjpt"
    shutil.copytree(ROOT / "bayesjpt", package, ignore=shutil.ignore_patterns("*.nbi", "*.nbc"))
    found = {}
    for state, mode in (("empty", "ro"), ("new", ""), ("full", "ro"), ("damaged", "ro"), ("renewed", "")):
        if state == "damaged":
            _each_cache(package, lambda path: path.write_bytes(path.read_bytes()[:20]))
        done = _compute(package, mode)
        assert done.returncode == 0, done.stderr[-2000:]
        value, found[state] = done.stdout.split()
        assert value == "0.5", done.stdout
    assert found == {"empty": "0", "new": "0", "full": "1", "damaged": "0", "renewed": "0"}, found
    assert _compute(package, "ro").stdout.split() == ["0.5", "1"]
    return "read where it is whole, else compiled anew"


def a_cache_shared_by_two_versions(folder: Path) -> str:
    """Each version of a source computes its own answer, though both keep their code in one place."""
    package = folder / "bayesjpt"
    shutil.copytree(ROOT / "bayesjpt", package, ignore=shutil.ignore_patterns("*.nbi", "*.nbc"))
    source = package / "numerics" / "ends.py"
    weighed = "{} * ((a - offset) / scale) + {} * ((b - offset) / scale)"
    versions = [text := source.read_text(), text.replace(weighed.format(0.5, 0.5), weighed.format(0.25, 0.75))]
    assert versions[0] != versions[1]
    found = []
    for version in (0, 1, 0, 1):
        source.write_text(versions[version])
        found.append(_compute(package, "").stdout.split()[0])
    assert found == ["0.5", "0.75", "0.5", "0.75"], found
    return "0.5 and 0.75 in turn"


def ways_to_start_processes(folder: Path) -> str:
    """Fits in spawned, forked and served processes and in threads draw the same."""
    expected = _digest()
    for method in ("spawn", "forkserver", "fork"):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
            assert pool.submit(_digest).result(LONGEST_SECONDS) == expected, method
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: _digest(), range(4))) == {expected}
    return "spawn, forkserver, fork, 4 threads: the same draws"


def many_queries(folder: Path) -> str:
    """Memory does not grow with the number of queries."""
    post = bj.fit(_frame(), **SETTINGS)
    events = [f"size > {number / 100}" for number in range(200)]
    rows = _frame().head(3)
    rng = np.random.default_rng(1)
    at = {}
    for number in range(N_QUERY):
        post.probability(events[number % 200], given="label = 'red'" if number % 2 else None)
        if number % 50 == 0:
            post.condition(events[number % 200]).expectation(["size"])
            post.log_density(rows)
            post.sample(2, rng=rng)
        if number in (N_WARM, N_QUERY - 1):
            at[number] = _resident_bytes()
    growth = at[N_QUERY - 1] - at[N_WARM]
    assert growth < GROWTH, f"{growth} bytes"
    return f"{N_QUERY} queries, {growth / 2**20:.1f} MiB more after {N_WARM}"


def many_threads(folder: Path) -> str:
    """Threads that ask one Posterior get what one thread gets."""
    rows = _frame()

    def ask(post: bj.Posterior, number: int) -> bytes:
        rng = np.random.default_rng(number)
        answers = (
            post.probability(f"size > {number / 10}"),
            post.log_density(rows),
            post.condition(f"size > {number / 10}").expectation(["size"]),
            post.quantile([0.1, 0.9], ["size"], given="label = 'red'"),
        )
        drawn = post.sample(3, rng=rng).values
        return b"".join(np.asarray(answer).tobytes() for answer in (*answers, drawn))

    post = bj.fit(_frame(), **SETTINGS)
    post.save(folder / "fit.nc")
    expected = [ask(post, number) for number in range(N_THREAD)]
    fresh = bj.load(folder / "fit.nc")  # what it makes at its first query, threads make together
    with ThreadPoolExecutor(N_THREAD) as pool:
        for found in (list(pool.map(lambda k: ask(fresh, k), range(N_THREAD))) for _ in range(5)):
            assert found == expected
    return f"{N_THREAD} threads, 5 x 5 answers each: as one thread"


FAULTS: tuple[Callable[[Path], str], ...] = (
    a_killed_worker_of_pymc,
    interrupts,
    two_fits_on_one_folder,
    a_folder_of_another_version,
    a_cache_that_cannot_be_written,
    a_cache_shared_by_two_versions,
    ways_to_start_processes,
    many_queries,
    many_threads,
)


def run_faults(folder: Path) -> Iterator[tuple[str, str, bool]]:
    """Yield the name of each fault, what was seen, and whether all was as it has to be."""
    for fault in FAULTS:
        own = folder / fault.__name__
        own.mkdir()
        try:
            yield fault.__name__, fault(own), True
        except AssertionError as error:
            yield fault.__name__, str(error)[:1000], False


def _fit(output: Path, checkpoint: Path | None = None) -> list[str]:
    sizes = ["--structures", "1", "--chains", "2", "--draws", "100", "--tune", "50", "--seed", "7"]
    more = [] if checkpoint is None else ["--checkpoint", str(checkpoint), "--resume"]
    return ["fit", str(TABLE), "-o", str(output), *sizes, *more]


def _command(arguments: list[str]) -> subprocess.Popen:
    """Start the command in a process that saves its checkpoint all the time and takes interrupts."""
    module = ["-m", "tests.sampler.kills", "--plant", "sampling", "1", "--"]
    return subprocess.Popen(
        [sys.executable, *module, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        # what a shell runs in the background has interrupts switched off
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def _ended(process: subprocess.Popen) -> tuple[int, str]:
    """Return a process's exit code and what it wrote to standard error."""
    text = process.communicate(timeout=LONGEST_SECONDS)[1]
    return process.returncode, text


def _sweeps(checkpoint: Path) -> int:
    with contextlib.suppress(bj.BayesjptError, OSError):
        done = read_progress(checkpoint)
        return sum(done[0]) if done else 0
    return 0


def _wait_until(reached: Callable[[], bool], process: subprocess.Popen) -> None:
    while not reached() and process.poll() is None:
        time.sleep(POLL_SECONDS)


def _same(one: Path, two: Path) -> bool:
    a, b = bj.load(one), bj.load(two)
    return a.params.theta.tobytes() == b.params.theta.tobytes() and a.circuit.digest() == b.circuit.digest()


def _python(arguments: list[str], **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
    )


MIDWAY = """
from bayesjpt.numerics.ends import upper_end
print(upper_end(2.0**60, (2.0**60, 256.0, 1.0)), sum(upper_end.stats.cache_hits.values()))
"""


def _each_cache(package: Path, change: Callable[[Path], object]) -> None:
    for path in package.rglob("*.nb[ic]"):
        change(path)


def _compute(package: Path, mode: str) -> subprocess.CompletedProcess:
    """Compute a number by a copy of the package and count cache hits; ``ro`` is a file system that is read-only."""
    home = package.parent / "home"
    home.mkdir(exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(package.parent), "HOME": str(home)}
    command = [sys.executable, "-W", "error", "-B", "-c", MIDWAY]
    if mode == "ro":
        place = str(package.parent)
        mounts = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
        command = ["unshare", "-m", "sh", "-c", mounts, place, *command]
    return subprocess.run(
        command, env=environment, cwd="/", capture_output=True, text=True, check=False, timeout=LONGEST_SECONDS
    )


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    size = rng.normal(2.0, 1.0, 40).round(2)
    return pd.DataFrame({"size": size, "label": np.where(rng.random(40) < 0.5, "red", "blue")})


def _digest() -> str:
    post = bj.fit(_frame(), cores=1, **SETTINGS)
    return np.asarray(post.log_density(_frame())).tobytes().hex()[:64]


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
