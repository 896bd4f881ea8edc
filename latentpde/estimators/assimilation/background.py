"""What methods share whose unknown is the field: a background to correct, and randomness that is each case's own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.assimilation.readings import FieldReadings
from latentpde.estimators.base import Estimator, make_estimator
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.posterior import FieldPosterior

_BACKGROUND_DRAWS = 12  # for a background whose mean is that of its draws
_CASES_AT_ONCE = 64


@dataclass(frozen=True, kw_only=True)
class CorrectedBackground(Estimator):
    """A method that takes another's mean and corrects it towards the readings.

    Args:
        background: the method whose mean is corrected.
        background_options: its options, ``{name: value}``.
    """

    background: str = "map"
    background_options: Mapping[str, Any] = field(default_factory=dict)

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> FieldPosterior:
        background = background_fields(
            self.background, self.background_options, observation, latent, seed=seed, show_progress=show_progress
        )
        return self.analyse(observation, background, num_draws=num_draws, seed=seed)

    @abstractmethod
    def analyse(
        self, observation: Observation, background: Float[Tensor, "case time y x"], *, num_draws: int, seed: int
    ) -> FieldPosterior:
        """Correct a background that is at hand."""

    def posterior(
        self,
        observation: Observation,
        readings: FieldReadings,
        background: Float[Tensor, "problem y x"],
        seed: int,
        *,
        draws: list[Float[Tensor, "_ draw y x"]],
        means: list[Float[Tensor, "_ y x"]],
        variances: list[Float[Tensor, "_ y x"]],
    ) -> FieldPosterior:
        """What was found, chunk by chunk, for all problems: cases first, then times."""
        shape, mean = (len(observation), len(observation.times)), torch.cat(means)
        return FieldPosterior(
            observation=observation,
            method=self.name,
            settings=self.settings(seed),
            diagnostics={
                "background_rms_residual": rms_residual(readings, background).unflatten(0, shape).mean(1).numpy(),
                "rms_residual": rms_residual(readings, mean).unflatten(0, shape).mean(1).numpy(),
            },
            native=observation.fine_grid,
            values=torch.cat(draws).unflatten(0, shape).movedim(1, 2),
            mean_values=mean.unflatten(0, shape),
            variance=torch.cat(variances).unflatten(0, shape) if variances else None,
        )


def background_fields(
    method: str,
    options: Mapping[str, Any],
    observation: Observation,
    latent: Latent,
    *,
    seed: int,
    show_progress: bool = False,
) -> Float[Tensor, "case time y x"]:
    """The mean that another method gives, on the fine grid at the snapshots' times."""
    estimator = make_estimator(method, **options)
    posterior = estimator.estimate(
        observation, latent, num_draws=_BACKGROUND_DRAWS, seed=seed, show_progress=show_progress
    )
    parts = range(0, len(observation), _CASES_AT_ONCE)
    with torch.no_grad():
        return torch.cat(
            [
                posterior.means(slice(start, start + _CASES_AT_ONCE), observation.fine_grid, observation.times)
                for start in parts
            ]
        )


def normal_fields(generators: list[np.random.Generator], num: int, shape: tuple[int, int]) -> Tensor:
    """White noise, axes ``(problem, num, y, x)``."""
    return torch.from_numpy(np.stack([rng.standard_normal((num, *shape)) for rng in generators]))


def normal_readings(generators: list[np.random.Generator], num: int, readings: FieldReadings) -> Tensor:
    """Noise of the readings' standard deviation, axes ``(problem, num, reading)``; zero where there is only padding."""
    counts = readings.is_reading.sum(1).tolist()
    noise = torch.zeros((len(readings), num, readings.values.shape[1]), dtype=torch.float64)
    for i, (rng, count) in enumerate(zip(generators, counts, strict=True)):
        noise[i, :, :count] = torch.from_numpy(rng.standard_normal((num, count)))
    return noise * torch.sqrt(readings.variance)[:, None]


def rms_residual(readings: FieldReadings, fields: Float[Tensor, "problem y x"]) -> Float[Tensor, " problem"]:
    """Root mean square of what fields leave of the readings."""
    squared = (readings.values - readings.predict(fields)) ** 2
    return torch.sqrt(squared.sum(-1) / readings.is_reading.sum(-1).clamp(min=1))
