"""FunDPS: guided diffusion sampling on function spaces.

After Yao et al., *Guided Diffusion Sampling on Function Spaces with Applications to PDEs* (2025), from its equations. A
neural operator has learnt to denoise joint fields: initial state, source and output. It knows nothing of sensors:
readings of the output and the initial state enter when sampling (`latentpde.estimators.fundps.likelihood`), so one
network serves every layout. The PDE is what the network has learnt of it and nothing more, unless its residual is asked
for (`residual_scale`).

Each snapshot is reconstructed by itself, from the same initial state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.assimilation.background import normal_fields
from latentpde.estimators.base import Estimator
from latentpde.estimators.fundps.likelihood import FieldLikelihood
from latentpde.estimators.fundps.residual import Coefficients, ResidualLikelihood
from latentpde.estimators.fundps.sampler import Guide, GuidedSampler
from latentpde.estimators.learned.posterior import training_mismatch
from latentpde.estimators.seeds import snapshot_generators
from latentpde.grid import Grid
from latentpde.latent import Latent
from latentpde.nn.encoders import check_cells
from latentpde.nn.fields import NUM_CHANNELS, OUTPUT
from latentpde.nn.weights import SHIPPED, Trained, load_weights
from latentpde.observation import Observation
from latentpde.posterior.fields import FieldPosterior
from latentpde.progress import Advance, progress
from latentpde.validation import Count, NotNegative, Positive, Share

_FIELDS_AT_ONCE = 48
_COARSENING = 2


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class FunDPSPosterior(FieldPosterior):
    """Drawn fields, and in what the readings differ from what the network was trained on.

    Args:
        training_mismatch: a sentence for each difference; they become warnings.
    """

    training_mismatch: list[str] = field(default_factory=list)

    def warnings(self, case: int) -> list[str]:
        return [*self.training_mismatch, *super().warnings(case)]


@dataclass(frozen=True, kw_only=True)
class FunDPS(Estimator):
    """Guided diffusion over joint fields; each draw is a sample of its own.

    Args:
        num_steps: number of noise levels, from ``sigma_max`` down to ``sigma_min``.
        sigma_max, sigma_min: the highest and the lowest noise level, in standard deviations of the training fields.
        coarse_share: share of the steps that run at half the resolution.
        guidance_scale: strength of the guidance by the readings; 1 is the likelihood's own.
        slack: the network's error beyond the best denoiser's, as a share of the noise's variance.
        coupling: weight of what the initial state says of output and source through the network; 1 is the likelihood's
            own. The state itself is always put in place.
        residual_scale: weight of the PDE's residual in the likelihood; 0 leaves it out, 1 is the likelihood's own.
        weights: folder of trained networks; ``shipped`` for those that come with the package.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("balanced", num=1, seed=0, shape=(32, 32))
        >>> posterior = lp.reconstruct(cases, method="fundps", num_draws=2, num_steps=4)
        >>> posterior.draws(resolution=32).shape
        (1, 2, 32, 32)
    """

    name = "fundps"
    summary = "FunDPS: guided diffusion over whole fields by a neural operator (trained for advection-diffusion)"

    # guidance_scale, slack and coupling: the best of a few on 16 validation cases
    num_steps: Count = 20
    sigma_max: Positive = 80.0
    sigma_min: Positive = 0.02
    coarse_share: Share = 0.8
    guidance_scale: NotNegative = 1.5
    slack: NotNegative = 0.0
    coupling: NotNegative = 0.0
    residual_scale: NotNegative = 0.0
    weights: str | Path = SHIPPED

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weights", str(self.weights))  # settings are recorded as JSON
        _ = self.sampler  # refuses what it cannot do

    @property
    def sampler(self) -> GuidedSampler:
        """The options of the sampler."""
        return GuidedSampler(
            num_steps=self.num_steps,
            sigma_max=self.sigma_max,
            sigma_min=self.sigma_min,
            coarse_share=self.coarse_share,
            scale=self.guidance_scale,
        )

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> FunDPSPosterior:
        """Condition the prior on the readings, as `Estimator.estimate` says.

        Diagnostics are ``rms_residual``, what the mean leaves of the readings of each case, in the field's unit; and
        ``num_parameters`` of the network.
        """
        observation.require_initial()
        check_cells(observation.grid)
        trained = load_weights("fundps", latent.family, self.weights)
        likelihood = FieldLikelihood.of(
            observation, trained.field_statistics, trained.noise, slack=self.slack, coupling=self.coupling
        )
        generators, size = snapshot_generators(observation, seed), max(1, _FIELDS_AT_ONCE // num_draws)
        parts, outputs = range(0, len(likelihood), size), []
        with progress(self.name, len(parts) * self.num_steps, show=show_progress) as advance, torch.no_grad():
            for first in parts:
                part = slice(first, first + size)
                outputs.append(
                    self.sample(trained, likelihood, observation, latent, part, generators[part], num_draws, advance)
                )
        shape, values = (len(observation), len(observation.times)), torch.cat(outputs)
        left = likelihood.on(observation.fine_grid).rms_residual(values)
        left = left * trained.field_statistics.std[OUTPUT]
        fields = trained.field_statistics.std[OUTPUT] * values + trained.field_statistics.mean[OUTPUT]
        return FunDPSPosterior(
            observation=observation,
            method=self.name,
            settings=self.settings(seed),
            diagnostics={
                "rms_residual": left.unflatten(0, shape).mean(1).numpy(),
                "num_parameters": trained.num_parameters,
            },
            native=observation.fine_grid,
            values=fields.unflatten(0, shape).movedim(1, 2),
            training_mismatch=training_mismatch(trained.manifest, observation, latent),
        )

    def sample(
        self,
        trained: Trained,
        likelihood: FieldLikelihood,
        observation: Observation,
        latent: Latent,
        part: slice,
        generators: list,
        num_draws: int,
        advance: Advance,
    ) -> Float[Tensor, "snapshot draw y x"]:
        """Draw normalised fields of some snapshots, in one batch.

        Args:
            trained: the network.
            likelihood: what is known of all snapshots.
            observation: the readings.
            latent: bounds of the coefficients, where the PDE's residual is asked for.
            part: which snapshots; all cases at all times count, cases first.
            generators: random numbers of each of them.
            num_draws: how many fields of each.
            advance: called with 1 after each step.
        """
        fine, statistics, coefficients = observation.fine_grid, trained.field_statistics, Coefficients(latent)
        divides = all(n % _COARSENING == 0 for n in fine.shape)
        grids = [fine.coarsen(_COARSENING), fine] if divides and self.coarse_share else [fine]
        times = observation.times.repeat(len(observation))[part]

        def guide(grid: Grid) -> Guide:
            known = likelihood.on(grid, part)
            if not self.residual_scale:
                return known
            return ResidualLikelihood(known, statistics, grid.extent, times, coefficients, self.residual_scale)

        def normals(grid: Grid) -> Tensor:
            white = normal_fields(generators, num_draws * NUM_CHANNELS, grid.shape).float()
            return white.unflatten(1, (num_draws, NUM_CHANNELS))

        guides = [guide(grid) for grid in grids]
        fields = self.sampler.run(trained.network, trained.noise, grids, guides, normals, advance)
        return fields[:, :, OUTPUT].double()
