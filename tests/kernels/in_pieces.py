"""The slow twin of `bayesjpt.kernels.redraw.redraw`: each part of a sweep by a call of its own, in the order it has."""

from __future__ import annotations

import numpy as np

from bayesjpt.kernels.gibbs import count_active, draw_params_now
from bayesjpt.kernels.redraw import Given
from bayesjpt.kernels.scales import apply_scales, draw_scales, draw_scales_given_statistics, draw_without_rows
from bayesjpt.kernels.swaps import swap_rows
from bayesjpt.kernels.type_prior import draw_type_prior


def redraw_in_pieces(
    given: Given, concentration, log_weight, theta, behind, rng: np.random.Generator, exchange=swap_rows
) -> tuple[int, int, int]:
    """Do what `redraw` does; `exchange` stands for the exchange of rows, so that a test may plant an error there."""
    plan, scales, types, hyper_at = given.plan, given.scales, given.types, given.hyper_at
    weight, tau = np.split(behind, [types.n_weight])
    if types.n_weight:
        concentration = concentration.copy()
        draw_type_prior(types, given.edge_count, weight, concentration, rng)
    apply_scales(scales, given.base, hyper_at, tau, given.hyper)
    exchange(plan, given.swaps, given.stats, given.edge_count, concentration, given.hyper, hyper_at, theta, rng)
    n_active = count_active(plan, given.edge_count)
    if scales.from_statistics.any():
        assert draw_scales_given_statistics(plan, scales, given.stats, given.base, hyper_at, tau, rng) == -1
        apply_scales(scales, given.base, hyper_at, tau, given.hyper)
    node = draw_params_now(
        plan, given.cells, given.work, given.stats, given.edge_count, concentration, given.hyper, hyper_at,
        log_weight, theta, given.deferred, rng,
    )  # fmt: skip
    assert node == -1
    if not scales.from_statistics.all():
        of_rows = (plan, scales, given.work, given.stats)
        assert draw_scales(*of_rows, given.base, hyper_at, theta, tau, rng) == -1
        apply_scales(scales, given.base, hyper_at, tau, given.hyper)
        assert draw_without_rows(*of_rows, given.hyper, hyper_at, theta, rng) == -1
    return -1, -1, n_active
