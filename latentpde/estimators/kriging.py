r"""Ordinary kriging of the readings alone: what people use who have no physics.

Each snapshot, one case at one time, is a stationary field with an unknown constant mean and a variogram that is fitted
to the readings; the best linear unbiased prediction and its variance are PyKrige's. Cells are taken as points at their
centres, and the domain as a plain rectangle, not a periodic one.

The variogram's nugget is the readings' noise, not structure of the field. So predictions do not go through the
readings, and the nugget is no part of the field's variance. Draws are conditional simulations: with :math:`u'` an
unconditional draw of the fitted covariance, :math:`K` the kriging from readings to grid and :math:`\varepsilon` noise
of the nugget's size,

.. math:: u = K y + u' - K (u'(x_{1 \dots n}) + \varepsilon)

which has the kriging mean and, point by point, the kriging variance. Unconditional draws are Fourier series on a larger
periodic rectangle (circulant embedding), so that opposite edges do not see each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from annotated_types import Ge, Le
from jaxtyping import Float
from scipy.optimize import least_squares
from scipy.spatial.distance import cdist
from torch import Tensor

from latentpde.errors import DataError, UsageError
from latentpde.estimators.base import Estimator
from latentpde.estimators.seeds import snapshot_generators
from latentpde.grid import Grid, at_points, pointwise_variance
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.posterior.fields import FieldPosterior
from latentpde.progress import progress

Variogram = Literal["spherical", "exponential", "gaussian"]
Nugget = Literal["noise", "fit"]
_LEAST_NUGGET = 1e-6  # of the sill: keeps the system regular where sensors share a place
_FEWEST = 4  # readings that a variogram is fitted to
_CHUNK_VALUES = 2**22  # distances from grid to readings held at once
_MOST_PADDING = 4


@dataclass(frozen=True, kw_only=True)
class Kriging(Estimator):
    """Ordinary kriging of the readings by PyKrige, without physics.

    Args:
        variogram: ``"spherical"``, ``"exponential"`` or ``"gaussian"``; PyKrige's others have no covariance to draw.
        nugget: ``"noise"`` for the known variance of the readings' noise, ``"fit"`` to have PyKrige fit it.
        num_lags: number of bins of the empirical variogram, at least 2.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("balanced", num=1, seed=3, shape=(32, 32), sparsity=0.3)
        >>> posterior = lp.reconstruct(cases, method="kriging", num_draws=4)
        >>> posterior.draws(resolution=32).shape, posterior.has_spread
        ((1, 4, 32, 32), True)
    """

    name = "kriging"
    summary = "ordinary kriging of the readings alone, without physics (needs PyKrige)"
    cases_at_once = 1

    # from tools/tune.py on 48 validation cases of each regime
    variogram: Variogram = "spherical"
    nugget: Nugget = "noise"
    num_lags: Annotated[int, Ge(2), Le(1000)] = 12

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> FieldPosterior:
        grid, shape = observation.fine_grid, (len(observation), len(observation.times))
        generators = snapshot_generators(observation, seed)
        means, variances, draws, models = [], [], [], []
        with progress(self.name, len(generators), show=show_progress) as advance:
            for i, rng in enumerate(generators):
                index, time = divmod(i, shape[1])
                model = self._fit(_Snapshot.of(observation, index, time))
                mean, variance, weights = model.krige(grid)
                errors = model.draw_errors(grid, weights, num_draws, generator=rng)
                means.append(mean)
                variances.append(variance)
                draws.append(mean + errors)
                models.append((model.partial_sill, model.range, model.nugget))
                advance(1)
        sill, length, nugget = np.array(models).reshape(*shape, 3).mean(1).T
        return FieldPosterior(
            observation=observation,
            method=self.name,
            settings=self.settings(seed),
            diagnostics={"partial_sill": sill, "range": length, "nugget": nugget},
            native=grid,
            values=torch.from_numpy(np.stack(draws)).unflatten(0, shape).movedim(1, 2),
            mean_values=torch.from_numpy(np.stack(means)).unflatten(0, shape),
            variance=torch.from_numpy(np.stack(variances)).unflatten(0, shape),
        )

    def _fit(self, snapshot: _Snapshot) -> _Model:
        """Fit the variogram of one snapshot."""
        noise = float(snapshot.noise_variance.mean())
        total = float(snapshot.values.var())
        size = math.hypot(*snapshot.extent)
        # what to assume where readings are too few or too much alike to say more
        sill, length, nugget = max(total - noise, noise), size / 4, noise
        distances = cdist(snapshot.positions, snapshot.positions)
        if len(snapshot.values) >= _FEWEST and total > 0 and np.ptp(distances[np.triu_indices(len(distances), 1)]) > 0:
            empirical = _ordinary_kriging(snapshot, self.variogram, [sill, length, nugget], num_lags=self.num_lags)
            if self.nugget == "fit":
                sill, length, nugget = _ordinary_kriging(
                    snapshot, self.variogram, num_lags=self.num_lags
                ).variogram_model_parameters
            else:
                sill, length = _fit_sill_and_range(empirical, noise, size)
        sill = max(float(sill), 1e-12 * max(total, noise))
        length = max(float(length), 1e-3 * size)
        return _Model(snapshot, self.variogram, sill, length, max(float(nugget), _LEAST_NUGGET * sill))


@dataclass(frozen=True, eq=False)
class _Snapshot:
    """The readings of one case at one time, as points.

    Args:
        positions: ``(y, x)`` of the readings relative to the grid's origin, in physical units.
        values: what was read.
        noise_variance: variance of each reading's noise.
        extent: ``(height, width)`` of the domain.
    """

    positions: Float[np.ndarray, "reading 2"]
    values: Float[np.ndarray, " reading"]
    noise_variance: Float[np.ndarray, " reading"]
    extent: tuple[float, float]

    @classmethod
    def of(cls, observation: Observation, case: int, time: int) -> _Snapshot:
        mask, grid = observation.mask[case, time], observation.grid
        if not bool(mask.any()):
            raise DataError(
                f"kriging knows nothing but readings, and case {case} has none at time "
                f"{observation.times[time]:g}; drop that snapshot, or choose a method that solves the PDE"
            )
        if observation.positions is None:
            positions = (mask.nonzero() + 0.5) * torch.tensor(grid.spacing, dtype=torch.float64)
        else:
            positions = observation.positions[case][mask] - torch.tensor(grid.origin, dtype=torch.float64)
        values, noise = observation.values[case, time][mask], observation.noise_std[case, time][mask]
        return cls(positions.numpy(), values.numpy(), noise.numpy() ** 2, grid.extent)


@dataclass(frozen=True, eq=False)
class _Model:
    """A snapshot with its fitted variogram.

    Args:
        snapshot: the readings.
        variogram: the variogram's kind.
        partial_sill: variance of the field, without the nugget.
        range: distance at which the variogram levels off, in physical units.
        nugget: variance of the readings' noise.
    """

    snapshot: _Snapshot
    variogram: str
    partial_sill: float
    range: float
    nugget: float

    def krige(self, grid: Grid) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The kriging mean and variance ``(y, x)`` on a grid, and the weights ``(cell, reading)`` of the mean."""
        y, x = (length * (np.arange(n) + 0.5) / n for n, length in zip(grid.shape, grid.extent, strict=True))
        points = np.stack(np.meshgrid(y, x, indexing="ij"), -1).reshape(-1, 2)
        if len(self.snapshot.values) == 1:  # PyKrige needs two
            apart = cdist(points, self.snapshot.positions)
            variance = self.nugget + 2 * (self.partial_sill - self.covariance(apart[:, 0]))
            weights = np.ones((len(points), 1))
            return np.full(grid.shape, self.snapshot.values[0]), variance.reshape(grid.shape), weights
        parameters = [self.partial_sill, self.range, self.nugget]
        kriging = _ordinary_kriging(self.snapshot, self.variogram, parameters)
        parts = np.array_split(points, math.ceil(len(points) * len(self.snapshot.values) / _CHUNK_VALUES))
        results = [kriging.execute("points", part[:, 1], part[:, 0]) for part in parts]
        mean, variance = (np.concatenate([np.asarray(r[j]) for r in results]).reshape(grid.shape) for j in (0, 1))
        return mean, np.maximum(variance - self.nugget, 0.0), self._weights(points)

    def draw_errors(
        self, grid: Grid, weights: Float[np.ndarray, "cell reading"], num: int, *, generator: np.random.Generator
    ) -> Float[np.ndarray, "draw y x"]:
        """Draws of the field less its kriging mean, by conditional simulation as at the top of this file."""
        padding = 2
        while padding < _MOST_PADDING and self.covariance(padding / 2 * min(grid.extent)) > 1e-3 * self.partial_sill:
            padding += 1
        large = Grid(
            (padding * grid.shape[0], padding * grid.shape[1]), (padding * grid.extent[0], padding * grid.extent[1])
        )
        power = self._power(large)
        white = torch.from_numpy(generator.standard_normal((num, *large.shape)))
        noise = generator.standard_normal((num, len(self.snapshot.values))) * math.sqrt(self.nugget)
        u_hat = large.analyse(white) * torch.sqrt(power * white[0].numel())
        where = torch.from_numpy(self.snapshot.positions).expand(num, -1, -1)
        at_readings = at_points(u_hat, where, large.extent).numpy() + noise
        draws = large.synthesise(u_hat)[:, : grid.shape[0], : grid.shape[1]].numpy()
        return draws - (at_readings @ weights.T).reshape(num, *grid.shape)

    def covariance(self, distance):
        """Covariance of the field between places this far apart, without the nugget."""
        model = _ordinary_kriging_class().variogram_dict[self.variogram]
        return self.partial_sill - model([self.partial_sill, self.range, 0.0], np.asarray(distance, dtype=float))

    def _weights(self, points: np.ndarray) -> np.ndarray:
        """Weights ``(point, reading)`` of the kriging mean, which PyKrige computes and does not return."""
        num = len(self.snapshot.values)
        system = np.ones((num + 1, num + 1))
        system[:num, :num] = self.covariance(
            cdist(self.snapshot.positions, self.snapshot.positions)
        ) + self.nugget * np.eye(num)
        system[num, num] = 0.0
        right = np.ones((num + 1, len(points)))
        right[:num] = self.covariance(cdist(self.snapshot.positions, points))
        return (np.linalg.inv(system)[:num] @ right).T  # as PyKrige does: few readings, many points

    def _power(self, large: Grid) -> Tensor:
        """Powers ``E|u_k|^2`` of the field's Fourier modes on the larger rectangle.

        What comes out negative is due to rounding or truncation, and left out.
        """
        apart = [
            np.minimum(np.arange(n), n - np.arange(n)) * spacing
            for n, spacing in zip(large.shape, large.spacing, strict=True)
        ]
        table = torch.from_numpy(self.covariance(np.hypot(apart[0][:, None], apart[1])))
        full = torch.fft.rfft2(table, norm="forward").real.clamp(min=0)
        power = large.block_of(full)
        return power * (self.partial_sill / pointwise_variance(power))


def _ordinary_kriging(snapshot: _Snapshot, variogram: str, parameters: list[float] | None = None, num_lags: int = 6):
    """PyKrige's object with the parameters partial sill, range and nugget; without parameters it fits them."""
    y, x = snapshot.positions.T
    # by name: a list would be read with the whole sill first
    named = None if parameters is None else dict(zip(("psill", "range", "nugget"), parameters, strict=True))
    return _ordinary_kriging_class()(
        x, y, snapshot.values, variogram, variogram_parameters=named, nlags=num_lags, exact_values=False
    )


def _ordinary_kriging_class() -> Any:
    try:
        from pykrige.ok import OrdinaryKriging
    except ImportError as error:
        raise UsageError('kriging needs PyKrige; install it with: pip install "latentpde[peers]"') from error
    return OrdinaryKriging


def _fit_sill_and_range(empirical, nugget: float, size: float) -> tuple[float, float]:
    """Least squares through the empirical variogram, with PyKrige's loss and a nugget that is known."""
    lags, semivariance = empirical.lags, empirical.semivariance
    top = max(float(semivariance.max()), nugget)

    def residuals(parameters: np.ndarray) -> np.ndarray:
        return empirical.variogram_function([parameters[0] * top, parameters[1] * size, nugget], lags) - semivariance

    result = least_squares(
        residuals, [0.5, 0.25], bounds=([1e-9, 1e-3], [10.0, 1.0]), x_scale=[1.0, 1.0], loss="soft_l1"
    )
    return float(result.x[0] * top), float(result.x[1] * size)
