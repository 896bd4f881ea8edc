r"""The exact posterior.

Given the coefficients, readings are affine in the Gaussian source, so

.. math:: p(\theta, q \mid y) = p(\theta \mid y)\; p(q \mid \theta, y)

with both factors at hand: :math:`p(y \mid \theta)` in closed form (`latentpde.estimators.exact.likelihood`), the few
coefficients sampled globally from it (`latentpde.estimators.exact.search`), and :math:`q` given each of them drawn
exactly by Matheron's rule. What the coarse initial state leaves open below its cells is drawn too
(`latentpde.estimators.exact.subgrid`). The mean is Rao-Blackwellised: it averages conditional means, not draws.
What else is not known (the initial state, the level of the noise, the strength and length of state and source, a
constant or a trend) is part of the same posterior: `latentpde.estimators.exact.model`.

For ``lowres-solve`` readings this is the posterior, up to Monte Carlo error that the diagnostics state. Readings of
the true field (``pooled``, ``point``) also see the initial state below the coarse cell; its share of their variance
is added to their noise, taken as independent between readings and evaluated in the middle of the coefficients'
bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Float
from pydantic import InstanceOf, Strict
from torch import Tensor

from latentpde.domain import Domain
from latentpde.errors import UsageError
from latentpde.estimators.base import Estimator
from latentpde.estimators.exact.cases import (
    CaseResult,
    join_kept,
    join_spread,
    left_out_with_lift,
    moving,
    set_aside,
)
from latentpde.estimators.exact.checks import check_case, node_checks
from latentpde.estimators.exact.diagnostics import describe, left_out, prior_to_noise
from latentpde.estimators.exact.estimate import needs_of
from latentpde.estimators.exact.initial_state import InitialState
from latentpde.estimators.exact.likelihood import MarginalLikelihood
from latentpde.estimators.exact.model import Draws, Model
from latentpde.estimators.exact.parallel import on_one_thread
from latentpde.estimators.exact.parameters import Parameters
from latentpde.estimators.exact.posterior import ExactPosterior
from latentpde.estimators.exact.problem import Problem, models_of
from latentpde.estimators.exact.robust import robust_search
from latentpde.estimators.exact.samples import ParameterSamples
from latentpde.estimators.exact.sampling import MOST_VALUES, Begun, Inspect, Sampler
from latentpde.estimators.exact.search import Effort, WeightedSamples
from latentpde.estimators.exact.widening import TooNarrow, require_wide, widened
from latentpde.estimators.seeds import case_seeds, derived_seed
from latentpde.latent import Latent
from latentpde.needs import Needs
from latentpde.observation import Observation
from latentpde.observation.lifting import lift_of, without_lift
from latentpde.observation.unfolding import unfolded
from latentpde.progress import Say, progress
from latentpde.spectra import Spectrum
from latentpde.validation import NotNegative, Positive, Real

MeanAndStd = Annotated[tuple[Real, Positive], Strict(False)]
_MOST_WIDENINGS = 3


@dataclass(frozen=True, kw_only=True)
class Exact(Estimator):
    """The true posterior of field, source and coefficients, and of all else that is not known.

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
        initial: the prior of an initial state that is not known, or not everywhere; `latentpde.Matern` by default.
        source: the prior of the source; by default the latent's where its strength is known, else `latentpde.Matern`.
        trend: what is added to the field with a flat prior: ``none``, a ``constant``, or a ``linear`` function of the
            place; by default a constant where the initial state is not known.
        velocity: the prior of the velocity that the state of a family of order 2 starts with, or ``zero``; by default
            what the observation says, or zero.
        noise_bounds: of the noise's standard deviation, where it is inferred; by default they follow from the data.
        robust: whether readings may be outliers, whose noise has heavy tails: see `latentpde.estimators.exact.robust`.
        num_mean_nodes: coefficients that the mean averages over where no draws are made for the spread; else those of
            these draws.
        num_spread_draws: draws that standard deviations and quantiles are taken over, at least 2, unless more are kept.
            With 199 a standard deviation is known to 5 % of itself, and an interval of 90 % holds 90 %, give or take
            2 % at each point.
        sweep, target: effort of the search, see `latentpde.estimators.exact.search.Effort`.
    """

    name = "exact"
    summary = "the true posterior: source integrated out, coefficients sampled globally; the default"
    takes_data_as_they_come = True
    cases_at_once = 1

    gaussian: Mapping[str, MeanAndStd] = field(default_factory=dict)
    fixed: Mapping[str, Real] = field(default_factory=dict)
    detail: bool = True
    initial_noise_std: NotNegative = 0.0
    initial: InstanceOf[Spectrum] | None = None
    source: InstanceOf[Spectrum] | None = None
    trend: Literal["none", "constant", "linear"] | None = None
    velocity: InstanceOf[Spectrum] | Literal["zero"] | None = None
    noise_bounds: Annotated[tuple[Positive, Positive], Strict(False)] | None = None
    robust: bool = False
    num_mean_nodes: Annotated[int, Ge(1), Le(100_000)] = 128
    num_spread_draws: Annotated[int, Ge(2), Le(100_000)] = 199
    sweep: Annotated[int, Ge(2), Le(2**20)] = Effort.sweep
    target: Annotated[float, Gt(0.0), Le(1e6)] = Effort.target

    def needs(self, observation: Observation, latent: Latent, num_draws: int) -> Needs:
        num_nodes = num_draws + max(self.num_mean_nodes, self.num_spread_draws)
        return needs_of(observation, latent, num_nodes, self.sweep, self.target, robust=self.robust)

    def estimate(
        self, observation: Observation, latent: Latent, *, num_draws: int, seed: int, show_progress: bool = False
    ) -> ExactPosterior:
        latent, models, cases = self._within_wide_bounds(observation, latent, num_draws, seed, show_progress)
        z, initial_hat = join_kept(cases)
        spread_z, spread_initial_hat, spread_trend = join_spread(cases)
        return ExactPosterior(
            observation=observation,
            method=self.name,
            settings={**self.settings(seed), **models[0].settings(), "trend": self._trend(observation)},
            diagnostics={name: np.stack([case.diagnostics[name] for case in cases]) for name in cases[0].diagnostics}
            | set_aside(observation, cases),
            decoder=models[0].users_decoder,
            z=z,
            initial_hat=initial_hat,
            mean_z=torch.stack([case.mean.z for case in cases]),
            mean_initial_hat=[case.mean_initial_hat for case in cases],
            spread_z=spread_z,
            spread_initial_hat=spread_initial_hat,
            trend=torch.stack([case.kept.trend for case in cases]),
            mean_trend=torch.stack([case.mean.trend for case in cases]),
            spread_trend=spread_trend,
            level_names=models[0].level_names,
            level_draws=torch.stack([case.kept.parameters[:, latent.num_coefficients :] for case in cases]),
            mean_levels=torch.stack([case.mean.parameters[:, latent.num_coefficients :] for case in cases]),
            left_out=left_out_with_lift(observation, [case.left_out for case in cases]),
            samples=[case.samples for case in cases],
            factors=[case.factors for case in cases],
            make_models=self.models,
            prior=latent,
        )

    def _within_wide_bounds(
        self, observation: Observation, latent: Latent, num_draws: int, seed: int, show_progress: bool
    ) -> tuple[Latent, list[Model], list[CaseResult]]:
        """All cases, and the latent with bounds that are wide enough, or have been widened often enough."""
        begin = None  # where the search of a case that is alone goes on, in the user's units
        given = observation, num_draws, seed, show_progress
        for _ in range(_MOST_WIDENINGS):
            try:
                models, cases = self._estimate_cases(latent, *given, begin=begin, last=False)
                if len(cases) == 1:  # whose draws have been looked at; to look at others would be to toss again
                    return latent, models, cases
                found = torch.cat([case.mean.parameters for case in cases])
                wider = widened(latent, found, models[0].users_levels)
                if wider is None:
                    return latent, models, cases
                begin = None
            except TooNarrow as narrow:
                wider = widened(latent, narrow.parameters, narrow.levels) or latent
                knows = len(observation) == 1 and len(narrow.tops)
                begin = Begun(narrow.tops, latent.bounds) if knows else None
            latent = wider
        return latent, *self._estimate_cases(latent, *given, begin=begin, last=True)

    def _estimate_cases(
        self,
        latent: Latent,
        observation: Observation,
        num_draws: int,
        seed: int,
        show_progress: bool,
        *,
        begin: Begun | None,
        last: bool,
    ) -> tuple[list[Model], list[CaseResult]]:
        """All cases within the bounds of the latent; unless they are the last, `TooNarrow` may be raised. A search that
        has been made within narrower bounds begins with what it found."""
        models, cases, seeds = self.models(observation, latent), [], case_seeds(observation, seed)
        if models[0].state is None and self._knows_everything(observation, latent):
            # cases of one layout share their draws about the mean; so does each by itself
            seeds = [derived_seed(seed, str(num)) for num in observation.num_readings.tolist()]
        with progress(self.name, len(observation), show=show_progress) as advance:
            for model, seed_of_case in zip(models, seeds, strict=True):
                alike = () if self.robust else (case for case in cases if case.first is None)
                first = next((case for case in alike if case.model.shares(model)), None)
                inspect = None if last else partial(_require_wide, latent, model, len(models) == 1)
                search = partial(self._search, model, inspect, begin, advance.say)
                with on_one_thread(model.likelihood.num_values <= MOST_VALUES):
                    cases.append(self._estimate_case(model, search, num_draws, seed_of_case, first))
                advance(1)
        return models, cases

    def models(self, observation: Observation, latent: Latent) -> list[Model]:
        """The model of each case; all on one rectangle and with blocks of one shape."""
        lift, observation = lift_of(observation), without_lift(observation, latent.family)
        velocity = self.velocity if isinstance(self.velocity, Spectrum) else None
        if self.velocity is not None:
            observation = replace(observation, initial_velocity=None)
        if (velocity is not None or observation.initial_velocity is not None) and latent.family.order != 2:
            raise UsageError(
                f"{latent.family.name} is of order {latent.family.order} in time: it starts with no velocity"
            )
        cases = [observation[i : i + 1] for i in range(len(observation))]
        domain = observation.domain or Domain.periodic()
        if observation.has_whole_initial and not domain.is_open and self._trend(observation) == "none":
            mirror, wide = domain.mirror, [unfolded(case) for case in cases]
            states = [
                InitialState.of(case, detail=self.detail, noise_std=self.initial_noise_std, mirror=mirror)
                for case in wide
            ]
            return [
                Model.with_known_start(
                    case,
                    latent,
                    state,
                    source=self.source,
                    velocity=velocity,
                    mirror=mirror,
                    lift=lift,
                    noise_bounds=self.noise_bounds,
                )
                for case, state in zip(wide, states, strict=True)
            ]
        if observation.initial_velocity is not None:
            raise UsageError(
                "an initial velocity can be given with a whole initial state and edges that are not open; elsewhere it "
                "is unknown in part: give its prior instead, such as velocity=lp.Matern()"
            )
        known = self._knows_everything(observation, latent)
        priors = (self.initial, self.source, velocity)
        problems = [Problem.of(case, latent, self.initial_noise_std, *priors, in_users_units=known) for case in cases]
        options: dict[str, Any] = {"initial": self.initial, "source": self.source, "velocity": velocity}
        options |= {"trend": self._trend(observation), "lift": lift, "noise_bounds": self.noise_bounds}
        largest = max(problem.num_modes(*priors) for problem in problems)
        return models_of(problems, largest, **options)

    def _trend(self, observation: Observation) -> str:
        """What is added to the field: by default a constant, where its start is not known and it may have one."""
        domain = observation.domain or Domain.periodic()
        known_start = observation.has_whole_initial and not domain.is_open
        vanishes = "dirichlet" in (domain.y, domain.x)
        return self.trend or ("none" if known_start or vanishes else "constant")

    def _knows_everything(self, observation: Observation, latent: Latent) -> bool:
        """Whether nothing is to be inferred but fields, so that all is closed form, and cases may share it."""
        priors = [prior for prior in (self.initial, self.source, self.velocity) if prior is not None]
        order = latent.family.order
        source_known = self.source is not None or not (latent.infers_source and latent.num_modes)
        return (
            set(self.fixed) == set(latent.family.coefficient_names)
            and not bool(observation.noise_std[observation.mask].isnan().any())
            and all(
                isinstance(getattr(prior, name), float | int)
                for prior in priors
                if isinstance(prior, Spectrum)
                for name in prior.levels
            )
            and source_known
            and (self.initial is not None or not order)
        )

    def _estimate_case(
        self,
        model: Model,
        search: Callable[[Parameters, np.random.Generator, MarginalLikelihood], WeightedSamples],
        num_draws: int,
        seed: int,
        first: CaseResult | None,
    ) -> CaseResult:
        """One case; ``first`` is another of its layout."""
        rng, torch_rng = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
        parameters = Parameters.of(
            model.decoder.latent, model.in_its_units(self.gaussian), model.in_its_units(self.fixed), model.levels
        )

        if self.robust:
            own = derived_seed(seed, "robust")  # so that clean readings give the same bits as without

            def own_search(likelihood: MarginalLikelihood) -> WeightedSamples:
                nonlocal rng
                rng = np.random.default_rng(seed)  # the last search is as if it were the only one
                return search(parameters, rng, likelihood)

            model, samples, outliers_settled = robust_search(model, parameters, own_search, np.random.default_rng(own))
        else:
            samples, outliers_settled = search(parameters, rng, model.likelihood), True

        if first is not None:
            kept, spread, mean = first.moved_to(model)
            misfits = model.likelihood.misfit(mean.own_parameters)
        else:
            kept, spread, mean, misfits = self._draws(model, parameters, samples, num_draws, rng, torch_rng, seed)
        misfit = float(misfits.min()) / len(model.likelihood.values)
        states = mean.initial_hat if model.state is None else model.state.mean(mean.state_deviations)
        assert states is not None
        checks = first.checks if first else node_checks(model, mean.own_parameters)
        size = float(first.diagnostics["prior_to_noise"]) if first else prior_to_noise(model, mean.own_parameters)
        return CaseResult(
            model=model,
            kept=kept,
            spread=spread,
            mean=mean,
            mean_initial_hat=moving(states, mean),
            left_out=left_out(model, mean.own_parameters),
            samples=ParameterSamples.of(samples, parameters, model),
            checks=checks if model.state is None else [],
            diagnostics=describe(samples, parameters, model, check_case(model, checks), misfit, size, outliers_settled),
            first=first,
        )

    def _search(
        self,
        model: Model,
        inspect: Inspect | None,
        begin: Begun | None,
        say: Say,
        parameters: Parameters,
        rng: np.random.Generator,
        likelihood: MarginalLikelihood,
    ) -> WeightedSamples:
        """Coefficients and levels of one case, on the unit box."""
        begin = begin and begin.in_units(model.units_of_parameters)
        return Sampler(parameters, self.sweep, self.target, inspect, say, begin).sample(likelihood, rng)

    def _draws(
        self,
        model: Model,
        parameters: Parameters,
        samples: WeightedSamples,
        num_draws: int,
        rng: np.random.Generator,
        torch_rng: torch.Generator,
        seed: int,
    ) -> tuple[Draws, Draws | None, Draws, Tensor]:
        """The draws that are kept, those for the spread if these are more, conditional means, and their misfits."""

        def nodes(num: int, rng: np.random.Generator) -> Tensor:
            # in order, so that nodes that are the same follow each other
            return parameters.at(samples.points[np.sort(samples.resample(num, generator=rng))])

        order = torch.from_numpy(rng.permutation(num_draws))
        kept = model.draw(nodes(num_draws, rng), torch_rng, derived_seed(seed, "detail")).in_order(order)
        # of a seed of their own, so that they are the same however many draws are kept
        own = derived_seed(seed, "spread")
        own_rng, own_torch_rng = np.random.default_rng(own), torch.Generator().manual_seed(own)
        if num_draws < self.num_spread_draws:
            chosen = nodes(self.num_spread_draws, own_rng)
            *both, misfits = model.means_and_draws(chosen, own_torch_rng, derived_seed(own, "detail"))
            order = torch.from_numpy(own_rng.permutation(self.num_spread_draws))
            mean, spread = (part.in_order(order) for part in both)
        else:
            mean, spread = model.draw(nodes(self.num_mean_nodes, own_rng), None, seed), None
            misfits = model.likelihood.misfit(mean.own_parameters)
        if model.state is None and not parameters.num_free:
            mean = model.draw(mean.own_parameters[:1], None, seed)  # all nodes are the same
        return kept, spread, mean, misfits


def _require_wide(
    latent: Latent,
    model: Model,
    alone: bool,
    found: Float[Tensor, "point parameter"],
    tops: Float[Tensor, "top parameter"],
) -> None:
    """Raise `TooNarrow` where bounds are. A single point, the highest, is looked at for its coefficients; draws, of a
    case that is alone, for all parameters."""
    users, tops = found * model.units_of_parameters, tops * model.units_of_parameters
    if len(users) == 1:
        require_wide(latent, users, tops)
    elif alone:
        require_wide(latent, users, tops, model.users_levels)
