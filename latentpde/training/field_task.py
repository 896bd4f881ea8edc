r"""What FunDPS's denoiser is trained for: clean joint fields behind noise of every level.

.. math:: c_\text{out}(\sigma)^{-2}\; \overline{(D(x_0 + \sigma \xi, \sigma) - x_0)^2}, \qquad
          \log \sigma \sim N(\mu, \varsigma^2)

with :math:`\xi` a Gaussian random field. Readings play no part: they enter when sampling. The first epochs are on a
coarse grid, where they are cheap, and the last ones on the data's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.diffusion.edm import Preconditioning
from latentpde.diffusion.random_fields import RandomField
from latentpde.grid import Grid
from latentpde.nn.fields import NUM_CHANNELS, FieldStatistics
from latentpde.training.config import FunDPSTable
from latentpde.training.data import RegimeData, batch_generator
from latentpde.training.tasks import Losses, Task


@dataclass(frozen=True, eq=False)
class FieldTask(Task):
    """The loss of FunDPS's denoiser of joint fields.

    Args:
        device: where the network is.
        num_probes: not used: this network sees no readings.
        table: the settings.
        statistics: mean, standard deviation and spectrum of the training fields, which the network sees normalised.
        seed: seed of the noise and of its levels.
    """

    table: FunDPSTable
    statistics: FieldStatistics
    seed: int

    @property
    def noise(self) -> RandomField:
        """The noise that the network learns to take off."""
        return RandomField(self.table.noise_length)

    def losses(self, model: Callable[..., Tensor], data: RegimeData, indices: np.ndarray, epoch: int) -> Losses:
        fine = epoch >= self.table.epochs - self.table.fine_epochs
        grid = data.simulation.grid.coarsen(1 if fine else self.table.coarsening)
        clean = self.statistics.normalise(joint_fields(data, indices, grid))
        sigma, white = self._draw(clean.shape, batch_generator(data, indices, epoch, self.seed))
        clean, noise, sigma = (t.to(self.device) for t in (clean, self.noise.colour(white), sigma))
        error = model(clean + sigma[:, None, None, None] * noise, sigma).float() - clean
        squared = Preconditioning(self.table.sigma_data).weight(sigma)[:, None] * error.square().mean((-2, -1))
        initial, source, output = squared.mean(0)
        return {"loss": squared.mean(), "initial": initial, "source": source, "output": output}

    def _draw(self, shape: tuple[int, ...], generator: torch.Generator) -> tuple[Tensor, Tensor]:
        normal = torch.randn(shape[0], generator=generator)
        sigma = torch.exp(self.table.log_sigma_mean + self.table.log_sigma_std * normal)
        return sigma, torch.randn(shape, generator=generator)


def joint_fields(data: RegimeData, indices: np.ndarray, grid: Grid) -> Float[Tensor, "case 3 y x"]:
    """The fields that the network learns: initial state, source and field at the last time, of some cases.

    Args:
        data: cases of one regime, with their fine initial states.
        indices: which of them.
        grid: of the same rectangle.
    """
    chosen = torch.from_numpy(indices)
    assert data.fine_initial is not None
    z, times = data.z[chosen], (data.simulation.times or ())[-1:]
    spectrum = data.simulation.grid.analyse(data.fine_initial[chosen].float())
    output = data.decoder.spectrum(z, spectrum, times)[:, 0]
    source = data.decoder.source(z, grid)
    return torch.stack([grid.synthesise(spectrum), source, grid.synthesise(output)], dim=1)


def field_statistics(sets: list[RegimeData], table: FunDPSTable, most: int = 500) -> FieldStatistics:
    """Mean, standard deviation and spectrum of training fields, on the coarser grid of the first epochs.

    Args:
        sets: cases of each regime.
        table: says how much coarser that grid is.
        most: how many cases of each regime are looked at, the first ones.
    """
    parts = [
        joint_fields(data, np.arange(min(len(data), most)), data.simulation.grid.coarsen(table.coarsening))
        for data in sets
    ]
    fields = torch.cat(parts)
    assert fields.shape[1] == NUM_CHANNELS
    return FieldStatistics.of(fields.double())
