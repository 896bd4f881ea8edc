"""What arrays of readings from outside must be."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from latentpde.errors import DataError
from latentpde.grid import Grid, average_pool
from latentpde.validation import LARGEST, LATEST, SMALLEST, shortened

Observed = Literal["lowres-solve", "pooled", "point"]
_AVERAGES_TOLERANCE = 0.5  # of a fine initial state against the coarse one, in standard deviations of the latter


def checked_kind(observed: str | None, positions) -> Observed:
    kind = observed or ("lowres-solve" if positions is None else "point")
    if kind not in get_args(Observed):
        raise DataError(f"readings can be one of {', '.join(get_args(Observed))}; got {kind!r}")
    if (kind == "point") != (positions is not None):
        raise DataError("point readings need sensor positions, and cell readings have none")
    return kind  # pyright: ignore[reportReturnType]


def checked_times(times) -> Float[Tensor, " time"]:
    times = torch.atleast_1d(_float64(times, "times"))
    if times.ndim != 1 or not len(times) or not bool(((times >= 0) & (times <= LATEST)).all()):
        raise DataError(f"times must be finite and not negative, at most {LATEST:g}, got {shortened(times.tolist())}")
    return times


def checked_readings(values, num_times: int, kind: Observed) -> tuple[Float[Tensor, "case time *reading"], bool]:
    """Readings with all their axes, and whether they came with one for cases."""
    values = _float64(values, "readings")
    num_axes = 1 if kind == "point" else 2
    batched = values.ndim == num_axes + 2 or (values.ndim == num_axes + 1 and num_times == 1)
    values = values if batched else values[None]
    if values.ndim == num_axes + 1:
        values = values[:, None]
    if values.ndim != num_axes + 2 or values.shape[1] != num_times:
        raise DataError(
            f"expected readings with axes ([case,] time, {'sensor' if kind == 'point' else 'y, x'}) and "
            f"{num_times} time(s), got shape {tuple(values.shape)}; are axes swapped?"
        )
    if not values.shape[0]:
        raise DataError("there are no cases: the readings have a case axis of length 0")
    if bool(torch.isinf(values).any()):
        raise DataError("some readings are infinite; mark missing readings with NaN")
    return values, batched


def checked_mask(mask, values: Tensor) -> Bool[Tensor, "case time *reading"]:
    finite = torch.isfinite(values)
    if mask is None:
        mask = finite
    else:
        mask = _like_readings(_float64(mask, "mask") != 0, values, "mask")
        if bool((mask & ~finite).any()):
            raise DataError(f"{int((mask & ~finite).sum())} readings that the mask marks as observed are NaN")
    empty = (mask.flatten(1).sum(1) == 0).nonzero().flatten().tolist()
    if empty:
        raise DataError(f"no observation at all in case(s) {some_of(empty)}: every reading is missing or masked")
    return mask


def checked_noise(noise_std, values: Tensor, mask: Tensor) -> Float[Tensor, "case time *reading"]:
    if noise_std is None:
        return torch.where(mask, torch.nan, 1.0)
    noise_std = _float64(noise_std, "noise standard deviation")
    if noise_std.numel() > 1:
        noise_std = _like_readings(noise_std, values, "noise standard deviation")
    else:
        noise_std = noise_std.reshape(()).expand(values.shape)
    if not bool(((noise_std >= SMALLEST) & (noise_std <= LARGEST))[mask].all()):
        raise DataError(
            "the noise's standard deviation must be a positive, finite number at every reading, from "
            f"{SMALLEST:g} to {LARGEST:g}"
        )
    return torch.where(mask, noise_std, 1.0)


def checked_states(states, num_cases: int, what: str, gaps: bool = False) -> Float[Tensor, "case y x"]:
    states = _float64(states, what)
    states = states if states.ndim == 3 else states[None]
    if states.ndim != 3 or states.shape[0] != num_cases:
        raise DataError(f"expected {num_cases} {what}(s) with axes (case, y, x), got shape {tuple(states.shape)}")
    bad = int((states.isinf() if gaps else ~torch.isfinite(states)).sum())
    if bad:
        raise DataError(f"the {what} has {bad} NaN or infinite values; fill them before reconstructing")
    if bool(states.isnan().flatten(1).all(1).any()):
        raise DataError(f"the {what} is NaN everywhere; leave it out if it is not known")
    return states


def checked_velocity(velocity, num_cases: int, grid: Grid) -> Float[Tensor, "case y x"]:
    velocity = checked_states(velocity, num_cases, "initial velocity")
    if tuple(velocity.shape[-2:]) != tuple(grid.shape):
        raise DataError(
            f"the initial velocity has shape {tuple(velocity.shape[-2:])}, the coarse grid {grid.shape}: they must "
            "agree (y, x)"
        )
    return velocity


def checked_grid(grid: Grid | None, values: Tensor, initial: Tensor | None, kind: Observed) -> Grid:
    """The grid given, or the unit square with the initial state's or the readings' cells."""
    shapes = {} if initial is None else {"initial state": (initial.shape[-2], initial.shape[-1])}
    if kind != "point":
        shapes["cells"] = (values.shape[-2], values.shape[-1])
    if grid is None:
        if not shapes:
            raise DataError("points without an initial state need a grid")
        grid = Grid(next(iter(shapes.values())))
    for what, shape in reversed(shapes.items()):
        if shape != tuple(grid.shape):
            raise DataError(f"the {what} have shape {shape}, the coarse grid {grid.shape}: they must agree (y, x)")
    return grid


def checked_averages(fine: Tensor, coarse: Tensor | None, grid: Grid) -> Float[Tensor, "case y x"]:
    """The coarse states that go with the fine ones; given ones must be loosely the fine ones' averages."""
    factor = fine.shape[-1] // grid.shape[1]
    if factor < 2 or tuple(fine.shape[-2:]) != grid.refine(factor).shape:
        raise DataError(
            f"the fine initial state has shape {tuple(fine.shape[-2:])}; expected a whole number of times, at least 2, "
            f"the coarse grid's {grid.shape}, the same along y and x"
        )
    averages = average_pool(fine, factor)
    if coarse is None:
        return averages
    size = coarse.abs().amax((-2, -1))
    allowed = _AVERAGES_TOLERANCE * coarse.std((-2, -1), correction=0) + 1e-3 * size
    apart = (averages - coarse).square().mean((-2, -1)).sqrt()
    wrong = (apart > allowed).nonzero().flatten().tolist()
    if wrong:
        raise DataError(
            f"the fine initial state and the coarse one differ in case(s) {some_of(wrong)}: its averages over coarse "
            f"cells are {float(apart[wrong[0]]):.3g} off; are cases, axes or units mixed up?"
        )
    return coarse


def checked_positions(positions, values: Tensor, grid: Grid) -> Float[Tensor, "case sensor 2"]:
    positions = _float64(positions, "sensor positions")
    num_cases, num_sensors = values.shape[0], values.shape[-1]
    positions = positions.expand(num_cases, *positions.shape[-2:]) if positions.ndim == 2 else positions
    if tuple(positions.shape) != (num_cases, num_sensors, 2):
        raise DataError(f"expected positions of shape ({num_cases}, {num_sensors}, 2), got {tuple(positions.shape)}")
    low = torch.tensor(grid.origin, dtype=torch.float64)
    high = low + torch.tensor(grid.extent, dtype=torch.float64)
    outside = ~((positions >= low) & (positions <= high)).all(-1)
    if bool(outside.any()):
        raise DataError(
            f"{int(outside.sum())} sensor(s) lie outside the domain {low.tolist()} to {high.tolist()} (y, x); "
            "are units or axes swapped?"
        )
    return positions


def _like_readings(array: Tensor, values: Tensor, what: str) -> Tensor:
    """Expand an array that has the readings' shape, perhaps without its case and time axes."""
    num_cases, num_times, *core = values.shape
    if array.shape == values.shape:
        return array
    if list(array.shape) == core:
        return array.expand(values.shape)
    if list(array.shape) == [num_times, *core]:
        return array.expand(values.shape)
    if list(array.shape) == [num_cases, *core] and num_times == 1:
        return array[:, None]
    raise DataError(f"the {what} has shape {tuple(array.shape)}, the readings {tuple(values.shape)}: they must agree")


def _float64(array, what: str) -> Tensor:
    try:
        numbers = np.asarray(array)
        if numbers.dtype.kind not in "biuf":
            raise TypeError(f"they are {numbers.dtype}")
        # a copy: what is observed does not change when the caller's array does
        return torch.tensor(numbers, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"the {what} must be numbers, got {type(array).__name__}: {error}") from error


def range_of(values: Tensor) -> str:
    low, high = float(values.min()), float(values.max())
    if not low <= high:  # NaN, of noise that is not known
        return "unknown"
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def some_of(items: list, most: int = 5) -> str:
    """The first few of many, for a message."""
    return ", ".join(map(str, items[:most])) + (f" and {len(items) - most} more" if len(items) > most else "")
