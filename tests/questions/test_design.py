"""Where to measure next, against dense Gaussians and what happens when one measures there."""

import json

import numpy as np
import pytest
import torch

import latentpde as lp
from latentpde.cli import main
from latentpde.decoder import Decoder
from latentpde.errors import DataError, UsageError
from latentpde.frame import Excluded, Frame
from latentpde.posterior import PDEPosterior

THETA = {"vx": 0.5, "vy": -0.3, "kappa": 0.02}


@pytest.fixture(scope="module")
def observation():
    return lp.Observation.from_dataset(
        lp.simulate("balanced", num=1, seed=2, shape=(32, 32), num_modes=2, sparsity=0.2, observed="point")
    )


@pytest.fixture(scope="module")
def posterior(observation):
    return lp.reconstruct(observation, num_draws=8)


def test_a_first_reading_explains_what_a_dense_gaussian_says(observation):
    """With known coefficients field and readings are linear in the source: columns by decoding units of it."""
    posterior = lp.reconstruct(observation, fixed=THETA, num_draws=2)
    assert isinstance(posterior, PDEPosterior)
    latent, candidates = posterior.latent, np.random.default_rng(0).random((12, 2))
    decoder = Decoder(latent, observation.grid.extent)
    theta = torch.tensor([list(THETA.values())], dtype=torch.float64).expand(latent.num_source + 1, -1)
    unit = torch.cat([torch.zeros((1, latent.num_source)), torch.eye(latent.num_source)]).double()
    z = latent.pack(theta, unit * latent.source_prior_std)
    u_hat = decoder.spectrum(z, torch.zeros((1, 8, 5), dtype=torch.complex128), observation.times)[:, 0]

    def columns(points):
        values = lp.grid.at_points(u_hat, torch.as_tensor(points), observation.grid.extent)
        return (values[1:] - values[0]).T.numpy()

    found = lp.suggest(posterior, 3, candidates=candidates, noise_std=0.1)
    readings, places, wanted = columns(observation.positions[0]), columns(candidates), columns(found.asked)
    noise = np.diag(posterior.model().likelihood.noise.known.numpy())
    prior = readings @ readings.T + noise

    def left(a, b):
        return a @ b.T - a @ readings.T @ np.linalg.solve(prior, readings @ b.T)

    cross, variance = left(wanted, places), np.diag(left(places, places))
    drop = (cross**2).sum(0) / (variance + 0.1**2) / np.trace(left(wanted, wanted))
    np.testing.assert_allclose(found.first, drop, rtol=1e-6)
    both = found.chosen[:2]  # greedily, the second after the first
    gain = left(wanted, places[both]) @ np.linalg.inv(left(places[both], places[both]) + 0.01 * np.eye(2))
    explained = np.trace(gain @ left(places[both], wanted)) / np.trace(left(wanted, wanted))
    assert found.explained[1] == pytest.approx(explained, rel=1e-6)


def test_a_region_is_known_best_by_reading_it(posterior):
    found = lp.suggest(posterior, 4, target="region", region=(0.0, 0.3, 0.0, 0.3))
    (y, x) = found.asked.T
    assert max(y.max(), x.max()) <= 0.3
    assert (found.after <= found.before + 1e-12).all()
    assert np.all(np.diff(found.explained) > 0)


@pytest.mark.parametrize("target", ["field", "coefficients", "source"])
def test_every_target_is_explained_more_and_more(posterior, target):
    found = lp.suggest(posterior, 3, target=target, times=[0.1, 0.25])
    assert 0 < found.explained[0] < found.explained[-1] <= 1
    assert len(set(found.chosen)) == 3
    assert set(found.to_dataframe()["time"]) <= {0.1, 0.25}


def test_excluded_cells_are_left_out(posterior):
    from dataclasses import replace

    y = x = np.array([0.25, 0.75])
    excluded = Excluded(y, x, np.array([[True, False], [True, True]]))  # all but the lower right quarter
    frame = Frame(excluded=excluded)
    observation = replace(posterior.observation, frame=frame)
    found = lp.suggest(replace(posterior, observation=observation), 5)
    table = found.to_dataframe()
    assert (table["y"] < 0.5).all()
    assert (table["x"] > 0.5).all()
    assert (found.asked[:, 0] <= 0.5).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num": 0}, "num"),
        ({"target": "wind"}, "target must be one of"),
        ({"target": "region"}, "needs region"),
        ({"region": (0, 1, 0, 1)}, "no other target"),
        ({"candidates": [[0.1, 2.0]]}, "outside the rectangle"),
        ({"candidates": [[0.1, np.nan]]}, "finite numbers"),
        ({"candidates": [[0.1, 0.2]], "num": 2}, "there are 1 candidates"),
        ({"times": [-1.0]}, "where the PDE starts"),
        ({"noise_std": -1.0}, "noise_std"),
        ({"target": "region", "region": (5, 6, 5, 6)}, "holds no place"),
        ({"case": 3}, "there is no case"),
    ],
)
def test_refusals_say_what_is_wrong(posterior, options, words):
    with pytest.raises(UsageError, match=words):
        lp.suggest(posterior, **options)


@pytest.mark.parametrize("settings", [{"num_modes": 0}, {"source": "none"}], ids=str)
def test_nothing_is_told_of_a_source_that_there_is_not(observation, settings):
    posterior = lp.reconstruct(observation, fixed=THETA, num_draws=2, **settings)
    with pytest.raises(UsageError, match="without a source"):
        lp.suggest(posterior, 1, target="source")


def test_other_methods_are_refused(observation):
    with pytest.raises(UsageError, match="method exact"):
        lp.suggest(lp.reconstruct(observation, method="map", num_steps=5))


def test_the_command_repeats_what_python_found(observation, posterior, tmp_path, capsys):
    posterior.to_netcdf(tmp_path / "out.nc", resolution=8)
    (tmp_path / "places.csv").write_text("y,x\n0.1,0.2\n0.5,0.6\n0.9,0.1\n")
    arguments = ["suggest", tmp_path / "out.nc", "--num", "2", "--candidates", tmp_path / "places.csv"]
    arguments += ["--map", tmp_path / "map.png", "-o", tmp_path / "next.csv", "--json", "-q"]
    with pytest.raises(SystemExit) as leaving:
        main([str(a) for a in arguments])
    assert not leaving.value.code
    found = json.loads(capsys.readouterr().out)
    expected = lp.suggest(posterior, 2, candidates=[[0.1, 0.2], [0.5, 0.6], [0.9, 0.1]]).to_dataframe()
    assert [row["y"] for row in found["readings"]] == pytest.approx(expected["y"].tolist())
    assert [row["explained"] for row in found["readings"]] == pytest.approx(expected["explained"].tolist(), rel=1e-6)
    assert (tmp_path / "map.png").stat().st_size > 1000
    assert (tmp_path / "next.csv").read_text().startswith("y,x,time,explained")


def test_candidates_of_a_bad_file_are_refused(observation, tmp_path):
    from latentpde.cli.suggest import read_candidates

    for text, words in (("a,b\n1,2\n", "needs a column 'y'"), ("y,x\n1,two\n", "not finite numbers"), ("", "as CSV")):
        path = tmp_path / "places.csv"
        path.write_text(text)
        with pytest.raises(DataError, match=words):
            read_candidates(path, observation)
