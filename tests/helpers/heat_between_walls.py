"""Heat between walls: readings of field and source, with priors that tests write down as dense Gaussians."""

import numpy as np

import latentpde as lp

EXTENT = (1.0, 1.4)
MODES = 4
KAPPA, NOISE = 0.05, 0.05
STATE, SOURCE = {"std": 1.3, "length": 0.5}, {"std": 2.0, "length": 0.3}


def matern_power(ky, kx, area, std, length, nu=1.5):
    inverse = 2 * nu / length**2
    return std**2 * 4 * np.pi * nu * inverse**nu * (inverse + ky**2 + kx**2) ** -(nu + 1) / area


def table(rng, num=14):
    """Readings of the field at three times, and some of the source."""
    places = rng.random((num, 2)) * np.array(EXTENT)
    times = np.repeat([0.0, 0.4, 1.0], (num - 4 + 2) // 3)[: num - 4]
    return np.column_stack([places, np.concatenate([times, np.zeros(4)]), np.repeat([0.0, 1.0], [num - 4, 4])])


def observe(rows, values, domain, **options):
    reads = np.where(rows[:, 3] == 1, "source", "field")
    columns = {"y": rows[:, 0], "x": rows[:, 1], "t": rows[:, 2], "reads": reads, "sigma": NOISE, "start": 0.0}
    grid = lp.Grid((4, 4), EXTENT)
    return lp.Observation.from_table(values, **{**columns, "grid": grid, "domain": domain, **options})


def settings(**changed):
    known = {"initial": lp.Matern(**STATE, num_modes=MODES), "source": lp.Matern(**SOURCE, num_modes=MODES)}
    return {"family": "heat", "fixed": {"kappa": KAPPA}, "trend": "none", "num_spread_draws": 2, **known, **changed}
