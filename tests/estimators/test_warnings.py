"""No method is wrong in silence: each says where its mean does not fit the readings, in Python and on the command line.

Methods that learn use the networks that come with the package; the random ones of other tests fit nothing.
"""

from __future__ import annotations

import functools
import pickle
import warnings

import numpy as np
from quick_methods import every_method
from quick_methods import run as run_method
from small_cases import observation

import latentpde as lp
from latentpde.posterior import PDEPosterior
from latentpde.simulation import simulate

# Fewer steps than the defaults, and enough to fit.
OPTIONS = {"pinn": {"num_steps": 200}, "fundps": {"num_steps": 6}, "enc_diffusion": {"num_steps": 40}}


@functools.cache
def easy():
    """One case that every method fits: the conditions of training, and a smooth field that is well read."""
    return simulate("diffusion", num=1, seed=4, mask="grid", sparsity=0.1).to_dataset()


def messages(method, data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = lp.reconstruct(data, method=method, num_draws=2, **OPTIONS.get(method, {}))
    assert all(issubclass(one.category, lp.LatentPDEWarning) for one in caught)
    found = [str(one.message) for one in caught]
    assert found == posterior.all_warnings()
    return posterior, found


@every_method
def test_a_right_case_raises_no_warning(method):
    posterior, found = messages(method, easy())
    assert not found
    assert posterior.warnings(0) == []
    assert posterior.diagnostics["misfit"].shape == (1,)


@every_method
def test_noise_understated_by_a_factor_of_five_raises_one(method):
    data = easy()
    data = data.assign_attrs(noise_std=data.attrs["noise_std"] / 5)
    posterior, found = messages(method, data)
    if method == "kriging":  # no equation contradicts the readings: with less noise it meets them more closely
        assert posterior.diagnostics["misfit"][0] < 1.5
        return
    assert posterior.diagnostics["misfit"][0] > 3
    assert any("case 0: The re" in one and "their misfit is" in one for one in found)


def test_the_same_sentence_about_many_cases_is_said_once():
    data = simulate("diffusion", num=7, seed=4, shape=(64, 64))
    _, found = messages("enc", data)
    about = [one for one in found if "networks were trained on [32, 32] cells" in one]
    (sentence,) = about
    assert sentence.startswith("cases 0, 1, 2, 3, 4 and 2 more: ")


def test_the_program_prints_a_warning_once(run, tmp_path):
    data = easy()
    data.assign_attrs(noise_std=0.01).to_netcdf(tmp_path / "cases.nc", engine="h5netcdf")
    for method in ("exact", "map"):
        code, out, err = run("reconstruct", tmp_path / "cases.nc", "--method", method, "-o", tmp_path / "out.nc")
        assert code == 0
        assert (out + err).count("their misfit is") == 1
        assert "warning: case 0: The re" in err
        assert "LatentPDEWarning" not in err


@every_method
def test_a_posterior_can_be_pickled(method):
    posterior = run_method(method, observation())
    back = pickle.loads(pickle.dumps(posterior))
    assert type(back) is type(posterior)
    np.testing.assert_array_equal(back.mean(16), posterior.mean(16))
    np.testing.assert_array_equal(back.draws(16), posterior.draws(16))
    np.testing.assert_array_equal(back.std(16), posterior.std(16))
    np.testing.assert_array_equal(back.quantiles(resolution=16), posterior.quantiles(resolution=16))
    if isinstance(posterior, PDEPosterior):
        np.testing.assert_array_equal(back.coefficients, posterior.coefficients)
        np.testing.assert_array_equal(back.source(16), posterior.source(16))
    assert repr(back) == repr(posterior)
    assert back.settings == posterior.settings
    for name, value in posterior.diagnostics.items():
        np.testing.assert_array_equal(back.diagnostics[name], value)


@every_method
def test_a_posterior_prints_a_few_lines(method):
    data = observation(num=5)
    text = repr(run_method(method, data))
    assert text.startswith(("ExactPosterior", "LatentPosterior", "LearnedPosterior", "F", "Pinn"))
    assert f"by {method}" in text
    assert len(text.splitlines()) == 6  # head, readings, three cases, how many more
    assert repr(data) in text
    assert "tensor(" not in text
    assert ("kappa" in text) == ("Latent" in text or "Exact" in text or "Learned" in text or "Pinn" in text)
