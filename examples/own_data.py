"""Reconstruct your own data: gridded readings with gaps, and readings at sensors.

Run with: python examples/own_data.py
The "measurements" are made up here, so that the script runs by itself; replace the first function.
"""

import numpy as np
import xarray as xr

import latentpde as lp

NOISE_STD = 0.05
TIME = 0.1  # since the initial state, in the PDE's unit of time


def measurements() -> tuple[xr.DataArray, xr.DataArray]:
    """A smooth blob that drifted and spread on a rectangle 2 units wide and 1 unit high, before and after."""
    y, x = (np.arange(24) + 0.5) / 24, (np.arange(48) + 0.5) / 24  # cell centres, evenly spaced

    def blob(centre_y: float, centre_x: float, variance: float) -> np.ndarray:
        squared = (y[:, None] - centre_y) ** 2 + (x - centre_x) ** 2
        return 0.01 / variance * np.exp(-squared / (2 * variance))

    coords = {"y": y, "x": x}
    before = xr.DataArray(blob(0.5, 0.6, 0.010), coords, name="initial")
    after = xr.DataArray(blob(0.5, 0.8, 0.014), coords, name="observed")  # v = (2, 0), kappa = 0.02
    return before, after


def main() -> None:
    rng = np.random.default_rng(1)
    initial, field = measurements()

    # 1. A grid with gaps: NaN where nothing was measured.
    gaps = rng.random(field.shape) > 0.15
    readings = (field + NOISE_STD * rng.standard_normal(field.shape)).where(~gaps)
    data = xr.Dataset({"observed": readings, "initial": initial}, attrs={"observed_kind": "pooled"})
    data.to_netcdf("own_data.nc", engine="h5netcdf")  # for the command line; see the end of the output
    observation = lp.Observation.from_dataset(data, noise_std=NOISE_STD, times=(TIME,))
    summarise("grid with gaps", observation, field)

    # 2. Sensors: any positions (y, x) inside the rectangle that the initial state covers.
    y, x = rng.uniform(0, 1, 60), rng.uniform(0, 2, 60)
    values = field.interp(y=("sensor", y), x=("sensor", x), kwargs={"fill_value": None})
    sensors = xr.Dataset(
        {
            "observed": values.drop_vars(["y", "x"]) + NOISE_STD * rng.standard_normal(60),
            "sensor_y": ("sensor", y),
            "sensor_x": ("sensor", x),
            "initial": initial,
        }
    )
    observation = lp.Observation.from_dataset(sensors, noise_std=NOISE_STD, times=(TIME,))
    summarise("sensors", observation, field)

    command = "latentpde reconstruct own_data.nc --pde advection_diffusion"
    print(f"The first again: {command} --noise-std {NOISE_STD} --time {TIME} --num-modes 0 -o own_out.nc")


def summarise(name: str, observation: lp.Observation, field: xr.DataArray) -> None:
    # Bounds say what is plausible for your system, in your units. There is no source here: num_modes=0.
    bounds = {"vx": (0.0, 4.0), "vy": (-1.0, 1.0), "kappa": (0.001, 0.1)}
    posterior = lp.reconstruct(observation, "advection_diffusion", bounds=bounds, num_modes=0)
    coarse = posterior.mean(resolution=field.shape)
    error = float(np.sqrt(np.mean((coarse.values - field.values) ** 2)))
    print(
        f"{name}: {int(observation.num_readings[0])} readings, RMSE {error:.3f}; made with vx = 2, vy = 0, kappa = 0.02"
    )
    for coefficient in posterior.coefficients.coefficient.values:
        draws = posterior.coefficients.sel(coefficient=coefficient)
        spread = f" ± {float(draws.std('draw')):.3f}" if posterior.has_spread else ""
        print(f"  {coefficient:<6}{float(draws.mean('draw')):+.3f}{spread}")


if __name__ == "__main__":
    main()
