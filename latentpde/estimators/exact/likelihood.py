r"""The likelihood of the parameters of one case, with everything else integrated out.

Every family is linear in the source and in the initial state, which are Gaussian. Given the parameters
:math:`\theta` the readings are therefore Gaussian too, :math:`y \sim N(a(\theta) + \Phi \beta, S(\theta))`: their mean
is the known initial state, propagated, and their covariance is that of the responses to what is unknown
(`latentpde.estimators.exact.responses`) plus noise. `latentpde.estimators.exact.forms` evaluates this Gaussian. The
coefficients :math:`\beta` of a constant or a trend have a flat prior and are integrated out as well (Rasmussen and
Williams 2006, section 2.7): with :math:`W = \Phi^T S^{-1} \Phi` and
:math:`\hat\beta = W^{-1} \Phi^T S^{-1} (y - a)`,

.. math:: \log p(y \mid \theta) = -\tfrac12 \left( (y - a)^T S^{-1} (y - a) - \hat\beta^T W \hat\beta
          + \log\det S + \log\det W + (n - m) \log 2\pi \right).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from typing import TypeAlias

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor

from latentpde.estimators.exact.conditioned import ConditionedModes, ConditionedState
from latentpde.estimators.exact.driven import DrivenMean
from latentpde.estimators.exact.forms import CovarianceForm, Factors, GaussianForm, NoiseForm, cholesky, log_det
from latentpde.estimators.exact.information import InformationForm
from latentpde.estimators.exact.mapped import MappedModes
from latentpde.estimators.exact.noise import Noise
from latentpde.estimators.exact.responses import KnownState, UnknownModes
from latentpde.estimators.exact.surrogate import Surrogate

# Above this many readings the information form is the cheaper one; of several snapshots it sums complex matrices.
COVARIANCE_LIMIT, COVARIANCE_LIMIT_OF_SEVERAL = 500, 800
_MEANS_AT_ONCE = 64
_BATCH_VALUES = 2**20  # entries of the largest array of a batch: 8 MB, which caches hold
_FACTORISED_ONCE = 2**18  # entries of the largest array of an evaluation that is not made again for the same parameters


#: Whitened unknowns, and coefficients of the trend: one set for each of some parameters.
Unknowns: TypeAlias = tuple[Complex[Tensor, "batch unknown"], Float[Tensor, "batch column"]]


class MarginalLikelihood:
    """Log likelihood of the parameters, and the conditional of everything else, for one case.

    Args:
        values: the readings.
        known: their mean where the initial state is known; ``None`` for zero.
        unknown: the modes of what is not known.
        noise: of the readings.
        trend: ``Phi``, columns of what is added to the field with a flat prior; none by default.
        form: ``"covariance"``, ``"information"``, or by default the cheaper one.
        driven: what their mean has more, where walls drive the field.
    """

    def __init__(
        self,
        values: Float[Tensor, " reading"],
        known: KnownState | None,
        unknown: UnknownModes | MappedModes | ConditionedModes,
        noise: Noise,
        trend: Float[Tensor, "reading column"] | None = None,
        form: str | None = None,
        driven: DrivenMean | None = None,
    ):
        self.values, self.known, self.unknown, self.driven = values, known, unknown, driven
        self.trend = values.new_zeros((len(values), 0)) if trend is None else trend
        if form is None:
            most = COVARIANCE_LIMIT if unknown.places.num_snapshots == 1 else COVARIANCE_LIMIT_OF_SEVERAL
            form = "covariance" if len(values) <= max(most, len(unknown)) else "information"
        self._form = _make_form(form, unknown, noise)

    @property
    def conditioned(self) -> ConditionedState | None:
        """The state where it has been conditioned on the cells of its start, which are no readings here."""
        return self.unknown.state if isinstance(self.unknown, ConditionedModes) else None

    @property
    def noise(self) -> Noise:
        """Of the readings."""
        return self._form.noise

    def with_values(
        self, values: Float[Tensor, " reading"], cells: Float[Tensor, " cell"] | None = None
    ) -> MarginalLikelihood:
        """That of other readings at the same places, with the same noise, and other values of the start's cells: what
        was factorised stays so."""
        other = copy(self)
        other.values = values
        if cells is not None and isinstance(self.unknown, ConditionedModes):
            other.unknown = self.unknown.with_state(self.unknown.state.with_values(cells))
        return other

    def shares(self, other: MarginalLikelihood) -> bool:
        """Whether the other is of readings at the same places, as `with_values` makes it."""
        return self._form is other._form

    @property
    def num_values(self) -> int:
        """Numbers in the largest array of an evaluation: what it costs."""
        return self._form.num_values

    def only(self, chosen: Int[Tensor, " chosen"]) -> MarginalLikelihood:
        """Given some of the readings only, in their order."""
        if self.known is not None:
            raise ValueError("readings of a known initial state are taken together")
        noise, unknown = self.noise.only(chosen), self.unknown.only(chosen)
        driven = None if self.driven is None else self.driven.only(chosen)
        return MarginalLikelihood(self.values[chosen], None, unknown, noise, self.trend[chosen], driven=driven)

    def with_noise(self, noise: Noise) -> MarginalLikelihood:
        """The same readings with other noise."""
        other = copy(self)
        other._form = self._form.with_noise(noise)
        return other

    @property
    def num_unknown(self) -> int:
        """Complex unknowns: modes of the source, and of the initial state where it is uncertain."""
        return len(self.unknown)

    def log_likelihood(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, " batch"]:
        """``log p(y | theta)`` with everything else integrated out; the cells of a start are among the readings."""
        misfit, log_det = self._evaluate(parameters)
        of_cells = 0.0 if self.conditioned is None else self.conditioned.log_evidence
        constant = (len(self.values) - self.trend.shape[1]) * math.log(2 * math.pi)
        return of_cells - 0.5 * (misfit + log_det + constant)

    def misfit(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, " batch"]:
        """Squared distance of the readings from their mean, in units of their covariance: if the parameters are right,
        a chi-squared variable with as many degrees of freedom as there are readings beyond the trend's columns."""
        return self._evaluate(parameters)[0]

    def surrogate(self, parameters: Float[Tensor, "1 parameter"]) -> Surrogate | None:
        """A cheap stand-in with the covariance taken at some parameters; ``None`` where the mean does not depend on
        them, so that nothing would be left of the likelihood."""
        if self.known is None or not self.known.num_modes or self.trend.shape[1] or self.noise.inferred:
            return None
        if self.driven is not None:
            return None
        return Surrogate(self.values, self.known, self._form, parameters)

    def with_extra_noise(self, std: float) -> MarginalLikelihood:
        """The same readings with more noise, which has broader modes."""
        return self.with_noise(self.noise.with_extra(std**2))

    def conditional(
        self, parameters: Float[Tensor, "batch parameter"], *, generator: torch.Generator | None = None
    ) -> Unknowns:
        """Whitened unknowns given the readings, and the trend's coefficients, one set for each of the parameters: their
        means, or with a generator a draw."""
        return self._conditionals(parameters, [generator])[0][0]

    def means_and_draws(
        self, parameters: Float[Tensor, "batch parameter"], generator: torch.Generator
    ) -> tuple[Unknowns, Unknowns, Float[Tensor, " batch"]]:
        """Both of what `conditional` gives, and the misfit, for the price of one."""
        (means, draws), misfit = self._conditionals(parameters, [None, generator])
        return means, draws, misfit

    def _conditionals(
        self, parameters: Tensor, generators: list[torch.Generator | None]
    ) -> tuple[list[Unknowns], Tensor]:
        """What `conditional` gives for each of the generators, and the misfit. Parameters that follow each other and
        are the same are factorised once where that takes long."""
        distinct, counts = parameters, None
        if self.num_values > _FACTORISED_ONCE:
            distinct, repeats = torch.unique_consecutive(parameters, dim=0, return_counts=True)
            counts = repeats.tolist()
        found: list[list[Unknowns]] = [[] for _ in generators]
        misfits = []
        for i, (few, residual) in enumerate(self._residuals(distinct, None if counts is None else 1)):
            num = 1 if counts is None else counts[i]
            factors = self._form.factorised(few)
            misfit, beta, factor = self._fitted(factors, residual)
            misfits.append(misfit.repeat(num))
            for own, generator in zip(found, generators, strict=True):
                own.append(self._conditional_few(factors, residual, beta, factor, generator, num))
        joined = [(torch.cat([u for u, _ in own]), torch.cat([b for _, b in own])) for own in found]
        if self.conditioned is not None:
            joined = [(u, self.conditioned.trend_of(u[:, -self.conditioned.num_unknown :])) for u, _ in joined]
        return joined, torch.cat(misfits)

    def _conditional_few(
        self,
        factors: Factors,
        residual: Tensor,
        beta: Tensor,
        factor: Tensor,
        generator: torch.Generator | None,
        num: int,
    ) -> Unknowns:
        """A mean, ``num`` times, or ``num`` draws for each set of parameters."""
        columns = 1 if generator is None else num
        beta = beta.expand(-1, -1, columns)
        if generator is not None and self.trend.shape[1]:
            normals = torch.randn(beta.shape, dtype=torch.float64, generator=generator)
            beta = beta + torch.linalg.solve_triangular(factor.mT, normals, upper=True)
        left = residual[..., None].expand(-1, -1, columns)
        unknown = factors.conditional(left - self.trend @ beta if self.trend.shape[1] else left, generator)
        return unknown.expand(-1, num, -1).flatten(0, 1), beta.mT.expand(-1, num, -1).flatten(0, 1)

    def blocks(
        self, field: str, whitened: Complex[Tensor, "batch unknown"], parameters: Float[Tensor, "batch parameter"]
    ) -> Complex[Tensor, "batch block"] | None:
        """The unknown part of a field's coefficients, as flat blocks in units; ``None`` where nothing is unknown."""
        start = 0
        for part, _ in self.unknown.parts:
            stop = start + part.num_unknown
            if part.field == field:
                return part.block(whitened[:, start:stop], parameters)
            start = stop
        return None

    def leave_one_out(
        self, parameters: Float[Tensor, "batch parameter"]
    ) -> tuple[Float[Tensor, "batch reading"], Float[Tensor, "batch reading"]]:
        """What all other readings predict for each, mean and standard deviation (noise included), in closed form."""
        found = [self._leave_one_out_few(*few) for few in self._residuals(parameters)]
        return torch.cat([mean for mean, _ in found]), torch.cat([std for _, std in found])

    def _leave_one_out_few(self, parameters: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        factors = self._form.factorised(parameters)
        dual, diagonal = factors.solve(residual[..., None])[..., 0], factors.diagonal()
        if self.trend.shape[1]:
            weighted = factors.solve(self.trend.expand(len(parameters), -1, -1))
            gain = torch.linalg.solve(self.trend.T @ weighted, weighted.mT)
            diagonal = diagonal - (weighted.mT * gain).sum(-2)
            dual = dual - (gain.mT @ (self.trend.T @ dual[..., None]))[..., 0]
        return self.values - dual / diagonal, 1 / torch.sqrt(diagonal)

    def residual(self, parameters: Float[Tensor, "1 parameter"]) -> Float[Tensor, " reading"]:
        """What the mean leaves of the readings."""
        ((_, residual),) = self._residuals(parameters[:1])
        return residual[0]

    def precision(self, parameters: Float[Tensor, "1 parameter"]) -> Float[Tensor, "reading reading2"]:
        """The inverse of the readings' covariance, less what the trend explains."""
        whole = self._form.factorised(parameters).solve(torch.eye(len(self.values), dtype=torch.float64)[None])[0]
        if not self.trend.shape[1]:
            return whole
        weighted = whole @ self.trend
        return whole - weighted @ torch.linalg.solve(self.trend.T @ weighted, weighted.T)

    def _evaluate(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """The misfit, and the logarithm of the determinants."""
        parts = [self._evaluate_few(*few) for few in self._residuals(parameters)]
        misfit, log_det = (torch.cat([part[i].expand(len(part[0])) for part in parts]) for i in (0, 1))
        return misfit, log_det

    def _evaluate_few(self, parameters: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        log_det_of_all, products = self._form.factorised(parameters).evaluated(self._columns(residual))
        misfit, factor, _ = self._without_trend(products)
        return misfit, log_det_of_all if factor is None else log_det_of_all + log_det(factor)

    def _fitted(self, factors: Factors, residual: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The misfit, the means of the trend's coefficients, as a column, and the lower factor of their precision."""
        misfit, factor, white = self._without_trend(factors.products(self._columns(residual)))
        if factor is None:
            return misfit, residual.new_zeros((len(residual), 0, 1)), residual.new_zeros((len(residual), 0, 0))
        return misfit, torch.linalg.solve_triangular(factor.mT, white, upper=True), factor

    def _without_trend(self, products: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """From products of residuals and the trend's columns: the misfit of what the trend leaves, the lower factor of
        the precision of its coefficients, and their means, whitened; no factor without a trend."""
        if not self.trend.shape[1]:
            return products[:, 0, 0], None, products[:, 1:, :1]
        factor = cholesky(products[:, 1:, 1:])
        white = torch.linalg.solve_triangular(factor, products[:, 1:, :1], upper=False)
        return products[:, 0, 0] - (white**2).sum((-2, -1)), factor, white

    def _columns(self, residual: Float[Tensor, "batch reading"]) -> Float[Tensor, "batch reading column"]:
        """Residuals, then the trend's columns."""
        if not self.trend.shape[1]:
            return residual[..., None]
        return torch.cat([residual[..., None], self.trend.expand(len(residual), -1, -1)], dim=-1)

    @property
    def batch(self) -> int:
        """How many sets of parameters go together."""
        return max(1, _BATCH_VALUES // self._form.num_values)

    def _residuals(self, parameters: Tensor, batch: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of parameters, and what their means leave of the readings. Means are taken in larger batches than
        matrices need: one at a time, each would read the whole table of waves again."""
        batch = batch or self.batch
        for some in parameters.split(max(batch, _MEANS_AT_ONCE)):
            residual = (self.values - self.mean(some)).expand(len(some), -1)
            yield from zip(some.split(batch), residual.split(batch), strict=True)

    def mean(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, "#batch reading"]:
        """What the readings would be without noise, without a trend and without anything unknown."""
        known = self.unknown if isinstance(self.unknown, ConditionedModes) else self.known
        mean = known.mean(parameters) if known else torch.zeros_like(self.values)[None]
        return mean if self.driven is None else mean + self.driven.mean(parameters)


def _make_form(name: str, unknown: UnknownModes | MappedModes | ConditionedModes, noise: Noise) -> GaussianForm:
    if not len(unknown):
        return NoiseForm(noise)
    if name == "covariance" or not isinstance(unknown, UnknownModes):
        return CovarianceForm(unknown, noise)
    return InformationForm(unknown, noise)
