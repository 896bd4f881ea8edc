"""Every method keeps the contract of `Estimator`; `map` finds minima, and coefficients where data determine them."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from tiny_weights import tiny_weights

from latentpde.decoder import Decoder
from latentpde.errors import DataError, UsageError
from latentpde.estimators import Estimator, make_estimator, methods, reconstruct
from latentpde.estimators.map import Map
from latentpde.grid import Grid, average_pool
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.operator import ObservationOperator
from latentpde.pde import families
from latentpde.posterior import FieldPosterior, LatentPosterior, PDEPosterior, Posterior
from latentpde.simulation import regimes, simulate

# Options that make a method fast enough to run often; one without an entry runs with its defaults.
QUICK_MAP = {"num_steps": 12, "num_restarts": 2}
QUICK = {
    "pinn": {"num_steps": 3, "num_collocation": 16, "num_initial": 16},
    "map": QUICK_MAP,
    "3dvar": {"background_options": QUICK_MAP},
    "enkf": {"background_options": QUICK_MAP},
    "enc": {"weights": tiny_weights()},
    "map_diffusion": {"weights": tiny_weights(), "map_steps": 12, "map_restarts": 2},
    "enc_diffusion": {"weights": tiny_weights()},
}
KINDS = ("lowres-solve", "pooled", "point")
SEEDLESS = ("enc",)  # one pass of a network: there is no randomness to follow
every_method = pytest.mark.parametrize("method", methods.names())


@functools.cache
def cases(regime="balanced", observed="lowres-solve", times=None, num=2, extent=(1.0, 1.0), shape=(32, 32)):
    """Two cases on 8 x 8 coarse cells."""
    options = {"observed": observed, "times": times, "shape": shape, "extent": extent}
    return simulate(regime, num=num, seed=3, pooling=4, num_modes=2, sparsity=0.3, **options)


def observation(**options):
    return Observation.from_dataset(cases(**options))


def run(method, data, **options):
    options = {"num_draws": 3, "seed": 1, "num_modes": 2, **QUICK.get(method, {}), **options}
    return reconstruct(data, method=method, **options)


def refuses(method, family):
    try:
        methods.get(method).check_family(families.get(family))
    except UsageError:
        return True
    return False


# Contract


@every_method
@pytest.mark.parametrize("regime", ["balanced", "klein_gordon", "helmholtz", "telegraph", "fractional_diffusion"])
def test_every_method_works_for_every_family(method, regime):
    assert {r.family for r in regimes} == set(families.names()), "add a regime for the new family"
    data = observation(regime=regime)
    if refuses(method, data.family):
        with pytest.raises(UsageError, match=f"{method} cannot treat {data.family}"):
            run(method, data)
        return
    posterior = run(method, data)
    assert isinstance(posterior, Posterior)
    assert posterior.method == method
    assert posterior.settings["seed"] == 1
    mean = posterior.mean(16)
    assert mean.dims == ("case", "y", "x")
    assert mean.shape == (2, 16, 16)
    assert np.isfinite(mean).all()
    draws = posterior.draws(16)
    assert draws.dims == ("case", "draw", "y", "x")
    assert draws.shape == (2, posterior.num_draws, 16, 16)
    assert np.isfinite(draws).all()
    assert posterior.num_draws in (1, 3)
    assert np.isfinite(posterior.quantiles(resolution=8)).all()
    assert methods.get(method).has_spread or not posterior.has_spread
    std = posterior.std(16)
    if posterior.has_spread:
        assert (std > 0).all()
    else:
        assert np.isnan(std).all()
    if isinstance(posterior, PDEPosterior):
        family = families.get(data.family)
        theta = posterior.coefficients
        assert theta.dims == ("case", "draw", "coefficient")
        assert tuple(theta["coefficient"].values) == family.coefficient_names
        assert data.bounds is not None
        lower, upper = data.bounds.numpy().T
        assert ((theta >= lower) & (theta <= upper)).all()
        assert posterior.source(16).shape == (2, 16, 16)


@every_method
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("times", [(0.2,), (0.1, 0.25)])
def test_every_method_takes_every_kind_of_reading(method, kind, times):
    """On a rectangle, at one time or two."""
    posterior = run(method, observation(observed=kind, times=times, extent=(1.0, 1.5), shape=(32, 48)))
    asked = times[::-1] if isinstance(posterior, FieldPosterior) else (0.05, 0.3)
    mean = posterior.mean(8, times=asked)
    assert mean.dims == ("case", "time", "y", "x")
    assert mean.shape == (2, len(asked), 8, 12)
    assert tuple(mean["time"].values) == asked
    assert np.isfinite(mean).all()
    np.testing.assert_allclose(mean["x"], (np.arange(12) + 0.5) / 8)
    np.testing.assert_allclose(posterior.mean(8), posterior.mean(8, times=[times[-1]]).isel(time=0))


@every_method
def test_every_method_follows_its_seed(method):
    data = observation()
    first, again = (run(method, data, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.draws(8), again.draws(8))
    torch.manual_seed(123)
    np.testing.assert_array_equal(first.draws(8), run(method, data, seed=4).draws(8))
    assert np.array_equal(first.draws(8), run(method, data, seed=5).draws(8)) == (method in SEEDLESS)


@every_method
def test_every_method_drops_the_case_axis_of_a_single_case(method):
    tree = cases()
    single = Observation.from_dataset(tree.isel(case=0))
    assert not single.batched
    posterior = run(method, single)
    assert posterior.mean(8).dims == ("y", "x")
    assert posterior.draws(8).dims == ("draw", "y", "x")
    together = run(method, Observation.from_dataset(tree.isel(case=slice(0, 1))))
    np.testing.assert_allclose(posterior.mean(8), together.mean(8).isel(case=0), rtol=1e-10, atol=1e-12)


@every_method
def test_every_method_leaves_its_input_and_global_randomness_alone(method):
    data = observation()
    before = {name: getattr(data, name).clone() for name in ("values", "mask", "noise_std", "initial", "times")}
    state = torch.get_rng_state()
    run(method, data)
    assert torch.equal(torch.get_rng_state(), state)
    for name, value in before.items():
        assert torch.equal(getattr(data, name), value)


@every_method
def test_every_method_refuses_what_it_does_not_know(method):
    with pytest.raises(UsageError, match="has no option num_stepz"):
        run(method, observation(), num_stepz=3)
    for num_draws in (0, -1):
        with pytest.raises(UsageError, match="at least 1"):
            run(method, observation(), num_draws=num_draws)


@every_method
def test_every_method_is_described_and_configurable(method):
    kind = methods.get(method)
    assert issubclass(kind, Estimator)
    assert kind.name == method
    assert kind.summary
    assert isinstance(make_estimator(method), kind)


def test_a_method_misspelt_gets_a_suggestion():
    with pytest.raises(UsageError, match="did you mean 'map'"):
        reconstruct(observation(), method="mpa")


# What `reconstruct` makes of its arguments


def test_knowledge_comes_from_the_arguments_then_the_data_then_the_family():
    data = observation()
    assert data.bounds is not None

    def latent(**options):
        posterior = reconstruct(data, method="map", num_steps=1, num_restarts=1, num_modes=1, **options)
        assert isinstance(posterior, LatentPosterior)
        return posterior.decoder.latent

    assert torch.equal(latent().bounds, data.bounds)
    assert latent().source_prior_std == 0.4
    assert latent(source_prior_std=2.0).source_prior_std == 2.0
    narrowed = latent(bounds={"kappa": (0.1, 0.12)}).bounds
    assert torch.equal(narrowed[:2], data.bounds[:2])
    assert narrowed[2].tolist() == [0.1, 0.12]
    other = latent(family="telegraph")
    assert other.family.name == "telegraph"
    assert torch.equal(other.bounds, families.get("telegraph").bounds)
    assert latent(family="Advection-Diffusion").family.name == "advection_diffusion"
    with pytest.raises(UsageError, match="no coefficient 'speed'"):
        latent(bounds={"speed": (0.0, 1.0)})
    with pytest.raises(UsageError, match="bounds"):
        latent(bounds={"kappa": (0.2, 0.1)})


def test_a_family_is_needed():
    nameless = Observation.from_arrays(np.ones((4, 4)), np.ones((4, 4)), noise_std=0.1)
    with pytest.raises(UsageError, match="family"):
        reconstruct(nameless)


def test_an_initial_state_is_needed():
    with pytest.raises(DataError, match="initial state"):
        reconstruct(Observation.from_arrays(np.ones((4, 4)), noise_std=0.1), "helmholtz", method="map")


# The optimisation


def problem(regime="balanced", num_modes=2, **options):
    data = observation(regime=regime, **options)
    latent = Latent(families.get(data.family), source_prior_std=0.4, num_modes=num_modes, bounds=data.bounds)
    return ObservationOperator(data, Decoder(latent, data.grid.extent))


def loss(operator, z, weight):
    return operator.residual(z) + weight * z.square().sum(-1)


def gradient_norm(operator, z, weight):
    z = z.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(loss(operator, z, weight).sum(), z)
    return gradient.norm(dim=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_vanishes_where_it_ends(kind):
    operator = problem(observed=kind)
    start = Map(num_steps=1, num_restarts=2).minimise(operator, seed=0)
    end = Map(num_steps=120, num_restarts=2).minimise(operator, seed=0)
    assert (loss(operator, end, 0.01) < loss(operator, start, 0.01)).all()
    assert (gradient_norm(operator, end, 0.01) < 0.01 * gradient_norm(operator, start, 0.01)).all()


def test_more_steps_go_lower():
    operator = problem("klein_gordon")
    losses = torch.stack(
        [loss(operator, Map(num_steps=n, num_restarts=2).minimise(operator, seed=2), 0.01) for n in (1, 15, 45)]
    )
    assert (losses.diff(dim=0) < 0).all()


def test_a_heavier_penalty_gives_a_smaller_latent_and_a_larger_residual():
    operator = problem()
    light, heavy = (Map(weight=w, num_steps=60, num_restarts=2).minimise(operator, seed=0) for w in (0.001, 0.1))
    assert (heavy.norm(dim=-1) < light.norm(dim=-1)).all()
    assert (operator.residual(heavy) > operator.residual(light)).all()


def test_the_restart_of_lowest_residual_is_kept():
    data = observation(regime="klein_gordon")
    posterior = reconstruct(data, method="map", num_steps=15, num_restarts=4, num_modes=2, seed=0)
    assert isinstance(posterior, LatentPosterior)
    restarts = posterior.diagnostics["residual_of_restarts"]
    assert restarts.shape == (2, 4)
    assert (restarts.max(1) > restarts.min(1)).all()
    operator = ObservationOperator(data, posterior.decoder)
    kept = operator.residual(posterior.z)[:, 0].numpy()
    np.testing.assert_allclose(kept, restarts.min(1), rtol=1e-12)
    np.testing.assert_allclose(posterior.diagnostics["residual"], kept, rtol=1e-12)


def test_a_batch_fits_each_case_as_well_as_that_case_alone():
    """Starts differ, so latents may; with a penalty and steps enough the minimum does not."""
    data = observation()
    options = {"method": "map", "num_steps": 120, "num_restarts": 1, "num_modes": 1, "weight": 0.02}
    together = reconstruct(data, **options).diagnostics["residual"]
    alone = reconstruct(data[1:], **options).diagnostics["residual"]
    assert alone[0] == pytest.approx(together[1], rel=0.02)


def test_a_point_estimate_has_one_draw_and_no_false_certainty():
    posterior = run("map", observation(), num_draws=7)
    assert posterior.num_draws == 1
    assert not posterior.has_spread
    for spread in (posterior.std(8), posterior.source_std(8)):
        assert np.isnan(spread).all()


@pytest.mark.parametrize(("regime", "noise"), [("helmholtz", 0.001), ("diffusion", 0.01)])
def test_coefficients_are_recovered_where_the_data_determine_them(regime, noise):
    """Every cell read, hardly any noise, no source. The Cramér-Rao bound says how far an efficient estimate strays:
    the covariance is that of linear least squares, noise^2 (J' J)^-1, at the truth; we allow five standard deviations.
    """
    tree = simulate(
        regime, num=2, seed=11, shape=(64, 64), pooling=4, source=False, sparsity=1.0, mask="random", noise_std=noise
    )  # fmt: skip
    data = Observation.from_dataset(tree)
    assert data.num_readings.tolist() == [256] * 2
    posterior = reconstruct(data, method="map", num_modes=0, weight=0.0, learning_rate=0.2, num_steps=150, seed=0)
    assert isinstance(posterior, LatentPosterior)
    latent = posterior.decoder.latent
    truth = torch.from_numpy(tree["truth"]["coefficients"].values)
    for i in range(2):
        operator = ObservationOperator(data[i : i + 1], posterior.decoder)

        def readings(theta, operator=operator):
            return operator.predict(latent.pack(theta, theta[:0])[None, None]).flatten()

        jacobian = torch.autograd.functional.jacobian(readings, truth[i])
        std = noise * torch.linalg.inv(jacobian.mT @ jacobian).diagonal().sqrt()
        assert (std < 0.2 * latent.bounds.diff(dim=1)[:, 0]).all(), "the data do not determine this coefficient"
        error = torch.from_numpy(posterior.coefficients.values)[i, 0] - truth[i]
        assert (error.abs() < 5 * std).all()


def test_reconstruction_is_close_to_the_true_field_where_the_model_is_exact():
    """An initial state that the coarse grid resolves, no source, little noise: the fine field must come back."""
    coarse, factor = Grid((16, 16)), 4
    fine = coarse.refine(factor)
    family = families.get("klein_gordon")
    decoder = Decoder(Latent(family, num_modes=0))
    u0 = fine.synthesise(
        Grid((8, 8)).analyse(torch.randn((8, 8), dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    )
    z = torch.tensor([0.3, -0.5, 0.2], dtype=torch.float64)
    truth = decoder.decode(z, u0, [0.4], fine)[0]
    noise = 0.001 * torch.randn((16, 16), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for kind in ("lowres-solve", "pooled"):
        readings, initial = average_pool(truth, factor) + noise, average_pool(u0, factor)
        options = {"times": [0.4], "noise_std": 0.001, "observed": kind, "pooling": factor}
        data = Observation.from_arrays(readings, initial, **options)
        posterior = reconstruct(
            data, family, method="map", num_modes=0, weight=0.0, learning_rate=0.2, num_steps=80, seed=0
        )
        error = posterior.mean(64).values - truth.numpy()
        assert np.sqrt((error**2).mean()) < 0.01 * truth.std().item()


@pytest.mark.parametrize(
    "options",
    [
        {"num_steps": 0},
        {"num_restarts": 0},
        {"learning_rate": 0.0},
        {"weight": -0.1},
        {"start_std": -1.0},
        {"weight": float("nan")},
    ],
)
def test_impossible_options_are_refused(options):
    with pytest.raises(UsageError, match="of map must be"):
        make_estimator("map", **options)
