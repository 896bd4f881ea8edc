"""Tasks side by side give what they give alone, to the bit, and leave torch's threads as they were."""

from __future__ import annotations

import pytest
import torch

from latentpde.estimators.exact.parallel import run_together


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def product() -> torch.Tensor:
    """A sum that comes out with other last digits where two threads share it."""
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn((600, 600), dtype=torch.float64, generator=generator) for _ in range(2))
    return torch.linalg.cholesky(left @ left.T + torch.eye(600, dtype=torch.float64)) @ right


def test_linear_algebra_has_one_thread_in_every_task(two_threads):
    torch.set_num_threads(1)
    alone = product()
    torch.set_num_threads(2)
    for _ in range(10):
        assert all(torch.equal(found, alone) for found in run_together(product, product))


def test_threads_are_given_back_even_after_an_error(two_threads):
    def fail():
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        run_together(product, fail)
    assert torch.get_num_threads() == 2
    assert [result.shape for result in run_together(product)] == [(600, 600)]
