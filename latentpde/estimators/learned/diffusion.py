"""`map-diffusion` and `enc-diffusion`, the paper's LatentPDE-MAP and LatentPDE-Enc.

After Tsao, Chaney and Veveakis, *Learning Interpretable PDE Representations for Generative Reconstructions with
Structured Sparsity*. Each works in three stages:

1. a warm start: one latent per case, from `map` or from the encoder network of `enc`;
2. a guided reverse chain (`latentpde.estimators.learned.chain`): noise is added to the warm start, a little less for
   each draw than for the one before, and a denoiser takes it off again while the readings guide it;
3. refinement (`latentpde.estimators.learned.refinement`): a few steps of Adam on each draw.

A denoiser has learnt latents of one kind, its `target`: MAP estimates, the encoder's, or the simulator's own. With the
simulator's, ``start="noise"``, no guidance and no refinement, the chain samples what the network takes for the
posterior.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.diffusion import Guidance, ReverseChain, Schedule
from latentpde.diffusion.guidance import Space
from latentpde.errors import UsageError
from latentpde.estimators.base import Estimator, decoder_for
from latentpde.estimators.learned.chain import GuidedChain
from latentpde.estimators.learned.enc import encode
from latentpde.estimators.learned.posterior import LearnedPosterior, learned_posterior
from latentpde.estimators.learned.refinement import Refinement
from latentpde.estimators.map import Map
from latentpde.latent import Latent
from latentpde.nn.weights import SHIPPED, Trained, load_weights
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.progress import Advance, progress
from latentpde.validation import Count, CountOrNone, NotNegative, Positive, Share, ShareInside

CASES_AT_ONCE = 64
Target = Literal["map", "enc", "true"]
Start = Literal["warm", "noise"]


@dataclass(frozen=True, kw_only=True)
class LatentDiffusion(Estimator):
    """A warm start, a guided reverse chain, refinement: what both methods share.

    Args:
        target: kind of latents that the denoiser has learnt: ``true``, the simulator's own, or as in the paper ``map``
            for `map-diffusion` and ``enc`` for `enc-diffusion`.
        start: ``warm``, or ``noise`` to run the whole chain from pure noise.
        sigma_min, sigma_max: standard deviation of the noise in the normalised warm start, between 0 and 1; draws are
            spread evenly between the two.
        clean_clip: where the chain starts from noise, the largest predicted clean latent in standard deviations of the
            target; there a small error of the network is a large one of the prediction.
        num_steps: reverse steps, from the noisiest draw's start; 0 takes every step of the noise schedule.
        stochasticity: 1 for DDPM, 0 for the deterministic DDIM.
        condition_scale: scale of classifier-free guidance; 1 is the conditional network alone, 0 the unconditional.
        guidance_scale, guidance_rate, guidance_steps, guidance_clip, guidance_below, guidance_guard, guidance_space:
            ``scale``, ``rate``, ``num_steps``, ``clip``, ``below``, ``guard`` and ``space`` of
            `latentpde.diffusion.Guidance`; a scale of 0 turns guidance off.
        refinement_steps, refinement_weight, refinement_rate: ``num_steps``, ``weight`` and ``rate`` of
            `latentpde.estimators.learned.refinement.Refinement`; 0 steps turn it off, and so does a weight of 0, as in
            the paper.
        weights: folder of trained networks; ``shipped`` for those that come with the package.
    """

    target: Target = "true"
    start: Start = "warm"
    sigma_min: ShareInside = 0.3
    sigma_max: ShareInside = 0.6
    clean_clip: Positive = 6.0
    num_steps: CountOrNone = ReverseChain.num_steps
    stochasticity: Share = ReverseChain.stochasticity
    condition_scale: NotNegative = 1.0
    guidance_scale: NotNegative = Guidance.scale
    guidance_rate: NotNegative = Guidance.rate
    guidance_steps: CountOrNone = Guidance.num_steps
    guidance_clip: Positive = Guidance.clip
    guidance_below: Share = Guidance.below
    guidance_guard: bool = Guidance.guard
    guidance_space: Space = Guidance.space
    refinement_steps: CountOrNone = Refinement.num_steps
    refinement_weight: NotNegative = Refinement.weight
    refinement_rate: Positive = Refinement.rate
    weights: str | Path = SHIPPED

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma_min > self.sigma_max:
            raise UsageError(f"{self.name} needs sigma_min <= sigma_max, got {self.sigma_min} and {self.sigma_max}")
        object.__setattr__(self, "weights", str(self.weights))  # settings are recorded as JSON

    @property
    def reverse(self) -> ReverseChain:
        """The options of the reverse chain."""
        return ReverseChain(num_steps=self.num_steps, stochasticity=self.stochasticity)

    @property
    def guidance(self) -> Guidance:
        """The options of guidance."""
        return Guidance(
            scale=self.guidance_scale,
            rate=self.guidance_rate,
            num_steps=self.guidance_steps,
            clip=self.guidance_clip,
            below=self.guidance_below,
            guard=self.guidance_guard,
            space=self.guidance_space,
        )

    @property
    def refinement(self) -> Refinement:
        """The options of refinement."""
        return Refinement(num_steps=self.refinement_steps, weight=self.refinement_weight, rate=self.refinement_rate)

    @abstractmethod
    def warm_start(
        self, observation: Observation, latent: Latent, *, seed: int, show_progress: bool
    ) -> tuple[Float[Tensor, "case latent"], int]:
        """One raw latent per case, and the number of parameters of the network that found it, 0 without one."""

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> LearnedPosterior:
        """Condition the prior on the readings, as `Estimator.estimate` says.

        Diagnostics are ``residual``, the masked residual of each case, mean over draws; ``start_residual``, that of
        the warm start; and ``num_parameters`` of all networks used.
        """
        observation.require_initial()
        denoiser = load_weights(f"denoiser_{self.target}", latent.family, self.weights)
        operator = ObservationOperator(observation, decoder_for(observation, latent))
        diagnostics: dict[str, Any] = {"num_parameters": denoiser.num_parameters}
        warm = None
        if self.start == "warm":
            warm, num_parameters = self.warm_start(observation, latent, seed=seed, show_progress=show_progress)
            diagnostics["num_parameters"] += num_parameters
            with torch.no_grad():
                diagnostics["start_residual"] = operator.residual(warm[:, None])[:, 0].numpy()
        starts = self.start_steps(denoiser.schedule, num_draws)
        draws, firsts = [], range(0, len(observation), CASES_AT_ONCE)
        num_steps = len(firsts) * (len(self.reverse.path(starts[0])) - 1)
        with progress(self.name, num_steps, show=show_progress) as advance:
            for first in firsts:
                part = slice(first, first + CASES_AT_ONCE)
                some = None if warm is None else warm[part]
                draws.append(self.sample(denoiser, observation[part], latent, some, starts, seed=seed, advance=advance))
        return learned_posterior(self, operator, torch.cat(draws), denoiser, seed=seed, diagnostics=diagnostics)

    def sample(
        self,
        denoiser: Trained,
        observation: Observation,
        latent: Latent,
        warm: Float[Tensor, "case latent"] | None,
        starts: list[int],
        *,
        seed: int,
        advance: Advance = lambda count: None,
    ) -> Float[Tensor, "case draw latent"]:
        """Chain and refinement for all draws of some cases, in one batch.

        Args:
            denoiser: the trained network.
            observation: readings of the cases.
            latent: layout and prior of the raw latents.
            warm: raw latents to start from, or None for pure noise.
            starts: the step of the noise schedule that each draw starts at, from `start_steps`.
            seed: seed of all random numbers.
            advance: called with 1 after each step of the chain.
        """
        operator = ObservationOperator(observation, decoder_for(observation, latent))
        chain = GuidedChain(
            denoiser=denoiser,
            operator=operator,
            starts=starts,
            reverse=self.reverse,
            guidance=self.guidance,
            condition_scale=self.condition_scale,
            clean_clip=self.clean_clip if warm is None else math.inf,
            seed=seed,
        )
        z = chain.sample(warm, advance)
        return self.refinement(z, operator) if self.refinement_weight else z

    def start_steps(self, schedule: Schedule, num_draws: int) -> list[int]:
        """The step of the noise schedule that each draw starts at, the noisiest first."""
        if self.start == "noise":
            return [schedule.num_steps - 1] * num_draws
        sigmas = torch.linspace(self.sigma_max, self.sigma_min, num_draws, dtype=torch.float64).tolist()
        return [schedule.step_of(sigma) for sigma in sigmas]


@dataclass(frozen=True, kw_only=True)
class MapDiffusion(LatentDiffusion):
    """Latent diffusion with a MAP estimate as its warm start: the paper's LatentPDE-MAP.

    Args:
        map_steps, map_restarts: ``num_steps`` and ``num_restarts`` of `latentpde.estimators.map.Map`.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("helmholtz", num=1, seed=0, shape=(32, 32))
        >>> posterior = lp.reconstruct(cases, method="map-diffusion", num_draws=3, num_steps=5, map_steps=20)
        >>> posterior.draws(resolution=32).shape
        (1, 3, 32, 32)
    """

    name = "map_diffusion"
    summary = "LatentPDE-MAP: a latent diffusion model started from map, guided by the physics"

    map_steps: Count = Map.num_steps
    map_restarts: Count = Map.num_restarts

    def __post_init__(self):
        super().__post_init__()
        _ = self.map  # refuses what it cannot do

    @property
    def map(self) -> Map:
        """The method of the warm start."""
        return Map(num_steps=self.map_steps, num_restarts=self.map_restarts)

    def warm_start(
        self, observation: Observation, latent: Latent, *, seed: int, show_progress: bool
    ) -> tuple[Float[Tensor, "case latent"], int]:
        found = self.map.estimate(observation, latent, num_draws=1, seed=seed, show_progress=show_progress)
        return found.z[:, 0], 0


@dataclass(frozen=True, kw_only=True)
class EncDiffusion(LatentDiffusion):
    """Latent diffusion with the encoder's latent as its warm start: the paper's LatentPDE-Enc.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("helmholtz", num=1, seed=0, shape=(32, 32))
        >>> posterior = lp.reconstruct(cases, method="enc-diffusion", num_draws=3, num_steps=5)
        >>> posterior.coefficients.shape
        (1, 3, 3)
        >>> sorted(posterior.diagnostics)
        ['misfit', 'num_parameters', 'residual', 'start_residual']
    """

    name = "enc_diffusion"
    summary = "LatentPDE-Enc: a latent diffusion model started from enc, guided by the physics"

    def warm_start(
        self, observation: Observation, latent: Latent, *, seed: int, show_progress: bool
    ) -> tuple[Float[Tensor, "case latent"], int]:
        encoder = load_weights("encoder", latent.family, self.weights)
        return encode(encoder, observation, latent), encoder.num_parameters
