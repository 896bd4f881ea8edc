"""
Real stations: fine dust over Germany
=====================================

Daily means of PM10 at 67 rural stations on three days of May 2005, from the R package gstat. Whole stations are held
out to see whether the result can be believed; then all of them make the map. Nothing is set by hand: noise, start,
source and wind are inferred.

The data are not part of this project. On Debian they come with ``apt-get install r-cran-gstat``;
without them this example says so and ends.
"""

import pandas as pd

import latentpde as lp
from latentpde.bench.points.measured import missing_data, pm10, pm10_window

missing = missing_data(pm10)
print(f"Skipped: {missing}" if missing else f"{len(pm10())} readings of 2005")

# %%
# A line for each reading, as a CSV file would have it. The heading says the unit.
if not missing:
    window = pm10_window(1)
    window = window[window.times < window.times.min() + 3]  # days
    table = pd.DataFrame(
        {
            "station": window.stations,
            "x (km)": window.points[:, 1],
            "y (km)": window.points[:, 0],
            "date": pd.Timestamp("2005-01-01") + pd.to_timedelta(window.times, unit="D"),
            "PM10 (µg/m³)": window.values,
        }
    )
    print(lp.check(table))

# %%
# Can it be believed? A tenth of the stations is held out and predicted from the others, by the equation and by what
# takes none.
if not missing:
    observation = lp.read(table)
    held_out = lp.holdout(observation, "advection_diffusion", groups="stations")
    print(held_out.to_text())

# %%
# The equation gains nothing over kriging here: one mean a day is too few to follow the air from station to station, and
# all stations together leave very different winds possible. The result comes with a warning: the same stations miss
# their predictions on several days, as they would where the source of the dust changes from day to day, which that of
# the model does not.
if not missing:
    posterior = lp.reconstruct(observation, "advection_diffusion")
    print(posterior)

# %%
# So take the map of the last day for what kriging would have given, too, with its standard deviation and the stations.
if not missing:
    posterior.plot().savefig("pm10-map.png", dpi=100)
    posterior.report("pm10.html", holdout=held_out, threshold=50.0)
