"""What the tests of files share."""

import pytest
import xarray as xr


@pytest.fixture(scope="session")
def cases() -> xr.DataTree:
    """Three small simulated cases with their truth."""
    from latentpde import simulate

    return simulate("balanced", num=3, seed=4, shape=(16, 24), pooling=4, sparsity=0.3)
