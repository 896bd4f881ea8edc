"""Bounds of coefficients for data in anybody's units: those that a family states are for a unit square."""

from __future__ import annotations

import re
from fractions import Fraction

import torch
from jaxtyping import Float
from torch import Tensor

from latentpde.errors import UsageError
from latentpde.pde.base import Family

_POWERS = {"": Fraction(1), "²": Fraction(2), "³": Fraction(3), "^½": Fraction(1, 2), "^α": Fraction(2)}


def exponents(unit: str) -> tuple[Fraction, Fraction]:
    """Powers of length and time in a coefficient's unit. An exponent that is itself a coefficient counts as 2.

    >>> exponents("L²/T")
    (Fraction(2, 1), Fraction(-1, 1))
    >>> exponents("1/T^½")
    (Fraction(0, 1), Fraction(-1, 2))
    """
    found = {"L": Fraction(0), "T": Fraction(0)}
    for sign, part in zip((1, -1), unit.split("/"), strict=False):
        for letter, power in re.findall(r"([LT])(\^½|\^α|²|³|)", part):
            found[letter] += sign * _POWERS[power]
    return found["L"], found["T"]


def scaled_bounds(family: Family, length: float, duration: float) -> Float[Tensor, "coefficient 2"]:
    """A family's bounds for a rectangle and a time of any size.

    What a family states is for a unit square over its `default_time`: a wind that crosses most of it, a diffusivity
    that mixes it. The same is taken for other lengths and durations, by the coefficients' units.

    >>> from latentpde.pde import get_family
    >>> scaled_bounds(get_family("advection_diffusion"), length=40.0, duration=5.0)[0]  # vx: 3 * 40 * 0.25 / 5
    tensor([-6.,  6.], dtype=torch.float64)

    Args:
        family: the PDE.
        length: of the rectangle's longer side.
        duration: from the initial state to the last reading; a family of order 0 does not need it.
    """
    if family.order and not duration > 0:
        raise UsageError(
            f"{family.name} describes a change in time, and all readings are of the start; give readings at several "
            "times, or an earlier start, or take a steady family"
        )
    time = duration / family.default_time if family.order else 1.0
    rows = []
    for coefficient in family.coefficients:
        of_length, of_time = exponents(coefficient.unit)
        factor = length ** float(of_length) * time ** float(of_time)
        rows.append([coefficient.lower * factor, coefficient.upper * factor])
    return torch.tensor(rows, dtype=torch.float64)
