"""Scalar mathematics compiled by numba; knows nothing of circuits."""
