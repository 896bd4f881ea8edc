"""Weights for tests: networks of a few hundred parameters per layer, with random values, for every family."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

import torch

from latentpde import __version__
from latentpde.diffusion import Schedule
from latentpde.latent import Latent
from latentpde.nn import NetworkSize, Units
from latentpde.nn.neural_operator import OperatorSize
from latentpde.nn.weights import FORMAT, FUNDPS, Manifest, build, build_fields, save_weights
from latentpde.pde import families
from latentpde.training.config import STAGES

NUM_MODES = 2
SIZE = NetworkSize(
    channels=(4, 4, 8),
    state_channels=(4, 4, 4),
    pool=2,
    groups=2,
    num_probes=5,
    observation_width=8,
    state_width=4,
    probe_width=4,
    step_width=4,
    encoder_width=12,
    encoder_layers=3,
    denoiser_width=16,
    denoiser_blocks=2,
)

OPERATOR_SIZE = OperatorSize(
    widths=(4, 8), modes=(4, 3), inner_sides=(8,), blocks=1, attention=(1,), groups=2, level_width=4
)


def make_manifest(family, role, num_modes=NUM_MODES, size=SIZE, **changes) -> Manifest:
    units = Units(Latent(family, num_modes=num_modes), num_modes)
    if role == FUNDPS:
        fields = {"size": asdict(OPERATOR_SIZE), "mean": [0.1, 0.0, -0.1], "std": [1.0, 0.5, 0.4]}
        power = [[0.1 / (1 + n) ** 3 for n in range(17)]] * 3
        changes = {**fields, "power": power, "schedule": {"sigma_data": 1.0, "noise_length": 0.05}, **changes}
    denoising = role != "encoder"
    fields = {
        "format": FORMAT,
        "family": family.name,
        "coefficients": list(family.coefficient_names),
        "role": role,
        "size": asdict(size),
        "num_modes": num_modes,
        "mean": [0.1] * units.size if denoising else None,
        "std": [0.5] * units.size if denoising else None,
        "schedule": asdict(Schedule(num_steps=20, beta_start=1e-3, beta_end=0.3)) if denoising else None,
        "training": {},
        "conditions": {
            "grid": [8, 8],
            "times": [family.default_time],
            "noise_std": 0.15,
            "regimes": ["some"],
            "prior": [units.prior.tolist()],
        },
        "latentpde": __version__,
    }
    return Manifest(**{**fields, **changes})


def write_tiny(folder: Path, family, role, **changes) -> Path:
    """A network of random values, the layers that begin at zero included."""
    units = Units(Latent(family), NUM_MODES)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(STAGES.index(role))
        if role == FUNDPS:
            state = build_fields(OPERATOR_SIZE, 1.0).state_dict()
        else:
            state = build(role, SIZE, units.size, units.num_prior).state_dict()
        state = {name: value if value.any() else 0.2 * torch.randn_like(value) for name, value in state.items()}
    return save_weights(folder, state, make_manifest(family, role, **changes))


@functools.cache
def tiny_weights() -> str:
    """A folder with every role for every family, gone when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="latentpde-weights-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for family in families:
        for role in STAGES:
            write_tiny(folder, family, role)
    return str(folder)
