"""LatentPDE-MAP and LatentPDE-Enc: a warm start, guided reverse diffusion, refinement.

After Tsao, Chaney and Veveakis, *Learning Interpretable PDE Representations for Generative Reconstructions with
Structured Sparsity*. A denoiser has learnt latents of one kind (`target`): MAP estimates, the encoder's, or the
simulator's own. The chain starts from a MAP or an encoder estimate with noise added, a little more for each member
than for the one after, and goes back with the physics at hand (`latentpde.diffusion`). With the simulator's latents
and ``start=noise``, no guidance and no refinement, the chain samples what the network takes for the posterior.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.diffusion import Guidance, ReverseChain
from latentpde.errors import UsageError
from latentpde.estimators.base import Estimator, decoder_for
from latentpde.estimators.learned.posterior import LearnedPosterior, encode, posterior
from latentpde.estimators.learned.refinement import Refinement
from latentpde.estimators.map import Map
from latentpde.estimators.seeds import case_seeds
from latentpde.latent import Latent
from latentpde.nn import Conditions, Denoiser
from latentpde.nn.weights import SHIPPED, Trained, load_weights
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.progress import Advance, progress

CASES_AT_ONCE = 64
Target = Literal["map", "enc", "true"]
Start = Literal["warm", "noise"]


@dataclass(frozen=True, kw_only=True)
class LatentDiffusion(Estimator):
    """What both branches share.

    Args:
        target: kind of latents that the denoiser has learnt: ``true``, the simulator's own, or as in the paper ``map``
            in the MAP branch and ``enc`` in the encoder branch.
        start: ``warm``, or ``noise`` for the whole chain.
        sigma_min, sigma_max: noise added to the warm start; members are spread evenly between.
        clean_clip: largest predicted clean latent, in standard deviations of the target, where the chain starts from
            noise: there a small error of the network is a large one of the prediction.
        num_steps: reverse steps, from the noisiest member's start; 0 takes every step of the schedule.
        stochasticity: 1 for DDPM, 0 for DDIM.
        condition_scale: of classifier-free guidance; 1 is the conditional network alone, 0 the unconditional.
        guidance_scale, guidance_rate, guidance_steps, guidance_clip, guidance_below, guidance_guard: physics guidance,
            as `latentpde.diffusion.Guidance` has them; a scale of 0 turns it off.
        refinement_steps, refinement_weight, refinement_rate: `latentpde.diffusion.Refinement`; 0 steps turn it off, and
            so does a weight of 0, as in the paper.
        weights: folder of trained networks; ``shipped`` for those that come with the package.
    """

    target: str = "true"
    start: str = "warm"
    sigma_min: float = 0.3
    sigma_max: float = 0.6
    clean_clip: float = 6.0
    num_steps: int = 0
    stochasticity: float = 1.0
    condition_scale: float = 1.0
    guidance_scale: float = 80.0
    guidance_rate: float = 0.10
    guidance_steps: int = 3
    guidance_clip: float = 5.0
    guidance_below: float = 0.8
    guidance_guard: bool = True
    refinement_steps: int = 20
    refinement_weight: float = 0.01
    refinement_rate: float = 0.02
    weights: str | Path = SHIPPED

    def __post_init__(self):
        for what, value, known in (("target", self.target, Target), ("start", self.start, Start)):
            if value not in get_args(known):
                raise UsageError(f"{what} must be one of {', '.join(get_args(known))}; got {value!r}")
        if not 0 < self.sigma_min <= self.sigma_max < 1:
            raise UsageError(
                f"{self.name} needs 0 < sigma_min <= sigma_max < 1, got {self.sigma_min} and {self.sigma_max}"
            )
        if not (0 <= self.condition_scale < math.inf and self.clean_clip > 0):
            raise UsageError(
                f"{self.name} needs a finite condition_scale that is not negative, and a positive clean_clip; "
                f"got {self.condition_scale} and {self.clean_clip}"
            )
        object.__setattr__(self, "weights", str(self.weights))  # settings are recorded as JSON
        _ = self.chain, self.guidance, self.refinement  # refuse what they cannot do

    @property
    def chain(self) -> ReverseChain:
        return ReverseChain(num_steps=self.num_steps, stochasticity=self.stochasticity)

    @property
    def guidance(self) -> Guidance:
        return Guidance(
            scale=self.guidance_scale,
            rate=self.guidance_rate,
            num_steps=self.guidance_steps,
            clip=self.guidance_clip,
            below=self.guidance_below,
            guard=self.guidance_guard,
        )

    @property
    def refinement(self) -> Refinement:
        return Refinement(num_steps=self.refinement_steps, weight=self.refinement_weight, rate=self.refinement_rate)

    @abstractmethod
    def warm_start(
        self, observation: Observation, latent: Latent, *, seed: int, show_progress: bool
    ) -> tuple[Float[Tensor, "case latent"], int]:
        """One estimate per case, and the number of parameters of the network behind it, if any."""

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> LearnedPosterior:
        observation.require_initial()
        denoiser = load_weights(f"denoiser_{self.target}", latent.family, self.weights)
        decoder = decoder_for(observation, latent)
        operator = ObservationOperator(observation, decoder)
        if self.start == "warm":
            warm, size = self.warm_start(observation, latent, seed=seed, show_progress=show_progress)
        else:
            size, warm = 0, torch.zeros((len(observation), latent.size), dtype=torch.float64)
        starts = self._starts(denoiser, num_draws)
        draws, chunks = [], range(0, len(observation), CASES_AT_ONCE)
        total = len(chunks) * len(self.chain.path(starts[0])[:-1])
        with progress(self.name, total, show=show_progress) as advance, torch.no_grad():
            for first in chunks:
                part = slice(first, first + CASES_AT_ONCE)
                draws.append(self.sample(denoiser, observation[part], latent, warm[part], starts, seed, advance))
        diagnostics: dict[str, Any] = {"num_parameters": denoiser.num_parameters + size}
        if self.start == "warm":
            diagnostics["start_residual"] = operator.residual(warm[:, None])[:, 0].numpy()
        return posterior(
            self.name,
            self.settings(seed),
            observation,
            decoder,
            torch.cat(draws),
            operator.residual,
            denoiser,
            diagnostics,
        )

    def sample(
        self,
        denoiser: Trained,
        observation: Observation,
        latent: Latent,
        warm: Float[Tensor, "case latent"],
        starts: list[int],
        seed: int,
        advance: Advance = lambda count: None,
    ) -> Float[Tensor, "case draw latent"]:
        """All members of some cases, in one batch."""
        network, units = denoiser.network, denoiser.units(latent)
        statistics, schedule = denoiser.statistics, denoiser.schedule
        assert isinstance(network, Denoiser)
        operator, guidance = ObservationOperator(observation, decoder_for(observation, latent)), self.guidance
        embedding = network.embed(Conditions.of(observation, units, network.case.num_probes))
        nothing, scale = torch.zeros_like(embedding), self.condition_scale

        def predict(noisy: Tensor, step: int) -> Tensor:
            single, when = noisy.float(), torch.tensor([[step]])
            known = network.denoise(single, when, embedding) if scale else 0.0
            if scale == 1:
                return torch.as_tensor(known).double()
            return (scale * known + (1 - scale) * network.denoise(single, when, nothing)).double()

        sizes = guidance.first_sizes(len(observation), len(starts))

        def correct(clean: Tensor, step: int) -> Tensor:
            if self.start == "noise":
                clean = clean.clamp(-self.clean_clip, self.clean_clip)
            if not guidance.active(step, schedule.num_steps):
                return clean
            w = statistics.denormalise(clean)
            z = units.to_latent(w)
            active = slice(clean.shape[1])
            moved, sizes[:, active] = guidance(z, operator, sizes[:, active])
            # what the network has and the latent has not, such as finer source, stays
            return statistics.normalise(w + units.from_latent(moved - z))

        # each case has randomness of its own, so that it comes out the same in any batch
        generators = [np.random.default_rng(own) for own in case_seeds(observation, seed)]

        def normals(num: int) -> Tensor:
            drawn = [rng.standard_normal((num, units.size), dtype=np.float32) for rng in generators]
            return torch.from_numpy(np.stack(drawn)).double()

        clean = (
            statistics.normalise(units.from_latent(warm))[:, None]
            if self.start == "warm"
            else warm.new_zeros((len(warm), 1, units.size))
        )
        w = self.chain.run(schedule, clean, starts, predict=predict, correct=correct, normals=normals, advance=advance)
        z = units.to_latent(statistics.denormalise(w))
        return self.refinement(z, operator) if self.refinement_weight else z

    def _starts(self, denoiser: Trained, num: int) -> list[int]:
        schedule = denoiser.schedule
        if self.start == "noise":
            return [schedule.num_steps - 1] * num
        sigmas = torch.linspace(self.sigma_max, self.sigma_min, num, dtype=torch.float64).tolist()
        return [schedule.step_of(sigma) for sigma in sigmas]


@dataclass(frozen=True, kw_only=True)
class MapDiffusion(LatentDiffusion):
    """The paper's MAP branch.

    Args:
        map_steps, map_restarts: of the warm start.
    """

    name = "map_diffusion"
    summary = "LatentPDE-MAP: a latent diffusion model started from map, guided by the physics"

    map_steps: int = 300
    map_restarts: int = 3

    def __post_init__(self):
        super().__post_init__()
        _ = self.map

    @property
    def map(self) -> Map:
        return Map(num_steps=self.map_steps, num_restarts=self.map_restarts)

    def warm_start(
        self, observation: Observation, latent: Latent, *, seed: int, show_progress: bool
    ) -> tuple[Float[Tensor, "case latent"], int]:
        found = self.map.estimate(observation, latent, num_draws=1, seed=seed, show_progress=show_progress)
        return found.z[:, 0], 0


@dataclass(frozen=True, kw_only=True)
class EncDiffusion(LatentDiffusion):
    """The paper's encoder branch."""

    name = "enc_diffusion"
    summary = "LatentPDE-Enc: a latent diffusion model started from enc, guided by the physics"

    def warm_start(
        self, observation: Observation, latent: Latent, *, seed: int, show_progress: bool
    ) -> tuple[Float[Tensor, "case latent"], int]:
        encoder = load_weights("encoder", latent.family, self.weights)
        return encode(encoder, observation, latent), encoder.num_parameters
