"""The check of the fit raises an alarm as seldom as it says, and readings are predicted as they are made."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from small_cases import KINDS, cases

from latentpde.observation import Observation
from latentpde.posterior.fields import FieldPosterior
from latentpde.posterior.fit import FALSE_ALARM, is_explained, misfits


@pytest.mark.parametrize("num_readings", [1, 20, 1000])
def test_alarms_begin_where_chance_ends(num_readings):
    limit = stats.chi2(num_readings).isf(FALSE_ALARM) / num_readings
    assert is_explained(0.999 * limit, num_readings)
    assert not is_explained(1.001 * limit, num_readings)
    assert is_explained(0.0, num_readings)  # readings that are met too well raise none


def test_the_misfit_of_the_truth_is_one():
    rng = np.random.default_rng(0)
    noise = rng.uniform(0.1, 2.0, (2, 40, 50))
    values = 3 + noise * rng.standard_normal((2, 40, 50))
    values[0, :30] = np.nan
    observation = Observation.from_arrays(values, noise_std=noise)
    found = misfits(observation, torch.full((2, 1, 40, 50), 3.0, dtype=torch.float64))
    np.testing.assert_allclose(found, 1, atol=4 * np.sqrt(2 / 500))


@pytest.mark.parametrize("kind", KINDS)
def test_readings_of_the_true_field_are_predicted(kind):
    """A posterior that is the truth misses the readings by their noise, and by what a coarse solve is off."""
    tree = cases(regime="diffusion", observed=kind, num=4, shape=(64, 64))
    observation = Observation.from_dataset(tree)
    truth = torch.from_numpy(tree["truth/field"].values.astype(float))[:, None, None]
    posterior = FieldPosterior(observation=observation, method="truth", native=observation.fine_grid, values=truth)
    for misfit, num in zip(posterior.misfits().tolist(), observation.num_readings.tolist(), strict=True):
        assert abs(misfit - 1) < 5 * np.sqrt(2 / num)
