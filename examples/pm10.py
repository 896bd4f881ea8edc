"""
Real stations: fine dust over Germany
=====================================

Daily means of PM10 at 69 rural stations, five days of 2005, from the R package gstat. Whole stations
are held out to see whether the result can be believed; then all of them make the map.

The data are not part of this project. On Debian they come with ``apt-get install r-cran-gstat``;
without them this example says so and ends.
"""

import latentpde as lp
from latentpde.bench.points.measured import missing_data, pm10, pm10_window

missing = missing_data(pm10)
print(f"Skipped: {missing}" if missing else f"{len(pm10())} readings of 2005")

# %%
# Readings with their places (km) and days. A guess at such fields is given here: how much and over what
# length they vary, and how noisy a reading is. Left out, it would be inferred, in a few minutes instead of seconds.
if not missing:
    window = pm10_window(1)
    y, x = window.points.T
    observation = lp.Observation.from_table(window.values, y=y, x=x, t=window.times, sigma=3.0)
    known = {"initial": lp.Matern(7.0, 250.0), "num_modes": 0, "sweep": 64}
    known["bounds"] = {"vx": (-300, 300), "vy": (-300, 300), "kappa": (10.0, 30_000.0)}
    held_out = lp.holdout(observation, "advection_diffusion", groups="stations", **known)
    print(held_out.to_text())

# %%
# The map of the last day, its standard deviation, and the stations.
if not missing:
    posterior = lp.reconstruct(observation, "advection_diffusion", **known)
    posterior.plot().savefig("pm10-map.png", dpi=100)
    posterior.report("pm10.html", holdout=held_out, threshold=50.0)
