"""Mutants of saved fits, checkpoints, schema documents and tables: each is opened, or refused by an error of ours.

      parent   seeds, compiled kernels    --fork-->   child   mutants 0, 1, 2, ... 499   --pipe-->   what became of each
                                          --fork-->   child   mutants 500, ...

A child may take a gigabyte more than it began with. One that crashes, hangs, or does what no file may make it do is
named with its mutant, which ``python -m tests.fuzz --files 1 --first NUMBER`` makes again.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import bayesjpt as bj
from bayesjpt.errors import BayesjptError, BayesjptWarning
from bayesjpt.families import dispatch, registry
from tests.fuzz.mutants import mutate
from tests.fuzz.seeds import ONE, SETTINGS, SEVERAL, copy, make_seeds, table

MEMORY = 2**30
"""Bytes that opening a file may take."""
SECONDS = 5.0
"""Of processor time that it may take."""
HANG_SECONDS = 120.0
"""Of the clock without a word from a child, on a busy machine."""
BATCH = 500
PACKAGE = str(Path(bj.__file__).parent)
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.find_class")
FORBIDDEN += ("ctypes.dlopen", "socket.connect", "os.remove", "os.rename")


class Mutants:
    """The mutants of one seed of the random numbers.

    Parameters
    ----------
    folder : Path
        Empty; seeds and mutants lie there.
    seed : int
    seeds : sequence of Path, optional
        Files that mutants are made of, in place of one of each kind.
    """

    def __init__(self, folder: Path, seed: int, seeds: Sequence[Path] = ()):
        (folder / "seeds").mkdir()
        self.folder, self.seed = folder, seed
        self.seeds = [*seeds] or make_seeds(folder / "seeds")
        self.table = table()
        for path in self.seeds:  # compiled kernels are the parent's
            assert self.open(copy(path, folder / "warm_up")) == "opened", path
        # a mutant may name any family; compiled code comes from a cache that it is not to read
        for number, family in enumerate(registry.FAMILIES):
            dispatch.compile_slots(number, family)

    def outcome(self, number: int) -> tuple[str, str]:
        """Return the name of the seed and what became of a mutant: ``opened``, ``refused``, or an error."""
        rng = np.random.default_rng([self.seed, number])
        seed = self.seeds[int(rng.integers(len(self.seeds)))]
        path = copy(seed, self.folder / f"mutant{os.getpid()}")
        mutate(path, rng)
        began = time.process_time()
        try:
            found = self.open(path)
        except BayesjptError as error:
            found = "refused" if len(str(error)) < 1000 else f"a text of {len(str(error))} characters"
        except BaseException:
            found = traceback.format_exc()
        seconds = time.process_time() - began
        return seed.name, f"took {seconds:.1f} s" if seconds > SECONDS else found

    def open(self, path: Path) -> str:
        """Open a file of any kind and use what it holds."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", BayesjptWarning)
            # of files that they could not open, destructors of the libraries below complain
            warnings.filterwarnings("ignore", category=ResourceWarning)
            # where indices are checked, numba keeps not every kernel
            warnings.filterwarnings("ignore", message=".*Cannot cache compiled function")
            if path.is_dir():
                options = ONE if path.name.endswith("one") else SEVERAL
                use(bj.fit(self.table, checkpoint=path, resume=True, **SETTINGS, **options))
            elif path.suffix == ".nc":
                use(bj.load(path))
            elif path.suffix == ".toml":
                bj.as_table(table().to_frame(), schema=bj.read_schema(path))
            else:
                bj.read_table(path)
        return "opened"


def use(post: bj.Posterior) -> None:
    """Ask a posterior whatever reads all of its arrays; its numbers may be absurd."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        rows = post.sample(2, rng=np.random.default_rng(0))
        post.log_density(rows)


def run(n: int, *, seed: int, first: int = 0, n_process: int | None = None, seeds: Sequence[Path] = ()) -> Counter:
    """Run mutants and return how often each (seed, outcome) was met; failures are printed as they are found."""
    with tempfile.TemporaryDirectory() as folder:
        mutants = Mutants(Path(folder), seed, seeds)
        sys.addaudithook(_watch)
        counts: Counter = Counter()
        batches = [(start, min(start + BATCH, first + n)) for start in range(first, first + n, BATCH)]
        running: dict[int, list] = {}
        began = time.perf_counter()
        while batches or running:
            while batches and len(running) < (n_process or os.cpu_count() or 1):
                pipe, last = _child(mutants, *batches.pop(0))
                running[pipe] = [last, b"", time.perf_counter()]
            for pipe, state in list(running.items()):
                rest = _collect(pipe, state, counts)
                if rest is not None:
                    del running[pipe]
                    batches += rest
                    done = counts.total()
                    print(f"... {done} mutants, {done / (time.perf_counter() - began):.0f} a second", flush=True)
    return counts


def _child(mutants: Mutants, start: int, stop: int) -> tuple[int, list]:
    """Fork a process for some mutants; return its pipe, and [its number, the mutant at hand, where it stops]."""
    read, write = os.pipe()
    process = os.fork()
    if process:
        os.close(write)
        return read, [process, start, stop]
    os.close(read)
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes() + MEMORY,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        _guard.folder = mutants.folder
        for number in range(start, stop):
            os.write(write, json.dumps([number, *mutants.outcome(number)]).encode() + b"\n")
        status = 0
    finally:
        os._exit(status)


class _guard:
    folder: Path | None = None


def _watch(event: str, arguments: tuple) -> None:
    """Refuse what no file may make a reader do."""
    if _guard.folder is None or not event.startswith(FORBIDDEN):
        return
    if event in ("os.remove", "os.rename") and str(arguments[0]).startswith(
        (str(_guard.folder), ".bayesjpt", "mutant")
    ):
        return
    if event in ("os.remove", "os.rename") and str(arguments[0]).startswith(PACKAGE) and "__pycache__" in arguments[0]:
        return  # numba keeps a special function that no seed has needed; were it refused, its caller would only fail
    if event in ("os.remove", "os.rename") and "/" not in str(arguments[0]):
        return  # relative to a folder that is open: `shutil.rmtree` of a mutant
    raise AssertionError(f"{event} {arguments}"[:200])


def _data_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmData:"))


def _collect(pipe: int, state: list, counts: Counter) -> list | None:
    """Count what a child has said; return what is left of its batch when it has ended, else None."""
    (process, _, stop), silent = state[0], time.perf_counter() - state[2] > HANG_SECONDS
    ready, _, _ = select.select([pipe], [], [], 0.05)
    if ready:
        said = os.read(pipe, 2**20)
        if said:
            state[2] = time.perf_counter()
            *lines, state[1] = (state[1] + said).split(b"\n")
            for number, name, found in map(json.loads, lines):
                state[0][1] = number + 1
                _count(counts, number, name, found)
            return None
    elif not silent:
        return None
    if silent:
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    os.close(pipe)
    at = state[0][1]
    if at >= stop:
        return []
    what = "hung" if silent else f"ended the process: {signal.Signals(status).name if status < 64 else status}"
    _count(counts, at, "?", what)
    return [(at + 1, stop)] if at + 1 < stop else []


def _count(counts: Counter, number: int, name: str, found: str) -> None:
    if found in ("opened", "refused"):
        counts[name, found] += 1
    else:
        counts["FAILED", found.strip().splitlines()[-1][:150]] += 1
        print(f"mutant {number} of {name}: {found}", flush=True)


def failures(counts: Counter) -> int:
    return sum(count for (name, _), count in counts.items() if name == "FAILED")


def report(counts: Counter) -> Iterator[str]:
    """Yield lines of a table."""
    for (name, found), count in sorted(counts.items()):
        yield f"{count:8d}  {name:18} {found}"
