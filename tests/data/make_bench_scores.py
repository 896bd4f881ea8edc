"""Record the scores that `tests/bench/test_studies.py` compares with: bench_scores.json beside this file.

Of each method and regime: the mean RMSE and CRPS over the first cases, and by how much other seeds move it.
"""

import json
from pathlib import Path

import numpy as np

from latentpde.bench.jobs import Job, Part, cases_of
from latentpde.bench.measurements import measure_scores
from latentpde.bench.rows import row
from latentpde.bench.solving import solve

METHODS, REGIMES, NUM, NUM_SEEDS = ("exact", "3dvar", "enkf", "kriging"), ("balanced", "helmholtz"), 2, 6


def main() -> None:
    record: dict = {"methods": METHODS, "regimes": REGIMES, "num": NUM, "scores": {}}
    for name in METHODS:
        for regime in REGIMES:
            job = Job(row=row(name), simulation=cases_of(regime))
            runs = [measure_scores(solve(Part(job, 0, NUM), seed=seed)) for seed in range(NUM_SEEDS)]
            found = {}
            for score in ("rmse", "crps"):
                means = [float(np.mean([line[score] for line in lines])) for lines in runs]
                found[score] = {"mean": round(float(np.mean(means)), 5), "std": round(float(np.std(means, ddof=1)), 6)}
            record["scores"].setdefault(name, {})[regime] = found
    Path(__file__).with_name("bench_scores.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":  # importing it, as a collection of doctests does, must not write the record anew
    main()
