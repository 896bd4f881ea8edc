"""Every method, with options that make it quick."""

from __future__ import annotations

import pytest
from tiny_weights import tiny_weights

from latentpde.estimators import methods, reconstruct

# Options that make a method fast enough to run often; one without an entry runs with its defaults.
QUICK_MAP = {"num_steps": 12, "num_restarts": 2}
QUICK = {
    "pinn": {"num_steps": 3, "num_collocation": 16, "num_initial": 16},
    "map": QUICK_MAP,
    "3dvar": {"background_options": QUICK_MAP},
    "enkf": {"background_options": QUICK_MAP},
    "enc": {"weights": tiny_weights()},
    "map_diffusion": {"weights": tiny_weights(), "map_steps": 12, "map_restarts": 2},
    "enc_diffusion": {"weights": tiny_weights()},
    "fundps": {"weights": tiny_weights(), "num_steps": 4},
}
SEEDLESS = ("enc",)  # one pass of a network: there is no randomness to follow
every_method = pytest.mark.parametrize("method", methods.names())


def run(method, data, **options):
    options = {"num_draws": 3, "seed": 1, "num_modes": 2, **QUICK.get(method, {}), **options}
    return reconstruct(data, method=method, **options)
