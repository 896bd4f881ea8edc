"""Results in the user's coordinates, dates, units and order of axes, as the CF conventions have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latentpde.frame import EARTH_RADIUS, Clock, Frame
from latentpde.pde import Family, get_family
from latentpde.quantities import TIMES, short_unit

if TYPE_CHECKING:
    import xarray as xr

CRS = "crs"
#: Variables of the field itself, in the user's unit, and of the source, in that per unit of time.
_FIELDS, _SOURCES = ("mean", "std", "quantiles", "draws"), ("source_mean", "source_std")
_TEMPERATURES = ("K", "kelvin", "degree_Celsius", "celsius", "degree_C", "degrees_C")
_CF_UNITS = {"d": "days", "h": "hours", "min": "minutes", "s": "seconds", "ms": "milliseconds", "us": "microseconds"}


def in_users_frame(dataset: xr.Dataset, frame: Frame, family: str | None = None) -> xr.Dataset:
    """A dataset with axes ``time``, ``y`` and ``x`` on the plane, as the user has them.

    >>> import xarray as xr
    >>> frame = Frame.geographic(latitudes=(50.0, 52.0), longitudes=(8.0, 10.0), descending=(True, False))
    >>> plane = xr.Dataset({"mean": (("y", "x"), np.zeros((2, 2)))}, {"y": [-111.2, 111.2], "x": [0.0, 1.0]})
    >>> in_users_frame(plane, frame)["lat"].values.round(2)
    array([52., 50.])

    Args:
        dataset: what a reconstruction's file holds, times as numbers on the user's clock.
        frame: the user's.
        family: name of the PDE, for the units of its coefficients.
    """
    dataset = _masked(dataset, frame)
    y, x = frame.to_user(dataset["y"].values, dataset["x"].values)
    dataset = dataset.assign_coords(y=("y", y, _axis_attributes(frame, "y")), x=("x", x, _axis_attributes(frame, "x")))
    turned = {axis: slice(None, None, -1) for axis in "yx" if getattr(frame, axis).descending}
    dataset = _with_times(dataset.isel(turned), frame)
    order = [axis for axis in frame.order if axis in dataset.dims]
    dataset = dataset.transpose(..., *order)
    dataset = _with_units(dataset, frame, family)
    if frame.projection is not None:
        dataset = _with_crs(dataset, frame)
    taken = {str(name) for name in dataset.variables} - {"time", "y", "x"}
    names = {"y": frame.y.name, "x": frame.x.name, "time": (frame.clock or Clock()).name}
    for name in dataset.coords:
        dataset[name].encoding.setdefault("_FillValue", None)  # CF allows none in coordinates
    return dataset.rename({old: new for old, new in names.items() if new not in taken and old in dataset.variables})


def _masked(dataset: xr.Dataset, frame: Frame) -> xr.Dataset:
    """Nothing where nothing is reported, and a variable that says where that is."""
    import xarray as xr

    if frame.excluded is None:
        return dataset
    out = frame.excluded_at(dataset["y"].values[:, None], dataset["x"].values)
    kept = xr.DataArray(~out, dims=("y", "x"))
    fields = [name for name in (*_FIELDS, *_SOURCES, "probability_above") if name in dataset]
    dataset = dataset.assign({name: dataset[name].where(kept) for name in fields})
    dataset["excluded"] = (("y", "x"), out.astype(np.int8))
    dataset["excluded"].attrs = {
        "long_name": "excluded area",
        "flag_values": np.array([0, 1], dtype=np.int8),
        "flag_meanings": "reported excluded",
    }
    return dataset


def _axis_attributes(frame: Frame, axis: str) -> dict[str, str]:
    own = getattr(frame, axis)
    found = {"axis": axis.upper(), "units": own.unit or "1"}
    if frame.projection is not None:
        word = {"y": "latitude", "x": "longitude"}[axis]
        return found | {"standard_name": word, "long_name": f"{word} at the cell's centre"}
    if not own.unit:
        del found["units"]
    return found | {"long_name": f"{axis} at the cell's centre"}


def _with_times(dataset: xr.Dataset, frame: Frame) -> xr.Dataset:
    if "time" not in dataset.coords:
        return dataset
    times = frame.times_to_user(dataset["time"].values)
    if frame.clock is None or frame.clock.epoch is None:
        unit = {"units": frame.time_unit} if frame.time_unit else {}
        return dataset.assign_coords(time=(dataset["time"].dims, times, {"long_name": "time", **unit}))
    dataset = dataset.assign_coords(time=(dataset["time"].dims, times))
    dataset["time"].attrs = {
        "long_name": "time",
        "standard_name": "time",
        "axis": "T",
        "units_metadata": "leap_seconds: unknown",
    }
    unit = _CF_UNITS.get(frame.clock.unit, "hours")
    epoch = frame.clock.epoch.astype("datetime64[s]")
    dataset["time"].encoding = {"units": f"{unit} since {str(epoch).replace('T', ' ')}", "calendar": "standard"}
    dataset["time"].encoding["dtype"] = "float64"
    return dataset


def _with_units(dataset: xr.Dataset, frame: Frame, family: str | None) -> xr.Dataset:
    words = frame.value_attributes.get("long_name", frame.value)
    unit = frame.value_unit or frame.value_attributes.get("units", "")
    for name in _FIELDS:
        if name in dataset:
            attributes = dataset[name].attrs
            attributes["long_name"] = f"{attributes.get('long_name', name)} of {words}"
            if unit:
                attributes["units"] = _spelt(unit)
            if (standard := frame.value_attributes.get("standard_name")) and unit:
                attributes["standard_name"] = standard if name != "std" else f"{standard} standard_error"
            if _spelt(unit) in _TEMPERATURES:  # CF-1.11 wants to know of each whether 0 is 0
                attributes["units_metadata"] = f"temperature: {'difference' if name == 'std' else 'on_scale'}"
    per_time = {0: "", 1: f" {frame.time_unit}-1", 2: f" {frame.time_unit}-2"}
    chosen = get_family(family) if family else None
    if chosen is not None and unit and (frame.time_unit or not chosen.order):
        for name in _SOURCES:
            if name in dataset:
                dataset[name].attrs["units"] = _spelt(f"{unit}{per_time[chosen.order]}")
    if chosen is not None and "coefficient" in dataset.dims:
        units = coefficient_units(chosen, frame)
        dataset = dataset.assign_coords(coefficient_unit=("coefficient", [units[n] for n in chosen.coefficient_names]))
        dataset["coefficient_unit"].attrs = {"long_name": "unit of the coefficient"}
    return dataset


def coefficient_units(family: Family, frame: Frame) -> dict[str, str]:
    """Units of a family's coefficients in the user's lengths and times; empty where these are not known.

    >>> frame = Frame.geographic(latitudes=(0.0, 1.0), longitudes=(0.0, 1.0), clock=Clock("time", "h"))
    >>> coefficient_units(get_family("advection_diffusion"), frame)
    {'vx': 'km/h', 'vy': 'km/h', 'kappa': 'km²/h'}
    """
    known = {"L": frame.length_unit, "T": frame.time_unit}
    found = {}
    for coefficient in family.coefficients:
        letters = {letter for letter in "LT" if letter in coefficient.unit}
        lacking = any(not known[letter] for letter in letters)
        unit = coefficient.unit
        # one after the other would replace letters of units
        found[coefficient.name] = "" if lacking else "".join(known.get(letter, letter) for letter in unit)
    return found


def _with_crs(dataset: xr.Dataset, frame: Frame) -> xr.Dataset:
    import xarray as xr

    assert frame.projection is not None
    projection = frame.projection
    attributes = {
        "grid_mapping_name": "latitude_longitude",
        "earth_radius": 1000.0 * EARTH_RADIUS,
        "longitude_of_prime_meridian": 0.0,
        "comment": (
            f"the equation was solved on a plane in km that touches the sphere along {projection.latitude:g} degrees "
            f"of latitude, around {projection.longitude:g} degrees of longitude"
        ),
    }
    dataset[CRS] = xr.DataArray(np.int32(0), attrs=attributes)
    for name in (*_FIELDS, *_SOURCES, "probability_above", "excluded"):
        if name in dataset:
            dataset[name].attrs["grid_mapping"] = CRS
    return dataset


def _spelt(unit: str) -> str:
    """A unit as UDUNITS reads it, where it is one that people write otherwise."""
    usual = {"degK": "K", "°C": "degree_Celsius", "degC": "degree_Celsius", "C": "degree_Celsius", "%": "percent"}
    words = [usual.get(word, word) for word in unit.replace("µ", "u").replace("²", "2").replace("³", "3").split()]
    return " ".join(short if (short := short_unit(word, TIMES)) and word in TIMES else word for word in words)
