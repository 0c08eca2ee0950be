"""``bayesjpt`` and ``python -m bayesjpt``: the command line, which answers an interrupt while it is still loading."""

from __future__ import annotations

import gc
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

        status = run()
    except KeyboardInterrupt:  # while modules are loaded, or another one, while the first was answered
        sys.stderr.write("bayesjpt: interrupted\n")
        status = 130
    # All is saved and said: one more interrupt ends the process without a traceback from the interpreter's own end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.freeze()
    sys.exit(status)


if __name__ == "__main__":
    main()
