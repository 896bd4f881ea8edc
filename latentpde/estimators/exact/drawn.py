"""Draws that are made when they are asked for: states with structure, and draws that cases of a layout share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Complex
from torch import Tensor

from latentpde.decoder import with_velocity
from latentpde.estimators.exact.initial_state import InitialState


@dataclass(frozen=True, eq=False)
class DrawnStates:
    """Fine initial states, one for each draw; made anew when they are asked for, and the same every time.

    Args:
        states: what is known of the initial state of each case.
        deviations: of its coarse coefficients, for each draw; ``None`` where they are known.
        velocities: that it starts with, for each draw; ``None`` at rest.
        seeds: of its structure below the coarse cell.
        num_draws: of each case.
    """

    states: list[InitialState]
    deviations: list[Complex[Tensor, "draw mode"] | None]
    velocities: list[Complex[Tensor, "draw row col"] | None]
    seeds: list[int]
    num_draws: int

    def __getitem__(self, cases: slice, /) -> Complex[Tensor, "case draw row col"]:
        chosen = zip(self.states[cases], self.deviations[cases], self.velocities[cases], self.seeds[cases], strict=True)
        drawn = [(state.draw(own, self.num_draws, seed=seed), moved) for state, own, moved, seed in chosen]
        return torch.stack([state if moved is None else with_velocity(state, moved) for state, moved in drawn])


@dataclass(frozen=True, eq=False)
class MovedDraws:
    """Draws of cases that share their deviations from the mean; each case's are made when they are asked for.

    >>> drawn = torch.randn(3, 2)
    >>> MovedDraws([drawn, drawn], [torch.zeros(1, 2), torch.ones(1, 2)])[0:2].shape
    torch.Size([2, 3, 2])

    Args:
        draws: those of the first case of each case's layout.
        shifts: of each case's mean from that of this first one.
    """

    draws: list[Tensor]
    shifts: list[Tensor]

    def first(self, case: int) -> int:
        """Number of the first case of a case's layout."""
        return next(i for i, draws in enumerate(self.draws) if draws is self.draws[case])

    @property
    def shape(self) -> tuple[int, ...]:
        """Cases, draws, and what each draw has."""
        return len(self.draws), *self.draws[0].shape

    def __getitem__(self, cases: slice, /) -> Tensor:
        pairs = zip(self.draws[cases], self.shifts[cases], strict=True)
        return torch.stack([draws + shift for draws, shift in pairs])
