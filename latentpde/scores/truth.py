"""The true field that a reconstruction is compared with: that of the last observed time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from latentpde.errors import DataError
from latentpde.observation import Observation

if TYPE_CHECKING:
    import xarray as xr


def last_true_fields(cases: xr.DataTree) -> xr.DataArray:
    """The true fields of simulated cases at the last time, with the axes ``(case, y, x)``.

    >>> from latentpde import simulate
    >>> last_true_fields(simulate("diffusion", num=2, shape=(16, 16), times=(0.1, 0.2))).dims
    ('case', 'y', 'x')

    Args:
        cases: in the layout of ``cases.nc``; the truths are in its group ``truth``.
    """
    if "truth" not in cases.children or "field" not in cases["truth"]:
        raise DataError("the cases hold no truth to compare with; expected a group 'truth' with a variable 'field'")
    field = cases["truth"].to_dataset()["field"]
    if 0 in field.shape:
        raise DataError(f"the true field is empty; its axes have the lengths {dict(field.sizes)}")
    return field.isel(time=-1) if "time" in field.dims else field


def last_true_field(truth: Any, observation: Observation, case: int) -> Float[np.ndarray, "y x"]:
    """The true field of one case at the last time, from an array with or without axes for cases and times.

    >>> import numpy as np
    >>> observation = Observation.from_arrays(np.ones((3, 2, 4, 4)), times=[0.1, 0.2], noise_std=0.1)
    >>> truth = np.arange(6.0).reshape(3, 2, 1, 1) + np.zeros((3, 2, 8, 8))
    >>> last_true_field(truth, observation, case=1).max()
    np.float64(3.0)

    Args:
        truth: array, tensor or `xarray.DataArray` with the axes ``([case,] [time,] y, x)``; finite where it is used.
        observation: how many cases and times there are.
        case: which one.
    """
    if hasattr(truth, "dims"):
        leading = [axis for axis in ("case", "time") if axis in truth.dims]
        if set(truth.dims) != {*leading, "y", "x"}:
            raise DataError(f"expected a truth with axes ([case,] [time,] y, x), got {truth.dims}")
        truth = truth.transpose(*leading, "y", "x")
    else:
        leading = {3: ["case" if observation.batched else "time"], 4: ["case", "time"]}.get(np.ndim(truth), [])
    try:
        array = np.asarray(truth, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"the truth must be an array of numbers, got {type(truth).__name__}: {error}") from error
    sizes = {"case": observation.num_cases, "time": len(observation.times)}
    if array.ndim < 2 or array.shape[:-2] != tuple(sizes[axis] for axis in leading) or min(array.shape[-2:]) < 2:
        wanted = " and ".join(f"{count} {axis}(s)" for axis, count in sizes.items())
        raise DataError(f"expected a truth with axes ([case,] [time,] y, x), {wanted}; got shape {array.shape}")
    array = array[tuple(case if axis == "case" else -1 for axis in leading)]
    if not np.isfinite(array).all():
        raise DataError(f"the truth of case {case} has {(~np.isfinite(array)).sum()} NaN or infinite values")
    return array
