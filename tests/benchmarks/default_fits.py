"""Processor seconds of default fits, this program beside another checkout of it, in turns.

    python -m tests.benchmarks.default_fits --data DIR --old CHECKOUT [--tables abalone wine] [--rounds 2]

Each fit runs in a process of its own, behind a short one that compiles or loads what it needs, on one core, on the
training rows of ABDA's tables as the program itself reads them, with seed 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.papers.abda_data import table_names

_PROGRAM = """
import sys, time, warnings
import bayesjpt as bj
from tests.papers.abda_data import our_tables, read_data
warnings.simplefilter("ignore")
table = our_tables(read_data(sys.argv[1], sys.argv[2]))[0]
asked = {"cores": 1, "progress": False}
bj.fit(table, seed=2, draws=2, tune=2, chains=1, n_structures=1, **asked)
began = time.process_time()
bj.fit(table, seed=1, **asked)
print(time.process_time() - began)
"""


def seconds_of(checkout: Path, data: str, name: str) -> float:
    """Return the processor seconds of a default fit of a table by the program in a folder."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", _PROGRAM, data, name]
    done = subprocess.run(command, cwd=checkout, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    """Print a line for each table: the least seconds of both programs, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()
    checkouts = (asked.old.resolve(), Path(__file__).resolve().parents[2])
    for name in asked.tables or table_names(asked.data):
        rounds = [[seconds_of(checkout, asked.data, name) for checkout in checkouts] for _ in range(asked.rounds)]
        old, new = map(min, zip(*rounds, strict=True))
        print(f"{name:<12} old {old:6.2f} s  new {new:6.2f} s  new / old {new / old:.2f}", flush=True)


if __name__ == "__main__":
    main()
