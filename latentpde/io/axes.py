"""Which axis of a dataset is which: by CF attributes first, by usual names otherwise, or as told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from latentpde.errors import DataError, UsageError
from latentpde.io.columns import LATITUDES, LONGITUDES, plain

if TYPE_CHECKING:
    import xarray as xr

_STANDARD = {
    "longitude": "x",
    "grid_longitude": "x",
    "projection_x_coordinate": "x",
    "latitude": "y",
    "grid_latitude": "y",
    "projection_y_coordinate": "y",
    "time": "t",
}
_NAMES = {
    "x": ("x", "xobs", "xc", "i", "ni", "easting", "rlon", "col", *LONGITUDES),
    "y": ("y", "yobs", "yc", "j", "nj", "northing", "rlat", "row", *LATITUDES),
    "t": ("t", "time", "date", "datetime", "validtime", "times"),
}
_DEGREES_EAST = ("degrees_east", "degree_east", "degreese", "degree_e", "degrees_e")
_DEGREES_NORTH = ("degrees_north", "degree_north", "degreesn", "degree_n", "degrees_n")
_ASIDE = ("bounds", "climatology", "grid_mapping", "ancillary_variables", "cell_measures")


def choose_variable(dataset: xr.Dataset, wanted: str | None, aside: tuple[str, ...] = ()) -> str:
    """The variable that was read; raises `DataError` with a question where several can be meant.

    >>> import xarray as xr
    >>> data = xr.Dataset({"sst": (("lat", "lon"), np.zeros((2, 3))), "sea_ice": (("lat", "lon"), np.zeros((2, 3)))})
    >>> choose_variable(data, None)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    latentpde.errors.DataError: each of the variables sst (lat, lon), sea_ice (lat, lon) can be what was read; say ...

    Args:
        dataset: as it was found.
        wanted: the name of one, where it was told.
        aside: names of variables that have another role.
    """
    if wanted is not None:
        if wanted not in dataset.variables:
            raise UsageError(f"there is no variable {wanted!r}; it holds: {_listed(dataset)}")
        return wanted
    named = {*aside}
    for variable in dataset.variables.values():
        for attribute in _ASIDE:
            for text in (variable.attrs.get(attribute), variable.encoding.get(attribute)):
                named.update(str(text).split() if text else ())
    found = [
        str(name)
        for name, array in dataset.data_vars.items()
        if array.dtype.kind in "iuf" and array.ndim >= 1 and name not in named and array.size > 1 and not is_flag(array)
    ]
    most = max((len(_spatial(dataset, name)) for name in found), default=0)
    found = [name for name in found if len(_spatial(dataset, name)) == most]
    if len(found) == 1:
        return found[0]
    if not found:
        raise DataError(f"no variable holds readings on axes of space; it holds: {_listed(dataset)}")
    words = [f"{name} ({', '.join(map(str, dataset[name].dims))})" for name in found]
    shown = ", ".join(words[:6]) + (f" and {len(words) - 6} more" if len(words) > 6 else "")
    raise DataError(f"each of the variables {shown} can be what was read; say which, with --variable {found[0]}")


def is_flag(array: xr.DataArray) -> bool:
    """Whether a variable holds codes, such as a mask or flags of quality, by its CF attributes: no readings."""
    return bool({"flag_values", "flag_masks", "flag_meanings"} & {*array.attrs})


def find_axes(dataset: xr.Dataset, name: str, given: Mapping[str, str]) -> dict[str, str]:
    """Names of the coordinates of a variable by their roles ``x``, ``y`` and ``t``, those that it has.

    Args:
        dataset: that has the variable.
        name: of the variable.
        given: names by their roles, which win.
    """
    array = dataset[name]
    for role, other in given.items():
        if role in "xyt" and other not in dataset.variables and other not in dataset.dims:
            raise UsageError(
                f"there is no coordinate {other!r} for {role}; {name!r} has {', '.join(map(str, array.dims))}"
            )
    found = {role: other for role, other in given.items() if role in "xyt"}
    near = [str(c) for c in (*array.dims, *array.coords, *_named_coordinates(array))]
    near += [str(v) for v in dataset.variables if v not in near and {*dataset[v].dims} <= {*array.dims}]
    for role in "xyt":
        if role in found:
            continue
        matches = [other for other in dict.fromkeys(near) if other != name and _role(dataset, other) == role]
        dimensions = [other for other in matches if other in array.dims]
        matches = dimensions or matches
        if len(matches) > 1:
            raise DataError(
                f"{', '.join(map(repr, matches))} can each be {role} of {name!r}; say which, with --columns "
                f"{role}={matches[0]}"
            )
        if matches:
            found[role] = matches[0]
    for role in "xy":
        if role not in found:
            raise DataError(
                f"which axis of {name!r} is {role}? It has {', '.join(map(str, array.dims)) or 'none'}; say it with "
                f"--columns {role}=NAME"
            )
    if len(set(found.values())) < len(found):
        raise DataError(f"one axis of {name!r} has two roles: {found}; say which is which, with --columns x=...,y=...")
    return found


def is_degrees(dataset: xr.Dataset, axes: Mapping[str, str]) -> bool:
    """Whether the axes in space are longitude and latitude."""
    kinds = []
    for role, names, units in (("x", LONGITUDES, _DEGREES_EAST), ("y", LATITUDES, _DEGREES_NORTH)):
        name = axes[role]
        attributes = dataset[name].attrs if name in dataset.variables else {}
        unit = str(attributes.get("units", "")).lower()
        is_length = unit in ("m", "km", "metre", "meter", "metres", "meters")
        standard = attributes.get("standard_name") in ("longitude", "latitude")
        kinds.append(not is_length and (unit in units or standard or plain(name) in names))
    if kinds[0] != kinds[1]:
        raise DataError(
            f"{axes['x']!r} and {axes['y']!r} must both be degrees or both be lengths; correct their units, or name "
            "others with --columns x=...,y=..."
        )
    return kinds[0]


def regular(centres: np.ndarray) -> bool:
    """Whether the centres of cells are evenly spaced, as far as 32 bits can tell."""
    if len(centres) < 2 or not np.isfinite(centres).all():
        return False
    step = (centres[-1] - centres[0]) / (len(centres) - 1)
    even = centres[0] + step * np.arange(len(centres))
    slack = 0.01 * abs(step) + 4e-7 * np.abs(centres).max()
    if step == 0 or abs(step) <= 2e-6 * np.abs(centres).max():
        return False
    return bool((np.abs(centres - even) <= slack).all())


def _role(dataset: xr.Dataset, name: str) -> str | None:
    attributes = dataset[name].attrs if name in dataset.variables else {}
    if name in dataset.variables and dataset[name].dtype.kind == "M":
        return "t"
    standard = _STANDARD.get(str(attributes.get("standard_name", "")))
    axis = {"X": "x", "Y": "y", "T": "t"}.get(str(attributes.get("axis", "")).upper())
    unit = str(attributes.get("units", "")).lower()
    by_unit = "x" if unit in _DEGREES_EAST else "y" if unit in _DEGREES_NORTH else None
    by_name = next((role for role, names in _NAMES.items() if plain(name) in names), None)
    return axis or standard or by_unit or by_name


def _spatial(dataset: xr.Dataset, name: str) -> list[str]:
    array = dataset[name]
    near = [*array.dims, *(c for c in array.coords if c not in array.dims)]
    return list(dict.fromkeys(r for c in near if (r := _role(dataset, str(c))) in ("x", "y")))


def _named_coordinates(array: xr.DataArray) -> list[str]:
    text = array.attrs.get("coordinates") or array.encoding.get("coordinates") or ""
    return [name for name in str(text).split() if name in array.coords]


def _listed(dataset: xr.Dataset) -> str:
    names = ", ".join(map(str, dataset.data_vars)) or "no variables"
    return names if len(names) < 200 else f"{names[:197]}..."
