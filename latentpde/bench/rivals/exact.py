"""The rivals' tasks by `exact`, as a user would pose them: a prior in cosines, walls, differences on nodes."""

from __future__ import annotations

import time

import numpy as np
import torch

import latentpde as lp
from latentpde.bench.rivals.fields import SIZE, SPACING, Equation, Layout
from latentpde.estimators.exact.estimator import Exact
from latentpde.estimators.exact.model import Draws, Model
from latentpde.latent import Latent
from latentpde.pde import Family, discretised, get_family

LEAST = 1e-5  # noise of readings that have none, as a share of the standard deviation of what is read


def family_of(equation: Equation, scheme: str = "five-point") -> tuple[Family, dict[str, float]]:
    """The family, and its coefficients. Its source is minus the papers' right-hand side, whose prior is symmetric."""
    name, fixed = ("time_harmonic", {"c": 1.0, "omega": 1.0}) if equation.shift else ("poisson", {"kappa": 1.0})
    family = get_family(name)
    return (discretised(family, (SPACING, SPACING)) if scheme == "five-point" else family), fixed


def prior() -> lp.Matern:
    """Theirs: cosines of the cells whose centres are the nodes; our unit of length is the distance between walls."""
    scale = SPACING * SIZE
    return lp.Matern.of_laplacian(
        3.0 / scale, 3.0 / scale, 2.0, zero_mean=True, num_modes=SIZE, basis="neumann", margin=SPACING / 2
    )


def observation_of(layout: Layout) -> lp.Observation:
    """All fields of a layout as the cases of one observation."""
    values, index, reads_a, noise = layout.readings(LEAST)
    row, col = np.divmod(index, SIZE)
    return lp.Observation.from_table(
        np.where(reads_a, -values, values),
        y=row * SPACING,
        x=col * SPACING,
        sigma=noise,
        reads=np.where(reads_a, "source", "field"),
        grid=lp.Grid((SIZE - 1, SIZE - 1)),
        domain=lp.Domain("dirichlet", "dirichlet"),
    )


def solve(
    layout: Layout, scheme: str = "five-point"
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray], float, float]:
    """Means of right-hand side and solution, a draw of both, and the seconds that the layout took with its first mean
    and that each further mean took.

    Args:
        layout: the readings.
        scheme: ``five-point``, as the data were made, or ``exact`` for the PDE itself.
    """
    observation, (family, fixed) = observation_of(layout), family_of(layout.equation, scheme)
    start = time.perf_counter()
    models = Exact(fixed=fixed, source=prior(), trend="none").models(observation, Latent(family))
    parameters = torch.tensor([list(fixed.values())], dtype=torch.float64)
    means, seconds = [], []
    for model in models:
        means.append(_on_nodes(model, model.draw(parameters, None, 0)))
        seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
    generator, fields = torch.Generator().manual_seed(5), []
    draws = [_on_nodes(model, model.draw(parameters, generator, 0)) for model in models]
    for found in (means, draws):
        a, u = (np.stack([own[i] for own in found]) for i in (0, 1))
        if layout.equation.zero_edge:
            a[:, [0, -1]] = a[:, :, [0, -1]] = 0.0
        fields.append((a, u))
    return fields[0], fields[1], seconds[0], float(np.mean(seconds[1:] or seconds))


def _on_nodes(model: Model, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Right-hand side and solution, with the papers' signs."""
    decoder, line = model.decoder, torch.arange(SIZE, dtype=torch.float64) * SPACING
    assert decoder.source_basis is not None
    assert draws.initial_hat is not None
    source = decoder.source_basis.at(decoder.source_spectrum(decoder.latent.split(draws.z)[1]), line, line)
    field = decoder.at(decoder.spectrum(draws.z, draws.initial_hat, [1.0])[:, 0], line, line)
    return -source[0].numpy(), field[0].numpy()
