"""Priors of source and state in cosines, between walls on which the field is a sum of sines, as dense Gaussians."""

import numpy as np
import pytest
from heat_between_walls import EXTENT, KAPPA, MODES, NOISE, SOURCE, STATE, matern_power, observe, settings, table

import latentpde as lp
from latentpde.errors import UsageError
from latentpde.estimators.exact import mapped

COLD = lp.Domain("dirichlet", "dirichlet")
PRIORS = {"source": SOURCE, "state": STATE}


class Dense:
    """How readings of the heat equation respond to white modes of source and state, of which some are cosines."""

    def __init__(self, in_cosines):
        self.in_cosines = in_cosines
        self.n, self.c = np.arange(1, 2 * MODES), np.arange(MODES)  # sines of the field, cosines
        total, difference = self.n[:, None] + self.c, self.n[:, None] - self.c
        odd = total % 2 == 1
        self.to_sines = np.where(odd, 2 / np.pi * (1 / total + 1 / np.where(odd, difference, 1)), 0.0)

    def k(self, numbers):
        return (np.pi * numbers / EXTENT[0])[:, None], np.pi * numbers / EXTENT[1]

    def responses(self, rows):
        y, x, t, reads = rows.T[..., None, None]
        (ky, kx), own = self.k(self.n), MODES - 1
        rate, sines = KAPPA * (ky**2 + kx**2), np.sin(ky * y) * np.sin(kx * x)
        carried = {"source": sines * (1 - np.exp(-rate * t)) / rate, "state": sines * np.exp(-rate * t)}
        found = []
        for field, prior in PRIORS.items():
            area = 4 * EXTENT[0] * EXTENT[1]
            if field in self.in_cosines:
                images = np.where(self.c == 0, 2.0, 4.0)
                variance = matern_power(*self.k(self.c), area, **prior) * np.outer(images, images)
                itself = np.cos(self.k(self.c)[0] * y) * np.cos(self.k(self.c)[1] * x)
                seen = self.to_sines.T @ carried[field] @ self.to_sines
            else:
                variance = 16 * matern_power(ky[:own], kx[:own], area, **prior)
                itself, seen = sines[:, :own, :own], carried[field][:, :own, :own]
            seen = np.where(reads == 1, itself if field == "source" else 0.0, seen)
            found.append((seen * np.sqrt(variance)).reshape(len(rows), -1))
        return np.concatenate(found, axis=1)


def priors(in_cosines, **more):
    fields = {"source": "source", "state": "initial"}
    return {fields[field]: lp.Matern(**PRIORS[field], num_modes=MODES, basis="neumann", **more) for field in in_cosines}


@pytest.mark.parametrize("at_once", [3, 128])
@pytest.mark.parametrize("in_cosines", [("source",), ("state",), ("source", "state")], ids="-".join)
def test_fields_in_sines_and_cosines(in_cosines, at_once, monkeypatch):
    """Heat between cold walls, read at three times and, of the source, as it is; however many readings are taken at
    once. A source, or a state, need not vanish where the field does."""
    monkeypatch.setattr(mapped, "_READINGS_AT_ONCE", at_once)
    rng, dense = np.random.default_rng(8), Dense(in_cosines)
    rows = table(rng)
    values = rng.standard_normal(len(rows))
    posterior = lp.reconstruct(observe(rows, values, COLD), num_draws=1, **settings(**priors(in_cosines)))

    matrix = dense.responses(rows)
    covariance = matrix @ matrix.T + NOISE**2 * np.eye(len(rows))
    gain = np.linalg.solve(covariance, values)
    for time in (0.0, 0.7):
        asked = np.column_stack([rng.random((5, 2)) * np.array(EXTENT), np.full(5, time), np.zeros(5)])
        expected = dense.responses(asked) @ (matrix.T @ gain)
        found = posterior.at(asked[:, :2], times=time)["mean"].values
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    evidence = -0.5 * (values @ gain + np.linalg.slogdet(2 * np.pi * covariance)[1])
    assert abs(float(posterior.diagnostics["log_evidence"][0]) - evidence) < 1e-9 * abs(evidence)


def test_draws_of_a_state_in_cosines_have_its_posterior():
    rng, dense = np.random.default_rng(9), Dense(("state",))
    rows = table(rng)
    values = rng.standard_normal(len(rows))
    posterior = lp.reconstruct(observe(rows, values, COLD), num_draws=1500, **settings(**priors(("state",))))
    asked = np.column_stack([rng.random((3, 2)) * np.array(EXTENT), np.full(3, 0.2), np.zeros(3)])
    here, there = dense.responses(rows), dense.responses(asked)
    gain = np.linalg.solve(here @ here.T + NOISE**2 * np.eye(len(rows)), here @ there.T)
    expected = there @ there.T - there @ here.T @ gain
    found = np.cov(posterior.at(asked[:, :2], times=0.2)["draws"].values.reshape(-1, 3), rowvar=False)
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.15 * np.diagonal(expected).max())


def test_another_basis_needs_walls_and_an_unknown_start():
    rows = table(np.random.default_rng(1))
    given = settings(**priors(("state",)))
    with pytest.raises(UsageError, match=r"needs a domain with walls along both axes.*for the initial state"):
        lp.reconstruct(observe(rows, rows[:, 0], lp.Domain("dirichlet", "periodic")), **given)
    cells = np.ones((8, 8))
    known = lp.Observation.from_arrays(cells, cells, times=[1.0], noise_std=0.1, domain=COLD)
    with pytest.raises(UsageError, match=r"whose start is not given.*for the source"):
        lp.reconstruct(known, "heat", source=lp.Matern(1.0, 0.5, basis="neumann"))
