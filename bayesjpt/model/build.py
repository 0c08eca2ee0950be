"""A PyMC model that holds one block and nothing else."""

from __future__ import annotations

from typing import Any

import pymc as pm

from bayesjpt.circuit.arrays import Circuit
from bayesjpt.circuit.type_prior import MEMBERS
from bayesjpt.defaults import ALPHA, ESS, GAMMA
from bayesjpt.kernels.samplers import BLOCKED
from bayesjpt.model.block import CircuitMixture
from bayesjpt.model.groups import KAPPA
from bayesjpt.table.table import Table


def build_model(
    circuit: Circuit,
    data: Table,
    *,
    name: str = "x",
    gamma: Any = GAMMA,
    alpha: Any = ALPHA,
    prior: str = "default",
    type_prior: str = MEMBERS,
    sampler: str = BLOCKED,
    ess: Any = ESS,
    transforms: bool = False,
    impute: bool = False,
    group: Any = None,
    kappa: Any = KAPPA,
) -> pm.Model:
    """Return a PyMC model of the circuit, ready for ``pm.sample()``; see `CircuitMixture` for the arguments.

    Examples
    --------
    >>> import numpy as np, pandas as pd, bayesjpt as bj
    >>> table = bj.as_table(pd.DataFrame({"height": np.random.default_rng(1).normal(size=50)}))
    >>> bj.build_model(bj.learn_mspn(table, np.random.default_rng(2)), table).observed_RVs[0].name
    'x'
    """
    with pm.Model() as model:
        CircuitMixture(
            name,
            circuit,
            data,
            gamma=gamma,
            alpha=alpha,
            prior=prior,
            type_prior=type_prior,
            sampler=sampler,
            ess=ess,
            transforms=transforms,
            impute=impute,
            group=group,
            kappa=kappa,
        )
    return model
