"""Gaps that are written as a number are told from honest values, however heavy their tail."""

import numpy as np
import pytest

from latentpde.errors import DataError
from latentpde.observation.fill_values import refuse_fill_values

RNG = np.random.default_rng(0)
HONEST = {
    "normal": RNG.normal(size=1000),
    "Cauchy": RNG.standard_cauchy(10_000),
    "log-normal over thirteen decades": RNG.lognormal(0.0, 5.0, 10_000),
    "temperatures": RNG.normal(285.0, 10.0, 500),
    "a release in one cell": np.eye(32)[:1] * 1e19,
    "a release above rounding": np.where(np.arange(100) == 3, 1.0, 1e-16 * RNG.normal(size=100)),
    "a wide range with 9999 in it": np.linspace(0.0, 20_000.0, 101).round() + (np.arange(101) == 50) * -1.0,
    "small numbers": 1e-30 * RNG.normal(size=100),
    "large numbers": 1e30 * RNG.normal(size=100),
    "constant": np.full(10, -9999.0),
    "nothing": np.zeros(0),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_values_pass(name):
    refuse_fill_values(HONEST[name], "readings")


@pytest.mark.parametrize("gap", [-9999.0, -999.0, 1e20, 9.96921e36, -32768.0, 3.4028235e38, 1.7e38, 1e300])
@pytest.mark.parametrize("share", [0.001, 0.5, 0.99])
@pytest.mark.parametrize("values", [RNG.normal(size=1000), 0.1 * RNG.normal(size=1000) + 15.0], ids=["zero", "level"])
def test_gaps_are_named(values, share, gap):
    spoilt = np.where(np.arange(1000) < share * 1000, gap, values)
    with pytest.raises(DataError, match=f"of 1000 readings (is|are) {gap:.7g}".replace("+", r"\+")):
        refuse_fill_values(spoilt, "readings")
