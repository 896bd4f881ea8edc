"""
Quickstart: simulate, reconstruct, compare
==========================================

Simulate one case whose truth is known, reconstruct it from its readings, and compare.
"""

import numpy as np

import latentpde as lp
from latentpde.report.fields import plot_coefficients, plot_observation, plot_reconstruction

# %%
# A case of the regime ``diffusion``: a tracer that drifts and spreads on the periodic unit square.
# It is read at time 0.25 on 5 % of 32 x 32 cells, with noise of standard deviation 0.15.
cases = lp.simulate("diffusion", num=1, seed=7, mask="radial")
plot_observation(lp.Observation.from_dataset(cases)).savefig("quickstart-readings.png")

# %%
# The method sees the readings and the coarse initial state. It does not look at the group
# ``truth``.
posterior = lp.reconstruct(cases, num_draws=100, seed=0)
print(f"method {posterior.method}, {posterior.num_draws} draws, warnings: {posterior.warnings(0) or 'none'}")

# %%
# The posterior mean is the reconstruction, and the standard deviation says how sure it is, point by
# point.
truth = cases["truth/field"].isel(case=0)
plot_reconstruction(posterior, truth=truth).savefig("quickstart-field.png")

mean = posterior.mean(resolution=128).isel(case=0)
rmse = np.sqrt(np.mean((mean.values - truth.values) ** 2))
print(f"RMSE {rmse:.3f}; the field's own standard deviation is {truth.values.std():.3f}")

# %%
# The coefficients of the equation come with it.
plot_coefficients(posterior).savefig("quickstart-coefficients.png")

draws, true = posterior.coefficients.isel(case=0), cases["truth/coefficients"].isel(case=0)
for name in draws.coefficient.values:
    one, truly = draws.sel(coefficient=name), float(true.sel(coefficient=name))
    print(f"{name:<6}{float(one.mean()):+.3f} ± {float(one.std()):.3f}, true {truly:+.3f}")

# %%
# Keep what was found: fields at any resolution in a NetCDF file, and a page for a browser.
posterior.to_netcdf("quickstart.nc", resolution=256)
posterior.report("quickstart.html", truth=truth)
