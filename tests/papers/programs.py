"""What the programs of this folder share: bad input is one line and exit status 2, as in the command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from bayesjpt.errors import BayesjptError, TableError


def run(main: Callable[[], int | None]) -> NoReturn:
    """Run a program and end with its exit status."""
    try:
        status = main()
    except (BayesjptError, OSError) as error:
        print(error, file=sys.stderr)
        status = 2
    sys.exit(status)


def names_of(data: str | Path, pattern: str, ending: str = "") -> list[str]:
    """Return the names of a folder's data sets, without their common ending, in order.

    Raises
    ------
    TableError
        Where there are none.
    """
    names = sorted(path.name.removesuffix(ending) for path in Path(data).glob(pattern))
    if not names:
        raise TableError(f"no data sets in {str(data)!r}", pattern, "Name the folder of the data sets with --data.")
    return names
