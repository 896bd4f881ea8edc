"""Choose how much the sub-grid prior steepens beyond the coarse Nyquist; writes results/subgrid_tuning.json.

Initial states of each kind are propagated by Klein-Gordon, where fine scales never die, with random coefficients; the
error of the conditional mean, on top of an independent error of 0.03 as the coefficients and the source leave it, is
compared with the spread that the prior predicts. Run with: python tools/tune_subgrid.py
"""

import json
from pathlib import Path

import numpy as np
import torch

from latentpde.estimators.exact import subgrid
from latentpde.grid import Grid, average_pool, pointwise_variance, wavenumbers
from latentpde.pde import get_family
from latentpde.simulation import draw_initial_condition, initial_conditions, regimes

CANDIDATES = (0.0, 0.5, 1.0, 1.5, 2.0)
OTHER_ERROR = 0.03
LEVELS = {"90": 1.6449, "50": 0.6745}


def main(num: int = 60, path: Path = Path("results/subgrid_tuning.json")) -> None:
    fine = Grid((128, 128))
    coarse = fine.coarsen(4)
    k, family = wavenumbers(fine.block_shape, fine.extent), get_family("klein_gordon")
    lower, upper = np.array(regimes.get("klein_gordon").ranges).T
    table = {}
    for steepening in CANDIDATES:
        subgrid.STEEPENING = steepening
        for cached in (subgrid._power_law, subgrid._coarse_power, subgrid._coarse_powers):
            cached.cache_clear()
        table[str(steepening)] = {}
        for kind in initial_conditions.names():
            covered = []
            for seed in range(num):
                rng = np.random.default_rng((seed, 1))
                u = torch.from_numpy(draw_initial_condition(kind, fine, generator=rng))
                theta = torch.from_numpy(rng.uniform(lower, upper))[None]
                response = family.state_response(k, torch.ones(1, dtype=torch.float64), theta)[0, 0]
                averages = average_pool(u, 4)
                prior = subgrid.Subgrid.fit(averages, coarse, 4)
                error = fine.synthesise(response * (prior.mean(averages) - fine.analyse(u))).numpy()
                error = error + OTHER_ERROR * rng.standard_normal(error.shape)
                power = prior.conditional_power * response**2
                std = float(torch.sqrt(pointwise_variance(power) + OTHER_ERROR**2))
                covered.append([np.mean(np.abs(error) < width * std) for width in LEVELS.values()])
            table[str(steepening)][kind] = dict(zip(LEVELS, np.mean(covered, 0).round(3).tolist(), strict=True))
        print(steepening, table[str(steepening)], flush=True)
    path.write_text(json.dumps({"num": num, "other_error": OTHER_ERROR, "coverage": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
