"""Every method keeps the contract of `Estimator`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from quick_methods import SEEDLESS, every_method, run
from small_cases import KINDS, cases, observation

from latentpde.errors import UsageError
from latentpde.estimators import Estimator, make_estimator, methods
from latentpde.observation import Observation
from latentpde.pde import families
from latentpde.posterior import PDEPosterior, Posterior
from latentpde.posterior.fields import FieldPosterior
from latentpde.simulation import regimes


def refuses(method, family):
    try:
        methods.get(method).check_family(families.get(family))
    except UsageError:
        return True
    return False


@every_method
@pytest.mark.parametrize("regime", {regime.family: regime.name for regime in regimes}.values())
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
