"""What further readings leave of a target, against quadrature over what they may read."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from latentpde.questions.lookahead import Lookahead

RNG = np.random.default_rng(7)


def random_case(num_nodes, num_targets, num_candidates, apart=1.0):
    size = num_targets + num_candidates
    factors = RNG.standard_normal((num_nodes, size, size)) / np.sqrt(size)
    mean = apart * RNG.standard_normal((num_nodes, size))
    return torch.from_numpy(mean), torch.from_numpy(factors @ factors.transpose(0, 2, 1))


def left_by_quadrature(mean, covariance, noise, candidate, num_targets):
    """Of a mixture of Gaussians that are updated one by one, over a fine table of what is read."""
    mean, covariance, num = mean.numpy(), covariance.numpy(), len(mean)
    spread = covariance[:, candidate, candidate] + noise**2
    table = np.linspace(-12, 12, 6001)
    density = norm.pdf(table[:, None], mean[:, candidate], np.sqrt(spread)) / num
    weight = density / density.sum(1, keepdims=True)
    total = 0.0
    for k in range(num_targets):
        gain = covariance[:, k, candidate] / spread
        own = mean[:, k] + gain * (table[:, None] - mean[:, candidate])
        within = covariance[:, k, k] - gain**2 * spread
        variance = (weight * (within + own**2)).sum(1) - (weight * own).sum(1) ** 2
        total += np.trapezoid(variance * density.sum(1), table)
    return total


@pytest.mark.parametrize("apart", [0.2, 1.0, 3.0])
def test_one_reading_leaves_what_quadrature_says(apart):
    mean, covariance = random_case(5, 3, 2, apart)
    expected = [left_by_quadrature(mean, covariance, 0.4, 3 + j, 3) for j in range(2)]
    found = Lookahead(mean, covariance, 3, 0.4)
    chosen, left = found.greedy(1, num_draws=20_000)
    assert chosen == [int(np.argmin(expected))]
    assert left[0] == pytest.approx(min(expected), rel=0.02)


def test_one_node_is_a_dense_gaussian_whatever_is_read():
    mean, covariance = random_case(1, 4, 6)
    chosen, left = Lookahead(mean, covariance, 4, 0.3).greedy(3, num_draws=2)
    dense, both = covariance[0].numpy(), [4 + j for j in chosen]
    among = dense[np.ix_(both, both)] + 0.09 * np.eye(3)
    after = dense[:4, :4] - dense[:4][:, both] @ np.linalg.solve(among, dense[both][:, :4])
    assert left[-1] == pytest.approx(np.trace(after), rel=1e-9)
    assert len(set(chosen)) == 3
    assert left[0] > left[1] > left[2]


def test_modes_are_told_apart_where_the_best_linear_estimate_sees_nothing():
    """The target is the square of what is read: they are not correlated, and one tells the other."""
    reading = torch.linspace(-3, 3, 13).double()
    mean = torch.stack([reading**2, reading, 0 * reading], dim=1)  # target, then a telling and an empty candidate
    chosen, left = Lookahead(mean, torch.zeros(13, 3, 3).double(), 1, 0.2).greedy(1, num_draws=500)
    assert chosen == [0]
    assert left[0] < 0.1 * float(mean[:, 0].var())


def test_it_ends_where_readings_single_nodes_out():
    mean, covariance = random_case(40, 1, 5, apart=10.0)
    chosen, left = Lookahead(mean, 1e-4 * covariance, 1, 0.01).greedy(4)
    assert not chosen
    assert not left
