"""The exact posterior from end to end: against quadrature, other priors, awkward cases, and as an estimator."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import logsumexp
from scipy.stats import norm

from latentpde.decoder import Decoder
from latentpde.errors import UsageError
from latentpde.estimators.base import make_estimator, reconstruct
from latentpde.grid import Grid, average_pool, evaluate
from latentpde.latent import Latent
from latentpde.observation import Observation, ObservationOperator
from latentpde.pde import families

NAMES = {
    "log_evidence",
    "log_evidence_error",
    "evidence_gap",
    "effective_sample_size",
    "num_evaluations",
    "num_rounds",
    "misfit",
    "trusted",
    "coefficient_mean",
    "coefficient_std",
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def float64(values):
    return torch.tensor(values, dtype=torch.float64)


def smooth_state(grid, seed=0, num=None):
    """A few large-scale modes, of about unit variance: all of it below the coarse Nyquist."""
    few = Grid((5, 5), grid.extent)
    rough = torch.randn((num or 1, 5, 5), dtype=torch.float64, generator=generator(seed))
    u = grid.synthesise(few.analyse(rough))
    return u if num else u[0]


class Case:
    """A simulated case on a small grid, its truth kept beside it."""

    def __init__(
        self,
        family="advection_diffusion",
        *,
        shape=(12, 12),
        extent=(1.0, 1.0),
        share=0.25,
        noise=0.1,
        times=(0.25,),
        num_modes=2,
        forcing_std=0.5,
        theta=None,
        bounds=None,
        observed="lowres-solve",
        mask=None,
        seed=0,
        num=1,
        pooling=1,
        values=None,
        initial_noise=0.0,
    ):
        family = families.get(family)
        self.latent = Latent(family, forcing_std, num_modes, family.bounds if bounds is None else float64(bounds))
        self.grid, self.times, rng = (
            Grid(shape, extent),
            torch.tensor(times, dtype=torch.float64),
            np.random.default_rng(seed),
        )
        z = self.latent.sample(num, generator=generator(seed))
        if theta is not None:
            theta = torch.tensor(theta, dtype=torch.float64).expand(num, -1)
            z = self.latent.pack(theta, self.latent.split(z)[1])
        self.z, self.theta, self.noise = z, self.latent.theta(z), noise
        self.fine = self.grid.refine(4)
        u0 = smooth_state(self.fine, seed, num)
        initial = average_pool(u0, 4) if pooling == 4 else smooth_state(self.grid, seed, num)
        self.decoder = Decoder(self.latent, extent)
        u0_hat = self.fine.analyse(u0)
        self.field = self.fine.synthesise(self.decoder.spectrum(z, u0_hat, self.times))
        options = {}
        if observed == "point":
            positions = rng.random((int(share * shape[0] * shape[1]), 2)) * np.array(extent)
            options["positions"] = positions
            clean = evaluate(
                self.decoder.spectrum(z, u0_hat, self.times), torch.from_numpy(positions).expand(num, 1, -1, 2), extent
            )
        elif observed == "pooled":
            clean = average_pool(self.field, 4)
        else:
            clean = self.decoder.decode(z, initial, self.times, self.grid)
        readings = (
            clean.numpy() + noise * rng.standard_normal(clean.shape) if values is None else np.full(clean.shape, values)
        )
        if observed != "point":
            chosen = np.zeros(shape[0] * shape[1], dtype=bool)
            chosen[rng.permutation(len(chosen))[: max(1, int(share * len(chosen)))]] = True
            readings = np.where(chosen.reshape(shape) if mask is None else mask, readings, np.nan)
        initial = initial + initial_noise * torch.randn(
            initial.shape, dtype=torch.float64, generator=generator(seed + 1)
        )
        self.initial = initial
        self.observation = Observation.from_arrays(
            readings,
            initial,
            times=times,
            noise_std=noise,
            grid=self.grid,
            observed=observed,
            pooling=pooling,
            **options,
        )

    def without_initial(self):
        return Observation(**{**vars(self.observation), "initial": None})

    def estimate(self, observation=None, *, num_samples=40, seed=0, latent=None, **options):
        return make_estimator("exact", **options).estimate(
            observation or self.observation, latent or self.latent, num_samples=num_samples, seed=seed
        )


# Against quadrature


class Quadrature:
    """One free coefficient on a fine grid, dense Gaussian algebra at each node: nothing of the method is used."""

    def __init__(self, case, name, known, num=1201, log_prior=None):
        latent, names = case.latent, case.latent.family.coefficient_names
        j = names.index(name)
        low, high = latent.bounds[j].tolist()
        nodes = low + (high - low) * (torch.arange(num, dtype=torch.float64) + 0.5) / num
        theta = torch.tensor([known.get(n, 0.0) for n in names], dtype=torch.float64).repeat(num, 1)
        theta[:, j] = nodes
        unit = torch.cat([torch.zeros(1, latent.num_forcing), torch.eye(latent.num_forcing)]).to(torch.float64)
        z = latent.pack(theta[:, None].expand(-1, len(unit), -1), latent.forcing_std * unit.expand(num, -1, -1))
        operator = ObservationOperator(case.observation, case.decoder)
        cells = operator.predict(z.flatten(0, 1)[None])[0, :, -1].flatten(1).unflatten(0, (num, len(unit)))
        mask = case.observation.mask[0, -1].flatten()
        mean, columns = cells[:, 0], (cells[:, 1:] - cells[:, :1]).mT
        noise = case.observation.noise_std[0, -1].flatten()[mask]
        heard = columns[:, mask]
        covariance = heard @ heard.mT + torch.diag(noise**2)
        law = torch.distributions.MultivariateNormal(mean[:, mask], covariance)
        residual = case.observation.values[0, -1].flatten()[mask] - mean[:, mask]
        logs = law.log_prob(case.observation.values[0, -1].flatten()[mask]).numpy()
        logs = logs + (0.0 if log_prior is None else log_prior(nodes.numpy()))
        self.log_evidence = logsumexp(logs) - np.log(num)
        weights = np.exp(logs - logsumexp(logs))
        self.weights, self.nodes = weights, nodes.numpy()
        self.mean = weights @ self.nodes
        self.std = np.sqrt(weights @ (self.nodes - self.mean) ** 2)
        gain = columns @ heard.mT @ torch.linalg.inv(covariance)
        fields = (mean + (gain @ residual[..., None])[..., 0]).numpy()
        variance = ((columns**2).sum(-1) - (gain * (columns @ heard.mT)).sum(-1)).numpy()
        shape = case.grid.shape
        self.field = (weights @ fields).reshape(shape)
        self.field_std = np.sqrt(weights @ (variance + fields**2) - (weights @ fields) ** 2).reshape(shape)


@pytest.mark.parametrize(
    ("family", "name", "known", "num_modes", "time"),
    [
        ("advection_diffusion", "kappa", {"vx": 0.7, "vy": -0.4}, 2, 0.25),
        ("klein_gordon", "cx", {"cy": 0.9, "m": 1.5}, 1, 0.5),
        ("helmholtz", "kappa_y", {"kappa_x": 0.2, "k": 1.3}, 2, 1.0),
    ],
)
def test_posterior_of_one_coefficient_field_and_evidence_agree_with_quadrature(family, name, known, num_modes, time):
    names = families.get(family).coefficient_names
    middle = dict(zip(names, families.get(family).bounds.mean(-1).tolist(), strict=True)) | known
    case = Case(family, shape=(6, 8), share=0.15, times=(time,), num_modes=num_modes, theta=list(middle.values()))
    expected = Quadrature(case, name, known)
    found = case.estimate(
        fixed=known, detail=False, sweep=65_536, target=1000.0, num_mean_nodes=30_000, num_samples=10_000
    )
    j = names.index(name)
    notes, width = found.diagnostics, float(case.latent.bounds[j, 1] - case.latent.bounds[j, 0])
    assert notes["trusted"].all()
    assert abs(notes["coefficient_mean"][0, j] - expected.mean) < 1e-3 * width
    assert abs(notes["coefficient_std"][0, j] - expected.std) < 1e-3 * width
    assert abs(notes["log_evidence"][0] - expected.log_evidence) < 1e-3
    np.testing.assert_allclose(found.mean(resolution=case.grid.shape)[0], expected.field, atol=1e-3)
    np.testing.assert_allclose(found.std(resolution=case.grid.shape)[0], expected.field_std, rtol=0.03, atol=1e-3)
    draws = found.coefficients[0, :, j].values
    np.testing.assert_allclose(np.quantile(draws, [0.1, 0.5, 0.9]), weighted_quantile(expected), atol=0.02 * width)


def weighted_quantile(quadrature, levels=(0.1, 0.5, 0.9)):
    return np.interp(levels, np.cumsum(quadrature.weights), quadrature.nodes)


# Priors


KNOWN = {"vx": 0.7, "vy": -0.4}


def one_coefficient():
    return Case(shape=(6, 8), share=0.15, theta=[0.7, -0.4, 0.1])


def test_gaussian_prior_is_that_of_quadrature():
    case, mean, std = one_coefficient(), 0.25, 0.03
    low, high = case.latent.bounds[2].tolist()
    inside = norm.cdf(high, mean, std) - norm.cdf(low, mean, std)
    expected = Quadrature(
        case, "kappa", KNOWN, log_prior=lambda k: norm.logpdf(k, mean, std) + np.log((high - low) / inside)
    )
    found = case.estimate(fixed=KNOWN, gaussian={"kappa": (mean, std)}, sweep=4096, num_samples=2).diagnostics
    assert abs(found["coefficient_mean"][0, 2] - expected.mean) < 1e-3 * (high - low)
    assert abs(found["coefficient_std"][0, 2] - expected.std) < 1e-3 * (high - low)
    assert abs(found["log_evidence"][0] - expected.log_evidence) < 1e-3


def test_tighter_bounds_cut_the_posterior_off():
    bounds = [[-3.0, 3.0], [-3.0, 3.0], [0.06, 0.12]]
    case = Case(shape=(6, 8), share=0.15, theta=[0.7, -0.4, 0.1], bounds=bounds)
    expected = Quadrature(case, "kappa", KNOWN)
    found = case.estimate(fixed=KNOWN, sweep=4096)
    kappa = found.coefficients.sel(coefficient="kappa").values
    assert ((kappa > 0.06) & (kappa < 0.12)).all()
    assert abs(found.diagnostics["coefficient_mean"][0, 2] - expected.mean) < 1e-3 * 0.06
    assert abs(found.diagnostics["log_evidence"][0] - expected.log_evidence) < 1e-3


def test_fixed_coefficients_stay_and_free_ones_move():
    found = one_coefficient().estimate(fixed=KNOWN).coefficients[0]
    np.testing.assert_allclose(found.sel(coefficient="vx"), 0.7)
    np.testing.assert_allclose(found.sel(coefficient="vy"), -0.4)
    assert len(np.unique(found.sel(coefficient="kappa"))) > 10


def test_all_coefficients_known_leaves_one_gaussian():
    case = one_coefficient()
    found = case.estimate(fixed={**KNOWN, "kappa": 0.1}, detail=False, num_samples=4000)
    notes = found.diagnostics
    narrow = Latent(case.latent.family, 0.5, 2, float64([[-3.0, 3.0], [-3.0, 3.0], [0.0999, 0.1001]]))
    case.latent, case.decoder = narrow, Decoder(narrow, case.grid.extent)
    expected = Quadrature(case, "kappa", KNOWN, num=3)
    assert notes["trusted"].all()
    assert notes["num_evaluations"] == 1
    assert abs(notes["log_evidence"][0] - expected.log_evidence) < 1e-4
    np.testing.assert_allclose(found.mean(resolution=(6, 8))[0], expected.field, atol=1e-4)
    np.testing.assert_allclose(found.std(resolution=(6, 8))[0], expected.field_std, rtol=0.06)


def test_a_coefficient_fixed_at_its_bound_is_allowed():
    found = one_coefficient().estimate(fixed={"kappa": 0.35}, num_samples=3)
    np.testing.assert_allclose(found.coefficients.sel(coefficient="kappa"), 0.35, rtol=1e-6)
    assert np.isfinite(found.mean(resolution=8)).all()


def test_bounds_may_come_in_single_precision():
    """`torch.tensor([[...]])` is float32 unless told otherwise, and that is how a user writes bounds."""
    case = one_coefficient()
    bounds = torch.tensor([[0.5, 1.0], [-1.0, 0.0], [0.05, 0.2]])
    found = reconstruct(case.observation, "advection_diffusion", bounds=bounds, num_modes=1, num_samples=3)
    kappa = found.coefficients.sel(coefficient="kappa").values
    assert ((kappa >= 0.05) & (kappa <= 0.2)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fixed": {"speed": 1.0}}, "speed"),
        ({"fixed": {"vx": 4.0}}, r"outside its bounds \[-3, 3\]"),
        ({"fixed": {"vx": 1.0}, "gaussian": {"vx": (0.0, 1.0)}}, "at most one"),
        ({"gaussian": {"vx": (0.0, 0.0)}}, "positive std"),
        ({"gaussian": {"vx": (float("nan"), 1.0)}}, "finite mean"),
        ({"initial_noise_std": -1.0}, "not negative"),
        ({"num_mean_nodes": 0}, "num_mean_nodes"),
        ({"initial_prior": (0.0, 4.0)}, "std > 0"),
    ],
)
def test_nonsense_is_refused_with_a_reason(options, message):
    with pytest.raises(UsageError, match=message):
        one_coefficient().estimate(**options)


# Adversarial cases


def check_honest(case, found, least=0.5):
    """Finite, with diagnostics, and with intervals that hold the truth more often than an absurd method's would."""
    assert set(found.diagnostics) >= NAMES
    for name in NAMES - {"evidence_gap"}:
        assert np.isfinite(found.diagnostics[name]).all(), name
    resolution = case.fine.shape
    draws = found.draws(resolution=resolution).values[0]
    mean, std = found.mean(resolution=resolution).values[0], found.std(resolution=resolution).values[0]
    assert np.isfinite(draws).all()
    assert np.isfinite(mean).all()
    assert (std >= 0).all()
    low, high = np.quantile(draws, [0.05, 0.95], axis=0)
    truth = case.field[0, -1].numpy()
    covered = ((truth >= low) & (truth <= high)).mean()
    bounds = case.latent.bounds.numpy()
    theta = found.coefficients.values[0]
    assert ((theta >= bounds[:, 0]) & (theta <= bounds[:, 1])).all()
    assert covered >= least, f"90 % intervals cover {covered:.0%}"


CORNER = np.zeros((12, 12), dtype=bool)
CORNER[:4, :4] = True


@pytest.mark.parametrize("family", ["advection_diffusion", "klein_gordon", "helmholtz"])
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"share": 1 / 144}, id="one reading"),
        pytest.param({"share": 1.0}, id="all cells", marks=pytest.mark.slow),
        pytest.param({"noise": 1e-6}, id="noise 1e-6", marks=pytest.mark.slow),
        pytest.param({"noise": 100.0}, id="noise 100"),
        pytest.param({"mask": CORNER}, id="a corner", marks=pytest.mark.slow),
    ],
)
def test_adversarial_cases_stay_honest(family, options):
    case = Case(family, times=(families.get(family).default_time,), seed=3, **options)
    found = case.estimate(detail=False)
    check_honest(case, found)
    assert found.diagnostics["trusted"].all()


@pytest.mark.parametrize(
    "family",
    [
        pytest.param("advection_diffusion", marks=pytest.mark.slow),
        pytest.param("klein_gordon", marks=pytest.mark.slow),
        "helmholtz",
    ],
)
@pytest.mark.parametrize("where", [0, 1], ids=["lower", "upper"])
def test_true_coefficients_at_their_bounds(family, where):
    """Central intervals exclude a bound by construction, so it is the error in standard deviations that counts."""
    bounds = families.get(family).bounds
    width = bounds[:, 1] - bounds[:, 0]
    theta = bounds[:, where] + (1e-6 if where == 0 else -1e-6) * width
    case = Case(family, times=(families.get(family).default_time,), theta=theta.tolist(), seed=1)
    found = case.estimate(detail=False)
    check_honest(case, found, least=0.2)
    notes = found.diagnostics
    assert (np.abs(notes["coefficient_mean"][0] - theta.numpy()) < 5 * notes["coefficient_std"][0]).all()
    error = found.mean(resolution=case.fine.shape)[0] - case.field[0, -1].numpy()
    assert float(np.sqrt(((error / found.std(resolution=case.fine.shape)[0]) ** 2).mean())) < 4


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_constant_readings(value):
    """Seven standard deviations of any field the prior knows: a misfit, to be borne and not hidden by a crash."""
    case = Case(values=value)
    found = case.estimate()
    for name in NAMES - {"evidence_gap"}:
        assert np.isfinite(found.diagnostics[name]).all(), name
    assert np.isfinite(found.draws(resolution=24)).all()
    assert np.isfinite(found.mean(resolution=24)).all()
    if value:
        assert not found.diagnostics["trusted"].any()


@pytest.mark.parametrize("family", ["advection_diffusion", "klein_gordon", "helmholtz"])
def test_readings_that_nothing_explains_are_not_trusted(family):
    """The noise is ten times what it is said to be."""
    times = (families.get(family).default_time,)
    good = Case(family, times=times, noise=0.15, share=0.4, seed=2)
    assert good.estimate().diagnostics["trusted"].all()
    assert 0.3 < float(good.estimate().diagnostics["misfit"][0]) < 1.5
    stated = torch.full_like(good.observation.noise_std, 0.015)
    found = good.estimate(Observation(**{**vars(good.observation), "noise_std": stated}))
    assert float(found.diagnostics["misfit"][0]) > 1.5
    assert not found.diagnostics["trusted"].any()
    assert "not explained" in found.warnings(0)[0]
    assert not good.estimate().warnings(0)


@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_constant_initial_state(constant):
    """A state at rest is what many will give; it has no spectrum to fit."""
    case = Case()
    flat = torch.full_like(case.observation.initial, constant)
    found = case.estimate(Observation(**{**vars(case.observation), "initial": flat}))
    assert np.isfinite(found.draws(resolution=24)).all()
    assert np.isfinite(found.mean(resolution=24)).all()


def test_two_modes_of_equal_weight_are_both_found():
    """Without a source, at T = 1/4 on the unit square, a velocity larger by 4 gives the same readings exactly."""
    case = Case(num_modes=0, theta=[-2.0, 0.3, 0.02], times=(0.25,), noise=0.05)
    found = case.estimate(num_samples=400, detail=False)
    assert found.diagnostics["trusted"].all()
    vx = found.coefficients.sel(coefficient="vx").values[0]
    near = np.abs(vx[:, None] - [-2.0, 2.0]) < 0.5
    assert near.any(1).all()
    np.testing.assert_allclose(near.mean(0), 0.5, atol=0.1)


def test_two_modes_weigh_what_quadrature_says():
    """With a source they are not quite equal: the source is carried along on the way."""
    known = {"vy": 0.3, "kappa": 0.02}
    case = Case(num_modes=2, theta=[-2.0, 0.3, 0.02], noise=0.3, share=0.15, forcing_std=2.0)
    expected = Quadrature(case, "vx", known, num=4001)
    right = expected.weights[expected.nodes > 0].sum()
    assert 0.02 < right < 0.98  # the case is what it should be
    found = case.estimate(fixed=known, num_samples=2000, detail=False, sweep=4096)
    assert abs((found.coefficients.sel(coefficient="vx") > 0).mean() - right) < 0.02


# As an estimator


WEAK = [0.5, -0.4, 0.01]  # diffusion that leaves the initial state something to say


def test_no_initial_state_at_all():
    """Everything is unknown, and said to be: wider than with a state, and wide enough."""
    case = Case(share=0.4, theta=WEAK)
    blind, seeing = (case.estimate(o, num_samples=60) for o in (case.without_initial(), case.observation))
    check_honest(case, blind, least=0.6)
    assert blind.std(resolution=12).mean() > 2 * seeing.std(resolution=12).mean()


OPTIONS = {
    "no state": ({"share": 0.6}, {}),
    "no state, points": ({"share": 0.6, "observed": "point", "pooling": 4}, {}),
    "plain": ({}, {}),
    "no detail": ({}, {"detail": False}),
    "points": ({"observed": "point", "pooling": 4}, {}),
    "pooled": ({"observed": "pooled", "pooling": 4}, {}),
    "two times": ({"times": (0.1, 0.25)}, {}),
    "rectangle": ({"shape": (8, 16), "extent": (1.0, 2.0)}, {}),
    "no source": ({"num_modes": 0}, {}),
    "noisy state": ({"initial_noise": 0.3, "share": 0.6}, {"initial_noise_std": 0.3}),
    "noisy state, points": (
        {"initial_noise": 0.3, "share": 0.6, "observed": "point", "pooling": 4},
        {"initial_noise_std": 0.3},
    ),
}


@pytest.fixture(scope="module")
def estimated():
    """Each setting once, with enough draws to know their mean."""
    cache = {}

    def get(name):
        if name not in cache:
            settings, options = OPTIONS[name]
            case = Case(theta=WEAK, **settings)
            observation = case.without_initial() if name.startswith("no state") else case.observation
            cache[name] = case, case.estimate(observation, num_samples=200, num_mean_nodes=200, **options)
        return cache[name]

    return get


@pytest.mark.parametrize("name", OPTIONS)
def test_every_setting_is_honest(name, estimated):
    case, found = estimated(name)
    check_honest(case, found, least=0.6)


@pytest.mark.parametrize("name", OPTIONS)
def test_mean_is_that_of_the_draws_but_for_chance(name, estimated):
    """Averages of conditional means and of draws estimate one thing; where they part, one forgets something."""
    _, found = estimated(name)
    difference = found.mean(resolution=24) - found.draws(resolution=24).mean("draw")
    scores = (difference / (found.std(resolution=24) / np.sqrt(found.num_draws))).values
    assert np.sqrt((scores**2).mean()) < 2.2
    assert np.abs(scores).max() < 7


@pytest.mark.parametrize("name", ["plain", "no detail", "two times", "rectangle", "no source"])
def test_draws_are_as_far_from_the_readings_as_noise_is(name, estimated):
    case, found = estimated(name)
    residual = ObservationOperator(case.observation, found.decoder).residual(found.z)
    assert 0.6 < float(residual.mean()) / case.noise**2 < 1.6


@pytest.mark.parametrize("observed", ["lowres-solve", "pooled", "point"])
@pytest.mark.parametrize("initial", ["noisy", "none"])
def test_uncertain_states_are_drawn_so_that_fields_meet_the_readings(observed, initial):
    """Precise readings of the field itself: every draw must pass through them, whatever the state was thought to be."""
    case = Case(observed=observed, pooling=4, noise=0.02, share=0.3, initial_noise=0.2, num_modes=1, theta=WEAK)
    observation = case.observation if initial == "noisy" else case.without_initial()
    noise = {"initial_noise_std": 0.2} if initial == "noisy" else {}
    found = case.estimate(
        observation, detail=False, fixed=dict(zip(("vx", "vy", "kappa"), case.theta[0].tolist(), strict=True)), **noise
    )
    spectrum = found.decoder.spectrum(found.z, found.initial_hat(slice(None)), case.times)[0, :, 0]
    if observed == "point":
        read = evaluate(spectrum, observation.positions.expand(len(spectrum), -1, 2), case.grid.extent)
    elif observed == "pooled":
        read = average_pool(case.fine.synthesise(spectrum), 4).flatten(1)[:, observation.mask.flatten()]
    else:
        # a coarse solve starts from the averages themselves
        state = average_pool(case.fine.synthesise(found.initial_hat(slice(None))), 4)
        read = found.decoder.decode(found.z, state, case.times, case.grid)[0, :, 0].flatten(1)[
            :, observation.mask.flatten()
        ]
    residual = read - observation.values[observation.mask]
    assert float((residual**2).mean().sqrt()) < 3 * case.noise


def test_detail_and_source_do_not_share_their_random_numbers():
    """Where one stream of numbers makes both, what should be independent is not."""
    case = Case(noise=100.0, num_modes=1, shape=(8, 8))
    known = dict(zip(("vx", "vy", "kappa"), case.theta[0].tolist(), strict=True))
    found = case.estimate(fixed=known, num_samples=512)
    source = found.decoder.latent.split(found.z)[1][0].unflatten(-1, (2, 2))[..., 0].flatten()
    states = case.fine.synthesise(found.initial_hat(slice(None))[0])
    detail = (states - states.mean(0))[0].flatten()
    assert len(source) == len(detail) == 1024
    assert abs(float(torch.corrcoef(torch.stack([source, detail]))[0, 1])) < 5 / np.sqrt(1024)


def test_a_batch_is_its_cases_one_by_one():
    """What a case gives does not depend on what it was run with: latents bit for bit, fields but for the transforms."""
    case = Case(num=3)
    whole = case.estimate(num_samples=5)
    for i in range(3):
        single = case.estimate(case.observation[i], num_samples=5)
        assert torch.equal(single.z[0], whole.z[i])
        assert torch.equal(single.mean_z[0], whole.mean_z[i])
        np.testing.assert_allclose(single.mean(resolution=24)[0], whole.mean(resolution=24)[i], atol=1e-13)
        np.testing.assert_allclose(single.draws(resolution=24)[0], whole.draws(resolution=24)[i], atol=1e-13)
        for name in NAMES:
            np.testing.assert_array_equal(single.diagnostics[name][0], whole.diagnostics[name][i])


def test_seed_decides_the_draws():
    case = Case()
    first, again, other = (case.estimate(num_samples=4, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.z, again.z)
    np.testing.assert_array_equal(first.draws(resolution=12), again.draws(resolution=12))
    assert not torch.equal(first.z, other.z)


@pytest.mark.parametrize(("name", "coarse"), [("no detail", 24), ("plain", 48)])
def test_means_at_two_resolutions_agree_where_they_meet(name, coarse, estimated):
    """Three times finer, every third cell has the same centre."""
    _, found = estimated(name)
    low, high = found.mean(resolution=coarse), found.mean(resolution=3 * coarse)
    np.testing.assert_allclose(low.y, high.y[1::3])
    np.testing.assert_allclose(low, high[..., 1::3, 1::3], atol=1e-10)


def test_detail_widens_the_field_and_leaves_the_coefficients_alone():
    case = Case(pooling=4, num=1)
    rough = Observation(
        **{**vars(case.observation), "initial": torch.randn(1, 12, 12, dtype=torch.float64, generator=generator())}
    )
    with_detail, without = (case.estimate(rough, detail=detail, num_samples=60) for detail in (True, False))
    np.testing.assert_array_equal(with_detail.coefficients, without.coefficients)
    assert with_detail.std(resolution=48, times=[0.0]).mean() > without.std(resolution=48, times=[0.0]).mean() + 0.05


def test_several_snapshots_tell_more_than_one():
    two = Case(times=(0.1, 0.25), seed=2)
    values = torch.where(two.observation.mask, two.observation.values, torch.nan)
    one = Observation.from_arrays(
        values[:, 1:], two.initial, times=(0.25,), noise_std=two.noise, grid=two.grid, pooling=1
    )
    spread = [two.estimate(o, num_samples=2).diagnostics["coefficient_std"][0] for o in (two.observation, one)]
    assert spread[0].prod() < 0.7 * spread[1].prod()


def test_times_between_and_beyond_the_readings_are_decoded():
    case = Case()
    fields = case.estimate(num_samples=3, detail=False).draws(resolution=12, times=[0.0, 0.1, 0.5])
    assert fields.shape == (1, 3, 3, 12, 12)
    np.testing.assert_allclose(fields[0, :, 0], case.initial.expand(3, -1, -1), atol=1e-9)


def test_more_readings_than_the_covariance_form_takes():
    """The information form end to end, and near the truth."""
    case = Case(shape=(24, 24), share=1.0, num_modes=2)
    found = case.estimate(detail=False)
    check_honest(case, found)
    assert float(np.sqrt(((found.mean(resolution=96)[0] - case.field[0, 0].numpy()) ** 2).mean())) < 0.05
