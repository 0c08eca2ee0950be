"""``bayesjpt`` and ``python -m bayesjpt``: the command line, which answers an interrupt while it is still loading."""

from __future__ import annotations

import gc
import os
import signal
import sys


def main() -> None:
    """Run the command line and end the process with its exit status.

    Importing and loading compiled functions makes half a million objects that live as long as the process. To search
    them for garbage again and again, and to take them apart at the end, is a quarter of a short command's time.
    """
    gc.disable()
    try:
        from bayesjpt.cli import run

        status = _written(run())
    except KeyboardInterrupt:  # while modules are loaded, or another one, while the first was answered
        sys.stderr.write("bayesjpt: interrupted\n")
        status = 130
    # All is saved and said: one more interrupt ends the process without a traceback from the interpreter's own end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.freeze()
    sys.exit(status)


def _written(status: int) -> int:
    """Return the exit status of a command once its output is written; where it cannot be, that is said once."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # the interpreter would write what is left again at its end, say so in its own words and exit with 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if status == 0 and isinstance(error, BrokenPipeError):  # whoever read it has enough
            return 1
        if status == 0:
            sys.stderr.write(f"bayesjpt: the output cannot be written: {error.strerror or error}\n")
            return 2
    return status


if __name__ == "__main__":
    main()
