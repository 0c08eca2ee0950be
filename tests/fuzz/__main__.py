"""Fit generated tables and count the outcomes: ``python -m tests.fuzz --tables 10000``.

Exit status 1 where an exception is not ours, an answer is NaN, or a row with support has no density; all such failures
are told. With ``--questions`` only some are asked. With ``--smallest`` a process ends at its first one, and makes its
table as small as it can.
``python -m tests.fuzz --files 100000`` opens mutants of files instead, and has exit status 1 where one of them crashes,
runs code, takes more than a gigabyte or 5 s, or raises an exception that is not ours. With NUMBA_BOUNDSCHECK=1 kernels
check their indices, if none of them is cached: NUMBA_CACHE_DIR is to be empty.
``python -m tests.fuzz --commands 200`` runs the commands on files as people have them, and has exit status 1 where one
of them says something that it must not; `--show` prints all that they say.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tests.fuzz.fits import EXPERTS, LEARNERS
from tests.fuzz.questions import QUESTIONS
from tests.fuzz.runs import tables


def files(options: argparse.Namespace) -> int:
    """Open mutants; return the exit status."""
    from tests.fuzz.files import failures, report, run

    began = time.perf_counter()
    counts = run(
        options.files, seed=options.seed, first=options.first, n_process=options.processes, seeds=options.seeds
    )
    print(f"{counts.total()} mutants in {time.perf_counter() - began:.0f} s, {failures(counts)} failures")
    print(*report(counts), sep="\n")
    return min(failures(counts), 1)


def commands(options: argparse.Namespace) -> int:
    """Run commands on files; return the exit status."""
    from tests.fuzz.commands import run

    began = time.perf_counter()
    counts, failed = run(options.commands, seed=options.seed, first=options.first, keep=options.keep, show=options.show)
    for text, count in sorted(counts.items()):
        print(f"{count:7d}  {text}")
    print(
        f"{options.commands} files, {counts.total()} commands in {time.perf_counter() - began:.0f} s, {failed} failures"
    )
    return int(failed > 0)


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20260101, help="of the first process; others count on from there")
    parser.add_argument("--learners", nargs="+", choices=(*LEARNERS, EXPERTS), default=LEARNERS)
    parser.add_argument(
        "--questions", nargs="+", choices=list(QUESTIONS), default=list(QUESTIONS), help="one of which a fit is asked"
    )
    parser.add_argument("--smallest", action="store_true", help="end at a failure, with the smallest table that has it")
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant, or file of commands")
    parser.add_argument("--processes", type=int, help="as many as processors unless given")
    parser.add_argument("--seeds", nargs="+", type=Path, default=(), help="files to mutate, in place of all kinds")
    parser.add_argument("--commands", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder in which commands leave their files")
    parser.add_argument("--show", action="store_true", help="print what commands say")
    options = parser.parse_args()
    program = commands if options.commands else files if options.files else tables
    sys.exit(program(options))


if __name__ == "__main__":
    main()
