"""
Stations without a grid, and an unknown start
=============================================

Forty stations at arbitrary places have read a field at three times. Nobody knows what it looked
like at the beginning. The equation ties the three times together, and that is enough to see the
field between the stations, and how it moves.
"""

import numpy as np
import pandas as pd

import latentpde as lp
from latentpde.report.fields import plot_coefficients, plot_observation, plot_reconstruction

# %%
# A table of readings, one row for each station and one column for each time. It is simulated here,
# so that there is a truth to compare with; read yours with ``pandas.read_csv``.
TIMES, NOISE_STD = (0.05, 0.10, 0.15), 0.1
stations = {"observed": "point", "mask": "random", "sparsity": 0.04, "times": TIMES, "noise_std": NOISE_STD}
cases = lp.simulate("advection", num=1, seed=1, source=False, **stations)
case = cases.to_dataset().isel(case=0)
table = pd.DataFrame({"y": case["sensor_y"], "x": case["sensor_x"]})
for time in TIMES:
    table[f"t = {time}"] = case["observed"].sel(time=time)
table.to_csv("stations.csv", index=False)
print(table.head().round(2))

# %%
# Readings have the axes ``(time, sensor)``, positions ``(sensor, 2)`` as ``(y, x)``. The grid says
# on which cells the unknown initial state is represented. Its cells should be about as large as
# what the stations can tell apart, or smaller.
table = pd.read_csv("stations.csv")
observation = lp.Observation.from_arrays(
    table.filter(like="t = ").to_numpy().T,
    positions=table[["y", "x"]].to_numpy(),
    times=TIMES,
    noise_std=NOISE_STD,
    grid=lp.Grid((24, 24)),
)
plot_observation(observation).savefig("stations-readings.png")

# %%
# There is no initial state to give. ``initial_prior`` says what is believed of it instead: a
# standard deviation of 1, and a power that falls with the fourth power of the wavenumber. That
# suits fields with structure everywhere. If a start has only a few sharp features, the readings may
# not be explained, and the method says so.
bounds = {"vx": (-3, 3), "vy": (-3, 3), "kappa": (0.001, 0.08)}
options = {"num_modes": 0, "initial_prior": (1.0, 4.0)}  # no source
posterior = lp.reconstruct(observation, "advection_diffusion", bounds=bounds, num_draws=100, **options)
truth = cases["truth/field"].isel(case=0)
plot_reconstruction(posterior, truth=truth).savefig("stations-field.png")

last = truth.isel(time=-1).values
rmse = np.sqrt(np.mean((posterior.mean(resolution=128).values - last) ** 2))
print(f"RMSE {rmse:.3f}; the field's own standard deviation is {last.std():.3f}")
print("warnings:", posterior.warnings(0) or "none")

# %%
# What the three times say about the coefficients:
plot_coefficients(posterior).savefig("stations-coefficients.png")

true = cases["truth/coefficients"].isel(case=0)
for name in true.coefficient.values:
    draws, truly = posterior.coefficients.sel(coefficient=name), float(true.sel(coefficient=name))
    print(f"{name:<6}{float(draws.mean()):+.2f} ± {float(draws.std()):.2f}, true {truly:+.2f}")

# %%
# The field can be had at any time. Before the first reading less is known; after the last, diffusion
# forgets what is not known.
for time in (0.0, 0.05, 0.15, 0.3):
    spread = posterior.std(resolution=64, times=[time]).mean().item()
    print(f"t = {time:<5}mean standard deviation {spread:.3f}")
