"""One query method a file, each a function ``f(post, ...)`` that is also a method of Posterior."""
