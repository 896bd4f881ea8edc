"""A reconstruction keeps what it was made from, and it can be made again from that."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

import latentpde as lp
from latentpde.frame import Clock, Excluded, Frame
from latentpde.io.netcdf import write_netcdf
from latentpde.io.readings import readings_from_dataset, readings_to_dataset
from latentpde.io.reconstructions import open_reconstruction
from latentpde.observation import Observation


def table():
    land = Excluded(np.array([0.0, 1.0]), np.array([0.0, 2.0]), np.array([[True, False], [False, False]]))
    clock = Clock("date", "h", np.datetime64("2026-05-01T00:00"))
    frame = Frame.geographic(
        latitudes=(50.0, 51.0), longitudes=(9.0, 10.0), clock=clock, excluded=land, places=("a", "b", "a")
    )
    readings = Observation.from_table(
        [1.0, 2.0, np.nan, 4.0], y=[0, 1, 1, 2.0], x=[0, 1, 2, 3.0], t=[5, 6, 6, 8.0], group=["p", "q", "q", "p"]
    )
    return replace(readings, frame=frame, family="advection_diffusion")


def cells():
    readings = np.full((2, 1, 4, 6), np.nan)
    readings[:, 0, 1, 2], readings[:, 0, 3, 3] = 0.5, -0.5
    return Observation.from_arrays(
        readings,
        np.zeros((2, 4, 6)),
        times=[0.25],
        noise_std=0.1,
        fine_initial=np.zeros((2, 8, 12)),
        domain=lp.Domain(x="periodic"),
        bounds=torch.tensor([[0.0, 1.0], [2.0, 3.0]], dtype=torch.float64),
    )


@pytest.mark.parametrize("make", [table, cells])
def test_an_observation_survives_a_file(make, tmp_path):
    before = make()
    write_netcdf(readings_to_dataset(before), tmp_path / "readings.nc")
    after = readings_from_dataset(lp.open_cases(tmp_path / "readings.nc").to_dataset())
    for name in (f.name for f in fields(before)):
        old, new = getattr(before, name), getattr(after, name)
        if isinstance(old, torch.Tensor):
            assert torch.equal(old.nan_to_num(-7), new.nan_to_num(-7)), name
            assert old.dtype == new.dtype, name
        elif isinstance(old, Frame):
            assert new.to_dict() == old.to_dict()
            np.testing.assert_array_equal(new.excluded.mask, old.excluded.mask)
        else:
            assert new == old, name


def test_a_reconstruction_can_be_made_again_from_its_own_file(tmp_path):
    cases = lp.simulate("diffusion", num=1, shape=(16, 16), num_modes=2, sparsity=0.5)
    first = lp.reconstruct(cases, method="map", num_steps=5, bounds={"kappa": (0.02, 0.1)}, seed=3)
    first.to_netcdf(tmp_path / "out.nc", 16)
    observation, settings = open_reconstruction(tmp_path / "out.nc")
    again = lp.reconstruct(observation, **settings)
    np.testing.assert_array_equal(first.mean(16), again.mean(16))


def test_priors_and_domains_are_recorded_as_they_are_spelt(tmp_path):
    readings = lp.Observation.from_table(
        np.sin(np.arange(12.0)), y=np.arange(12.0) % 4, x=np.arange(12.0) % 3, t=np.arange(12.0) % 2
    )
    posterior = lp.reconstruct(
        readings, "advection_diffusion", source=lp.Matern(std=(0.1, 10.0)), sweep=32, target=8, num_spread_draws=2
    )
    posterior.to_netcdf(tmp_path / "out.nc", 8)
    assert json.loads(lp.open_cases(tmp_path / "out.nc").attrs["settings"])["source"].startswith("Matern(std=(0.1, 10")


def test_a_group_that_is_something_else_is_refused(tmp_path):
    broken = readings_to_dataset(cells()).assign_attrs(observation='{"grid": 3}')
    with pytest.raises(lp.DataError, match="not as latentpde writes it"):
        readings_from_dataset(broken)


def test_what_readings_are_of_and_their_walls_come_back():
    readings = Observation.from_table(
        [1.0, 2.0, 3.0], y=[0.1, 0.2, 0.8], x=[0.5, 0.6, 0.7], reads=["field", "source", "field"],
        grid=lp.Grid((4, 4)), domain="y=dirichlet(1,2),x=neumann",
    )  # fmt: skip
    back = readings_from_dataset(readings_to_dataset(readings))
    assert back.of_source.dtype == torch.bool
    assert back.of_source.equal(readings.of_source)
    assert back.domain == readings.domain
