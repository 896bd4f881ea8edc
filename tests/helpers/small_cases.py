"""Two simulated cases on 8 x 8 coarse cells, small enough for every method."""

from __future__ import annotations

import functools

from latentpde.observation import Observation
from latentpde.simulation import simulate

KINDS = ("lowres-solve", "pooled", "point")


@functools.cache
def cases(regime="balanced", observed="lowres-solve", times=None, num=2, extent=(1.0, 1.0), shape=(32, 32)):
    options = {"observed": observed, "times": times, "shape": shape, "extent": extent}
    return simulate(regime, num=num, seed=3, pooling=4, num_modes=2, sparsity=0.3, **options)


def observation(**options):
    return Observation.from_dataset(cases(**options))
