"""Names in a dataset that are probably meant for others: a misspelt one must not be passed over in silence."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from latentpde.errors import DataError

if TYPE_CHECKING:
    import xarray as xr

_VARIABLES = ("observed", "initial", "initial_velocity", "mask", "noise_std")
_SENSOR_VARIABLES = ("sensor_y", "sensor_x")
_ATTRIBUTES = (
    "family",
    "time",
    "noise_std",
    "observed_kind",
    "pooling",
    "extent",
    "coefficient_bounds",
    "source_prior_std",
    "num_modes",
)
_LIKENESS = 0.8  # from which on a name is taken for a misspelt one: inital and Initial are, mask_kind is not mask


def check_names(dataset: xr.Dataset, axes: tuple[str, ...], given: Collection[str] = ()) -> None:
    """Raise `DataError` where a variable or attribute looks like one that is missing.

    >>> import xarray as xr
    >>> data = xr.Dataset({"observed": ("x", [1.0]), "inital": ("x", [2.0])})
    >>> check_names(data, ("x",))
    Traceback (most recent call last):
    latentpde.errors.DataError: the variable 'inital' looks like 'initial', which is missing; rename or delete it

    Args:
        dataset: the one that holds the readings.
        axes: of the grid that the readings lie on; none for sensors.
        given: names of what is known from elsewhere, so that it is not missing.
    """
    present = {*map(str, dataset.variables), *given}
    variables = [str(name) for name in dataset.data_vars]
    known = _VARIABLES if axes else (*_VARIABLES, *_SENSOR_VARIABLES)
    _check("variable", variables, known, present)
    _check("attribute", map(str, dataset.attrs), _ATTRIBUTES, present | {str(name) for name in dataset.attrs})
    if "initial" in present or not axes:
        return
    for name in variables:
        array = dataset[name]
        is_state = {*array.dims} - {"case"} == {*axes} and array.dtype.kind == "f" and bool(np.isfinite(array).all())
        if name not in known and is_state:
            raise DataError(
                f"there is no variable 'initial', and {name!r} has the shape of an initial state; rename it to "
                "'initial' if it is one, or delete it if the initial state is unknown"
            )


def _check(what: str, names: Iterable[str], known: Collection[str], present: Collection[str]) -> None:
    missing = [name for name in known if name not in present]
    for name in names:
        close = [] if name in known else get_close_matches(name.lower(), missing, 1, _LIKENESS)
        if close:
            raise DataError(f"the {what} {name!r} looks like {close[0]!r}, which is missing; rename or delete it")
