"""Attributes of a file of readings, described once and checked as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from latentpde.errors import DataError, UsageError
from latentpde.observation import Observed
from latentpde.settings import Settings
from latentpde.spectra import is_spectrum
from latentpde.validation import Count, NotNegative, NumModes, Positive, Real, Time, shortened


class Attributes(BaseModel):
    """What the attributes of a file may say; others are passed over. Each is described as messages name it."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    family: str | None = Field(None, max_length=200, description="the name of one PDE family")
    regime: str | None = Field(None, max_length=200, description="the name of one regime")
    observed_kind: Observed | Literal[""] | None = Field(None, description="one of lowres-solve, pooled, point")
    time: list[Time] | None = Field(None, min_length=1, description="one number per snapshot, not negative")
    noise_std: Positive | None = Field(None, description="one positive number")
    extent: tuple[Positive, Positive] | None = Field(None, description="two positive numbers (height, width)")
    pooling: Count | None = Field(None, description="one whole number, at least 1")
    source_prior_std: NotNegative | None = Field(None, description="one number, not negative")
    num_modes: NumModes | None = Field(None, ge=1, description="one whole number, at least 1")
    coefficient_bounds: list[Real] | None = Field(
        None, description="lower and upper bounds of the coefficients, one after the other"
    )

    domain: str | None = Field(None, max_length=200, description="edges, such as open or y=open,x=periodic")
    initial: str | None = Field(None, max_length=500, description="a prior, such as Matern(std=(0.1, 10.0))")
    source: str | None = Field(None, max_length=500, description="a prior, such as Matern(std=(0.1, 10.0)), or none")
    trend: str | None = Field(None, max_length=200, description="one of none, constant, linear")
    velocity: str | None = Field(None, max_length=500, description="zero, or a prior such as Matern(std=(0.1, 10.0))")
    robust: str | int | None = Field(None, description="true or false")
    bounds: str | None = Field(None, max_length=2000, description="text such as kappa=0.01:0.2,vx=-1:1")
    fixed: str | None = Field(None, max_length=2000, description="text such as kappa=0.02")
    gaussian: str | None = Field(None, max_length=2000, description="text such as vx=2.0:0.5")

    @property
    def settings(self) -> Settings:
        """What they say of the model, beside its noise; raises `DataError` where that has no meaning.

        >>> Attributes.of({"domain": "periodic", "source": "reanalysis"}).settings.texts()
        {'domain': 'periodic'}
        """
        names = ("domain", "initial", "source", "trend", "velocity", "robust", "bounds", "fixed", "gaussian")
        given = {name: value for name in names if (value := getattr(self, name))}
        if "source" in given and given["source"] != "none" and not is_spectrum(given["source"]):
            del given["source"]  # in the CF conventions, where the data come from
        found = {}
        for name, value in given.items():
            try:
                found |= {name: getattr(Settings.of(**{name: value}), name)}
            except UsageError as error:
                raise DataError(f"the attribute {name}: {error}") from error
        return Settings(**found)

    @classmethod
    def of(cls, found: Mapping[Any, Any]) -> Attributes:
        """Check the attributes of a dataset; raises `DataError` with what was expected and found.

        >>> Attributes.of({"noise_std": 0.1, "time": np.array([0.25])}).time
        [0.25]
        >>> Attributes.of({"noise_std": 1 + 2j})
        Traceback (most recent call last):
        latentpde.errors.DataError: the attribute noise_std must be one positive number; found (1+2j)
        """
        if "boundary" in found and "domain" not in found:  # what others call the edges
            found = {**found, "domain": found["boundary"]}
        try:
            return cls.model_validate({name: _plain(found[name]) for name in cls.model_fields if name in found})
        except ValidationError as error:
            name = str(error.errors(include_url=False)[0]["loc"][0])
            wanted, value = cls.model_fields[name].description, shortened(_plain(found[name]))
            raise DataError(f"the attribute {name} must be {wanted}; found {value}") from error

    @field_validator("time", mode="before")
    @classmethod
    def _several(cls, value: Any) -> Any:
        return value if isinstance(value, list) or value is None else [value]

    @field_validator("coefficient_bounds")
    @classmethod
    def _ordered(cls, value: list[float] | None) -> list[float] | None:
        if value is not None and not all(low < high for low, high in zip(value[::2], value[1::2], strict=True)):
            raise ValueError("lower bounds come before upper ones")
        return value


def _plain(value: Any) -> Any:
    """What a file's attribute is in Python: text, a number, or a list without inner lists where there are several."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, str | float | int | complex) or value is None:
        return value
    numbers = np.asarray(value).ravel().tolist()
    return numbers[0] if len(numbers) == 1 else numbers
