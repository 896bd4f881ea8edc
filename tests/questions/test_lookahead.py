"""What further readings leave of a target, against quadrature over what they may read and over a coefficient."""

from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.stats import norm

import latentpde as lp
from latentpde.decoder import Decoder
from latentpde.questions.design import _asked, _candidates, _Design
from latentpde.questions.lookahead import Lookahead, cells

RNG = np.random.default_rng(7)


def random_case(num_cells, num_targets, num_candidates, apart=1.0, **settings):
    size = num_targets + num_candidates
    factors = RNG.standard_normal((num_cells, size, size)) / np.sqrt(size)
    mean = torch.from_numpy(apart * RNG.standard_normal((num_cells, size)))
    weight = torch.from_numpy(RNG.dirichlet(np.ones(num_cells)))
    covariance = torch.from_numpy(factors @ factors.transpose(0, 2, 1))
    return Lookahead(weight, mean, covariance, num_targets, 0.4, **settings)


def left_by_quadrature(case, candidate):
    """Of a mixture of Gaussians that are updated one by one, over a fine table of what is read."""
    mean, covariance, at = case.mean.numpy(), case.covariance.numpy(), case.num_targets + candidate
    spread = covariance[:, at, at] + case.noise_std**2
    table = np.linspace(-12, 12, 6001)
    density = norm.pdf(table[:, None], mean[:, at], np.sqrt(spread)) * case.weight.numpy()
    weight = density / density.sum(1, keepdims=True)
    total = 0.0
    for k in range(case.num_targets):
        gain = covariance[:, k, at] / spread
        own = mean[:, k] + gain * (table[:, None] - mean[:, at])
        within = covariance[:, k, k] - gain**2 * spread
        variance = (weight * (within + own**2)).sum(1) - (weight * own).sum(1) ** 2
        total += np.trapezoid(variance * density.sum(1), table)
    return total


def left_of_one_gaussian(case, chosen):
    k, dense = case.num_targets, case.covariance[0].numpy()
    at = [k + j for j in chosen]
    among = dense[np.ix_(at, at)] + case.noise_std**2 * np.eye(len(at))
    return np.trace(dense[:k, :k] - dense[:k][:, at] @ np.linalg.solve(among, dense[at][:, :k]))


@pytest.mark.parametrize("apart", [0.2, 1.0, 3.0])
def test_one_reading_leaves_what_quadrature_says(apart):
    case = random_case(5, 3, 2, apart, num_draws=20_000)
    expected = [left_by_quadrature(case, j) for j in range(2)]
    np.testing.assert_allclose(case.left([]), expected, rtol=0.02)
    assert case.choose(1) == [int(np.argmin(expected))]


def test_one_cell_is_a_dense_gaussian_whatever_is_read():
    case = random_case(1, 4, 6, num_draws=2)
    for chosen in ([], [2], [5, 0, 3]):
        left = case.left(chosen)
        others = [j for j in range(6) if j not in chosen]
        expected = [left_of_one_gaussian(case, [*chosen, j]) for j in others]
        np.testing.assert_allclose(left[others], expected, rtol=1e-9)
        assert bool(left[chosen].isinf().all())


def test_an_exchange_finds_the_pair_that_one_after_another_misses():
    """The sum of two numbers is the best first reading; the numbers themselves are the best pair."""
    a, b, both = np.eye(3)[0], np.eye(3)[1], np.array([2.0, 2.0, 0.3])
    rows = np.stack([a, b, a, b, both])
    case = Lookahead(
        torch.ones(1).double(), torch.zeros(1, 5).double(), torch.from_numpy(rows @ rows.T)[None], 2, 0.2, num_draws=2
    )
    assert case.choose(1) == [2]
    best = min(combinations(range(3), 2), key=lambda pair: left_of_one_gaussian(case, pair))
    assert set(case.choose(2)) == set(best) == {0, 1}


def test_modes_are_told_apart_where_the_best_linear_estimate_sees_nothing():
    """The target is the square of what is read: they are not correlated, and one tells the other."""
    reading = torch.linspace(-3, 3, 13).double()
    mean = torch.stack([reading**2, reading, 0 * reading], dim=1)  # target, then a telling and an empty candidate
    weight = torch.full((13,), 1 / 13).double()
    case = Lookahead(weight, mean, torch.zeros(13, 3, 3).double(), 1, 0.2)
    assert case.choose(1) == [0]
    assert case.left([])[0] < 0.1 * float(mean[:, 0].var())


def test_cells_hold_every_node_once_and_tell_modes_apart():
    modes = np.repeat([0.0, 50.0, 80.0], [10, 30, 20])
    means = torch.from_numpy(modes[:, None] + RNG.standard_normal((60, 4)))
    found = cells(means, 3)
    assert sorted(torch.cat(found).tolist()) == list(range(60))
    assert sorted(len(members) for members in found) == [10, 20, 30]
    assert all(len(set(modes[members.numpy()])) == 1 for members in found)
    assert len(cells(means, 200)) == 60
    assert len(cells(torch.ones(5, 2).double(), 3)) == 1


def test_what_three_readings_leave_agrees_with_quadrature_over_a_coefficient():
    """One coefficient is not known. Dense Gaussians for a fine table of it, by decoding units of the source, are
    weighted by the readings so far, and once more by each outcome of three new ones."""
    cases = lp.simulate("balanced", num=1, seed=4, shape=(32, 32), num_modes=2, sparsity=0.1, observed="point")
    observation = lp.Observation.from_dataset(cases, fine_initial=cases["truth/initial"])
    fixed = {"vy": 0.3, "kappa": 0.05}
    posterior = lp.reconstruct(observation, fixed=fixed, num_draws=2)
    given = np.random.default_rng(0).random((20, 2))
    times = observation.times[-1:].numpy()
    points, asked = _candidates(posterior, given, times), _asked(posterior, "field", None, times)
    ahead = _Design(posterior, 0, points, asked, "field").lookahead(np.arange(20), 0.05, torch.eye(len(asked)).double())
    chosen = [3, 11, 7]

    latent, model = posterior.latent, posterior.model()
    decoder, state = Decoder(latent, observation.grid.extent), posterior.mean_initial_hat[0]
    table = np.linspace(*latent.bounds[0].tolist(), 202)[1:-1]  # its prior is uniform
    places = torch.from_numpy(np.concatenate([observation.positions[0], given[chosen], asked[:, :2]]))
    num_read = len(observation.positions[0])
    unit = torch.cat([torch.zeros((1, latent.num_source)), torch.eye(latent.num_source)]).double()
    rows = [np.arange(num_read), num_read + np.arange(3), num_read + 3 + np.arange(len(asked))]
    values, noise = model.likelihood.values.numpy(), model.likelihood.noise.known.numpy() * np.eye(num_read)
    log_weight, means, among, gains, before, within = [], [], [], [], [], []
    for vx in table:
        theta = torch.tensor([[vx, *fixed.values()]], dtype=torch.float64).expand(len(unit), -1)
        u_hat = decoder.spectrum(latent.pack(theta, unit * latent.source_prior_std), state[None], observation.times)
        field = lp.grid.at_points(u_hat[:, 0], places, observation.grid.extent).numpy()
        mean, columns = field[0], (field[1:] - field[0]).T
        read = columns[rows[0]]
        prior, residual = read @ read.T + noise, values - mean[rows[0]]
        solved = np.linalg.solve(prior, np.column_stack([residual, read @ columns.T]))
        log_weight.append(-0.5 * (residual @ solved[:, 0] + np.linalg.slogdet(prior)[1]))
        mean = mean + columns @ read.T @ solved[:, 0]
        after = columns @ columns.T - columns @ read.T @ solved[:, 1:]
        spread = after[np.ix_(rows[1], rows[1])] + 0.05**2 * np.eye(3)
        cross = after[np.ix_(rows[2], rows[1])]
        gain = cross @ np.linalg.inv(spread)
        means.append(mean)
        among.append(spread)
        gains.append(gain)
        before.append(np.trace(after[np.ix_(rows[2], rows[2])]))
        within.append(before[-1] - np.trace(gain @ cross.T))
    log_weight, means, among, gains, before, within = map(np.array, (log_weight, means, among, gains, before, within))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()

    rng, left = np.random.default_rng(1), []
    inverse, log_det = np.linalg.inv(among), np.linalg.slogdet(among)[1]
    for i in rng.choice(len(table), 400, p=weight):
        surprise = rng.multivariate_normal(means[i, rows[1]], among[i]) - means[:, rows[1]]
        own = np.log(weight + 1e-300) - 0.5 * (np.einsum("ni,nij,nj->n", surprise, inverse, surprise) + log_det)
        own = np.exp(own - own.max())
        own /= own.sum()
        moved = means[:, rows[2]] + np.einsum("nki,ni->nk", gains, surprise)
        left.append(own @ (within + (moved**2).sum(1)) - ((own @ moved) ** 2).sum())
    total = weight @ (before + (means[:, rows[2]] ** 2).sum(1)) - ((weight @ means[:, rows[2]]) ** 2).sum()
    assert np.mean(left) < 0.7 * total  # so that there is something to tell
    assert float(ahead.left(chosen[:2])[chosen[2]]) == pytest.approx(np.mean(left), rel=0.05)
