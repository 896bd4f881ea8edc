"""The guided reverse chain of some cases: a trained denoiser goes back from noise while the readings guide it.

Three kinds of coordinates meet here. The network works with normalised ones, mean 0 and standard deviation 1 over the
latents that it was trained on; before that normalisation they are in units of the prior, ``w``
(`latentpde.nn.units`); physics works with the raw latent ``z`` (`latentpde.latent`). The chain itself
(`latentpde.diffusion.sampler`) runs in the normalised ones; guidance acts on the raw latent or, as in the paper, where
the chain runs (``guidance.space``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.diffusion import Guidance, ReverseChain
from latentpde.diffusion.guidance import Coordinates
from latentpde.estimators.seeds import case_seeds
from latentpde.nn import Conditions, Denoiser
from latentpde.nn.weights import Trained
from latentpde.operator import ObservationOperator
from latentpde.progress import Advance


@dataclass(eq=False, kw_only=True)
class GuidedChain:
    """A reverse chain for all draws of some cases, in one batch. It keeps what passes from step to step, its random
    generators and the step sizes of guidance, so one object runs one chain.

    Args:
        denoiser: the trained network, with its noise schedule and normalisation.
        operator: the readings of the cases.
        starts: the step of the noise schedule that each draw starts at, the noisiest first.
        reverse: which steps the chain visits, and how random they are.
        guidance: the gradient steps that predicted clean latents take towards the readings.
        condition_scale: weight of the conditional prediction in classifier-free guidance, not negative: 1 is the
            conditional network alone, 0 the unconditional one.
        clean_clip: largest absolute value of a predicted clean latent, normalised; positive.
        seed: seed of all random numbers; each case has a stream of its own.

    Example:
        >>> import latentpde as lp
        >>> from latentpde.nn.weights import load_weights
        >>> observation = lp.Observation.from_dataset(lp.simulate("helmholtz", num=2, seed=0, shape=(32, 32)))
        >>> latent = lp.Latent(lp.pde.get_family("helmholtz"))
        >>> chain = GuidedChain(
        ...     denoiser=load_weights("denoiser_true", latent.family),
        ...     operator=ObservationOperator(observation, lp.Decoder(latent)),
        ...     starts=[100, 50, 0],
        ...     reverse=ReverseChain(num_steps=4),
        ...     guidance=Guidance(),
        ...     seed=0,
        ... )
        >>> z = chain.sample(torch.zeros(2, latent.size, dtype=torch.float64))
        >>> tuple(z.shape) == (2, 3, latent.size)
        True
    """

    denoiser: Trained
    operator: ObservationOperator
    starts: list[int]
    reverse: ReverseChain
    guidance: Guidance
    condition_scale: float = 1.0
    clean_clip: float = math.inf
    seed: int

    def __post_init__(self):
        observation, network = self.operator.observation, self.denoiser.network
        assert isinstance(network, Denoiser)
        self.network, self.schedule, self.statistics = network, self.denoiser.schedule, self.denoiser.statistics
        self.units = self.denoiser.units(self.operator.decoder.latent)
        with torch.no_grad():
            self._embedding = network.embed(Conditions.of(observation, self.units, network.case.num_probes))
        self._sizes = self.guidance.first_sizes(len(observation), len(self.starts))
        self._generators = [np.random.default_rng(own) for own in case_seeds(observation, self.seed)]

    @torch.no_grad()
    def sample(
        self, warm: Float[Tensor, "case latent"] | None, advance: Advance = lambda count: None
    ) -> Float[Tensor, "case draw latent"]:
        """Run the chain; returns raw latents.

        Args:
            warm: the raw latent that all draws of a case start from, after noise is added; None for the mean of the
                latents that the network was trained on.
            advance: called with 1 after each step.
        """
        if warm is None:
            clean = torch.zeros((len(self._generators), 1, self.units.size), dtype=torch.float64)
        else:
            clean = self.statistics.normalise(self.units.from_latent(warm))[:, None]
        end = self.reverse.run(
            self.schedule,
            clean,
            self.starts,
            predict=self.predict_noise,
            correct=self.guide,
            normals=self.normals,
            advance=advance,
        )
        return self.units.to_latent(self.statistics.denormalise(end))

    def predict_noise(self, noisy: Float[Tensor, "case draw unit"], step: int) -> Float[Tensor, "case draw unit"]:
        """The noise in normalised latents by classifier-free guidance (Ho and Salimans, 2022): a weighted sum of what
        the network says with and without knowing the case."""
        single, when, scale = noisy.float(), torch.tensor([[step]]), self.condition_scale
        if scale == 1:
            return self.network.denoise(single, when, self._embedding).double()
        conditional = self.network.denoise(single, when, self._embedding) if scale else 0.0
        unconditional = self.network.denoise(single, when, torch.zeros_like(self._embedding))
        return (scale * conditional + (1 - scale) * unconditional).double()

    def guide(self, clean: Float[Tensor, "case draw unit"], step: int) -> Float[Tensor, "case draw unit"]:
        """Predicted clean latents, normalised, moved towards the readings.

        The gradient is taken, clipped and applied in the raw latent, and only the change is brought back; or all of it
        in the normalised coordinates, as ``guidance.space`` says.
        """
        clean = clean.clamp(-self.clean_clip, self.clean_clip)
        if not self.guidance.active(step, self.schedule.num_steps):
            return clean
        started = slice(clean.shape[1])
        if self.guidance.space == "normalised":
            moved, self._sizes[:, started] = self.guidance(
                clean, self.operator, self._sizes[:, started], self.coordinates
            )
            return moved
        w = self.statistics.denormalise(clean)
        z = self.units.to_latent(w)
        moved, self._sizes[:, started] = self.guidance(z, self.operator, self._sizes[:, started])
        # what the network has and the latent has not, such as a source with more modes, stays as it is
        return self.statistics.normalise(w + self.units.from_latent(moved - z))

    @property
    def coordinates(self) -> Coordinates:
        """The normalised coordinates that the chain runs in."""
        return Coordinates(
            lambda clean: self.units.to_latent(self.statistics.denormalise(clean)),
            lambda slope: self.units.gradient(slope) * self.statistics.std,
        )

    def normals(self, num: int) -> Float[Tensor, "case draw unit"]:
        """Standard normals for so many draws of each case, from each case's own stream."""
        drawn = [rng.standard_normal((num, self.units.size), dtype=np.float32) for rng in self._generators]
        return torch.from_numpy(np.stack(drawn)).double()
