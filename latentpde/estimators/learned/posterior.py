"""What the learned methods share: how a posterior of theirs is made, and what to know before trusting it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.latent import Latent
from latentpde.nn import Conditions, InferenceEncoder, Units
from latentpde.nn.weights import Manifest, Trained
from latentpde.observation import Observation
from latentpde.posterior import LatentPosterior


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedPosterior(LatentPosterior):
    """A latent posterior that says how far a case is from what the networks were trained on."""

    strangeness: list[str] = field(default_factory=list)

    def warnings(self, case: int) -> list[str]:
        return self.strangeness


def encode(encoder: Trained, observation: Observation, latent: Latent) -> Float[Tensor, "case latent"]:
    """The encoder's latents."""
    network, units = encoder.network, encoder.units(latent)
    assert isinstance(network, InferenceEncoder)
    with torch.no_grad():
        return units.to_latent(network(Conditions.of(observation, units, network.case.num_probes)).double())


def strangeness(manifest: Manifest, observation: Observation, latent: Latent) -> list[str]:
    """In what the observation differs from everything that a network was trained on, as sentences."""
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


def posterior(
    method: str,
    settings: dict[str, Any],
    observation: Observation,
    decoder: Decoder,
    z: Float[Tensor, "case draw latent"],
    residual: Callable[[Tensor], Tensor],
    trained: Trained,
    diagnostics: dict[str, Any],
) -> LearnedPosterior:
    """Draws, with what they leave of the readings."""
    initial_hat = observation.initial_spectrum()[:, None]
    with torch.no_grad():
        left = residual(z).mean(1).numpy()
    return LearnedPosterior(
        observation=observation,
        method=method,
        settings=settings,
        diagnostics={"residual": left, **diagnostics},
        decoder=decoder,
        z=z,
        initial_hat=lambda cases: initial_hat[cases],
        strangeness=strangeness(trained.manifest, observation, decoder.latent),
    )


def _close(a: list[float], b: list[float], tolerance: float = 1e-6) -> bool:
    return len(a) == len(b) and np.allclose(a, b, rtol=tolerance, atol=tolerance)
