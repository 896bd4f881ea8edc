"""Simulate one case, reconstruct it, and compare with the truth.

Run with: python examples/quickstart.py
Writes quickstart.nc and quickstart.html into the current folder.
"""

import numpy as np

import latentpde as lp

# A tracer that drifts and spreads: 5 % of 32 x 32 cells read at t = 0.25, with noise of standard deviation 0.15.
cases = lp.simulate("diffusion", num=1, seed=7, mask="radial")

# The method sees the readings and the coarse initial state. The group `truth` is not looked at.
posterior = lp.reconstruct(cases, seed=0)

mean = posterior.mean(resolution=128).isel(case=0)
truth = cases["truth/field"].isel(case=0)
error = np.sqrt(np.mean((mean.values - truth.values) ** 2))
print(f"method {posterior.method}: RMSE {error:.3f}; the field's standard deviation is {truth.values.std():.3f}")

estimated = posterior.coefficients.isel(case=0).mean("draw")
true = cases["truth/coefficients"].isel(case=0)
for name in estimated.coefficient.values:
    print(f"  {name:<6} estimated {float(estimated.sel(coefficient=name)):+.3f}", end="")
    print(f"   true {float(true.sel(coefficient=name)):+.3f}")

posterior.to_netcdf("quickstart.nc", resolution=256)
posterior.report("quickstart.html", truth=truth)
print("fields at 256 x 256 in quickstart.nc; open quickstart.html in a browser")
