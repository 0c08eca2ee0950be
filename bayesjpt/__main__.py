"""``python -m bayesjpt``: the command line."""

from bayesjpt.cli import main

if __name__ == "__main__":
    main()
