"""What people look at: convergence, tables, plots. Heavy libraries are imported inside functions."""

from bayesjpt.report import convergence, summary

__all__ = ["convergence", "summary"]
