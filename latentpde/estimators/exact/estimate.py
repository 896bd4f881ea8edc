"""About what a search takes, before it begins: right to a factor of two or three, on a core of today."""

from __future__ import annotations

import math

from latentpde.domain import Domain
from latentpde.estimators.exact.embedding import MOST_MODES
from latentpde.estimators.exact.sampling import MOST_VALUES, NUM_IN_PART
from latentpde.latent import Latent
from latentpde.needs import Needs
from latentpde.observation import Observation

_OPERATIONS_PER_SECOND, _LEAST_SECONDS = 4e9, 1e-4  # of one core's linear algebra; of an evaluation
_SEARCHES_OF_ROBUST = 3  # until outliers are settled
_SLOPES, _COST_OF_SLOPE = 400, 3.5  # of a search that climbs; in evaluations
_SAMPLES = 6.0  # that are drawn for each effective one
_WITH_ALL, _SLOPES_WITH_ALL = 6.0, 60  # for each effective sample, and slopes, where a part came first


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
    fields = 1 + bool(latent.family.order)
    times = _num_times(observation)

    def evaluation(num: int) -> float:
        """Of so many readings: responses at all times, products, and a factor, by readings or by modes."""
        rows = min(num, 2 * fields * MOST_MODES)
        by_modes = 4 * fields * MOST_MODES * num * num if times > num / 2 else 4 * MOST_MODES * times**2 * num * num / 9
        responses = 400 * fields * MOST_MODES * min(times, num)
        return (rows**3 / 3 + by_modes * (num == rows) + responses) / _OPERATIONS_PER_SECOND + _LEAST_SECONDS

    global_search = sweep / 2 + _SLOPES * _COST_OF_SLOPE
    if num_readings**2 <= MOST_VALUES:
        return (global_search + _SAMPLES * target + 2 * num_nodes) * evaluation(num_readings)
    with_all = _WITH_ALL * target / 4 + _SLOPES_WITH_ALL * _COST_OF_SLOPE + 2 * num_nodes
    part = (global_search + _SAMPLES * target / 4) * evaluation(NUM_IN_PART)
    return part + with_all * evaluation(num_readings)


def _num_times(observation: Observation) -> int:
    """Distinct times of the readings of the first case."""
    if observation.reading_times is None:
        return len(observation.times)
    times = observation.reading_times[0][observation.mask[0]]
    return max(1, len(times.unique())) if math.prod(times.shape) else 1
