"""About what a search takes, before it begins: right to a factor of two or three, on a core of today."""

from __future__ import annotations

import math

from latentpde.domain import Domain
from latentpde.estimators.exact.embedding import MOST_MODES
from latentpde.estimators.exact.likelihood import COVARIANCE_LIMIT_OF_SEVERAL
from latentpde.estimators.exact.sampling import MOST_VALUES, NUM_IN_PART
from latentpde.latent import Latent
from latentpde.needs import Needs
from latentpde.observation import Observation

_OPERATIONS_PER_SECOND, _LEAST_SECONDS = 4e9, 1e-4  # of one core, with small arrays; of an evaluation
_SEARCHES_OF_ROBUST = 3  # until outliers are settled
# Without a start: operations of large arrays, and seconds of a mode's response at a time, as `latentpde bench cost` has
# them; slopes, what each takes in evaluations, and samples that are drawn for each effective one.
_LARGE_PER_SECOND, _SECONDS_OF_RESPONSE = 2.5e10, 3e-8
_SLOPES, _SLOPES_WITH_ALL, _COST_OF_SLOPE, _SAMPLES = 300, 60, 3.5, 7.0
_FEW_TIMES = 8  # readings of each: below, products are by displacements


def needs_of(
    observation: Observation, latent: Latent, num_nodes: int, sweep: int, target: float, *, robust: bool
) -> Needs:
    """What the cases of an observation need.

    Args:
        observation, latent: as `Exact.estimate` has them.
        num_nodes: sets of parameters that fields are drawn for.
        sweep, target: effort of the search.
        robust: whether outliers are looked for.
    """
    num_readings = int(observation.num_readings.max())
    seconds = _seconds(observation, latent, num_readings, num_nodes, sweep, target)
    return Needs(
        memory=40 * observation.num_cases * num_nodes * latent.size + 256 * num_readings * latent.num_source,
        seconds=observation.num_cases * seconds * (_SEARCHES_OF_ROBUST if robust else 1),
    )


def _seconds(
    observation: Observation, latent: Latent, num_readings: int, num_nodes: int, sweep: int, target: float
) -> float:
    """Of one case. Without a start the search climbs by gradients, and sees a part of many readings first."""
    if observation.has_whole_initial and not (observation.domain or Domain.periodic()).is_open:
        num_operations = num_readings**3 / 3 + 12 * num_readings * latent.num_source
        return (2 * sweep + 10 * target + num_nodes) * max(num_operations / _OPERATIONS_PER_SECOND, _LEAST_SECONDS)
    fields, times = 1 + bool(latent.family.order), _num_times(observation)

    def evaluation(num: int) -> float:
        """Of so many readings: responses, products over modes, and a factor, by readings or by modes."""
        by_readings = num <= max(COVARIANCE_LIMIT_OF_SEVERAL, fields * MOST_MODES)
        rows = num if by_readings else 2 * fields * MOST_MODES
        products = (2 if num >= _FEW_TIMES * times else 4 * fields) * MOST_MODES * num**2 * by_readings
        responses = _SECONDS_OF_RESPONSE * MOST_MODES * min(times, num)
        return _LEAST_SECONDS + responses + (products + rows**3 / 3) / _LARGE_PER_SECOND

    num_global = sweep / 2 + _SLOPES * _COST_OF_SLOPE
    if num_readings**2 <= MOST_VALUES:
        return (num_global + _SAMPLES * target / 2 + 2 * num_nodes) * evaluation(num_readings)
    num_with_all = _SLOPES_WITH_ALL * _COST_OF_SLOPE + _SAMPLES * target / 4 + num_nodes
    return (num_global + _SAMPLES * target / 4) * evaluation(NUM_IN_PART) + num_with_all * evaluation(num_readings)


def _num_times(observation: Observation) -> int:
    """Distinct times of the readings of the first case."""
    if observation.reading_times is None:
        return len(observation.times)
    times = observation.reading_times[0][observation.mask[0]]
    return max(1, len(times.unique())) if math.prod(times.shape) else 1
