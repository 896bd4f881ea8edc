"""Errors that people can act on: what was expected, what was found, how to mend it."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class LatentPDEError(Exception):
    """Base of every error raised on purpose; ``exit_code`` is what the command line returns.

    >>> import latentpde as lp
    >>> try:
    ...     lp.Grid((0, 4))
    ... except lp.LatentPDEError as error:
    ...     print(error.exit_code, error)
    2 a grid needs a shape (ny, nx) of positive whole numbers, got (0, 4)
    """

    exit_code = 1


class UsageError(LatentPDEError, ValueError):
    """The call itself is wrong: an unknown name, an impossible option, a missing folder.

    >>> from latentpde import simulate
    >>> simulate("difusion")
    Traceback (most recent call last):
    latentpde.errors.UsageError: unknown regime 'difusion' (did you mean 'diffusion'?). Known regimes: ...
    """

    exit_code = 2


class DataError(LatentPDEError, ValueError):
    """The call is fine, the data are not: NaN where a number must be, shapes that disagree.

    >>> import xarray as xr
    >>> from latentpde import Observation
    >>> Observation.from_dataset(xr.Dataset({"temperature": 20.0}))
    Traceback (most recent call last):
    latentpde.errors.DataError: expected a variable 'observed' with the readings; found: temperature
    """

    exit_code = 3


class LatentPDEWarning(UserWarning):
    """A result that is not to be taken as it is: the readings are not explained, or something was assumed.

    The program prints it as a line of its own.

    >>> import warnings
    >>> import latentpde as lp
    >>> with warnings.catch_warnings():  # turned into an error, where a script must not go on
    ...     warnings.simplefilter("error", lp.LatentPDEWarning)
    ...     posterior = lp.reconstruct(lp.simulate("diffusion", num=1), method="kriging")
    """


@contextmanager
def no_warnings() -> Iterator[None]:
    """Raise no `LatentPDEWarning` in this block, where many cases are run and what they would say is counted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LatentPDEWarning)
        yield
