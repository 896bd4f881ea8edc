"""What the unknowns of one case amount to at other places and times than those that were read.

Given the parameters, the field at any place is its mean plus a row of responses times whitened unknowns, which are
standard normal beforehand. So covariances between any places, given the readings, follow in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.estimators.exact.conditioned import ConditionedModes
from latentpde.estimators.exact.mapped import MappedModes
from latentpde.estimators.exact.model import Model
from latentpde.estimators.exact.places import Places
from latentpde.estimators.exact.responses import UnknownModes

_FLAT = 1e4  # standard deviation that stands for a flat prior of the trend, in units of the readings' spread


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """Rows of responses at some places and times, and what the readings leave of their covariances.

    Args:
        model: of the case.
        unknown: its unknown modes, as these places see them.
        order: of the places by time, in which ``unknown`` has them.
        trend: its columns at these places, in the order in which they were given.
        is_source: whether rows are of the source rather than of the field.
    """

    model: Model
    unknown: UnknownModes | MappedModes | ConditionedModes
    order: Tensor
    trend: Float[Tensor, "place column"]
    is_source: bool = False

    @classmethod
    def of(
        cls,
        model: Model,
        positions: Float[Tensor, "place 2"],
        times: Float[Tensor, " place"],
        extent: tuple[float, float],
        *,
        is_source: bool = False,
    ) -> Elsewhere:
        """Some places.

        Args:
            model: of the case.
            positions: ``(y, x)`` relative to the lower corner of the observed rectangle, in the user's units.
            times: PDE time of each, in the user's unit.
            extent: of the observed rectangle.
            is_source: whether the source is asked for, not the field.
        """
        units = model.units
        length, time = (1.0, 1.0) if units is None else (units.length, units.time)
        order = torch.argsort(times, stable=True)
        distinct, counts = torch.unique_consecutive(times[order] / time, return_counts=True)
        ends = torch.cumsum(counts, 0).tolist()
        snapshots = [slice(start, stop) for start, stop in zip([0, *ends[:-1]], ends, strict=True)]
        labels = torch.arange(len(positions))[:, None]
        places = Places(positions[order] / length, labels, None, distinct, snapshots)
        likelihood = model.likelihood
        unknown = likelihood.unknown
        if isinstance(unknown, ConditionedModes):
            unknown = unknown.at(places)
        elif isinstance(unknown, MappedModes):
            if is_source:  # which has no time
                places = replace(places, times=distinct[:0], snapshots=[slice(0, len(positions))])
            unknown = MappedModes(model.decoder, places, [part for part, _ in unknown.parts])
        else:
            unknown = UnknownModes.of(model.decoder.latent, places, [part for part, _ in unknown.parts])
        middle = torch.tensor(extent, dtype=torch.float64) / 2
        columns = torch.cat(
            [torch.ones((len(positions), 1), dtype=torch.float64), (positions - middle) / length], dim=1
        )
        columns = columns[:, : likelihood.trend.shape[1]] * (0.0 if is_source else 1.0)
        return cls(model, unknown, order, columns, is_source)

    def rows(self, parameters: Float[Tensor, "1 parameter"]) -> Float[Tensor, "place unknown"]:
        """What each place sees of real whitened unknowns, a flat prior of the trend among them, in the user's units."""
        if self.is_source and not isinstance(self.unknown, MappedModes):
            found = self._source_rows(self.unknown, parameters)
        else:
            found = torch.cat([*self.unknown.responses_by_field(parameters).values()], dim=-1)
        rows = torch.empty((len(self.order), 2 * found.shape[-1] + self.trend.shape[1]), dtype=torch.float64)
        rows[self.order] = torch.cat([found.real, -found.imag, _flat(self.model) * self.trend[self.order]], dim=-1)
        if self.model.units is None:
            return rows
        return rows * (self.model.units.of_source if self.is_source else self.model.units.value)

    def _source_rows(self, unknown: UnknownModes | ConditionedModes, parameters: Tensor) -> Tensor:
        found, start = [], 0
        modes = unknown.others if isinstance(unknown, ConditionedModes) else unknown
        for part, k in modes.parts:
            own = modes.waves[:, start : start + len(part.modes)]
            amplitude = part.inferred_amplitude(k, parameters)
            own = own if amplitude is None else own * amplitude[0, 0]
            found.append(own if part.field == "source" else torch.zeros_like(own))
            start += len(part.modes)
        if isinstance(unknown, ConditionedModes):  # of its state the source knows nothing
            found.append(torch.zeros((len(self.order), unknown.state.num_unknown), dtype=torch.complex128))
        return torch.cat(found, dim=-1)


def whitened_readings(model: Model, parameters: Float[Tensor, "1 parameter"]) -> Float[Tensor, "reading unknown"]:
    """``W`` such that the readings leave the covariance ``I - W^T W`` of the whitened unknowns that `Elsewhere.rows` is
    about."""
    likelihood = model.likelihood
    parts = [*likelihood.unknown.responses_by_field(parameters).values()]
    waves = torch.cat(parts, dim=-1) if parts else torch.zeros((len(likelihood.values), 0), dtype=torch.complex128)
    rows = torch.cat([waves.real, -waves.imag, _flat(model) * likelihood.trend], dim=-1)
    covariance = rows @ rows.T
    covariance.diagonal().add_(torch.atleast_2d(likelihood.noise.variance(parameters))[0])
    return torch.linalg.solve_triangular(torch.linalg.cholesky(covariance), rows, upper=False)


def _flat(model: Model) -> float:
    values = model.likelihood.values
    return _FLAT * max(float(values.abs().max()), 1e-300)
