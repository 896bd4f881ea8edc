r"""The exact posterior.

Given the coefficients, readings are affine in the Gaussian source, so

.. math:: p(\theta, q \mid y) = p(\theta \mid y)\; p(q \mid \theta, y)

with both factors at hand: :math:`p(y \mid \theta)` in closed form (`latentpde.estimators.exact.likelihood`), the few
coefficients sampled globally from it (`latentpde.estimators.exact.search`), and :math:`q` given each of them drawn
exactly by Matheron's rule. What the coarse initial state leaves open below its cells is drawn too
(`latentpde.estimators.exact.subgrid`). The mean is Rao-Blackwellised: it averages conditional means, not draws.

For ``lowres-solve`` readings this is the posterior, up to Monte Carlo error that the diagnostics state. Readings of
the true field (``pooled``, ``point``) also see the initial state below the coarse cell; its share of their variance
is added to their noise, taken as independent between readings and evaluated in the middle of the coefficients'
bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Complex, Float
from pydantic import Strict
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.estimators.base import Estimator, decoder_for
from latentpde.estimators.exact.initial_state import InitialState
from latentpde.estimators.exact.likelihood import MarginalLikelihood
from latentpde.estimators.exact.posterior import DrawnStates, ExactPosterior, explained
from latentpde.estimators.exact.prior import CoefficientPrior
from latentpde.estimators.exact.search import Effort, LogDensity, WeightedSamples, sample_box
from latentpde.estimators.seeds import case_seeds, derived_seed
from latentpde.grid import mode_weights, wavenumbers
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.progress import progress
from latentpde.validation import NotNegative, Positive, Real

_FIRST_EXTRA, _EXTRA_RATIO = 0.1, 0.2
MeanAndStd = Annotated[tuple[Real, Positive], Strict(False)]
StdAndSlope = Annotated[tuple[Positive, Positive], Strict(False)]
_EDGE = 1e-9  # how near to its bounds a coefficient may be drawn, as a share of their distance


@dataclass(frozen=True, eq=False)
class _Draws:
    """Draws of one case: of the latent, of the deviations of the initial state's coarse coefficients where these are
    not known, and the seed of the initial states' structure below the coarse cell."""

    z: Float[Tensor, "draw latent"]
    state_deviations: Complex[Tensor, "draw mode"] | None
    seed: int


@dataclass(frozen=True, eq=False, kw_only=True)
class _CaseResult:
    """What is found for one case.

    Args:
        state: what is known of its initial state.
        kept: the draws that were asked for.
        spread: those for the spread, where there are more of them.
        mean_z, mean_initial_hat: as those of `ExactPosterior`.
        diagnostics: by name.
    """

    state: InitialState
    kept: _Draws
    spread: _Draws | None
    mean_z: Float[Tensor, "node latent"]
    mean_initial_hat: Complex[Tensor, "*node row col"]
    diagnostics: dict[str, np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Exact(Estimator):
    """The true posterior of field, source and coefficients.

    >>> import latentpde as lp
    >>> cases = lp.simulate("diffusion", num=1, shape=(16, 16), num_modes=2, sparsity=0.5)
    >>> posterior = lp.reconstruct(cases, method="exact", num_draws=3, fixed={"vx": 0.0, "vy": 0.0})
    >>> posterior.draws(resolution=16).shape, bool(posterior.diagnostics["trusted"][0])
    ((1, 3, 16, 16), True)

    Args:
        gaussian: a Gaussian prior for some coefficients instead of the uniform one, ``{name: (mean, std)}``, cut off at
            the bounds.
        fixed: known coefficients, ``{name: value}``.
        detail: whether draws carry structure below the coarse cell.
        initial_noise_std: standard deviation of the noise in the initial state's cells.
        initial_prior: ``(std, slope)`` of the initial state's power law, used where there is no initial state at all;
            by default it is fitted.
        num_mean_nodes: coefficients that the mean averages over.
        num_spread_draws: draws that standard deviations and quantiles are taken over, at least 2, unless more are kept.
            With 199 a standard deviation is known to 5 % of itself, and an interval of 90 % holds 90 %, give or take
            2 % at each point.
        sweep, target: effort of the search, see `latentpde.estimators.exact.search.Effort`.
    """

    name = "exact"
    summary = "the true posterior: source integrated out, coefficients sampled globally; the default"

    gaussian: Mapping[str, MeanAndStd] = field(default_factory=dict)
    fixed: Mapping[str, Real] = field(default_factory=dict)
    detail: bool = True
    initial_noise_std: NotNegative = 0.0
    initial_prior: StdAndSlope | None = None
    num_mean_nodes: Annotated[int, Ge(1), Le(100_000)] = 128
    num_spread_draws: Annotated[int, Ge(2), Le(100_000)] = 199
    sweep: Annotated[int, Ge(2), Le(2**20)] = Effort.sweep
    target: Annotated[float, Gt(0.0), Le(1e6)] = Effort.target

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> ExactPosterior:
        prior = CoefficientPrior.of(latent, self.gaussian, self.fixed)
        decoder = decoder_for(observation, latent)
        cases = []
        with progress(self.name, len(observation), show=show_progress) as advance:
            for i, seed_of_case in enumerate(case_seeds(observation, seed)):
                cases.append(self._estimate_case(observation[i : i + 1], decoder, prior, num_draws, seed_of_case))
                advance(1)
        states, further = [case.state for case in cases], [case.spread for case in cases if case.spread]
        z, initial_hat = _join(states, [case.kept for case in cases])
        spread_z, spread_initial_hat = _join(states, further) if further else (None, None)
        return ExactPosterior(
            observation=observation,
            method=self.name,
            settings=self.settings(seed),
            diagnostics={name: np.stack([case.diagnostics[name] for case in cases]) for name in cases[0].diagnostics},
            decoder=decoder,
            z=z,
            initial_hat=initial_hat,
            mean_z=torch.stack([case.mean_z for case in cases]),
            mean_initial_hat=[case.mean_initial_hat for case in cases],
            spread_z=spread_z,
            spread_initial_hat=spread_initial_hat,
        )

    def _estimate_case(
        self, case: Observation, decoder: Decoder, prior: CoefficientPrior, num_draws: int, seed: int
    ) -> _CaseResult:
        rng, torch_rng = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
        state = InitialState.of(case, detail=self.detail, noise_std=self.initial_noise_std, prior=self.initial_prior)
        likelihood = MarginalLikelihood(
            case, decoder, state.mean_hat, state.std, _detail_variance(state, case, decoder)
        )
        samples = self.search(likelihood, prior, rng)

        def draw(num: int, rng: np.random.Generator, torch_rng: torch.Generator, seed: int) -> _Draws:
            theta = prior.theta(samples.points[samples.resample(num, generator=rng)])
            unknown = likelihood.conditional(theta, generator=torch_rng)
            z = _pack(decoder.latent, theta, likelihood.source(unknown))
            return _Draws(z, likelihood.state(unknown), derived_seed(seed, "detail"))

        kept = draw(num_draws, rng, torch_rng, seed)
        nodes = prior.theta(samples.points[samples.resample(self.num_mean_nodes, generator=rng)])
        unknown_mean = likelihood.conditional(nodes)
        misfit = float(likelihood.misfit(nodes).min()) / len(likelihood.values)
        spread = None
        if num_draws < self.num_spread_draws:
            # of a seed of their own, so that they are the same however many draws are kept
            own = derived_seed(seed, "spread")
            spread = draw(self.num_spread_draws, np.random.default_rng(own), torch.Generator().manual_seed(own), own)
        return _CaseResult(
            state=state,
            kept=kept,
            spread=spread,
            mean_z=_pack(decoder.latent, nodes, likelihood.source(unknown_mean)),
            mean_initial_hat=state.mean(likelihood.state(unknown_mean)),
            diagnostics=_describe(samples, prior, misfit, len(likelihood.values)),
        )

    def search(
        self, likelihood: MarginalLikelihood, prior: CoefficientPrior, rng: np.random.Generator
    ) -> WeightedSamples:
        """Coefficients, on the unit box."""

        def on_box(function: Callable[[Tensor], Tensor]) -> LogDensity:
            def log_density(points: np.ndarray) -> np.ndarray:
                with torch.no_grad():
                    theta = prior.theta(points)
                    return (function(theta) + prior.log_density(theta)).numpy()

            return log_density

        log_density = on_box(likelihood.log_likelihood)
        if not prior.num_free:
            value = float(log_density(np.zeros((1, 0)))[0])
            return WeightedSamples(np.zeros((1, 0)), np.zeros(1), value, 0.0, 1.0, 0.0, 1, 1, True)
        easier = [likelihood.with_extra_noise(std) for std in _extra_noise(likelihood)]
        surrogate = (easier[0] if easier else likelihood).surrogate()
        return sample_box(
            log_density,
            prior.num_free,
            generator=rng,
            effort=Effort(sweep=self.sweep, target=self.target),
            easier=[on_box(noisier.log_likelihood) for noisier in easier],
            surrogate=on_box(surrogate.log_likelihood) if surrogate else None,
        )


def _join(states: list[InitialState], draws: list[_Draws]) -> tuple[Float[Tensor, "case draw latent"], DrawnStates]:
    """Draws of several cases as one tensor, with their initial states."""
    z = torch.stack([own.z for own in draws])
    return z, DrawnStates(states, [own.state_deviations for own in draws], [own.seed for own in draws], z.shape[1])


def _extra_noise(likelihood: MarginalLikelihood) -> list[float]:
    """Noise to begin the search with where the readings have next to none: modes are as narrow as noise is small."""
    signal, noise = float(likelihood.values.square().mean().sqrt()), float(likelihood.variance.min().sqrt())
    stds = []
    while (std := _FIRST_EXTRA * signal * _EXTRA_RATIO ** len(stds)) > 2 * noise:
        stds.append(std)
    return stds


def _pack(latent: Latent, theta: Tensor, q: Tensor) -> Float[Tensor, "draw latent"]:
    lower, upper = latent.bounds.unbind(-1)
    margin = _EDGE * (upper - lower)
    return latent.pack(torch.minimum(torch.maximum(theta, lower + margin), upper - margin), q)


def _detail_variance(state: InitialState, case: Observation, decoder: Decoder) -> float:
    """Variance that structure below the coarse cell adds to a reading of the true field."""
    power = state.detail_power
    if case.observed == "lowres-solve" or power is None:
        return 0.0
    middle = decoder.latent.bounds.mean(-1)[None]
    k = wavenumbers((power.shape[-2], power.shape[-1]), decoder.extent)
    response = decoder.latent.family.state_response(k, case.times[-1:], middle).abs() ** 2
    weight = mode_weights(power.shape[-1])
    return float((weight * power * response.reshape(power.shape)).sum())


def _describe(
    samples: WeightedSamples, prior: CoefficientPrior, misfit: float, num_readings: int
) -> dict[str, np.ndarray]:
    theta, weights = prior.theta(samples.points).numpy(), np.exp(samples.log_weights)
    mean = weights @ theta
    return {
        "log_evidence": np.array(samples.log_evidence),
        "log_evidence_error": np.array(samples.log_evidence_error),
        "evidence_gap": np.array(samples.evidence_gap),
        "effective_sample_size": np.array(samples.effective_size),
        "num_evaluations": np.array(samples.num_evaluations),
        "num_rounds": np.array(samples.num_rounds),
        "misfit": np.array(misfit),
        "trusted": np.array(samples.trusted and explained(misfit, num_readings)),
        "coefficient_mean": mean,
        "coefficient_std": np.sqrt(weights @ (theta - mean) ** 2),
    }
