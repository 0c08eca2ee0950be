"""What people look at: convergence, tables, plots. Heavy libraries are imported inside functions."""

from bayesjpt.report import convergence, plots, summary, tree

__all__ = ["convergence", "plots", "summary", "tree"]
