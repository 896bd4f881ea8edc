r"""How well a Gaussian process without physics explains the readings: what a PDE has to beat.

The covariance between places at a distance :math:`d` and times :math:`s` apart is separable,

.. math:: C(d)\,\rho(s), \qquad C(d) = \sigma^2 M(|d / \ell|) + \omega^2,

with Matérn functions :math:`M` and :math:`\rho`, a range along each axis and one in time, and a level that is the same
everywhere and changes with time. On the torus distances are those of its embedding in four dimensions, which keeps
the covariance positive. Trend and noise are the model's own.

Where the initial state is known, it is so to the process too. A separable process depends on what is known of one time
only through the value at the same place (the Markov property of such covariances), so that without any matrix of the
state's size

.. math:: u(t) \mid u_0 \sim N\big(\rho(t)\,u_0,\; C\,[\rho(t - t') - \rho(t)\,\rho(t')]\big).

The logarithms of the scales have broad Gaussian priors about the readings' own, and the evidence is Laplace's (MacKay
1992): exact for a scale that the readings do not tell, and close for one that they do. It is averaged over
smoothnesses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from latentpde.errors import UsageError

MOST_READINGS = 1000  # beyond, its dense matrices take minutes
#: Smoothness in space and in time.
KINDS = ((0.5, 0.5), (1.5, 0.5), (1.5, 1.5), (2.5, 0.5), (2.5, 2.5))
_NUM_TRIED, _NUM_STARTS, _NUM_STEPS = 16, 2, 60
_JITTER = 1e-8  # of the variance, keeps the covariance regular
_LEAST_CURVATURE = 0.25  # where the prior alone has 1


@dataclass(frozen=True, eq=False)
class PhysicsFree:
    """The readings of one case as a process sees them.

    >>> t = torch.tensor([1.0, 1.0]).double()
    >>> places = torch.tensor([[0.2, 0.2], [0.7, 0.4]]).double()
    >>> known = {"noise_std": torch.full((2,), 0.1).double(), "trend": torch.zeros(2, 0).double()}
    >>> process = PhysicsFree(torch.tensor([1.0, -1.0]).double(), places, t, extent=(1.0, 1.0), **known)
    >>> process.names
    ('std', 'level_std', 'range_y', 'range_x', 'range_time')

    Args:
        values: what was read.
        positions: ``(y, x)`` of each.
        times: of each; of the initial state, 0.
        noise_std: of each; NaN where it is not known.
        trend: functions whose coefficients are unknown, a column each.
        extent: of the rectangle.
        periodic: whether each axis is.
        groups: number of the group that shares an unknown level of noise.
        start: of the initial state, where it is known, at the place of each reading.
    """

    values: Float[Tensor, " reading"]
    positions: Float[Tensor, "reading 2"]
    times: Float[Tensor, " reading"]
    noise_std: Float[Tensor, " reading"]
    trend: Float[Tensor, "reading column"]
    extent: tuple[float, float]
    periodic: tuple[bool, bool] = (False, False)
    groups: Tensor | None = None
    start: Float[Tensor, " reading"] | None = None

    def __post_init__(self) -> None:
        if len(self.values) > MOST_READINGS:
            raise UsageError(
                f"a Gaussian process without physics is compared up to {MOST_READINGS:,} readings; "
                f"this case has {len(self.values):,}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Of the scales that are fitted."""
        return ("std", "level_std", "range_y", "range_x", "range_time", *(f"noise_std_{n}" for n in self._levels))

    @property
    def _levels(self) -> list[int]:
        """Groups whose noise is not known."""
        return sorted({int(n) for n in self._groups[self._unknown_noise]})

    @property
    def _unknown_noise(self) -> Bool[Tensor, " reading"]:
        return self.noise_std.isnan()

    @property
    def _groups(self) -> Tensor:
        return torch.zeros(len(self.values), dtype=torch.long) if self.groups is None else self.groups

    @property
    def prior(self) -> tuple[Float[Tensor, " scale"], Float[Tensor, " scale"]]:
        """Mean and standard deviation of the logarithms of the scales."""
        both = self.values if self.start is None else torch.cat([self.values, self.start])
        size = float(both.std(correction=0)) or 1.0
        span = float(self.times.max() - (0.0 if self.start is not None else self.times.min())) or 1.0
        centres = [
            size,
            0.3 * size,
            0.3 * self.extent[0],
            0.3 * self.extent[1],
            span,
            *(0.2 * size for _ in self._levels),
        ]
        widths = [1.0, 1.5, 1.0, 1.0, 1.5, *(1.5 for _ in self._levels)]
        return torch.tensor(centres).double().log(), torch.tensor(widths).double()

    def log_likelihood(self, scales: Float[Tensor, " scale"], kind: tuple[float, float]) -> Float[Tensor, ""]:
        """Of the readings given the initial state, with the trend integrated out over a flat prior.

        Args:
            scales: their logarithms.
            kind: smoothness in space and in time.
        """
        mean, covariance = self.moments(scales, kind)
        factor = torch.linalg.cholesky(covariance)
        columns = torch.cat([(self.values - mean)[:, None], self.trend], 1)
        white = torch.linalg.solve_triangular(factor, columns, upper=False)
        of_values, of_trend = white[:, :1], white[:, 1:]
        log_det, misfit = 2 * factor.diagonal().log().sum(), of_values.square().sum()
        if self.trend.shape[1]:
            gram = torch.linalg.cholesky(of_trend.mT @ of_trend)
            explained = torch.linalg.solve_triangular(gram, of_trend.mT @ of_values, upper=False)
            misfit, log_det = misfit - explained.square().sum(), log_det + 2 * gram.diagonal().log().sum()
        return -0.5 * (misfit + log_det + (len(self.values) - self.trend.shape[1]) * math.log(2 * math.pi))

    def moments(self, scales: Float[Tensor, " scale"], kind: tuple[float, float]) -> tuple[Tensor, Tensor]:
        """Mean and covariance of the readings."""
        std, level_std, range_y, range_x, range_time, *noise = scales.exp()
        apart = self._apart() / torch.stack([range_y, range_x])
        in_space = std**2 * matern(apart.square().sum(-1), kind[0]) + level_std**2
        in_time = matern(((self.times[:, None] - self.times) / range_time).square(), kind[1])
        mean = torch.zeros_like(self.values)
        if self.start is not None:
            since = matern((self.times / range_time).square(), kind[1])
            mean, in_time = since * self.start, in_time - since[:, None] * since
        known = self.noise_std.nan_to_num().square()
        for number, level in zip(self._levels, noise, strict=True):
            known = known + level**2 * (self._unknown_noise & (self._groups == number))
        return mean, in_space * in_time + torch.diag(known + _JITTER * std**2)

    def _apart(self) -> Float[Tensor, "reading reading2 2"]:
        apart = self.positions[:, None] - self.positions
        extent, periodic = torch.tensor(self.extent).double(), torch.tensor(self.periodic)
        return torch.where(periodic, extent / math.pi * torch.sin(math.pi * apart / extent), apart)

    def log_evidence(self, seed: int = 0) -> float:
        """Of the readings, with scales integrated out by Laplace's method, averaged over all kinds."""
        starts, found = self.starts(KINDS[0], np.random.default_rng(seed)), []
        for kind in KINDS:
            best = self.likeliest(kind, starts)
            found.append(self.log_evidence_about(best, kind))
            starts = [best]  # the next kind's are not far
        return float(torch.logsumexp(torch.tensor(found), 0)) - math.log(len(KINDS))

    def log_evidence_about(self, best: Float[Tensor, " scale"], kind: tuple[float, float]) -> float:
        """That of one kind, by Laplace's method about the likeliest scales."""
        loss = self._loss(kind)
        curvature = torch.autograd.functional.hessian(loss, best)
        assert isinstance(curvature, Tensor)
        _, widths = self.prior
        # where the climb ended early a direction may still bend the other way
        own = torch.linalg.eigvalsh(curvature * widths * widths[:, None])
        log_det = own.clamp(min=_LEAST_CURVATURE).log().sum()
        return float(-loss(best) - 0.5 * log_det)

    def _loss(self, kind: tuple[float, float]) -> Callable[[Tensor], Tensor]:
        """Minus the log density of readings and scales, less the prior's own constant, in which Laplace's cancels."""
        centres, widths = self.prior

        def loss(scales: Tensor) -> Tensor:
            return 0.5 * ((scales - centres) / widths).square().sum() - self.log_likelihood(scales, kind)

        return loss

    def starts(self, kind: tuple[float, float], generator: np.random.Generator) -> list[Float[Tensor, " scale"]]:
        """The likeliest of some scales at random."""
        loss, (centres, widths) = self._loss(kind), self.prior
        normals = torch.from_numpy(generator.standard_normal((_NUM_TRIED - 1, len(centres))))
        with torch.no_grad():
            return sorted([centres, *(centres + widths * normals)], key=lambda at: float(loss(at)))[:_NUM_STARTS]

    def likeliest(self, kind: tuple[float, float], starts: list[Float[Tensor, " scale"]]) -> Float[Tensor, " scale"]:
        """The likeliest scales that a climb from these leads to."""
        from scipy.optimize import minimize

        loss = self._loss(kind)

        def value_and_slope(at: np.ndarray) -> tuple[float, np.ndarray]:
            scales = torch.tensor(at, requires_grad=True)
            try:
                value = loss(scales)
            except RuntimeError:  # no Cholesky factor: rounding wins
                return 1e10, np.zeros_like(at)
            value.backward()
            assert scales.grad is not None
            return value.item(), scales.grad.numpy()

        ends = [
            minimize(value_and_slope, start.numpy(), jac=True, method="L-BFGS-B", options={"maxiter": _NUM_STEPS})
            for start in starts
        ]
        return torch.from_numpy(min(ends, key=lambda end: end.fun).x)


def matern(squared: Float[Tensor, "*pair"], smoothness: float) -> Float[Tensor, "*pair"]:
    """Matérn's function of a squared distance in units of its range.

    >>> [round(float(matern(torch.tensor(1.0), smoothness)), 4) for smoothness in (0.5, 1.5, 2.5)]
    [0.3679, 0.4834, 0.524]

    Args:
        squared: distances.
        smoothness: 0.5, 1.5 or 2.5.
    """
    r = (2 * smoothness * squared + 1e-20).sqrt()  # the root has no slope at 0
    polynomial = {0.5: 1.0, 1.5: 1 + r, 2.5: 1 + r + r.square() / 3}[smoothness]
    return polynomial * (-r).exp()
