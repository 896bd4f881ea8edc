"""The ensemble Kalman filter: against dense algebra, the Kalman analysis that it tends to, and DAPPER."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from latentpde.errors import UsageError
from latentpde.estimators import make_estimator
from latentpde.estimators.assimilation.enkf import EnKF, centred, kalman_step, smooth
from latentpde.estimators.assimilation.localisation import Taper, gaspari_cohn
from latentpde.estimators.assimilation.readings import FieldReadings
from latentpde.grid import Grid
from latentpde.observation import Observation

ROOT = Path(__file__).parents[3]
COARSE, FACTOR, FINE = (3, 4), 2, (6, 8)
PLAIN = {"num_cycles": 1, "post_length": 0.0, "correction": 0.0, "localisation": 0.0, "inflation": 1.0}


def problem(seed: int = 0, share: float = 0.4):
    """One case of 3 x 4 cells, some of them read."""
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(COARSE) < share, 2 * rng.standard_normal(COARSE), np.nan)
    data = Observation.from_arrays(values, noise_std=0.5, pooling=FACTOR, grid=Grid(COARSE, (0.75, 1.0)))
    return data, torch.from_numpy(rng.standard_normal((1, 1, *FINE)))


def dense_operator(data: Observation) -> np.ndarray:
    rows, cols = (np.kron(np.eye(n), np.full((1, FACTOR), 1 / FACTOR)) for n in COARSE)
    return np.kron(rows, cols)[data.mask[0, 0].flatten().numpy()]


def dense_smoothing(num_passes: int) -> np.ndarray:
    """Averages over 3 x 3 cells of the torus, again and again, scaled to keep the variance of white noise."""
    fields = np.eye(FINE[0] * FINE[1]).reshape(-1, *FINE)
    for _ in range(num_passes):
        fields = sum(np.roll(fields, (dy, dx), (1, 2)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) / 9
    matrix = fields.reshape(len(fields), -1).T
    return matrix / np.sqrt((matrix[0] ** 2).sum())


def kalman(data: Observation, background: torch.Tensor, std: float, num_passes: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the Kalman analysis whose prior is the ensemble's own."""
    h, y = dense_operator(data), data.values[data.mask].numpy()
    halved = np.where(h.any(0), 0.5, 1.0)
    root = std * dense_smoothing(num_passes) * halved
    prior, x_b = root @ root.T, background.flatten().numpy()
    gain = prior @ h.T @ np.linalg.inv(h @ prior @ h.T + 0.25 * np.eye(len(y)))
    return x_b + gain @ (y - h @ x_b), prior - gain @ h @ prior


def members_of(data, background, num, **options):
    """A large ensemble as an array ``(member, cell)``; the background's lengths are such that S is two passes."""
    method = EnKF(**{"num_members": num, "ensemble_std": 0.8, "length": np.sqrt(2 / 1.5) / 6, **PLAIN, **options})
    return method.analyse(data, background, num_draws=num, seed=1).values[0, :, 0].flatten(1).numpy()


@pytest.mark.parametrize("num_members", [4, 40])
def test_both_spaces_give_the_gain_of_the_formula(num_members):
    """Fewer members than readings, and more."""
    rng = np.random.default_rng(num_members)
    x, y_hat = rng.standard_normal((num_members, 30)), rng.standard_normal((num_members, 9))
    innovations, r = rng.standard_normal((num_members, 9)), rng.uniform(0.2, 2.0, 9)
    a_x, a_y = x - x.mean(0), y_hat - y_hat.mean(0)
    gain = a_x.T @ a_y / (num_members - 1) @ np.linalg.inv(a_y.T @ a_y / (num_members - 1) + np.diag(r))
    tensors = [torch.from_numpy(a)[None] for a in (x, y_hat, innovations, r)]
    np.testing.assert_allclose(kalman_step(*tensors)[0].numpy(), x + innovations @ gain.T, rtol=1e-9, atol=1e-12)


def test_a_large_ensemble_tends_to_the_kalman_analysis():
    data, background = problem()
    num = 40_000
    members = members_of(data, background, num)
    mean, covariance = kalman(data, background, 0.8, num_passes=2)
    variance = np.diag(covariance)
    assert np.abs(mean - background.flatten().numpy()).max() > 0.2, "the readings move nothing"
    # Members depend on each other through the gain, whose own sampling error is of the same order: hence 10, not 5.
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / num)
    assert (np.abs(np.cov(members.T) - covariance) / error).max() < 10
    assert (np.abs(members.mean(0) - mean) / np.sqrt(variance / num)).max() < 10


def test_tempered_cycles_use_the_readings_once_and_plain_ones_again_and_again():
    """Three cycles with three times the variance are one analysis; without that, they are one with a third of it."""
    data, background = problem()
    num = 40_000
    mean, covariance = kalman(data, background, 0.8, num_passes=2)
    variance = np.diag(covariance)
    tempered = members_of(data, background, num, num_cycles=3, tempered=True)
    assert (np.abs(tempered.mean(0) - mean) / np.sqrt(variance / num)).max() < 15
    assert (np.abs(tempered.var(0) / variance - 1) / np.sqrt(2 / num)).max() < 15
    again = members_of(data, background, num, num_cycles=3)
    assert again.var(0).mean() < 0.9 * variance.mean()


def test_it_agrees_with_dapper():
    """tools/dapper_reference.py had DAPPER make the file; same members and perturbations, so to rounding."""
    record = json.loads((ROOT / "tests" / "data" / "dapper_enkf.json").read_text())
    assert len(record["problems"]) == 2
    for p in record["problems"]:
        check_against_dapper({name: np.array(values) for name, values in p.items()})


@pytest.mark.slow
def test_it_agrees_with_dapper_as_installed():
    pytest.importorskip("dapper", reason="DAPPER is not installed; tools/dapper_reference.py says how")
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "dapper_reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    for seed, sizes in enumerate([(16, 40, 51), (60, 40, 51)]):
        p = reference.problem(*sizes, seed=seed)
        check_against_dapper({**p, "analysis": reference.analysis(**p)})


def check_against_dapper(p: dict[str, np.ndarray]) -> None:
    members, predicted, values, variance, perturbations = (
        torch.from_numpy(p[name])[None] for name in ("members", "predicted", "values", "variance", "perturbations")
    )
    ours = kalman_step(members, predicted, values[:, None] - centred(perturbations) - predicted, variance)
    assert np.abs(p["analysis"] - p["members"]).max() > 0.1
    np.testing.assert_allclose(ours[0].numpy(), p["analysis"], rtol=1e-9, atol=1e-9)


def test_smoothing_repeats_an_average_over_three_cells():
    grid, rng = Grid(FINE, (0.75, 1.0)), np.random.default_rng(0)
    field = rng.standard_normal(FINE)
    smoothed = smooth(torch.from_numpy(field), grid, np.sqrt(2 / 1.5) * 0.125, rescale=True)
    np.testing.assert_allclose(smoothed.flatten().numpy(), dense_smoothing(2) @ field.ravel(), atol=1e-12)
    flat = torch.ones(FINE, dtype=torch.float64)
    torch.testing.assert_close(smooth(flat, grid, 0.3), flat)


def test_the_taper_is_gaspari_and_cohn():
    """Their values: 1 at zero, 5/24 half way, 0 at the end; smooth in between, and a correlation function."""
    r = torch.tensor([0.0, 1.0, 2.0, 5.0], dtype=torch.float64)
    np.testing.assert_allclose(gaspari_cohn(r, 2.0).numpy(), [1, 5 / 24, 0, 0], atol=1e-14)
    line = torch.linspace(0, 3, 301, dtype=torch.float64)
    values = gaspari_cohn(line, 2.0)
    assert (values.diff() <= 0).all()
    assert values.diff(n=2).abs().max() < 2e-3, "there is a kink"
    apart = (line[:, None] - line).abs()
    assert torch.linalg.eigvalsh(gaspari_cohn(apart, 2.0)).min() > -1e-9


def test_localisation_confines_the_analysis_and_a_wide_one_changes_nothing():
    rng = np.random.default_rng(0)
    values = np.full((8, 8), np.nan)
    values[0, 0] = 2.0
    data = Observation.from_arrays(values, noise_std=0.1, pooling=2)
    background = torch.from_numpy(rng.standard_normal((1, 1, 16, 16)))

    def mean(**options):
        posterior = EnKF(**{**PLAIN, "ensemble_std": 1.0, "length": 0.1, **options}).analyse(
            data, background, num_draws=4, seed=0
        )
        return posterior.mean(16).values

    # what an ensemble around the same background has far from the reading is what it had before
    untouched = mean(localisation=1e-6)
    local, free = mean(localisation=0.3), mean()
    y = (np.arange(16) + 0.5) / 16
    apart = np.minimum(np.abs(y - 1 / 16), 1 - np.abs(y - 1 / 16))
    far = np.hypot(apart[:, None], apart) > 0.3
    assert far.sum() > 100
    np.testing.assert_allclose(local[far], untouched[far], atol=1e-12)
    assert np.abs(free - untouched)[far].max() > 0.05, "without localisation the reading is felt everywhere"
    assert np.abs(local - untouched)[~far].max() > 0.5
    np.testing.assert_allclose(mean(localisation=1e4), free, atol=1e-6)


def test_localised_gain_is_the_tapered_formula():
    data, background = problem()
    readings = FieldReadings.of(data)
    taper = Taper.of(readings, 0.5)
    rng = np.random.default_rng(5)
    members = rng.standard_normal((6, 48)) + background.flatten().numpy()
    h, r = dense_operator(data), 0.25
    centres = (np.argwhere(data.mask[0, 0].numpy()) + 0.5) * 0.25
    cells = (np.argwhere(np.ones(FINE)) + 0.5) * 0.125

    def rho(a, b):
        apart = np.abs(a[:, None] - b) % [0.75, 1.0]
        apart = np.minimum(apart, [0.75, 1.0] - apart)
        return gaspari_cohn(torch.from_numpy(np.hypot(*np.moveaxis(apart, -1, 0))), 0.5).numpy()

    p = np.cov(members.T)
    gain = (rho(cells, centres) * (p @ h.T)) @ np.linalg.inv(rho(centres, centres) * (h @ p @ h.T) + r * np.eye(len(h)))
    innovations = rng.standard_normal((6, len(h)))
    x = torch.from_numpy(members)[None]
    moved = kalman_step(x, torch.from_numpy(members @ h.T)[None], torch.from_numpy(innovations)[None],
                        readings.variance, taper)  # fmt: skip
    np.testing.assert_allclose(moved[0].numpy(), members + innovations @ gain.T, atol=1e-10)


def test_inflation_widens_what_is_analysed():
    data, background = problem()
    _, covariance = kalman(data, background, 0.8 * 1.5, num_passes=2)
    inflated = members_of(data, background, 20_000, inflation=1.5)
    np.testing.assert_allclose(inflated.var(0), np.diag(covariance), rtol=0.1)


def test_the_correction_meets_the_readings():
    data, background = problem()
    whole = EnKF(correction=1.0).analyse(data, background, num_draws=3, seed=0)
    half = EnKF(correction=0.5).analyse(data, background, num_draws=3, seed=0)
    none = EnKF(correction=0.0).analyse(data, background, num_draws=3, seed=0)
    left = [data.values[data.mask].numpy() - dense_operator(data) @ p.mean(FINE).values.ravel()
            for p in (whole, half, none)]  # fmt: skip
    assert np.abs(left[2]).max() > 0.1
    np.testing.assert_allclose(left[0], 0, atol=1e-12)
    np.testing.assert_allclose(left[1], left[2] / 2, atol=1e-12)


def test_published_perturbations_are_independent_draws_of_the_noise(monkeypatch):
    """Ours are the same draws with their mean over the members taken off."""
    data, background = problem()
    values, seen = data.values[data.mask].numpy(), []

    def record(members, predicted, innovations, variance, taper=None):
        seen.append((innovations + predicted)[0].numpy() - values)
        return kalman_step(members, predicted, innovations, variance, taper)

    monkeypatch.setattr("latentpde.estimators.assimilation.enkf.kalman_step", record)
    for centred_noise in (False, True):
        options = {**PLAIN, "num_members": 400, "centred_noise": centred_noise}
        EnKF(**options).analyse(data, background, num_draws=1, seed=3)
    published, ours = seen
    assert np.abs(published.mean(0)).max() > 0.01
    np.testing.assert_allclose(published.std(0), 0.5, rtol=0.15)
    np.testing.assert_allclose(ours, np.sqrt(400 / 399) * (published - published.mean(0)), atol=1e-12)


def test_draws_are_members_and_the_mean_is_the_whole_ensembles():
    data, background = problem()
    few, many = (EnKF().analyse(data, background, num_draws=n, seed=0) for n in (3, 16))
    assert (few.num_draws, many.num_draws) == (3, 16)
    np.testing.assert_array_equal(few.draws(FINE), many.draws(FINE)[:3])
    np.testing.assert_allclose(few.mean(FINE), many.draws(FINE).mean("draw"), atol=1e-12)
    np.testing.assert_allclose(few.std(FINE), many.draws(FINE).std("draw", ddof=1), atol=1e-12)
    assert EnKF().analyse(data, background, num_draws=30, seed=0).num_draws == 30
    one = EnKF().analyse(data, background, num_draws=1, seed=0)
    np.testing.assert_allclose(one.std(FINE), few.std(FINE), err_msg="the spread is the ensemble's, not that of draws")


@pytest.mark.parametrize(
    "options",
    [{"num_members": 1}, {"num_cycles": 0}, {"ensemble_std": 0.0}, {"length": float("nan")}, {"localisation": -1.0},
     {"inflation": 0.0}, {"correction": -0.1}],
)  # fmt: skip
def test_impossible_options_are_refused(options):
    with pytest.raises(UsageError, match="of enkf must be"):
        make_estimator("enkf", **options)
