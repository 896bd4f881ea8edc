r"""The PDE's residual as one more thing that is known: that it is zero.

A joint field has the residual :math:`\rho = u_T - G(\theta)\, u_0 - H(\theta)\, f`, by the exact solver. Its error is
the denoiser's in output and source, so mode by mode its log-likelihood is

.. math:: -\frac{|\rho_n|^2}{2 \left(\Sigma^{u}_n + |H_n|^2\, \Sigma^{f}_n\right)}

The coefficients are unknown. Each sample has its own, found from its denoised fields: the best of many, and from then
on a few steps of Adam whenever it is asked. Like the published method's, the term is left out while there is more noise
than signal.
"""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.estimators.adam import Adam
from latentpde.estimators.fundps.likelihood import GridLikelihood
from latentpde.grid import crop_block, mode_weights, wavenumbers
from latentpde.latent import Latent
from latentpde.nn.fields import INITIAL, OUTPUT, SOURCE, FieldStatistics

_BELOW = 1.0  # noise level, in standard deviations of the fields
_NUM_CANDIDATES = 512
_NUM_STEPS, _RATE = 5, 0.05
_SLACK = 0.1  # where fields have next to nothing, a network leaves more than the best denoiser
_MOST_MODES = 16  # of the residual, per half axis: beyond, outputs have next to nothing


class Coefficients:
    """Raw coefficients of samples, ``(snapshot, draw, coefficient)``; none before the residual was first asked for."""

    def __init__(self, latent: Latent):
        self.latent = latent
        self.raw: Tensor | None = None


class ResidualLikelihood:
    """A likelihood with the PDE's residual beside the readings.

    Args:
        known: the likelihood of readings and initial state.
        statistics: mean, standard deviation and spectrum of the training fields.
        extent: ``(height, width)`` of the rectangle, in physical units.
        times: PDE time of each snapshot.
        coefficients: those of the samples, shared between grids.
        scale: weight of the residual; 1 is the likelihood's own.
    """

    def __init__(
        self,
        known: GridLikelihood,
        statistics: FieldStatistics,
        extent: tuple[float, float],
        times: Float[Tensor, " snapshot"],
        coefficients: Coefficients,
        scale: float,
    ):
        self.known, self.statistics, self.scale = known, statistics, scale
        self.grid, self.times, self.coefficients = known.grid, times, coefficients
        rows, cols = known.grid.block_shape
        self._block = (min(rows, 2 * _MOST_MODES), min(cols, _MOST_MODES))
        self._k = wavenumbers(self._block, extent)
        self._counts = mode_weights(self._block[1]).repeat(self._block[0], 1)
        self._counts[self._block[0] // 2] = 0.0  # the row that a grid's block leaves empty

    def with_initial(self, clean: Tensor) -> Tensor:
        """Fields whose initial state has the modes that are known."""
        return self.known.with_initial(clean)

    def pull(self, clean: Float[Tensor, "snapshot draw channel y x"], sigma: float) -> Float[Tensor, ""]:
        """A number whose gradient by ``clean`` is that of the log-likelihood; finds the coefficients on the way."""
        total = self.known.pull(clean, sigma)
        if sigma >= _BELOW or not self.scale:
            return total
        mean, std = (v[:, None, None] for v in (self.statistics.mean, self.statistics.std))
        blocks = crop_block(self.grid.analyse(self.known.with_initial(clean).double() * std + mean), self._block)
        output, source = (
            crop_block(self.known.error_power(channel, sigma, _SLACK) * std[channel] ** 2, self._block)
            for channel in (OUTPUT, SOURCE)
        )
        theta = self._fit(blocks.detach(), output, source)
        squared = self._squared(blocks, theta, output, source)
        return total - 0.5 * self.scale * squared.sum()

    def _squared(
        self, blocks: Complex[Tensor, "snapshot draw channel row col"], theta: Tensor, output: Tensor, source: Tensor
    ) -> Float[Tensor, "snapshot draw"]:
        """The residual's size in units of its error."""
        initial_hat, source_hat = blocks[..., INITIAL, :, :], blocks[..., SOURCE, :, :]
        ones = torch.ones_like(source_hat[:1, :1])
        family, zero = self.coefficients.latent.family, torch.zeros_like(ones)
        found, response = [], []
        for i, time in enumerate(self.times):
            now = (self._k, time[None], theta[i])
            found.append(family.solve(*now, initial_hat[i], source_hat[i])[..., 0, :, :])
            response.append(family.solve(*now, zero[0], ones[0])[..., 0, :, :])
        left = blocks[..., OUTPUT, :, :] - torch.stack(found)
        error = (output + torch.stack(response).abs().square() * source).detach()
        weight = torch.where(error > 0, self._counts / error.clamp(min=1e-300), 0.0)
        return (left.abs().square() * weight).sum((-2, -1))

    def _fit(self, blocks: Tensor, output: Tensor, source: Tensor) -> Float[Tensor, "snapshot draw coefficient"]:
        state = self.coefficients
        shape = blocks.shape[:2]
        if state.raw is None:
            generator = torch.Generator().manual_seed(0)  # the same candidates for every case
            candidates = state.latent.draw(_NUM_CANDIDATES, generator=generator)[:, : state.latent.num_coefficients]
            sizes = [
                self._squared(blocks, self._theta(c.expand(*shape, -1)), output, source) for c in candidates.unbind(0)
            ]
            state.raw = candidates[torch.stack(sizes).argmin(0)]
        raw = state.raw.clone()
        adam = Adam([raw])
        for _ in range(_NUM_STEPS):
            with torch.enable_grad():
                free = raw.detach().requires_grad_(True)
                size = self._squared(blocks, self._theta(free), output, source)
                (slope,) = torch.autograd.grad(size.sum(), free)
            adam.step([slope], _RATE)
        state.raw = raw
        return self._theta(raw)

    def _theta(self, raw: Tensor) -> Tensor:
        latent = self.coefficients.latent
        lower, upper = latent.bounds.unbind(-1)
        return lower + (upper - lower) * torch.sigmoid(raw)
