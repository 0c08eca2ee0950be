"""Pictures of joint probability trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bayesjpt.defaults import TREE_COLUMNS, TREE_DRAWS, TREE_LEAVES
from bayesjpt.errors import QueryError
from bayesjpt.posterior.answer import query_method
from bayesjpt.posterior.draws import Posterior
from bayesjpt.queries.tree import TreeData, tree_data
from bayesjpt.replace_file import reason, replace_file
from bayesjpt.report.tree_svg import tree_svg
from bayesjpt.report.tree_text import tree_dot, tree_text
from bayesjpt.user_paths import as_path

_SUFFIXES = (".svg", ".dot", ".gv", ".txt")


class Picture(ABC):
    """A tree, ready to be shown: as text by printing it, as a picture at the end of a notebook's cell."""

    @abstractmethod
    def to_text(self) -> str:
        """Return the tree as indented lines."""

    @abstractmethod
    def to_svg(self) -> str:
        """Return a self-contained picture."""

    @abstractmethod
    def to_dot(self) -> str:
        """Return the tree in the language of Graphviz."""

    def save(self, path: str | Path) -> None:
        """Write the tree to a file: .svg, .dot (or .gv), or .txt.

        Raises
        ------
        QueryError
            For another suffix, and where the file cannot be written.
        """
        path = as_path(path, QueryError)
        writers = {".svg": self.to_svg, ".dot": self.to_dot, ".gv": self.to_dot, ".txt": self.to_text}
        check_picture(path)
        written = writers[path.suffix.lower()]()
        try:
            replace_file(path, written if written.endswith("\n") else f"{written}\n")
        except OSError as error:
            raise QueryError(f"cannot write {str(path)!r}: {reason(error)}") from None

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_svg_(self) -> str:
        return self.to_svg()


@dataclass(frozen=True, eq=False, repr=False)
class TreeView(Picture):
    """A joint probability tree, ready to be shown.

    Parameters
    ----------
    data : TreeData
        What is shown: conditions, shares and marginals, with credible intervals.
    """

    data: TreeData

    def to_text(self) -> str:
        """Return a line for each node, and under each part one for each of its columns."""
        return tree_text(self.data)

    def to_svg(self) -> str:
        """Return a self-contained picture: splits, and a row for each leaf with the distributions of its columns.

        Below them stand the trees of columns in the leaves, where there are some.
        """
        return tree_svg(self.data)

    def to_dot(self) -> str:
        """Return the tree in the language of Graphviz, with leaves in words."""
        return tree_dot(self.data)


def check_picture(path: Path) -> None:
    """Raise `QueryError` for a name without one of the suffixes of trees."""
    if path.suffix.lower() not in _SUFFIXES:
        raise QueryError(
            f"file {path.name!r} is of an unknown kind", f"a name that ends in {', '.join(_SUFFIXES[:-1])} or .txt"
        )


@query_method
def tree(
    post: Posterior,
    columns: str | Sequence[str] | None = None,
    *,
    max_leaves: int = TREE_LEAVES,
    max_columns: int = TREE_COLUMNS,
    max_draws: int | None = TREE_DRAWS,
) -> TreeView:
    """Return the tree of a fit as text, DOT and a picture: its splits, and what columns are like in its leaves.

    Parameters
    ----------
    post : Posterior
        Of a joint probability tree with hard assignment, as `learn_jpt` makes it.
    columns : str or sequence of str, optional
        Columns that are shown in the leaves; those that are split, then the others, unless given.
    max_leaves : int
        Where there are more leaves, the largest sub-trees are opened until there are so many parts; what stays closed
        is shown as one part, with the distributions of all its rows.
    max_columns : int
        Of the columns that are chosen by themselves.
    max_draws : int or None
        Draws that the leaves' distributions are computed from; shares are computed from all. None for all.

    Returns
    -------
    TreeView

    Raises
    ------
    QueryError
        For a fit without splits, for columns that the schema does not have, and numbers that are not whole from 1.

    Notes
    -----
    Numbers are shown as probabilities of cells of equal width, exact under each draw, so no peak is missed; whole
    numbers and atoms as what they are. Cost: leaves x columns x draws x cells.

    References
    ----------
    Nyga et al., Joint probability trees, figures 1d and 8.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> x = np.linspace(-3.0, 3.0, 200)
    >>> table = bj.as_table(pd.DataFrame({"x": x, "side": np.where(x < 1.0, "left", "right")}))
    >>> circuit = bj.learn_jpt(table, np.random.default_rng(0), max_leaves=2)
    >>> view = bj.Posterior.from_circuit(circuit, table.schema).tree(["side"])
    >>> [node.condition for node in view.data.nodes]
    ['', 'x < 0.99', 'x >= 0.99']
    >>> str(view).splitlines()[1]
    'all rows  100%'
    """
    return TreeView(tree_data(post, columns, max_leaves=max_leaves, max_columns=max_columns, max_draws=max_draws))
