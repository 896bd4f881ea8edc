r"""The latent: raw coefficients and source, :math:`z = [r, q]`.

Coefficients come from ``r`` by a sigmoid onto their bounds, :math:`\theta = a + (b - a)\,\sigma(r)`. The source
comes from ``q``: :math:`4 M^2` reals, reshaped to ``(half, part, row, col)`` with halves rows ``0 .. M-1`` and
``-M .. -1``, parts real and imaginary: a block in the sense of `latentpde.grid`. It is scaled so that
:math:`q \sim N(0, \tau^2 I)` gives a field of pointwise standard deviation :math:`\tau` exactly: each of the
:math:`2M(M-1)` modes off column 0 adds :math:`4 \tau^2`, and column 0, which the real part makes Hermitian, adds
:math:`2M \tau^2`, together :math:`(8 M^2 - 6 M)\,\tau^2`; 1080 for :math:`M = 12`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.pde import Family
from latentpde.validation import LARGEST, NumModes, Positive, check_value, shortened


@dataclass(frozen=True, eq=False)
class Statistics:
    """Coordinate-wise mean and standard deviation of a set of latents, which networks see and give normalised.

    >>> statistics = Statistics.of(torch.tensor([[0.0, 4.0], [2.0, 8.0]]))
    >>> statistics.normalise(torch.tensor([1.0, 6.0]))
    tensor([0., 0.])
    """

    mean: Float[Tensor, " latent"]
    std: Float[Tensor, " latent"]

    @classmethod
    def of(cls, z: Float[Tensor, "draw latent"], floor: float = 1e-6) -> Statistics:
        """Those of some latents; a coordinate that does not vary has the standard deviation ``floor``."""
        return cls(z.mean(0), z.std(0).clamp(min=floor))

    def normalise(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch latent"]:
        return (z - self.mean) / self.std

    def denormalise(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch latent"]:
        return self.mean + self.std * z


@dataclass(frozen=True, eq=False)
class Latent:
    """Layout, bounds and prior of a family's latents.

    >>> from latentpde.pde import get_family
    >>> latent = Latent(get_family("telegraph"), source_prior_std=0.3, num_modes=4)
    >>> latent.num_coefficients, latent.num_source, latent.size
    (2, 64, 66)
    >>> z = latent.draw(5, generator=torch.Generator().manual_seed(0))  # from the prior
    >>> latent.theta(z).shape, latent.log_prior(z).shape
    (torch.Size([5, 2]), torch.Size([5]))

    Args:
        family: the PDE family.
        source_prior_std: pointwise standard deviation ``tau`` of the source under the prior, positive, in the unit of
            the PDE's right-hand side.
        num_modes: ``M``, Fourier modes of the source per half axis; 0 for no source.
        bounds: lower and upper bound of each coefficient, ``(coefficient, 2)``; the family's own where left out.
        infers_source: whether the strength of the source is not known, and a method that can is to infer it.
        guessed: coefficients whose bounds nobody gave but the sizes of the data; a method that can is to widen them
            where they are too narrow.
        stretched: how many times as far as the data suggest the upper bound of a level that nobody gave goes, by the
            level's name.
    """

    family: Family
    source_prior_std: float = 0.5
    num_modes: int = 12
    bounds: Float[Tensor, "coefficient 2"] = field(default=None)  # pyright: ignore[reportArgumentType, reportAssignmentType]
    infers_source: bool = False
    guessed: tuple[str, ...] = ()
    stretched: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self):
        if self.bounds is None:
            object.__setattr__(self, "bounds", self.family.bounds)
        try:
            object.__setattr__(self, "bounds", torch.as_tensor(self.bounds, dtype=torch.float64))
        except (TypeError, ValueError, RuntimeError) as error:
            raise UsageError(
                f"bounds must be (lower, upper) by the name of a coefficient, or a tensor of the shape (coefficient, "
                f"2); got {shortened(self.bounds)}"
            ) from error
        ordered = tuple(self.bounds.shape) == (self.num_coefficients, 2) and bool(
            ((self.bounds.abs() <= LARGEST).all(-1) & (self.bounds[:, 0] < self.bounds[:, 1])).all()
        )
        if not ordered:
            raise UsageError(
                f"{self.family.name} needs finite bounds (lower < upper) for each of {self.family.coefficient_names}, "
                f"got {self.bounds.tolist()}"
            )
        check_value(Positive, self.source_prior_std, "the source's standard deviation")
        check_value(NumModes, self.num_modes, "the number of source modes")

    @property
    def num_coefficients(self) -> int:
        return len(self.family.coefficients)

    @property
    def num_source(self) -> int:
        """How many numbers of a latent describe the source."""
        return 4 * self.num_modes**2

    @property
    def size(self) -> int:
        """How many numbers a latent has."""
        return self.num_coefficients + self.num_source

    def split(self, z: Float[Tensor, "*batch latent"]) -> tuple[Tensor, Tensor]:
        """Raw coefficients ``r`` and source ``q``."""
        if z.shape[-1] != self.size:
            raise UsageError(f"a latent of {self.family.name} has {self.size} entries, got {z.shape[-1]}")
        return z[..., : self.num_coefficients], z[..., self.num_coefficients :]

    def theta(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch coefficient"]:
        """Physical coefficients."""
        lower, upper = self.bounds.to(z).unbind(-1)
        return lower + (upper - lower) * torch.sigmoid(self.split(z)[0])

    def pack(
        self, theta: Float[Tensor, "*batch coefficient"], q: Float[Tensor, "*batch source"]
    ) -> Float[Tensor, "*batch latent"]:
        """The latent of given coefficients, which must lie strictly inside the bounds, and source; undoes `theta`.

        >>> from latentpde.pde import get_family
        >>> latent = Latent(get_family("telegraph"), num_modes=0)
        >>> latent.theta(latent.pack(torch.tensor([1.0, 5.0]), torch.zeros(0)))
        tensor([1., 5.])
        """
        lower, upper = self.bounds.to(theta).unbind(-1)
        fraction = (theta - lower) / (upper - lower)
        if not bool(((fraction > 0) & (fraction < 1)).all()):
            raise UsageError(f"coefficients must lie strictly inside their bounds {self.bounds.tolist()}")
        return torch.cat([torch.logit(fraction), q], dim=-1)

    def source_spectrum(self, q: Float[Tensor, "*batch source"]) -> Complex[Tensor, "*batch row col"]:
        """Fourier coefficients of the source, as a block of ``2M`` rows and ``M`` columns."""
        m = self.num_modes
        parts = q.unflatten(-1, (2, 2, m, m)) * source_scale(m)
        return torch.complex(parts[..., 0, :, :], parts[..., 1, :, :]).flatten(-3, -2)

    def draw(self, num: int, *, generator: torch.Generator) -> Float[Tensor, "draw latent"]:
        """Draws of the prior: coefficients uniform on their bounds, Gaussian source."""
        uniform = torch.rand((num, self.num_coefficients), dtype=torch.float64, generator=generator)
        q = torch.randn((num, self.num_source), dtype=torch.float64, generator=generator)
        return torch.cat([torch.logit(uniform, eps=1e-12), self.source_prior_std * q], dim=-1)

    def log_prior(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch"]:
        """Log density of `draw` (a uniform coefficient is a logistic raw one)."""
        r, q = self.split(z)
        logistic = torch.nn.functional.logsigmoid(r) + torch.nn.functional.logsigmoid(-r)
        gaussian = -0.5 * (q / self.source_prior_std) ** 2 - math.log(self.source_prior_std * math.sqrt(2 * math.pi))
        return logistic.sum(-1) + gaussian.sum(-1)


def source_scale(num_modes: int) -> float:
    """Amplitude per unit of ``q``; see the module's docstring."""
    return 1 / math.sqrt(8 * num_modes**2 - 6 * num_modes) if num_modes else 1.0
