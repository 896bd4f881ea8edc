"""The rivals' tasks by `exact`, as a user would pose them: a prior in cosines, walls, differences on nodes."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch

import latentpde as lp
from latentpde.bench.rivals.fields import SIZE, SPACING, Equation, Layout
from latentpde.estimators.exact.estimator import Exact
from latentpde.estimators.exact.model import Draws, Model
from latentpde.latent import Latent
from latentpde.pde import Family, discretised, get_family

LEAST = 1e-5  # noise of readings that have none, as a share of the standard deviation of what is read
_NUM_DRAWS, _SWEEP, _TARGET = 32, 32, 30.0  # two levels of one mode need little of a search


def family_of(equation: Equation, scheme: str = "five-point") -> tuple[Family, dict[str, float]]:
    """The family, and its coefficients. Its source is minus the papers' right-hand side, whose prior is symmetric."""
    name, fixed = ("time_harmonic", {"c": 1.0, "omega": 1.0}) if equation.shift else ("poisson", {"kappa": 1.0})
    family = get_family(name)
    return (discretised(family, (SPACING, SPACING)) if scheme == "five-point" else family), fixed


def prior(num_modes: int = SIZE) -> lp.Matern:
    """Theirs: cosines of the cells whose centres are the nodes; our unit of length is the distance between walls."""
    scale = SPACING * SIZE
    return lp.Matern.of_laplacian(
        3.0 / scale, 3.0 / scale, 2.0, zero_mean=True, num_modes=num_modes, basis="neumann", margin=SPACING / 2
    )


def observation_of(layout: Layout, least: float = LEAST) -> lp.Observation:
    """All fields of a layout as the cases of one observation."""
    values, index, reads_a, noise = layout.readings(least)
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
    layout: Layout, scheme: str = "five-point", least: float = LEAST, num_modes: int = SIZE
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray], float, float]:
    """Means of right-hand side and solution, a draw of both, and the seconds that the layout took with its first mean
    and that each further mean took.

    Args:
        layout: the readings.
        scheme: ``five-point``, as the data were made, or ``exact`` for the PDE itself.
        least: noise that is assumed where there is none.
        num_modes: of the prior, along each axis.
    """
    observation, (family, fixed) = observation_of(layout, least), family_of(layout.equation, scheme)
    start = time.perf_counter()
    models = Exact(fixed=fixed, source=prior(num_modes), trend="none").models(observation, Latent(family))
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


def infer_levels(layout: Layout, num_modes: int, seed: int) -> tuple[np.ndarray, float, float]:
    """Means of the right-hand side with strength and length of its prior inferred from the readings of each field
    within factors of 3, the mean of their ratio over the true one, and the seconds that a field took.

    Args:
        layout: the readings.
        num_modes: of the prior, along each axis.
        seed: of the search.
    """
    truth = prior(num_modes)
    assert isinstance(truth.std, float)
    assert isinstance(truth.length, float)
    std, length = ((value / 3, value * 3) for value in (truth.std, truth.length))
    family, fixed = family_of(layout.equation)
    start = time.perf_counter()
    posterior = lp.reconstruct(
        observation_of(layout),
        family,
        fixed=fixed,
        source=replace(truth, std=std, length=length),
        trend="none",
        num_draws=_NUM_DRAWS,
        num_spread_draws=2,
        num_mean_nodes=_NUM_DRAWS,
        sweep=_SWEEP,
        target=_TARGET,
        seed=seed,
    )
    seconds = (time.perf_counter() - start) / len(layout.a)
    line = torch.arange(SIZE, dtype=torch.float64) * SPACING
    decoder, mean_z = posterior.decoder, posterior.mean_z.mean(1)
    assert decoder.source_basis is not None
    a = -decoder.source_basis.at(decoder.source_spectrum(decoder.latent.split(mean_z)[1]), line, line).numpy()
    if layout.equation.zero_edge:
        a[:, [0, -1]] = a[:, :, [0, -1]] = 0.0
    stds, lengths = posterior.level_draws.unbind(-1)
    return a, float((stds / lengths).mean()) * truth.length / truth.std, seconds


def _on_nodes(model: Model, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
    """Right-hand side and solution, with the papers' signs."""
    decoder, line = model.decoder, torch.arange(SIZE, dtype=torch.float64) * SPACING
    assert decoder.source_basis is not None
    assert draws.initial_hat is not None
    source = decoder.source_basis.at(decoder.source_spectrum(decoder.latent.split(draws.z)[1]), line, line)
    field = decoder.at(decoder.spectrum(draws.z, draws.initial_hat, [1.0])[:, 0], line, line)
    return -source[0].numpy(), field[0].numpy()
