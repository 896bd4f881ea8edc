"""Walls, readings of the source and priors in other bases, against dense Gaussians that share nothing with the package.

Between walls the covariance of a stationary field is a sum over mirror images, which the references write down as such:
no sine or cosine series, no block of coefficients."""

import numpy as np
import pytest
import torch
from heat_between_walls import EXTENT, KAPPA, MODES, NOISE, SOURCE, STATE, matern_power, observe, settings, table

import latentpde as lp
from latentpde.errors import UsageError
from latentpde.pde import discretised, get_family

EDGES = ("periodic", "dirichlet", "neumann")


class Images:
    """Covariances of a heat equation's field and source between walls, by images."""

    def __init__(self, domain, modes=MODES):
        signs = {"periodic": None, "dirichlet": -1.0, "neumann": 1.0}
        self.signs = [signs[domain.y], signs[domain.x]]
        self.torus = [side * (1 if sign is None else 2) for side, sign in zip(EXTENT, self.signs, strict=True)]
        numbers = np.arange(-(modes - 1), modes)
        ky, kx = np.meshgrid(*(2 * np.pi * numbers / side for side in self.torus), indexing="ij")
        self.ky, self.kx = ky.ravel(), kx.ravel()

    def reflections(self):
        for fy in (1, -1) if self.signs[0] else (1,):
            for fx in (1, -1) if self.signs[1] else (1,):
                sign = (self.signs[0] if fy < 0 else 1.0) * (self.signs[1] if fx < 0 else 1.0)
                yield sign, np.array([fy, fx])

    def waves(self, a, b):
        """Sum over images of cos k(x - g x'), for every pair of places and every mode."""
        total = 0.0
        for sign, flip in self.reflections():
            apart = a[:, None] - flip * b[None]
            total = total + sign * np.cos(apart[..., 0, None] * self.ky + apart[..., 1, None] * self.kx)
        return total

    def covariance(self, a, b):
        """Of readings ``(y, x, time, of_source)`` with each other, without noise."""
        waves, area = self.waves(a[:, :2], b[:, :2]), self.torus[0] * self.torus[1]
        rate = KAPPA * (self.ky**2 + self.kx**2)
        state, source = (matern_power(self.ky, self.kx, area, **level) for level in (STATE, SOURCE))

        def responses(rows):
            t, of_source = rows[:, 2, None], rows[:, 3, None] == 1
            safe = np.where(rate == 0, 1.0, rate)
            built_up = np.where(rate == 0, t, (1 - np.exp(-safe * t)) / safe)
            return np.where(of_source, 0.0, np.exp(-rate * t)), np.where(of_source, 1.0, built_up)

        (g_a, h_a), (g_b, h_b) = responses(a), responses(b)
        terms = g_a[:, None] * g_b[None] * state + h_a[:, None] * h_b[None] * source
        return (waves * terms).sum(-1)


@pytest.mark.parametrize("y", EDGES)
@pytest.mark.parametrize("x", EDGES)
@pytest.mark.parametrize("kinds", ["both", "field", "source"])
def test_posterior_is_that_of_a_dense_gaussian(y, x, kinds):
    rng = np.random.default_rng(3)
    domain = lp.Domain(y, x)
    rows = table(rng)
    rows = {"both": rows, "field": rows[rows[:, 3] == 0], "source": rows[-5:]}[kinds]  # and a single one of the field
    values = rng.standard_normal(len(rows))
    asked = np.column_stack([rng.random((5, 2)) * np.array(EXTENT), np.full(5, 0.7), np.zeros(5)])
    posterior = lp.reconstruct(observe(rows, values, domain), num_draws=1, **settings())

    images = Images(domain)
    covariance = images.covariance(rows, rows) + NOISE**2 * np.eye(len(rows))
    expected = images.covariance(asked, rows) @ np.linalg.solve(covariance, values)
    found = posterior.at(asked[:, :2], times=0.7)["mean"].values
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())

    _, log_det = np.linalg.slogdet(covariance)
    misfit = values @ np.linalg.solve(covariance, values)
    evidence = -0.5 * (misfit + log_det + len(rows) * np.log(2 * np.pi))
    assert abs(float(posterior.diagnostics["log_evidence"][0]) - evidence) < 1e-9 * abs(evidence)

    y_grid, x_grid = np.meshgrid(*(c.numpy() for c in posterior.grid(9).coordinates()), indexing="ij")
    asked = np.column_stack([y_grid.ravel(), x_grid.ravel(), np.zeros(y_grid.size), np.ones(y_grid.size)])
    expected = images.covariance(asked, rows) @ np.linalg.solve(covariance, values)
    found = posterior.source(resolution=9).values.ravel()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("form", ["covariance", "information"])
def test_draws_have_the_dense_covariance(form, monkeypatch):
    """Given standard normals, draws are linear in them: the spread of many is compared with the dense one."""
    from latentpde.estimators.exact import likelihood

    limit = 10_000 if form == "covariance" else 0
    monkeypatch.setattr(likelihood, "COVARIANCE_LIMIT_OF_SEVERAL", limit)
    monkeypatch.setattr(likelihood, "COVARIANCE_LIMIT", limit)
    rng, domain = np.random.default_rng(5), lp.Domain("neumann", "dirichlet")
    rows = np.concatenate([table(rng) for _ in range(4)])
    values = rng.standard_normal(len(rows))
    options = settings(initial=lp.Matern(**STATE, num_modes=3), source=lp.Matern(**SOURCE, num_modes=3))
    posterior = lp.reconstruct(observe(rows, values, domain), num_draws=4000, **options)
    asked = np.column_stack([rng.random((3, 2)) * np.array(EXTENT), np.full(3, 0.7), np.zeros(3)])
    draws = posterior.at(asked[:, :2], times=0.7)["draws"].values
    images = Images(domain, modes=3)
    covariance = images.covariance(rows, rows) + NOISE**2 * np.eye(len(rows))
    cross = images.covariance(asked, rows)
    expected = images.covariance(asked, asked) - cross @ np.linalg.solve(covariance, cross.T)
    np.testing.assert_allclose(
        np.cov(draws.T if draws.shape[0] == 4000 else draws), expected, atol=0.1 * expected.max()
    )


def test_cases_of_one_layout_are_as_if_alone():
    rng, domain = np.random.default_rng(7), lp.Domain("dirichlet", "neumann")
    rows = table(rng)
    values = rng.standard_normal((3, len(rows)))
    together = lp.reconstruct(observe(rows, values, domain), num_draws=2, **settings(num_spread_draws=5))
    for case in range(3):
        alone = lp.reconstruct(observe(rows, values[case], domain), num_draws=2, **settings(num_spread_draws=5))
        np.testing.assert_array_equal(together.mean(8).values[case], alone.mean(8).values)
        for name in ("std", "draws", "quantiles", "source", "source_std"):
            found, expected = (
                getattr(together, name)(resolution=8).values[case],
                getattr(alone, name)(resolution=8).values,
            )
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
        for name, expected in alone.leave_one_out().items():
            np.testing.assert_allclose(together.leave_one_out(case)[name], expected, rtol=1e-9, atol=1e-9)
        for name, expected in alone.diagnostics.items():
            np.testing.assert_allclose(together.diagnostics[name][case], expected[0], rtol=1e-8)
        there, expected = (posterior.at([[0.3, 0.4]], times=0.4)["std"].values for posterior in (together, alone))
        np.testing.assert_allclose(there[case], expected, rtol=1e-9)


def test_cases_of_several_layouts_share_with_their_own():
    rng, domain = np.random.default_rng(8), lp.Domain("dirichlet", "neumann")
    rows, values = table(rng), rng.standard_normal((4, 14))
    values[1::2, 3] = np.nan  # every other case lacks a reading
    together = lp.reconstruct(observe(rows, values, domain), num_draws=2, **settings(num_spread_draws=5))
    std = together.std(8).values
    np.testing.assert_array_equal(std[0], std[2])
    np.testing.assert_array_equal(std[1], std[3])
    assert not np.allclose(std[0], std[1])
    for case in range(4):
        read = np.isfinite(values[case])
        alone = lp.reconstruct(
            observe(rows[read], values[case][read], domain), num_draws=2, **settings(num_spread_draws=5)
        )
        np.testing.assert_allclose(together.mean(8).values[case], alone.mean(8).values, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(std[case], alone.std(8).values, rtol=1e-9)


def test_levels_and_coefficients_are_inferred_between_walls():
    """With a level and the diffusivity free the search runs, and finds what the readings were drawn with."""
    rng, domain = np.random.default_rng(11), lp.Domain("dirichlet", "neumann")
    rows = np.concatenate([table(rng) for _ in range(8)])
    truth = np.linalg.cholesky(Images(domain).covariance(rows, rows) + NOISE**2 * np.eye(len(rows)))
    values = truth @ rng.standard_normal(len(rows))
    options = settings(source=lp.Matern(std=(0.2, 20.0), length=0.3, num_modes=MODES), fixed={})
    posterior = lp.reconstruct(observe(rows, values, domain), num_draws=50, bounds={"kappa": (0.005, 0.5)}, **options)
    kappa, std = posterior.coefficients.values[:, 0], posterior.levels.values[:, 0]
    assert abs(np.log(kappa.mean() / KAPPA)) < 3 * max(kappa.std() / kappa.mean(), 0.05)
    assert abs(np.log(std.mean() / SOURCE["std"])) < 0.5


# Priors in another basis


def rival_case(size, shift=0.0):
    """Cosines on cells, and five-point differences on the nodes at their centres, all by dense matrices."""
    n = np.arange(size)
    cosines = np.cos(np.pi * np.outer(n + 0.5, n) / size) * np.where(n == 0, 1, np.sqrt(2))
    amplitude = 3.0 / (np.pi**2 * (n[:, None] ** 2 + n**2) + 9)
    amplitude[0, 0] = 0.0
    to_source = np.kron(cosines, cosines) * amplitude.ravel()
    h = 1 / (size - 1)
    second = (np.diag(np.full(size, -2.0)) + np.diag(np.ones(size - 1), 1) + np.diag(np.ones(size - 1), -1)) / h**2
    operator = np.kron(second, np.eye(size)) + np.kron(np.eye(size), second) + shift * np.eye(size**2)
    inside = np.zeros((size, size), dtype=bool)
    inside[1:-1, 1:-1] = True
    inside = inside.ravel()
    to_field = np.zeros((size**2, size**2))
    to_field[inside] = np.linalg.solve(-operator[np.ix_(inside, inside)], to_source[inside])
    return to_source, to_field, h


def rival_prior(size, h, **options):
    scale = (size - 1) / size  # their unit of length is the cells', ours the distance between the walls
    return lp.Matern.of_laplacian(
        3.0 * scale, 3.0 * scale, 2.0, zero_mean=True, num_modes=size, basis="neumann", margin=h / 2, **options
    )


@pytest.mark.parametrize("kind", ["field", "source", "both"])
def test_cosines_for_the_source_and_sines_for_the_field(kind):
    """The rivals' data: a source in cosines, a field that solves differences, zero at the walls."""
    rng, size = np.random.default_rng(2), 12
    to_source, to_field, h = rival_case(size)
    nodes = np.stack(np.meshgrid(np.arange(size) * h, np.arange(size) * h, indexing="ij"), -1).reshape(-1, 2)
    inside = np.flatnonzero(((nodes > 1e-9) & (nodes < 1 - 1e-9)).all(1))
    chosen, also = rng.choice(inside, 20, replace=False), rng.choice(size**2, 15, replace=False)
    white = rng.standard_normal(size**2)
    parts = {"field": [(to_field, chosen, "field")], "source": [(to_source, also, "source")]}
    parts["both"] = parts["field"] + parts["source"]
    matrix = np.concatenate([m[i] for m, i, _ in parts[kind]])
    where = np.concatenate([nodes[i] for _, i, _ in parts[kind]])
    reads = np.concatenate([np.full(len(i), name) for _, i, name in parts[kind]])
    noise = np.where(reads == "field", 1e-4, 1e-2)
    values = matrix @ white + noise * rng.standard_normal(len(reads))
    observation = lp.Observation.from_table(
        values,
        y=where[:, 0],
        x=where[:, 1],
        sigma=noise,
        reads=reads,
        grid=lp.Grid((size - 1,) * 2),
        domain=lp.Domain("dirichlet", "dirichlet"),
    )
    posterior = lp.reconstruct(
        observation, discretised(get_family("poisson"), (h, h)), fixed={"kappa": 1.0}, trend="none",
        source=rival_prior(size, h), num_draws=1, num_spread_draws=2,
    )  # fmt: skip
    gain = np.linalg.solve(matrix @ matrix.T + np.diag(noise**2), values)
    expected = to_field @ (matrix.T @ gain)
    np.testing.assert_allclose(posterior.at(nodes)["mean"], expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    expected = to_source @ (matrix.T @ gain)
    line = torch.arange(size, dtype=torch.float64) * h
    decoder, q = posterior.decoder, posterior.mean_z.mean(1)[..., posterior.latent.num_coefficients :]
    found = decoder.source_basis.at(decoder.source_spectrum(q), line, line).numpy().ravel()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    off = posterior.predicted_readings(slice(None))[0, 0].numpy() - values  # of what each reading is of
    assert np.abs(off / noise).max() < 6


@pytest.mark.parametrize("of_source", [False, True])
def test_what_is_left_to_know_elsewhere_of_a_source_in_cosines(of_source):
    """What `suggest` goes by, against a dense Gaussian."""
    from latentpde.estimators.exact.elsewhere import Elsewhere, whitened_readings

    rng, size = np.random.default_rng(2), 8
    to_source, to_field, h = rival_case(size)
    nodes = np.stack(np.meshgrid(np.arange(size) * h, np.arange(size) * h, indexing="ij"), -1).reshape(-1, 2)
    inside = np.flatnonzero(((nodes > 1e-9) & (nodes < 1 - 1e-9)).all(1))
    chosen = rng.choice(inside, 12, replace=False)
    observation = lp.Observation.from_table(
        to_field[chosen] @ rng.standard_normal(size**2), y=nodes[chosen, 0], x=nodes[chosen, 1], sigma=1e-3,
        grid=lp.Grid((size - 1,) * 2), domain=lp.Domain("dirichlet", "dirichlet"),
    )  # fmt: skip
    posterior = lp.reconstruct(
        observation, discretised(get_family("poisson"), (h, h)), fixed={"kappa": 1.0}, trend="none",
        source=rival_prior(size, h), num_draws=1, num_spread_draws=2,
    )  # fmt: skip
    model, node = posterior.model(0), torch.tensor([[1.0]], dtype=torch.float64)
    places, times = torch.from_numpy(nodes[inside]), torch.ones(len(inside), dtype=torch.float64)
    rows = Elsewhere.of(model, places, times, observation.grid.extent, is_source=of_source).rows(node)
    read = whitened_readings(model, node)
    found = (rows @ rows.T - (rows @ read.T) @ (rows @ read.T).T).numpy()
    asked, seen = (to_source if of_source else to_field)[inside], to_field[chosen]
    gain = np.linalg.solve(seen @ seen.T + 1e-6 * np.eye(len(seen)), seen @ asked.T)
    expected = asked @ asked.T - asked @ seen.T @ gain
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * expected.max())


def test_a_prior_in_another_basis_of_a_continuous_field():
    """A constant source between cold walls: the series of the field, term by term."""
    basis = lp.Matern(1.0, 10.0, num_modes=8, basis="neumann")
    observation = lp.Observation.from_table(
        [1.0] * 4, y=[0.2, 0.4, 0.6, 0.8], x=[0.3, 0.9, 0.2, 0.6], reads="source", sigma=1e-3,
        grid=lp.Grid((8, 8)), domain=lp.Domain("dirichlet", "dirichlet"),
    )  # fmt: skip
    posterior = lp.reconstruct(
        observation, "poisson", fixed={"kappa": 1.0}, trend="none", source=basis, num_draws=1, num_spread_draws=2
    )
    n = np.arange(1, 400, 2)
    middle = np.sin(n * np.pi / 2)
    expected = (16 / np.pi**4 * np.outer(middle, middle) / np.outer(n, n) / (n[:, None] ** 2 + n**2)).sum()
    assert abs(float(posterior.at([[0.5, 0.5]])["mean"][0]) - expected) < 0.01 * expected


def test_walls_refuse_what_would_go_through_them():
    rows = table(np.random.default_rng(0))
    with pytest.raises(UsageError, match="odd derivatives along x"):
        lp.reconstruct(observe(rows, np.ones(len(rows)), lp.Domain("periodic", "neumann")), "advection_diffusion")
    with pytest.raises(UsageError, match="walls along both axes"):
        lp.Matern(basis="periodic")
    observation = observe(rows, np.ones(len(rows)), lp.Domain("periodic", "neumann"))
    with pytest.raises(UsageError, match="needs a domain with walls along both"):
        lp.reconstruct(observation, "heat", source=lp.Matern(basis="neumann"))
