"""Time and memory of `exact` as the problem grows: readings, coarse grid, snapshots, output.

    python tools/benchmark_cost.py      # writes results/cost.json, and goes on where it stopped

Each size runs in a process of its own, so that its peak memory is its own; `memory_mb` is what the run added to the
peak that the imports and the data had reached.
"""

import json
import resource
import subprocess
import sys
import time
from pathlib import Path

SIZES = {
    "coarse grid": [{"coarse": n, "readings": 51} for n in (32, 64, 128, 256)],
    "snapshots": [{"snapshots": n} for n in (1, 2, 4, 8)],
    "output": [{"output": n} for n in (128, 256, 512, 1024)],
    "readings": [{"coarse": 128, "readings": n} for n in (50, 100, 200, 400, 1000, 2000, 5000)],
}
REGIMES = ("balanced", "klein_gordon")


def measure(regime: str, *, coarse: int = 32, readings: int = 51, snapshots: int = 1, output: int = 128) -> dict:
    from latentpde.estimators import reconstruct
    from latentpde.observation import Observation
    from latentpde.simulation import regimes, simulate

    time_scale = regimes.get(regime).time
    times = tuple(time_scale * (i + 1) / snapshots for i in range(snapshots))
    cases = simulate(
        regime, num=1, seed=5, mask="radial", sparsity=readings / coarse**2, shape=(4 * coarse,) * 2, times=times
    )
    observation = Observation.from_dataset(cases)
    before = _peak()
    start = time.perf_counter()
    posterior = reconstruct(observation, num_samples=12)
    middle = time.perf_counter()
    _ = posterior.mean(output).values, posterior.draws(output).values
    end = time.perf_counter()
    return {
        "readings": int(observation.mask.sum()),
        "posterior_s": round(middle - start, 2),
        "decode_s": round(end - middle, 2),
        "memory_mb": round(_peak() - before),
        "evaluations": int(posterior.diagnostics["num_evaluations"][0]),
        "trusted": bool(posterior.diagnostics["trusted"][0]),
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    path = Path("results/cost.json")
    results: dict = json.loads(path.read_text()) if path.exists() else {}
    for what, sizes in SIZES.items():
        for regime in REGIMES:
            for size in sizes:
                if any({"regime": regime, **size}.items() <= row.items() for row in results.get(what, [])):
                    continue
                command = [sys.executable, __file__, json.dumps({"regime": regime, **size})]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                found = json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr[-300:]}
                results.setdefault(what, []).append({"regime": regime, **size, **found})
                print(what, results[what][-1], flush=True)
                path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(**json.loads(sys.argv[1]))))
    else:
        main()
