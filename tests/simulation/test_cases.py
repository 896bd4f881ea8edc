"""Simulated cases: reproducible one by one, independent of each other, and what their attributes say they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr

from latentpde.decoder import Decoder
from latentpde.errors import UsageError
from latentpde.grid import Grid, at_points, average_pool
from latentpde.io.netcdf import open_cases, open_observed
from latentpde.io.streaming import append_cases
from latentpde.latent import Latent
from latentpde.observation import Observation
from latentpde.simulation import (
    EVALUATION_MASKS,
    TRAINING_MASKS,
    Regime,
    Simulation,
    masks,
    regimes,
    simulate,
    simulate_to_file,
)

SMALL = {"shape": (64, 64), "pooling": 4}
RECTANGLE = {"shape": (64, 96), "extent": (1.0, 1.5), "pooling": 4}
KINDS = ("lowres-solve", "pooled", "point")
SPLITS = ("train", "validation", "test")


def groups(cases):
    return {path: cases[path].to_dataset(inherit=False) for path in ("/", "/truth")}


def assert_same_cases(a, b, exact=True):
    """Bit by bit; or with rounding in what passes through batched transforms."""
    for path, dataset in groups(a).items():
        other = groups(b)[path]
        assert set(dataset.variables) == set(other.variables)
        for name in dataset.variables:
            one, two = dataset[name].values, other[name].values
            assert one.shape == two.shape
            if exact or one.dtype.kind not in "f":
                np.testing.assert_array_equal(one, two, err_msg=str(name))
            else:
                np.testing.assert_allclose(
                    one,
                    two,
                    rtol=1e-5 if one.dtype == np.float32 else 1e-11,
                    atol=1e-6 if one.dtype == np.float32 else 1e-11,
                )


def clean_readings(cases, index, *, times, pooling=4, extent=(1.0, 1.0)):
    """What case ``index`` would read without noise, from its truth alone."""
    truth, attributes = cases["truth"].isel(case=index), cases.attrs
    family = regimes.get(attributes["regime"]).pde
    decoder = Decoder(Latent(family), extent)
    lower, upper = family.bounds.numpy().T
    fraction = (truth["coefficients"].values - lower) / (upper - lower)
    z = torch.from_numpy(np.concatenate([np.log(fraction / (1 - fraction)), truth["source"].values]))
    u0 = torch.from_numpy(truth["initial"].values.astype(float))
    fine = Grid((u0.shape[0], u0.shape[1]), extent)
    kind = attributes["observed_kind"]
    if kind == "lowres-solve":
        coarse = fine.coarsen(pooling)
        return decoder.decode(z, average_pool(u0, pooling), times, coarse).numpy()
    if kind == "pooled":
        # the fine grid carries every mode of the solution: averaging its samples is the definition
        return average_pool(decoder.decode(z, u0, times, fine), pooling).numpy()
    root = cases.to_dataset().isel(case=index)
    positions = torch.from_numpy(np.stack([root["sensor_y"].values, root["sensor_x"].values], -1))
    return at_points(decoder.spectrum(z, fine.analyse(u0), times), positions, extent).numpy()


# Reproducibility


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides_every_bit(kind):
    options = {"num": 3, "observed": kind, "split": "train", **SMALL}
    assert_same_cases(simulate("balanced", seed=5, **options), simulate("balanced", seed=5, **options))
    other = simulate("balanced", seed=6, **options)
    assert not np.array_equal(simulate("balanced", seed=5, **options)["initial"], other["initial"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_does_not_depend_on_its_neighbours(kind):
    """Any part of a set can be made again, in any batch size."""
    whole = simulate("klein_gordon", num=5, seed=2, observed=kind, split="train", **SMALL)
    simulation = Simulation(regime="klein_gordon", seed=2, observed=kind, split="train", **SMALL)
    assert_same_cases(simulation.cases(3, 5), whole.isel(case=slice(3, 5)), exact=False)
    sizes = [part.sizes["case"] for part in simulation.batches(5, size=2)]
    assert sizes == [2, 2, 1]
    for start, part in zip((0, 2, 4), simulation.batches(5, size=2), strict=True):
        assert_same_cases(part, whole.isel(case=slice(start, start + 2)), exact=False)
        assert part["case"].values.tolist() == list(range(start, min(start + 2, 5)))


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    simulate("diffusion", num=1, **SMALL)
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[1])


def test_no_case_shares_anything_with_another_or_with_another_split():
    """Nothing of a test case may have been seen in training: a leak would flatter every learned method."""
    drawn = {split: simulate("forcing", num=4, seed=0, split=split, mask="random", **SMALL) for split in SPLITS}
    drawn["another regime"] = simulate("advection", num=4, seed=0, mask="random", **SMALL)
    for name in ("initial", "coefficients", "source"):
        rows = [row.tobytes() for cases in drawn.values() for row in cases["truth"][name].values]
        assert len(set(rows)) == len(rows)
    observed = [row for cases in drawn.values() for row in np.isfinite(cases["observed"].values)]
    assert len({row.tobytes() for row in observed}) == len(observed)
    fractions = []
    for cases in drawn.values():
        lower, upper = np.reshape(cases.attrs["coefficient_bounds"], (-1, 2)).T
        fractions += ((cases["truth"]["coefficients"].values - lower) / (upper - lower)).round(9).ravel().tolist()
    assert len(set(fractions)) == len(fractions)


def test_leaving_the_source_out_changes_nothing_else():
    with_source, without = (simulate("balanced", num=3, source=source, **SMALL) for source in (True, False))
    assert with_source.attrs["source_prior_std"] == regimes.get("balanced").source_prior_std
    assert without.attrs["source_prior_std"] == 0
    assert with_source["truth"]["source"].values.std() == pytest.approx(0.4, rel=0.1)
    assert not without["truth"]["source"].values.any()
    for name in ("initial", "coefficients"):
        np.testing.assert_array_equal(with_source["truth"][name], without["truth"][name])
    np.testing.assert_array_equal(np.isnan(with_source["observed"]), np.isnan(without["observed"]))


# What cases are


@pytest.mark.parametrize("name", regimes.names())
@pytest.mark.parametrize("kind", KINDS)
def test_every_regime_can_be_observed_in_every_way(name, kind):
    regime, times = regimes.get(name), (0.05, 0.2)
    cases = simulate(name, num=2, seed=1, observed=kind, times=times, **RECTANGLE)
    truth = cases["truth"]
    assert truth["field"].dims == ("case", "time", "y", "x")
    assert truth["field"].shape == (2, 2, 64, 96)
    assert truth["initial"].shape == (2, 64, 96)
    assert truth["source"].dims == ("case", "latent")
    assert tuple(truth["coefficient"].values) == regime.pde.coefficient_names
    reading = ("sensor",) if kind == "point" else ("y_obs", "x_obs")
    assert cases["observed"].dims == ("case", "time", *reading)
    assert cases["initial"].dims == ("case", "y_obs", "x_obs")
    assert cases["initial"].shape == (2, 16, 24)
    np.testing.assert_allclose(cases["x_obs"], (np.arange(24) + 0.5) / 16)
    np.testing.assert_allclose(truth["y"], (np.arange(64) + 0.5) / 64)
    assert np.isfinite(truth["field"]).all()
    lower, upper = np.array(regime.ranges).T
    theta = truth["coefficients"].values
    assert ((theta > lower) & (theta < upper)).all()

    data = Observation.from_dataset(cases)
    assert (data.family, data.regime, data.observed, data.pooling) == (regime.family, name, kind, 4)
    assert data.grid == Grid((16, 24), (1.0, 1.5))
    assert data.times.tolist() == list(times)
    assert data.num_readings.tolist() == [2 * 19, 2 * 19]  # 5 % of 384 cells, at both times


def test_attributes_and_variables_are_the_documented_ones():
    cases = simulate("klein_gordon", num=2, seed=7, noise_std=0.2, **SMALL)
    assert {
        "family": "klein_gordon",
        "regime": "klein_gordon",
        "time": 1.0,
        "noise_std": 0.2,
    }.items() <= cases.attrs.items()
    assert cases["observed"].dims == cases["initial"].dims == ("case", "y_obs", "x_obs")
    truth = cases["truth"]
    assert truth["field"].dims == truth["initial"].dims == ("case", "y", "x")
    assert truth["coefficients"].dims == ("case", "coefficient")
    assert truth["source"].dims == ("case", "latent")
    assert truth["source"].shape == (2, 576)
    assert {"field", "initial", "coefficients", "source"} <= set(truth.data_vars)
    assert not {"field", "coefficients", "source"} & set(cases.to_dataset().data_vars)


def test_initial_states_are_pooled_and_standardised():
    cases = simulate("diffusion", num=4, **RECTANGLE)
    fine = cases["truth"]["initial"].values.astype(float)
    np.testing.assert_allclose(fine.mean((1, 2)), 0, atol=1e-6)
    np.testing.assert_allclose(fine.std((1, 2)), 1, rtol=1e-5)
    np.testing.assert_allclose(cases["initial"], fine.reshape(4, 16, 4, 24, 4).mean((2, 4)), atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_true_field_solves_the_pde_from_the_true_initial_state(kind):
    """And does not depend on how it is observed."""
    cases = simulate("telegraph", num=2, seed=3, observed=kind, **RECTANGLE)
    for i in range(2):
        as_points = cases.to_dataset().isel(case=[i])
        grid = Grid((64, 96), (1.0, 1.5))
        y, x = np.meshgrid(*grid.coordinates(), indexing="ij")
        every_cell = xr.Dataset(
            {"sensor_y": (("case", "sensor"), y.reshape(1, -1)), "sensor_x": (("case", "sensor"), x.reshape(1, -1))}
        )
        root = every_cell.assign_attrs(as_points.attrs | {"observed_kind": "point"})
        alone = xr.DataTree.from_dict({"/": root, "/truth": cases["truth"].to_dataset(inherit=False).isel(case=[i])})
        field = clean_readings(alone, 0, times=[1.0], extent=(1.0, 1.5)).reshape(64, 96)
        np.testing.assert_allclose(cases["truth"]["field"][i], field, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise_std", [0.05, 0.4])
def test_noise_on_the_readings_has_the_stated_strength(kind, noise_std):
    """Readings minus what the truth would read, on all cells: a normal case of known size."""
    options = {"num": 4, "seed": 4, "observed": kind, "times": (0.1, 0.25), "sparsity": 1.0, "mask": "random"}
    cases = simulate("advection", noise_std=noise_std, **options, **SMALL)
    clean = np.stack([clean_readings(cases, i, times=[0.1, 0.25]) for i in range(4)])
    noise = cases["observed"].values - clean
    assert noise.size == 4 * 2 * 256
    assert noise.std() == pytest.approx(noise_std, rel=5 / np.sqrt(2 * noise.size))
    assert abs(noise.mean()) < 5 * noise_std / np.sqrt(noise.size)
    first, second = noise[:, 0].ravel(), noise[:, 1].ravel()
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(first.size)


@pytest.mark.parametrize("mask", masks.names())
def test_masks_and_sparsity_can_be_fixed(mask):
    cases = simulate("helmholtz", num=2, mask=mask, sparsity=0.1, **SMALL)
    assert np.isfinite(cases["observed"]).sum(("y_obs", "x_obs")).values.tolist() == [25, 25]
    assert set(cases["truth"]["mask_kind"].values) == {mask}


def test_training_varies_masks_and_sparsity_and_evaluation_keeps_to_its_own():
    training = Simulation(regime="diffusion", split="train", **SMALL).cases(0, 24)
    counts = np.isfinite(training["observed"]).sum(("y_obs", "x_obs")).values
    assert set(training["truth"]["mask_kind"].values) == set(TRAINING_MASKS)
    assert counts.min() >= 2
    assert counts.max() <= 38
    assert len(set(counts.tolist())) > 8
    test = Simulation(regime="diffusion", split="test", **SMALL).cases(0, 24)
    assert set(test["truth"]["mask_kind"].values) == set(EVALUATION_MASKS)
    assert set(np.isfinite(test["observed"]).sum(("y_obs", "x_obs")).values.tolist()) == {12}
    points = Simulation(regime="diffusion", split="train", observed="point", **SMALL).cases(0, 24)
    assert np.isfinite(points["observed"]).sum("sensor").values.tolist() == counts.tolist()


def test_points_lie_inside_the_cells_that_the_mask_chose():
    cells, points = (simulate("diffusion", num=2, observed=kind, **RECTANGLE) for kind in ("pooled", "point"))
    for i in range(2):
        y, x = (points[name].values[i] for name in ("sensor_y", "sensor_x"))
        chosen = set(zip((y * 16).astype(int).tolist(), (x * 16).astype(int).tolist(), strict=True))
        assert chosen == set(map(tuple, np.argwhere(np.isfinite(cells["observed"].values[i])).tolist()))


def test_a_regime_of_ones_own():
    mine = Regime("slow", "telegraph", ((0.2, 0.3), (1.0, 2.0)), 0.1)
    cases = simulate(mine, num=2, **SMALL)
    assert cases.attrs["regime"] == "slow"
    theta = cases["truth"]["coefficients"].values
    assert ((theta > [0.2, 1.0]) & (theta < [0.3, 2.0])).all()


# Files


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("times", [None, (0.1, 0.2)])
def test_a_file_holds_what_memory_would(tmp_path, kind, times):
    """More cases than fit in one batch, so that the seams are there too."""
    options = {
        "seed": 3,
        "observed": kind,
        "times": times,
        "shape": (16, 24),
        "extent": (1.0, 1.5),
        "pooling": 2,
        "num_modes": 3,
    }
    num = 35
    in_memory = simulate("balanced", num=num, **options)
    path = tmp_path / "cases.nc"
    simulate_to_file(Simulation(regime="balanced", **options), path, num)
    on_disk = open_cases(path)
    assert_same_cases(in_memory, on_disk)
    for group, dataset in groups(in_memory).items():
        other = groups(on_disk)[group]
        assert {n: dataset[n].dims for n in dataset.variables} == {n: other[n].dims for n in other.variables}
        assert set(dataset.attrs) == set(other.attrs)
        for name, value in dataset.attrs.items():
            np.testing.assert_array_equal(other.attrs[name], value)
    assert [p.name for p in tmp_path.iterdir()] == ["cases.nc"]
    assert "truth" not in open_observed(path)
    a, b = Observation.from_dataset(in_memory), Observation.from_dataset(open_observed(path))
    assert torch.equal(a.values, b.values)
    assert a.grid == b.grid


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, OSError])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "cases.nc"
    simulation = Simulation(regime="balanced", shape=(16, 16), pooling=2, num_modes=2)
    simulate_to_file(simulation, path, 2)
    before = path.read_bytes()

    def breaking():
        yield simulation.cases(0, 2)
        raise error("stopped midway")

    with pytest.raises(BaseException, match="stopped midway"):
        append_cases(breaking(), path, 4)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["cases.nc"]
    with pytest.raises(BaseException, match="stopped midway"):
        append_cases(breaking(), tmp_path / "new.nc", 4)
    assert [p.name for p in tmp_path.iterdir()] == ["cases.nc"]


def test_a_missing_folder_is_said_before_the_work(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        simulate_to_file(Simulation(regime="balanced"), tmp_path / "nowhere" / "cases.nc", 10**6)


# Mistakes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regime": "difusion"}, "did you mean 'diffusion'"),
        ({"mask": "randon"}, "did you mean 'random'"),
        ({"sparsity": 0.0}, "sparsity"),
        ({"sparsity": 1.5}, "sparsity"),
        ({"sparsity": float("nan")}, "sparsity"),
        ({"noise_std": 0.0}, "noise_std must be positive"),
        ({"noise_std": float("nan")}, "noise_std must be a finite number"),
        ({"pooling": 3}, "cannot be pooled by 3"),
        ({"pooling": 0}, "pooling must be at least 1"),
        ({"extent": (0.0, 1.0)}, "extent"),
        ({"seed": -1}, "seed"),
        ({"num": 0}, "at least 1"),
        ({"times": (-0.1,)}, "times"),
        ({"times": (float("nan"),)}, "times"),
        ({"times": ()}, "times"),
        ({"num_modes": -1}, "modes"),
    ],
)
def test_impossible_options_are_refused(options, message):
    options = {"regime": "diffusion", "num": 1, **SMALL, **options}
    with pytest.raises(UsageError, match=message):
        simulate(**options)
