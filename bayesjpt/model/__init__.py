"""Circuit -> PyMC: random variables, priors, the block, and the Gibbs step that samples it.

Importing any module of this package registers the step. A process that only unpickled a model imports the modules that
define its ops, and so this package first; without the step ``pm.sample`` would give the block to NUTS.
"""

from bayesjpt.model.compiled_density import register_density
from bayesjpt.model.compiled_draws import register_draws
from bayesjpt.model.expert_series_step import ExpertSeriesGibbs
from bayesjpt.model.expert_step import ExpertGibbs
from bayesjpt.model.gibbs_step import register_step
from bayesjpt.model.imputation_step import CircuitImputation
from bayesjpt.model.jax_mode import register_jax
from bayesjpt.model.starts import register_starts
from bayesjpt.numerics.unboxed_generators import register_generators

register_step()
register_step(ExpertGibbs)
register_step(ExpertSeriesGibbs)
register_step(CircuitImputation)
register_jax()
register_draws()
register_density()
register_starts()
register_generators()
