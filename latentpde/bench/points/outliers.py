"""Readings of which some lie."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from latentpde.observation import Observation

SHARE, LEAST, MOST = 0.1, 5.0, 100.0  # of the readings; by how many standard deviations of the noise


def spoilt(observation: Observation, noise_std: float, seed: int = 0) -> tuple[Observation, list[int]]:
    """One case with a tenth of its readings moved by 5 to 100 standard deviations of the noise, and which they are."""
    rng, mask = np.random.default_rng(seed), observation.mask[0]
    num = int(mask.sum())
    chosen = np.sort(rng.permutation(num)[: max(1, round(SHARE * num))])
    sizes = np.exp(rng.uniform(np.log(LEAST), np.log(MOST), len(chosen))) * rng.choice([-1, 1], len(chosen))
    own = observation.values[0][mask].clone()
    own[torch.from_numpy(chosen)] += torch.from_numpy(noise_std * sizes)
    values = observation.values.clone()
    values[0, mask] = own
    return replace(observation, values=values), chosen.tolist()


def without(observation: Observation, chosen: list[int]) -> Observation:
    """One case without some of its readings."""
    mask = observation.mask.clone()
    kept = torch.ones(int(mask.sum()), dtype=torch.bool)
    kept[torch.tensor(chosen)] = False
    mask[0][observation.mask[0]] = kept
    return replace(observation, mask=mask)


def of_unknown_noise(observation: Observation) -> Observation:
    """The same, with noise that is to be inferred."""
    return replace(observation, noise_std=torch.where(observation.mask, torch.nan, 1.0).double())
