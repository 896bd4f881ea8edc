"""Real measurements that install by the name of a package. Nothing is fetched: what is not installed is asked for.

- Air temperature over North America every six hours from the 24th to the 28th of February 2014, cells of 2.5 degrees of
  the NCEP reanalysis, from the Python package ``hvsampledata``.
- Daily means of PM10 (fine dust) at 69 rural background stations in Germany in 2005, ``DE_RB_2005`` of the R package
  gstat, which Debian has as ``r-cran-gstat``. R itself is not needed to read it, but ``rdata`` is. gstat's vignette on
  spatio-temporal kriging leaves out one station after another and prints root mean square errors of 6.05 for its best
  model and 6.10 for kriging day by day.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from latentpde.errors import DataError, UsageError
from latentpde.scores.points.task import Readings, Task

if TYPE_CHECKING:
    import xarray as xr

KM_PER_DEGREE = 111.2
#: Where R packages are on Debian, after what the user's own setting names.
_R_LIBRARIES = ("/usr/local/lib/R/site-library", "/usr/lib/R/site-library", "/usr/lib/R/library")
_PM10_FILE = Path("gstat", "data", "DE_RB_2005.rda")

NUM_AIR_CELLS, NUM_AIR_TIMES = 60, 6  # cells that are read, and how many snapshots in a row
_AIR_MISSING = 0.1  # share of the readings
DAYS_IN_WINDOW, NUM_FOLDS = 5, 10
_MARGIN = 20.0  # of the domain around the outermost stations, km
NUM_WINDOWS = 365 // DAYS_IN_WINDOW
_WINDOW_STEP = 28  # has no divisor in common with 73: the first few windows are spread over the year


def air_temperature(path: str | Path | None = None) -> xr.DataArray:
    """Air temperature in kelvin with the axes ``(time, lat, lon)``, latitudes upwards.

    Args:
        path: of a NetCDF file with a variable ``air``; by default the one that ``hvsampledata`` brings.
    """
    import xarray as xr

    if path is None:
        try:
            import hvsampledata
        except ImportError as error:
            raise UsageError(
                'air temperatures need hvsampledata; install it with: pip install "latentpde[peers]"'
            ) from error
        dataset = hvsampledata.air_temperature("xarray")
    else:
        dataset = xr.open_dataset(path)
    with dataset:
        return dataset["air"].sortby("lat").load()


def air_task(index: int, path: str | Path | None = None) -> Task:
    """Six snapshots of 60 cells, a tenth missing; asked for are all other cells at the last of them.

    Places are in km on a plane that is true at the middle latitude, times in hours.

    Args:
        index: of the task, from 0; the same index gives the same cells and hours.
        path: as `air_temperature` has it.
    """
    air = air_temperature(path)
    generator = np.random.default_rng([2014, index])
    start = int(generator.integers(0, air.sizes["time"] - NUM_AIR_TIMES + 1))
    air = air.isel(time=slice(start, start + NUM_AIR_TIMES))
    middle = float(air["lat"].mean())
    y = (air["lat"].values.astype(float) - middle) * KM_PER_DEGREE
    x = (air["lon"].values.astype(float) - float(air["lon"].mean())) * KM_PER_DEGREE * np.cos(np.radians(middle))
    places = np.stack(np.meshgrid(y, x, indexing="ij"), -1).reshape(-1, 2)
    hours = (air["time"].values - air["time"].values[0]) / np.timedelta64(1, "h")
    values = air.values.reshape(len(hours), -1).astype(float)
    read = np.zeros(len(places), dtype=bool)
    read[generator.choice(len(places), NUM_AIR_CELLS, replace=False)] = True
    everything = Readings(
        np.tile(places, (len(hours), 1)),
        np.repeat(hours, len(places)),
        values.ravel(),
        np.tile(np.arange(len(places)), len(hours)),
    )
    kept = read[everything.stations] & (generator.random(len(everything)) >= _AIR_MISSING)
    asked = ~read[everything.stations] & (everything.times == hours[-1])
    origin, extent = _cells_domain(y, x)
    return Task(f"air {index}", everything[kept], everything[asked], origin, extent, noisy=True)


def _cells_domain(y: np.ndarray, x: np.ndarray) -> tuple[tuple[float, float], tuple[float, float]]:
    """The lower corner and the lengths of a domain of cells, whose centres are given."""
    sides = [float(axis[1] - axis[0]) for axis in (y, x)]
    origin = (float(y[0]) - sides[0] / 2, float(x[0]) - sides[1] / 2)
    return origin, (len(y) * sides[0], len(x) * sides[1])


def find_pm10() -> Path:
    """The file of gstat's PM10 data: in ``R_LIBS``, as R itself reads it, or where Debian installs R packages."""
    folders = [Path(name) for name in os.environ.get("R_LIBS", "").split(os.pathsep) if name]
    for folder in (*folders, *map(Path, _R_LIBRARIES)):
        if (folder / _PM10_FILE).is_file():
            return folder / _PM10_FILE
    raise UsageError(
        "PM10 readings need the R package gstat; install it with: apt-get install r-cran-gstat. Elsewhere, set "
        f"R_LIBS to the folder of R packages that holds {_PM10_FILE.as_posix()}"
    )


@cache
def pm10(path: Path | None = None) -> Readings:
    """Daily means of PM10 in µg/m³; places in km (UTM zone 32), times in days from the first of January 2005.

    Args:
        path: of ``DE_RB_2005.rda``; by default where `find_pm10` finds it.
    """
    path = find_pm10() if path is None else path
    try:
        import rdata
    except ImportError as error:
        raise UsageError('PM10 readings need rdata; install it with: pip install "latentpde[peers]"') from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes of R that rdata has no counterpart for come as plain objects
            found = rdata.read_rda(path)["DE_RB_2005"]
        stations, days = np.asarray(found.index, dtype=int).T - 1
        places = np.asarray(found.sp.coords, dtype=float)[:, ::-1] / 1000
        values = found.data["PM10"].to_numpy(dtype=float)
    except (AttributeError, KeyError, ValueError, OSError) as error:
        raise DataError(f"{path} does not hold DE_RB_2005 as gstat has it: {error!r}") from error
    known = np.isfinite(values)
    return Readings(places[stations], days.astype(float), values, stations)[known]


def pm10_window(index: int, path: Path | None = None) -> Readings:
    """Five days of all stations; the first few windows are spread over the year, and all 73 make the year.

    Args:
        index: of the window, from 0 to 72.
        path: as `pm10` has it.
    """
    if not 0 <= index < NUM_WINDOWS:
        raise UsageError(f"there are {NUM_WINDOWS} windows of {DAYS_IN_WINDOW} days, from 0 on; got {index}")
    table = pm10(path)
    return table[table.times // DAYS_IN_WINDOW == index * _WINDOW_STEP % NUM_WINDOWS]


def pm10_whole(index: int, path: Path | None = None) -> Task:
    """A window in which the readings themselves are asked for, of methods that leave them out themselves.

    Args:
        index: of the window, from 0 to 72.
        path: as `pm10` has it.
    """
    window, points = pm10_window(index, path), pm10(path).points
    (low_y, low_x), (high_y, high_x) = (points.min(0) - _MARGIN).tolist(), (points.max(0) + _MARGIN).tolist()
    extent = (high_y - low_y, high_x - low_x)
    return Task(f"pm10 {index}", window, window, (low_y, low_x), extent, noisy=True)


def pm10_tasks(index: int, path: Path | None = None) -> list[Task]:
    """A window ten times over: each time a tenth of the stations is left out, and asked for on all five days.

    Args:
        index: of the window, from 0 to 72.
        path: as `pm10` has it.
    """
    whole = pm10_whole(index, path)
    window, num_stations = whole.readings, int(pm10(path).stations.max()) + 1
    fold = np.random.default_rng(2005).permutation(num_stations)[window.stations] % NUM_FOLDS
    return [replace(whole, readings=window[fold != k], asked=window[fold == k]) for k in range(NUM_FOLDS)]


def missing_data(load: Callable[[], object]) -> str | None:
    """How to install what a loader needs; None where it is there."""
    try:
        load()
    except UsageError as error:
        return str(error)
    return None
