r"""The latent as networks see it: in units of the prior.

A family's regimes differ in the bounds of their coefficients and in the strength :math:`\tau` of their source, and one
network serves them all. So it works with :math:`w = [r, q / \tau]`, whose prior is the same for every regime: standard
logistic and standard normal. What these units hide, a network is told beside them, since it decides what :math:`w` does
to a field: the vector `Units.prior` holds each bound as a place between the family's own bounds, from -1 to 1, and
:math:`\log \tau`.

The paper's networks are told nothing of the prior, and work with the raw latent :math:`z` itself: that is ``raw``. One
of them then serves several regimes only where all have the same bounds, the family's.

A network has one number of Fourier modes of the source. Where a latent has another, modes that both have are passed on,
modes that only one has are dropped or zero, and the network is told the :math:`\tau` that gives its own modes the same
amplitude. Where a latent has no source, the network's is dropped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.latent import Latent, source_scale


@dataclass(frozen=True, eq=False)
class Units:
    """The way between raw latents ``z`` and a network's units ``w``.

    Args:
        latent: layout and prior of ``z``.
        num_modes: Fourier modes of the network's source per half axis.
        raw: whether ``w`` is the raw latent, and the network is not told of the prior.

    Example:
        >>> from latentpde.pde import get_family
        >>> units = Units(Latent(get_family("helmholtz"), source_prior_std=0.5, num_modes=2), num_modes=2)
        >>> z = torch.ones(19)
        >>> units.from_latent(z)[[0, 3]]  # a raw coefficient stays, the source is in units of its prior
        tensor([1., 2.])
        >>> bool((units.to_latent(units.from_latent(z)) == z).all())
        True
    """

    latent: Latent
    num_modes: int
    raw: bool = False

    @property
    def size(self) -> int:
        """Number of entries of ``w``."""
        return self.latent.num_coefficients + 4 * self.num_modes**2

    @property
    def num_prior(self) -> int:
        """Number of entries of `seen_prior`."""
        return 0 if self.raw else 2 * self.latent.num_coefficients + 1

    @property
    def prior(self) -> Float[Tensor, " prior"]:
        """The prior as a vector: bounds relative to the family's, and the source's log strength."""
        own, whole = self.latent.bounds, self.latent.family.bounds
        middle, half = whole.mean(1, keepdim=True), whole.diff(dim=1) / 2
        std = self.latent.source_prior_std
        if self.latent.num_modes:
            std *= source_scale(self.latent.num_modes) / source_scale(self.num_modes)
        return torch.cat([((own - middle) / half).flatten(), own.new_tensor([math.log(std)])])

    @property
    def seen_prior(self) -> Float[Tensor, " seen"]:
        """What a network is told of the prior: `prior`, or nothing."""
        return self.prior[: self.num_prior]

    @property
    def _source_unit(self) -> float:
        return 1.0 if self.raw else self.latent.source_prior_std

    def to_latent(self, w: Float[Tensor, "*batch unit"]) -> Float[Tensor, "*batch latent"]:
        """From ``w`` to ``z``."""
        r, q = w.split([self.latent.num_coefficients, w.shape[-1] - self.latent.num_coefficients], dim=-1)
        q = change_modes(q, self.num_modes, self.latent.num_modes)
        return torch.cat([r, self._source_unit * q], dim=-1)

    def from_latent(self, z: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch unit"]:
        """From ``z`` to ``w``; Fourier modes that ``z`` does not have are zero."""
        r, q = self.latent.split(z)
        return torch.cat([r, change_modes(q / self._source_unit, self.latent.num_modes, self.num_modes)], dim=-1)

    def gradient(self, slope: Float[Tensor, "*batch latent"]) -> Float[Tensor, "*batch unit"]:
        """The gradient with respect to ``w`` of a function whose gradient with respect to ``z`` is ``slope``."""
        r, q = self.latent.split(slope)
        return torch.cat([r, change_modes(q * self._source_unit, self.latent.num_modes, self.num_modes)], dim=-1)


def change_modes(q: Float[Tensor, "*batch old"], old: int, new: int) -> Float[Tensor, "*batch new"]:
    """The same source in a smaller or larger block of Fourier modes; modes that are new are zero.

    Args:
        q: source coefficients, laid out as in `latentpde.latent`.
        old, new: modes per half axis that they have, and that they are to have.

    Example:
        >>> change_modes(torch.ones(4), old=1, new=2).sum()
        tensor(4.)
    """
    if old == new:
        return q
    if not old or not new:
        return q.new_zeros((*q.shape[:-1], 4 * new**2))
    both = min(old, new)
    block = q.unflatten(-1, (2, 2, old, old))
    upper, lower = block[..., 0, :, :both, :both], block[..., 1, :, old - both :, :both]
    missing = new - both
    upper = torch.nn.functional.pad(upper, (0, missing, 0, missing))
    lower = torch.nn.functional.pad(lower, (0, missing, missing, 0))
    return torch.stack([upper, lower], dim=-4).flatten(-4)
