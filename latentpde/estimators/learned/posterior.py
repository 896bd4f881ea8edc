"""The posterior of a learned method, which says where a case is unlike those that the networks were trained on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.base import Estimator
from latentpde.latent import Latent
from latentpde.nn import Units
from latentpde.nn.weights import Manifest, Trained
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.posterior import LatentPosterior


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LearnedPosterior(LatentPosterior):
    """Draws of latents that networks proposed.

    Args:
        training_mismatch: in what the observation differs from what the networks were trained on, as sentences; the
            same for all cases, and among what `warnings` returns.
    """

    training_mismatch: list[str] = field(default_factory=list)

    def warnings(self, case: int) -> list[str]:
        return [*self.training_mismatch, *super().warnings(case)]


def learned_posterior(
    method: Estimator,
    operator: ObservationOperator,
    z: Float[Tensor, "case draw latent"],
    trained: Trained,
    *,
    seed: int,
    diagnostics: dict[str, Any],
) -> LearnedPosterior:
    """A posterior of given draws.

    Args:
        method: the method that made them, whose options are recorded.
        operator: the readings that they were made for.
        z: the draws, as raw latents.
        trained: the network whose training the observation is compared with.
        seed: that the draws were made with.
        diagnostics: what the method has to tell; each case's masked residual, mean over draws, is added.
    """
    observation = operator.observation
    with torch.no_grad():
        residual = operator.residual(z).mean(1).numpy()
    return LearnedPosterior(
        observation=observation,
        method=method.name,
        settings=method.settings(seed),
        diagnostics={"residual": residual, **diagnostics},
        decoder=operator.decoder,
        z=z,
        initial_hat=observation.initial_spectrum()[:, None],
        training_mismatch=training_mismatch(trained.manifest, observation, operator.decoder.latent),
    )


def training_mismatch(manifest: Manifest, observation: Observation, latent: Latent) -> list[str]:
    """In what an observation differs from all that a network was trained on, as sentences; empty where in nothing.

    Args:
        manifest: of the network's weights; it says what the network was trained on.
        observation: readings to be compared: grid, times and noise.
        latent: prior to be compared: Fourier modes and strength of the source, bounds of the coefficients.
    """
    trained, found = manifest.conditions, []
    if list(observation.grid.shape) != trained["grid"]:
        found.append(f"networks were trained on {trained['grid']} cells, this has {list(observation.grid.shape)}")
    if latent.family.order and not _close(observation.times.tolist(), trained["times"]):
        found.append(f"networks were trained at times {trained['times']}, this is at {observation.times.tolist()}")
    noise = float(observation.noise_std[observation.mask].median())
    if not 0.5 < noise / trained["noise_std"] < 2:
        found.append(f"networks were trained with noise {trained['noise_std']:g}, this has {noise:g}")
    if latent.num_modes not in (0, manifest.num_modes):
        found.append(f"networks were trained with {manifest.num_modes} source modes, this has {latent.num_modes}")
    prior = Units(latent, manifest.num_modes).prior
    if not any(_close(prior.tolist(), known, 0.05) for known in trained["prior"]) and latent.num_modes:
        found.append(
            "networks were trained on other bounds and strengths of the source, those of the regimes "
            + ", ".join(trained["regimes"])
        )
    return found


def _close(a: list[float], b: list[float], tolerance: float = 1e-6) -> bool:
    return len(a) == len(b) and np.allclose(a, b, rtol=tolerance, atol=tolerance)
