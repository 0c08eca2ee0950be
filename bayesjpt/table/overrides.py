"""What somebody asks of a column: a kind named in `kinds`, or a section of a schema document."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

KINDS = ("category", "integer", "real", "date", "excluded")
"""What may be asked of a column: one of the three bases, dates (which are real), or to leave it out."""

FORMER_KINDS = {"aside": "excluded"}
"""What kinds were called before; it is still understood."""

LABEL_KINDS = {"ordinal": ("ordinal",), "nominal": ("categorical",)}
"""What labels may be asked to be, and the only likelihood that says so."""


@dataclass(frozen=True)
class Override:
    """What was asked of one column; what is None is decided from its values.

    Parameters
    ----------
    base : str, optional
        One of `KINDS`.
    labels : tuple of str, optional
        All labels of a category, in the order of their codes.
    support : tuple of float, optional
        Smallest and largest possible value.
    resolution, location, scale : float, optional
    atoms : tuple of float, optional
        Ascending.
    families : tuple of str
        Names of the only likelihoods; empty for all that fit.
    other : bool
        Whether a category keeps a code for labels that its training rows do not show.
    source : str
        Name of the schema document; empty for `kinds`.
    lines : mapping from str to int
        Line of each key of the section, and of the section itself as ``column``.
    """

    base: str | None = None
    labels: tuple[str, ...] | None = None
    support: tuple[float, float] | None = None
    resolution: float | None = None
    location: float | None = None
    scale: float | None = None
    atoms: tuple[float, ...] | None = None
    families: tuple[str, ...] = ()
    other: bool = True
    source: str = field(default="", compare=False)
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)

    @property
    def author(self) -> str:
        """Who asks, for the reason of a decision."""
        return self.source or "kinds"

    def at(self, key: str) -> str:
        """Return where a key stands, for an error: ``line 12 of 'schema.toml'``, or ``the kind``."""
        if not self.source:
            return "the kind"
        return f"line {self.lines.get(key, self.lines.get('column', 1))} of {self.source!r}"

    def remedy(self, name: str, base: str) -> str:
        """Return how to ask for another base of a column."""
        return f"base = {base!r} in {self.source!r}" if self.source else f"kinds={{{name!r}: {base!r}}}"

    def command(self, name: str, base: str) -> str:
        """Return how to ask for another base of a column at the command line."""
        return self.remedy(name, base) if self.source else f"--kind {shlex.quote(f'{name}={base}')}"


NOTHING = Override()
"""Nothing was asked: everything is decided from the values."""
