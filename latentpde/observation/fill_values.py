"""Gaps that are written as a number, such as -9999 or 1e20, and not declared: the commonest mistake in files of data.

A value is taken for such a number where it lies far outside all others and is one of the usual ones, or is so large and
so far away that nothing measured could be both. A heavy tail does neither: its largest values are of any kind, and the
next ones are not many orders of magnitude below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from latentpde.errors import DataError
from latentpde.validation import LARGEST

if TYPE_CHECKING:
    import numpy as np

#: Numbers that instruments, models and formats write for "no value", of either sign.
_USUAL = (999, 9999, 99999, 999999, 32767, 32768, 2147483647, 2147483648, 1e15, 1e20, 1e30, 1e34, 1e35, 1e36, 1e37)
_FORMATS = (9.969209968386869e36, 3.4028234663852886e38, 1.7976931348623157e308, 8.98846567431158e307)
_FAR, _VERY_FAR = 10.0, 1e6  # ranges of the other values, for the usual numbers and for any
_HUGE = 1e15


def refuse_fill_values(values: np.ndarray, what: str) -> None:
    """Raise `DataError` where some values are gaps, by all appearances.

    >>> import numpy as np
    >>> refuse_fill_values(np.array([0.3, -1.2, 0.7, -9999.0]), "readings")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    latentpde.errors.DataError: 1 of 4 readings is -9999, far outside the others (-1.2 to 0.7): is that a gap? ...

    Args:
        values: of any shape; NaN are gaps already.
        what: they are, in the plural.
    """
    import numpy as np

    flat = values[np.isfinite(values)].ravel()
    sizes = np.abs(flat)
    usual = np.isclose(sizes[:, None], (*_USUAL, *_FORMATS), rtol=1e-6, atol=0.0).any(1)
    for suspects, far in ((usual, _FAR), (sizes >= _HUGE, _VERY_FAR)):
        others = flat[~suspects]
        if not suspects.any() or not others.size:
            continue
        low, high = float(others.min()), float(others.max())
        scale = max(high - low, float(np.median(np.abs(others))))
        outside = suspects & (np.maximum(low - flat, flat - high) > far * scale)
        if outside.any() and (scale > 0 or far == _FAR):
            _refuse(flat[outside], f"far outside the others ({low:.6g} to {high:.6g})", flat.size, what)
    if (sizes > LARGEST).any():
        _refuse(flat[sizes > LARGEST], "too large to compute with", flat.size, what)


def _refuse(found: np.ndarray, how: str, total: int, what: str) -> None:
    numbers = sorted(set(found.tolist()), key=abs, reverse=True)
    listed = ", ".join(f"{number:.7g}" for number in numbers[:3]) + (" and others" if len(numbers) > 3 else "")
    verb = "is" if len(found) == 1 else "are"
    raise DataError(
        f"{len(found)} of {total} {what} {verb} {listed}, {how}: is that a gap? Mark gaps by NaN, or name "
        "the number in the variable's attribute _FillValue; if it is meant, pass keep_outliers=True "
        "(--keep-outliers)"
    )
