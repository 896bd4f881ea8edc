"""Parts of a dataset: ``time=2026-05-01/2026-05-03,level=850``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from latentpde.errors import UsageError
from latentpde.frame import Clock
from latentpde.validation import shortened

if TYPE_CHECKING:
    import xarray as xr


def parse_selection(text: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Entries or intervals of axes, as they are given.

    >>> parse_selection("lat=40/60, level=850")
    {'lat': ('40', '60'), 'level': '850'}
    """
    if text is None:
        return {}
    if not isinstance(text, str):
        return {str(name): (v.start, v.stop) if isinstance(v, slice) else v for name, v in text.items()}
    found = {}
    for item in text.split(","):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not name or not value:
            raise UsageError(
                f'a selection is name=entry or name=from/to, such as "time=2026-05-01/2026-05-03"; got {item!r}'
            )
        found[name] = tuple(part.strip() for part in value.split("/", 1)) if "/" in value else value
    return found


def selected(dataset: xr.Dataset, selection: Mapping[str, Any]) -> xr.Dataset:
    """A dataset cut to entries and intervals of its axes, both ends included.

    >>> import xarray as xr
    >>> data = xr.Dataset({"v": ("lat", [1.0, 2.0, 3.0])}, {"lat": [60.0, 50.0, 40.0]})
    >>> selected(data, {"lat": ("45", "70")})["v"].values
    array([1., 2.])
    """
    for name, wanted in selection.items():
        if name not in dataset.dims:
            raise UsageError(
                f"there is no axis {name!r} to select from; there are: {', '.join(map(str, dataset.dims))}"
            )
        values = dataset[name].values if name in dataset.variables else np.arange(dataset.sizes[name])
        ends = [_like(end, values, name) for end in (wanted if isinstance(wanted, tuple) else (wanted,))]
        if len(ends) == 2:
            low, high = min(ends), max(ends)
            where = np.flatnonzero((values >= low) & (values <= high))
        else:
            slack = 0 if values.dtype.kind == "M" else 1e-6 * abs(ends[0])
            near = np.abs(values - ends[0]) if values.dtype.kind in "biufM" else np.where(values == ends[0], 0, 1)
            where = np.flatnonzero(near <= (np.timedelta64(0, "ns") if values.dtype.kind == "M" else slack))
        if not len(where):
            raise UsageError(f"nothing of {name!r} is at {wanted}; it runs from {values[0]} to {values[-1]}")
        dataset = dataset.isel({name: int(where[0]) if len(ends) == 1 else where})
    return dataset


def _like(end: Any, values: np.ndarray, name: str) -> Any:
    """An end of an interval as the axis has its values."""
    if values.dtype.kind == "M":
        clock = Clock(name, "s", np.datetime64(0, "ns"))
        moment = clock.to_user(clock.to_number(str(end), f"the selection of {name}"))
        return moment.astype("datetime64[ns]")[()]
    if values.dtype.kind not in "biuf":
        return end
    try:
        return float(end)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the axis {name!r} has numbers; got {shortened(end)}") from error
