"""Kill ``bayesjpt fit`` again and again, and see whether what it resumes is bitwise what an undisturbed run draws.

      python -m tests.sampler.kills --kills 20

The fits save all the time, so that kills hit saves and what is between them. Each round starts or resumes one fit with
a checkpoint and ends it with SIGKILL: before it learns, while the structure is learned, at a random sweep of tuning or
of sampling, or in the middle of writing a file (see `PLANTS`). No kill looks at the clock: each waits for what it is
aimed at.
Then a copy of the checkpoint is resumed to the end and compared with the undisturbed run; the checkpoint itself goes
into the next round, so later resumptions have many kills behind them. When it is done, a new fit begins.
``--faults`` tries what else befalls a fit from outside (`tests.sampler.faults`).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bayesjpt as bj
from bayesjpt.posterior.draws import Posterior
from bayesjpt.sampler.saves import read_progress

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "notebooks" / "data" / "abalone.csv"
PLANTS = ("compiling", "learning", "structure", "begin", "draws", "between", "state", "saving")
"""Where the process kills itself: before kernels are compiled; at a split of the learner's; and in the writing of the
learned structure, the mark that a fit has begun, a part of the draws, the states of the chains (half of the file is
there; in between: the draws are, the states that count them are not), the fit at the very end."""
WAYS = ("tuning", "sampling", *PLANTS)
POLL_SECONDS = 0.002
LONGEST_SECONDS = 600.0
SAVE_SECONDS = 0.02
MOST_SAVES = 10
"""At which of its saves a fit is killed at the latest."""


@dataclass(frozen=True)
class Case:
    """What is fitted, in which folder."""

    folder: Path
    table: Path = TABLE
    draws: int = 150
    tune: int = 100
    chains: int = 4
    seed: int = 7

    @property
    def n_sweep(self) -> int:
        return self.chains * (self.draws + self.tune)

    def arguments(self, output: Path, checkpoint: Path | None) -> list[str]:
        """Return the arguments of the command line."""
        numbers = {
            "--structures": 1,
            "--draws": self.draws,
            "--tune": self.tune,
            "--chains": self.chains,
            "--seed": self.seed,
        }
        options = [str(part) for pair in numbers.items() for part in pair]
        more = [] if checkpoint is None else ["--checkpoint", str(checkpoint), "--resume"]
        return ["fit", str(self.table), "-o", str(output), *options, *more]


@dataclass(frozen=True)
class Kill:
    """One kill: how it was aimed, where it hit, and whether the resumed fit was that of the undisturbed run."""

    way: str
    phase: str
    sweep: int
    n_sweep: int
    equal: bool

    def __str__(self) -> str:
        verdict = "bitwise equal" if self.equal else "DIFFERENT"
        return f"{self.way:<10} hit {self.phase:<28} sweep {self.sweep:>5} of {self.n_sweep}: resumed {verdict}"


def run_kills(case: Case, ways: list[str], rng: np.random.Generator) -> Iterator[Kill]:
    """Yield one kill for each way, after an undisturbed run."""
    reference = finish(case, case.folder / "undisturbed.nc", None)
    checkpoint, copy, output = (case.folder / name for name in ("checkpoint", "copy", "killed.nc"))
    for way in ways:
        while (phase := kill_once(case, way, rng)) is None:
            pass  # it came to its end before it was hit: a new fit begins
        done = read_progress(checkpoint)
        shutil.rmtree(copy, ignore_errors=True)
        if checkpoint.exists():
            shutil.copytree(checkpoint, copy)
        resumed = finish(case, case.folder / "resumed.nc", copy)
        yield Kill(
            way, phase, sum(done[0]) if done else 0, case.n_sweep, same(reference, resumed) and not copy.exists()
        )
    output.unlink(missing_ok=True)


def finish(case: Case, output: Path, checkpoint: Path | None) -> Posterior:
    """Return the fit of a run that nobody disturbs."""
    command = [sys.executable, "-m", "bayesjpt", *case.arguments(output, checkpoint), "--quiet"]
    subprocess.run(command, check=True, cwd=ROOT, timeout=LONGEST_SECONDS)
    return bj.load(output)


def same(one: Posterior, two: Posterior) -> bool:
    """Return whether two fits agree in every bit."""
    arrays = [(one.params.log_weight, two.params.log_weight), (one.params.theta, two.params.theta)]
    arrays += [(one.sample_stats[name], two.sample_stats[name]) for name in one.sample_stats]
    return (
        one.circuit.digest() == two.circuit.digest()
        and one.schema == two.schema
        and dict(one.settings) == dict(two.settings)
        and all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in arrays)
    )


def kill_once(case: Case, way: str, rng: np.random.Generator) -> str | None:
    """Start or resume the fit and kill it; return the phase that was hit, or None where it came to its end before."""
    checkpoint, said = case.folder / "checkpoint", case.folder / "said.txt"
    done = read_progress(checkpoint)
    if done is not None and is_behind(case, way, done[0]):
        shutil.rmtree(checkpoint)
        done = None
    reached = _moment(case, way, rng, done[0] if done else [0])
    module = ["-m", "tests.sampler.kills", "--plant", way, str(_count(case, way, rng)), "--"]
    with said.open("w") as stderr:
        process = subprocess.Popen(
            [sys.executable, *module, *case.arguments(case.folder / "killed.nc", checkpoint)],
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            cwd=ROOT,
        )
        try:
            if way in PLANTS:
                process.wait(LONGEST_SECONDS)
            else:
                _wait(process, reached)
        finally:
            process.kill()  # nothing, if it has ended
            status = process.wait()
    if status == 0:
        return None
    assert status == -signal.SIGKILL, said.read_text()
    return _phase(case, said.read_text())


def is_behind(case: Case, way: str, done: list[int]) -> bool:
    """Return whether a fit whose chains have done so many sweeps cannot be hit in this way any more."""
    match way:
        case "compiling" | "learning" | "structure" | "begin":
            return True
        case "tuning":
            return min(done) >= case.tune
        case "sampling":
            return sum(done) >= case.n_sweep
        case _:
            return False


def goal(case: Case, way: str, rng: np.random.Generator, done: list[int]) -> int:
    """Return a random sweep of all chains together, behind which a fit is in tuning or in sampling."""
    border = case.chains * case.tune
    low, high = (min(sum(done), border - 1), border) if way == "tuning" else (max(sum(done), border), case.n_sweep)
    return int(rng.integers(low, high))


def _count(case: Case, way: str, rng: np.random.Generator) -> int:
    """Return at which call a planted kill strikes."""
    if way == "learning":
        return int(rng.integers(1, 6))
    return int(rng.integers(1, MOST_SAVES)) if way in ("draws", "between", "state") else 1


def _moment(case: Case, way: str, rng: np.random.Generator, done: list[int]) -> Callable[[], bool]:
    """Return a function that tells whether the moment of a kill has come."""
    if way in PLANTS:
        return lambda: False
    checkpoint, sweep = case.folder / "checkpoint", goal(case, way, rng, done)
    return lambda: _sweeps(checkpoint) > sweep


def _wait(process: subprocess.Popen, reached: Callable[[], bool]) -> None:
    """Wait for the moment of a kill, or for the end of the process."""
    while not reached():
        try:
            process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return


def _sweeps(checkpoint: Path) -> int:
    try:
        done = read_progress(checkpoint)
    except (bj.BayesjptError, OSError):  # it is being removed
        return 0
    return sum(done[0]) if done else 0


def _phase(case: Case, said: str) -> str:
    done = read_progress(case.folder / "checkpoint")
    if done is None:
        return "learning" if "kernels compiled" in said else "start"
    sweeps, n_sweep = done
    if min(sweeps) == n_sweep:
        return "after the last sweep"
    resuming = "" if "checkpoint read" in said or "structure learned" in said else " (while resuming)"
    return f"{'tuning' if min(sweeps) < case.tune else 'sampling'}{resuming}"


# --- kills from within


def plant(place: str, count: int) -> None:
    """Make this process save all the time, and kill itself in the middle of writing a file."""
    from bayesjpt import replace_file
    from bayesjpt.fitting import facade
    from bayesjpt.posterior import store
    from bayesjpt.sampler import chains, checkpoint, files, saves
    from bayesjpt.structure import mspn

    saves.SAVE_SECONDS = chains.WATCH_SECONDS = SAVE_SECONDS
    calls = 0

    def strikes() -> bool:
        nonlocal calls
        calls += 1
        return calls == count

    def die(*arguments) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()

    replace = replace_file.replace_file

    def half_written(path, content):
        if Path(path).name.startswith(name) and strikes():
            replace_file._write = lambda file, content: die(os.write(file, content[: len(content) // 2]))
        replace(path, content)

    match place:
        case "tuning" | "sampling":
            pass
        case "compiling":
            facade.compile_for = die
        case "learning":
            split = mspn._Learner._split_columns
            mspn._Learner._split_columns = lambda *arguments: die() if strikes() else split(*arguments)
        case "structure" | "saving":
            name = checkpoint.STRUCTURE if place == "structure" else "killed.nc"
            store.replace_file = half_written
        case "begin" | "draws" | "state":
            name = {"begin": checkpoint.RUN, "draws": "draws_", "state": checkpoint.STATE}[place]
            files.replace_file = half_written
        case "between":
            write = saves.write_sealed

            def written(path, *arguments):
                digest = write(path, *arguments)
                return die() if path.name.startswith("draws_") and strikes() else digest

            saves.write_sealed = written
        case _:
            raise ValueError(place)


def faults() -> int:
    """Try all faults but kills; return 0 where each left things as they have to be."""
    from tests.sampler.faults import run_faults

    n_failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, seen, fine in run_faults(Path(folder)):
            print(f"{'fine' if fine else 'FAILED':<6} {name.replace('_', ' ')}: {seen}", flush=True)
            n_failed += not fine
    return min(n_failed, 1)


def main() -> int:
    """Run the program; return 0 where all resumed fits were equal."""
    if sys.argv[1:2] == ["--plant"]:
        from bayesjpt.__main__ import main as command

        plant(sys.argv[2], int(sys.argv[3]))
        sys.argv[:] = ["bayesjpt", *sys.argv[5:]]
        command()
    parser = argparse.ArgumentParser(prog="python -m tests.sampler.kills", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parser.add_argument("--draws", type=int, default=Case.draws)
    parser.add_argument("--faults", action="store_true", help="workers, interrupts, folders, caches, many queries")
    options = parser.parse_args()
    if options.faults:
        return faults()
    rng = np.random.default_rng(options.seed)
    ways = [WAYS[number % len(WAYS)] for number in range(options.kills)]
    with tempfile.TemporaryDirectory() as folder:
        case = Case(Path(folder), draws=options.draws)
        kills = []
        for kill in run_kills(case, [str(way) for way in rng.permutation(ways)], rng):
            kills.append(kill)
            print(f"kill {len(kills):>2}: {kill}", flush=True)
    n_equal = sum(kill.equal for kill in kills)
    print(f"{len(kills)} kills, {n_equal} bitwise-equal resumptions")
    return 0 if n_equal == len(kills) else 1


if __name__ == "__main__":
    sys.exit(main())
