"""Numbers in tables."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from latentpde.bench.tables import number


@given(st.floats(-1e4, 1e4), st.floats(1e-6, 1e3))
def test_numbers_keep_the_digits_that_their_error_allows(value, error):
    mean, spread = (float(part) for part in number(value, error).split(" ± "))
    assert abs(mean - value) <= max(0.06 * error, 1.01e-5)
    assert abs(spread - error) <= max(0.06 * error, 1.01e-5)
