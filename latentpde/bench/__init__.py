"""Every table and figure of the paper, and those it lacks, from one command each."""

# importing them registers them
from latentpde.bench import comparison, frontier, gallery, peers, scaling, studies, sweeps, trust
from latentpde.bench.benchmark import Benchmark, benchmarks, run_benchmark, run_benchmarks

__all__ = [
    "Benchmark",
    "benchmarks",
    "comparison",
    "frontier",
    "gallery",
    "peers",
    "run_benchmark",
    "run_benchmarks",
    "scaling",
    "studies",
    "sweeps",
    "trust",
]
