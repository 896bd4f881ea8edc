"""
Your own data: a grid with gaps, in your own units
==================================================

A satellite has looked at a drifting tracer twice. The first image is complete. Clouds hide most
of the second, two hours later. What does the whole field look like, how fast is the current, and
how fast does the tracer spread?

The "measurements" are made up here, so that the script runs by itself; replace the next part by
reading your file.
"""

import numpy as np
import xarray as xr

import latentpde as lp
from latentpde.report.fields import plot_observation, plot_reconstruction

# %%
# Measurements
# ------------
# Pixels of 2.5 km on a rectangle of 60 x 100 km. Coordinates are the centres of the pixels.
y, x = np.arange(1.25, 60, 2.5), np.arange(1.25, 100, 2.5)
SPEED, DIFFUSIVITY, HOURS, NOISE_STD = 10.0, 4.0, 2.0, 0.4  # km/h, km^2/h, h, and the tracer's unit


def tracer(hours):
    """A blob that moves to the right with the current, and spreads."""
    variance = 50.0 + 2 * DIFFUSIVITY * hours
    squared = (y[:, None] - 30.0) ** 2 + (x - 35.0 - SPEED * hours) ** 2
    return 5.0 * 50.0 / variance * np.exp(-squared / (2 * variance))


rng = np.random.default_rng(2)
image = tracer(HOURS) + NOISE_STD * rng.standard_normal((y.size, x.size))
cloudy = rng.random(image.shape) > 0.15

# %%
# The file
# --------
# Two variables on the same grid: ``observed`` with NaN in the gaps, and ``initial``. The attribute
# ``observed_kind`` says that a pixel is an average over its cell. ``time`` counts from the initial
# state, here in hours.
data = xr.Dataset(
    {"observed": (("y", "x"), np.where(cloudy, np.nan, image)), "initial": (("y", "x"), tracer(0.0))},
    coords={"y": y, "x": x},
    attrs={"observed_kind": "pooled", "time": HOURS, "noise_std": NOISE_STD},
)
data.to_netcdf("own_data.nc", engine="h5netcdf")
observation = lp.Observation.from_dataset(data)
plot_observation(observation).savefig("own_data-readings.png")

# %%
# The reconstruction
# ------------------
# Bounds say what is plausible for your system, in your units: km/h for velocities, km^2/h for the
# diffusivity. Nothing feeds the tracer here, so there is no source: ``num_modes=0``.
bounds = {"vx": (-20.0, 20.0), "vy": (-20.0, 20.0), "kappa": (0.1, 20.0)}
posterior = lp.reconstruct(observation, "advection_diffusion", bounds=bounds, num_modes=0, num_draws=100)
plot_reconstruction(posterior, truth=tracer(HOURS)).savefig("own_data-field.png")

for name, made_with in (("vx", SPEED), ("vy", 0.0), ("kappa", DIFFUSIVITY)):
    draws = posterior.coefficients.sel(coefficient=name)
    print(f"{name:<6}{float(draws.mean()):6.2f} ± {float(draws.std()):.2f}, made with {made_with}")

# %%
# Can it be trusted?
# ------------------
# Warnings come first. Then keep some readings back, and see whether what is left of them is as
# large as it should be: the last number should be about 1.
print("warnings:", posterior.warnings(0) or "none")

hidden = ~cloudy & (rng.random(image.shape) < 0.2)
fewer = lp.Observation.from_dataset(data.assign(observed=data["observed"].where(~hidden)))
checked = lp.reconstruct(fewer, "advection_diffusion", bounds=bounds, num_modes=0, num_draws=100)
mean, std = checked.mean(resolution=image.shape).values, checked.std(resolution=image.shape).values
left = (image - mean)[hidden] / np.sqrt(std**2 + NOISE_STD**2)[hidden]
print(f"{hidden.sum()} readings kept back: {left.std():.2f}")

# %%
# The same from the command line::
#
#     latentpde reconstruct own_data.nc --pde advection_diffusion --num-modes 0 --num-draws 100 \
#         --bounds vx=-20:20 --bounds vy=-20:20 --bounds kappa=0.1:20 -o own_out.nc --report own_out.html
