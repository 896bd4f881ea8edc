"""Random numbers that belong to a case: they follow from the seed and the case's readings, so a case comes out the same
alone and in any batch."""

from __future__ import annotations

import zlib

import numpy as np

from latentpde.observation import Observation


def case_seeds(observation: Observation, seed: int) -> list[int]:
    """A seed for each case, which depends on ``seed`` and on the case's readings only. Of a table their number counts
    and nothing else: neither their order nor their unit may matter.

    >>> readings = np.arange(8.0).reshape(2, 2, 2)
    >>> both = Observation.from_arrays(readings, noise_std=0.1)
    >>> second = Observation.from_arrays(readings[1], noise_std=0.1)
    >>> case_seeds(both, 0)[1] == case_seeds(second, 0)[0]
    True
    """
    if observation.reading_times is not None:
        return [derived_seed(seed, str(num)) for num in observation.num_readings.tolist()]
    return [zlib.crc32(values.numpy().tobytes(), seed) for values in observation.values]


def derived_seed(seed: int, purpose: str) -> int:
    """A seed for a second stream of random numbers, so that what they decide does not depend on the first stream's.

    >>> derived_seed(1, "detail") != derived_seed(2, "detail")
    True
    """
    return zlib.crc32(purpose.encode(), seed)


def snapshot_generators(observation: Observation, seed: int) -> list[np.random.Generator]:
    """A generator for each snapshot of each case, cases first."""
    num_times = len(observation.times)
    return [np.random.default_rng((own, time)) for own in case_seeds(observation, seed) for time in range(num_times)]
