r"""The readings' mean that a known source gives: what values and slopes on walls amount to (`latentpde.lift`).

.. math:: a_i(\theta) = \sum_m \phi_m(x_i)\, H_m(\theta, t_i)\, (-s(0; \theta)\, \hat w_m + c(\theta)\, \hat 1_m) .
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from latentpde.decoder import Decoder
from latentpde.estimators.exact.fourier import Modes, as_wavenumbers
from latentpde.estimators.exact.places import Places
from latentpde.lift import NUM_MODES, Lift
from latentpde.observation import Observation
from latentpde.pde import Family


@dataclass(frozen=True, eq=False)
class DrivenMean:
    """What the readings would be of a field that nothing drives but its walls, less what is known on these.

    Args:
        family: the PDE.
        lift: what is known on walls.
        places: of the readings.
        k: wavenumbers of the modes.
        waves: what readings see of the function's modes, and of those of one, as far as they are driven alike.
    """

    family: Family
    lift: Lift
    places: Places
    k: Float[Tensor, "mode 2"]
    waves: tuple[Float[Tensor, "reading mode"], Float[Tensor, "reading mode"]]

    @classmethod
    def of(cls, decoder: Decoder, places: Places, case: Observation | None = None) -> DrivenMean | None:
        """That of a decoder's walls; ``None`` where these drive nothing.

        Args:
            decoder: with what is known on walls.
            places: of the readings.
            case: whose readings are cells, on the rectangle with its images; by default the places say what is read.
        """
        lift, family = decoder.lift, decoder.latent.family
        if lift is None or not lift.drives(family):
            return None
        block_shape = (2 * NUM_MODES, NUM_MODES)
        if case is None:
            modes = Modes.of_block(block_shape, decoder.extent, decoder.mirror)
        else:
            modes = Modes.of(block_shape, case, decoder.mirror)
        coefficients = torch.stack([own.flatten()[modes.index] for own in lift.coefficients(NUM_MODES)])
        there = (coefficients != 0).any(0)
        modes, coefficients = modes.select(there), coefficients[:, there] * modes.attenuation[there]
        seen = modes.waves(places.positions, places.cells).real
        return cls(family, lift, places, modes.k, (seen * coefficients[0], seen * coefficients[1]))

    def only(self, chosen: Int[Tensor, " chosen"]) -> DrivenMean:
        """At some of the readings."""
        of_function, of_one = (waves[chosen] for waves in self.waves)
        return replace(self, places=self.places.only(chosen), waves=(of_function, of_one))

    def mean(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, "batch reading"]:
        """Of the readings, for each set of parameters; of the source's own nothing."""
        theta, times = parameters[:, : len(self.family.coefficients)], self.places.times
        response = self.family.source_response(as_wavenumbers(self.k), times, theta).real
        response = response.expand(len(theta), len(times), 1, len(self.k))[:, :, 0]
        factors = self.lift.source_factors(self.family, theta)
        parts = []
        for t, here in enumerate(self.places.snapshots):
            if t == len(times):
                parts.append(torch.zeros((len(theta), here.stop - here.start), dtype=torch.float64))
            else:
                of_function, of_one = (response[:, t] @ waves[here].T for waves in self.waves)
                parts.append(factors[0][:, None] * of_function + factors[1][:, None] * of_one)
        return torch.cat(parts, dim=-1)
