"""`--film`: the field at every time that was read, as the user has times and axes."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

DATES = pd.to_datetime(["2026-05-01T00:00", "2026-05-01T06:00", "2026-05-01T12:00"])
QUICK = (
    *("--pde", "advection-diffusion", "--noise-std", "0.1", "--initial", "Matern(1.0, 120.0)", "--trend", "constant"),
    *("--num-modes", "0", "--bounds", "vx=-3:3", "--bounds", "vy=-3:3", "--bounds", "kappa=0.1:50", "-O", "sweep=32"),
    *("--resolution", "8", "--num-draws", "4"),
)


@pytest.fixture
def images(tmp_path):
    """Three images of a warm spot, latitudes downwards and before time, as somebody else's program wrote them."""
    lat, lon = np.arange(54.0, 50.0, -0.5), np.arange(4.0, 9.0, 0.5)
    y, x = np.meshgrid(lat, lon, indexing="ij")
    fields = [285 + np.exp(-((y - 52) ** 2) - (x - 6 - 0.2 * i) ** 2) for i in range(3)]
    noise = 0.1 * np.random.default_rng(0).standard_normal((len(lat), 3, len(lon)))
    values = np.stack(fields, axis=1) + noise
    dataset = xr.Dataset(
        {"sst": (("lat", "time", "lon"), values, {"units": "K"})},
        {
            "lat": ("lat", lat, {"units": "degrees_north"}),
            "time": DATES,
            "lon": ("lon", lon, {"units": "degrees_east"}),
        },
    )
    path = tmp_path / "images.nc"
    dataset.to_netcdf(path)
    return path


@pytest.mark.parametrize("name", ["film.nc", "film.zarr"])
def test_a_film_has_the_users_dates_and_axes_and_ends_as_the_result(run, images, tmp_path, name):
    code, said, err = run("reconstruct", images, *QUICK, "-o", tmp_path / "out.nc", "--film", tmp_path / name)
    assert code == 0, err
    assert name in said
    out = xr.load_dataset(tmp_path / "out.nc")
    film = xr.open_zarr(tmp_path / name).load() if name.endswith("zarr") else xr.load_dataset(tmp_path / name)
    assert film["mean"].dims == ("lat", "time", "lon")
    assert film["quantiles"].sizes["quantile"] == 5
    np.testing.assert_array_equal(film["time"], DATES)
    assert (np.diff(film["lat"]) < 0).all()
    assert film["mean"].attrs["units"] == "K"
    assert film.attrs["Conventions"] == "CF-1.11"
    assert film.attrs["history"] == out.attrs["history"], "the command that made both"
    for name in ("mean", "std"):
        np.testing.assert_allclose(film[name].isel(time=-1), out[name], rtol=1e-6)
    assert not np.allclose(film["mean"].isel(time=0), out["mean"], atol=0.01), "the spot moves"


def test_a_film_is_a_file_of_its_own(refused, images, tmp_path):
    both = ("-o", tmp_path / "out.nc", "--film", tmp_path / "out.nc")
    refused(2, "--film must be different files", "reconstruct", images, *QUICK, *both)
    assert not (tmp_path / "out.nc").exists()
