"""Hierarchical mixtures of experts: densities of some columns given others."""
