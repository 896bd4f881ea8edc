r"""What networks are trained for: a loss for each kind of network, and the latents that denoisers learn.

The encoder :math:`E_\psi` is trained for what MAP minimises, through the fixed decoder:

.. math:: J(\hat z) + \lambda \lVert \hat z \rVert^2, \qquad \hat z = E_\psi(y, M, u_0)

The denoiser is trained to predict the noise, and so that its clean prediction explains the readings, the more so the
less noise there was:

.. math:: \overline{(\epsilon_\phi - \epsilon)^2} + \lambda_\text{obs}\, \bar\alpha_\tau J(\hat z_0)

with steps drawn uniformly. :math:`J` is `ObservationOperator.residual`, as everywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from latentpde.diffusion.schedule import Schedule
from latentpde.latent import Statistics
from latentpde.nn import Conditions, InferenceEncoder
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.training.config import DenoiserTable, EncoderTable
from latentpde.training.data import RegimeData, batch_generator, on_device

Losses = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Task(ABC):
    """A loss for batches of cases, all of one regime.

    Args:
        device: where the network is.
        num_probes: probes that the network sees (`latentpde.nn.probes`).
    """

    device: torch.device
    num_probes: int

    @abstractmethod
    def losses(self, model: Callable[..., Tensor], data: RegimeData, indices: np.ndarray, epoch: int) -> Losses:
        """``loss``, which is minimised, and its parts. They are a function of the arguments alone.

        Args:
            model: the network.
            data: the regime's cases.
            indices: the cases of this batch.
            epoch: number of the epoch, which decides what is read of them.
        """


@dataclass(frozen=True, eq=False)
class EncoderTask(Task):
    """The loss of the inference encoder.

    Args:
        device: where the network is.
        num_probes: probes that the network sees (`latentpde.nn.probes`).
        table: the settings.
    """

    table: EncoderTable

    def losses(self, model: Callable[..., Tensor], data: RegimeData, indices: np.ndarray, epoch: int) -> Losses:
        observation = data.read(indices, epoch)
        units = data.units
        z = units.to_latent(model(Conditions.of(observation, units, self.num_probes).to(self.device)).double())[:, None]
        operator = ObservationOperator(on_device(observation, self.device), data.decoder)
        residual, size = operator.residual(z).mean(), z.square().sum(-1).mean()
        field = operator.predict(z)[:, 0].detach()
        error = (field - data.clean[torch.from_numpy(indices)].to(field)).square().mean((-3, -2, -1)).sqrt().mean()
        # the error over the whole coarse field is for the record; the truth trains nothing
        return {"loss": residual + self.table.latent_weight * size, "residual": residual, "rmse": error}


# From cases (a regime's, and which of them), what was read of them and the number of that set of readings, to the
# latents that a denoiser is to learn, in units of the prior.
Targets = Callable[[RegimeData, np.ndarray, Observation, int], Tensor]


@dataclass(frozen=True, eq=False)
class DenoiserTask(Task):
    """The loss of a denoiser.

    Args:
        device: where the network is.
        num_probes: probes that the network sees (`latentpde.nn.probes`).
        table: the settings.
        statistics: mean and standard deviation of the targets, which the network sees normalised.
        targets: the latents to learn.
        num_reading_sets: sets of readings per case that there are targets for, which epochs take in turn; 0 where
            any readings have targets, and each epoch reads anew.
        seed: seed of diffusion steps, noises and dropped conditioning.
    """

    table: DenoiserTable
    statistics: Statistics
    targets: Targets
    num_reading_sets: int
    seed: int

    @property
    def schedule(self) -> Schedule:
        """The noise schedule."""
        return Schedule(num_steps=self.table.num_steps, beta_start=self.table.beta_start, beta_end=self.table.beta_end)

    def losses(self, model: Callable[..., Tensor], data: RegimeData, indices: np.ndarray, epoch: int) -> Losses:
        reading_set = epoch % self.num_reading_sets if self.num_reading_sets else epoch
        observation = data.read(indices, reading_set)
        units = data.units
        conditions = Conditions.of(observation, units, self.num_probes).to(self.device)
        target = self.statistics.normalise(self.targets(data, indices, observation, reading_set).double())
        drawn = self._draw(target.shape, batch_generator(data, indices, epoch, self.seed))
        step, noise, keep = (part.to(self.device) for part in drawn)
        noisy = self.schedule.add_noise(target.float().to(self.device)[:, None], noise, step.cpu())
        predicted = model(noisy, step, conditions, keep).float()
        importance = torch.ones_like(noise[0, 0])
        importance[: data.latent.num_coefficients] = self.table.coefficient_weight
        denoising = ((predicted - noise).square() * importance / importance.mean()).mean()
        if not self.table.obs_weight:
            return {"loss": denoising, "denoising": denoising}
        level = self.schedule.alpha_bar(step.cpu()).to(self.device)
        guess = self.schedule.clean_of(noisy.double(), predicted.double(), step.cpu()[..., None])
        z = units.to_latent(self._denormalise(guess))
        operator = ObservationOperator(on_device(observation, self.device), data.decoder)
        observed = (level * keep[:, None] * operator.residual(z)).mean()
        return {
            "loss": denoising + self.table.obs_weight * observed,
            "denoising": denoising,
            "observation": observed,
        }

    def _denormalise(self, w: Tensor) -> Tensor:
        return Statistics(self.statistics.mean.to(w), self.statistics.std.to(w)).denormalise(w)

    def _draw(self, shape: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        num, noises = shape[0], self.table.noises_per_case
        step = torch.randint(self.table.num_steps, (num, noises), generator=generator)
        noise = torch.randn((num, noises, *shape[1:]), generator=generator)
        return step, noise, torch.rand(num, generator=generator) >= self.table.drop


def true_targets(data: RegimeData, indices: np.ndarray, observation: Observation, reading_set: int) -> Tensor:
    """Targets: the simulator's own latents."""
    return data.units.from_latent(data.z[torch.from_numpy(indices)].double())


def encoder_targets(encoder: InferenceEncoder, device: torch.device) -> Targets:
    """Targets: what a trained encoder makes of the same readings.

    Args:
        encoder: the trained network.
        device: where it is.
    """

    @torch.no_grad()
    def targets(data: RegimeData, indices: np.ndarray, observation: Observation, reading_set: int) -> Tensor:
        return encoder(Conditions.of(observation, data.units, encoder.case.num_probes).to(device)).cpu()

    return targets


def statistics_of(targets: Targets, sets: list[RegimeData], most: int = 1000) -> Statistics:
    """Mean and standard deviation of targets over all regimes.

    Args:
        targets: the latents to learn.
        sets: training cases, one set for each regime.
        most: cases of each regime that are looked at, the first ones.
    """
    parts = []
    for data in sets:
        indices = np.arange(min(len(data), most))
        parts.append(targets(data, indices, data.read(indices, 0), 0).double())
    return _rounded(Statistics.of(torch.cat(parts), floor=1e-4))


def _rounded(statistics: Statistics) -> Statistics:
    """As a manifest holds them, so that training and use agree to the bit."""
    mean, std = (
        torch.tensor([float(f"{value:.6g}") for value in values.tolist()], dtype=torch.float64)
        for values in (statistics.mean, statistics.std)
    )
    return Statistics(mean, std)
