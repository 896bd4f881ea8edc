r"""The likelihood of the coefficients of one case, with everything else integrated out.

Every family is linear in the source and in the initial state, which are Gaussian. Given the coefficients
:math:`\theta` the readings are therefore Gaussian too, :math:`y \sim N(a(\theta), S(\theta))`: their mean is the known
initial state, propagated, and their covariance is that of the responses to what is unknown
(`latentpde.estimators.exact.responses`) plus noise. `latentpde.estimators.exact.forms` evaluates this Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.errors import DataError
from latentpde.estimators.exact.forms import CovarianceForm, GaussianForm, InformationForm, NoiseForm
from latentpde.estimators.exact.fourier import Modes
from latentpde.estimators.exact.responses import KnownState, Places, UncertainState, UnknownModes
from latentpde.estimators.exact.surrogate import Surrogate
from latentpde.observation import Observation

# Above this many readings the information form is the cheaper one; of several snapshots it sums complex matrices.
COVARIANCE_LIMIT, COVARIANCE_LIMIT_OF_SEVERAL = 500, 800
_MEANS_AT_ONCE = 64
_BATCH_VALUES = 2**18  # entries of the largest array of a batch: 2 MB, which caches hold


class MarginalLikelihood:
    """Log likelihood of the coefficients, and the conditional of the latent, for one case.

    Args:
        observation: a single case.
        decoder: family, prior of the source, rectangle.
        initial_hat: Fourier coefficients of the initial state's mean, in the sense in which the readings see it.
        initial_std: prior standard deviation of those coefficients, where the initial state is not known exactly.
        extra_variance: variance that readings have beyond their noise.
        form: ``"covariance"``, ``"information"``, or by default the cheaper one.
    """

    def __init__(
        self,
        observation: Observation,
        decoder: Decoder,
        initial_hat: Complex[Tensor, "row col"],
        initial_std: Float[Tensor, "row col"] | None = None,
        extra_variance: float = 0.0,
        form: str | None = None,
    ):
        if len(observation) != 1:
            raise DataError(f"a likelihood is of one case at a time, got {len(observation)}")
        mask = observation.mask[0]
        self.decoder, self.values = decoder, observation.values[0][mask]
        variance = observation.noise_std[0][mask] ** 2 + extra_variance
        places = Places.of(observation)
        self._known = KnownState.of(observation, decoder, places, initial_hat, float(variance.min().sqrt()))
        self._uncertain = None
        if initial_std is not None:
            block = initial_hat.shape[-2], initial_hat.shape[-1]
            self._uncertain = UncertainState(Modes.of(block, observation), initial_std)
        self._unknown = UnknownModes.of(
            observation,
            decoder,
            places,
            self._uncertain.modes if self._uncertain else None,
            self._uncertain.amplitude if self._uncertain else None,
        )
        if form is None:
            most = COVARIANCE_LIMIT if places.num_snapshots == 1 else COVARIANCE_LIMIT_OF_SEVERAL
            form = "covariance" if len(self.values) <= most else "information"
        self._form = _make_form(form, self._unknown, variance)

    @property
    def variance(self) -> Float[Tensor, " reading"]:
        """Variance of each reading's noise."""
        return self._form.variance

    @property
    def num_unknown(self) -> int:
        """Complex unknowns: modes of the source, and of the initial state where it is uncertain."""
        return len(self._unknown)

    def log_likelihood(self, theta: Float[Tensor, "batch coefficient"]) -> Float[Tensor, " batch"]:
        """``log p(y | theta)`` with everything else integrated out."""
        misfit, log_det = self._evaluate(theta)
        return -0.5 * (misfit + log_det + len(self.values) * math.log(2 * math.pi))

    def misfit(self, theta: Float[Tensor, "batch coefficient"]) -> Float[Tensor, " batch"]:
        """Squared distance of the readings from their mean, in units of their covariance: if ``theta`` is right, a
        chi-squared variable with as many degrees of freedom as there are readings."""
        return self._evaluate(theta)[0]

    def surrogate(self) -> Surrogate | None:
        """A cheap stand-in with the covariance in the middle of the bounds; ``None`` where the mean does not depend on
        the coefficients, so that nothing would be left of the likelihood."""
        if not self._known.num_modes:
            return None
        return Surrogate(self.values, self._known, self._form, self.decoder.latent.bounds.mean(-1)[None])

    def with_extra_noise(self, std: float) -> MarginalLikelihood:
        """The same readings with more noise, which has broader modes."""
        other = copy(self)
        other._form = self._form.with_variance(self.variance + std**2)
        return other

    def conditional(
        self, theta: Float[Tensor, "batch coefficient"], *, generator: torch.Generator | None = None
    ) -> Complex[Tensor, "batch unknown"]:
        """Whitened unknowns given the readings, one set per ``theta``: their mean, or with a generator a draw."""
        batches = self._residuals(theta)
        return torch.cat([self._form.conditional(few, residual, generator) for few, residual in batches])

    def source(self, unknown: Complex[Tensor, "batch unknown"]) -> Float[Tensor, "batch source"]:
        """The source latent ``q`` in whitened unknowns."""
        m = self.decoder.latent.num_modes
        block = unknown[:, : 2 * m * m]
        parts = torch.stack([block.real, block.imag], dim=1).unflatten(-1, (2, m, m))
        return self.decoder.latent.source_prior_std * parts.movedim(2, 1).flatten(1)

    def state(self, unknown: Complex[Tensor, "batch unknown"]) -> Complex[Tensor, "batch mode"] | None:
        """Deviations of the initial state's coefficients, as a flat block; ``None`` where it is known."""
        if self._uncertain is None:
            return None
        return self._uncertain.deviations(unknown[:, unknown.shape[1] - len(self._uncertain.amplitude) :])

    def _evaluate(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """The misfit, and the logarithm of the covariance's determinant."""
        parts = [self._form.quadratic_and_log_det(few, residual) for few, residual in self._residuals(theta)]
        misfit, log_det = (torch.cat([part[i].expand(len(part[0])) for part in parts]) for i in (0, 1))
        return misfit, log_det

    def _residuals(self, theta: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of coefficients, and what their means leave of the readings. Means are taken in larger batches than
        matrices need: one at a time, each would read the whole table of waves again."""
        batch = max(1, _BATCH_VALUES // max(self._form.size**2, 1))
        for some in theta.split(max(batch, _MEANS_AT_ONCE)):
            residual = self.values - self._known.mean(some)
            yield from zip(some.split(batch), residual.split(batch), strict=True)


def _make_form(name: str, unknown: UnknownModes, variance: Tensor) -> GaussianForm:
    if not len(unknown):
        return NoiseForm(variance)
    return CovarianceForm(unknown, variance) if name == "covariance" else InformationForm(unknown, variance)
