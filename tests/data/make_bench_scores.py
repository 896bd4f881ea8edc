"""Record the scores that `test_bench.py` compares with: bench_scores.json beside this file."""

import json
import tempfile
from pathlib import Path

from latentpde.bench import run_benchmark
from latentpde.bench.benchmark import cases_of
from latentpde.bench.rows import row
from latentpde.bench.runs import Job, Store

METHODS, REGIMES, NUM = ("exact", "3dvar", "enkf", "kriging"), ("balanced", "helmholtz"), 2

with tempfile.TemporaryDirectory() as folder:
    run_benchmark("table1", folder, num=NUM, methods=METHODS, regimes=REGIMES)
    store = Store(Path(folder) / "runs")
    scores: dict = {}
    for name in METHODS:
        for regime in REGIMES:
            lines = store.find(Job(row=row(name), simulation=cases_of(regime)), NUM)
            scores.setdefault(name, {})[regime] = {s: [line[s] for line in lines.values()] for s in ("rmse", "crps")}
record = {"methods": METHODS, "regimes": REGIMES, "num": NUM, "scores": scores}
Path(__file__).with_name("bench_scores.json").write_text(json.dumps(record, indent=1) + "\n")
