"""Compiled sweeps over plans. Kernels get arrays and scalars, allocate nothing in loops and raise nothing."""
