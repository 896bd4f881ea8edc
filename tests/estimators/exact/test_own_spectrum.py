"""A spectrum that somebody else wrote, as a prior: against a dense Gaussian, in whatever units the model chooses."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

import latentpde as lp
from latentpde.errors import UsageError

STD, LENGTH, NOISE, NUM = 2.0, 0.7, 0.05, 6
EXTENT = (3.0, 4.0)


@dataclass(frozen=True, repr=False)
class Bell(lp.Spectrum):
    """A field with a Gaussian correlation."""

    levels = ("std", "length")

    std: float | tuple[float, float] | None = None
    length: float | tuple[float, float] | None = None

    def power(self, k, extent, *levels):
        std, length = levels
        density = 2 * torch.pi * length**2 * torch.exp(-k.squared * length**2 / 2)
        return std**2 * density / (extent[0] * extent[1])


@pytest.fixture(scope="module")
def readings():
    rng = np.random.default_rng(4)
    return rng.random((15, 2)) * np.array(EXTENT), rng.standard_normal(15)


def mean_at(asked, readings, source):
    places, values = readings
    observation = lp.Observation.from_table(
        values,
        y=places[:, 0],
        x=places[:, 1],
        sigma=NOISE,
        grid=lp.Grid((6, 8), EXTENT),
        domain=lp.Domain("dirichlet", "neumann"),
    )
    posterior = lp.reconstruct(
        observation, "poisson", fixed={"kappa": 1.0}, source=source, trend="none", num_draws=1, num_spread_draws=2
    )
    return posterior.at(asked)["mean"].values


def test_the_posterior_is_that_of_a_dense_gaussian(readings):
    places, values = readings
    n, m = np.arange(1, NUM), np.arange(NUM)
    ky, kx = np.pi * n / EXTENT[0], np.pi * m / EXTENT[1]
    squared = ky[:, None] ** 2 + kx**2
    power = STD**2 * 2 * np.pi * LENGTH**2 * np.exp(-squared * LENGTH**2 / 2) / (4 * EXTENT[0] * EXTENT[1])
    power = power * 4 * np.where(m == 0, 2, 4)  # the rectangle with its images has four times its area

    def responses(at):
        waves = np.sin(at[:, :1] * ky)[:, :, None] * np.cos(at[:, 1:] * kx)[:, None, :]
        return (waves / squared * np.sqrt(power)).reshape(len(at), -1)

    matrix, asked = responses(places), np.array([[1.0, 1.0], [2.2, 3.9], [0.1, 0.3]])
    gain = np.linalg.solve(matrix @ matrix.T + NOISE**2 * np.eye(len(places)), values)
    expected = responses(asked) @ (matrix.T @ gain)
    found = mean_at(asked, readings, Bell(STD, LENGTH, num_modes=NUM))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    nearly = Bell(STD, (LENGTH * (1 - 1e-7), LENGTH * (1 + 1e-7)), num_modes=NUM)  # inferred, so in the model's units
    np.testing.assert_allclose(mean_at(asked, readings, nearly), expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_its_levels_are_inferred(readings):
    found = mean_at([[1.0, 1.0]], readings, Bell((0.1, 10.0), (0.3, 3.0), num_modes=NUM, basis="neumann"))
    assert np.isfinite(found).all()


def test_levels_of_unknown_units_are_refused():
    with pytest.raises(UsageError, match="std, length or slope"):

        class Other(lp.Spectrum):
            levels = ("std", "tau")
