"""What people look at: convergence, tables, plots, pages. Heavy libraries are imported inside functions."""

from bayesjpt.report import convergence, notebook, plots, summary, tree

__all__ = ["convergence", "notebook", "plots", "summary", "tree"]
