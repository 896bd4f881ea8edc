"""The background: another method's field, which 3D-Var and the ensemble Kalman filter correct towards the readings.

Cases and times are treated one by one: a *snapshot* is one case at one time, and snapshots are ordered by case first.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.estimators.assimilation.readings import FieldReadings
from latentpde.estimators.base import Estimator, make_estimator, methods
from latentpde.estimators.seeds import snapshot_generators
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.posterior.fields import FieldPosterior

CHUNK_VALUES = 2**23  # values of fields that a method holds at once: 64 MB
_BACKGROUND_DRAWS = 12  # for a background whose mean is that of its draws
_CASES_AT_ONCE = 64


class Analysis(NamedTuple):
    """What a method found for some snapshots.

    Attributes:
        mean: the corrected fields.
        variance: their error's variance, or ``None`` where the method does not know it.
        draws: draws of the field, one for a method without a spread.
    """

    mean: Float[Tensor, "snapshot y x"]
    variance: Float[Tensor, "snapshot y x"] | None
    draws: Float[Tensor, "snapshot draw y x"]


@dataclass(frozen=True, kw_only=True)
class CorrectedBackground(Estimator):
    """A method that takes another method's mean and corrects it towards the readings.

    Args:
        background: the name of the method whose mean is corrected.
        background_options: options of that method, ``{name: value}``.
    """

    background: str = "map"
    background_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if issubclass(methods.get(self.background), CorrectedBackground):
            raise UsageError(f"{self.name} corrects a method of its own kind; choose another background, such as map")
        make_estimator(self.background, **self.background_options)  # refuses what the background does not take

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> FieldPosterior:
        background = background_fields(
            self.background, self.background_options, observation, latent, seed=seed, show_progress=show_progress
        )
        return self.analyse(observation, background, num_draws=num_draws, seed=seed)

    def analyse(
        self, observation: Observation, background: Float[Tensor, "case time y x"], *, num_draws: int, seed: int
    ) -> FieldPosterior:
        """Correct a given background towards the readings, as many snapshots at once as fit in memory.

        Args:
            observation: the readings of all cases at all times.
            background: fields on the observation's fine grid, which are taken as independent of the readings.
            num_draws: posterior draws per case, where the method gives several.
            seed: seed of all random numbers.
        """
        readings, fields = FieldReadings.of(observation), background.flatten(0, 1)
        generators = snapshot_generators(observation, seed)
        step = max(1, CHUNK_VALUES // (self._num_fields(readings, num_draws) * fields[0].numel()))
        parts = [
            self._analyse_together(readings[here], fields[here], generators[here], num_draws)
            for here in (slice(start, start + step) for start in range(0, len(readings), step))
        ]
        shape, mean = (len(observation), len(observation.times)), torch.cat([part.mean for part in parts])
        variances = [part.variance for part in parts if part.variance is not None]
        return FieldPosterior(
            observation=observation,
            method=self.name,
            settings=self.settings(seed),
            diagnostics={
                "background_rms_residual": _rms_residual(readings, fields).unflatten(0, shape).mean(1).numpy(),
                "rms_residual": _rms_residual(readings, mean).unflatten(0, shape).mean(1).numpy(),
            },
            native=observation.fine_grid,
            values=torch.cat([part.draws for part in parts]).unflatten(0, shape).movedim(1, 2),
            mean_values=mean.unflatten(0, shape),
            variance=torch.cat(variances).unflatten(0, shape) if len(variances) == len(parts) else None,
        )

    @abstractmethod
    def _num_fields(self, readings: FieldReadings, num_draws: int) -> int:
        """How many fields the method holds at once for each snapshot, which decides how many are treated together."""

    @abstractmethod
    def _analyse_together(
        self,
        readings: FieldReadings,
        background: Float[Tensor, "snapshot y x"],
        generators: list[np.random.Generator],
        num_draws: int,
    ) -> Analysis:
        """Correct the backgrounds of some snapshots, each with random numbers from its own generator."""


def background_fields(
    method: str,
    options: Mapping[str, Any],
    observation: Observation,
    latent: Latent,
    *,
    seed: int,
    show_progress: bool = False,
) -> Float[Tensor, "case time y x"]:
    """The mean that another method gives, on the observation's fine grid at the snapshots' times.

    Args:
        method: a name of ``latentpde list methods``.
        options: options of that method.
        observation: the readings.
        latent: the family, the bounds of its coefficients and the source's prior.
        seed: seed of all random numbers.
        show_progress: draw a bar on a terminal, print lines elsewhere.

    Example:
        >>> import latentpde as lp
        >>> from latentpde.pde import get_family
        >>> cases = lp.simulate("balanced", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.3)
        >>> latent = Latent(get_family("advection_diffusion"), num_modes=2)
        >>> background = background_fields("map", {"num_steps": 5}, Observation.from_dataset(cases), latent, seed=0)
        >>> tuple(background.shape)
        (1, 1, 32, 32)
    """
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


def normal_fields(
    generators: list[np.random.Generator], num: int, shape: tuple[int, int]
) -> Float[Tensor, "snapshot {num} y x"]:
    """Fields of standard normal numbers, ``num`` for each snapshot, drawn from its own generator."""
    return torch.from_numpy(np.stack([rng.standard_normal((num, *shape)) for rng in generators]))


def normal_readings(
    generators: list[np.random.Generator], num: int, readings: FieldReadings
) -> Float[Tensor, "snapshot {num} reading"]:
    """Noise of the readings' standard deviations, ``num`` draws for each snapshot; zero where there is only padding."""
    counts = readings.is_reading.sum(1).tolist()
    noise = torch.zeros((len(readings), num, readings.values.shape[1]), dtype=torch.float64)
    for i, (rng, count) in enumerate(zip(generators, counts, strict=True)):
        noise[i, :, :count] = torch.from_numpy(rng.standard_normal((num, count)))
    return noise * torch.sqrt(readings.variance)[:, None]


def _rms_residual(readings: FieldReadings, fields: Float[Tensor, "snapshot y x"]) -> Float[Tensor, " snapshot"]:
    """Root mean square of the readings less what a field predicts of them."""
    squared = (readings.values - readings.predict(fields)) ** 2
    return torch.sqrt(squared.sum(-1) / readings.is_reading.sum(-1).clamp(min=1))
