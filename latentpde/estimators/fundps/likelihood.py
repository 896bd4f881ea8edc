r"""What is known of a joint field, as a likelihood of its denoised estimate.

With the clean field given a noisy one, :math:`x_0 \mid x_\sigma`, taken as Gaussian around the denoiser's estimate
:math:`D`, what is known has the log-likelihood

.. math:: -\tfrac12 (y - H D)^\top \left(H \Sigma_\sigma H^\top + R\right)^{-1} (y - H D)

with :math:`R` the readings' noise and :math:`\Sigma_\sigma` the denoiser's own error. For fields with the training
data's spectrum :math:`S` in noise with the spectrum :math:`\sigma^2 c` that error is known, mode by mode:

.. math:: \Sigma_\sigma = \frac{S\, \sigma^2 c}{S + \sigma^2 c} + \delta\, \sigma^2 c

where :math:`\delta` allows for a network that is not the best denoiser. So neighbouring readings, whose errors are
alike, do not count twice. Readings are functionals of the Fourier series, hence the same at every resolution: its value
at a sensor, or its average over a cell.

The initial state is known without noise, mode by mode. There the gradient, with the noise's covariance, is known in
closed form for the state itself, :math:`D \leftarrow u_0`, whatever the network's derivative; what it says of the other
channels goes through the network, weighted by a `coupling`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.diffusion.random_fields import RandomField
from latentpde.estimators.padding import padded_indices
from latentpde.grid import Grid, crop_block, mode_weights, pad_block, pooling_attenuation, wavenumbers
from latentpde.nn.fields import INITIAL, OUTPUT, FieldStatistics, radii
from latentpde.observation import Observation


@dataclass(frozen=True, eq=False)
class FieldLikelihood:
    """The likelihood of some snapshots, each a case at one time, in normalised units.

    Args:
        statistics: mean, standard deviation and spectrum of the training fields.
        noise: the noise of the diffusion, up to its level.
        slack: ``delta``, the network's error beyond the best denoiser's, as a share of the noise's variance.
        coupling: weight of what the initial state says of the other channels; 1 is the likelihood's own.
        initial_hat: Fourier coefficients of the initial state, as far as it is known.
        positions: ``(y, x)`` of each reading, relative to the rectangle's corner and sides.
        cells: shape of the coarse grid whose averages are read, and samples per cell and side; None for points.
        values: what was read; zero where there is only padding.
        variance: of the readings' noise; infinite where there is only padding.
    """

    statistics: FieldStatistics
    noise: RandomField
    slack: float
    coupling: float
    initial_hat: Complex[Tensor, "snapshot row col"]
    positions: Float[Tensor, "snapshot reading 2"]
    cells: tuple[tuple[int, int], int | None] | None
    values: Float[Tensor, "snapshot reading"]
    variance: Float[Tensor, "snapshot reading"]

    @classmethod
    def of(
        cls,
        observation: Observation,
        statistics: FieldStatistics,
        noise: RandomField,
        *,
        slack: float,
        coupling: float,
    ) -> FieldLikelihood:
        """The likelihood of every snapshot of every case, cases first; arguments as those of the class."""
        num_times, grid = len(observation.times), observation.grid
        initial_hat = observation.initial_spectrum().clone()
        initial_hat[:, 0, 0] -= statistics.mean[INITIAL]
        if observation.positions is None:
            steps = [(torch.arange(n, dtype=torch.float64) + 0.5) / n for n in grid.shape]
            centres = torch.stack(torch.meshgrid(*steps, indexing="ij"), -1).flatten(0, 1)
            positions = centres.expand(len(observation) * num_times, -1, -1)
            cells = (grid.shape, observation.pooling)
        else:
            low, size = (torch.tensor(v, dtype=torch.float64) for v in (grid.origin, grid.extent))
            positions = ((observation.positions - low) / size).repeat_interleave(num_times, 0)
            cells = None
        parts = (observation.mask, observation.values, observation.noise_std)
        mask, values, std = (part.flatten(0, 1).flatten(1) for part in parts)
        chosen, mask = padded_indices(mask)
        values, std = (torch.take_along_dim(part, chosen, 1) for part in (values, std))
        return cls(
            statistics=statistics,
            noise=noise,
            slack=slack,
            coupling=coupling,
            initial_hat=(initial_hat / statistics.std[INITIAL]).repeat_interleave(num_times, 0),
            positions=torch.take_along_dim(positions, chosen[..., None], 1),
            cells=cells,
            values=torch.where(mask, (values - statistics.mean[OUTPUT]) / statistics.std[OUTPUT], 0.0),
            variance=torch.where(mask, (std / statistics.std[OUTPUT]) ** 2, torch.inf),
        )

    def __len__(self) -> int:
        return len(self.values)

    def on(self, grid: Grid, snapshots: slice = slice(None)) -> GridLikelihood:
        """The likelihood of fields of some snapshots on one grid."""
        parts = (self.initial_hat, self.positions, self.values, self.variance)
        return GridLikelihood(self, grid.shape, *(part[snapshots] for part in parts))


class GridLikelihood:
    """A likelihood with what depends on the grid worked out; the grid's sides count as 1."""

    def __init__(self, known: FieldLikelihood, shape: tuple[int, int], initial_hat, positions, values, variance):
        self.grid, self._slack, self._coupling = Grid(shape), known.slack, known.coupling
        block = self.grid.block_shape
        half, eigenvalues = block[0] // 2, known.noise.eigenvalues(shape)[:, : block[1]] / (shape[0] * shape[1])
        self._noise = torch.cat([eigenvalues[:half], 0 * eigenvalues[:1], eigenvalues[shape[0] - half + 1 :]])
        power = torch.nn.functional.pad(known.statistics.power, (0, 1))
        self._power = power[:, radii(block).clamp(max=power.shape[1] - 1)]
        self._counts = mode_weights(block[1]).repeat(block[0], 1)

        k, where = wavenumbers(block, (1.0, 1.0)), positions[..., None]
        along_y, along_x = torch.exp(1j * where[..., 0, :] * k.y[:, 0]), torch.exp(1j * where[..., 1, :] * k.x[0])
        waves = along_y[..., :, None] * along_x[..., None, :]
        if known.cells is not None:
            waves = waves * pooling_attenuation(Grid(known.cells[0]), known.cells[1], block)
        self._waves = waves.flatten(-2)
        self._values, self._variance, self._real = values, variance, torch.isfinite(variance)

        ones = torch.ones(initial_hat.shape[-2:], dtype=torch.float64)
        ones[ones.shape[0] // 2] = 0  # blocks leave that row empty
        self._initial_hat, self._known = (pad_block(crop_block(part, block), block) for part in (initial_hat, ones))

    def predict(self, output: Float[Tensor, "snapshot draw y x"]) -> Float[Tensor, "snapshot draw reading"]:
        """What would be read of normalised fields at the snapshots' times, without noise."""
        spectrum = (self.grid.analyse(output) * self._counts).flatten(-2)
        return (spectrum @ self._waves.to(spectrum).mT).real

    def rms_residual(self, output: Float[Tensor, "snapshot draw y x"]) -> Float[Tensor, " snapshot"]:
        """Root mean square of what the mean of normalised fields leaves of each snapshot's readings."""
        left = (self._values - self.predict(output.mean(1, keepdim=True))[:, 0]) * self._real
        return torch.sqrt(left.square().sum(-1) / self._real.sum(-1).clamp(min=1))

    def error_power(self, channel: int, sigma: float, slack: float | None = None) -> Float[Tensor, "row col"]:
        """The variance of the denoiser's error, mode by mode.

        Args:
            channel: of the joint field.
            sigma: noise level.
            slack: another than the likelihood's own.
        """
        signal, noise = self._power[channel], sigma**2 * self._noise
        best = signal * noise / (signal + noise).clamp(min=1e-300)
        return best + (self._slack if slack is None else slack) * noise

    def pull(self, clean: Float[Tensor, "snapshot draw channel y x"], sigma: float) -> Float[Tensor, ""]:
        """A number whose gradient by ``clean`` is that of the log-likelihood."""
        power = (self.error_power(OUTPUT, sigma) * self._counts).flatten()
        covariance = ((self._waves * power) @ self._waves.mH).real * (self._real[:, :, None] & self._real[:, None])
        covariance = covariance + torch.diag_embed(torch.where(self._real, self._variance, 1.0))
        predicted = self.predict(clean[:, :, OUTPUT])
        left = (self._values[:, None] - predicted.detach()) * self._real[:, None]
        weights = torch.cholesky_solve(left.mT, torch.linalg.cholesky(covariance)).mT

        total = (predicted * weights).sum()
        if not self._coupling:
            return total
        error = self.error_power(INITIAL, sigma)
        factor = torch.where(error > 0, self._known * self._counts / error.clamp(min=1e-300), 0.0)
        mine = self.grid.analyse(clean[:, :, INITIAL])
        left_hat = (self._initial_hat[:, None] - mine.detach()) * factor
        return total + self._coupling * (mine.conj() * left_hat).real.sum()

    def with_initial(
        self, clean: Float[Tensor, "snapshot draw channel y x"]
    ) -> Float[Tensor, "snapshot draw channel y x"]:
        """Fields whose initial state has the modes that are known."""
        mine = self.grid.analyse(clean[:, :, INITIAL])
        initial = self.grid.synthesise(torch.where(self._known > 0, self._initial_hat[:, None].to(mine), mine))
        return torch.cat([initial[:, :, None], clean[:, :, 1:]], dim=2)
