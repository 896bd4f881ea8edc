"""What is found for one case, and what cases of one layout share.

Where nothing is inferred but fields, the posterior's covariance depends on where was read and not on what. So the
draws of a further case are those of the first, moved by the difference of the means; leave-one-out variances and the
matrices of the checks are the same; and a further field costs a few products of matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.decoder import with_velocity
from latentpde.estimators.exact.checks import NodeChecks
from latentpde.estimators.exact.drawn import DrawnStates, MovedDraws
from latentpde.estimators.exact.model import Draws, Model
from latentpde.estimators.exact.samples import ParameterSamples
from latentpde.observation import Observation
from latentpde.observation.lifting import lift_of, lifted_readings
from latentpde.posterior import InitialStates

_FIELDS = ("z", "trend", "initial_hat", "velocity_hat")


@dataclass(frozen=True, eq=False, kw_only=True)
class CaseResult:
    """What is found for one case.

    Args:
        model: of the case.
        kept: the draws that were asked for.
        spread: those for the spread, where there are more of them; of the first case of the layout.
        mean: conditional means, one for each node that the mean averages over.
        mean_initial_hat: those of the initial state; one for all nodes where it is known.
        left_out: what the other readings predict for each of them; ``None`` where they are too many.
        samples: of the parameters.
        checks: what checks of cases of its layout have in common.
        diagnostics: by name.
        first: the first case of the layout, where it is another; this one's spread is that one's, moved.
    """

    model: Model
    kept: Draws
    spread: Draws | None
    mean: Draws
    mean_initial_hat: Complex[Tensor, "*node row col"]
    left_out: tuple[Float[Tensor, " reading"], Float[Tensor, " reading"]] | None
    samples: ParameterSamples
    checks: list[NodeChecks]
    diagnostics: dict[str, np.ndarray]
    first: CaseResult | None = None

    @property
    def factors(self) -> Float[Tensor, " reading"] | None:
        """Of the noise variance of the readings of the case; ``None`` where outliers are not looked for."""
        return None if self.model.factors is None else self.model.of_case(self.model.factors)

    def moved_to(self, model: Model) -> tuple[Draws, Draws | None, Draws]:
        """Draws, those for the spread, and the mean of another case of this layout; the spread is not yet moved."""
        mean = model.draw(self.mean.own_parameters, None, self.mean.seed)
        return moved(self.kept, difference(mean, self.mean)), self.spread, mean


def difference(mean: Draws, other: Draws) -> dict[str, Tensor]:
    """What fields of one mean have more than another's, by name."""
    names = [name for name in _FIELDS if getattr(mean, name) is not None]
    return {name: getattr(mean, name) - getattr(other, name) for name in names}


def moved(draws: Draws, by: dict[str, Tensor]) -> Draws:
    """Draws about another mean."""
    return replace(draws, **{name: getattr(draws, name) + shift for name, shift in by.items()})


def join_kept(cases: Sequence[CaseResult]) -> tuple[Float[Tensor, "case draw latent"], InitialStates]:
    """Draws of several cases as one tensor, with their initial states."""
    return _join([case.model for case in cases], [case.kept for case in cases])


def join_spread(
    cases: Sequence[CaseResult],
) -> tuple[Tensor | MovedDraws, InitialStates, Tensor | MovedDraws] | tuple[None, None, None]:
    """Latents, initial states and trends of the draws for the spread; of cases that share them, once for all."""
    own = [case.spread for case in cases if case.spread is not None]
    if not own:
        return None, None, None
    if all(case.first is None for case in cases):
        return *_join([case.model for case in cases], own), torch.stack([draws.trend for draws in own])
    shifts = [difference(case.mean, (case.first or case).mean) for case in cases]
    z, trend = (
        MovedDraws([getattr(draws, name) for draws in own], [shift[name] for shift in shifts])
        for name in ("z", "trend")
    )
    states, means = [moving(draws.initial_hat, draws) for draws in own if draws.initial_hat is not None], []
    for case in cases:
        first = (case.first or case).mean_initial_hat
        means.append(case.mean_initial_hat - first)
    return z, MovedDraws(states, means), trend


def set_aside(observation: Observation, cases: Sequence[CaseResult]) -> dict[str, np.ndarray]:
    """Which readings count as outliers, in the shape of the mask, as a diagnostic; none where nobody asked."""
    found = observation.mask.clone()
    for own, mask, case in zip(found, observation.mask, cases, strict=True):
        if case.factors is None:
            return {}
        own[mask] = case.factors > 1
    return {"set_aside": found.numpy()}


def _join(models: list[Model], draws: list[Draws]) -> tuple[Float[Tensor, "case draw latent"], InitialStates]:
    z = torch.stack([own.z for own in draws])
    states = [model.state for model in models if model.state is not None]
    if states:
        deviations, seeds = [own.state_deviations for own in draws], [own.seed for own in draws]
        return z, DrawnStates(states, deviations, [own.velocity_hat for own in draws], seeds, z.shape[1])
    return z, torch.stack([moving(own.initial_hat, own) for own in draws if own.initial_hat is not None])


def moving(states: Complex[Tensor, "*node row col"], draws: Draws) -> Complex[Tensor, "*node2 row2 col2"]:
    """Initial states with the velocities that they start with, if any."""
    return states if draws.velocity_hat is None else with_velocity(states, draws.velocity_hat)


def left_out_with_lift(
    observation: Observation, found: list[tuple[Tensor, Tensor] | None]
) -> list[tuple[Tensor, Tensor] | None]:
    """What the other readings and the walls predict for each."""
    lift = lift_of(observation)
    if lift is None:
        return found
    known = lifted_readings(observation, lift)
    pairs = zip(found, known, observation.mask, strict=True)
    return [None if own is None else (own[0] + added[mask], own[1]) for own, added, mask in pairs]
