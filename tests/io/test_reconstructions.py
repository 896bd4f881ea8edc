"""What ``out.nc`` holds."""

import json

import numpy as np
import pytest
import torch
import xarray as xr

import latentpde
import latentpde as lp
from latentpde import Latent, Observation
from latentpde.estimators.base import decoder_for, reconstruct
from latentpde.grid import unpool_spectrum
from latentpde.io.netcdf import open_observed
from latentpde.pde import get_family
from latentpde.posterior import LatentPosterior
from latentpde.posterior.spread import QUANTILES


@pytest.fixture(scope="module")
def posterior(cases) -> LatentPosterior:
    """Five draws of the prior per case: a spread without the work of a method."""
    observation = Observation.from_dataset(cases)
    latent = Latent(get_family("advection_diffusion"), bounds=observation.bounds, num_modes=3)
    z = latent.draw(15, generator=torch.Generator().manual_seed(0)).unflatten(0, (3, 5))
    return LatentPosterior(
        observation=observation,
        method="prior",
        settings={"width": 2, "seed": 7},
        diagnostics={"loss": np.arange(3.0), "steps": 9},
        decoder=decoder_for(observation, latent),
        z=z,
        initial_hat=unpool_spectrum(observation.initial, observation.grid, 4)[:, None],
    )


def test_reconstruction_file_has_the_documented_layout(posterior, tmp_path):
    posterior.to_netcdf(tmp_path / "out.nc", 8, command="latentpde reconstruct cases.nc -o out.nc")
    out = open_observed(tmp_path / "out.nc")
    fields = ("mean", "std", "source_mean", "source_std")
    of_coefficients = {"coefficients", "coefficient_mean", "coefficient_std", "coefficient_quantiles"}
    others = {"quantiles", "readings_crc32", "diagnostic_loss", "diagnostic_steps"}
    assert set(out.data_vars) == {*fields, *of_coefficients, *others}
    for name in fields:
        assert out[name].dims == ("case", "y", "x")
    assert dict(out.sizes) == {"case": 3, "y": 8, "x": 12, "quantile": 5, "draw": 5, "coefficient": 3}
    assert out["quantiles"].dims == ("case", "quantile", "y", "x")
    assert tuple(out["quantile"].values) == QUANTILES == (0.05, 0.25, 0.5, 0.75, 0.95)
    assert out["coefficients"].dims == ("case", "draw", "coefficient")
    assert out["coefficient"].values.tolist() == ["vx", "vy", "kappa"]
    assert out["diagnostic_loss"].values.tolist() == [0, 1, 2]
    np.testing.assert_allclose(out["y"], (np.arange(8) + 0.5) / 8)
    assert out["time"].item() == 0.25
    for axis in ("y", "x"):
        assert out[axis].attrs["axis"] == axis.upper()
    for name in (*fields, "quantiles", "coefficients"):
        assert out[name].attrs["long_name"]
        assert np.isfinite(out[name]).all()

    assert out.attrs["Conventions"] == "CF-1.11"
    assert out.attrs["latentpde_version"] == latentpde.__version__
    assert out.attrs["method"] == "prior"
    assert out.attrs["seed"] == 7
    assert json.loads(out.attrs["options"]) == {"width": 2, "seed": 7}
    assert out["diagnostic_steps"].item() == 9
    assert out["quantiles"].attrs["comment"].startswith("of 5 draws; the interval from 0.05 to 0.95 holds 66.7 %")
    theta = posterior.thetas.numpy()
    np.testing.assert_allclose(out["coefficient_mean"], theta.mean(1))
    np.testing.assert_allclose(out["coefficient_std"], theta.std(1, ddof=1))
    np.testing.assert_allclose(
        out["coefficient_quantiles"], np.quantile(theta, QUANTILES, axis=1, method="weibull").swapaxes(0, 1)
    )
    assert out.attrs["history"] == "latentpde reconstruct cases.nc -o out.nc"
    assert out.attrs["family"] == "advection_diffusion"
    assert out.attrs["has_spread"] == 1


def test_kept_draws_are_what_the_summaries_summarise(posterior):
    out = posterior.summary(8, keep_draws=True)
    assert out["draws"].dims == ("case", "draw", "y", "x")
    np.testing.assert_allclose(out["mean"], out["draws"].mean("draw"), atol=1e-6)
    np.testing.assert_allclose(out["std"], out["draws"].std("draw", ddof=1), atol=1e-6)
    np.testing.assert_allclose(
        out["quantiles"], out["draws"].quantile(QUANTILES, "draw", method="weibull").transpose("case", ...), atol=1e-6
    )


def test_a_point_estimate_has_no_spread(cases):
    out = reconstruct(cases, method="map", num_steps=1).summary(8)
    assert out.attrs["has_spread"] == 0
    assert out["std"].isnull().all()
    assert out.sizes["draw"] == 1


def test_without_case_axis_none_is_invented(cases, tmp_path):
    one = cases.to_dataset().isel(case=0)
    for data in (one, one.assign(observed=one.observed.expand_dims(time=[0.25]))):
        out = reconstruct(data, method="map", num_steps=1).summary(8)
        assert out["mean"].dims == ("y", "x")
        assert out["coefficients"].dims == ("draw", "coefficient")


def test_diagnostics_are_variables_with_and_without_a_case_axis(cases, tmp_path):
    """Whether a result is to be trusted must not hide in an attribute."""
    options = {"num_draws": 2, "num_spread_draws": 2, "sweep": 32}
    together = reconstruct(cases.isel(case=slice(0, 1)), **options)
    for data, axes in ((cases.isel(case=slice(0, 1)), ("case",)), (cases.isel(case=0), ())):
        reconstruct(data, **options).to_netcdf(tmp_path / "out.nc", 8)
        out = open_observed(tmp_path / "out.nc")
        assert "diagnostics" not in out.attrs
        for name, value in together.diagnostics.items():
            found = out[f"diagnostic_{name}"]
            assert found.dims == (*axes, *["coefficient"] * (value.ndim - 1))
            np.testing.assert_array_equal(found, value if axes else value[0])
        assert out["diagnostic_trusted"].dtype == bool
    restarts = reconstruct(cases, method="map", num_steps=1).summary(8)["diagnostic_residual_of_restarts"]
    assert restarts.dims == ("case", "residual_of_restarts_1")


def test_the_cf_checker_finds_nothing(tmp_path):
    runner = pytest.importorskip("compliance_checker.runner")
    lat, lon = np.array([52.0, 51.0, 50.0]), np.array([8.0, 9.0, 10.0, 11.0])
    time = np.array(["2026-05-01T00", "2026-05-01T06"], dtype="datetime64[ns]")
    attributes = {"units": "K", "standard_name": "air_temperature"}
    values = 280 + np.random.default_rng(0).standard_normal((2, 3, 4))
    data = xr.Dataset({"t2m": (("time", "lat", "lon"), values, attributes)}, {"time": time, "lat": lat, "lon": lon})
    known = {"noise_std": 0.1, "initial": "Matern(1.0, 100.0)", "num_modes": 0, "sweep": 16, "target": 4}
    posterior = lp.reconstruct(lp.read(data), "heat", num_draws=2, num_spread_draws=4, **known)
    posterior.to_netcdf(tmp_path / "out.nc", 8)
    runner.CheckSuite.load_all_available_checkers()
    report = tmp_path / "report.txt"
    passed, _ = runner.ComplianceChecker.run_checker(
        str(tmp_path / "out.nc"), ["cf:1.11"], 0, "strict", output_filename=str(report), output_format="text"
    )
    assert passed, report.read_text()
