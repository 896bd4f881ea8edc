r"""Ensemble Kalman filter: an ensemble around a background, drawn towards perturbed readings.

Members start from smoothed noise that is halved where there are readings,

.. math:: x^{(i)} = x_b + \sigma_e\, S\big[(1 - \tfrac12 M) \odot \xi^{(i)}\big], \qquad \xi^{(i)} \sim N(0, I),

with :math:`S` a repeated average over 3 x 3 cells, scaled so that :math:`\sigma_e` is the pointwise standard deviation
where nothing is halved. Each cycle moves them by the ensemble's own covariances (Burgers, van Leeuwen and Evensen,
1998):

.. math:: x^{(i)} \leftarrow x^{(i)} + \frac{A_x^T A_y}{N - 1} \Big(\frac{A_y^T A_y}{N - 1} + R\Big)^{-1}
          \big(y + \varepsilon^{(i)} - H x^{(i)}\big)

where :math:`A_x, A_y` are anomalies of members and of their readings, and the :math:`\varepsilon` are drawn from
:math:`N(0, R)`, then centred and rescaled to keep their variance, unless ``centred_noise`` is off, as in the paper. The
system is solved in the space of readings or, by Woodbury's identity, in that of members, whichever is smaller. Then the
ensemble is smoothed once more, and all of it may be shifted so that the mean meets the readings: what the mean leaves
of each is added to the cells that it averages. Every cycle uses the same readings, so several count them several times,
unless ``tempered``, which multiplies :math:`R` by the number of cycles (Emerick and Reynolds, 2013).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge, Le
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.assimilation.background import Analysis, CorrectedBackground, normal_fields, normal_readings
from latentpde.estimators.assimilation.localisation import Taper
from latentpde.estimators.assimilation.readings import FieldReadings
from latentpde.grid import Grid
from latentpde.validation import NotNegative, Positive


@dataclass(frozen=True, kw_only=True)
class EnKF(CorrectedBackground):
    """The paper's ensemble Kalman filter: an ensemble around another method's mean, moved towards the readings.

    Lengths are shares of the domain's shorter side. The ensemble has ``num_members`` members, or as many as draws are
    asked for if those are more; mean and standard deviation are always the whole ensemble's, and draws are its first
    members.

    Args:
        background: the name of the method whose mean is corrected.
        background_options: options of that method, ``{name: value}``.
        num_members: size of the ensemble, at least 2.
        ensemble_std: ``sigma_e``, in the field's units, positive.
        length: standard deviation of the smoothing kernel ``S``, positive.
        num_cycles: number of analyses in a row, at least 1.
        tempered: whether all cycles together use the readings once.
        centred_noise: whether the perturbations of the readings have mean zero over the members; false in the paper.
        inflation: factor on the anomalies before each analysis, positive; 1 for none.
        localisation: distance at which the taper of Gaspari and Cohn reaches zero; 0 for none, as in the paper.
        post_length: standard deviation of the smoothing kernel afterwards; 0 for none.
        correction: share of what the mean leaves of the readings that is added at the end, not negative; 1 in the
            paper, which fits their noise and costs accuracy on the validation split.

    Example:
        >>> import latentpde as lp
        >>> cases = lp.simulate("balanced", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.3)
        >>> posterior = lp.reconstruct(cases, method="enkf", num_draws=4, background_options={"num_steps": 20})
        >>> posterior.draws(resolution=32).shape, posterior.has_spread
        ((1, 4, 32, 32), True)
    """

    name = "enkf"
    summary = "ensemble Kalman filter: an ensemble around another method's mean, moved towards the readings"

    num_members: Annotated[int, Ge(2), Le(100_000)] = 16
    # from tools/tune.py on 12 validation cases of each regime
    ensemble_std: Positive = 0.05
    length: Annotated[float, Ge(1e-6), Le(100.0)] = 0.24
    num_cycles: Annotated[int, Ge(1), Le(1000)] = 2
    tempered: bool = False
    centred_noise: bool = True
    inflation: Positive = 1.2
    localisation: NotNegative = 1.2
    post_length: NotNegative = 0.06
    correction: NotNegative = 0.0

    def _num_fields(self, readings: FieldReadings, num_draws: int) -> int:
        footprints = readings.values.shape[1] if self.localisation else 0  # of the taper
        return max(self.num_members, num_draws, footprints)

    def _analyse_together(
        self,
        readings: FieldReadings,
        background: Float[Tensor, "snapshot y x"],
        generators: list[np.random.Generator],
        num_draws: int,
    ) -> Analysis:
        members = self._filter(readings, background, generators, max(self.num_members, num_draws))
        return Analysis(members.mean(1), members.var(1), members[:, :num_draws].clone())

    def _filter(
        self,
        readings: FieldReadings,
        background: Float[Tensor, "snapshot y x"],
        generators: list[np.random.Generator],
        num_members: int,
    ) -> Float[Tensor, "snapshot member y x"]:
        """The ensemble around the background after all cycles."""
        grid, shorter = readings.grid, min(readings.grid.extent)
        seen = readings.adjoint(readings.is_reading.to(torch.float64))[:, None] > 0
        noise = normal_fields(generators, num_members, grid.shape) * torch.where(seen, 0.5, 1.0)
        members = background[:, None] + self.ensemble_std * smooth(noise, grid, self.length * shorter, rescale=True)
        taper = Taper.of(readings, self.localisation * shorter) if self.localisation else None
        variance = readings.variance * (self.num_cycles if self.tempered else 1)
        for _ in range(self.num_cycles):
            mean = members.mean(1, keepdim=True)
            members = mean + self.inflation * (members - mean)
            perturbations = normal_readings(generators, num_members, readings)
            if self.centred_noise:
                perturbations = centred(perturbations)
            perturbations = perturbations * torch.sqrt(variance / readings.variance)[:, None]
            predicted = readings.predict(members)
            innovations = readings.values[:, None] + perturbations - predicted
            moved = kalman_step(members.flatten(2), predicted, innovations, variance, taper)
            members = moved.unflatten(-1, grid.shape)
        if self.post_length:
            members = smooth(members, grid, self.post_length * shorter)
        left = readings.values - readings.predict(members.mean(1))
        shift = left / (readings.weight**2).sum(-1).clamp(min=1e-300)
        return members + self.correction * readings.adjoint(shift)[:, None]


def kalman_step(
    members: Float[Tensor, "snapshot member cell"],
    predicted: Float[Tensor, "snapshot member reading"],
    innovations: Float[Tensor, "snapshot member reading"],
    variance: Float[Tensor, "snapshot reading"],
    taper: Taper | None = None,
) -> Float[Tensor, "snapshot member cell"]:
    """One analysis with perturbed readings, solved in the space of readings or of members, whichever is smaller.

    Args:
        members: the ensemble before.
        predicted: what each member predicts of the readings.
        innovations: perturbed readings less those predictions.
        variance: variance of the readings' noise.
        taper: localises the covariances, where given.

    Returns:
        The ensemble after.

    Example:
        >>> members = torch.tensor([[[1.0], [-1.0]]])  # two members of one cell, which is read as 3 with variance 2
        >>> kalman_step(members, members, 3.0 - members, torch.tensor([[2.0]])).flatten()  # half way, as both agree
        tensor([2., 1.])
    """
    less = members.shape[1] - 1
    anomalies, predicted_anomalies = (part - part.mean(1, keepdim=True) for part in (members, predicted))
    if taper is None and members.shape[1] <= predicted.shape[2]:
        scaled = predicted_anomalies / variance[:, None]
        system = less * torch.eye(members.shape[1], dtype=members.dtype) + scaled @ predicted_anomalies.mT
        return members + torch.linalg.solve(system, scaled @ innovations.mT).mT @ anomalies
    between = predicted_anomalies.mT @ predicted_anomalies / less
    across = predicted_anomalies.mT @ anomalies / less
    if taper is not None:  # a tapered covariance is no longer that of an ensemble
        between, across = taper.reading * between, taper.state * across
    return members + torch.linalg.solve(between + torch.diag_embed(variance), innovations.mT).mT @ across


def centred(
    perturbations: Float[Tensor, "snapshot member reading"],
) -> Float[Tensor, "snapshot member reading"]:
    """Subtract the mean over members, which would only add noise to the ensemble's, and rescale to keep the variance.

    Example:
        >>> centred(torch.tensor([[[1.0], [3.0]]])).flatten()
        tensor([-1.4142,  1.4142])
    """
    num = perturbations.shape[1]
    return math.sqrt(num / (num - 1)) * (perturbations - perturbations.mean(1, keepdim=True))


def smooth(
    fields: Float[Tensor, "*batch y x"], grid: Grid, length: float, *, rescale: bool = False
) -> Float[Tensor, "*batch y x"]:
    """Average over three cells along each axis, as often as gives a kernel of standard deviation ``length``.

    Args:
        fields: values on the grid, which is periodic.
        grid: the grid.
        length: standard deviation of the kernel, in physical units, not negative; there is at least one pass.
        rescale: keep the pointwise standard deviation of white noise.

    Example:
        >>> field = torch.tensor([[0.0, 0.0, 9.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
        >>> smooth(field, Grid((3, 4)), length=0.0)[0].round(decimals=6).abs().tolist()
        [0.0, 1.0, 1.0, 1.0]
    """
    multipliers = []
    for n, spacing in zip(grid.shape, grid.spacing, strict=True):
        num_passes = max(1, round(1.5 * (length / spacing) ** 2))  # one pass has the variance 2/3
        angle = 2 * torch.pi * torch.arange(n, dtype=torch.float64) / n
        multipliers.append(((1 + 2 * torch.cos(angle)) / 3) ** num_passes)
    along_y, along_x = multipliers
    scale = torch.sqrt((along_y**2).mean() * (along_x**2).mean()) if rescale else 1.0
    half = along_x[: grid.shape[1] // 2 + 1]
    return torch.fft.irfft2(torch.fft.rfft2(fields) * (along_y[:, None] * half / scale), s=grid.shape)
