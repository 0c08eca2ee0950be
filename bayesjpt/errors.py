"""Our exceptions: each says what was found, what was expected, and the remedy, in one line."""

from __future__ import annotations

import os
import warnings

_PACKAGE = os.path.dirname(__file__)

_LONGEST = 300
"""Characters of each of them; a file from anywhere may hold names and labels of any length."""

_LONGEST_WARNING = 1000
"""Characters of a warning, which may list columns."""


def _shortened(text: str, longest: int = _LONGEST) -> str:
    """Return a text on one line, its middle left out where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: 2 * longest // 3]} ... {text[-longest // 3 + 5 :]}"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number and its noun, which agree.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row"), counted(2, "leaf", "leaves")
    ('1 row', '1200 rows', '2 leaves')
    """
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


class BayesjptError(Exception):
    """Something that the user can mend; the message is one line.

    Parameters
    ----------
    found : str
        What was met, naming the column, value or file.
    expected : str, optional
        What would have been right.
    remedy : str, optional
        What to do about it.
    command : str, optional
        What to do about it at the command line, where that is something else.
    """

    def __init__(
        self, found: str, expected: str | None = None, remedy: str | None = None, *, command: str | None = None
    ):
        self.found = found
        self.expected = expected
        self.remedy = remedy
        self.command = command
        text = _shortened(found)
        if expected is not None:
            text += f"; expected {_shortened(expected)}"
        if remedy is not None:
            text += f". {_shortened(remedy)}"
        super().__init__(text)

    def at_the_command_line(self) -> str:
        """Return the message with what to do about it at the command line."""
        return str(self if self.command is None else BayesjptError(self.found, self.expected, self.command))

    def __reduce__(self):
        return (_made_again, (type(self), self.found, self.expected, self.remedy, self.command))


def _made_again(kind: type[BayesjptError], found: str, expected: str, remedy: str, command: str) -> BayesjptError:
    """Return an error that came from another process."""
    return kind(found, expected, remedy, command=command)


class TableError(BayesjptError, ValueError):
    """A table that cannot be read or used as it is."""


class SchemaError(BayesjptError, ValueError):
    """A column decision that contradicts the data, or rows that do not fit a schema."""


class CircuitError(BayesjptError, ValueError):
    """Arrays that are not a valid circuit, or a circuit without the property that is needed."""


class LearnerError(BayesjptError, ValueError):
    """A setting of a structure learner that makes no sense."""


class ModelError(BayesjptError, ValueError):
    """A PyMC model in which the block's conjugate updates would be wrong or impossible."""


class SamplingError(BayesjptError, RuntimeError):
    """A sampler that cannot go on: impossible rows, invalid parameters, too few draws."""


class QueryError(BayesjptError, ValueError):
    """A question to a posterior that makes no sense."""


class EvidenceError(QueryError):
    """An event, or values given as evidence, that has probability zero."""


class FitFileError(BayesjptError, ValueError):
    """A file that is not a saved fit, or one of another format version."""


class CheckpointError(BayesjptError, ValueError):
    """A checkpoint that cannot be continued: of another fit, damaged, or in use."""


class BayesjptWarning(UserWarning):
    """Something that the user should know and that did not stop the work."""


def warn(message: str) -> None:
    """Warn with a `BayesjptWarning`, at the line of the user's that called the package."""
    warnings.warn(_shortened(message, _LONGEST_WARNING), BayesjptWarning, skip_file_prefixes=(_PACKAGE,))
