"""One verb a file, each a function ``f(post, ...)`` that is also a method of Posterior."""

from bayesjpt.queries import condition, density, distribution, moments, probability, types

__all__ = ["condition", "density", "distribution", "moments", "probability", "types"]
