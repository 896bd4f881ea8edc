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
from latentpde.report.fields import plot_coefficients, plot_reconstruction

# %%
# A table of readings, one row for each of them. It is simulated here, so that there is a truth to
# compare with; read yours with ``pandas.read_csv``.
stations = {"observed": "point", "mask": "random", "sparsity": 0.04, "times": (0.05, 0.10, 0.15), "noise_std": 0.1}
cases = lp.simulate("advection", num=1, seed=1, source=False, **stations)
case = cases.to_dataset().isel(case=0)
table = case[["observed", "sensor_y", "sensor_x"]].to_dataframe().reset_index()
table = table.rename(columns={"sensor_y": "y", "sensor_x": "x", "time": "t", "observed": "value"})
table = table[["x", "y", "t", "value"]]
table.to_csv("stations.csv", index=False)
print(table.sample(5, random_state=0).round(2))

# %%
# Each reading has its own place and time. The simulator's square closes on itself, so its edges are
# periodic; those of your data are open unless you say so. The grid is the rectangle to reconstruct.
table = pd.read_csv("stations.csv")
columns = {name: table[name] for name in ("value", "y", "x", "t")}
observation = lp.Observation.from_table(**columns, start=0.0, grid=lp.Grid((24, 24)), domain=lp.Domain.periodic())

# %%
# Nobody says what the noise is, or what the field looked like at the beginning: both are inferred,
# with the correlation length of the start. What is known here is that there is no source.
bounds = {"vx": (-3, 3), "vy": (-3, 3), "kappa": (0.001, 0.08)}
posterior = lp.reconstruct(observation, "advection_diffusion", bounds=bounds, num_modes=0, num_draws=100)
for name in posterior.levels.level.values:
    draws = posterior.levels.sel(level=name)
    print(f"{name:<22}{float(draws.mean()):.2f} ± {float(draws.std()):.2f}")
truth = cases["truth/field"].isel(case=0, time=-1)
plot_reconstruction(posterior, truth=truth).savefig("stations-field.png")

last = truth.values
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
