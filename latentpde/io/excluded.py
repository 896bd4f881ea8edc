"""Areas that are left out, such as land: taken from a mask on any grid."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from latentpde.errors import DataError, LatentPDEWarning, UsageError
from latentpde.frame import Excluded, Frame
from latentpde.io.axes import choose_variable, find_axes

if TYPE_CHECKING:
    import xarray as xr

_MASKS = re.compile(r"land|lsm|mask")  # in names of variables


def excluded_areas(mask: xr.DataArray, frame: Frame, *, inverted: bool = False) -> Excluded:
    """The cells of a mask on the plane of a frame.

    >>> import xarray as xr
    >>> land = xr.DataArray([[1, 0]], {"y": [2.0], "x": [0.0, 1.0]}, ("y", "x"), name="land")
    >>> excluded_areas(land, Frame()).mask
    array([[ True, False]])

    Args:
        mask: true or 1 where an area is excluded, false, 0 or NaN where not, with coordinates as the user has them.
        frame: of the data.
        inverted: whether the mask says what is kept.
    """
    dataset = mask.to_dataset(name="mask")
    axes = find_axes(dataset, "mask", {})
    array = dataset["mask"].squeeze(
        [d for d in mask.dims if d not in (axes["x"], axes["y"]) and mask.sizes[d] == 1], drop=True
    )
    if {*array.dims} != {axes["y"], axes["x"]}:
        further = ", ".join(str(d) for d in array.dims if d not in axes.values())
        raise DataError(f"the mask of excluded areas has a further axis {further}; take one entry of it")
    values = array.transpose(axes["y"], axes["x"]).values
    numbers = values.astype(float) if values.dtype.kind in "biuf" else np.full(values.shape, np.inf)
    usual = np.isnan(numbers) | (numbers == 0) | (numbers == 1)
    if not usual.all():
        raise DataError(
            f"a mask of excluded areas holds 1 (excluded) and 0; found {numbers[~usual][0]:g} in {mask.name!r}. Make "
            "one of it first, such as dataset['mask'] == 2"
        )
    out = (numbers == 0) if inverted else (numbers == 1)
    y, x = frame.to_plane(dataset[axes["y"]].values, dataset[axes["x"]].values)
    rows, cols = np.argsort(y), np.argsort(x)
    return Excluded(y[rows], x[cols], out[np.ix_(rows, cols)])


def find_mask(
    excluded: str | Path | xr.DataArray, dataset: xr.Dataset | None, open_dataset
) -> tuple[xr.DataArray, bool]:
    """A mask by the name of a variable of the data or of a file, and whether it says what is kept (``~name``).

    Args:
        excluded: the name of a variable, ``~`` in front of one that says what is kept; or the path of a file, with
            ``:name`` behind it where it has several variables; or the mask itself.
        dataset: the data, where they are a dataset.
        open_dataset: reads a file.
    """
    if not isinstance(excluded, str | Path):
        return excluded, False
    text = str(excluded)
    inverted, text = text.startswith("~"), text.removeprefix("~")
    if dataset is not None and text in dataset.variables:
        return dataset[text], inverted
    path, _, name = text.rpartition(":") if ":" in text and not Path(text).exists() else (text, "", "")
    if not Path(path).exists():
        known = "" if dataset is None else f"; the data have {', '.join(map(str, dataset.data_vars))}"
        raise UsageError(f"excluded areas are a variable of the data or a file of a mask; there is no {text!r}{known}")
    mask = open_dataset(path)
    only = str(next(iter(mask.data_vars))) if len(mask.data_vars) == 1 else None
    return mask[choose_variable(mask, name or only)], inverted


def notice_masks(dataset: xr.Dataset, name: str) -> None:
    """Warn of a mask in a dataset that nobody asked to leave out: whether it means that is for the user to say.

    Args:
        dataset: as it was found; nothing of it is read.
        name: of the variable that was read.
    """
    for other, array in dataset.data_vars.items():
        is_part = array.ndim >= 2 and {*array.dims} <= {*dataset[name].dims}
        if other == name or not is_part or array.dtype.kind not in "biu" or not _MASKS.search(str(other).lower()):
            continue
        meanings = str(array.attrs.get("flag_meanings", ""))
        says = f" ({meanings})" if meanings else ""
        warnings.warn(
            f"the data also hold {str(other)!r}{says}, which looks like a mask: to leave the cells out where it is 1, "
            f"pass --excluded {other}; where it is 0, --excluded ~{other}",
            LatentPDEWarning,
            stacklevel=3,
        )
