"""Known values and slopes on walls, against differences in space and small steps in time."""

from dataclasses import replace

import numpy as np
import pytest

import latentpde as lp
from latentpde.errors import DataError, UsageError

KAPPA, NUM, LAST = 0.1, 40, 0.5


def march(start, values, kappa=KAPPA, until=LAST):
    """Heat between plates at y = 0 and 1 of given values, periodic along x, on cells; explicit steps."""
    h = 1 / NUM
    steps = int(np.ceil(until * kappa / (0.2 * h**2)))
    u = start.copy()
    for _ in range(steps):
        wide = np.vstack([2 * values[0] - u[:1], u, 2 * values[1] - u[-1:]])  # the wall is half a cell away
        along_y = wide[2:] - 2 * u + wide[:-2]
        along_x = np.roll(u, 1, 1) - 2 * u + np.roll(u, -1, 1)
        u = u + until / steps * kappa / h**2 * (along_y + along_x)
    return u


def plates(**options):
    values, line = (2.0, 5.0), (np.arange(NUM) + 0.5) / NUM
    y, x = line[:, None], line[None]
    start = 2 + 3 * y + np.sin(np.pi * y) * (1 + 0.5 * np.cos(2 * np.pi * x))
    return values, start, march(start, values)


def test_a_known_start_cools_between_plates_of_different_temperatures():
    values, start, end = plates()
    seen = np.full((NUM, NUM), np.nan)
    seen[3::9, 4::9] = end[3::9, 4::9]
    observation = lp.Observation.from_arrays(
        seen, start, times=[LAST], noise_std=0.01, pooling=1, domain=lp.Domain("dirichlet", "periodic", on_y=values)
    )
    posterior = lp.reconstruct(
        observation, "heat", num_modes=0, detail=False, num_draws=20, bounds={"kappa": (0.01, 1)}
    )
    assert abs(float(posterior.coefficients.mean()) - KAPPA) < 0.003
    assert np.abs(posterior.mean(NUM).values - end).max() < 0.01
    ends = posterior.at([[0.0, 0.3], [1.0, 0.8]])["mean"].values
    np.testing.assert_allclose(ends, values, atol=1e-9)
    score = posterior.leave_one_out().z.values
    assert np.abs(score).max() < 4
    np.testing.assert_allclose(posterior.leave_one_out()["value"], end[3::9, 4::9].ravel())


def test_readings_alone_between_plates_and_many_fields():
    """A table of readings in time without a start; cases of one layout share their spread."""
    values, start, end = plates()
    rng = np.random.default_rng(3)
    row, col, late = rng.integers(0, NUM, 60), rng.integers(0, NUM, 60), rng.random(60) < 0.5
    read = np.where(late, end[row, col], start[row, col]) + 0.02 * rng.standard_normal((2, 60))
    observation = lp.Observation.from_table(
        read, y=(row + 0.5) / NUM, x=(col + 0.5) / NUM, t=np.where(late, LAST, 0.0), start=0.0, sigma=0.02,
        grid=lp.Grid((20, 20)), domain=lp.Domain("dirichlet", "periodic", on_y=values),
    )  # fmt: skip
    posterior = lp.reconstruct(
        observation, "heat", fixed={"kappa": KAPPA}, initial=lp.Matern(1.0, 0.5), num_modes=0, num_draws=5
    )
    mean, std = posterior.mean(NUM).values, posterior.std(NUM).values
    assert np.abs(mean - end).max() < 0.1
    assert np.abs((mean - end) / std)[:, 5:-5].max() < 4.5
    low, high = posterior.quantiles([0.05, 0.95], resolution=NUM).values.swapaxes(0, 1)
    assert (low <= mean).all()
    assert (mean <= high).all()
    walls = posterior.at([[0.0, 0.5], [1.0, 0.5]])
    np.testing.assert_allclose(walls["mean"].values, [values, values], atol=1e-9)
    np.testing.assert_allclose(walls["std"].values, 0.0, atol=1e-9)


def test_heat_flows_through_walls_of_a_known_slope():
    """Between walls with the same slope everything that is not linear dies out."""
    domain, rng = lp.Domain("neumann", "neumann", on_x=(3.0, 3.0)), np.random.default_rng(0)
    y, x = rng.random(30), 2 * rng.random(30)
    observation = lp.Observation.from_table(
        1 + 3 * x + 0.01 * rng.standard_normal(30), y=y, x=x, t=np.full(30, 1.0), start=0.0, sigma=0.01,
        grid=lp.Grid((8, 8), (1.0, 2.0)), domain=domain,
    )  # fmt: skip
    posterior = lp.reconstruct(
        observation, "heat", fixed={"kappa": 0.3}, initial=lp.Matern(1.0, 0.5), num_modes=0, num_draws=2
    )
    found = posterior.at([[0.1, 0.0], [0.9, 2.0]], times=1.0)["mean"].values
    np.testing.assert_allclose(found, [1.0, 7.0], atol=0.03)


BOX = lp.Domain("dirichlet", "dirichlet", on_y=(1.0, -2.0), on_x=(3.0, 0.5))


def box(kappa=KAPPA, until=LAST):
    """Heat in a box with four different walls, from a start that is far from steady."""
    line = (np.arange(NUM) + 0.5) / NUM
    u = start = 1 + np.sin(np.pi * line[:, None]) * np.sin(2 * np.pi * line)
    h, steps = 1 / NUM, int(np.ceil(until * kappa * NUM**2 / 0.2))
    for _ in range(steps):
        tall = np.vstack([2 * BOX.on_y[0] - u[:1], u, 2 * BOX.on_y[1] - u[-1:]])
        wide = np.hstack([2 * BOX.on_x[0] - u[:, :1], u, 2 * BOX.on_x[1] - u[:, -1:]])
        u = u + until / steps * kappa / h**2 * (tall[2:] + tall[:-2] + wide[:, 2:] + wide[:, :-2] - 4 * u)
    return start, u


@pytest.mark.parametrize("method", ["exact", "map"])
def test_four_different_walls(method):
    start, end = box()
    seen = np.full((NUM, NUM), np.nan)
    seen[3::9, 4::9] = end[3::9, 4::9]
    observation = lp.Observation.from_arrays(seen, start, times=[LAST], noise_std=0.01, pooling=1, domain=BOX)
    options = {"exact": {"detail": False, "num_draws": 10}, "map": {"num_steps": 150, "weight": 0.0}}[method]
    posterior = lp.reconstruct(
        observation, "heat", method=method, num_modes=0, bounds={"kappa": (0.01, 1.0)}, **options
    )
    assert abs(float(posterior.coefficients.mean()) - KAPPA) < 0.003
    off = posterior.mean(NUM).values.reshape(NUM, NUM) - end
    assert np.abs(off[2:-2, 2:-2]).max() < 0.02
    predicted = posterior.predicted_readings(slice(None)).numpy()
    assert np.abs(predicted[0, 0] - end)[3::9, 4::9].max() < 0.02


def test_walls_drive_a_field_that_decays():
    """Waves of one frequency between walls that hold one: -c^2 u'' - omega^2 u = 0 has cosines for solutions."""
    c, omega, rng = 1.0, 1.3, np.random.default_rng(2)
    y, x = rng.random(40), rng.random(40)
    field = np.cos(omega / c * (y - 0.5)) / np.cos(omega / c / 2)
    observation = lp.Observation.from_table(
        field + 1e-3 * rng.standard_normal(40), y=y, x=x, sigma=1e-3, grid=lp.Grid((16, 16)),
        domain=lp.Domain("dirichlet", "periodic", on_y=(1.0, 1.0)),
    )  # fmt: skip
    posterior = lp.reconstruct(
        observation, "time_harmonic", fixed={"c": c}, source="none", bounds={"omega": (0.5, 2.0)}, num_draws=10
    )
    assert abs(float(posterior.coefficients.sel(coefficient="omega").mean()) - omega) < 0.01
    middle = posterior.at([[0.5, 0.2], [0.0, 0.7], [1.0, 0.1]])["mean"].values
    np.testing.assert_allclose(middle, [1 / np.cos(omega / c / 2), 1.0, 1.0], atol=2e-3)
    assert np.abs(posterior.leave_one_out().z.values).max() < 4


def test_what_flows_in_heats_up():
    """Slopes that differ, on a ring cut open: the mean rises by what enters, and the diffusivity says how much."""
    rng = np.random.default_rng(4)
    x, t = 2 * rng.random(60), rng.random(60)
    kappa, (low, high) = 0.2, (-1.0, 2.0)
    curve = (high - low) / 2
    field = low * x + curve * x**2 / 2 + kappa * curve * t
    observation = lp.Observation.from_table(
        field + 0.01 * rng.standard_normal(60), y=rng.random(60), x=x, t=t, start=0.0, sigma=0.01,
        grid=lp.Grid((8, 16), (1.0, 2.0)), domain=lp.Domain("periodic", "neumann", on_x=(low, high)),
    )  # fmt: skip
    posterior = lp.reconstruct(
        observation, "heat", source="none", initial=lp.Matern(0.1, 0.5), bounds={"kappa": (0.01, 1.0)}, num_draws=20
    )
    assert abs(float(posterior.coefficients.mean()) - kappa) < 0.02
    found = posterior.at([[0.5, 0.0], [0.5, 2.0]], times=1.0)["mean"].values
    np.testing.assert_allclose(found, [kappa * curve, 2 * low + 2 * curve + kappa * curve], atol=0.03)


def test_what_walls_cannot_hold_is_refused():
    for wrong in (
        {"y": "periodic", "x": "dirichlet", "on_y": (1.0, 1.0)},
        {"y": "dirichlet", "x": "periodic", "on_y": (1.0, float("nan"))},
    ):
        with pytest.raises(UsageError):
            lp.Domain(**wrong)
    for wrong in ("y=dirichlet(1)", "dirichlet(1,a)", "dirichlet(1,2", "y=dirichlet(1,2),y=open", "open,open", ""):
        with pytest.raises(UsageError):
            lp.Domain.parse(wrong)
    for domain in (lp.Domain("dirichlet", "dirichlet", (2.0, 2.0), (2.0, 2.0)), lp.Domain("periodic", "neumann")):
        assert lp.Domain.parse(domain.describe()) == domain
    cells = np.ones((8, 8))
    observation = lp.Observation.from_arrays(
        cells, cells, times=[1.0], noise_std=0.1, domain=lp.Domain("dirichlet", "periodic", on_y=(1.0, 1.0))
    )
    with pytest.raises(DataError, match="knows periodic edges only"):
        lp.reconstruct(observation, "heat", method="3dvar")
    four = replace(observation, domain=BOX)
    with pytest.raises(UsageError, match="not alike in all directions"):
        lp.reconstruct(four, "klein_gordon")
    with pytest.raises(UsageError, match="odd derivatives along y"):
        lp.simulate("diffusion", num=1, domain="y=dirichlet(1,1),x=periodic")


@pytest.mark.parametrize("observed", ["lowres-solve", "pooled", "point"])
def test_simulated_cases_have_the_walls_that_are_asked_for(observed):
    domain = "y=dirichlet(2,-1),x=dirichlet(0,3)"
    cases = lp.simulate("heat", num=1, seed=1, shape=(32, 32), domain=domain, observed=observed, sparsity=0.3)
    field = cases["truth"]["field"].values[0]
    np.testing.assert_allclose(1.5 * field[0, 14:18] - 0.5 * field[1, 14:18], 2.0, atol=0.15)
    np.testing.assert_allclose(1.5 * field[14:18, -1] - 0.5 * field[14:18, -2], 3.0, atol=0.15)
    posterior = lp.reconstruct(cases, num_draws=20)
    assert posterior.observation.domain == lp.Domain.parse(domain)
    assert 0.3 < float(posterior.diagnostics["misfit"][0]) < 2.0
    off = np.abs(posterior.mean(32).values[0] - field) / posterior.std(32).values[0]
    assert np.mean(off < 1.645) > 0.6
