"""Cases as a PINN sees them: in units of their own, with the terms of the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.estimators.padding import padded_indices
from latentpde.estimators.pinn.equation import Equation
from latentpde.estimators.pinn.network import Features, Networks, apply, apply_operator
from latentpde.estimators.pinn.points import carried, cell_centres, points_at, reading_nodes
from latentpde.grid import Grid, wavenumbers
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.operator import EPSILON

_LEAST_NOISE = 0.01
_NUM_DRIFTS = 512


class Losses(NamedTuple):
    """The terms of the loss for each case, before their weights.

    Attributes:
        data: mean square misfit of the readings, 1 where it is as large as their noise.
        initial: mean square misfit of the initial state and, for families that start at rest, of its velocity.
        residual: mean square of what is left of the PDE.
        source: mean square of the source over its prior variance.
        coefficients: squared norm of the raw coefficients.
    """

    data: Float[Tensor, " case"]
    initial: Float[Tensor, " case"]
    residual: Float[Tensor, " case"]
    source: Float[Tensor, " case"]
    coefficients: Float[Tensor, " case"]


@dataclass(frozen=True, eq=False)
class Problem:
    """What the networks of some cases are trained on, in units of each case.

    Coordinates run from 0 to 1, and fields have about mean 0 and standard deviation 1.

    Args:
        equation: the PDE.
        latent: the bounds of the coefficients and the source's prior.
        features: what the field's network sees of a point.
        centre, scale: the field in physical units is ``centre + scale * network``.
        sites: the places ``(y, x)`` where the initial state is known.
        initial: the initial state there, in physical units.
        readings: the points ``(t, y, x)`` whose mean makes a reading; see `latentpde.estimators.pinn.points`.
        values, weights: the readings and their weights, zero where a case has fewer than others. A misfit as large as
            the noise gives a loss of 1; noise below a hundredth of ``scale`` counts as that.
        residual_scale: what the PDE's residual is divided by.
        moving_frame: whether the field's network sees the places that its points started from, ``x - v t`` with the
            ``v`` that is being learnt, around the domain. Only first-order families move.
    """

    equation: Equation
    latent: Latent
    features: Features
    centre: Float[Tensor, " case"]
    scale: Float[Tensor, " case"]
    sites: Float[Tensor, "site 2"]
    initial: Float[Tensor, "case site"]
    readings: Float[Tensor, "case reading node 3"]
    values: Float[Tensor, "case reading"]
    weights: Float[Tensor, "case reading"]
    residual_scale: Float[Tensor, " case"]
    moving_frame: bool = False

    @classmethod
    def of(cls, observation: Observation, latent: Latent, features: Features, *, moving_frame: bool = False) -> Problem:
        """The problem that readings and an initial state pose; a moving frame is taken where the family allows one."""
        grid = observation.fine_grid
        initial = grid.synthesise(observation.initial_spectrum())
        duration = float(observation.times.max()) or latent.family.default_time
        equation = Equation(latent.family, observation.grid.extent, duration)
        readings, values, weights, variance = _readings(observation, duration if latent.family.order else math.inf)
        state = initial if latent.family.order else _steady_state(initial, grid, latent)
        centre, scale = state.mean((1, 2)), _positive(state.std((1, 2)))
        weights = weights / ((variance / scale**2).clamp(min=_LEAST_NOISE**2))[:, None].float()
        rest = scale * _stiffness(equation, latent) if latent.family.order else _positive(initial.std((1, 2)))
        return cls(
            equation, latent, features, centre, scale, cell_centres(grid).float(), initial.flatten(1),
            readings, values, weights, rest, moving_frame and latent.family.order == 1,
        )  # fmt: skip

    def __getitem__(self, cases: slice) -> Problem:
        per_case = (self.initial, self.readings, self.values, self.weights, self.residual_scale)
        initial, readings, values, weights, residual_scale = (a[cases] for a in per_case)
        return Problem(
            self.equation, self.latent, self.features, self.centre[cases], self.scale[cases], self.sites, initial,
            readings, values, weights, residual_scale, self.moving_frame,
        )  # fmt: skip

    @property
    def order(self) -> int:
        """The PDE's order in time; 0 for a steady family."""
        return self.latent.family.order

    def networks(self, *, generator: torch.Generator) -> Networks:
        """Untrained networks, one of each kind per case."""
        return Networks.untrained(
            self.features,
            len(self.values),
            self.latent.num_coefficients,
            has_source=self.latent.num_modes > 0,
            generator=generator,
        )

    def theta(self, raw: Float[Tensor, "case coefficient"]) -> Float[Tensor, "case coefficient"]:
        """Physical coefficients, by a sigmoid of raw ones onto their bounds."""
        lower, upper = self.latent.bounds.unbind(-1)
        return lower + (upper - lower) * torch.sigmoid(raw.double())

    def field(self, networks: Networks, points: Float[Tensor, "*case point 3"]) -> Float[Tensor, "case point"]:
        """The networks' field at some points, in units of `scale` and relative to `centre`."""
        if self.moving_frame:
            points = carried(points, -self.equation.terms(self.theta(networks.raw)).first[:, 1:])
        inputs = self.features(points)
        return apply(networks.field, inputs.expand(len(networks.raw), *inputs.shape[-2:]))

    def source(self, networks: Networks, points: Float[Tensor, "*case point 3"]) -> Float[Tensor, "case point"]:
        """The networks' source at some points, in units of its prior standard deviation."""
        if not networks.source:
            return torch.zeros(len(networks.raw), points.shape[-2])
        inputs = self.features.of_space(points)
        return apply(networks.source, inputs.expand(len(networks.raw), *inputs.shape[-2:]))

    @torch.no_grad()
    def find_drift(self, networks: Networks) -> None:
        """Set the coefficients of the drift, in place, to where the field as it is fits the readings best.

        The misfit has many local minima in them, one per way of laying the field's waves over the readings, so they
        are tried all over their bounds: in a moving frame the field need not be trained anew for each.
        """
        positions = self.equation.drift_coefficients
        if not positions:
            return
        lowest, best = torch.full((len(networks.raw),), torch.inf), networks.raw.clone()
        for share in torch.quasirandom.SobolEngine(len(positions)).draw(_NUM_DRIFTS):
            raw = networks.raw.clone()
            raw[:, positions] = torch.logit(share, eps=0.02)
            misfit = self._data_loss(Networks(networks.field, networks.source, raw))
            better = misfit < lowest
            lowest, best = torch.where(better, misfit, lowest), torch.where(better[:, None], raw, best)
        networks.raw.copy_(best)

    def losses(
        self, networks: Networks, num_collocation: int, num_initial: int, *, generator: torch.Generator
    ) -> Losses:
        """The terms of the loss, with the PDE and the initial state asked for at random points.

        Args:
            networks: as they are now.
            num_collocation: points at which the PDE is asked for, the same for all cases.
            num_initial: points at which the initial state is asked for, likewise.
            generator: where the points come from.
        """
        residual, source = self._residual(networks, num_collocation, generator)
        return Losses(
            data=self._data_loss(networks),
            initial=self._initial_loss(networks, num_initial, generator),
            residual=residual.square().mean(1),
            source=source.square().mean(1),
            coefficients=networks.raw.square().sum(1),
        )

    def _data_loss(self, networks: Networks) -> Float[Tensor, " case"]:
        num_nodes = self.readings.shape[2]
        predicted = self.field(networks, self.readings.flatten(1, 2)).unflatten(1, (-1, num_nodes)).mean(-1)
        target = (self.values - self.centre[:, None]) / self.scale[:, None]
        return (self.weights * (predicted - target.float()) ** 2).sum(1)

    def _initial_loss(self, networks: Networks, num: int, generator: torch.Generator) -> Float[Tensor, " case"]:
        if not self.order:
            return torch.zeros(len(networks.raw))
        chosen = torch.randint(len(self.sites), (num,), generator=generator)
        points = points_at(0.0, self.sites[chosen])
        target = ((self.initial[:, chosen] - self.centre[:, None]) / self.scale[:, None]).float()
        if self.order == 1:
            return (self.field(networks, points) - target).square().mean(1)
        jet = torch.stack([self.features(points), self.features.first_derivatives(points)[0]])
        jet = jet.expand(len(target), *jet.shape)
        value, velocity = apply_operator(networks.field, jet, target[:, :0], ()).unbind(1)
        return (value - target).square().mean(1) + velocity.square().mean(1)

    def _residual(self, networks: Networks, num: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """What is left of the PDE, over its scale, and the source, at random points; axes ``(case, point)``."""
        chosen = torch.randint(len(self.sites), (num,), generator=generator)
        when = torch.rand(num, generator=generator) if self.order else torch.zeros(num)
        points = points_at(when, self.sites[chosen])
        terms = self.equation.terms(self.theta(networks.raw))
        first, places = terms.first, points
        if self.moving_frame:  # nothing drifts in it, and the source, which stands still, is met on the way
            first, places = first * torch.tensor([1.0, 0.0, 0.0]), carried(points, first[:, 1:])
        u, operated = self._operate(networks, points, first.float(), terms.second.float())
        source = self.source(networks, places)
        # scale (D u + a u) + a centre = T^n (u0 + f), divided by the residual's scale
        unit = 1 / self.residual_scale
        left = (self.scale * unit)[:, None].float() * (operated + terms.zeroth[:, None].float() * u)
        constant = (unit * terms.zeroth * self.centre)[:, None].float()
        right = (unit * self.equation.time_scale * self.latent.source_prior_std)[:, None].float() * source
        if not self.order:
            right = right + (unit[:, None] * self.initial[:, chosen]).float()
        return left + constant - right, source

    def _operate(
        self, networks: Networks, points: Float[Tensor, "point 3"], first: Tensor, second: Tensor
    ) -> tuple[Float[Tensor, "case point"], Float[Tensor, "case point"]]:
        """The field, and the differential operator of these coefficients applied to it."""
        directions, pairs = self.equation.directions, self.equation.pairs
        slopes, bends = self.features.first_derivatives(points), self.features.second_derivatives(points)
        operated = torch.einsum("ca,apf->cpf", first, slopes)
        operated = operated + torch.einsum("ca,apf->cpf", second[:, : len(directions)], bends[list(directions)])
        known = torch.stack([self.features(points), *(slopes[i] for i in directions)])
        jet = torch.cat([known.expand(len(operated), *known.shape), operated[:, None]], 1)
        out = apply_operator(networks.field, jet, second, pairs)
        return out[:, 0], out[:, -1]


def _readings(observation: Observation, duration: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Points, values and weights of the readings, as many per case as the fullest one has, and the typical variance of
    each case's noise."""
    nodes = reading_nodes(observation, duration)
    mask, variance = observation.mask.flatten(1), observation.noise_std.flatten(1) ** 2
    counts = observation.num_readings.double()[:, None]
    typical = observation.typical_variance
    weights = mask * typical[:, None] / variance / (counts + EPSILON)
    chosen, _ = padded_indices(mask)
    return (
        torch.take_along_dim(nodes, chosen[..., None, None], 1).float(),
        observation.values.flatten(1).gather(1, chosen),
        weights.gather(1, chosen).float(),
        typical,
    )


def _steady_state(initial: Tensor, grid: Grid, latent: Latent) -> Tensor:
    """The solution of a steady family without a source, in the middle of the bounds: the field's scale is near its."""
    decoder = Decoder(Latent(latent.family, num_modes=0, bounds=latent.bounds), grid.extent)
    z = torch.zeros(len(initial), latent.num_coefficients, dtype=initial.dtype)
    return decoder.decode(z, initial, [0.0], grid)[:, 0]


def _stiffness(equation: Equation, latent: Latent) -> float:
    """How large the equation's terms are for the longest waves in the middle of the bounds, over its time derivative.

    Residuals are divided by it, so that those of slow and fast families weigh alike.
    """
    k = wavenumbers((4, 2), equation.extent)
    middle = [c[None, None] for c in latent.bounds.mean(-1)]
    symbol = latent.family.symbol(k, *middle).expand(4, 2).abs()
    return 1 + equation.time_scale * float((symbol[0, 1] + symbol[1, 0]) / 2)


def _positive(scale: Tensor) -> Tensor:
    """A scale to divide by: 1 where the scale is zero."""
    return torch.where(scale > 0, scale, 1.0)
