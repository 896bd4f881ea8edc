r"""The exact posterior.

Given the coefficients, readings are affine in the Gaussian source, so

.. math:: p(\theta, q \mid y) = p(\theta \mid y)\; p(q \mid \theta, y)

with both factors at hand: :math:`p(y \mid \theta)` in closed form (`latentpde.estimators.exact.likelihood`), the few coefficients sampled
globally from it (`latentpde.estimators.exact.search`), and :math:`q` given each of them drawn exactly by Matheron's rule. What the
coarse initial state leaves open below its cells is drawn too (`latentpde.estimators.exact.subgrid`). The mean is Rao-Blackwellised: it
averages conditional means, not draws.

For ``lowres-solve`` readings this is the posterior, up to Monte Carlo error that the diagnostics state. Readings of
the true field (``pooled``, ``point``) also hear the initial state below the coarse cell; its share of their variance
is added to their noise, taken as independent between readings and evaluated in the middle of the coefficients'
bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Complex, Float
from scipy.special import chdtrc
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.estimators.base import Estimator, decoder_for
from latentpde.estimators.exact.initial_state import InitialState
from latentpde.estimators.exact.likelihood import CollapsedModel
from latentpde.estimators.exact.search import Effort, LogDensity, WeightedSamples, sample_box
from latentpde.estimators.seeds import case_seeds, derived_seed
from latentpde.grid import Grid, mode_weights, wavenumbers
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.posterior import LatentPosterior
from latentpde.progress import progress

_NODES_AT_ONCE = 16  # small enough for caches
_FIRST_BLUR, _BLUR_RATIO = 0.1, 0.2
_UNLIKELY = 1e-5  # probability of a misfit
_EDGE = 1e-9  # how near to its bounds a coefficient may be drawn, as a share of their distance


@dataclass(frozen=True, eq=False, kw_only=True)
class ExactPosterior(LatentPosterior):
    """Exact draws, and a mean that averages over many more coefficients than there are draws."""

    mean_z: Float[Tensor, "case node latent"]
    mean_initial_hat: list[Complex[Tensor, "*node row col"]]

    def means(self, cases: slice, grid: Grid, times: Float[Tensor, " time"]) -> Float[Tensor, "case time y x"]:
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

    def source_means(self, cases: slice, grid: Grid) -> Float[Tensor, "case y x"]:
        # the source is linear in the latent
        return self.decoder.source(self.mean_z[cases].mean(1), grid)


@dataclass(frozen=True, kw_only=True)
class Exact(Estimator):
    """The true posterior of field, source and coefficients.

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

    gaussian: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    detail: bool = True
    initial_noise_std: float = 0.0
    initial_prior: tuple[float, float] | None = None
    num_mean_nodes: int = 128
    sweep: int = Effort.sweep
    target: float = Effort.target

    def __post_init__(self):
        if not (math.isfinite(self.initial_noise_std) and self.initial_noise_std >= 0):
            raise UsageError(f"initial_noise_std must be finite and not negative, got {self.initial_noise_std}")
        if self.num_mean_nodes < 1 or self.sweep < 2 or not self.target > 0:
            raise UsageError("exact needs num_mean_nodes >= 1, sweep >= 2 and target > 0")

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> ExactPosterior:
        prior = _Prior.of(latent, self.gaussian, self.fixed)
        decoder = decoder_for(observation, latent)
        states, draws, nodes, means, notes, unknowns, seeds = [], [], [], [], [], [], []
        with progress(self.name, len(observation), show=show_progress) as advance:
            for i, case_seed in enumerate(case_seeds(observation, seed)):
                case = observation[i : i + 1]
                rng = np.random.default_rng(case_seed)
                torch_rng = torch.Generator().manual_seed(case_seed)
                state = InitialState.of(
                    case, detail=self.detail, noise_std=self.initial_noise_std, prior=self.initial_prior
                )
                model = CollapsedModel(case, decoder, state.mean_hat, state.std, _detail_variance(state, case, decoder))
                samples = self.search(model, prior, rng)
                theta = prior.theta(samples.points[samples.resample(num_draws, generator=rng)])
                unknown = model.conditional(theta, generator=torch_rng)
                draws.append(_pack(latent, theta, model.source(unknown)))
                unknowns.append(model.state(unknown))
                theta = prior.theta(samples.points[samples.resample(self.num_mean_nodes, generator=rng)])
                unknown = model.conditional(theta)
                misfit = float(model.misfit(theta).min()) / len(model.values)
                nodes.append(_pack(latent, theta, model.source(unknown)))
                means.append(state.mean(model.state(unknown)))
                states.append(state)
                seeds.append(derived_seed(case_seed, "detail"))
                notes.append(_describe(samples, prior, misfit, len(model.values)))
                advance(1)

        def initial_hat(cases: slice) -> Complex[Tensor, "case draw row col"]:
            chosen = zip(states[cases], unknowns[cases], seeds[cases], strict=True)
            return torch.stack([state.draw(unknown, num_draws, seed=own) for state, unknown, own in chosen])

        return ExactPosterior(
            observation=observation,
            method=self.name,
            settings=self.settings(seed),
            diagnostics={name: np.stack([note[name] for note in notes]) for name in notes[0]},
            decoder=decoder,
            z=torch.stack(draws),
            initial_hat=initial_hat,
            mean_z=torch.stack(nodes),
            mean_initial_hat=means,
        )

    def search(self, model: CollapsedModel, prior: _Prior, rng: np.random.Generator) -> WeightedSamples:
        """Coefficients, on the unit box."""

        def on_box(function: Callable[[Tensor], Tensor]) -> LogDensity:
            def log_density(points: np.ndarray) -> np.ndarray:
                with torch.no_grad():
                    theta = prior.theta(points)
                    return (function(theta) + prior.log_density(theta)).numpy()

            return log_density

        log_density = on_box(model.log_likelihood)
        if not prior.num_free:
            value = float(log_density(np.zeros((1, 0)))[0])
            return WeightedSamples(np.zeros((1, 0)), np.zeros(1), value, 0.0, 1.0, 0.0, 1, 1, True)
        easier = [model.blurred(std) for std in _blurs(model)]
        likeness = (easier[0] if easier else model).likeness()
        return sample_box(
            log_density,
            prior.num_free,
            generator=rng,
            effort=Effort(sweep=self.sweep, target=self.target),
            easier=[on_box(blurred.log_likelihood) for blurred in easier],
            likeness=on_box(likeness) if likeness else None,
        )


def _blurs(model: CollapsedModel) -> list[float]:
    """Noise to begin the search with where the readings have next to none: modes are as narrow as noise is small."""
    signal, noise = float(model.values.square().mean().sqrt()), float(model.variance.min().sqrt())
    blurs = []
    while (blur := _FIRST_BLUR * signal * _BLUR_RATIO ** len(blurs)) > 2 * noise:
        blurs.append(blur)
    return blurs


@dataclass(frozen=True, eq=False)
class _Prior:
    """Free coefficients on a unit box, the others fixed; uniform or Gaussian."""

    latent: Latent
    base: Float[Tensor, " coefficient"]
    free: Tensor
    centre: Float[Tensor, " coefficient"]
    width: Float[Tensor, " coefficient"]

    @classmethod
    def of(cls, latent: Latent, gaussian: Mapping[str, tuple[float, float]], fixed: Mapping[str, float]) -> _Prior:
        names = latent.family.coefficient_names
        unknown = sorted((set(gaussian) | set(fixed)) - set(names))
        if unknown or set(gaussian) & set(fixed):
            raise UsageError(
                f"prior for {', '.join(unknown) or 'a fixed coefficient'}: give each of {', '.join(names)} at most one"
            )
        lower, upper = latent.bounds.unbind(-1)
        base, centre = lower.clone(), lower.clone()
        width = torch.full_like(base, torch.inf)
        for name, value in fixed.items():
            j = names.index(name)
            if not lower[j] <= value <= upper[j]:
                raise UsageError(f"{name} is fixed at {value}, outside its bounds [{lower[j]:g}, {upper[j]:g}]")
            base[j] = value
        for name, (mean, std) in gaussian.items():
            if not (math.isfinite(mean) and 0 < std < math.inf):
                raise UsageError(f"the prior of {name} needs a finite mean and a positive std, got {mean}, {std}")
            centre[names.index(name)], width[names.index(name)] = mean, std
        free = torch.tensor([j for j, name in enumerate(names) if name not in fixed], dtype=torch.long)
        return cls(latent, base, free, centre, width)

    @property
    def num_free(self) -> int:
        return len(self.free)

    def theta(self, points: np.ndarray) -> Float[Tensor, "point coefficient"]:
        lower, upper = self.latent.bounds[self.free].unbind(-1)
        theta = self.base.repeat(len(points), 1)
        theta[:, self.free] = lower + (upper - lower) * torch.from_numpy(points)
        return theta

    def log_density(self, theta: Float[Tensor, "point coefficient"]) -> Float[Tensor, " point"]:
        """On the unit box; zero where all is uniform."""
        lower, upper = self.latent.bounds.unbind(-1)
        normal = torch.distributions.Normal(self.centre, torch.where(self.width.isinf(), 1.0, self.width))
        inside = normal.cdf(upper) - normal.cdf(lower)
        log_ratio = normal.log_prob(theta) + torch.log((upper - lower) / inside)
        return torch.where(self.width.isinf(), 0.0, log_ratio).sum(-1)


def _pack(latent: Latent, theta: Tensor, q: Tensor) -> Float[Tensor, "draw latent"]:
    lower, upper = latent.bounds.unbind(-1)
    margin = _EDGE * (upper - lower)
    return latent.pack(torch.minimum(torch.maximum(theta, lower + margin), upper - margin), q)


def _detail_variance(state: InitialState, case: Observation, decoder) -> float:
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


def _describe(samples: WeightedSamples, prior: _Prior, misfit: float, num_readings: int) -> dict[str, np.ndarray]:
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
