"""Simulated cases: initial conditions, masks, regimes, and observations with their truth."""

from latentpde.simulation.cases import Simulation, simulate, simulate_to_file
from latentpde.simulation.initial_conditions import draw_initial_condition, initial_conditions
from latentpde.simulation.masks import EVALUATION_MASKS, TRAINING_MASKS, draw_mask, masks
from latentpde.simulation.regimes import PAPER_REGIMES, Regime, regimes

__all__ = [
    "EVALUATION_MASKS",
    "PAPER_REGIMES",
    "TRAINING_MASKS",
    "Regime",
    "Simulation",
    "draw_initial_condition",
    "draw_mask",
    "initial_conditions",
    "masks",
    "regimes",
    "simulate",
    "simulate_to_file",
]
