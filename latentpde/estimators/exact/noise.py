"""The noise of readings: known for each of them, or a level of a group of them that is inferred."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Noise:
    """Independent Gaussian noise of each reading.

    >>> noise = Noise(torch.tensor([0.04, 0.0]), torch.tensor([-1, 2]), torch.ones(2))
    >>> noise.variance(torch.tensor([[1.0, 1.0, 0.5]]))  # the second reading's level is the parameter in column 2
    tensor([[0.0400, 0.2500]])

    Args:
        known: variance that is known; of readings whose level is inferred, what they have beyond it.
        column: of each reading, the parameter that is its standard deviation, or -1 where there is none.
        factor: what the square of that level is multiplied by; above one for readings that are believed less.
    """

    known: Float[Tensor, " reading"]
    column: Int[Tensor, " reading"]
    factor: Float[Tensor, " reading"]

    @classmethod
    def given(cls, variance: Float[Tensor, " reading"]) -> Noise:
        """Noise that is known."""
        return cls(variance, torch.full((len(variance),), -1, dtype=torch.long), torch.ones_like(variance))

    def variance(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, "*batch reading"]:
        """Of each reading; without a batch where all of it is known."""
        if not self.inferred:
            return self.known
        squares = parameters[:, self.column.clamp(min=0)] ** 2
        return self.known + torch.where(self.column < 0, 0.0, self.factor * squares)

    def only(self, chosen: Int[Tensor, " chosen"]) -> Noise:
        """That of some of the readings."""
        return Noise(self.known[chosen], self.column[chosen], self.factor[chosen])

    @property
    def inferred(self) -> bool:
        """Whether any of it depends on the parameters."""
        return bool((self.column >= 0).any())

    @property
    def classes(self) -> list[NoiseClass]:
        """The readings in classes, within each of which all variances depend on the parameters in the same way."""
        extra = torch.where(self.column < 0, 0.0, self.known / self.factor)
        kinds = torch.stack([self.column.to(self.known.dtype), extra], dim=-1)
        _, kind = kinds.unique(dim=0, return_inverse=True)
        return [self._class((kind == i).nonzero()[:, 0]) for i in range(int(kind.max()) + 1)]

    def _class(self, members: Int[Tensor, " member"]) -> NoiseClass:
        column, known, factor = int(self.column[members[0]]), self.known[members], self.factor[members]
        if column < 0:
            return NoiseClass(members, known, -1, 0.0)
        return NoiseClass(members, factor, column, float(known[0] / factor[0]))

    def scaled(self, factors: Float[Tensor, " reading"]) -> Noise:
        """With the variance of each reading multiplied by a factor."""
        return replace(self, known=self.known * factors, factor=self.factor * factors)

    def least(self, size: float) -> float:
        """About the smallest variance that a reading has, where readings vary by ``size``; a hundredth of that stands
        for a level that is inferred."""
        known = self.known + torch.where(self.column < 0, 0.0, self.factor * (1e-2 * size) ** 2)
        return float(known.min())

    def with_extra(self, variance: float) -> Noise:
        """More of it in every reading."""
        return replace(self, known=self.known + variance)


@dataclass(frozen=True, eq=False)
class NoiseClass:
    """Readings whose variances are a constant for each, times one function of the parameters.

    Args:
        members: which readings.
        constant: of each of them.
        column: the parameter whose square, plus ``extra``, the constants are multiplied by; -1 for none.
        extra: variance.
    """

    members: Int[Tensor, " member"]
    constant: Float[Tensor, " member"]
    column: int
    extra: float

    def precision(self, parameters: Float[Tensor, "batch parameter"]) -> Float[Tensor, " batch"] | None:
        """What the inverse constants are to be multiplied by; ``None`` for one."""
        return None if self.column < 0 else 1 / (parameters[:, self.column] ** 2 + self.extra)
