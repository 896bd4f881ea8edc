"""FunDPS: the sampler finds posteriors that are known, the likelihood reads what instruments read, and what it cannot
do is refused. What every method promises is tested with the others."""

import numpy as np
import pytest
import torch
from tiny_weights import tiny_weights

from latentpde.decoder import Decoder
from latentpde.diffusion.random_fields import RandomField
from latentpde.errors import DataError, UsageError
from latentpde.estimators import make_estimator, reconstruct
from latentpde.estimators.fundps.likelihood import FieldLikelihood
from latentpde.estimators.fundps.residual import Coefficients, ResidualLikelihood
from latentpde.estimators.fundps.sampler import GuidedSampler
from latentpde.grid import Grid, mode_weights
from latentpde.latent import Latent
from latentpde.nn.fields import INITIAL, NUM_CHANNELS, OUTPUT, FieldStatistics, radii
from latentpde.observation import Observation
from latentpde.pde import families
from latentpde.simulation import simulate

NOISE = RandomField(0.05)


def statistics(block=(32, 16)) -> FieldStatistics:
    """Channels of unit variance with spectra that fall off at different rates."""
    radius = torch.arange(block[1], dtype=torch.float64)
    power = torch.stack([1 / (1 + radius) ** 3, 1 / (1 + radius) ** 4, torch.exp(-1.5 * radius)])
    whole = torch.nn.functional.pad(power, (0, 1))[:, radii(block).clamp(max=block[1])]
    whole[:, block[0] // 2] = 0.0
    power = power / (whole * mode_weights(block[1])).sum((-2, -1))[:, None]
    return FieldStatistics(torch.zeros(3).double(), torch.ones(3).double(), power)


class Toy:
    """Independent Gaussian channels on a torus, whose best denoiser is linear, and some readings of the output."""

    def __init__(self, side: int = 16, num_readings: int = 20, noise_std: float = 0.2):
        self.grid, self.statistics, self.noise_std = Grid((side, side)), statistics((side, side // 2)), noise_std
        generator = torch.Generator().manual_seed(3)
        self.initial, self.output = (self.draw(channel, generator) for channel in (INITIAL, OUTPUT))
        self.cells = torch.randperm(side**2, generator=generator)[:num_readings]
        noise = torch.randn(num_readings, generator=generator, dtype=torch.float64)
        self.values = self.output.flatten()[self.cells] + noise_std * noise

    def power(self, grid: Grid) -> torch.Tensor:
        """By channel and mode of a grid's half spectrum."""
        n = grid.shape[0]
        rows = torch.fft.fftfreq(n, 1 / n)
        radius = torch.hypot(rows[:, None], torch.arange(n // 2 + 1)).round().long()
        inside = (rows[:, None].abs() < self.grid.shape[0] // 2) & (torch.arange(n // 2 + 1) < self.grid.shape[0] // 2)
        power = torch.nn.functional.pad(self.statistics.power, (0, 1))
        return power[:, radius.clamp(max=power.shape[1] - 1)] * inside

    def draw(self, channel: int, generator: torch.Generator) -> torch.Tensor:
        white = torch.randn(self.grid.shape, generator=generator, dtype=torch.float64)
        hat = torch.fft.rfft2(white, norm="ortho") * self.power(self.grid)[channel].sqrt()
        return torch.fft.irfft2(hat, s=self.grid.shape, norm="ortho") * self.grid.shape[0]

    def denoise(self, noisy: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        grid = Grid((noisy.shape[-2], noisy.shape[-1]))
        power = self.power(grid)
        spectrum = NOISE.eigenvalues(grid.shape) / noisy.shape[-1] ** 2
        gain = power / (power + sigma[0] ** 2 * spectrum)
        return torch.fft.irfft2(torch.fft.rfft2(noisy) * gain, s=grid.shape)

    def likelihood(self, slack: float = 0.0) -> FieldLikelihood:
        side = self.grid.shape[0]
        places = torch.stack([self.cells // side, self.cells % side], -1)
        return FieldLikelihood(
            statistics=self.statistics,
            noise=NOISE,
            slack=slack,
            coupling=1.0,
            initial_hat=self.grid.analyse(self.initial)[None],
            positions=((places + 0.5) / side)[None].double(),
            cells=None,
            values=self.values[None],
            variance=torch.full((1, len(self.cells)), self.noise_std**2, dtype=torch.float64),
        )

    def posterior(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and standard deviation of the output, in closed form."""
        n = self.grid.shape[0]
        table = torch.fft.irfft2(self.power(self.grid)[OUTPUT].to(torch.complex128), s=(n, n), norm="forward")
        apart = (torch.arange(n)[:, None] - torch.arange(n)) % n
        prior = table[apart[:, None, :, None], apart[None, :, None, :]].reshape(n * n, n * n)
        of_readings = prior[self.cells][:, self.cells] + self.noise_std**2 * torch.eye(len(self.cells))
        gain = torch.linalg.solve(of_readings, prior[self.cells]).T
        return gain @ self.values, (prior - gain @ prior[self.cells]).diag().sqrt()

    def sample(self, *, slack: float = 0.0, grids: list[Grid] | None = None, **options) -> torch.Tensor:
        generator, known = torch.Generator().manual_seed(1), self.likelihood(slack)
        grids = grids or [self.grid]

        def normals(grid: Grid) -> torch.Tensor:
            return torch.randn((1, 400, NUM_CHANNELS, *grid.shape), generator=generator, dtype=torch.float64)

        sampler = GuidedSampler(**{"num_steps": 20, **options})
        with torch.no_grad():
            return sampler.run(self.denoise, NOISE, grids, [known.on(grid) for grid in grids], normals)[0]


def bias(toy: Toy, fields: torch.Tensor) -> tuple[float, float]:
    """RMS error of the mean in posterior standard deviations, and the ratio of standard deviations."""
    mean, std = toy.posterior()
    found = fields[:, OUTPUT].flatten(1)
    error = ((found.mean(0) - mean) / std).square().mean().sqrt()
    return float(error), float((found.var(0).mean() / std.square().mean()).sqrt())


def test_the_sampler_comes_close_to_a_known_posterior():
    """Measured 0.049, of which 400 draws alone leave 0.05, and 1.025: 20 steps widen by 2 %, 40 by 0.4 %."""
    toy = Toy()
    _, std = toy.posterior()
    assert std.mean() < 0.6, "readings that say something"
    fields = toy.sample()
    error, ratio = bias(toy, fields)
    assert error < 0.08
    assert 0.97 < ratio < 1.05
    torch.testing.assert_close(fields[:, INITIAL], toy.initial.expand(400, -1, -1), atol=1e-6, rtol=0)


def test_less_noise_at_the_start_and_slack_bias_the_sampler():
    """What both cost: 0.14 posterior standard deviations and 0.27, where the right settings have 0.05."""
    toy = Toy()
    low, _ = bias(toy, toy.sample(sigma_max=10.0))
    slack, ratio = bias(toy, toy.sample(slack=0.02))
    assert 0.1 < low < 0.2
    assert 0.2 < slack < 0.35
    assert ratio < 1.1


def test_the_first_steps_may_be_coarse():
    """Twice the cells at the end make the same posterior: the toy has nothing beyond the coarse grid. The change of
    grid, whose cells fold different modes of the noise, widens it by 4 % more."""
    toy = Toy()
    fine = Grid((32, 32))
    fields = toy.sample(grids=[toy.grid, fine], coarse_share=0.6)
    assert fields.shape[-2:] == fine.shape
    on_coarse = toy.grid.synthesise(fine.analyse(fields))
    error, ratio = bias(toy, on_coarse)
    assert error < 0.08
    assert 0.97 < ratio < 1.09


def test_without_guidance_it_samples_the_prior():
    fields = Toy().sample(scale=0.0)
    assert float(fields[:, OUTPUT].var()) == pytest.approx(1.0, rel=0.1)


def observe(observed: str):
    tree = simulate("balanced", num=2, seed=3, shape=(32, 32), pooling=4, num_modes=2, sparsity=0.3, observed=observed)
    return tree, Observation.from_dataset(tree)


@pytest.mark.parametrize("observed", ["pooled", "point"])
@pytest.mark.parametrize("factor", [1, 2])
def test_the_likelihood_reads_what_instruments_read(observed, factor):
    """At any resolution: the true field leaves nothing but the readings' noise."""
    tree, data = observe(observed)
    known = FieldLikelihood.of(data, statistics(), NOISE, slack=0.1, coupling=1.0)
    fine = data.fine_grid
    truth = torch.from_numpy(tree["truth/field"].values.astype(float))
    grid = fine.refine(factor)
    left = known.on(grid).rms_residual(grid.synthesise(fine.analyse(truth))[:, None])
    assert ((left > 0.09) & (left < 0.24)).all()
    assert (known.on(grid).rms_residual(0 * left[:, None, None, None].expand(-1, 1, *grid.shape)) > 0.2).any()


def test_readings_that_are_explained_do_not_pull():
    toy = Toy()
    known = toy.likelihood().on(toy.grid)
    clean = torch.zeros((1, 1, 3, *toy.grid.shape), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(known.pull(clean, 0.5), clean)
    assert slope[:, :, INITIAL].abs().max() > 0
    assert slope[:, :, OUTPUT].flatten()[toy.cells].abs().min() > 0
    assert not slope[:, :, 1].any(), "nothing is known of the source"
    explained = known.with_initial(clean.detach())
    torch.testing.assert_close(explained[0, 0, INITIAL], toy.initial, atol=1e-9, rtol=0)


def test_a_solution_of_the_pde_has_no_residual():
    latent = Latent(families.get("advection_diffusion"), num_modes=4)
    z = latent.draw(1, generator=torch.Generator().manual_seed(0))
    toy, decoder = Toy(side=32), Decoder(latent)
    output = decoder.decode(z, toy.initial, [0.25], toy.grid)[0, 0]
    fields = torch.stack([toy.initial, decoder.source(z, toy.grid)[0], output])[None, None]
    likelihood = toy.likelihood(slack=0.1).on(toy.grid)
    coefficients, times = Coefficients(latent), torch.tensor([0.25], dtype=torch.float64)
    guide = ResidualLikelihood(likelihood, toy.statistics, (1.0, 1.0), times, coefficients, 1.0)
    guide.pull(fields, 2.0)
    assert coefficients.raw is None, "more noise than signal"
    coefficients.raw = z[None, :, :3]
    alone, both = likelihood.pull(fields, 0.1), guide.pull(fields, 0.1)
    assert float(alone - both) < 0.5, "Adam has moved the coefficients a little"
    moved = fields.clone()
    moved[..., OUTPUT, :, :] += 0.1
    assert likelihood.pull(moved, 0.1) - guide.pull(moved, 0.1) > 1


@pytest.mark.parametrize(
    "options",
    [{"num_steps": 1}, {"sigma_min": 90.0}, {"coarse_share": 1.5}, {"slack": -1.0}, {"residual_scale": np.inf}],
)
def test_settings_that_make_no_sampler_are_refused(options):
    with pytest.raises(UsageError):
        make_estimator("fundps", **options)


def test_without_weights_or_initial_state_it_says_so():
    _, data = observe("lowres-solve")
    with pytest.raises(UsageError, match=r"no weights of the fundps for telegraph"):
        reconstruct(data, "telegraph", method="fundps")
    values = np.where(np.arange(64).reshape(8, 8) % 3 == 0, 1.0, np.nan)
    blind = Observation.from_arrays(values, noise_std=0.1, family="advection_diffusion")
    with pytest.raises(DataError, match="initial state"):
        reconstruct(blind, method="fundps", weights=tiny_weights())


def test_the_residual_is_an_option():
    _, data = observe("lowres-solve")
    options = {"method": "fundps", "weights": tiny_weights(), "num_steps": 5, "num_draws": 2, "num_modes": 2}
    plain, guided = (reconstruct(data, residual_scale=scale, **options).mean(16) for scale in (0.0, 0.1))
    assert np.isfinite(guided).all()
    assert not np.array_equal(plain, guided)


@pytest.mark.parametrize("side", [1, 2])
def test_grids_too_small_for_a_network_are_refused(side):
    cells = np.ones((side, side))
    observation = Observation.from_arrays(cells, cells, times=[0.25], noise_std=0.1)
    with pytest.raises(DataError, match=f"at least 3 x 3 cells, and this one has {side} x {side}"):
        reconstruct(observation, "advection_diffusion", method="fundps", num_steps=2)
