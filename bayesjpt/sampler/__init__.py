"""Chains of Gibbs sweeps in threads: what `bayesjpt.fit` runs. Knows nothing of learners, posteriors or PyMC."""
