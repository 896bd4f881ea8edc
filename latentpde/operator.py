r"""From latents to readings: what an observation would have read of a candidate, and how far that is from what it read.

`ObservationOperator.residual` is the masked mean square that every method minimises or is guided by:

.. math:: J(z) = \frac{\sum_i m_i\, w_i\, (\hat y_i(z) - y_i)^2}{\sum_i m_i + \varepsilon}

with the mask :math:`m_i` and weights :math:`w_i = \bar\sigma^2 / \sigma_i^2`, all one where the noise is the same
everywhere.
"""

from __future__ import annotations

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.grid import Grid, Mirror, at_points, pooling_attenuation
from latentpde.observation import Observation
from latentpde.observation.lifting import lifted_readings, without_lift
from latentpde.observation.unfolding import unfolded

EPSILON = 1e-8  # of the residual's denominator


class ObservationOperator:
    """Readings that latents predict, and their distance from the observed ones.

    >>> import latentpde as lp
    >>> observation = lp.Observation.from_dataset(lp.simulate("diffusion", num=2, shape=(32, 32)))
    >>> latent = lp.Latent(lp.pde.get_family("advection_diffusion"), num_modes=2)
    >>> operator = ObservationOperator(observation, Decoder(latent))
    >>> z = torch.zeros(2, 3, latent.size, dtype=torch.float64)  # three candidates for each of two cases
    >>> operator.predict(z).shape, operator.residual(z).shape
    (torch.Size([2, 3, 1, 8, 8]), torch.Size([2, 3]))

    Args:
        observation: what was observed; it must have an initial state.
        decoder: turns latents into fields on the same rectangle.
    """

    def __init__(self, observation: Observation, decoder: Decoder):
        observation.require_initial()
        self.decoder, self._mirror = decoder, decoder.mirror if observation.positions is None else Mirror()
        lift, given = decoder.lift, observation
        self._known = None if lift is None else lifted_readings(given, lift)[:, None]
        # less what is known on walls, and on the rectangle with its images, where it has any
        observation = unfolded(without_lift(observation, decoder.latent.family))
        self.observation, coarse = observation, observation.require_initial()
        on_coarse_grid = observation.observed == "lowres-solve"
        u0_hat = observation.grid.analyse(coarse) if on_coarse_grid else observation.initial_spectrum()
        self._u0_hat = u0_hat[:, None]
        variance, counts = given.noise_std**2, given.num_readings.to(torch.float64)
        weights = given.mask * given.typical_variance.reshape(-1, *[1] * (variance.ndim - 1)) / variance
        self._weights = (weights / (counts + EPSILON).reshape(-1, *[1] * (variance.ndim - 1)))[:, None]
        self._values = given.values[:, None]

    def predict(self, z: Float[Tensor, "#case draw latent"]) -> Float[Tensor, "case draw time *reading"]:
        """Readings without noise, also where nothing was read; candidates may be the same for all cases."""
        predicted = self._predict(z)
        return predicted if self._known is None else predicted + self._known

    def _predict(self, z: Float[Tensor, "#case draw latent"]) -> Float[Tensor, "case draw time *reading"]:
        """Without what is known on walls."""
        observation = self.observation
        spectrum = self.decoder.spectrum(z, self._u0_hat.to(_complex_like(z)), observation.times.to(z))
        if observation.observed == "lowres-solve":
            return self._mirror.restrict(observation.grid.synthesise(spectrum))
        if observation.observed == "pooled":
            return self._mirror.restrict(cell_averages(spectrum, observation.grid, observation.pooling))
        positions = observation.positions
        assert positions is not None
        return at_points(spectrum, positions[:, None, None].to(z), observation.grid.extent, observation.grid.origin)

    def residual(self, z: Float[Tensor, "#case draw latent"]) -> Float[Tensor, "case draw"]:
        """The masked residual ``J``, in the field's unit squared; the noise's variance where the candidate is right."""
        return (self._weights.to(z) * (self.predict(z) - self._values.to(z)) ** 2).flatten(2).sum(-1)

    def residual_and_gradient(
        self, z: Float[Tensor, "case draw latent"]
    ) -> tuple[Float[Tensor, "case draw"], Float[Tensor, "case draw latent"]]:
        """``J`` and its derivatives. Draws do not interact, so the gradient of the sum is each one's own."""
        with torch.enable_grad():
            z = z.detach().requires_grad_(True)
            residual = self.residual(z)
            (slope,) = torch.autograd.grad(residual.sum(), z)
        return residual.detach(), slope


def cell_averages(
    u_hat: Complex[Tensor, "*batch row col"], grid: Grid, pooling: int | None
) -> Float[Tensor, "*batch y x"]:
    """Averages of a band-limited field over the cells of ``grid``, what folds at its Nyquist included.

    >>> fine, coarse = Grid((8, 8)), Grid((2, 2))
    >>> wave = torch.sin(2 * torch.pi * fine.coordinates()[0])[:, None].expand(8, 8)
    >>> cell_averages(fine.analyse(wave), coarse, pooling=4)[:, 0]  # the mean over half a period
    tensor([ 0.6533, -0.6533], dtype=torch.float64)

    Args:
        u_hat: a block of Fourier coefficients.
        grid: the cells.
        pooling: samples per side that a cell averages; ``None`` for a true average, 1 for a sample.
    """
    block = (u_hat.shape[-2], u_hat.shape[-1])
    u_hat = u_hat * pooling_attenuation(grid, pooling, block).to(u_hat.real)
    factor = 1
    while grid.refine(factor).shape[0] <= block[0] or grid.refine(factor).block_shape[1] < block[1]:
        factor += 2  # odd, so that coarse centres are fine centres
    return grid.refine(factor).synthesise(u_hat)[..., factor // 2 :: factor, factor // 2 :: factor]


def _complex_like(z: Tensor) -> torch.dtype:
    return torch.complex128 if z.dtype == torch.float64 else torch.complex64
