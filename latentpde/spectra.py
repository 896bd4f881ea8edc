r"""Gaussian priors of a field that nobody knows: of the initial state, and of the source.

Each is stationary, so it is a spectrum: its Fourier coefficients on a periodic rectangle are independent, with the
power :math:`E|\hat u_k|^2 = P(k)`. A spectrum has a few levels, such as its standard deviation and its length. A level
is

* a number, where it is known;
* a pair ``(lower, upper)``, where it is to be inferred within bounds, with a density that is uniform in its logarithm;
* ``None``, where it is to be inferred within bounds that follow from the data.
"""

from __future__ import annotations

import ast
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.grid import Wavenumbers
from latentpde.validation import LARGEST, SMALLEST, shortened

Level: TypeAlias = float | tuple[float, float] | None

_LONGEST = 500  # characters of a spectrum in words


@dataclass(frozen=True)
class Spectrum(ABC):
    """A stationary Gaussian prior with levels that are known, bounded or inferred.

    Attributes:
        levels: names of its levels, in the order in which `power` takes them.
    """

    levels: ClassVar[tuple[str, ...]]

    def __post_init__(self):
        for name in self.levels:
            value = getattr(self, name)
            pair = value if isinstance(value, tuple) else (value, value)
            numbers = len(pair) == 2 and all(_is_number(bound) for bound in pair)
            if value is not None and not (numbers and SMALLEST <= pair[0] <= pair[1] <= LARGEST):
                raise UsageError(
                    f"the level {name} of {type(self).__name__} is a positive number, or (lower, upper) to infer it "
                    f"between, or None to infer it; got {shortened(value)}"
                )

    @classmethod
    def parse(cls, text: str | Spectrum) -> Spectrum:
        """A spectrum as it is written in Python, on the command line and in files; nothing is evaluated but numbers.

        >>> Spectrum.parse("Matern(std=(0.1, 10.0))")
        Matern(std=(0.1, 10.0), length=None, smoothness=1.5)
        >>> Spectrum.parse("PowerLaw")
        PowerLaw(std=None, slope=None)

        Args:
            text: the name of a spectrum, with its arguments in brackets.
        """
        if isinstance(text, Spectrum):
            return text
        name, args, named = _call(text)
        kinds = {kind.__name__: kind for kind in Spectrum.__subclasses__()}
        if name not in kinds:
            raise UsageError(f"there is no spectrum {shortened(name)}; there are: {', '.join(kinds)}")
        kind = kinds[name]
        known = [f.name for f in fields(kind)]
        given = {**dict(zip(known, args, strict=False)), **named}
        if len(args) > len(known) or len(given) < len(args) + len(named) or set(given) - set(known):
            raise UsageError(f"{name} takes each of {', '.join(known)} at most once, got {shortened(text)}")
        for own, value in given.items():
            whole = own == "num_modes" and isinstance(value, int)
            if not whole and (
                own == "num_modes" or not (_is_level(value) if own in kind.levels else _is_number(value))
            ):
                raise UsageError(
                    f"{own} of {name} cannot be {shortened(value)}; expected a number like those of {kind()}"
                )
            given[own] = value if whole else _as_float(value)
        return kind(**given)

    @abstractmethod
    def power(self, k: Wavenumbers, extent: tuple[float, float], *levels: Tensor) -> Tensor:
        """``E|u_k|^2`` of some modes of a periodic rectangle.

        Args:
            k: their wavenumbers.
            extent: ``(height, width)`` of the rectangle.
            levels: each with axes that broadcast with those of the modes.
        """

    @property
    def shortest(self) -> float | None:
        """The shortest length that somebody gave it; ``None`` where nobody did, or where it has none."""
        length = getattr(self, "length", None)
        return length[0] if isinstance(length, tuple) else length

    def describe(self) -> str:
        """The spectrum in a few words, as it is written in Python."""
        given = ", ".join(
            f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if getattr(self, f.name) is not None
        )
        return f"{type(self).__name__}({given})"


@dataclass(frozen=True)
class Matern(Spectrum):
    r"""A Matern field, :math:`P(k) \propto (2 \nu / \ell^2 + |k|^2)^{-(\nu + 1)}`.

    >>> Matern(std=2.0).describe()
    'Matern(std=2.0, smoothness=1.5)'
    >>> k = Wavenumbers(torch.zeros(1, 1), torch.tensor([[0.0, 1.0]]))
    >>> power = Matern().power(k, (10.0, 10.0), torch.tensor(1.0), torch.tensor(1.0))
    >>> round((power[0, 1] / power[0, 0]).item(), 4)  # (3 / 4) ** 2.5
    0.4871

    Args:
        std: pointwise standard deviation, in the field's unit.
        length: its correlation length, in the unit of lengths: Matern's ``ell``.
        smoothness: ``nu``; a known positive number. Draws have derivatives of every order below it.
    """

    levels = ("std", "length")

    std: Level = None
    length: Level = None
    smoothness: float = 1.5

    def __post_init__(self):
        super().__post_init__()
        if not (_is_number(self.smoothness) and 0 < self.smoothness < 20):
            raise UsageError(
                f"the smoothness of a Matern field is a number between 0 and 20, got {shortened(self.smoothness)}"
            )

    def power(self, k: Wavenumbers, extent: tuple[float, float], *levels: Tensor) -> Tensor:
        std, length = levels
        nu, inverse = self.smoothness, 2 * self.smoothness / length**2
        # The integral of the spectral density over the plane is the variance; a mode stands for its cell of the plane.
        density = 4 * math.pi * nu * torch.exp(nu * torch.log(inverse) - (nu + 1) * torch.log(inverse + k.squared))
        return std**2 * density / (extent[0] * extent[1])


@dataclass(frozen=True)
class PowerLaw(Spectrum):
    r"""A power law, :math:`P(k) \propto \max(|k|, k_1)^{-s}`, with :math:`k_1` the fundamental of the longer side.

    >>> k = Wavenumbers(torch.zeros(1, 1), torch.tensor([[0.0, 1.0, 2.0]]) * 2 * torch.pi)
    >>> power = PowerLaw().power(k, (1.0, 1.0), torch.tensor(1.0), torch.tensor(3.0))
    >>> round((power[0, 1] / power[0, 2]).item(), 4)
    8.0

    Args:
        std: pointwise standard deviation of the modes that a model has, in the field's unit.
        slope: ``s``; rough fields have 3, smooth ones 6 and more.
    """

    levels = ("std", "slope")

    std: Level = None
    slope: Level = None

    def power(self, k: Wavenumbers, extent: tuple[float, float], *levels: Tensor) -> Tensor:
        std, slope = levels
        fundamental = 2 * math.pi / max(extent)
        shape = torch.exp(-slope * torch.log(torch.sqrt(k.squared).clamp(min=fundamental) / fundamental))
        return std**2 * shape / _sum_over_plane(shape, k)


@dataclass(frozen=True)
class WhiteBand(Spectrum):
    """The same power in every mode up to a cut, and none beyond: the paper's prior of the source.

    >>> WhiteBand(num_modes=12, std=0.45)
    WhiteBand(num_modes=12, std=0.45)

    Args:
        num_modes: modes per half axis; 0 for a field that is zero.
        std: pointwise standard deviation, in the field's unit.
    """

    levels = ("std",)

    num_modes: int = 12
    std: Level = None

    def __post_init__(self):
        super().__post_init__()
        if not (_is_number(self.num_modes) and isinstance(self.num_modes, int) and 0 <= self.num_modes <= 1000):
            raise UsageError(f"the number of modes is a whole number from 0 to 1000, got {shortened(self.num_modes)}")

    def power(self, k: Wavenumbers, extent: tuple[float, float], *levels: Tensor) -> Tensor:
        # The latent's block holds the modes of column 0 twice, so each of them has half the power of the others.
        (std,) = levels
        flat = torch.where(k.x == 0, 1.0, 2.0).to(k.x.dtype) / (8 * self.num_modes**2 - 6 * self.num_modes)
        return std**2 * flat


def is_spectrum(text: str) -> bool:
    """Whether a text begins with the name of a spectrum.

    >>> is_spectrum("Matern(std=1.0)"), is_spectrum("materials of the survey")
    (True, False)
    """
    name = text.strip().removeprefix("lp.").partition("(")[0].strip()
    return name in {kind.__name__ for kind in Spectrum.__subclasses__()}


def _sum_over_plane(power: Tensor, k: Wavenumbers) -> Float[Tensor, "*batch 1 1"]:
    """The sum over all modes, those with negative columns included, of which a block is the half plane."""
    return torch.where(k.x == 0, power, 2 * power).sum((-2, -1), keepdim=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_level(value: Any) -> bool:
    pair = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
    return value is None or all(_is_number(bound) for bound in pair)


def _as_float(value: Any) -> Any:
    return (
        tuple(float(bound) for bound in value) if isinstance(value, tuple) else None if value is None else float(value)
    )


def _call(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Name and arguments of a call such as ``Matern(std=(0.1, 10.0))``; the arguments must be literals."""
    try:
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise ValueError
        tree = ast.parse(text.strip().removeprefix("lp."), mode="eval").body
        call = ast.Call(tree, [], []) if isinstance(tree, ast.Name) else tree
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError
        args = [_literal(node) for node in call.args]
        return call.func.id, args, {str(k.arg): _literal(k.value) for k in call.keywords}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UsageError(
            f"a prior is written as in Python, such as Matern(std=(0.1, 10.0)) or PowerLaw(); got {shortened(text)}"
        ) from error


def _literal(node: ast.expr) -> Any:
    value = ast.literal_eval(node)
    return tuple(value) if isinstance(value, list) else value
