"""Circuit -> PyMC: random variables, priors, the block, and the Gibbs step that samples it."""
