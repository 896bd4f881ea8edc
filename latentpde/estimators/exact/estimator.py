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
from scipy.special import chdtrc
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.estimators.base import Estimator, decoder_for
from latentpde.estimators.exact.initial_state import InitialState
from latentpde.estimators.exact.likelihood import MarginalLikelihood
from latentpde.estimators.exact.prior import CoefficientPrior
from latentpde.estimators.exact.search import Effort, LogDensity, WeightedSamples, sample_box
from latentpde.estimators.seeds import case_seeds, derived_seed
from latentpde.grid import Grid, mode_weights, wavenumbers
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.posterior import LatentPosterior
from latentpde.progress import progress
from latentpde.validation import NotNegative, Positive, Real

_NODES_AT_ONCE = 16  # small enough for caches
_FIRST_EXTRA, _EXTRA_RATIO = 0.1, 0.2
_UNLIKELY = 1e-5  # probability of a misfit
MeanAndStd = Annotated[tuple[Real, Positive], Strict(False)]
StdAndSlope = Annotated[tuple[Positive, Positive], Strict(False)]
_EDGE = 1e-9  # how near to its bounds a coefficient may be drawn, as a share of their distance


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactPosterior(LatentPosterior):
    """Exact draws, and a mean that averages over many more coefficients than there are draws."""

    mean_z: Float[Tensor, "case node latent"]
    mean_initial_hat: list[Complex[Tensor, "*node row col"]]

    def means(
        self, cases: slice, grid: Grid, times: Float[Tensor, " time"], draws: Tensor | None = None
    ) -> Float[Tensor, "case time y x"]:
        spectra = [
            self._mean_spectrum(z, u0_hat, times)
            for z, u0_hat in zip(self.mean_z[cases], self.mean_initial_hat[cases], strict=True)
        ]
        return grid.synthesise(torch.stack(spectra))

    def _mean_spectrum(self, z: Tensor, u0_hat: Tensor, times: Tensor) -> Complex[Tensor, "time row col"]:
        states = u0_hat if u0_hat.ndim == 3 else u0_hat.expand(len(z), -1, -1)
        parts = zip(z.split(_NODES_AT_ONCE), states.split(_NODES_AT_ONCE), strict=True)
        return torch.stack([self.decoder.spectrum(*part, times).sum(0) for part in parts]).sum(0) / len(z)

    def warnings(self, case: int) -> list[str]:
        notes = {name: value[case] for name, value in self.diagnostics.items()}
        if notes["trusted"]:
            return []
        if not _explained(float(notes["misfit"]), int(self.observation.mask[case].sum())):
            return [
                f"The readings are not explained: their misfit is {notes['misfit']:.1f} where 1 is expected. Either "
                "their noise is larger than stated, or another PDE is at work, or the bounds exclude the truth."
            ]
        return [
            f"The search for the coefficients did not settle: {notes['effective_sample_size']:.0f} effective samples, "
            f"log evidences {notes['evidence_gap']:.1f} apart. Narrow the bounds, or raise the option sweep."
        ]

    def source_means(self, cases: slice, grid: Grid, draws: Tensor | None = None) -> Float[Tensor, "case y x"]:
        # the source is linear in the latent
        return self.decoder.source(self.mean_z[cases].mean(1), grid)


@dataclass(frozen=True, eq=False, kw_only=True)
class _CaseResult:
    """What is found for one case.

    Args:
        state: what is known of its initial state.
        z: draws of the latent.
        state_deviations: of the initial state's coarse coefficients, for each draw; ``None`` where they are known.
        seed: of the initial states' structure below the coarse cell.
        mean_z: conditional means of the latent, for each node that the mean averages over.
        mean_initial_hat: those of the initial state; one for all nodes where it is known.
        diagnostics: by name.
    """

    state: InitialState
    z: Float[Tensor, "draw latent"]
    state_deviations: Complex[Tensor, "draw mode"] | None
    seed: int
    mean_z: Float[Tensor, "node latent"]
    mean_initial_hat: Complex[Tensor, "*node row col"]
    diagnostics: dict[str, np.ndarray]

    def draw_initial_states(self) -> Complex[Tensor, "draw row col"]:
        """Fine initial states, one for each draw; the same ones every time."""
        return self.state.draw(self.state_deviations, len(self.z), seed=self.seed)


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
        return ExactPosterior(
            observation=observation,
            method=self.name,
            settings=self.settings(seed),
            diagnostics={name: np.stack([case.diagnostics[name] for case in cases]) for name in cases[0].diagnostics},
            decoder=decoder,
            z=torch.stack([case.z for case in cases]),
            initial_hat=lambda which: torch.stack([case.draw_initial_states() for case in cases[which]]),
            mean_z=torch.stack([case.mean_z for case in cases]),
            mean_initial_hat=[case.mean_initial_hat for case in cases],
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
        theta = prior.theta(samples.points[samples.resample(num_draws, generator=rng)])
        unknown = likelihood.conditional(theta, generator=torch_rng)
        nodes = prior.theta(samples.points[samples.resample(self.num_mean_nodes, generator=rng)])
        unknown_mean = likelihood.conditional(nodes)
        misfit = float(likelihood.misfit(nodes).min()) / len(likelihood.values)
        return _CaseResult(
            state=state,
            z=_pack(decoder.latent, theta, likelihood.source(unknown)),
            state_deviations=likelihood.state(unknown),
            seed=derived_seed(seed, "detail"),
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


def _explained(misfit: float, num_readings: int) -> bool:
    """Readings that the best coefficients do not explain mean that noise is understated, that the PDE is another, or
    that the search found the wrong place: in each case the result is not to be trusted."""
    return bool(chdtrc(num_readings, misfit * num_readings) > _UNLIKELY)


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
        "trusted": np.array(samples.trusted and _explained(misfit, num_readings)),
        "coefficient_mean": mean,
        "coefficient_std": np.sqrt(weights @ (theta - mean) ** 2),
    }
