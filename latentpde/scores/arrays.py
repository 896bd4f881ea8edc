"""The arrays that scores take: NumPy's, torch's and xarray's, checked and handed on as finite float64 NumPy arrays.

Arrays and tensors must agree in shape. The axes of an ``xarray.DataArray`` are found by name and broadcast by name, and
what a score leaves of them is a DataArray again. Neither torch nor xarray is imported unless such arrays are given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeAlias

import numpy as np

from latentpde.errors import DataError, UsageError

#: A numpy array, a torch tensor or an xarray.DataArray; what `metric` decorates sees float64 numpy arrays.
Array: TypeAlias = Any

FIELD = ("y", "x")
ENSEMBLE = ("draw", "y", "x")


def metric(*, result: tuple[str, ...] = (), **core_dims: tuple[str, ...]) -> Callable[[Callable], Callable]:
    """Let a function of finite float64 arrays take tensors and DataArrays, and refuse data that do not fit.

    Args:
        result: names of the axes that the function adds at the end.
        core_dims: for each array argument, the last axes, which the function reduces; all axes before them are kept.
            The first argument has all the axes of the others.

    Example:
        >>> @metric(field=FIELD)
        ... def largest(field):
        ...     return field.max(axis=(-2, -1))
        >>> largest(np.arange(12).reshape(2, 2, 3))
        array([ 5., 11.])
    """

    def decorate(function: Callable) -> Callable:
        parameters = signature(function)

        @wraps(function)
        def score(*args, **kwargs):
            options = parameters.bind(*args, **kwargs).arguments
            arrays = [_without_torch(options.pop(name)) for name in core_dims]
            labelled = any(hasattr(array, "dims") for array in arrays)

            def compute(*arrays: np.ndarray):
                fields = {
                    name: _finite(name, array, core_dims[name]) for name, array in zip(core_dims, arrays, strict=True)
                }
                if not labelled:
                    _require_matching_shapes(fields, core_dims)
                return function(**fields, **options)

            if labelled:
                return _apply_by_name(function.__name__, compute, arrays, list(core_dims.values()), result)
            return compute(*arrays)

        return score

    return decorate


def count_draws(draws: Array) -> int:
    """How many draws an ensemble with the axes ``(..., draw, y, x)`` has, in any kind of array.

    Example:
        >>> count_draws(np.zeros((2, 12, 8, 8)))
        12
    """
    sizes = (
        draws.sizes if hasattr(draws, "dims") else dict(zip(("x", "y", "draw"), np.shape(draws)[::-1], strict=False))
    )
    if "draw" not in sizes:
        raise DataError(f"draws needs the axes (..., draw, y, x), got {dict(sizes)}")
    return sizes["draw"]


def require_two_draws(draws: np.ndarray, why: str) -> None:
    """Refuse an ensemble of fewer than two draws, and say why two are needed."""
    num_draws = draws.shape[-3]
    if num_draws < 2:
        raise DataError(f"expected at least 2 draws, got {num_draws} in an ensemble of shape {draws.shape}: {why}")


def _without_torch(array: Array) -> Array:
    if hasattr(array, "dims"):
        return array
    if hasattr(array, "detach"):
        array = array.detach().cpu().double().numpy()
    return np.asarray(array)


def _finite(name: str, array: np.ndarray, axes: tuple[str, ...]) -> np.ndarray:
    """The array in float64, refused where it lacks axes or has gaps."""
    if array.ndim < len(axes) or 0 in array.shape[array.ndim - len(axes) :]:
        raise DataError(f"{name} needs the axes (..., {', '.join(axes)}), none of them empty, got shape {array.shape}")
    array = np.asarray(array, dtype=np.float64)
    bad = ~np.isfinite(array)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise DataError(
            f"{name} must be finite everywhere, found {bad.sum()} of {bad.size} values NaN or infinite, the first at "
            f"index {first}; fill the gaps, or cut both fields to where they are known"
        )
    return array


def _require_matching_shapes(arrays: dict[str, np.ndarray], core_dims: dict[str, tuple[str, ...]]) -> None:
    leader, first = next(iter(arrays.items()))
    num_batch = first.ndim - len(core_dims[leader])
    sizes = dict(zip(core_dims[leader], first.shape[num_batch:], strict=True))
    for name, array in arrays.items():
        expected = (*first.shape[:num_batch], *(sizes[axis] for axis in core_dims[name]))
        if array.shape != expected:
            raise DataError(
                f"{name} should have shape {expected} to go with {leader} of shape {first.shape}, got {array.shape}"
            )


def _apply_by_name(name: str, compute: Callable, arrays: list, core_dims: list, result: tuple[str, ...]) -> Array:
    import xarray as xr  # half a second, which callers with plain arrays need not wait for

    try:
        return xr.apply_ufunc(
            compute, *arrays, input_core_dims=core_dims, output_core_dims=[result], join="exact", keep_attrs=True
        )
    except (DataError, UsageError):
        raise
    except ValueError as error:
        raise DataError(f"{name} cannot match its arrays by name: {error}") from error
