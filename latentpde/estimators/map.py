r"""Maximum a posteriori by test-time optimisation.

.. math:: z_\text{MAP} = \arg\min_z \; J(z) + \lambda \lVert z \rVert^2

minimised by Adam from several random starts at once, for all cases in one batch; of the starts, the one with
the lowest masked residual :math:`J` is kept. Following Tsao, Chaney and Veveakis, *Learning Interpretable PDE
Representations for Generative Reconstructions with Structured Sparsity*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.adam import Adam
from latentpde.estimators.base import Estimator, decoder_for
from latentpde.latent import Latent
from latentpde.needs import Needs
from latentpde.observation import Observation
from latentpde.observation.lifting import without_lift
from latentpde.observation.unfolding import unfolded
from latentpde.operator import ObservationOperator
from latentpde.posterior import LatentPosterior
from latentpde.progress import Advance, progress
from latentpde.validation import Count, NotNegative, Positive

CASES_AT_ONCE = 128  # keeps memory near 1 GB, whatever the number of cases


@dataclass(frozen=True, kw_only=True)
class Map(Estimator):
    """The latent that minimises the penalised residual: a point estimate, without a spread.

    Args:
        num_steps: steps of Adam, at least 1.
        num_restarts: random starts, at least 1; the one that ends with the lowest residual is kept.
        weight: ``lambda``, the weight of the penalty on the latent's squared norm; not negative.
        learning_rate: Adam's learning rate, about the change of a latent's entry per step; positive.
        start_std: standard deviation of the entries of the starts' latents; not negative.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("helmholtz", num=1, seed=0, shape=(32, 32), num_modes=2)
        >>> posterior = lp.reconstruct(cases, method="map", num_steps=20)
        >>> posterior.num_draws, posterior.has_spread
        (1, False)
        >>> posterior.diagnostics["residual_of_restarts"].shape  # cases, restarts
        (1, 3)
    """

    name = "map"
    summary = "the paper's test-time optimisation: Adam from several starts; a point estimate"
    has_spread = False
    takes_walls = True

    num_steps: Count = 300
    num_restarts: Count = 3
    weight: NotNegative = 0.01
    learning_rate: Positive = 0.4  # chosen on the validation split by tools/tune.py
    start_std: NotNegative = 1.0

    def needs(self, observation: Observation, latent: Latent, num_draws: int) -> Needs:
        cells = math.prod(observation.grid.shape) * len(observation.times)
        return Needs(memory=96 * observation.num_cases * self.num_restarts * (latent.size + cells))

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> LatentPosterior:
        """Condition the prior on the readings, as `Estimator.estimate` says.

        Diagnostics are ``residual``, the masked residual of each case, and ``residual_of_restarts``, that of each of
        its restarts.
        """
        decoder = decoder_for(observation, latent)
        starts = range(0, len(observation), CASES_AT_ONCE)
        latents, residuals = [], []
        with progress(self.name, len(starts) * self.num_steps, show=show_progress) as advance:
            for start in starts:
                operator = ObservationOperator(observation[start : start + CASES_AT_ONCE], decoder)
                latents.append(self.minimise(operator, seed=seed, advance=advance))
                with torch.no_grad():
                    residuals.append(operator.residual(latents[-1]))
        z, residual = torch.cat(latents), torch.cat(residuals)
        best = residual.argmin(1)
        rows = torch.arange(len(z))
        return LatentPosterior(
            observation=observation,
            method=self.name,
            settings=self.settings(seed),
            diagnostics={
                "residual": residual[rows, best].numpy(),
                "residual_of_restarts": residual.numpy(),
            },
            decoder=decoder,
            z=z[rows, best][:, None],
            initial_hat=unfolded(without_lift(observation, latent.family)).initial_spectrum()[:, None],
        )

    def minimise(
        self, operator: ObservationOperator, *, seed: int, advance: Advance = lambda count: None
    ) -> Float[Tensor, "case restart latent"]:
        """The latents of all restarts of all cases after the last step.

        Args:
            operator: the readings of the cases.
            seed: seed of the starts.
            advance: called with 1 after each step.
        """
        generator = torch.Generator().manual_seed(seed)
        # All cases share their starts, so that a case comes out the same alone and in any batch.
        starts = torch.randn(
            (self.num_restarts, operator.decoder.latent.size), dtype=torch.float64, generator=generator
        )
        z = (self.start_std * starts).repeat(len(operator.observation), 1, 1)
        adam = Adam([z])
        for _ in range(self.num_steps):
            _, slope = operator.residual_and_gradient(z)
            adam.step([slope + 2 * self.weight * z], self.learning_rate)
            advance(1)
        return z
