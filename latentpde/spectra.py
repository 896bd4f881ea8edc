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
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.domain import Domain
from latentpde.errors import UsageError
from latentpde.grid import Mirror, Wavenumbers
from latentpde.quantities import as_number
from latentpde.validation import LARGEST, SMALLEST, shortened

Level: TypeAlias = float | tuple[float, float] | None

_LONGEST = 500  # characters of a spectrum in words


@dataclass(frozen=True, repr=False)
class Spectrum(ABC):
    """A stationary Gaussian prior with levels that are known, bounded or inferred.

    Between walls it has mirror images (`latentpde.grid.mirror`): away from them it is the same field. Its functions are
    those of the domain, sines where the field vanishes at the walls, unless another basis is named: a source, or a
    state, need not vanish where the field does.

    A spectrum of your own is a subclass with its levels and `power`; `docs/extending.md` has one.

    Attributes:
        levels: names of its levels, in the order in which `power` takes them: ``std`` has the field's unit, ``length``
            is a length, ``slope`` a number.

    Args:
        num_modes: modes per half axis, those of longer waves; by default as many as the readings can tell of.
        zero_mean: whether the field has no constant part.
        basis: the domain whose functions it is a sum of, with walls along both axes, such as ``"neumann"``; by default
            the case's own.
        margin: how far the rectangle of these functions reaches beyond the case's on all sides.
    """

    levels: ClassVar[tuple[str, ...]]

    num_modes: int | None = field(default=None, kw_only=True)
    zero_mean: bool = field(default=False, kw_only=True)
    basis: Domain | str | None = field(default=None, kw_only=True)
    margin: float = field(default=0.0, kw_only=True)

    def __init_subclass__(cls):
        others = [name for name in cls.levels if name not in ("std", "length", "slope")]
        if others:
            raise UsageError(
                f"the levels of a spectrum are called std, length or slope, which says their units; {cls.__name__} has "
                f"{', '.join(others)}"
            )

    def __post_init__(self):
        if not (self.num_modes is None or (isinstance(self.num_modes, int) and 0 <= self.num_modes <= 1000)):
            raise UsageError(f"the number of modes is a whole number from 0 to 1000, got {self.num_modes!r}")
        mirror = self.basis_mirror
        if mirror is not None and not (mirror.y and mirror.x):
            raise UsageError(f"another basis needs walls along both axes, dirichlet or neumann; got {self.basis}")
        if not (_is_number(self.margin) and 0 <= self.margin <= LARGEST) or (self.margin and mirror is None):
            raise UsageError(f"the margin of a basis that is named is a number >= 0, got {shortened(self.margin)}")
        for name in self.levels:
            value = getattr(self, name)
            if name == "length" and _has_unit(value):
                continue  # a number of the data's unit only when these are known
            pair = value if isinstance(value, tuple) else (value, value)
            numbers = len(pair) == 2 and all(_is_number(bound) for bound in pair)
            if value is not None and not (numbers and SMALLEST <= pair[0] <= pair[1] <= LARGEST):
                raise UsageError(
                    f"the level {name} of {type(self).__name__} is a positive number, or (lower, upper) to infer it "
                    f"between, or None to infer it; got {shortened(value)}"
                )

    @property
    def basis_mirror(self) -> Mirror | None:
        """The symmetry of the basis that is named; ``None`` where none is."""
        return None if self.basis is None else Domain.parse(self.basis).mirror

    @classmethod
    def parse(cls, text: str | Spectrum) -> Spectrum:
        """A spectrum as it is written in Python, on the command line and in files; nothing is evaluated but numbers.

        >>> Spectrum.parse("Matern(std=(0.1, 10.0))")
        Matern(std=(0.1, 10.0), smoothness=1.5)
        >>> Spectrum.parse("PowerLaw(zero_mean=True, basis='neumann')")
        PowerLaw(zero_mean=True, basis='neumann')

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
        known = [f.name for f in sorted(fields(kind), key=lambda f: bool(f.kw_only))]
        given = {**dict(zip(known, args, strict=False)), **named}
        if (
            len(args) > sum(not f.kw_only for f in fields(kind))
            or len(given) < len(args) + len(named)
            or set(given) - set(known)
        ):
            raise UsageError(f"{name} takes each of {', '.join(known)} at most once, got {shortened(text)}")
        for own, value in given.items():
            as_it_is = {"num_modes": int, "zero_mean": bool, "basis": str}.get(own)
            if own == "length" and own in kind.levels and _has_unit(value):
                continue
            valid = _is_level(value) if own in kind.levels else _is_number(value)
            if not (valid if as_it_is is None else type(value) is as_it_is):
                raise UsageError(
                    f"{own} of {name} cannot be {shortened(value)}; expected a number like those of {kind()}"
                )
            given[own] = _as_float(value) if as_it_is is None else value
        return kind(**given)

    @abstractmethod
    def power(self, k: Wavenumbers, extent: tuple[float, float], *levels: Tensor) -> Tensor:
        """``E|u_k|^2`` of some modes of a periodic rectangle. Wavenumbers, extent and levels are in the same units,
        which need not be the user's: a length that is not a level would be taken for another one.

        Args:
            k: their wavenumbers.
            extent: ``(height, width)`` of the rectangle.
            levels: each with axes that broadcast with those of the modes.
        """

    def in_unit(self, unit: str) -> Spectrum:
        """The same with a length that came with a unit as a number of another.

        >>> Matern(2.0, ("12 km", "40 km")).in_unit("m")
        Matern(std=2.0, length=(12000.0, 40000.0), smoothness=1.5)

        Args:
            unit: of lengths in the data; empty where it is not known.
        """
        length = getattr(self, "length", None)
        if not _has_unit(length):
            return self
        ends = length if isinstance(length, tuple) else (length,)
        numbers = tuple(as_number(end, unit, f"the length of {type(self).__name__}") for end in ends)
        return replace(self, length=numbers if isinstance(length, tuple) else numbers[0])  # pyright: ignore

    @property
    def shortest(self) -> float | None:
        """The shortest length that somebody gave it; ``None`` where nobody did, or where it has none."""
        length = getattr(self, "length", None)
        return length[0] if isinstance(length, tuple) else length

    def describe(self) -> str:
        """The spectrum in a few words, as it is written in Python."""
        given = []
        for f in sorted(fields(self), key=lambda f: bool(f.kw_only)):
            value = getattr(self, f.name)
            if value is not None and not (f.kw_only and value == f.default):
                given.append(f"{f.name}={(value.describe() if isinstance(value, Domain) else value)!r}")
        return f"{type(self).__name__}({', '.join(given)})"

    __repr__ = describe


@dataclass(frozen=True, repr=False)
class Matern(Spectrum):
    r"""A Matern field, :math:`P(k) \propto (2 \nu / \ell^2 + |k|^2)^{-(\nu + 1)}`.

    >>> Matern(std=2.0).describe()
    'Matern(std=2.0, smoothness=1.5)'
    >>> k = Wavenumbers(torch.zeros(1, 1), torch.tensor([[0.0, 1.0]]))
    >>> power = Matern().power(k, (10.0, 10.0), torch.tensor(1.0), torch.tensor(1.0))
    >>> round((power[0, 1] / power[0, 0]).item(), 4)  # (3 / 4) ** 2.5
    0.4871
    >>> Matern.of_laplacian(3.0, tau=3.0, alpha=2.0, zero_mean=True)
    Matern(std=0.28209479177387814, length=0.47140452079103173, smoothness=1.0, zero_mean=True)

    Args:
        std: pointwise standard deviation, in the field's unit.
        length: its correlation length, Matern's ``ell``: in the data's unit, or text with a unit such as ``"12 km"``.
        smoothness: ``nu``; a known positive number. Draws have derivatives of every order below it.
    """

    levels = ("std", "length")

    std: Level = None
    length: Level | str | tuple[str, str] = None
    smoothness: float = 1.5

    def __post_init__(self):
        super().__post_init__()
        if not (_is_number(self.smoothness) and 0 < self.smoothness < 20):
            raise UsageError(
                f"the smoothness of a Matern field is a number between 0 and 20, got {shortened(self.smoothness)}"
            )

    @classmethod
    def of_laplacian(cls, scale: float, tau: float, alpha: float, **options: Any) -> Matern:
        r"""The field whose covariance operator is :math:`s^2 (\tau^2 - \Delta)^{-\alpha}`, as others write it.

        Args:
            scale: ``s``.
            tau: an inverse length.
            alpha: more than 1.
            options: those that all spectra have.
        """
        if not (alpha > 1 and tau > 0 and scale > 0):
            raise UsageError(f"a field needs alpha > 1, tau > 0 and scale > 0, got {alpha}, {tau}, {scale}")
        nu = alpha - 1
        std = scale * tau**-nu / math.sqrt(4 * math.pi * nu)
        return cls(std, math.sqrt(2 * nu) / tau, nu, **options)

    def power(self, k: Wavenumbers, extent: tuple[float, float], *levels: Tensor) -> Tensor:
        std, length = levels
        nu, inverse = self.smoothness, 2 * self.smoothness / length**2
        # The integral of the spectral density over the plane is the variance; a mode stands for its cell of the plane.
        density = 4 * math.pi * nu * torch.exp(nu * torch.log(inverse) - (nu + 1) * torch.log(inverse + k.squared))
        return std**2 * density / (extent[0] * extent[1])


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
class WhiteBand(Spectrum):
    """The same power in every mode up to a cut, and none beyond: the paper's prior of the source.

    >>> WhiteBand(num_modes=12, std=0.45)
    WhiteBand(num_modes=12, std=0.45)

    Args:
        num_modes: modes per half axis; 0 for a field that is zero.
        std: pointwise standard deviation, in the field's unit.
    """

    levels = ("std",)

    num_modes: int = field(default=12, kw_only=False)  # pyright: ignore[reportIncompatibleVariableOverride]
    std: Level = None

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


def _has_unit(value: Any) -> bool:
    ends = value if isinstance(value, tuple) else (value,)
    return 1 <= len(ends) <= 2 and any(isinstance(end, str) for end in ends)


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
