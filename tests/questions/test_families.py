"""Which PDE: odds by evidence, what they depend on, and the mixture of families."""

import numpy as np
import pytest
import torch
import xarray as xr

import latentpde as lp
from latentpde.cli import main
from latentpde.errors import UsageError
from latentpde.io.reconstructions import open_reconstruction


@pytest.fixture(scope="module")
def cases():
    return lp.simulate("klein_gordon", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.4, times=(0.5,))


@pytest.fixture(scope="module")
def found(cases):
    return lp.compare(cases, ["helmholtz", "klein_gordon", "telegraph"])


def test_the_right_family_is_first_and_goes_on(cases, found):
    assert found.best == "klein_gordon"
    posterior = lp.reconstruct(cases, "klein_gordon,helmholtz", num_draws=2)
    assert posterior.latent.family.name == "klein_gordon"
    assert set(posterior.settings["families"]) == {"klein_gordon", "helmholtz"}
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert "klein_gordon: probability" in found.to_text()


def test_evidence_is_that_of_quadrature(cases):
    """One free coefficient, on a grid of a thousand values: to 0.01 nats."""
    fixed = {"cx": 1.5, "cy": 1.5}
    posterior = lp.reconstruct(
        cases, "klein_gordon", fixed=fixed, bounds={"m": (0.3, 3.5)}, target=40_000.0, num_draws=2
    )
    likelihood = posterior.model().likelihood
    m = torch.linspace(0.3, 3.5, 2001, dtype=torch.float64)
    theta = torch.stack([torch.full_like(m, 1.5), torch.full_like(m, 1.5), m], dim=-1)
    values = likelihood.log_likelihood(theta)
    expected = float(torch.log(torch.trapezoid(torch.exp(values - values.max()), m) / 3.2) + values.max())
    assert float(posterior.diagnostics["log_evidence"][0]) == pytest.approx(expected, abs=0.01)


def test_wide_bounds_are_twice_as_wide(cases):
    """Against quadrature over an interval of twice the width, the other coefficients being right."""
    cx, cy, _ = cases["truth/coefficients"].values[0].tolist()
    found = lp.compare(cases, ["klein_gordon", "helmholtz"], fixed={"cx": cx, "cy": cy}, bounds={"m": (0.5, 4.0)})
    likelihood = found.posteriors["klein_gordon"].model().likelihood
    m = torch.linspace(0.25, 7.25, 2001, dtype=torch.float64)
    theta = torch.stack([torch.full_like(m, cx), torch.full_like(m, cy), m], dim=-1)
    values = likelihood.log_likelihood(theta)
    expected = float(torch.log(torch.trapezoid(torch.exp(values - values.max()), m) / 7.0) + values.max())
    assert found.wide["klein_gordon"] == pytest.approx(expected, abs=0.15)


def test_families_far_behind_are_not_solved_again():
    """With noise far below the field, the evidence of a wrong PDE is beyond any change of bounds."""
    cases = lp.simulate("klein_gordon", num=1, seed=3, shape=(32, 32), num_modes=2, sparsity=0.6, noise_std=0.01)
    found = lp.compare(cases, ["klein_gordon", "helmholtz"], show_progress=True)
    assert found.log_evidences["klein_gordon"] - found.log_evidences["helmholtz"] > 50
    assert set(found.wide) == {"klein_gordon"}
    assert not found.is_sensitive


def test_the_mixture_is_between_its_families(cases):
    mixed = lp.reconstruct(cases, ["klein_gordon", "telegraph"], average=True, num_draws=4)
    comparison = lp.compare(cases, ["klein_gordon", "telegraph"], sensitivity=False, num_draws=199)
    weights, parts = comparison.probabilities, comparison.posteriors
    expected = sum(weights[name] * parts[name].mean(resolution=8) for name in parts)
    np.testing.assert_allclose(mixed.mean(resolution=8), expected, rtol=1e-6, atol=1e-9)
    assert mixed.num_draws == 199
    mixed.summary(resolution=8)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"family": ["helmholtz"]}, "at least two families"),
        ({"family": "helmholtz,helmholtz"}, "each once"),
        ({"family": "helmholtz,nonsense"}, "nonsense"),
        ({"family": "auto", "method": "map"}, "only the method exact"),
        ({"family": "helmholtz", "average": True}, "average is over several"),
    ],
)
def test_refusals_say_what_is_wrong(cases, call, words):
    with pytest.raises(UsageError, match=words):
        lp.reconstruct(cases, **call)


def test_a_likeliest_family_with_fewer_coefficients_than_the_files_own_is_written_and_read(tmp_path, capsys):
    """The file names three coefficients of advection-diffusion with bounds; heat has one, and no use for these."""
    source, out = tmp_path / "cases.nc", tmp_path / "out.nc"
    lp.simulate("diffusion", num=1, seed=5, shape=(32, 32), num_modes=2, sparsity=0.1).to_netcdf(source)
    call = ["reconstruct", str(source), "--pde", "heat,poisson", "--resolution", "8", "-q", "-o", str(out)]
    assert not _exit_code(call)
    observation, settings = open_reconstruction(out)
    assert observation.family is None
    assert settings["family"] == "heat"
    again = lp.reconstruct(observation, **settings)
    with xr.open_dataset(out) as written:
        np.testing.assert_allclose(again.mean(resolution=8), written["mean"], rtol=1e-5)  # kept in single precision


def test_questions_about_one_family_refuse_a_mixture_and_name_its_families(cases, tmp_path, capsys):
    mixed = lp.reconstruct(cases, ["klein_gordon", "telegraph"], average=True, num_draws=4)
    for question in (lp.suggest, lp.identifiability, lp.check_model):
        with pytest.raises(UsageError, match="mixture of klein_gordon, telegraph: choose one"):
            question(mixed)
    mixed.to_netcdf(tmp_path / "mixed.nc", resolution=8)
    assert _exit_code(["suggest", str(tmp_path / "mixed.nc")])
    assert "such as --pde klein_gordon" in capsys.readouterr().err


def _exit_code(arguments):
    with pytest.raises(SystemExit) as leaving:
        main(arguments)
    return leaving.value.code
