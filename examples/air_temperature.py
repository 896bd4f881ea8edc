"""
Air temperature from a NetCDF file
==================================

The file is one that somebody else wrote: air temperature over North America every six hours in February 2014, cells of
2.5 degrees of the NCEP reanalysis, in kelvin, with dates, latitudes that run downwards and longitudes up to 330. It
comes with the package ``hvsampledata``. Most of its cells are hidden here, so that the reconstruction can be compared
with them.
"""

import hvsampledata
import numpy as np

import latentpde as lp
from latentpde.report.fields import plot_reconstruction

air = hvsampledata.air_temperature("xarray").sel(lat=slice(50, 30), lon=slice(240, 275))
air = air.isel(time=slice(0, 4)).load()
read = np.random.default_rng(0).random(air["air"].shape[1:]) < 0.3  # a third of the cells
air["air"].where(read).to_netcdf("air.nc", engine="h5netcdf")

# %%
# What does the file hold, and what would become of it? On the command line this is ``latentpde check air.nc``.

print(lp.check("air.nc"))

# %%
# Nothing has to be converted: kelvin, dates and degrees are understood, and results come back in them.

observation = lp.read("air.nc")
bounds = {"vx": (-150, 150), "vy": (-150, 150), "kappa": (1, 100_000)}  # km/h and km²/h
posterior = lp.reconstruct(observation, "advection_diffusion", bounds=bounds, num_draws=4, target=50)
out = posterior.summary(resolution=(air.sizes["lat"], air.sizes["lon"]))
print(out["mean"].dims, out["mean"].attrs["units"], out["time"].values)

# %%
# The hidden cells at the last time, against the reconstruction and against the mean of what was read:

hidden, truth = ~read, air["air"].isel(time=-1).values
error = (out["mean"].values - truth)[hidden]
inside = np.abs(error) < 1.645 * out["std"].values[hidden]
print(f"RMSE {np.sqrt((error**2).mean()):.2f} K; the mean of the readings {np.std(truth[hidden]):.2f} K")
print(f"{inside.mean():.0%} of the hidden cells are within the 90 % intervals")
plot_reconstruction(posterior).savefig("air_temperature-field.png")

# %%
# The physics beats the mean by far, and its intervals hold fewer cells than they say. The warning above has told so
# without knowing the hidden cells: air is heated and cooled in ways that this equation does not know.
