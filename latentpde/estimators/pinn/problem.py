"""Cases as a PINN sees them: in units of their own, with the terms of the loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.estimators.padding import padded_indices
from latentpde.estimators.pinn.equation import Equation
from latentpde.estimators.pinn.network import Features, Layers, apply, apply_operator, make_layers
from latentpde.grid import Grid, wavenumbers
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.operator import EPSILON

FIELD_WIDTHS = (128, 128, 128, 128)
SOURCE_WIDTHS = (64, 64, 64)
_POINTS_AT_ONCE = 2**16
_LEAST_NOISE = 0.01
_NUM_DRIFTS = 512


class Losses(NamedTuple):
    """The terms of the loss, each a mean square, before their weights."""

    data: Float[Tensor, " case"]
    initial: Float[Tensor, " case"]
    residual: Float[Tensor, " case"]
    source: Float[Tensor, " case"]
    coefficients: Float[Tensor, " case"]


@dataclass(frozen=True, eq=False)
class Networks:
    """What is trained: for every case a field, a source (none for a PDE without one) and raw coefficients."""

    field: Layers
    source: Layers
    raw: Float[Tensor, "case coefficient"]

    @property
    def parameters(self) -> list[Tensor]:
        return [*self.field, *self.source, self.raw]

    @property
    def num_parameters(self) -> int:
        """Of one case."""
        return sum(p[0].numel() for p in self.parameters)

    def __getitem__(self, cases: slice) -> Networks:
        return Networks([p[cases] for p in self.field], [p[cases] for p in self.source], self.raw[cases])

    @classmethod
    def join(cls, parts: list[Networks]) -> Networks:
        field = [torch.cat(p) for p in zip(*(part.field for part in parts), strict=True)]
        source = [torch.cat(p) for p in zip(*(part.source for part in parts), strict=True)]
        return cls(field, source, torch.cat([part.raw for part in parts]))


@dataclass(frozen=True, eq=False)
class Problem:
    """The cases in the networks' units: coordinates from 0 to 1, fields with mean 0 and standard deviation 1.

    Args:
        equation: the PDE.
        latent: bounds of the coefficients and scale of the source.
        features: what the field's network sees.
        centre, scale: the field is ``centre + scale * network``.
        sites: where the initial state is known, ``(y, x)``.
        initial: the initial state there, in physical units.
        readings: ``(t, y, x)`` of the nodes that make a reading; a cell's is a mean over four.
        values, weights: readings and their weights, zero where a case has fewer than others. A misfit as large as the
            noise gives a loss of 1; noise below a hundredth of `scale` counts as that.
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
            equation, latent, features, centre, scale, centres(grid).float(), initial.flatten(1),
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
        return self.latent.family.order

    def networks(self, *, generator: torch.Generator) -> Networks:
        """Untrained ones."""
        num_cases, space = len(self.values), self._space_features
        field = make_layers((self.features.size, *FIELD_WIDTHS, 1), num_cases, generator=generator)
        source = make_layers((space.size, *SOURCE_WIDTHS, 1), num_cases, generator=generator)
        raw = torch.zeros(num_cases, self.latent.num_coefficients)
        return Networks(field, source if self.latent.num_modes else [], raw)

    @property
    def _space_features(self) -> Features:
        return Features(self.features.num_harmonics, has_time=False)

    def theta(self, raw: Float[Tensor, "case coefficient"]) -> Float[Tensor, "case coefficient"]:
        lower, upper = self.latent.bounds.unbind(-1)
        return lower + (upper - lower) * torch.sigmoid(raw.double())

    def field(self, networks: Networks, points: Float[Tensor, "*case point 3"]) -> Float[Tensor, "case point"]:
        """In units of `scale`, about `centre`."""
        if self.moving_frame:
            points = _moved(points, -self.equation.terms(self.theta(networks.raw)).drift[:, 1:])
        inputs = self.features(points)
        return apply(networks.field, inputs.expand(len(networks.raw), *inputs.shape[-2:]))

    def source(self, networks: Networks, points: Float[Tensor, "*case point 3"]) -> Float[Tensor, "case point"]:
        """In units of its standard deviation beforehand."""
        if not networks.source:
            return torch.zeros(len(networks.raw), points.shape[-2])
        inputs = self._space_features(points)
        return apply(networks.source, inputs.expand(len(networks.raw), *inputs.shape[-2:]))

    @torch.no_grad()
    def find_drift(self, networks: Networks) -> None:
        """Set the coefficients that a moving frame moves by to where the field, as it is, fits the readings best.

        The misfit has many local minima in them, one per way of laying the field's waves over the readings, so they
        are tried all over their bounds: a field of `moving_frame` need not be trained anew for each.
        """
        drifting = self.equation.drifting
        if not drifting:
            return
        lowest, best = torch.full((len(networks.raw),), torch.inf), networks.raw.clone()
        for share in torch.quasirandom.SobolEngine(len(drifting)).draw(_NUM_DRIFTS):
            raw = networks.raw.clone()
            raw[:, drifting] = torch.logit(share, eps=0.02)
            misfit = self._data_loss(Networks(networks.field, networks.source, raw))
            better = misfit < lowest
            lowest, best = torch.where(better, misfit, lowest), torch.where(better[:, None], raw, best)
        networks.raw.copy_(best)

    def losses(
        self, networks: Networks, num_collocation: int, num_initial: int, *, generator: torch.Generator
    ) -> Losses:
        """At random points, the same for all cases."""
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
        jet = torch.stack([self.features(points), self.features.slopes(points)[0]])
        jet = jet.expand(len(target), *jet.shape)
        value, velocity = apply_operator(networks.field, jet, target[:, :0], ()).unbind(1)
        return (value - target).square().mean(1) + velocity.square().mean(1)

    def _residual(self, networks: Networks, num: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """What is left of the PDE, and the source, at random points."""
        chosen = torch.randint(len(self.sites), (num,), generator=generator)
        when = torch.rand(num, generator=generator) if self.order else torch.zeros(num)
        points = points_at(when, self.sites[chosen])
        terms = self.equation.terms(self.theta(networks.raw))
        drift, places = terms.drift, points
        if self.moving_frame:  # nothing drifts in it, and the source, which stands still, is met on the way
            drift, places = drift * torch.tensor([1.0, 0.0, 0.0]), _moved(points, drift[:, 1:])
        u, operated = self._operate(networks, points, drift.float(), terms.curvature.float())
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
        self, networks: Networks, points: Tensor, drift: Tensor, curvature: Tensor
    ) -> tuple[Float[Tensor, "case point"], Float[Tensor, "case point"]]:
        """The field and the differential operator applied to it."""
        directions, pairs = self.equation.directions, self.equation.pairs
        slopes, bends = self.features.slopes(points), self.features.curvatures(points)
        operated = torch.einsum("ca,apf->cpf", drift, slopes)
        operated = operated + torch.einsum("ca,apf->cpf", curvature[:, : len(directions)], bends[list(directions)])
        known = torch.stack([self.features(points), *(slopes[i] for i in directions)])
        jet = torch.cat([known.expand(len(operated), *known.shape), operated[:, None]], 1)
        out = apply_operator(networks.field, jet, curvature, pairs)
        return out[:, 0], out[:, -1]


def _readings(observation: Observation, duration: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Nodes ``(t, y, x)``, values and weights of the readings, as many per case as the fullest one has; and the typical
    variance of their noise. A steady field has only time 0, which is what an infinite duration gives."""
    grid, num_cases, num_times = observation.grid, len(observation), len(observation.times)
    origin, extent = (torch.tensor(pair, dtype=torch.float64) for pair in (grid.origin, grid.extent))
    if observation.positions is None:
        nodes = (centres(grid)[:, None] + _cell_nodes(grid, observation.pooling)).expand(num_cases, -1, -1, -1)
    else:
        nodes = ((observation.positions - origin) / extent)[:, :, None]
    num_places = nodes.shape[1]
    nodes = nodes[:, None].expand(-1, num_times, -1, -1, -1)
    when = (observation.times / duration)[None, :, None, None, None].expand(*nodes.shape[:-1], 1)
    nodes = torch.cat([when, nodes], -1).reshape(num_cases, num_times * num_places, -1, 3)

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


def _cell_nodes(grid: Grid, pooling: int | None) -> Float[Tensor, "node 2"]:
    """Offsets from a cell's centre whose mean is the cell's average, up to fourth derivatives: they have the variance
    of the samples that the cell averages."""
    if pooling == 1:
        return torch.zeros(1, 2, dtype=torch.float64)
    variance = (1 - (0.0 if pooling is None else 1 / pooling**2)) / 12
    signs = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
    return math.sqrt(variance) * signs / torch.tensor(grid.shape)


def _steady_state(initial: Tensor, grid: Grid, latent: Latent) -> Tensor:
    """The solution without a source in the middle of the bounds, whose scale the field's will be near."""
    decoder = Decoder(Latent(latent.family, num_modes=0, bounds=latent.bounds), grid.extent)
    z = torch.zeros(len(initial), latent.num_coefficients, dtype=initial.dtype)
    return decoder.decode(z, initial, [0.0], grid)[:, 0]


def _stiffness(equation: Equation, latent: Latent) -> float:
    """How large the equation's terms are for the longest waves in the middle of the bounds, beside its time derivative:
    residuals of slow and fast families then weigh alike."""
    k = wavenumbers((4, 2), equation.extent)
    middle = [c[None, None] for c in latent.bounds.mean(-1)]
    symbol = latent.family.symbol(k, *middle).expand(4, 2).abs()
    return 1 + equation.time_scale * float((symbol[0, 1] + symbol[1, 0]) / 2)


def centres(grid: Grid) -> Float[Tensor, "site 2"]:
    """Cell centres in units of the rectangle."""
    y, x = ((torch.arange(n, dtype=torch.float64) + 0.5) / n for n in grid.shape)
    return torch.cartesian_prod(y, x)


def points_at(when: Tensor | float, places: Float[Tensor, "point 2"]) -> Float[Tensor, "point 3"]:
    times = torch.as_tensor(when, dtype=places.dtype).expand(len(places))
    return torch.cat([times[:, None], places], 1)


def _moved(points: Float[Tensor, "*batch point 3"], drift: Float[Tensor, "case 2"]) -> Float[Tensor, "case point 3"]:
    """Carried along from time 0, around the domain."""
    when, places = points[..., :1], points[..., 1:]
    places = (places + when * drift[:, None].to(points.dtype)) % 1
    return torch.cat([when.expand(*places.shape[:-1], 1), places], -1)


def everywhere(
    function: Callable[[Tensor], Tensor], points: Float[Tensor, "point 3"], num_cases: int
) -> Float[Tensor, "case point"]:
    """A network at many points, in double precision from here on, a part at a time."""
    step = max(1, _POINTS_AT_ONCE // num_cases)
    with torch.no_grad():
        return torch.cat([function(part.float()).double() for part in points.split(step)], 1)


def _positive(scale: Tensor) -> Tensor:
    return torch.where(scale > 0, scale, 1.0)
