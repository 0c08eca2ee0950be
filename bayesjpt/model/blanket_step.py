"""NUTS on what a block's concentrations are made of, without the block's data.

Given the weights, the concentrations do not depend on the rows: the density of a hyperparameter is its own prior, the
Dirichlet densities of the weights, and whatever else of the model depends on it. The circuit, by far the most costly
factor, is none of these. `BlanketNUTS` evaluates this Markov blanket alone.
"""

from __future__ import annotations

import pymc as pm
import pytensor.tensor as pt
from pymc.model.core import ValueGradFunction
from pymc.sampling import mcmc
from pymc.step_methods.compound import Competence
from pymc.util import get_value_vars_from_user_vars
from pytensor.graph.traversal import graph_inputs

from bayesjpt.model.concentration import TAG


def register_blanket_step() -> None:
    """Append the step to the methods among which ``pm.sample`` chooses; once, however often it is called."""
    if BlanketNUTS not in mcmc.STEP_METHODS:
        mcmc.STEP_METHODS.append(BlanketNUTS)


def blanket(model: pm.Model, value_vars: list) -> dict:
    """Return {factor: its log density} of the random variables and potentials that depend on some value variables."""
    factors = [*model.free_RVs, *model.observed_RVs, *model.potentials]
    mine = set(value_vars)
    terms = zip(factors, model.logp(vars=factors, sum=False), strict=True)
    return {factor: term for factor, term in terms if mine & set(graph_inputs([term]))}


class BlanketNUTS(pm.NUTS):
    """NUTS whose log density is that of its variables' Markov blanket.

    Parameters
    ----------
    vars : list of variables, optional
        Continuous variables; those of which blocks' concentrations are made unless given.
    model : pm.Model, optional
    initial_point : dict, optional
    compile_kwargs : dict, optional
    **options
        Of ``pm.NUTS``, such as ``target_accept``; ``pm.sample(nuts={...})`` passes them.

    Notes
    -----
    Factors that do not depend on the variables change the log density by a constant: the draws have the same
    distribution as those of ``pm.NUTS`` on the whole model. Statistics are those of ``pm.NUTS`` but for the model's log
    density, which it does not know.
    """

    name = "nuts"  # so that the options of pm.sample(nuts={...}) reach it
    default_tune_steps = 500
    stats_dtypes_shapes = {  # noqa: RUF012 - PyMC's
        key: value for key, value in pm.NUTS.stats_dtypes_shapes.items() if key != "model_logp"
    }

    def __init__(self, vars=None, *, model=None, initial_point=None, compile_kwargs=None, **options):
        model = pm.modelcontext(model)
        if vars is None:
            vars = [rv for rv in model.free_RVs if getattr(rv.tag, TAG, False)]
        value_vars = get_value_vars_from_user_vars(vars, model)
        initial_point = model.initial_point() if initial_point is None else initial_point
        terms = list(blanket(model, value_vars).values())
        inputs = set(graph_inputs(terms))
        log_density = ValueGradFunction(
            [pt.add(*[term.sum() for term in terms]) if len(terms) > 1 else terms[0].sum()],
            value_vars,
            {v: initial_point[v.name] for v in model.value_vars if v in inputs and v not in value_vars},
            model=model,
            initial_point=initial_point,
            ravel_inputs=True,
            **(compile_kwargs or {}),
        )
        log_density.trust_input = True
        super().__init__(value_vars, model=model, initial_point=initial_point, logp_dlogp_func=log_density, **options)

    def astep(self, q0):
        """Return a draw and its statistics."""
        q, stats = super().astep(q0)
        for entry in stats:
            entry.pop("model_logp", None)
        return q, stats

    @staticmethod
    def competence(var, has_grad):
        """Claim the variables of which a block's concentrations are made, and no others."""
        return Competence.IDEAL if has_grad and getattr(var.tag, TAG, False) else Competence.INCOMPATIBLE
