"""Fields that obey no PDE, and how odds are counted."""

import numpy as np
import pandas as pd

from latentpde.bench.points.plumes import HOURS, NOISE_STD, NUM_STATIONS
from latentpde.bench.studies import physics


def test_readings_of_no_pde_are_those_of_the_process():
    """Over many cases: its spread, and its correlation from hour to hour."""
    rows = []
    for index in range(200):
        readings = physics.process_task(index).readings
        table = np.full((len(HOURS), NUM_STATIONS), np.nan)
        table[readings.times.astype(int), readings.stations] = readings.values - 8.0
        rows.append(table[:, 0])
    values = np.array(rows)
    variance = physics._STD**2 + NOISE_STD**2
    assert np.nanvar(values) / variance == np.clip(np.nanvar(values) / variance, 0.85, 1.15)
    both = np.isfinite(values[:, 0]) & np.isfinite(values[:, 1])
    correlation = np.corrcoef(values[both, 0], values[both, 1])[0, 1]
    assert abs(correlation - np.exp(-1 / physics._HOURS) * physics._STD**2 / variance) < 0.1


def test_odds_are_counted_on_both_sides():
    lines = pd.DataFrame({"log_odds": [30.0, 1.0, -1.0, -9.0, 3.0]})
    assert physics._row(lines, "plumes") == ("plumes", "5", "2", "2", "1", "2.7 to 1")
