"""Long tables of readings, checked and made ready for an `latentpde.observation.Observation`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from latentpde.errors import DataError
from latentpde.grid import Grid

_CELLS = 32  # along the shorter side of a rectangle that follows from the readings


def check_table(value, y, x, t, sigma, group, start: float | None, grid: Grid | None, reads=None) -> dict[str, Any]:
    """Fields of an observation; arguments as those of `latentpde.observation.Observation.from_table`.

    >>> places = {"y": [0.0, 1.0, 4.0], "x": [0.0, 5.0, 8.0], "t": [2.0, 3.0, 5.0]}
    >>> table = check_table([1.0, np.nan, 2.0], **places, sigma=0.1, group=None, start=None, grid=None)
    >>> table["values"], table["reading_times"]
    (tensor([[[1., 2.]]], dtype=torch.float64), tensor([[[0., 3.]]], dtype=torch.float64))
    """
    values, batched = _values(value)
    num = values.shape[1]
    y, x = _column(y, "y", num), _column(x, "x", num)
    t = np.zeros(num) if t is None else _column(t, "t", num)
    sigma = np.full(num, np.nan) if sigma is None else _column(sigma, "sigma", num)
    mask = ~np.isnan(values)
    there = mask.any(0)
    if not mask.any(1).all():
        raise DataError("the table has no reading: every value is missing")
    of_source = np.zeros(num, dtype=bool) if reads is None else _of_source(reads, num)
    of_field = there & ~of_source
    # the source is steady, so the time of its readings does not matter
    t = np.where(of_source, t[of_field].min() if of_field.any() else 0.0, t)
    for name, column in (("value", values), ("y", y), ("x", x), ("t", t)):
        bad = np.flatnonzero(there & (np.isinf(column).any(0) if column.ndim == 2 else ~np.isfinite(column)))
        if len(bad):
            raise DataError(
                f"column {name} has {len(bad)} entries that are not finite numbers, the first in row {bad[0]}"
            )
    if bool((sigma[there] <= 0).any() or np.isinf(sigma[there]).any()):
        raise DataError(
            "sigma, the standard deviation of a reading's noise, must be positive, or NaN where it is not known"
        )
    groups = np.zeros(num, dtype=np.int64) if group is None else _group_numbers(group, num)
    first = t[there].min() if start is None else float(start)
    if not np.isfinite(first) or first > t[there].min():
        raise DataError(f"the start must not be later than the first reading, at {t[there].min():g}; got {start}")
    positions = np.stack([y, x], axis=-1)[there]
    grid = _grid_around(positions) if grid is None else grid
    low, high = np.array(grid.origin), np.array(grid.origin) + np.array(grid.extent)
    outside = ((positions < low) | (positions > high)).any(-1)
    if outside.any():
        raise DataError(
            f"{int(outside.sum())} reading(s) lie outside the rectangle {low.tolist()} to {high.tolist()} (y, x); are "
            "units or axes swapped?"
        )
    alike = (len(values), 1, int(there.sum()))  # in all cases
    return {
        "values": torch.from_numpy(np.where(mask, values, 0.0)[:, there])[:, None],
        "mask": torch.from_numpy(mask[:, there])[:, None],
        "noise_std": _tensor(sigma[there]).expand(alike),
        "times": torch.tensor([t[there].max() - first], dtype=torch.float64),
        "initial": None,
        "grid": grid,
        "observed": "point",
        "positions": torch.from_numpy(positions).expand(len(values), -1, -1),
        "batched": batched,
        "reading_times": _tensor(t[there] - first).expand(alike),
        "groups": torch.from_numpy(groups[there]).expand(alike),
        "of_source": torch.from_numpy(of_source[there]).expand(alike) if of_source.any() else None,
        "start": float(first),
    }


def is_around_readings(grid: Grid, positions: Tensor) -> bool:
    """Whether a rectangle is the one that follows from the readings, because nobody gave another.

    >>> places = torch.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=torch.float64)
    >>> is_around_readings(_grid_around(places.numpy()), places), is_around_readings(Grid((4, 4)), places)
    (True, False)
    """
    return len(positions) > 1 and grid == _grid_around(positions.numpy())


def typical_distance(positions: np.ndarray, extent: tuple[float, float]) -> float:
    """Between neighbours, if distinct places were spread evenly over the rectangle.

    >>> typical_distance(np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), (2.0, 2.0))
    1.0
    """
    num = len(np.unique(positions, axis=0))
    return float(np.sqrt(extent[0] * extent[1] / num))


def _grid_around(positions: np.ndarray) -> Grid:
    """The rectangle of the readings, with a margin of half their typical distance."""
    low, high = positions.min(0), positions.max(0)
    size = np.maximum(high - low, 1e-3 * (high - low).max())
    if not size.max() > 0:
        raise DataError("all readings were taken at one place: give the rectangle to reconstruct (grid=)")
    margin = typical_distance(positions, (float(size[0]), float(size[1]))) / 2
    height, width = (size + 2 * margin).tolist()
    origin = low - margin - (size - (high - low)) / 2
    return Grid((1, 1), (height, width), (float(origin[0]), float(origin[1]))).at_resolution(
        (max(1, round(_CELLS * height / min(height, width))), max(1, round(_CELLS * width / min(height, width))))
    )


def _values(value) -> tuple[np.ndarray, bool]:
    """Readings with axes ``(case, reading)``, and whether they came so."""
    if np.ndim(value) != 2:
        return _column(value, "value", None)[None], False
    rows = [_column(row, "value", None) for row in value]
    if not rows:
        raise DataError("the table has no case: values with axes (case, reading) need at least one")
    return np.stack(rows), True


def _of_source(reads, num: int) -> np.ndarray:
    column = np.full(num, reads) if isinstance(reads, str) else np.asarray(reads).astype(str)
    if column.shape != (num,) or not np.isin(column, ("field", "source")).all():
        raise DataError(
            f"reads says 'field' or 'source' for each of {num} readings, or once for all; got {reads!r:.80}"
        )
    return column == "source"


def _group_numbers(group, num: int) -> np.ndarray:
    group = np.asarray(group)
    if group.shape != (num,):
        raise DataError(f"column group has shape {group.shape}, expected one entry for each of {num} readings")
    return np.unique(group.astype(str), return_inverse=True)[1]


def _column(values, name: str, num: int | None) -> np.ndarray:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"column {name} must be numbers: {error}") from error
    if num is not None and column.ndim == 0:
        return np.full(num, float(column))
    if column.ndim != 1 or not len(column) or (num is not None and len(column) != num):
        expected = "a list of numbers" if num is None else f"{num} numbers, one for each reading"
        raise DataError(f"column {name} must be {expected}, got shape {column.shape}")
    return column.copy()


def _tensor(column: np.ndarray) -> Tensor:
    return torch.from_numpy(column)[None, None]
